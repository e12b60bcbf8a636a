"""How closely predicted numbers follow those given by people (BIOSSES); gold and predicted are numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy

from bioshards.corpus.errors import InvalidValueError

from .metric import Metric, Numbers, aligned, ratio, table

_CONSTANT: Final = 1e-12
"""A variance below this share of the mean square is what rounding leaves of a constant."""


def pearson() -> Metric:
    """Pearson's r, from -1 to 1; 0 where either side is constant, where it is not defined."""
    statistics = ("n", "x", "y", "xx", "yy", "xy")

    def units(gold: Sequence[float], predicted: Sequence[float]) -> Numbers:
        pairs = aligned(gold, predicted)
        if not all(math.isfinite(number) for pair in pairs for number in pair):
            raise InvalidValueError("a score is not a finite number: has the training diverged?")
        return table(((1, x, y, x * x, y * y, x * y) for x, y in pairs), statistics)

    return Metric("Pearson's r", "Pearson", statistics, units, _figures)


def _figures(sums: Numbers) -> Mapping[str, Numbers]:
    n, x, y, xx, yy, xy = (sums[..., place] for place in range(6))
    variances = _variance(n, x, xx) * _variance(n, y, yy)
    return {"Pearson": numpy.clip(ratio(n * xy - x * y, numpy.sqrt(variances)), -1, 1)}


def _variance(n: Numbers, total: Numbers, squares: Numbers) -> Numbers:
    """n squared times the variance."""
    variance = n * squares - total * total
    return numpy.where(variance > _CONSTANT * n * squares, variance, 0)
