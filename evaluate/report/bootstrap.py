"""How far a score would move with other test examples, and whether two models differ by more than that.

The examples of a test set are drawn again, as many as there are, with replacement (Efron and Tibshirani
1993; for language processing Koehn, EMNLP 2004).  As a measure is a function of sums over examples
(metrics/metric.py), the sums of a thousand resamples are one product of matrices: how often each
resample has each example, times the examples' statistics.

This covers chance in the choice of *test examples* for the fine-tuned models at hand: a resample is the
same for all seeds, and what moves is the mean of their scores.  It says nothing about what other seeds,
training examples or pretraining runs would give; of seeds the sd over them tells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import Metric, Numbers

RESAMPLES: Final = 1000
LEVEL: Final = 0.95

_BLOCK: Final = 1 << 21
"""How many numbers of a matrix of resamples are in memory at once (16 MiB)."""

_ROUNDING: Final = 1e-12
"""Differences this close are equal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A score, the mean over seeds, and the bounds between which resampled scores lie."""

    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """By how much the first model's mean score is higher, the interval of that, and a two-sided p-value."""

    score: float
    low: float
    high: float
    p: float


def interval(
    metric: Metric,
    units: Sequence[Numbers],
    *,
    figure: str | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Interval:
    """The percentile interval of a model's score.

    Args:
        units: for each seed the statistics of the same examples, [M, K].
        figure: of the measure; without it the main one.
        level: the share of resampled scores that lie within.
        seed: of the resampling.

    Raises:
        ValueError: there are no examples, or not the same number for all seeds.
    """
    score = _means(metric, figure, _sums(units))
    low, high = _bounds(_means(metric, figure, _resampled(units, resamples, seed)), level)
    return Interval(float(score), low, high)


def paired(
    metric: Metric,
    first: Sequence[Numbers],
    second: Sequence[Numbers],
    *,
    figure: str | None = None,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
    seed: int = 0,
) -> Difference:
    """Two models on the same examples in the same order, each of one seed or more.

    The p-value is that of Berg-Kirkpatrick, Burkett and Klein (EMNLP 2012), made two-sided: how often a
    resampled difference is at least as far from the one found as that is from 0.  (Resampled differences
    scatter around the one found, not around 0.)  What was found counts as one more resample (Davison and
    Hinkley 1997, section 4.2.5), so that p is never 0, and 1 for a model and itself.  It is about these
    fine-tuned models, see above.

    Raises:
        ValueError: there are no examples, or not the same number for all seeds of both.
    """
    units = [*first, *second]

    def difference(sums: Numbers) -> Numbers:
        one, other = sums[..., : len(first), :], sums[..., len(first) :, :]
        return _means(metric, figure, one) - _means(metric, figure, other)

    found = float(difference(_sums(units)))
    drawn = difference(_resampled(units, resamples, seed))
    further = numpy.abs(drawn - found) >= abs(found) - _ROUNDING
    low, high = _bounds(drawn, level)
    return Difference(found, low, high, float((1 + further.sum()) / (1 + resamples)))


def _sums(units: Sequence[Numbers]) -> Numbers:
    """The statistics of each seed, [S, K]."""
    return numpy.stack([one.sum(axis=0) for one in units])


def _resampled(units: Sequence[Numbers], resamples: int, seed: int) -> Numbers:
    """The statistics of each seed in each resample, [R, S, K]."""
    examples = len(units[0])
    if not examples or any(len(one) != examples for one in units):
        sizes = ", ".join(str(len(one)) for one in units)
        raise InvalidValueError(
            f"the same examples are needed for all seeds and models, at least one: there are {sizes}"
        )
    side_by_side = numpy.concatenate(units, axis=1)
    random = numpy.random.default_rng(seed)
    at_once = max(1, _BLOCK // examples)
    sums = [
        _times_drawn(random, min(at_once, resamples - done), examples) @ side_by_side
        for done in range(0, resamples, at_once)
    ]
    drawn: Numbers = numpy.concatenate(sums).reshape(resamples, len(units), -1)
    return drawn


def _times_drawn(random: numpy.random.Generator, resamples: int, examples: int) -> Numbers:
    """How often each resample has each example, [R, M]: a row is multinomial, faster drawn than by name."""
    drawn = random.integers(examples, size=(resamples, examples))
    drawn += examples * numpy.arange(resamples)[:, None]
    times = numpy.bincount(drawn.ravel(), minlength=resamples * examples)
    return times.reshape(resamples, examples).astype(numpy.float64)


def _means(metric: Metric, figure: str | None, sums: Numbers) -> Numbers:
    """The mean of a figure over seeds, from sums [..., S, K] to [...]."""
    scores = metric.figures(sums)[figure or metric.main]
    return numpy.asarray(scores.mean(axis=-1))


def _bounds(drawn: Numbers, level: float) -> tuple[float, float]:
    low, high = numpy.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
