"""Interface between the fine-tuning loop and the kinds of tasks, and the choice of a kind."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.record_types import Record, Relation
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.config.legacy_mode import LegacyMode
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.tasks.classification import Classification
from bioshards.evaluate.tasks.question_answering import QuestionAnswering
from bioshards.evaluate.tasks.task_registry import Task
from bioshards.evaluate.tasks.token_classification import (
    ElectraTruncation,
    TokenClassification,
    find_entity_types,
)


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


def make_adapter(
    task: Task,
    tokenizer: ModelTokenizer,
    recipe: FineTuneRecipe,
    train_records: Sequence[Record],
    legacy_modes: Collection[LegacyMode],
) -> TaskAdapter:
    """Return the adapter of a task.

    Raises:
        InvalidValueError: the recipe needs entity positions that the benchmark's files do not have.
    """
    needs_entities = recipe.entity_format != "placeholders" or recipe.relation_feature != "cls"
    if needs_entities and not all(isinstance(record, Relation) for record in train_records):
        raise InvalidValueError(
            f"--entity-format {recipe.entity_format} and --relation-feature {recipe.relation_feature} need "
            f"entity positions, which the files of {task.benchmark} do not have: use placeholders and cls"
        )
    match task.problem_type:
        case "entities" | "word_labels":
            adapter_type = ElectraTruncation if "electra-truncation" in legacy_modes else TokenClassification
            return adapter_type(
                tokenizer,
                recipe,
                find_entity_types(train_records),
                should_lowercase="lower-case" in legacy_modes,
            )
        case "span_per_passage" | "span_per_question":
            return QuestionAnswering(
                tokenizer, recipe, is_per_question=task.problem_type == "span_per_question"
            )
        case classification_type:
            return Classification(tokenizer, recipe, classification_type, task.labels)
