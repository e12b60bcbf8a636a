"""The majority baseline of each kind of task, and its scores."""

from __future__ import annotations

from typing import Any

import pytest

from bioshards.evaluate.benchmarks.catalogue import ProblemType
from bioshards.evaluate.metrics.tags import entity_f1
from bioshards.evaluate.metrics.text_metrics import accuracy, multilabel_f1, positive_f1
from tests.support.evaluate.majority_baseline import predict_majority


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


def test_majority_scores_are_those_of_the_most_frequent_class() -> None:
    gold = ["yes", "no", "no"]
    assert accuracy(["no", "yes"]).compute_scores(gold, predict_majority("single_label", ["yes"], gold))[
        "accuracy"
    ] == pytest.approx(1 / 3)
    positives = ["1", "0"]
    assert positive_f1("1").compute_scores(positives, predict_majority("single_label", ["1"], positives))[
        "F1"
    ] == pytest.approx(2 / 3)
    tags = [["B-Drug", "O"]]
    assert entity_f1().compute_scores(tags, predict_majority("entities", tags, tags))["F1"] == 0
    labels = [frozenset("a")]
    assert (
        multilabel_f1("a").compute_scores(labels, predict_majority("multi_label", labels, labels))["F1"] == 1
    )
