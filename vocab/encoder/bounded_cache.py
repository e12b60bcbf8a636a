"""Ids that were found once and are kept, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

_MAX_ENTRY_SIZE: Final = 256
"""Characters and bytes of ids of the longest entry that is kept: longer chunks hardly ever come again."""
_SLOT_BYTES: Final = 64
"""Bytes of an entry's place in a dictionary: 30 to 60 in CPython, more only while it grows."""


class BoundedCache(dict[str, bytes]):
    """Ids, as bytes, by what they encode.

    When ``memory`` bytes are full, everything is forgotten: what is frequent is soon there again.
    """

    def __init__(self, compute: Callable[[list[str]], list[bytes]], max_bytes: int) -> None:
        self._compute = compute
        self._max_bytes = self._free_bytes = max_bytes

    def get_many(self, keys: list[str]) -> list[bytes]:
        """The ids of each key; those that are not here are found, all at once, and are here from then on."""
        cached = list(map(self.get, keys))
        missing_keys = [key for key, ids in zip(keys, cached, strict=True) if ids is None]
        if not missing_keys:
            return cached  # type: ignore[return-value]  # no None is in it
        computed = self._compute(missing_keys)
        self._store(missing_keys, computed)
        remaining = iter(computed)
        return [next(remaining) if ids is None else ids for ids in cached]

    def _store(self, keys: list[str], values: list[bytes]) -> None:
        entries = {
            key: ids for key, ids in zip(keys, values, strict=True) if len(key) + len(ids) <= _MAX_ENTRY_SIZE
        }
        size = (
            sum(map(sys.getsizeof, entries))
            + sum(map(sys.getsizeof, entries.values()))
            + _SLOT_BYTES * len(entries)
        )
        if size > self._free_bytes:
            self.clear()
            self._free_bytes = self._max_bytes
        if size <= self._free_bytes:
            self._free_bytes -= size
            self.update(entries)
