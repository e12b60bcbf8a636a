"""Writes evaluate/sample, the bundled benchmarks: ``python -m
tests.support.evaluate.sample.benchmark_sample``.

The files are committed; a test compares them with the output of this module.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.evaluate.sample.sample_relations import relation_files
from tests.support.evaluate.sample.sample_tagging import FileContents, tagging_files
from tests.support.evaluate.sample.sample_texts import text_files
from tests.support.paths import BENCHMARK_SAMPLE


def sample_contents() -> FileContents:
    """Generate all files of the sample but its README."""
    return {**tagging_files(), **relation_files(), **text_files()}


def write_sample(folder: Path) -> None:
    """Write the files of the sample to a folder."""
    for name, text in sample_contents().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())


if __name__ == "__main__":
    for one in BENCHMARK_SAMPLE.glob("*/"):
        shutil.rmtree(one)
    write_sample(BENCHMARK_SAMPLE)
