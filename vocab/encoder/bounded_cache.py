"""Size-bounded cache from chunk to token ids."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

_MAX_ENTRY_SIZE: Final = 256
"""Maximum characters plus bytes of ids of an entry; longer chunks hardly ever recur."""
_SLOT_BYTES: Final = 64
"""Estimated bytes of a dictionary slot: 30 to 60 in CPython, more only while the dictionary grows."""


class BoundedCache(dict[str, bytes]):
    """Cache from text to ids as bytes.

    A full cache is cleared, not evicted: frequent chunks come back at once.
    """

    def __init__(self, compute: Callable[[list[str]], list[bytes]], max_bytes: int) -> None:
        self._compute = compute
        self._max_bytes = self._free_bytes = max_bytes

    def get_many(self, keys: list[str]) -> list[bytes]:
        """Return the ids of each key, computing all missing ones in one call."""
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
