"""The order of rows: an endless sequence of epochs, each with every row once; any part can be asked for.

A trainer that goes on after a stop asks for the places that come next; there is no iterator to wind forward,
and nothing to save.  In each epoch the record batches are in another order, and rows are shuffled within
windows of some of them: 64 of 2,048 rows are 60 MB at a length of 256, so that a disk is read in large parts
and what is read is used while it is in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError

_BLOCKS: Final = 0
_ROWS: Final = 1
"""What is shuffled, so that no two permutations are of the same numbers."""


class _Epoch(NamedTuple):
    """An epoch's record batches in order, and the place in the epoch at which each window ends."""

    number: int
    blocks: NDArray[np.int64]
    ends: NDArray[np.int64]


class _Window(NamedTuple):
    """A window's rows in order."""

    epoch: int
    number: int
    rows: NDArray[np.int64]


class Order:
    """Which row is at which place.

    It holds a window's rows at a time, one MB, and 24 bytes for each record batch.

    Args:
        blocks: the rows of each record batch.
        seed: 0 or more; another seed is another order.
        window: record batches that are shuffled together.

    Raises:
        ValueError: there are no rows.
    """

    def __init__(self, blocks: Sequence[int] | NDArray[np.int64], seed: int, window: int = 64) -> None:
        self._sizes = np.asarray(blocks, np.int64)
        self._firsts = np.cumsum(self._sizes) - self._sizes
        self._total = int(self._sizes.sum())
        if not self._total:
            raise InvalidValueError("there are no rows to put in order")
        self._seed, self._window = seed, window
        self._epoch = self._epoch_of(0)
        self._rows = self._window_of(self._epoch, 0)

    def rows(self, start: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The epochs and rows at the places from ``start`` to before ``start + count``, int64[count] each.

        They depend on nothing else that was asked before.
        """
        epochs, rows = np.empty(count, np.int64), np.empty(count, np.int64)
        done = 0
        while done < count:
            number, place = divmod(start + done, self._total)
            epoch = self._epoch if self._epoch.number == number else self._epoch_of(number)
            which = int(np.searchsorted(epoch.ends, place, side="right"))
            window = self._rows
            if (window.epoch, window.number) != (number, which):
                window = self._window_of(epoch, which)
            begin = place - int(epoch.ends[which]) + len(window.rows)
            part = window.rows[begin : begin + count - done]
            epochs[done : done + len(part)] = number
            rows[done : done + len(part)] = part
            done += len(part)
            self._epoch, self._rows = epoch, window
        return epochs, rows

    def _epoch_of(self, number: int) -> _Epoch:
        blocks = self._permutation(len(self._sizes), number, _BLOCKS, 0)
        ends = np.cumsum(self._sizes[blocks])
        return _Epoch(number, blocks, np.append(ends[self._window - 1 : -1 : self._window], ends[-1]))

    def _window_of(self, epoch: _Epoch, number: int) -> _Window:
        blocks = epoch.blocks[number * self._window : (number + 1) * self._window]
        rows = np.concatenate(
            [
                np.arange(first, first + size)
                for first, size in zip(self._firsts[blocks], self._sizes[blocks], strict=True)
            ]
        )
        return _Window(epoch.number, number, rows[self._permutation(len(rows), epoch.number, _ROWS, number)])

    def _permutation(self, size: int, epoch: int, what: int, which: int) -> NDArray[np.int64]:
        """The numbers below ``size`` in an order of their own.

        Plain 64-bit numbers are drawn and sorted, for of numpy's generators these are the same in all its
        versions, and those of ``Generator.permutation`` need not be (NEP 19).
        """
        drawn = np.random.PCG64(np.random.SeedSequence((self._seed, epoch, what, which))).random_raw(size)
        return np.argsort(drawn, kind="stable")
