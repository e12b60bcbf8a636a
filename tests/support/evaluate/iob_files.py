"""Files of benchmarks for the tests, written by us: no sentence here stands in a real set."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError

CRICHTON_SAMPLE = "Zorbin\tB-Chemical\nacid\tI-Chemical\ncured\tO\n.\tO\n\nNo\tO\nzorbin\tB-Chemical\n\n"


def write_benchmark_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """The folder with these files in it."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def assert_rejected(read: Callable[[], object], path: Path, line: int | None, reason: str) -> None:
    """Reading fails, and the error names the file, the line and the reason."""
    location = re.escape(f"{path}, line {line}: " if line else f"{path}: ")
    with pytest.raises(BenchmarkFileError, match=f"^{location}.*{reason}"):
        read()
