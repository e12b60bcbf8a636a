"""Rows and their masks as the flat tensors that a model is given (batch.py).

Rows are laid end to end, or padded to the set's length.  Libraries keep something of every shape that they
meet: oneDNN's cache grew by 1 MB a step, to 3 GB, where each batch had as many tokens as its rows happened to
have.  So sizes are rounded up, to a few shapes.  A compiled model wants the same at every step: then rows
laid end to end are filled up to a number of tokens that all but a few batches in 100,000 have room in, and
those few are made as large as if padded; so there are two shapes in all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.pretraining import NO_LABEL

from .batch import Batch, Counts
from .gather import Rows
from .shards import Shards

if TYPE_CHECKING:
    from .masking import Masked

_SAMPLED: Final = 64
"""Record batches whose rows are measured for :func:`capacity`."""
_DEVIATIONS: Final = 4
_MULTIPLE: Final = 128
"""Tokens of a batch are a multiple of this, as tiles of matrix products are on GPUs ..."""
_MASKED_MULTIPLE: Final = 64
"""... and its masked places of this."""


@dataclass(frozen=True)
class Layout:
    """How rows are laid.

    Attributes:
        length: the most tokens that a row has.
        padded: every row is padded to the length.
        tokens: of every batch, where rows are laid end to end; 0: as many as there are, rounded up.
        masked: masked places of every batch, which it must not have more of; 0: the same.
    """

    length: int
    padded: bool = False
    tokens: int = 0
    masked: int = 0


def capacity(shards: Shards, rows: int) -> int:
    """How many tokens a batch of so many rows should have room for: a :attr:`Layout.tokens`.

    The mean and four standard deviations of so many rows drawn at random, which one in 30,000 is above, up to
    a multiple of 128; at most as if all were padded.  The deviation is that of a sample, from record batches
    evenly spread over the set.
    """
    step = max(1, len(shards.blocks) // _SAMPLED)
    sizes = np.concatenate([shards.sizes(block) for block in range(0, len(shards.blocks), step)])
    mean = rows * shards.tokens / shards.rows
    wanted = mean + _DEVIATIONS * math.sqrt(rows) * float(sizes.std())
    return min(rows * shards.length, _rounded_up(math.ceil(wanted), _MULTIPLE))


def batch(rows: Rows, masked: Masked, pad: int, layout: Layout) -> Batch:
    """The rows with their masks, as a model is given them.

    Args:
        pad: the id of [PAD].

    Raises:
        ValueError: a row is longer than the layout's length, or more is masked than it has room for.
    """
    sizes = np.diff(rows.offsets)
    if sizes.max(initial=0) > layout.length:
        raise InvalidValueError(f"a row has {sizes.max()} tokens, and rows are laid out for {layout.length}")
    ids = np.asarray(masked.ids, np.int64)
    if layout.padded:
        return _padded(rows, sizes, ids, masked, pad, layout)
    return _end_to_end(rows, sizes, ids, masked, pad, layout)


def counts(rows: Rows, masked: Masked) -> Counts:
    """How much there is in these rows, padding left out."""
    sizes = np.diff(rows.offsets)
    return Counts(
        rows=len(sizes),
        tokens=len(rows.ids),
        masked=len(masked.at),
        labelled=int((rows.labels != NO_LABEL).sum()),
        squares=int((sizes * sizes).sum()),
    )


def _end_to_end(
    rows: Rows, sizes: NDArray[np.int64], ids: NDArray[np.int64], masked: Masked, pad: int, layout: Layout
) -> Batch:
    used, number = len(ids), len(sizes)
    tokens, most = _rounded_up(used, _MULTIPLE), _MULTIPLE
    if layout.tokens:
        tokens = most = layout.tokens if used <= layout.tokens else number * layout.length
    # Padding is in segments of its own, and there are as many bounds in all batches of so many tokens.
    bounds = np.full(number + math.ceil(most / layout.length) + 1, tokens, np.int64)
    bounds[: number + 1] = rows.offsets
    further = np.arange(used, tokens, layout.length)
    bounds[number : number + len(further)] = further
    places = np.arange(tokens)
    places -= np.repeat(bounds[:-1], np.diff(bounds))
    real = np.zeros(tokens, np.bool_)
    real[:used] = True
    return Batch(
        ids=_filled(ids, tokens, pad),
        types=torch.from_numpy(_types(rows.splits, sizes, tokens)),
        places=torch.from_numpy(places),
        real=torch.from_numpy(real),
        at=_filled(masked.at, layout.masked, 0),
        targets=_filled(masked.targets, layout.masked, NO_LABEL),
        noise=_filled(masked.noise, layout.masked, 0),
        starts=torch.from_numpy(rows.offsets[:-1].copy()),
        labels=torch.from_numpy(rows.labels),
        bounds=torch.from_numpy(bounds.astype(np.int32)),
        longest=layout.length,
    )


def _types(splits: NDArray[np.int64], sizes: NDArray[np.int64], tokens: int) -> NDArray[np.int64]:
    """Zeros and ones in turns: segment A, which is all of a row without a split, and segment B."""
    first = np.where(splits > 0, splits, sizes)
    lengths = np.zeros(2 * len(sizes) + 1, np.int64)
    lengths[:-1:2], lengths[1::2] = first, sizes - first
    lengths[-1] = tokens - lengths.sum()
    return np.repeat(np.arange(len(lengths)) % 2, lengths)


def _padded(
    rows: Rows, sizes: NDArray[np.int64], ids: NDArray[np.int64], masked: Masked, pad: int, layout: Layout
) -> Batch:
    number, length = len(sizes), layout.length
    every = np.arange(length)
    real = every < sizes[:, None]
    grid = np.full((number, length), pad, np.int64)
    grid[real] = ids
    first = np.where(rows.splits > 0, rows.splits, length)
    types = real & (every >= first[:, None])
    starts = np.arange(number) * length
    row = np.searchsorted(rows.offsets, masked.at, side="right") - 1
    at = masked.at + (starts - rows.offsets[:-1])[row]
    return Batch(
        ids=torch.from_numpy(grid.reshape(-1)),
        types=torch.from_numpy(types.reshape(-1).astype(np.int64)),
        places=torch.from_numpy(np.tile(every, number)),
        real=torch.from_numpy(real.reshape(-1)),
        at=_filled(at, layout.masked, 0),
        targets=_filled(masked.targets, layout.masked, NO_LABEL),
        noise=_filled(masked.noise, layout.masked, 0),
        starts=torch.from_numpy(starts),
        labels=torch.from_numpy(rows.labels),
        bounds=None,
        longest=length,
    )


def _rounded_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _filled(values: NDArray[np.generic], size: int, filling: int) -> torch.Tensor:
    """The values, filled up to a size; to a multiple of masked places where the size is 0."""
    size = size or _rounded_up(len(values), _MASKED_MULTIPLE)
    if size == len(values):
        return torch.from_numpy(values)
    if len(values) > size:
        raise InvalidValueError(f"there are {len(values)} masked places, and batches are laid out for {size}")
    whole = np.full(size, filling, values.dtype)
    whole[: len(values)] = values
    return torch.from_numpy(whole)
