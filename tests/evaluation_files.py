"""Benchmark files that tests write, and the parts that a set is read into from them."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

from bioshards.evaluate.datasets import Benchmark, BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.records import Record
from bioshards.evaluate.sets.texts import TEXT_BENCHMARKS

BY_NAME: Mapping[str, Benchmark] = {one.name: one for one in TEXT_BENCHMARKS}


def put(folder: Path, name: str, content: str | bytes) -> str:
    """Write a file below a folder; its path."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def located(folder: Path, name: str) -> BenchmarkFiles:
    """Where a set of texts lies in a folder that has some of it."""
    found = locate_benchmark(str(folder), BY_NAME[name])
    assert found is not None
    return found


def parts(folder: Path, name: str) -> dict[str, list[Record]]:
    """The parts of a set of texts."""
    return {part: list(records) for part, records in load_records(located(folder, name)).items()}


def archive(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return data.getvalue()
