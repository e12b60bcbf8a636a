"""A measure as sums over examples: what a score is made of, and how.

Precision, recall, F1, accuracy, Pearson's r and mean ranks all are functions of sums over the examples
of a test set.  So a result keeps a row of numbers for each example, and any resampling of the examples
(bootstrap.py) is a product of matrices: no measure has to be computed twice.
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
    """A measure.

    Attributes:
        name: what a report calls it: ``entity F1 (conlleval)``.
        main: which of its figures is the score of a task.
        statistics: what the K numbers of an example are.
        units: from N gold and N predicted examples to their statistics, [N, K]; where examples are
            counted together (the candidates of a question), M < N rows.
        figures: from sums [..., K] to figures, each [...], between 0 and 1 (a correlation from -1 on);
            0 where there is nothing to divide by.
    """

    name: str
    main_score: str
    stat_names: tuple[str, ...]
    compute_stats: Callable[[Sequence[Any], Sequence[Any]], Numbers]
    scores_from_totals: Callable[[Numbers], Mapping[str, Numbers]]

    def compute_scores(self, gold: Sequence[Any], predicted: Sequence[Any]) -> dict[str, float]:
        """All figures of a prediction.

        Raises:
            ValueError: not as many are predicted as there are.
        """
        return self.scores_from_stats(self.compute_stats(gold, predicted))

    def scores_from_stats(self, stats: Numbers) -> dict[str, float]:
        """All figures of examples."""
        return {name: float(value) for name, value in self.scores_from_totals(stats.sum(axis=0)).items()}


def align(gold: Sequence[Gold], predicted: Sequence[Predicted]) -> list[tuple[Gold, Predicted]]:
    """What is right and what was predicted, side by side.

    Raises:
        ValueError: not as many are predicted as there are.
    """
    if len(gold) != len(predicted):
        raise InvalidValueError(f"{len(predicted)} are predicted, but there are {len(gold)}")
    return list(zip(gold, predicted, strict=True))


def make_stats_array(rows: Iterable[Sequence[float]], stat_names: Sequence[str]) -> Numbers:
    """Rows of statistics as an array, [N, K] for no rows too."""
    return numpy.array(list(rows), dtype=numpy.float64).reshape(-1, len(stat_names))


def ratio(numerator: Numbers, denominator: Numbers) -> Numbers:
    """``part / whole``, and 0 where there is no whole."""
    return numpy.divide(
        numerator, denominator, out=numpy.zeros_like(numerator, dtype=numpy.float64), where=denominator != 0
    )


def precision_recall_f1(correct: Numbers, predicted: Numbers, gold: Numbers) -> Mapping[str, Numbers]:
    """Precision, recall and F1."""
    return {
        "precision": ratio(correct, predicted),
        "recall": ratio(correct, gold),
        "F1": ratio(2 * correct, predicted + gold),
    }
