"""Pearson's correlation of predicted and annotated scores (BIOSSES)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import Metric, Numbers, align, make_stats_array, ratio

_MIN_RELATIVE_VARIANCE: Final = 1e-12
"""Variances below this fraction of the mean square are rounding errors of a constant."""


def pearson() -> Metric:
    """Return Pearson's r, from -1 to 1; 0 if either side is constant."""
    stat_names = ("n", "x", "y", "xx", "yy", "xy")

    def compute_stats(gold: Sequence[float], predicted: Sequence[float]) -> Numbers:
        pairs = align(gold, predicted)
        if not all(math.isfinite(value) for pair in pairs for value in pair):
            raise InvalidValueError("a score is not a finite number: has the training diverged?")
        return make_stats_array(((1, x, y, x * x, y * y, x * y) for x, y in pairs), stat_names)

    return Metric("Pearson's r", "Pearson", stat_names, compute_stats, _scores_from_totals)


def _scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
    n, x, y, xx, yy, xy = (totals[..., index] for index in range(6))
    variances = _scaled_variance(n, x, xx) * _scaled_variance(n, y, yy)
    return {"Pearson": numpy.clip(ratio(n * xy - x * y, numpy.sqrt(variances)), -1, 1)}


def _scaled_variance(n: Numbers, total: Numbers, squares: Numbers) -> Numbers:
    """Return the variance times n squared."""
    variance = n * squares - total * total
    return numpy.where(variance > _MIN_RELATIVE_VARIANCE * n * squares, variance, 0)
