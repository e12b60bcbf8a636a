"""Helpers of readers with one file per split: the reader of all splits, and unique ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from bioshards.evaluate.benchmarks.definition import SPLITS, BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.record_types import Record

_RecordT = TypeVar("_RecordT", bound=Record)


def read_each_split(read: Callable[[str], Sequence[Record]]) -> Callable[[PathsByName], RecordsBySplit]:
    """Return a reader that applies ``read`` to the file of each split."""
    return lambda files: {split: read(get_only_path(files, split)) for split in SPLITS if split in files}


def check_unique_ids(path: str, records: Iterable[_RecordT]) -> list[_RecordT]:
    """Return the records as a list.

    Raises:
        BenchmarkFileError: two records have the same id.
    """
    record_by_id: dict[str, _RecordT] = {}
    for record in records:
        if record.id in record_by_id:
            raise BenchmarkFileError(path, None, f"the id {record.id!r} is given twice")
        record_by_id[record.id] = record
    return [*record_by_id.values()]
