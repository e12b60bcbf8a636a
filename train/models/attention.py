"""Attention for flat batches: each token attends to the tokens of its own row only.

A Hugging Face model gets the whole batch as one sequence.  All its layers except attention work on single
tokens.  The model looks up attention by name and passes unknown keywords on, so unmodified models train on
packed rows.

On GPUs, packed rows need no padding inside attention: PyTorch's kernels for segments of different lengths
are FlashAttention (half precision, Ampere or later) and memory-efficient attention (any precision and GPU).
PyTorch's public ``varlen_attn`` calls the same FlashAttention without dropout, which the papers have.
"""

from __future__ import annotations

import math
from typing import Any, Final, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from bioshards.train.batch import TOKEN_MULTIPLE, Batch

KernelName = Literal["flash", "efficient", "padded"]

ATTN_IMPLEMENTATION: Final = "bioshards"
"""Name under which this attention is registered; saved configurations do not contain it."""
_FLASH_CAPABILITY: Final = (8, 0)
"""Lowest compute capability of FlashAttention: Ampere (README of Dao-AILab/flash-attention)."""
_MAX_HEAD_SIZE: Final = 256
_HEAD_SIZE_MULTIPLE: Final = 8
"""Sizes of heads that both kernels take (the same README)."""
forced_kernel: KernelName | None = None
"""Kernel to use instead of the chosen one, for benchmarks; set it before the first batch."""


class Segments(NamedTuple):
    """Rows of a flat batch and its padding: S segments of at most L tokens.

    Attributes:
        key_mask: bool[S, 1, 1, L]; True for positions of a segment that can be attended to.  Padding segments
            that only fill a batch up to a constant size are left out, here and in the indices.
        pad_index: int64[S * L], token at each padded position; arbitrary for padding.
        unpad_index: int64[T], padded position of each token; any position for padding that is left out.
        cu_seqlens: int32[...], start of each segment, and T.
        max_seqlen: L.
    """

    key_mask: Tensor
    pad_index: Tensor
    unpad_index: Tensor
    cu_seqlens: Tensor
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
    """Build the segments of a batch; their shapes depend only on the shapes of the batch.

    Segments that only fill a batch up to a constant size are left out: in padded attention, their tokens have
    undefined, finite outputs.
    """
    tokens, cu_seqlens, max_seqlen = len(batch.ids), batch.cu_seqlens, batch.max_seqlen
    max_padding_segments = math.ceil(TOKEN_MULTIPLE / max_seqlen)
    num_segments = min(len(cu_seqlens) - 1, len(batch.row_starts) + max_padding_segments)
    position = torch.arange(max_seqlen, device=cu_seqlens.device)
    starts, lengths = cu_seqlens[:num_segments, None], cu_seqlens.diff()[:num_segments, None]
    # An empty segment attends to its position 0, because a softmax over nothing is NaN.
    key_mask = (position < lengths) | (position == 0)
    pad_index = (starts + position).clamp(max=tokens - 1).flatten()
    token = torch.arange(tokens, device=cu_seqlens.device, dtype=cu_seqlens.dtype)
    segment_index = torch.searchsorted(cu_seqlens[1:], token, right=True)
    unpad_index = segment_index * max_seqlen + token - cu_seqlens[segment_index]
    unpad_index = unpad_index.clamp(max=num_segments * max_seqlen - 1)
    return Segments(key_mask[:, None, None], pad_index, unpad_index, cu_seqlens, max_seqlen)


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

    It uses the kernel of :func:`choose_kernel`, or padded attention for an unusual scale.

    Args:
        query, key, value: [1, heads, T, size].

    Returns:
        [1, T, heads, size], and None for the attention weights.
    """
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, heads, size]
    kernel = choose_kernel(q.device, q.dtype, q.shape[-1])
    has_default_scale = scaling in (None, q.shape[-1] ** -0.5)
    if kernel != "padded" and has_default_scale:
        run = _run_flash if kernel == "flash" else _run_efficient
        return run(q, k, v, segments.cu_seqlens, segments.max_seqlen, dropout)[None], None
    return _run_padded(q, k, v, segments, dropout, scaling)[None], None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def choose_kernel(device: torch.device, dtype: torch.dtype, head_size: int) -> KernelName:
    """Return the fastest attention kernel for packed rows that the device has.

    Args:
        dtype: that of queries, keys and values: inside autocast, its precision.
    """
    if forced_kernel:
        return forced_kernel
    if device.type != "cuda" or head_size > _MAX_HEAD_SIZE or head_size % _HEAD_SIZE_MULTIPLE:
        return "padded"
    if dtype == torch.float32 or torch.cuda.get_device_capability(device) < _FLASH_CAPABILITY:
        return "efficient"
    return "flash"


def choose_kernels(model: nn.Module, device: torch.device, dtype: torch.dtype) -> str:
    """Return the names of the kernels of all encoders in a model, for the log."""
    head_sizes = {
        part.config.hidden_size // part.config.num_attention_heads
        for part in model.modules()
        if isinstance(part, PreTrainedModel)
    }
    return ", ".join(sorted({choose_kernel(device, dtype, size) for size in head_sizes}))


def _run_flash(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout: float
) -> Tensor:
    """Run FlashAttention (Dao 2023, arXiv:2307.08691) on [T, heads, size]."""
    output: Tensor = torch.ops.aten._flash_attention_forward(
        query,
        key,
        value,
        cu_seqlens,
        cu_seqlens,
        max_seqlen,
        max_seqlen,
        dropout,
        False,  # is_causal
        False,  # return_debug_mask
    )[0]
    return output


def _run_efficient(
    query: Tensor, key: Tensor, value: Tensor, cu_seqlens: Tensor, max_seqlen: int, dropout: float
) -> Tensor:
    """Run memory-efficient attention (Rabe & Staats 2021, arXiv:2112.05682) on [T, heads, size]."""
    output: Tensor = torch.ops.aten._efficient_attention_forward(
        query[None],
        key[None],
        value[None],
        None,  # bias
        cu_seqlens,
        cu_seqlens,
        max_seqlen,
        max_seqlen,
        dropout,
        0,  # custom_mask_type: none
        True,  # compute_log_sumexp, for the backward pass
    )[0]
    return output[0]


def _run_padded(
    query: Tensor, key: Tensor, value: Tensor, segments: Segments, dropout: float, scaling: float | None
) -> Tensor:
    """Pad the segments of [T, heads, size], and run PyTorch's attention with a mask."""
    q, k, v = (_pad_segments(tensor, segments) for tensor in (query, key, value))
    output = F.scaled_dot_product_attention(
        q, k, v, attn_mask=segments.key_mask, dropout_p=dropout, scale=scaling
    )
    return output.transpose(1, 2).flatten(0, 1).index_select(0, segments.unpad_index)


def _pad_segments(tokens: Tensor, segments: Segments) -> Tensor:
    """Pad [T, heads, size] to [S, heads, L, size]."""
    _, heads, head_size = tokens.shape
    padded = tokens.index_select(0, segments.pad_index)
    return padded.view(-1, segments.max_seqlen, heads, head_size).transpose(1, 2)


# Without an entry in AttentionMaskInterface, transformers builds no mask.
AttentionInterface.register(ATTN_IMPLEMENTATION, attend)
