"""What readers share whose sets have a file for each part: which is which, and ids that differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bioshards.evaluate.benchmarks.definition import SPLITS, BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.record_types import Record

_RecordT = TypeVar("_RecordT", bound=Record)


def read_each_split(read: Callable[[str], Sequence[Record]]) -> Callable[[PathsByName], RecordsBySplit]:
    """Reads a layout of a file for each part, called after it."""
    return lambda files: {split: read(get_only_path(files, split)) for split in SPLITS if split in files}


def check_unique_ids(path: str, records: Iterable[_RecordT]) -> list[_RecordT]:
    """The records, all with ids of their own.

    Raises:
        BenchmarkFileError: two have the same.
    """
    record_by_id: dict[str, _RecordT] = {}
    for record in records:
        if record.id in record_by_id:
            raise BenchmarkFileError(path, None, f"the id {record.id!r} is given twice")
        record_by_id[record.id] = record
    return [*record_by_id.values()]
