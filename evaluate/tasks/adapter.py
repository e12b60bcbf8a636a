"""Interface between the fine-tuning loop and the kinds of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from bioshards.evaluate.benchmarks.record_types import Record
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample


class TaskAdapter(Protocol):
    """Conversion between records, model inputs and predictions for one kind of task."""

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """Tokenize records; with ``is_training``, also set the targets."""

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a head with random weights for an encoder of this width."""

    def loss(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        """Return the mean loss of a batch."""

    def predict(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> list[Any]:
        """Return a prediction for each example of a batch."""

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """Merge predictions of examples into one per record or group, in the metric's form."""

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the gold labels in the order of the merged predictions."""
