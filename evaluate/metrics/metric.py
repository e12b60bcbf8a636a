"""Metrics as functions of sums over per-example statistics.

Precision, recall, F1, accuracy, Pearson's r and mean reciprocal rank are functions of sums over the examples
of a test set. A result stores one row of statistics per example, so bootstrap resampling is a matrix product.
For classes a row holds three counts of each, so micro and macro averages come from the same sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError

Numbers = NDArray[numpy.float64]
Gold = TypeVar("Gold")
Predicted = TypeVar("Predicted")


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        name: name in results and reports, such as ``entity F1 (conlleval)``.
        main_score: name of the score that represents a task.
        stat_names: names of the K statistics of an example.
        compute_stats: function from N gold and N predicted labels to float64[N, K]; metrics of groups, such
            as the candidates of a question, return M < N rows.
        scores_from_totals: function from sums [..., K] to scores [...], between 0 and 1 (a correlation from
            -1); 0 for an undefined ratio.
    """

    name: str
    main_score: str
    stat_names: tuple[str, ...]
    compute_stats: Callable[[Sequence[Any], Sequence[Any]], Numbers]
    scores_from_totals: Callable[[Numbers], Mapping[str, Numbers]]

    def compute_scores(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
        """Return all scores of a prediction.

        Raises:
            InvalidValueError: gold and predicted differ in length.
        """
        return self.scores_from_stats(self.compute_stats(gold, predicted))

    def scores_from_stats(self, stats: Numbers) -> dict[str, float]:
        """Return all scores of per-example statistics [N, K]."""
        return {name: float(value) for name, value in self.scores_from_totals(stats.sum(axis=0)).items()}


def align(gold: Sequence[Gold], predicted: Sequence[Predicted]) -> list[tuple[Gold, Predicted]]:
    """Pair gold with predicted labels.

    Raises:
        InvalidValueError: gold and predicted differ in length.
    """
    if len(gold) != len(predicted):
        raise InvalidValueError(f"{len(predicted)} are predicted, but there are {len(gold)}")
    return list(zip(gold, predicted, strict=True))


def make_stats_array(rows: Iterable[Sequence[float]], stat_names: Sequence[str]) -> Numbers:
    """Return rows of statistics as float64[N, K], also for N = 0."""
    return numpy.array(list(rows), dtype=numpy.float64).reshape(-1, len(stat_names))


def ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    """Divide, with 0 for a zero denominator."""
    return numpy.divide(
        numerator, denominator, out=numpy.zeros_like(numerator, dtype=numpy.float64), where=denominator != 0
    )


def precision_recall_f1(correct: Numbers, predicted: Numbers, gold: Numbers) -> Mapping[str, Numbers]:
    """Return precision, recall and F1 from counts."""
    return {
        "precision": ratio(correct, predicted),
        "recall": ratio(correct, gold),
        "F1": ratio(2 * correct, predicted + gold),
    }


def class_stat_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of three counts of each class: of correct, predicted and gold labels."""
    return tuple(
        f"{name}: {count_name}" for name in classes for count_name in ("correct", "predicted", "gold")
    )


def count_labels(
    classes: Sequence[str], examples: Sequence[tuple[Iterable[str], Iterable[str], Iterable[str]]]
) -> Numbers:
    """Count correct, predicted and gold labels of each example; labels that are not classes are ignored.

    Returns:
        float64[N, 3 * classes].
    """
    columns = {name: 3 * index for index, name in enumerate(classes)}
    rows = numpy.zeros((len(examples), 3 * len(classes)))
    for row, example in zip(rows, examples, strict=True):
        for column_offset, labels in enumerate(example):
            for label in labels:
                if label in columns:
                    row[columns[label] + column_offset] += 1
    return rows


def matching_labels(gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """Return the labels that are equal at the same position."""
    return [
        gold_label
        for gold_label, predicted_label in zip(gold, predicted, strict=True)
        if gold_label == predicted_label
    ]


def count_single_labels(classes: Sequence[str], pairs: Iterable[tuple[str, str]]) -> Numbers:
    """Count labels of examples with one gold and one predicted class."""
    return count_labels(
        classes,
        [
            (matching_labels([gold_label], [guessed_label]), [guessed_label], [gold_label])
            for gold_label, guessed_label in pairs
        ],
    )


def micro_average(totals: Numbers) -> Mapping[str, Numbers]:
    """Return precision, recall and F1 over all classes from sums [..., 3 * classes]."""
    return precision_recall_f1(*(column.sum(axis=-1) for column in _split_columns(totals)))


def scores_by_class(totals: Numbers) -> Mapping[str, Numbers]:
    """Return precision, recall and F1 of each class, each [..., classes]."""
    return precision_recall_f1(*_split_columns(totals))


def macro_average(totals: Numbers) -> Mapping[str, Numbers]:
    """Return the mean over classes of precision, recall and F1, as scikit-learn does."""
    return {name: values.mean(axis=-1) for name, values in scores_by_class(totals).items()}


def _split_columns(totals: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    return totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
