"""Counts of correct, predicted and gold labels by class, from which precision, recall and F1 follow.

A row holds three counts per class, so micro and macro averages come from the same sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy

from bioshards.evaluate.metrics.metric import Numbers, precision_recall_f1

Labels = Iterable[str]


def stat_names(classes: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the statistics of a row."""
    return tuple(
        f"{name}: {count_name}" for name in classes for count_name in ("correct", "predicted", "gold")
    )


def count_labels(classes: Sequence[str], examples: Sequence[tuple[Labels, Labels, Labels]]) -> Numbers:
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
