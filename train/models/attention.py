"""Attention for flat batches: each token attends to the tokens of its own row only.

A Hugging Face model gets the whole batch as one sequence.  All its layers except attention work on single
tokens.  The model looks up attention by name and passes unknown keywords on, so unmodified models train on
packed and padded rows.

On GPUs, packed rows need no padding inside attention: PyTorch's kernels for segments of different lengths
are FlashAttention (half precision, Ampere or later) and memory-efficient attention (any precision and GPU).
PyTorch's public ``varlen_attn`` calls the same FlashAttention without dropout, which the papers have.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, get_args

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from bioshards.train.batch import TOKEN_MULTIPLE, Batch

KernelName = Literal["flash", "efficient", "padded"]

ATTN_IMPLEMENTATION: Final = "bioshards"
"""Name under which this attention is registered; saved configurations do not contain it."""
_TOLERANCE: Final = 0.1
"""Largest difference of a kernel from padded attention on normal numbers.  bfloat16 rounds 4 by up to 0.02;
a wrong layout changes results by 1 and more."""
_ONE_TOKEN_SEGMENTS: Final = 200
"""Segments that show what dropout drops: their only probability is 1, and without it the output is 0."""
_FLASH_CAPABILITY: Final = (8, 0)
"""Lowest compute capability of FlashAttention: Ampere (README of Dao-AILab/flash-attention)."""
forced_kernel: KernelName | None = None
"""Kernel to use instead of the chosen one, for benchmarks; set it before the first batch."""


class Segments(NamedTuple):
    """Rows of a flat batch and its padding: S segments of at most L tokens.

    Attributes:
        key_mask: bool[S, 1, 1, L]; True for positions of a segment that can be attended to.  Padding segments
            that only fill a batch up to a constant size are left out, here and in the indices.
        pad_index: int64[S * L], token at each padded position; arbitrary for padding.  None: the batch is
            already padded.
        unpad_index: int64[T], padded position of each token; any position for padding that is left out.
        cu_seqlens: int32[...], start of each segment, and T.  None: all segments have L tokens.
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
    max_padding_segments = math.ceil(TOKEN_MULTIPLE / batch.max_seqlen)
    num_segments = min(len(cu_seqlens) - 1, len(batch.row_starts) + max_padding_segments)
    return _build_packed_segments(cu_seqlens, tokens, batch.max_seqlen, num_segments)


def _build_packed_segments(cu_seqlens: Tensor, tokens: int, max_seqlen: int, num_segments: int) -> Segments:
    """Build the first segments; the tokens of others have undefined, finite outputs in padded attention."""
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

    Packed rows use the kernel of :func:`choose_kernel`.

    Args:
        query, key, value: [1, heads, T, size].

    Returns:
        [1, T, heads, size], and None for the attention weights.
    """
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))  # [T, heads, size]
    kernel = choose_kernel(q.device, q.dtype, q.shape[-1])
    has_default_scale = scaling in (None, q.shape[-1] ** -0.5)
    if segments.cu_seqlens is not None and kernel != "padded" and has_default_scale:
        run = _run_flash if kernel == "flash" else _run_efficient
        return run(q, k, v, segments.cu_seqlens, segments.max_seqlen, dropout)[None], None
    return _run_padded(q, k, v, segments, dropout, scaling)[None], None


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def choose_kernel(device: torch.device, dtype: torch.dtype, head_size: int) -> KernelName:
    """Return the fastest attention kernel for packed rows that gives the results of padded attention.

    Each is tried once on a device, with and without dropout; one that fails is reported as a warning.

    Args:
        dtype: that of queries, keys and values: inside autocast, its precision.
    """
    return forced_kernel or _choose_kernel(device, dtype, head_size)


def choose_kernels(model: nn.Module, device: torch.device, dtype: torch.dtype) -> str:
    """Return the names of the kernels of all encoders in a model, for the log."""
    head_sizes = {
        part.config.hidden_size // part.config.num_attention_heads
        for part in model.modules()
        if isinstance(part, PreTrainedModel)
    }
    return ", ".join(sorted({choose_kernel(device, dtype, size) for size in head_sizes}))


@functools.cache
def _choose_kernel(device: torch.device, dtype: torch.dtype, head_size: int) -> KernelName:
    for kernel in get_args(KernelName):
        if kernel == "padded" or device.type != "cuda":
            break
        if kernel == "flash" and (
            dtype == torch.float32 or torch.cuda.get_device_capability(device) < _FLASH_CAPABILITY
        ):
            continue
        try:
            run = _run_flash if kernel == "flash" else _run_efficient
            _check_kernel(run, device, dtype, head_size)
        except (AttributeError, RuntimeError, TypeError) as error:  # missing, not for this GPU, or changed
            warnings.warn(
                f"{kernel} attention does not work on {device} in {dtype} with heads of {head_size} "
                f"({str(error).split(chr(10))[0]})",
                stacklevel=2,
            )
        else:
            return "flash" if kernel == "flash" else "efficient"
    return "padded"


def _run_flash(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens: Tensor,
    max_seqlen: int,
    dropout: float,
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
    query: Tensor,
    key: Tensor,
    value: Tensor,
    cu_seqlens: Tensor,
    max_seqlen: int,
    dropout: float,
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
    output = output.transpose(1, 2).flatten(0, 1)
    if segments.unpad_index is not None:
        output = output.index_select(0, segments.unpad_index)
    return output


def _pad_segments(tokens: Tensor, segments: Segments) -> Tensor:
    """Pad [T, heads, size] to [S, heads, L, size]."""
    if segments.pad_index is not None:
        tokens = tokens.index_select(0, segments.pad_index)
    _, heads, head_size = tokens.shape
    return tokens.view(-1, segments.max_seqlen, heads, head_size).transpose(1, 2)


def _check_kernel(
    run: Callable[..., Tensor], device: torch.device, dtype: torch.dtype, head_size: int
) -> None:
    """Compare a kernel's outputs and gradients with padded attention, and count what its dropout drops.

    Raises:
        RuntimeError: they differ, or the kernel does not run.
    """
    lengths = [70, 1, 64, *[1] * _ONE_TOKEN_SEGMENTS, 0]
    cu_seqlens = torch.tensor([0, *lengths]).cumsum(0).to(torch.int32).to(device)
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(4, sum(lengths), 2, head_size, generator=generator).to(device, dtype)
    segments = _build_packed_segments(cu_seqlens, sum(lengths), max(lengths), len(lengths))
    results = []
    with torch.inference_mode(False), torch.enable_grad():
        for is_reference in (False, True):
            q, k, v = (tensor.clone().requires_grad_() for tensor in inputs[:3])
            output = (
                _run_padded(q, k, v, segments, 0.0, None)
                if is_reference
                else run(q, k, v, cu_seqlens, max(lengths), 0.0)
            )
            gradients = torch.autograd.grad(output, (q, k, v), inputs[3])
            results.append(torch.stack((output.detach(), *gradients)).float())
    difference = float((results[0] - results[1]).abs().max())
    if not difference <= _TOLERANCE:
        raise RuntimeError(f"its results differ by {difference:.2g} from those of padded attention")
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(0)
        output = run(*inputs[:3], cu_seqlens, max(lengths), 0.1)
    dropped = float((output[-_ONE_TOKEN_SEGMENTS:] == 0).all(-1).float().mean())
    if not 0.03 <= dropped <= 0.2:
        raise RuntimeError(f"it drops {dropped:.0%} at a dropout of 10 %")


# Without an entry in AttentionMaskInterface, transformers builds no mask.
AttentionInterface.register(ATTN_IMPLEMENTATION, attend)
