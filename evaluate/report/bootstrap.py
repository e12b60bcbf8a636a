"""Bootstrap confidence intervals of scores, and paired significance of differences.

The examples of a test set are resampled with replacement (Efron and Tibshirani 1993; for NLP Koehn, EMNLP
2004). Scores are functions of sums over examples (metrics/metric.py), so the sums of all resamples are one
matrix product: counts [R, M] times statistics [M, K].

Intervals cover the choice of *test examples* for the given fine-tuned models. All seeds share a resample, and
the statistic is their mean score. The standard deviation over seeds covers the choice of seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import Metric, Numbers

RESAMPLES: Final = 1000
CONFIDENCE_LEVEL: Final = 0.95

_BLOCK_SIZE: Final = 1 << 21
"""Numbers of a resampling matrix in memory at once (16 MiB)."""

_TOLERANCE: Final = 1e-12
"""Differences within this tolerance are equal."""


class Interval(NamedTuple):
    """Mean score over seeds, with the bounds of its interval."""

    score: float
    low: float
    high: float


class PairedDifference(NamedTuple):
    """Difference of two models' mean scores (first minus second), its interval, and a two-sided p-value."""

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
    """Return the percentile interval of a model's score.

    Args:
        stats: float64[M, K] for each seed, statistics of the same examples.
        score_name: score of the metric; default: its main score.
        level: confidence level.
        seed: seed of the resampling.

    Raises:
        InvalidValueError: there are no examples, or their number differs between seeds.
    """
    score = _mean_scores(metric, score_name, _sum_by_seed(stats))
    resampled = _mean_scores(metric, score_name, _resample_totals(stats, resamples, seed))
    return Interval(float(score), *_percentile_bounds(resampled, level))


def paired_bootstrap(
    metric: Metric,
    first: Sequence[Numbers],
    second: Sequence[Numbers],
    *,
    score_name: str | None = None,
    resamples: int = RESAMPLES,
) -> PairedDifference:
    """Compare two models on the same examples in the same order, each with one seed or more.

    The p-value is that of Berg-Kirkpatrick, Burkett and Klein (EMNLP 2012), two-sided: the fraction of
    resampled differences that are at least as far from the observed one as that is from 0. The observed
    difference counts as a resample (Davison and Hinkley 1997, section 4.2.5), so p is above 0, and 1 for
    equal models.

    Raises:
        InvalidValueError: there are no examples, or their number differs between seeds or models.
    """
    stats = [*first, *second]

    def compare_means(totals: Numbers) -> Numbers:
        parts = (totals[..., : len(first), :], totals[..., len(first) :, :])
        first_mean, second_mean = (_mean_scores(metric, score_name, part) for part in parts)
        return first_mean - second_mean

    observed = float(compare_means(_sum_by_seed(stats)))
    resampled = compare_means(_resample_totals(stats, resamples, seed=0))
    is_further = numpy.abs(resampled - observed) >= abs(observed) - _TOLERANCE
    p_value = float((1 + is_further.sum()) / (1 + resamples))
    return PairedDifference(observed, *_percentile_bounds(resampled, CONFIDENCE_LEVEL), p_value)


def _sum_by_seed(stats: Sequence[Numbers]) -> Numbers:
    """Sum the statistics of each seed, [S, K]."""
    return numpy.stack([seed_stats.sum(axis=0) for seed_stats in stats])


def _resample_totals(stats: Sequence[Numbers], resamples: int, seed: int) -> Numbers:
    """Return the sums of each resample and seed, [R, S, K]."""
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
    """Return how often each resample draws each example, [R, M]; rows are multinomial."""
    indices = rng.integers(num_examples, size=(resamples, num_examples))
    indices += num_examples * numpy.arange(resamples)[:, None]
    counts = numpy.bincount(indices.ravel(), minlength=resamples * num_examples)
    return counts.reshape(resamples, num_examples).astype(numpy.float64)


def _mean_scores(metric: Metric, score_name: str | None, totals: Numbers) -> Numbers:
    """Return the mean of a score over seeds, from sums [..., S, K] to [...]."""
    scores = metric.scores_from_totals(totals)[score_name or metric.main_score]
    return numpy.asarray(scores.mean(axis=-1))


def _percentile_bounds(resampled: Numbers, level: float) -> tuple[float, float]:
    low, high = numpy.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
