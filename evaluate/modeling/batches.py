"""What the one fine-tuning loop knows of a task: examples to read, a head, its loss, its predictions.

A record may become several examples (an overlong sentence, the windows of a passage); what is predicted
for them is put together again, so that a score never depends on what a model can read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_PAD_MULTIPLE = 16
"""Batches are padded to multiples of this, so that kernels meet few shapes (oneDNN keeps something of
each)."""


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """A record, or a part of one, as a model reads it.

    Attributes:
        record: its number among the records.
        places: which of the pieces matter to the task: first pieces of words, ranges of entities.
        target: what is to be predicted, in the task's own form.
        first: where in the record it begins: the number of its first word.
        offsets: of every piece its characters in a passage; (0, 0) where it is not of it.
    """

    record_index: int
    input_ids: list[int]
    token_type_ids: list[int]
    positions: tuple[int, ...] = ()
    target: Any = None
    first_word: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PaddedBatch:
    """B examples of at most T pieces.

    Attributes:
        ids, types: int64[B, T], padded.
        mask: bool[B, T], False where padded.
    """

    examples: Sequence[TokenizedExample]
    input_ids: Tensor
    token_type_ids: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """An encoder's output for a batch.

    Attributes:
        hidden: float[B, T, H].
        pooled: float[B, H], of a pooler that was pretrained; else the first piece's output.
    """

    hidden: Tensor
    pooled: Tensor


def collate(examples: Sequence[TokenizedExample], pad_id: int, device: torch.device) -> PaddedBatch:
    """A batch, padded to the longest example."""
    padded_length = -(-max(len(example.input_ids) for example in examples) // _PAD_MULTIPLE) * _PAD_MULTIPLE
    input_ids = torch.full((len(examples), padded_length), pad_id)
    token_type_ids = torch.zeros((len(examples), padded_length), dtype=torch.int64)
    mask = torch.zeros((len(examples), padded_length), dtype=torch.bool)
    for row, example in enumerate(examples):
        input_ids[row, : len(example.input_ids)] = torch.tensor(example.input_ids)
        token_type_ids[row, : len(example.input_ids)] = torch.tensor(example.token_type_ids)
        mask[row, : len(example.input_ids)] = True
    return PaddedBatch(examples, input_ids.to(device), token_type_ids.to(device), mask.to(device))


def stack_targets(batch: PaddedBatch, dtype: torch.dtype) -> Tensor:
    """The targets of a batch where they are numbers, or rows of numbers."""
    return torch.tensor(
        [example.target for example in batch.examples], dtype=dtype, device=batch.input_ids.device
    )


def stack_positions(batch: PaddedBatch) -> tuple[Tensor, Tensor]:
    """The places of each example, int64[B, W], padded with 0, and bool[B, W]: which there are."""
    max_positions = max(len(example.positions) for example in batch.examples)
    positions = torch.zeros((len(batch.examples), max_positions), dtype=torch.int64)
    mask = torch.zeros((len(batch.examples), max_positions), dtype=torch.bool)
    for row, example in enumerate(batch.examples):
        positions[row, : len(example.positions)] = torch.tensor(example.positions)
        mask[row, : len(example.positions)] = True
    return positions.to(batch.input_ids.device), mask.to(batch.input_ids.device)
