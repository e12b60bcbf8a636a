"""TaskAdapter: to be described."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from bioshards.evaluate.benchmarks.record_types import Record
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample


class TaskAdapter(Protocol):
    """A kind of task on a set."""

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """What a model reads of records; to learn from, or to predict."""

    def build_head(self, hidden_size: int) -> nn.Module:
        """A head with random weights, for an encoder of that width."""

    def loss(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        """The mean loss of a batch."""

    def predict(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> list[Any]:
        """What is predicted for each example."""

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """What is predicted for each record, or group of records, as the task's measure takes it."""

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """What is right, in the same order."""
