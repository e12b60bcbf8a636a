"""The majority baseline of each kind of tasks, by its task adapter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bioshards.evaluate.benchmarks.catalogue import ProblemType
from bioshards.evaluate.encoder import ModelTokenizer
from bioshards.evaluate.recipes import FineTuneRecipe
from bioshards.evaluate.tasks.classification import Classification
from bioshards.evaluate.tasks.question_answering import QuestionAnswering
from bioshards.evaluate.tasks.tagging import Tagging
from bioshards.evaluate.tasks.task_registry import TaskAdapter

NO_TOKENIZER = ModelTokenizer(None, 64)


def predict_majority(problem_type: ProblemType, train: Sequence[Any], test: Sequence[Any]) -> list[Any]:
    """Return the majority predictions of the task adapter of a kind of tasks."""
    recipe = FineTuneRecipe()
    adapter: TaskAdapter
    match problem_type:
        case "entities" | "word_labels":
            adapter = Tagging(NO_TOKENIZER, recipe, ())
        case "span_per_passage" | "span_per_question":
            adapter = QuestionAnswering(NO_TOKENIZER, recipe, problem_type == "span_per_question")
        case classification_type:
            adapter = Classification(NO_TOKENIZER, recipe, classification_type, ())
    return adapter.predict_majority(train, test)
