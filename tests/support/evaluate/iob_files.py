"""Synthetic files of tagging benchmarks, and the check that reading is refused."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks.records import BenchmarkFileError

CRICHTON_SAMPLE = "Zorbin\tB-Chemical\nacid\tI-Chemical\ncured\tO\n.\tO\n\nNo\tO\nzorbin\tB-Chemical\n\n"


def write_benchmark_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder; return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def assert_rejected(read: Callable[[], object], path: Path, line: int | None, reason: str) -> None:
    """Assert that reading fails with an error that names the file, the line and the reason."""
    location = re.escape(f"{path}, line {line}: " if line else f"{path}: ")
    with pytest.raises(BenchmarkFileError, match=f"^{location}.*{reason}"):
        read()
