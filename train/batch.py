"""Batch format: the contract between data, masking, objectives and the training loop.

A micro-batch of R rows is one flat sequence of T tokens.  Masked positions and row starts are indices into
it. Objectives therefore work on padded and on packed rows alike; only attention.py tells them apart.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import torch
from torch import Tensor

TOKEN_MULTIPLE: Final = 128
"""Tokens of a packed batch are a multiple of this, for the tiles of matrix products on GPUs."""


class Batch(NamedTuple):
    """Micro-batch of R rows, T tokens and M masked positions; T and M include padding.

    Attributes:
        ids: int64[T], token ids after masking.
        token_type_ids: int64[T]; 0 in segment A, 1 in segment B.
        position_ids: int64[T], position of each token in its row.
        is_token: bool[T]; False for padding.
        masked_positions: int64[M].  Padding is 0, the [CLS] of the first row, which is never masked.
        targets: int64[M], original tokens at the masked positions; -100 for padding, which losses ignore.
        noise: float32[M], uniform in [0, 1), for sampling a generator's tokens.
        row_starts: int64[R], position of each row's [CLS].
        labels: int64[R], label of next-sentence prediction or sentence order; -100 for none.
        cu_seqlens: int32[S + 1], packed rows: start of each segment, and T.  Padding at the end is in
            segments of its own, at most one row long, and may be followed by empty segments.  None: rows are
            padded to T / R tokens.
        max_seqlen: maximum segment length in tokens.
    """

    ids: Tensor
    token_type_ids: Tensor
    position_ids: Tensor
    is_token: Tensor
    masked_positions: Tensor
    targets: Tensor
    noise: Tensor
    row_starts: Tensor
    labels: Tensor
    cu_seqlens: Tensor | None
    max_seqlen: int

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; pinned tensors are copied asynchronously."""
        fields = (
            field.to(device, non_blocking=True) if isinstance(field, Tensor) else field for field in self
        )
        return Batch._make(fields)


class BatchCounts(NamedTuple):
    """Counts of a micro-batch without padding: the denominators of loss sums."""

    rows: int
    tokens: int
    masked: int
    labelled: int
    squares: int
    """Sum of the squared row lengths: the cost of attention."""
