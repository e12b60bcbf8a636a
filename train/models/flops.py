"""How much arithmetic training takes, and how much a device could do: what is between is the utilisation.

Counted are the products of matrices in the forward pass, and twice that for the backward pass; a product of
[a, b] and [b, c] is 2abc.  Lookups, sums and norms are not counted, nor is padding: a model that works on
padding has a lower utilisation.
"""

from __future__ import annotations

import re
import time
from typing import Final

import torch
from transformers import PreTrainedConfig

from bioshards.train.batch import BatchCounts

from .adversarial_objective import AdversarialObjective
from .electra_objective import ElectraObjective
from .mlm_objective import MlmObjective
from .objective import Objective

TRAINING_TO_FORWARD_RATIO: Final = 3
"""A backward pass is two products for each of the forward pass: by the input and by the weights."""
PEAK_FLOPS_PER_SECOND: Final = {
    "A100": 312e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "L40S": 362e12,
    "L4": 121e12,
}
"""Of a GPU with these words in its name, FLOP/s in bfloat16 without sparsity: NVIDIA's data sheets."""


def count_training_step(objective: Objective, counts: BatchCounts) -> float:
    """FLOP of a training step over so much data."""
    if isinstance(objective, AdversarialObjective):
        # Beside its own: a pass forward and back to the input, and one forward and back.
        return count_training_step(objective.objective, counts) + (
            2 + TRAINING_TO_FORWARD_RATIO
        ) * _count_forward(objective.objective, counts)
    if isinstance(objective, ElectraObjective):
        generator = objective.generator.config
        forward_flops = (
            _count_forward(objective, counts)
            + _count_encoder(generator, counts)
            + _count_mlm_head(generator, counts)
        )
        return TRAINING_TO_FORWARD_RATIO * forward_flops
    assert isinstance(objective, MlmObjective)
    pair_flops = (
        counts.labelled * 2 * _get_hidden_size(objective) * (_get_hidden_size(objective) + 2)
        if objective.pair_task
        else 0
    )
    return TRAINING_TO_FORWARD_RATIO * (_count_forward(objective, counts) + pair_flops)


def _count_forward(objective: Objective, counts: BatchCounts) -> float:
    """A forward pass of what is kept, with the head that says something of tokens."""
    config: PreTrainedConfig = objective.encoder.config
    encoder_flops = _count_encoder(config, counts)
    if isinstance(objective, ElectraObjective):
        return encoder_flops + counts.tokens * 2 * _get_hidden_size(objective) * (
            _get_hidden_size(objective) + 1
        )
    return encoder_flops + _count_mlm_head(config, counts)


def _count_encoder(config: PreTrainedConfig, counts: BatchCounts) -> float:
    hidden_size, num_layers, embedding_size = (
        int(config.hidden_size),
        int(config.num_hidden_layers),
        _get_embedding_size(config),
    )
    weights = num_layers * (4 * hidden_size**2 + 2 * hidden_size * int(config.intermediate_size))
    if config.model_type == "albert" or embedding_size != hidden_size:  # in ALBERT it is there at any size
        weights += embedding_size * hidden_size
    return 2 * counts.tokens * weights + 4 * counts.squares * num_layers * hidden_size


def _count_mlm_head(config: PreTrainedConfig, counts: BatchCounts) -> float:
    """The head of masked language modelling, which is for masked tokens only."""
    embedding_size = _get_embedding_size(config)
    return counts.masked * 2 * embedding_size * (int(config.hidden_size) + int(config.vocab_size))


def _get_embedding_size(config: PreTrainedConfig) -> int:
    return int(getattr(config, "embedding_size", config.hidden_size))


def _get_hidden_size(objective: Objective) -> int:
    return int(objective.encoder.config.hidden_size)


def get_peak(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s that a device could do at most: a known GPU's by its data sheet, another's as measured."""
    if device.type == "cuda" and dtype == torch.bfloat16:
        name = torch.cuda.get_device_name(device)
        for gpu_name, flops_per_second in PEAK_FLOPS_PER_SECOND.items():
            if re.search(rf"\b{gpu_name}\b", name):  # an L40 is no L4
                return flops_per_second
    return measure_peak(device, dtype)


def measure_peak(device: torch.device, dtype: torch.dtype, size: int | None = None) -> float:
    """FLOP/s of a product of two square matrices, the best of twenty.

    Args:
        size: their rows; none given, as many as take a GPU milliseconds, or a core of a CPU 50.
    """
    size = size or (8192 if device.type == "cuda" else 1024)
    left, right = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))
    best_seconds = float("inf")
    for _ in range(21):  # the first is to warm up
        started = time.perf_counter()
        product = left @ right
        product[0, 0].item()  # waits for the device
        best_seconds = min(best_seconds, time.perf_counter() - started)
    return 2 * size**3 / best_seconds
