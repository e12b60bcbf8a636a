"""Attention for flat batches: each token attends to the tokens of its own row only.

A Hugging Face model gets the whole batch as one sequence.  All its layers except attention work on single
tokens.  The model looks up attention by name and passes unknown keywords on, so unmodified models train on
packed and padded rows.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.varlen import varlen_attn
from transformers import AttentionInterface, PreTrainedModel

from bioshards.train.batch import Batch

ATTN_IMPLEMENTATION: Final = "bioshards"
"""Name under which this attention is registered; saved configurations do not contain it."""


class Segments(NamedTuple):
    """Rows of a flat batch and its padding: S segments of at most L tokens.

    Attributes:
        key_mask: bool[S, 1, 1, L]; True for positions of a segment that can be attended to.
        pad_index: int64[S * L], token at each padded position; arbitrary for padding.  None: the batch is
            already padded.
        unpad_index: int64[T], padded position of each token.
        cu_seqlens: int32[S + 1], start of each segment, and T.  None: all segments have L tokens.
        max_seqlen: L.
    """

    key_mask: Tensor
    pad_index: Tensor | None
    unpad_index: Tensor | None
    cu_seqlens: Tensor | None
    max_seqlen: int


def enable(model: PreTrainedModel) -> None:
    """Make a model use :func:`attend`, as :func:`encode` requires."""
    model.set_attn_implementation(ATTN_IMPLEMENTATION)


def encode(model: nn.Module, batch: Batch, embeds: Tensor | None = None) -> Tensor:
    """Return the last hidden state of every token of a batch.

    Args:
        model: encoder without a head, after :func:`enable`.
        embeds: [T, E], word embeddings to use instead of those of ``batch.ids``.

    Returns:
        [T, H]; undefined for padding.
    """
    output = model(
        input_ids=batch.ids[None] if embeds is None else None,
        inputs_embeds=None if embeds is None else embeds[None],
        token_type_ids=batch.token_type_ids[None],
        position_ids=batch.position_ids[None],
        segments=build_segments(batch),
    )
    hidden: Tensor = output.last_hidden_state[0]
    return hidden


def build_segments(batch: Batch) -> Segments:
    """Build the segments of a batch; their shapes depend only on the shapes of the batch."""
    tokens, cu_seqlens = len(batch.ids), batch.cu_seqlens
    if cu_seqlens is None:
        length = tokens // len(batch.row_starts)
        return Segments(batch.is_token.view(-1, 1, 1, length), None, None, None, length)
    position = torch.arange(batch.max_seqlen, device=cu_seqlens.device)
    starts, lengths = cu_seqlens[:-1, None], cu_seqlens.diff()[:, None]
    # An empty segment attends to its position 0, because a softmax over nothing is NaN.
    key_mask = (position < lengths) | (position == 0)
    pad_index = (starts + position).clamp(max=tokens - 1).flatten()
    token = torch.arange(tokens, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
    segment_index = torch.searchsorted(cu_seqlens[1:], token, right=True)
    unpad_index = segment_index * batch.max_seqlen + token - cu_seqlens[segment_index]
    return Segments(key_mask[:, None, None], pad_index, unpad_index, cu_seqlens, batch.max_seqlen)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    *,
    segments: Segments,
    **_: Any,
) -> tuple[Tensor, None]:
    """Compute attention within segments, with the signature of transformers' AttentionInterface.

    PyTorch's varlen kernel is used where it is available and dropout is 0.  Otherwise tokens are padded to
    [S, heads, L, size].

    Args:
        query, key, value: [1, heads, T, size].

    Returns:
        [1, T, heads, size], and None for the attention weights.
    """
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, heads, size]
    if segments.cu_seqlens is not None and not dropout and _has_varlen_kernel(query):
        cu_seqlens, max_seqlen = segments.cu_seqlens, segments.max_seqlen
        output = varlen_attn(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, scale=scaling)
        assert isinstance(output, Tensor)  # a tuple only with return_aux
        return output[None], None
    q, k, v = (_pad_segments(tensor, segments) for tensor in (q, k, v))
    output = F.scaled_dot_product_attention(
        q, k, v, attn_mask=segments.key_mask, dropout_p=dropout, scale=scaling
    )
    output = output.transpose(1, 2).flatten(0, 1)
    if segments.unpad_index is not None:
        output = output.index_select(0, segments.unpad_index)
    return output[None], None


def _pad_segments(tokens: Tensor, segments: Segments) -> Tensor:
    """Pad [T, heads, size] to [S, heads, L, size]."""
    if segments.pad_index is not None:
        tokens = tokens.index_select(0, segments.pad_index)
    _, heads, head_size = tokens.shape
    return tokens.view(-1, segments.max_seqlen, heads, head_size).transpose(1, 2)


def _has_varlen_kernel(query: Tensor) -> bool:
    """Return True if PyTorch's ``varlen_attn`` (FlashAttention) supports these heads on this device.

    It requires half precision, a head size that is a multiple of 8 up to 256, and an Ampere GPU or later
    (README of Dao-AILab/flash-attention).
    """
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.shape[-1] <= 256
        and query.shape[-1] % 8 == 0
        and torch.cuda.get_device_properties(query.device).major >= 8
    )


# Without an entry in AttentionMaskInterface, transformers builds no mask.
AttentionInterface.register(ATTN_IMPLEMENTATION, attend)
