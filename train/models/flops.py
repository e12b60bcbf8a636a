"""FLOP counts of encoders and heads, and the peak FLOP/s of a device; their quotient is the MFU.

Only matrix products are counted: a product of [a, b] and [b, c] is 2abc.  Padding is not counted, so a model
that computes on padding has a lower MFU.
"""

from __future__ import annotations

import re
import time
from typing import Final

import torch
from transformers import PreTrainedConfig

from bioshards.train.batch import BatchCounts

TRAINING_TO_FORWARD_RATIO: Final = 3
"""A backward pass has two products for each one of the forward pass: by the input and by the weights."""
PEAK_FLOPS_PER_SECOND: Final = {
    "A100": 312e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "L40S": 362e12,
    "L4": 121e12,
}
"""FLOP/s in bfloat16 and float16 without sparsity (NVIDIA's data sheets), by words of the device name."""


def count_encoder(config: PreTrainedConfig, counts: BatchCounts) -> float:
    """Count the FLOPs of a forward pass of an encoder."""
    hidden_size, num_layers = get_hidden_size(config), int(config.num_hidden_layers)
    embedding_size = get_embedding_size(config)
    weights = num_layers * (4 * hidden_size**2 + 2 * hidden_size * int(config.intermediate_size))
    if config.model_type == "albert" or embedding_size != hidden_size:  # ALBERT always has a projection
        weights += embedding_size * hidden_size
    return 2 * counts.tokens * weights + 4 * counts.squares * num_layers * hidden_size


def count_mlm_head(config: PreTrainedConfig, counts: BatchCounts) -> float:
    """Count the FLOPs of a forward pass of the masked-language-modelling head, on masked tokens."""
    embedding_size = get_embedding_size(config)
    return counts.masked * 2 * embedding_size * (get_hidden_size(config) + int(config.vocab_size))


def get_embedding_size(config: PreTrainedConfig) -> int:
    """Return the width of the embeddings."""
    return int(getattr(config, "embedding_size", config.hidden_size))


def get_hidden_size(config: PreTrainedConfig) -> int:
    """Return the width of the encoder."""
    return int(config.hidden_size)


def get_peak(device: torch.device, dtype: torch.dtype) -> float:
    """Return the peak FLOP/s of a device: from the data sheet of a known GPU, else measured."""
    if device.type == "cuda" and dtype in (torch.bfloat16, torch.float16):
        name = torch.cuda.get_device_name(device)
        for gpu_name, flops_per_second in PEAK_FLOPS_PER_SECOND.items():
            if re.search(rf"\b{gpu_name}\b", name):  # whole words: "L4" must not match an L40
                return flops_per_second
    return measure_peak(device, dtype)


def measure_peak(device: torch.device, dtype: torch.dtype, size: int | None = None) -> float:
    """Measure the FLOP/s of a product of two square matrices: the best of twenty runs.

    Args:
        size: rows of the matrices; None: 8192 on a GPU (milliseconds), 1024 on a CPU (50 ms on one core).
    """
    size = size or (8192 if device.type == "cuda" else 1024)
    left, right = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))
    best_seconds = float("inf")
    for _ in range(21):  # the first one warms up
        started = time.perf_counter()
        product = left @ right
        product[0, 0].item()  # synchronise with the device
        best_seconds = min(best_seconds, time.perf_counter() - started)
    return 2 * size**3 / best_seconds
