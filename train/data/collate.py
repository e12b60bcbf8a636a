"""Collate masked rows into a batch (batch.py): packed end to end, or padded to the maximum row length.

Sizes are rounded up to few shapes, because libraries cache by shape: with exact sizes oneDNN's cache grew by
1 MB a step to 3 GB.  A compiled model needs constant shapes.  Packed rows are then filled up to a number of
tokens that suffices for all but a few batches in 100,000; those few get the size of padded rows, so two
shapes occur.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.train.batch import TOKEN_MULTIPLE, Batch, BatchCounts
from bioshards.train.data.gather import FlatRows
from bioshards.train.data.pretraining_dataset import PretrainingDataset

if TYPE_CHECKING:
    from bioshards.train.data.masking import MaskedRows

_STANDARD_DEVIATIONS: Final = 4
_MASKED_MULTIPLE: Final = 64
"""Masked positions of a batch are a multiple of this."""


@dataclass(frozen=True)
class BatchShape:
    """Layout of a batch.

    Attributes:
        max_seq_length: maximum row length in tokens.
        pad_rows: pad every row to ``max_seq_length``; else rows are packed.
        num_tokens: constant number of tokens of packed batches; 0: the actual number, rounded up.
        num_masked: constant number of masked positions, the maximum; 0: the actual number, rounded up.
    """

    max_seq_length: int
    pad_rows: bool = False
    num_tokens: int = 0
    num_masked: int = 0


def compute_token_capacity(dataset: PretrainingDataset, num_rows: int) -> int:
    """Return a token capacity that almost all batches fit into, for :attr:`BatchShape.num_tokens`.

    It is the mean plus four standard deviations of a random batch (exceeded by one in 30,000), rounded up to
    a multiple of 128, and at most that of padded rows.  The deviation is estimated from record batches spread
    evenly over the set.
    """
    lengths = np.concatenate([dataset.get_row_lengths(block) for block in dataset.sample_blocks()])
    mean_tokens = num_rows * dataset.tokens / dataset.rows
    capacity = mean_tokens + _STANDARD_DEVIATIONS * math.sqrt(num_rows) * float(lengths.std())
    return min(num_rows * dataset.max_seq_length, _round_up(math.ceil(capacity), TOKEN_MULTIPLE))


def collate_rows(rows: FlatRows, masked: MaskedRows, pad_id: int, shape: BatchShape) -> Batch:
    """Build a batch from rows and their masks.

    Args:
        pad_id: id of [PAD].

    Raises:
        InvalidValueError: a row, or the number of masked positions, exceeds the layout.
    """
    lengths = np.diff(rows.offsets)
    if lengths.max(initial=0) > shape.max_seq_length:
        raise InvalidValueError(
            f"a row has {lengths.max()} tokens, more than max_seq_length {shape.max_seq_length}"
        )
    ids = np.asarray(masked.ids, np.int64)
    if shape.pad_rows:
        return _collate_padded(rows, lengths, ids, masked, pad_id, shape)
    return _collate_unpadded(rows, lengths, ids, masked, pad_id, shape)


def compute_counts(rows: FlatRows, masked: MaskedRows) -> BatchCounts:
    """Count rows, tokens and masked positions, without padding."""
    lengths = np.diff(rows.offsets)
    return BatchCounts(
        rows=len(lengths),
        tokens=len(rows.ids),
        masked=len(masked.positions),
        labelled=int((rows.labels != NO_LABEL).sum()),
        squares=int((lengths * lengths).sum()),
    )


def _collate_unpadded(
    rows: FlatRows,
    lengths: NDArray[np.int64],
    ids: NDArray[np.int64],
    masked: MaskedRows,
    pad_id: int,
    shape: BatchShape,
) -> Batch:
    num_tokens, num_rows = len(ids), len(lengths)
    padded_tokens, max_tokens = _round_up(num_tokens, TOKEN_MULTIPLE), TOKEN_MULTIPLE
    if shape.num_tokens:
        padded_tokens = max_tokens = (
            shape.num_tokens if num_tokens <= shape.num_tokens else num_rows * shape.max_seq_length
        )
    # Padding is in segments of its own; the length of cu_seqlens depends only on the number of tokens.
    cu_seqlens = np.full(num_rows + math.ceil(max_tokens / shape.max_seq_length) + 1, padded_tokens, np.int64)
    cu_seqlens[: num_rows + 1] = rows.offsets
    padding_starts = np.arange(num_tokens, padded_tokens, shape.max_seq_length)
    cu_seqlens[num_rows : num_rows + len(padding_starts)] = padding_starts
    position_ids = np.arange(padded_tokens)
    position_ids -= np.repeat(cu_seqlens[:-1], np.diff(cu_seqlens))
    is_token = np.zeros(padded_tokens, np.bool_)
    is_token[:num_tokens] = True
    return Batch(
        ids=_pad_to_size(ids, padded_tokens, pad_id),
        token_type_ids=torch.from_numpy(_build_token_type_ids(rows.segment_b_starts, lengths, padded_tokens)),
        position_ids=torch.from_numpy(position_ids),
        is_token=torch.from_numpy(is_token),
        masked_positions=_pad_to_size(masked.positions, shape.num_masked, 0),
        targets=_pad_to_size(masked.targets, shape.num_masked, NO_LABEL),
        noise=_pad_to_size(masked.noise, shape.num_masked, 0),
        row_starts=torch.from_numpy(rows.offsets[:-1].copy()),
        labels=torch.from_numpy(rows.labels),
        cu_seqlens=torch.from_numpy(cu_seqlens.astype(np.int32)),
        max_seqlen=shape.max_seq_length,
    )


def _build_token_type_ids(
    segment_b_starts: NDArray[np.int64], sizes: NDArray[np.int64], num_tokens: int
) -> NDArray[np.int64]:
    """Return 0 in segment A and in padding, 1 in segment B; a row without segment B is all segment A."""
    segment_a_lengths = np.where(segment_b_starts > 0, segment_b_starts, sizes)
    segment_lengths = np.zeros(2 * len(sizes) + 1, np.int64)
    segment_lengths[:-1:2], segment_lengths[1::2] = segment_a_lengths, sizes - segment_a_lengths
    segment_lengths[-1] = num_tokens - segment_lengths.sum()
    return np.repeat(np.arange(len(segment_lengths)) % 2, segment_lengths)


def _collate_padded(
    rows: FlatRows,
    lengths: NDArray[np.int64],
    ids: NDArray[np.int64],
    masked: MaskedRows,
    pad_id: int,
    shape: BatchShape,
) -> Batch:
    num_rows, length = len(lengths), shape.max_seq_length
    columns = np.arange(length)
    is_token = columns < lengths[:, None]
    grid = np.full((num_rows, length), pad_id, np.int64)
    grid[is_token] = ids
    segment_b_starts = np.where(rows.segment_b_starts > 0, rows.segment_b_starts, length)
    token_type_ids = is_token & (columns >= segment_b_starts[:, None])
    row_starts = np.arange(num_rows) * length
    row = np.searchsorted(rows.offsets, masked.positions, side="right") - 1
    masked_positions = masked.positions + (row_starts - rows.offsets[:-1])[row]
    return Batch(
        ids=torch.from_numpy(grid.reshape(-1)),
        token_type_ids=torch.from_numpy(token_type_ids.reshape(-1).astype(np.int64)),
        position_ids=torch.from_numpy(np.tile(columns, num_rows)),
        is_token=torch.from_numpy(is_token.reshape(-1)),
        masked_positions=_pad_to_size(masked_positions, shape.num_masked, 0),
        targets=_pad_to_size(masked.targets, shape.num_masked, NO_LABEL),
        noise=_pad_to_size(masked.noise, shape.num_masked, 0),
        row_starts=torch.from_numpy(row_starts),
        labels=torch.from_numpy(rows.labels),
        cu_seqlens=None,
        max_seqlen=length,
    )


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _pad_to_size(values: NDArray[np.generic], size: int, fill_value: int) -> torch.Tensor:
    """Pad values to a size; size 0: to the next multiple of ``_MASKED_MULTIPLE``."""
    size = size or _round_up(len(values), _MASKED_MULTIPLE)
    if size == len(values):
        return torch.from_numpy(values)
    if len(values) > size:
        raise InvalidValueError(f"{len(values)} masked positions exceed the {size} of the batch layout")
    padded = np.full(size, fill_value, values.dtype)
    padded[: len(values)] = values
    return torch.from_numpy(padded)
