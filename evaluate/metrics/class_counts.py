"""How many of each class are right, predicted and gold: what precision, recall and F1 are made of.

A row holds three numbers for each class, so that micro and macro averages come of the same sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy

from .metric import Numbers, precision_recall_f1

Labels = Iterable[str]


def stat_names(classes: Sequence[str]) -> tuple[str, ...]:
    """What the numbers of a row are."""
    return tuple(
        f"{name}: {count_name}" for name in classes for count_name in ("correct", "predicted", "gold")
    )


def count_labels(classes: Sequence[str], examples: Sequence[tuple[Labels, Labels, Labels]]) -> Numbers:
    """A row an example, [N, 3 x classes], of its right, predicted and gold labels that are of the classes."""
    columns = {name: 3 * index for index, name in enumerate(classes)}
    rows = numpy.zeros((len(examples), 3 * len(classes)))
    for row, example in zip(rows, examples, strict=True):
        for column_offset, labels in enumerate(example):
            for label in labels:
                if label in columns:
                    row[columns[label] + column_offset] += 1
    return rows


def matching_labels(gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """The labels that are right where they stand."""
    return [
        gold_label
        for gold_label, predicted_label in zip(gold, predicted, strict=True)
        if gold_label == predicted_label
    ]


def count_single_labels(classes: Sequence[str], pairs: Iterable[tuple[str, str]]) -> Numbers:
    """A row for each gold and predicted class."""
    return count_labels(
        classes,
        [
            (matching_labels([gold_label], [guessed_label]), [guessed_label], [gold_label])
            for gold_label, guessed_label in pairs
        ],
    )


def micro_average(totals: Numbers) -> Mapping[str, Numbers]:
    """Precision, recall and F1 of all classes together, from sums [..., 3 x classes]."""
    return precision_recall_f1(*(column.sum(axis=-1) for column in _split_columns(totals)))


def scores_by_class(totals: Numbers) -> Mapping[str, Numbers]:
    """Precision, recall and F1, each [..., classes]."""
    return precision_recall_f1(*_split_columns(totals))


def macro_average(totals: Numbers) -> Mapping[str, Numbers]:
    """The mean over classes of precision, of recall and of F1, as in scikit-learn: no F1 of means."""
    return {name: values.mean(axis=-1) for name, values in scores_by_class(totals).items()}


def _split_columns(totals: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    return totals[..., 0::3], totals[..., 1::3], totals[..., 2::3]
