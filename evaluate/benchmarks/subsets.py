"""Reproducible subsets of records: a dev split from train, and samples for quick tries.

The choice depends only on SHA-256 of the group names. Records of a group (the passages or the candidates of a
question) stay together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from bioshards.evaluate.benchmarks.record_types import Record

_RecordT = TypeVar("_RecordT", bound=Record)
DEV_FRACTION: Final = 0.1
"""Fraction of the training groups that becomes dev if a benchmark has no official dev split."""


def split_off_dev(records: Sequence[_RecordT]) -> tuple[list[_RecordT], list[_RecordT]]:
    """Split training records into (train, dev) by a hash of their groups."""
    groups = _group_records(records)
    dev_groups = set(_sort_by_hash(groups)[: max(1, round(DEV_FRACTION * len(groups)))])
    train_and_dev: tuple[list[_RecordT], list[_RecordT]] = ([], [])
    for name, members in groups.items():
        train_and_dev[name in dev_groups].extend(members)
    return train_and_dev


def sample_records(records: Sequence[_RecordT], max_records: int) -> list[_RecordT]:
    """Return at most ``max_records`` records, as whole groups in their order; at least one group."""
    groups = _group_records(records)
    remaining = max_records
    chosen_groups: set[str] = set()
    for name in _sort_by_hash(groups):
        if len(groups[name]) <= remaining or not chosen_groups:
            chosen_groups.add(name)
            remaining -= len(groups[name])
    return [record for name, members in groups.items() if name in chosen_groups for record in members]


def _group_records(records: Sequence[_RecordT]) -> dict[str, list[_RecordT]]:
    records_by_group: dict[str, list[_RecordT]] = {}
    for record in records:
        records_by_group.setdefault(_get_group_id(record), []).append(record)
    return records_by_group


def _get_group_id(record: Record) -> str:
    """Return the question of a record; records without one are groups of their own."""
    return getattr(record, "group_id", "") or record.id


def _sort_by_hash(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
