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
CONFIDENCE_LEVEL: Final = 0.95

_BLOCK_SIZE: Final = 1 << 21
"""How many numbers of a matrix of resamples are in memory at once (16 MiB)."""

_TOLERANCE: Final = 1e-12
"""Differences this close are equal."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A score, the mean over seeds, and the bounds between which resampled scores lie."""

    score: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """By how much the first model's mean score is higher, the interval of that, and a two-sided p-value."""

    score: float
    low: float
    high: float
    p_value: float


def bootstrap_interval(
    metric: Metric,
    stats: Sequence[Numbers],
    *,
    score_name: str | None = None,
    resamples: int = RESAMPLES,
    level: float = CONFIDENCE_LEVEL,
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
    score = _mean_scores(metric, score_name, _sum_by_seed(stats))
    low, high = _percentile_bounds(
        _mean_scores(metric, score_name, _resample_totals(stats, resamples, seed)), level
    )
    return Interval(float(score), low, high)


def paired_bootstrap(
    metric: Metric,
    first: Sequence[Numbers],
    second: Sequence[Numbers],
    *,
    score_name: str | None = None,
    resamples: int = RESAMPLES,
    level: float = CONFIDENCE_LEVEL,
    seed: int = 0,
) -> PairedDifference:
    """Two models on the same examples in the same order, each of one seed or more.

    The p-value is that of Berg-Kirkpatrick, Burkett and Klein (EMNLP 2012), made two-sided: how often a
    resampled difference is at least as far from the one found as that is from 0.  (Resampled differences
    scatter around the one found, not around 0.)  What was found counts as one more resample (Davison and
    Hinkley 1997, section 4.2.5), so that p is never 0, and 1 for a model and itself.  It is about these
    fine-tuned models, see above.

    Raises:
        ValueError: there are no examples, or not the same number for all seeds of both.
    """
    stats = [*first, *second]

    def compare_means(totals: Numbers) -> Numbers:
        first_totals, second_totals = totals[..., : len(first), :], totals[..., len(first) :, :]
        return _mean_scores(metric, score_name, first_totals) - _mean_scores(
            metric, score_name, second_totals
        )

    observed = float(compare_means(_sum_by_seed(stats)))
    resampled = compare_means(_resample_totals(stats, resamples, seed))
    is_further = numpy.abs(resampled - observed) >= abs(observed) - _TOLERANCE
    low, high = _percentile_bounds(resampled, level)
    return PairedDifference(observed, low, high, float((1 + is_further.sum()) / (1 + resamples)))


def _sum_by_seed(stats: Sequence[Numbers]) -> Numbers:
    """The statistics of each seed, [S, K]."""
    return numpy.stack([seed_stats.sum(axis=0) for seed_stats in stats])


def _resample_totals(stats: Sequence[Numbers], resamples: int, seed: int) -> Numbers:
    """The statistics of each seed in each resample, [R, S, K]."""
    num_examples = len(stats[0])
    if not num_examples or any(len(seed_stats) != num_examples for seed_stats in stats):
        sizes = ", ".join(str(len(seed_stats)) for seed_stats in stats)
        raise InvalidValueError(
            f"the same examples are needed for all seeds and models, at least one: there are {sizes}"
        )
    side_by_side = numpy.concatenate(stats, axis=1)
    rng = numpy.random.default_rng(seed)
    block_resamples = max(1, _BLOCK_SIZE // num_examples)
    totals = [
        _draw_counts(rng, min(block_resamples, resamples - start), num_examples) @ side_by_side
        for start in range(0, resamples, block_resamples)
    ]
    resampled: Numbers = numpy.concatenate(totals).reshape(resamples, len(stats), -1)
    return resampled


def _draw_counts(rng: numpy.random.Generator, resamples: int, num_examples: int) -> Numbers:
    """How often each resample has each example, [R, M]: a row is multinomial, faster drawn than by name."""
    indices = rng.integers(num_examples, size=(resamples, num_examples))
    indices += num_examples * numpy.arange(resamples)[:, None]
    counts = numpy.bincount(indices.ravel(), minlength=resamples * num_examples)
    return counts.reshape(resamples, num_examples).astype(numpy.float64)


def _mean_scores(metric: Metric, score_name: str | None, totals: Numbers) -> Numbers:
    """The mean of a figure over seeds, from sums [..., S, K] to [...]."""
    scores = metric.scores_from_totals(totals)[score_name or metric.main_score]
    return numpy.asarray(scores.mean(axis=-1))


def _percentile_bounds(resampled: Numbers, level: float) -> tuple[float, float]:
    low, high = numpy.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
