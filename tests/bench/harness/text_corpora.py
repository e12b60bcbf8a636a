"""The real text of BIOSHARDS_DATA as finished directories, for the benchmarks of later steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.bench.harness.bench_runner import ROOT


def get_data_dir() -> str:
    """The folder of real data.

    Raises:
        SystemExit: BIOSHARDS_DATA is not set.
    """
    folder = os.environ.get("BIOSHARDS_DATA")
    if not folder:
        raise SystemExit("BIOSHARDS_DATA is not set: it has the text and the published vocabularies.")
    return folder


def build_document_dirs(folders_given: list[str], work: Path) -> list[str]:
    """The directories given, or all abstracts and articles of the data, made if they are not there yet."""
    if folders_given:
        return [str(Path(folder).resolve()) for folder in folders_given]
    inputs = {"pubmed_to_shards": "pubmed", "pmc_to_shards": "jats"}
    options = {"pubmed_to_shards": [], "pmc_to_shards": ["--licences", "all", "--languages", ""]}
    folders = []
    for pipeline, name in inputs.items():
        output = str(work / name)
        command = [sys.executable, "-m", "bioshards.pipelines.cli", "run", pipeline, *options[pipeline]]
        command += ["--input", f"{get_data_dir()}/{name}", "--output", output, "--max-rejected", "0.01"]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        folders.append(output)
    return folders


def build_pretraining_set(pretraining_set: str | None, vocabulary: str | None, work: Path) -> tuple[str, str]:
    """The pretraining set given and its vocabulary's folder, or one of Bio-ELECTRA's of the data."""
    if pretraining_set:
        vocabulary_dir = json.loads(Path(pretraining_set, "manifest.json").read_text())["run"]["vocabulary"]
        return str(Path(pretraining_set).resolve()), vocabulary or str(vocabulary_dir)
    folders = build_document_dirs([], work)
    vocabulary_out, pretraining_out = str(work / "vocabulary"), str(work / "examples")
    inputs = [word for folder in folders for word in ("--input", folder)]
    for command in (
        ["bioshards.vocab", "build", *folders, "--output", vocabulary_out],
        [
            *("bioshards.pipelines.cli", "run", "shards_to_pretraining", "--preset", "bio-electra"),
            *(
                *inputs,
                "--vocab",
                vocabulary_out,
                "--output",
                pretraining_out,
                "--validation-fraction",
                "0.05",
            ),
        ],
    ):
        argv = [sys.executable, "-m", *command]
        subprocess.run(argv, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return pretraining_out, vocabulary_out
