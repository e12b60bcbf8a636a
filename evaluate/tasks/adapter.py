"""Interface between the fine-tuning loop and the kinds of tasks, and the choice of a kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.records import Record, Relation
from bioshards.evaluate.modeling.encoder import EncodedBatch, Example
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.tasks.classification import Classification, compute_class_weights
from bioshards.evaluate.tasks.question_answering import QuestionAnswering
from bioshards.evaluate.tasks.relations import ENTITY_MARKERS
from bioshards.evaluate.tasks.tagging import Tagging, find_entity_types
from bioshards.evaluate.tasks.task_registry import PlannedTask


class TaskAdapter(Protocol):
    """Conversion between records, model inputs and predictions for one kind of task."""

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[Example]:
        """Tokenize records; with ``is_training``, also set the targets."""

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a head with random weights for an encoder of this width."""

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the mean loss of a batch."""

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return a prediction for each example of a batch."""

    def merge_predictions(
        self, records: Sequence[Record], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Merge predictions of examples into one per record or group, in the metric's form."""

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the gold labels in the order of the merged predictions."""

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return the predictions of a model that knows the labels of train and reads no text.

        Args:
            train_gold: gold labels of train, at least one.
            test_gold: gold labels of test; a prediction for each is returned.
        """


def make_adapter(
    planned_task: PlannedTask, tokenizer: ModelTokenizer, train_records: Sequence[Record]
) -> TaskAdapter:
    """Return the adapter of a task; its tokenizer learns the markers of entities that the recipe asks for.

    Raises:
        InvalidValueError: the recipe needs entity positions that the benchmark's files do not have, or has
            another number of class weights than there are classes.
    """
    task, recipe = planned_task.task, planned_task.recipe
    has_relations = all(isinstance(record, Relation) for record in train_records)
    if (recipe.entity_format != "placeholders" or recipe.relation_feature != "cls") and not has_relations:
        raise InvalidValueError(
            f"--entity-format {recipe.entity_format} and --relation-feature {recipe.relation_feature} need "
            f"entity positions, which the files of {task.benchmark} do not have: use placeholders and cls"
        )
    if recipe.entity_format == "markers":
        tokenizer.hf_tokenizer.add_tokens(list(ENTITY_MARKERS))
    match task.problem_type:
        case "entities" | "word_labels":
            entity_types = find_entity_types(train_records)
            return Tagging(tokenizer, recipe, entity_types, planned_task.legacy_modes)
        case "span_per_passage" | "span_per_question":
            return QuestionAnswering(tokenizer, recipe, task.problem_type == "span_per_question")
        case classification_type:
            weights = compute_class_weights(recipe.class_weights, task.labels, train_records)
            return Classification(tokenizer, recipe, classification_type, task.labels, weights)
