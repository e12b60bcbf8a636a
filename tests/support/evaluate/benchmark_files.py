"""Benchmark files that tests write, and the splits read from them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bioshards.evaluate.benchmarks.catalogue.texts import TEXT_BENCHMARKS
from bioshards.evaluate.benchmarks.definition import Benchmark, BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.record_types import Record

TEXT_BENCHMARKS_BY_NAME: Mapping[str, Benchmark] = {one.name: one for one in TEXT_BENCHMARKS}


def write_file(folder: Path, name: str, content: str | bytes) -> str:
    """Write a file below a folder; return its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def find_benchmark_files(folder: Path, name: str) -> BenchmarkFiles:
    """Locate the files of a text benchmark in a folder."""
    benchmark_files = locate_benchmark(str(folder), TEXT_BENCHMARKS_BY_NAME[name])
    assert benchmark_files is not None
    return benchmark_files


def load_splits(folder: Path, name: str) -> dict[str, list[Record]]:
    """Load the splits of a text benchmark."""
    return {part: list(records) for part, records in load_records(find_benchmark_files(folder, name)).items()}


def make_zip(files: Mapping[str, str | bytes]) -> bytes:
    """Make a zip archive of files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive_file:
        for name, content in files.items():
            archive_file.writestr(name, content)
    return data.getvalue()
