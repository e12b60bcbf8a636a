"""The real text of BIOSHARDS_DATA as finished directories: what the benchmarks of later steps read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.bench.jobs import ROOT


def data() -> str:
    """The folder of real data.

    Raises:
        SystemExit: it is not here.
    """
    found = os.environ.get("BIOSHARDS_DATA")
    if not found:
        raise SystemExit("BIOSHARDS_DATA is not set: it has the text and the published vocabularies.")
    return found


def documents(given: list[str], work: Path) -> list[str]:
    """The directories given, or all abstracts and articles of the data, made if they are not there yet."""
    if given:
        return [str(Path(folder).resolve()) for folder in given]
    inputs = {"pubmed_to_shards": "pubmed", "pmc_to_shards": "jats"}
    options = {"pubmed_to_shards": [], "pmc_to_shards": ["--licences", "all", "--languages", ""]}
    folders = []
    for pipeline, name in inputs.items():
        output = str(work / name)
        command = [sys.executable, "-m", "bioshards.pipelines.cli", "run", pipeline, *options[pipeline]]
        command += ["--input", f"{data()}/{name}", "--output", output, "--max-rejected", "0.01"]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folders.append(output)
    return folders


def examples(given: str | None, vocabulary: str | None, work: Path) -> tuple[str, str]:
    """The pretraining set given and its vocabulary's folder, or one of Bio-ELECTRA's of the data."""
    if given:
        said = json.loads(Path(given, "manifest.json").read_text())["run"]["vocabulary"]
        return str(Path(given).resolve()), vocabulary or str(said)
    folders = documents([], work)
    built, made = str(work / "vocabulary"), str(work / "examples")
    inputs = [word for folder in folders for word in ("--input", folder)]
    for command in (
        ["bioshards.vocab", "build", *folders, "--out", built],
        [
            *("bioshards.pipelines.cli", "run", "shards_to_pretraining", "--preset", "bio-electra"),
            *(*inputs, "--vocab", built, "--output", made, "--validation", "0.05"),
        ],
    ):
        words = [sys.executable, "-m", *command]
        subprocess.run(words, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return made, built
