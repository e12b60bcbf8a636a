"""What readers share whose sets have a file for each part: which is which, and ids that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bioshards.evaluate.datasets import PARTS, BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Record

from .lines import only

_Record = TypeVar("_Record", bound=Record)


def by_part(read: Callable[[str], Sequence[Record]]) -> Callable[[Files], Parts]:
    """Reads a layout of a file for each part, called after it."""
    return lambda files: {part: read(only(files, part)) for part in PARTS if part in files}


def unique(path: str, records: Iterable[_Record]) -> list[_Record]:
    """The records, all with ids of their own.

    Raises:
        BenchmarkFileError: two have the same.
    """
    found: dict[str, _Record] = {}
    for record in records:
        if record.id in found:
            raise BenchmarkFileError(path, None, f"the id {record.id!r} is given twice")
        found[record.id] = record
    return [*found.values()]
