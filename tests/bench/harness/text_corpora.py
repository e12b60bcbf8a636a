"""The real text of BIOSHARDS_DATA as finished directories, for the benchmarks of later steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.bench.harness.timing import PIPELINE
from tests.support.paths import REPOSITORY

WORK = REPOSITORY / "build" / "bench-text"


def get_data_dir() -> Path:
    """Return the folder of real data.

    Raises:
        SystemExit: BIOSHARDS_DATA is not set.
    """
    folder = os.environ.get("BIOSHARDS_DATA")
    if not folder:
        raise SystemExit("BIOSHARDS_DATA is not set: it has the text and the published vocabularies.")
    return Path(folder)


def build_document_dirs(folders_given: list[str]) -> list[str]:
    """Return the directories given, or all abstracts and articles of the data, made if not there yet."""
    if folders_given:
        return [str(Path(folder).resolve()) for folder in folders_given]
    folders = []
    for pipeline, name, options in (
        ("pubmed_to_shards", "pubmed", ()),
        ("pmc_to_shards", "jats", ("--licences", "all", "--languages", "")),
    ):
        folders.append(str(WORK / name))
        inputs = ("--input", str(get_data_dir() / name), "--max-rejected", "0.01")
        run_python(*PIPELINE, pipeline, *options, *inputs, "--output", folders[-1])
    return folders


def build_vocabulary(folders: list[str]) -> str:
    """Build the default vocabulary of directories, if not there yet."""
    output = str(WORK / "vocabulary")
    run_python("-m", "bioshards.vocab", "build", *folders, "--output", output)
    return output


def run_python(*arguments: str) -> None:
    """Run a Python process in silence.

    Raises:
        CalledProcessError: it failed.
    """
    argv = [sys.executable, *arguments]
    subprocess.run(argv, check=True, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
