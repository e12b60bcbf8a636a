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


def mean_scores(names: Sequence[str]) -> Callable[[Numbers], Mapping[str, Numbers]]:
    """Return a function from sums to means by name: the last sum is the number of rows."""
    return lambda totals: {name: ratio(totals[..., at], totals[..., -1]) for at, name in enumerate(names)}


def precision_recall_f1(counts: Numbers) -> dict[str, Numbers]:
    """Return precision, recall and F1 from counts [..., 3] of correct, predicted and gold labels."""
    correct, predicted, gold = counts[..., 0], counts[..., 1], counts[..., 2]
    return {
        "precision": ratio(correct, predicted),
        "recall": ratio(correct, gold),
        "F1": ratio(2 * correct, predicted + gold),
    }


def class_metric(
    name: str,
    main_score: str,
    classes: Sequence[str],
    align_labels: Callable[[Sequence[Any], Sequence[Any]], Iterable[tuple[Sequence[str], Sequence[str]]]],
    scores_from_totals: Callable[[Numbers], Mapping[str, Numbers]],
) -> Metric:
    """Return a metric whose statistics are three counts of each class: of correct, predicted and gold labels.

    Args:
        align_labels: function from gold and predicted to the two lists of labels of each example, which are
            compared by position; labels that are not classes are not counted.
    """
    columns = {label: 3 * index for index, label in enumerate(classes)}
    stat_names = tuple(f"{label}: {count}" for label in classes for count in ("correct", "predicted", "gold"))

    def compute_stats(gold: Sequence[Any], predicted: Sequence[Any]) -> Numbers:
        examples = list(align_labels(gold, predicted))
        rows = numpy.zeros((len(examples), len(stat_names)))
        for row, labels in zip(rows, examples, strict=True):
            for gold_label, predicted_label in zip(*labels, strict=True):
                if predicted_label in columns:
                    row[columns[predicted_label]] += predicted_label == gold_label
                    row[columns[predicted_label] + 1] += 1
                if gold_label in columns:
                    row[columns[gold_label] + 2] += 1
        return rows

    return Metric(name, main_score, stat_names, compute_stats, scores_from_totals)


def micro_average(totals: Numbers) -> dict[str, Numbers]:
    """Return precision, recall and F1 over all classes from sums [..., 3 * classes]."""
    return precision_recall_f1(_group_by_class(totals).sum(axis=-2))


def scores_by_class(totals: Numbers) -> dict[str, Numbers]:
    """Return precision, recall and F1 of each class, each [..., classes]."""
    return precision_recall_f1(_group_by_class(totals))


def macro_average(totals: Numbers) -> dict[str, Numbers]:
    """Return the mean over classes of precision, recall and F1, as scikit-learn does."""
    return {name: values.mean(axis=-1) for name, values in scores_by_class(totals).items()}


def _group_by_class(totals: Numbers) -> Numbers:
    return totals.reshape(*totals.shape[:-1], -1, 3)
