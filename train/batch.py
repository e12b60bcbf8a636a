"""Batch format: the contract between data, masking, objectives and the training loop.

A micro-batch of R rows is one flat sequence of T tokens: rows are packed end to end.  Masked positions and
row starts are indices into it; only attention.py looks at where a row ends.
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
        cu_seqlens: int32[S + 1], start of each segment, and T.  A segment is a row.  Padding at the end is in
            segments of its own, at most one row long, and may be followed by empty segments.
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
    cu_seqlens: Tensor
    max_seqlen: int

    def to(self, device: torch.device) -> Batch:
        """Return the batch on a device; pinned tensors are copied asynchronously."""
        fields = (
            field.to(device, non_blocking=True) if isinstance(field, Tensor) else field for field in self
        )
        return Batch._make(fields)


class BatchCounts(NamedTuple):
    """Counts of a micro-batch without padding: the denominators of loss sums."""

    rows: int = 0
    tokens: int = 0
    masked: int = 0
    labelled: int = 0
