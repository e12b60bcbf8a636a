"""Random-access, stateless sampler: maps a global position to (epoch, row).

Resuming is a seek to a position; no state is saved.  In each epoch the record batches are shuffled, and rows
are shuffled within windows of 64 record batches.  A window of 64 x 2,048 rows is 60 MB at a length of 256, so
disks are read in large parts and pages are used while they are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError

_BLOCK_STREAM: Final = 0
_ROW_STREAM: Final = 1
"""Streams of random numbers, for the order of record batches and of rows."""


class _Epoch(NamedTuple):
    """Shuffled record batches of an epoch, and the position in the epoch at which each window ends."""

    number: int
    block_order: NDArray[np.int64]
    window_ends: NDArray[np.int64]


class _Window(NamedTuple):
    """Shuffled rows of a window."""

    epoch: int
    number: int
    row_ids: NDArray[np.int64]


class RowSampler:
    """Shuffled order of the rows of all epochs.

    Memory: one window of rows (1 MB) and 24 bytes for each record batch.

    Args:
        block_sizes: rows of each record batch.
        seed: at least 0.
        window_blocks: record batches in a window.

    Raises:
        InvalidValueError: there are no rows.
    """

    def __init__(
        self, block_sizes: Sequence[int] | NDArray[np.int64], seed: int, window_blocks: int = 64
    ) -> None:
        self._block_sizes = np.asarray(block_sizes, np.int64)
        self._block_starts = np.cumsum(self._block_sizes) - self._block_sizes
        self._num_rows = int(self._block_sizes.sum())
        if not self._num_rows:
            raise InvalidValueError("there are no rows to sample")
        self._seed, self._window_blocks = seed, window_blocks
        self._current_epoch = self._shuffle_epoch(0)
        self._current_window = self._shuffle_window(self._current_epoch, 0)

    def get_rows(self, start: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return epochs and row numbers at the positions [start, start + count), int64[count] each."""
        epochs, row_ids = np.empty(count, np.int64), np.empty(count, np.int64)
        filled = 0
        while filled < count:
            epoch_number, position = divmod(start + filled, self._num_rows)
            epoch = (
                self._current_epoch
                if self._current_epoch.number == epoch_number
                else self._shuffle_epoch(epoch_number)
            )
            window_number = int(np.searchsorted(epoch.window_ends, position, side="right"))
            window = self._current_window
            if (window.epoch, window.number) != (epoch_number, window_number):
                window = self._shuffle_window(epoch, window_number)
            offset = position - int(epoch.window_ends[window_number]) + len(window.row_ids)
            chunk = window.row_ids[offset : offset + count - filled]
            epochs[filled : filled + len(chunk)] = epoch_number
            row_ids[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
            self._current_epoch, self._current_window = epoch, window
        return epochs, row_ids

    def _shuffle_epoch(self, number: int) -> _Epoch:
        block_order = self._permute(len(self._block_sizes), number, _BLOCK_STREAM, 0)
        block_ends = np.cumsum(self._block_sizes[block_order])
        return _Epoch(
            number,
            block_order,
            np.append(block_ends[self._window_blocks - 1 : -1 : self._window_blocks], block_ends[-1]),
        )

    def _shuffle_window(self, epoch: _Epoch, number: int) -> _Window:
        blocks = epoch.block_order[number * self._window_blocks : (number + 1) * self._window_blocks]
        row_ids = np.concatenate(
            [
                np.arange(first, first + size)
                for first, size in zip(self._block_starts[blocks], self._block_sizes[blocks], strict=True)
            ]
        )
        return _Window(
            epoch.number, number, row_ids[self._permute(len(row_ids), epoch.number, _ROW_STREAM, number)]
        )

    def _permute(self, size: int, epoch: int, stream: int, index: int) -> NDArray[np.int64]:
        """Return a random permutation of the numbers below ``size``.

        It sorts raw 64-bit numbers: these are the same in all versions of numpy, whereas the stream of
        ``Generator.permutation`` may change (NEP 19).
        """
        random_keys = np.random.PCG64(np.random.SeedSequence((self._seed, epoch, stream, index))).random_raw(
            size
        )
        return np.argsort(random_keys, kind="stable")
