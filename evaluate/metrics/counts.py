"""How many of each class are right, predicted and gold: what precision, recall and F1 are made of.

A row holds three numbers for each class, so that micro and macro averages come of the same sums.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy

from .metric import Numbers, f1

Labels = Iterable[str]


def statistics(classes: Sequence[str]) -> tuple[str, ...]:
    """What the numbers of a row are."""
    return tuple(f"{name}: {what}" for name in classes for what in ("correct", "predicted", "gold"))


def counts(classes: Sequence[str], examples: Sequence[tuple[Labels, Labels, Labels]]) -> Numbers:
    """A row an example, [N, 3 x classes], of its right, predicted and gold labels that are of the classes."""
    columns = {name: 3 * place for place, name in enumerate(classes)}
    rows = numpy.zeros((len(examples), 3 * len(classes)))
    for row, example in zip(rows, examples, strict=True):
        for kind, labels in enumerate(example):
            for label in labels:
                if label in columns:
                    row[columns[label] + kind] += 1
    return rows


def same(gold: Sequence[str], predicted: Sequence[str]) -> list[str]:
    """The labels that are right where they stand."""
    return [right for right, guess in zip(gold, predicted, strict=True) if right == guess]


def single(classes: Sequence[str], pairs: Iterable[tuple[str, str]]) -> Numbers:
    """A row for each gold and predicted class."""
    return counts(classes, [(same([gold], [guess]), [guess], [gold]) for gold, guess in pairs])


def micro(sums: Numbers) -> Mapping[str, Numbers]:
    """Precision, recall and F1 of all classes together, from sums [..., 3 x classes]."""
    return f1(*(part.sum(axis=-1) for part in _parts(sums)))


def by_class(sums: Numbers) -> Mapping[str, Numbers]:
    """Precision, recall and F1, each [..., classes]."""
    return f1(*_parts(sums))


def macro(sums: Numbers) -> Mapping[str, Numbers]:
    """The mean over classes of precision, of recall and of F1, as in scikit-learn: no F1 of means."""
    return {name: figure.mean(axis=-1) for name, figure in by_class(sums).items()}


def _parts(sums: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    return sums[..., 0::3], sums[..., 1::3], sums[..., 2::3]
