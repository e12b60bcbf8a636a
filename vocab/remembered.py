"""Ids that were found once and are kept, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final

_LARGEST: Final = 512
"""Bytes of the largest entry that is kept: longer chunks hardly ever come again."""
_SLOT: Final = 64
"""Bytes of an entry's place in a dictionary: 30 to 60 in CPython, more only while it grows."""


class Remembered(dict[str, bytes]):
    """Ids, as bytes, by what they encode; what is not there is found, and there from then on.

    When ``memory`` bytes are full, everything is forgotten: what is frequent is soon there again.
    """

    def __init__(self, find: Callable[[str], bytes], memory: int) -> None:
        self._find = find
        self._memory = self._room = memory

    def __missing__(self, key: str) -> bytes:
        ids = self._find(key)
        size = sys.getsizeof(key) + sys.getsizeof(ids) + _SLOT
        if size <= _LARGEST:
            self._room -= size
            if self._room < 0:
                self.clear()
                self._room = self._memory - size
            self[key] = ids
        return ids
