"""What a model is given at a time: the contract between data, masking, objectives and the loop.

Everything is flat.  A micro-batch of R rows is T tokens one after another, and whatever is said of single
tokens (masked positions, starts of rows) names places in that flat sequence; so the objectives do not know
whether rows were padded to one length or laid end to end (attention.py does).
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Batch(NamedTuple):
    """R rows, T tokens with the padding, M masked places with theirs.

    Attributes:
        ids: int64[T], with the masked places already replaced by what the model is to see there.
        types: int64[T]: 0 in segment A, 1 in segment B.
        places: int64[T]: each token's position in its row.
        real: bool[T]: false for padding.
        at: int64[M]: the masked places.  Padding of them is 0, a row's [CLS], which is never masked.
        targets: int64[M]: the tokens that stood there; -100 for padding, which losses leave out.
        noise: float32[M], from 0 to below 1: from which a generator's tokens are drawn.
        starts: int64[R]: each row's [CLS].
        labels: int64[R]: of next-sentence prediction or sentence order; -100 for none.
        bounds: int32[S + 1]: rows laid end to end: where each begins, and T; of padding at the end further
            segments, none longer than a row may be, and empty ones.  None: rows are padded to T / R tokens.
        longest: the most tokens that a segment may have.
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
        """The batch on a device; pinned tensors are copied while the device works on."""
        fields = (
            field.to(device, non_blocking=True) if isinstance(field, Tensor) else field for field in self
        )
        return Batch._make(fields)


class BatchCounts(NamedTuple):
    """How much there is in a micro-batch, padding left out: what sums of losses are divided by."""

    rows: int
    tokens: int
    masked: int
    labelled: int
    squares: int
    """The sum over rows of the square of their tokens: what attention costs."""
