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

from .adversarial import Adversarial
from .batch import Counts
from .electra import Electra
from .objective import Objective
from .pairs import Pairs

TRAINING: Final = 3
"""A backward pass is two products for each of the forward pass: by the input and by the weights."""
PEAKS: Final = {
    "A100": 312e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "H200": 989e12,
    "L40S": 362e12,
    "L4": 121e12,
}
"""Of a GPU with these words in its name, FLOP/s in bfloat16 without sparsity: NVIDIA's data sheets."""


def step(objective: Objective, counts: Counts) -> float:
    """FLOP of a training step over so much data."""
    if isinstance(objective, Adversarial):
        # Beside its own: a pass forward and back to the input, and one forward and back.
        return step(objective.objective, counts) + (2 + TRAINING) * _kept(objective.objective, counts)
    if isinstance(objective, Electra):
        generator = objective.generator.config
        forward = _kept(objective, counts) + _encoder(generator, counts) + _guesses(generator, counts)
        return TRAINING * forward
    assert isinstance(objective, Pairs)
    pair = counts.labelled * 2 * _hidden(objective) * (_hidden(objective) + 2) if objective.pair else 0
    return TRAINING * (_kept(objective, counts) + pair)


def _kept(objective: Objective, counts: Counts) -> float:
    """A forward pass of what is kept, with the head that says something of tokens."""
    config: PreTrainedConfig = objective.encoder.config
    encoder = _encoder(config, counts)
    if isinstance(objective, Electra):
        return encoder + counts.tokens * 2 * _hidden(objective) * (_hidden(objective) + 1)
    return encoder + _guesses(config, counts)


def _encoder(config: PreTrainedConfig, counts: Counts) -> float:
    hidden, layers, embedding = int(config.hidden_size), int(config.num_hidden_layers), _embedding(config)
    weights = layers * (4 * hidden**2 + 2 * hidden * int(config.intermediate_size))
    if config.model_type == "albert" or embedding != hidden:  # in ALBERT it is there at any size
        weights += embedding * hidden
    return 2 * counts.tokens * weights + 4 * counts.squares * layers * hidden


def _guesses(config: PreTrainedConfig, counts: Counts) -> float:
    """The head of masked language modelling, which is for masked tokens only."""
    embedding = _embedding(config)
    return counts.masked * 2 * embedding * (int(config.hidden_size) + int(config.vocab_size))


def _embedding(config: PreTrainedConfig) -> int:
    return int(getattr(config, "embedding_size", config.hidden_size))


def _hidden(objective: Objective) -> int:
    return int(objective.encoder.config.hidden_size)


def peak(device: torch.device, dtype: torch.dtype) -> float:
    """FLOP/s that a device could do at most: a known GPU's by its data sheet, another's as measured."""
    if device.type == "cuda" and dtype == torch.bfloat16:
        name = torch.cuda.get_device_name(device)
        for words, known in PEAKS.items():
            if re.search(rf"\b{words}\b", name):  # an L40 is no L4
                return known
    return measured(device, dtype)


def measured(device: torch.device, dtype: torch.dtype, size: int | None = None) -> float:
    """FLOP/s of a product of two square matrices, the best of twenty.

    Args:
        size: their rows; none given, as many as take a GPU milliseconds, or a core of a CPU 50.
    """
    size = size or (8192 if device.type == "cuda" else 1024)
    left, right = (torch.ones(size, size, device=device, dtype=dtype) for _ in range(2))
    best = float("inf")
    for _ in range(21):  # the first is to warm up
        begun = time.perf_counter()
        product = left @ right
        product[0, 0].item()  # waits for the device
        best = min(best, time.perf_counter() - begun)
    return 2 * size**3 / best
