"""Random-access, stateless sampler: maps a global position to (epoch, row).

Resuming is a seek to a position; no state is saved.  In each epoch the record batches are shuffled, and rows
are shuffled within windows of 64 record batches.  A window of 64 x 2,048 rows is 60 MB at a length of 256, so
disks are read in large parts and pages are used while they are cached.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

_BLOCK_STREAM: Final = 0
_ROW_STREAM: Final = 1
"""Streams of random numbers, for the order of record batches and of rows."""


class RowSampler:
    """Shuffled order of the rows of all epochs.

    Memory: one window of rows (1 MB) and 24 bytes for each record batch.

    Args:
        block_sizes: rows of each record batch; there is a row.
        seed: at least 0.
        window_blocks: record batches in a window.
    """

    def __init__(
        self, block_sizes: Sequence[int] | NDArray[np.int64], seed: int, window_blocks: int = 64
    ) -> None:
        self._block_sizes = np.asarray(block_sizes, np.int64)
        self._block_starts = np.cumsum(self._block_sizes) - self._block_sizes
        self._num_rows = int(self._block_sizes.sum())
        self._seed, self._window_blocks = seed, window_blocks
        self._get_epoch = lru_cache(1)(self._shuffle_epoch)  # the current one
        self._get_window = lru_cache(1)(self._shuffle_window)

    def get_rows(self, start: int, count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return epochs and row numbers at the positions [start, start + count), int64[count] each."""
        epochs, row_ids = np.empty(count, np.int64), np.empty(count, np.int64)
        filled = 0
        while filled < count:
            epoch, position = divmod(start + filled, self._num_rows)
            _, window_ends = self._get_epoch(epoch)
            number = int(np.searchsorted(window_ends, position, side="right"))
            window = self._get_window(epoch, number)
            offset = position - int(window_ends[number]) + len(window)
            chunk = window[offset : offset + count - filled]
            epochs[filled : filled + len(chunk)] = epoch
            row_ids[filled : filled + len(chunk)] = chunk
            filled += len(chunk)
        return epochs, row_ids

    def _shuffle_epoch(self, epoch: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the shuffled record batches, and the position in the epoch at which each window ends."""
        block_order = self._permute(len(self._block_sizes), epoch, _BLOCK_STREAM, 0)
        block_ends = np.cumsum(self._block_sizes[block_order])
        inner_ends = block_ends[self._window_blocks - 1 : -1 : self._window_blocks]
        return block_order, np.append(inner_ends, block_ends[-1])

    def _shuffle_window(self, epoch: int, number: int) -> NDArray[np.int64]:
        """Return the shuffled rows of a window."""
        block_order, _ = self._get_epoch(epoch)
        blocks = block_order[number * self._window_blocks : (number + 1) * self._window_blocks]
        starts_and_sizes = zip(self._block_starts[blocks], self._block_sizes[blocks], strict=True)
        row_ids = np.concatenate([np.arange(start, start + size) for start, size in starts_and_sizes])
        return row_ids[self._permute(len(row_ids), epoch, _ROW_STREAM, number)]

    def _permute(self, size: int, epoch: int, stream: int, index: int) -> NDArray[np.int64]:
        """Return a random permutation of the numbers below ``size``.

        It sorts raw 64-bit numbers: these are the same in all versions of numpy, whereas the stream of
        ``Generator.permutation`` may change (NEP 19).
        """
        generator = np.random.PCG64(np.random.SeedSequence((self._seed, epoch, stream, index)))
        return np.argsort(generator.random_raw(size), kind="stable")
