"""Parts of a part: a dev set for those that have none, and a sample for a first try, the same ones every
time.

Which records are chosen depends on a hash of their names only.  What belongs together (the candidates of
a question, its passages) stays together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final, TypeVar

from .records import Record

_R = TypeVar("_R", bound=Record)
CARVED: Final = 0.1
"""The share of the training records that becomes a dev set, where the authors give none."""


def carve(records: Sequence[_R]) -> tuple[list[_R], list[_R]]:
    """Training records as (train, dev)."""
    groups = _groups(records)
    chosen = set(_by_hash(groups)[: max(1, round(CARVED * len(groups)))])
    kept: tuple[list[_R], list[_R]] = ([], [])
    for name, members in groups.items():
        kept[name in chosen].extend(members)
    return kept


def sample(records: Sequence[_R], most: int) -> list[_R]:
    """So many records at most, whole groups of them and one at least, in their order."""
    groups = _groups(records)
    room = most
    chosen: set[str] = set()
    for name in _by_hash(groups):
        if len(groups[name]) <= room or not chosen:
            chosen.add(name)
            room -= len(groups[name])
    return [one for name, members in groups.items() if name in chosen for one in members]


def _groups(records: Sequence[_R]) -> dict[str, list[_R]]:
    found: dict[str, list[_R]] = {}
    for one in records:
        found.setdefault(_group(one), []).append(one)
    return found


def _group(record: Record) -> str:
    """What a record must not be parted from: its question's others; else it stands alone."""
    return getattr(record, "group", "") or record.id


def _by_hash(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
