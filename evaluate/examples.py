"""What the one fine-tuning loop knows of a task: examples to read, a head, its loss, its predictions.

A record may become several examples (an overlong sentence, the windows of a passage); what is predicted
for them is put together again, so that a score never depends on what a model can read at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from .records import Record

_ROUND = 16
"""Batches are padded to multiples of this, so that kernels meet few shapes (oneDNN keeps something of
each)."""


@dataclass(frozen=True, slots=True)
class Example:
    """A record, or a part of one, as a model reads it.

    Attributes:
        record: its number among the records.
        places: which of the pieces matter to the task: first pieces of words, ranges of entities.
        target: what is to be predicted, in the task's own form.
        first: where in the record it begins: the number of its first word.
        offsets: of every piece its characters in a passage; (0, 0) where it is not of it.
    """

    record: int
    ids: list[int]
    types: list[int]
    places: tuple[int, ...] = ()
    target: Any = None
    first: int = 0
    offsets: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Batch:
    """B examples of at most T pieces.

    Attributes:
        ids, types: int64[B, T], padded.
        mask: bool[B, T], False where padded.
    """

    examples: Sequence[Example]
    ids: Tensor
    types: Tensor
    mask: Tensor


@dataclass(frozen=True, slots=True)
class Encoded:
    """An encoder's output for a batch.

    Attributes:
        hidden: float[B, T, H].
        pooled: float[B, H], of a pooler that was pretrained; else the first piece's output.
    """

    hidden: Tensor
    pooled: Tensor


class Problem(Protocol):
    """A kind of task on a set."""

    def examples(self, records: Sequence[Record], learn: bool) -> list[Example]:
        """What a model reads of records; to learn from, or to predict."""

    def head(self, hidden: int) -> nn.Module:
        """A head with random weights, for an encoder of that width."""

    def loss(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        """The mean loss of a batch."""

    def predict(self, head: Any, encoded: Encoded, batch: Batch) -> list[Any]:
        """What is predicted for each example."""

    def assemble(
        self, records: Sequence[Record], examples: Sequence[Example], found: Sequence[Any]
    ) -> list[Any]:
        """What is predicted for each record, or group of records, as the task's measure takes it."""

    def gold(self, records: Sequence[Record]) -> list[Any]:
        """What is right, in the same order."""


def batch(examples: Sequence[Example], padding: int, device: torch.device) -> Batch:
    """A batch, padded to the longest example."""
    longest = -(-max(len(one.ids) for one in examples) // _ROUND) * _ROUND
    ids = torch.full((len(examples), longest), padding)
    types = torch.zeros((len(examples), longest), dtype=torch.int64)
    mask = torch.zeros((len(examples), longest), dtype=torch.bool)
    for row, one in enumerate(examples):
        ids[row, : len(one.ids)] = torch.tensor(one.ids)
        types[row, : len(one.ids)] = torch.tensor(one.types)
        mask[row, : len(one.ids)] = True
    return Batch(examples, ids.to(device), types.to(device), mask.to(device))


def targets(batch: Batch, dtype: torch.dtype) -> Tensor:
    """The targets of a batch where they are numbers, or rows of numbers."""
    return torch.tensor([one.target for one in batch.examples], dtype=dtype, device=batch.ids.device)


def places(batch: Batch) -> tuple[Tensor, Tensor]:
    """The places of each example, int64[B, W], padded with 0, and bool[B, W]: which there are."""
    most = max(len(one.places) for one in batch.examples)
    found = torch.zeros((len(batch.examples), most), dtype=torch.int64)
    mask = torch.zeros((len(batch.examples), most), dtype=torch.bool)
    for row, one in enumerate(batch.examples):
        found[row, : len(one.places)] = torch.tensor(one.places)
        mask[row, : len(one.places)] = True
    return found.to(batch.ids.device), mask.to(batch.ids.device)
