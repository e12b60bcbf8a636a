"""Attention for flat batches: what keeps one row's tokens from seeing another's.

A Hugging Face model is given the whole batch as one sequence, whether its rows are padded or laid end to
end: everything in it but attention works on single tokens.  Attention it looks up by name, and passes on
keywords that it does not know itself; so rows of any layout train models that nobody had to change.
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
"""The name of this attention in a model at work; a saved configuration does not have it."""


class Segments(NamedTuple):
    """The rows of a flat batch, with its padding: S segments of at most L tokens.

    Attributes:
        keys: bool[S, 1, 1, L]: which places of a segment can be attended to.
        into: int64[S * L]: the token at each place of each segment; any where there is none.  None: token
            and place have the same number.
        back: int64[T]: each token's place in that.
        bounds: int32[S + 1]: where each segment begins, and T.  None: all are of L tokens.
        longest: L.
    """

    key_mask: Tensor
    pad_index: Tensor | None
    unpad_index: Tensor | None
    cu_seqlens: Tensor | None
    max_seqlen: int


def enable(model: PreTrainedModel) -> None:
    """Let a model attend as :func:`encode` needs it."""
    model.set_attn_implementation(ATTN_IMPLEMENTATION)


def encode(model: nn.Module, batch: Batch, embeds: Tensor | None = None) -> Tensor:
    """The last layer's output for every token of a batch.

    Args:
        model: an encoder without a head, to which :func:`use` was applied.
        embeds: [T, E]: take these for the embeddings of the tokens, to which the model adds position and
            type.  None: those of ``batch.ids``.

    Returns:
        [T, H]; of padding it means nothing.
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
    """The segments of a batch, of shapes that depend on the shapes of the batch only."""
    tokens, cu_seqlens = len(batch.ids), batch.cu_seqlens
    if cu_seqlens is None:
        length = tokens // len(batch.row_starts)
        return Segments(batch.is_token.view(-1, 1, 1, length), None, None, None, length)
    position = torch.arange(batch.max_seqlen, device=cu_seqlens.device)
    starts, lengths = cu_seqlens[:-1, None], cu_seqlens.diff()[:, None]
    # An empty segment attends to its place 0, which is no token's: softmax over nothing is not a number.
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
    """Attention within segments, with the arguments of transformers' AttentionInterface.

    PyTorch's kernel for segments where there is one, which takes no dropout.  Elsewhere the tokens are
    padded to [S, heads, L, size] for the time of attention.

    Args:
        query, key, value: [1, heads, T, size].

    Returns:
        [1, T, heads, size], and None for the weights, which are not kept.
    """
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, heads, size]
    if segments.cu_seqlens is not None and not dropout and _has_varlen_kernel(query):
        cu_seqlens, max_seqlen = segments.cu_seqlens, segments.max_seqlen
        output = varlen_attn(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen, scale=scaling)
        assert isinstance(output, Tensor)  # a pair only where sums of the softmax are asked for
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
    """[T, heads, size] as [S, heads, L, size]."""
    if segments.pad_index is not None:
        tokens = tokens.index_select(0, segments.pad_index)
    _, heads, head_size = tokens.shape
    return tokens.view(-1, segments.max_seqlen, heads, head_size).transpose(1, 2)


def _has_varlen_kernel(query: Tensor) -> bool:
    """Can FlashAttention, which is behind PyTorch's ``varlen_attn``, take such heads on their device?

    It wants half precision, heads of at most 256 numbers, a multiple of 8, and an Ampere GPU or a later one
    (README of Dao-AILab/flash-attention).
    """
    return (
        query.is_cuda
        and query.dtype in (torch.bfloat16, torch.float16)
        and query.shape[-1] <= 256
        and query.shape[-1] % 8 == 0
        and torch.cuda.get_device_properties(query.device).major >= 8
    )


# No mask is registered with AttentionMaskInterface: transformers makes none for a name that it does not know.
AttentionInterface.register(ATTN_IMPLEMENTATION, attend)
