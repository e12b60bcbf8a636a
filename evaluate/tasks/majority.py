"""Majority baseline: the prediction of a model that knows the training labels and reads no text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from bioshards.evaluate.benchmarks.definition import ProblemType


def predict_majority(
    problem_type: ProblemType, train_gold: Sequence[Any], test_gold: Sequence[Any]
) -> list[Any]:
    """Return a prediction for each gold label of test, in the form of the task adapter's predictions.

    A class: the most frequent one of train, of equally frequent ones the first. A set of labels: those of
    more than half of train. A number: the mean of train. Tags: no entity. A ranking: the order of the files.
    An answer in a passage: none.

    Args:
        train_gold: gold labels of train, at least one (``TaskAdapter.gold_labels``).
        test_gold: gold labels of test.
    """
    match problem_type:
        case "single_label":
            ((most_frequent, _),) = Counter(train_gold).most_common(1)
            return [most_frequent] * len(test_gold)
        case "multi_label":
            label_counts = Counter(label for labels in train_gold for label in labels)
            frequent = frozenset(
                label for label, count in label_counts.items() if 2 * count > len(train_gold)
            )
            return [frequent] * len(test_gold)
        case "regression":
            return [sum(train_gold) / len(train_gold)] * len(test_gold)
        case "entities" | "word_labels":
            return [["O"] * len(tags) for tags in test_gold]
        case "ranking":
            return [0.0] * len(test_gold)
        case "span_per_passage":
            return [""] * len(test_gold)
        case "span_per_question":
            return [[] for _ in test_gold]
