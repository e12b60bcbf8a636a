"""Tokenized examples and padded batches, the input of encoder and heads.

A record may become several examples: parts of a long sentence, or windows of a long passage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_PAD_MULTIPLE = 16
"""Padded lengths are multiples of this, so that oneDNN caches few kernel shapes."""


@dataclass(frozen=True, slots=True)
class TokenizedExample:
    """Model input for a record or a part of one.

    Attributes:
        record_index: index of the record.
        positions: token indices that the task uses: first tokens of words, edges of entity ranges, answer
            starts.
        target: training target in the form of the task; None in prediction.
        first_word: index of the first word in the record.
        offsets: character range of each token in the passage; (0, 0) for other tokens.
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
    """B examples of at most T tokens.

    Attributes:
        input_ids: int64[B, T].
        token_type_ids: int64[B, T].
        mask: bool[B, T], False in padding.
    """

    examples: Sequence[TokenizedExample]
    input_ids: Tensor
    token_type_ids: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class EncoderOutput:
    """Output of an encoder for a batch.

    Attributes:
        hidden: float32[B, T, H].
        pooled: float32[B, H], output of the pretrained pooler; without one, the vector of the first token.
    """

    hidden: Tensor
    pooled: Tensor


def collate(examples: Sequence[TokenizedExample], pad_id: int, device: torch.device) -> PaddedBatch:
    """Pad examples to the longest one."""
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
    """Stack numeric targets, or rows of numbers, into a tensor."""
    return torch.tensor(
        [example.target for example in batch.examples], dtype=dtype, device=batch.input_ids.device
    )


def stack_positions(batch: PaddedBatch) -> tuple[Tensor, Tensor]:
    """Return the positions of each example, int64[B, W], padded with 0, and their mask, bool[B, W]."""
    max_positions = max(len(example.positions) for example in batch.examples)
    positions = torch.zeros((len(batch.examples), max_positions), dtype=torch.int64)
    mask = torch.zeros((len(batch.examples), max_positions), dtype=torch.bool)
    for row, example in enumerate(batch.examples):
        positions[row, : len(example.positions)] = torch.tensor(example.positions)
        mask[row, : len(example.positions)] = True
    return positions.to(batch.input_ids.device), mask.to(batch.input_ids.device)
