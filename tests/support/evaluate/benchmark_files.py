"""Benchmark files that tests write, the splits read from them, and the checks that reading is refused."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, Record

_RecordT = TypeVar("_RecordT")
CRICHTON_SAMPLE = "Zorbin\tB-Chemical\nacid\tI-Chemical\ncured\tO\n.\tO\n\nNo\tO\nzorbin\tB-Chemical\n\n"


def write_file(folder: Path, name: str, content: str | bytes) -> str:
    """Write a file below a folder; return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def write_benchmark_files(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files into a folder; return the folder."""
    for name, content in files.items():
        write_file(folder, name, content)
    return folder


def find_files(folder: Path, name: str) -> BenchmarkFiles:
    """Locate the files of a benchmark in a folder."""
    benchmark_files = locate_benchmark(str(folder), BENCHMARKS[name])
    assert benchmark_files is not None
    return benchmark_files


def load_splits(folder: Path, name: str) -> dict[str, list[Record]]:
    """Load the splits of a benchmark."""
    return {part: list(records) for part, records in load_records(find_files(folder, name)).items()}


def load_split(folder: Path, name: str, split: str, record_type: type[_RecordT]) -> list[_RecordT]:
    """Load a split whose records are all of one type."""
    records: Sequence[object] = load_splits(folder, name)[split]
    typed_records = [record for record in records if isinstance(record, record_type)]
    assert len(typed_records) == len(records)
    return typed_records


def assert_refused(folder: Path, name: str, *parts: str) -> None:
    """Assert that loading a benchmark fails with a message that holds these parts."""
    with pytest.raises(BenchmarkFileError) as error:
        load_splits(folder, name)
    for part in parts:
        assert part in str(error.value)


def assert_rejected(read: Callable[[], object], path: Path, line: int | None, reason: str) -> None:
    """Assert that reading fails with an error that names the file, the line and the reason."""
    location = re.escape(f"{path}, line {line}: " if line else f"{path}: ")
    with pytest.raises(BenchmarkFileError, match=f"^{location}.*{reason}"):
        read()


def make_zip(files: Mapping[str, str | bytes]) -> bytes:
    """Make a zip archive of files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive_file:
        for name, content in files.items():
            archive_file.writestr(name, content)
    return data.getvalue()
