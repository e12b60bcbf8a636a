"""The majority baseline of each kind of task, and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

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


@pytest.mark.parametrize(
    ("problem_type", "train", "test", "expected"),
    [
        ("single_label", ["no", "yes", "yes"], ["no", "no"], ["yes", "yes"]),
        ("single_label", ["no", "yes"], ["yes"], ["no"]),
        (
            "multi_label",
            [frozenset("ab"), frozenset("a"), frozenset()],
            [frozenset("b")],
            [frozenset("a")],
        ),
        ("multi_label", [frozenset("a"), frozenset("b")], [frozenset("b")], [frozenset()]),
        ("regression", [1.0, 4.0], [2.0, 3.0], [2.5, 2.5]),
        ("entities", [["B-Drug"]], [["O", "B-Drug"], ["O"]], [["O", "O"], ["O"]]),
        ("word_labels", [["I-PAR"]], [["I-PAR"]], [["O"]]),
        ("ranking", [("q", True)], [("r", False), ("r", True)], [0.0, 0.0]),
        ("span_per_passage", [["a"]], [["b"], ["c"]], ["", ""]),
        ("span_per_question", [["a"]], [["b"]], [[]]),
    ],
)
def test_majority_prediction(
    problem_type: ProblemType, train: list[Any], test: list[Any], expected: list[Any]
) -> None:
    assert predict_majority(problem_type, train, test) == expected
