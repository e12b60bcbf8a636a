"""Ids that were found once and are kept, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

_LONGEST: Final = 256
"""Characters and bytes of ids of the longest entry that is kept: longer chunks hardly ever come again."""
_SLOT: Final = 64
"""Bytes of an entry's place in a dictionary: 30 to 60 in CPython, more only while it grows."""


class Remembered(dict[str, bytes]):
    """Ids, as bytes, by what they encode.

    When ``memory`` bytes are full, everything is forgotten: what is frequent is soon there again.
    """

    def __init__(self, find: Callable[[list[str]], list[bytes]], memory: int) -> None:
        self._find = find
        self._memory = self._room = memory

    def of(self, keys: list[str]) -> list[bytes]:
        """The ids of each key; those that are not here are found, all at once, and are here from then on."""
        known = list(map(self.get, keys))
        new = [key for key, ids in zip(keys, known, strict=True) if ids is None]
        if not new:
            return known  # type: ignore[return-value]  # no None is in it
        found = self._find(new)
        self._keep(new, found)
        rest = iter(found)
        return [next(rest) if ids is None else ids for ids in known]

    def _keep(self, keys: list[str], found: list[bytes]) -> None:
        kept = {key: ids for key, ids in zip(keys, found, strict=True) if len(key) + len(ids) <= _LONGEST}
        size = sum(map(sys.getsizeof, kept)) + sum(map(sys.getsizeof, kept.values())) + _SLOT * len(kept)
        if size > self._room:
            self.clear()
            self._room = self._memory
        if size <= self._room:
            self._room -= size
            self.update(kept)
