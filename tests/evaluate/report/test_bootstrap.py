"""The bootstrap: exact properties, and intervals and p-values against theory."""

from __future__ import annotations

import tracemalloc
from statistics import NormalDist

import numpy
import pytest

from bioshards.evaluate.metrics.metric import Numbers
from bioshards.evaluate.metrics.tags import entity_f1
from bioshards.evaluate.metrics.text_metrics import accuracy
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.bootstrap import bootstrap_interval, paired_bootstrap

ACCURACY = accuracy(("0", "1"))


def draw_stats(rate: float, examples: int, seed: int) -> Numbers:
    """Draw per-example statistics of a model with this accuracy."""
    is_correct = numpy.random.default_rng(seed).random(examples) < rate
    return ACCURACY.compute_stats(["1"] * examples, ["1" if correct else "0" for correct in is_correct])


def test_interval_of_accuracy_equals_the_normal_approximation() -> None:
    """The interval of 2000 examples with accuracy 0.7 is 1.96 standard errors wide on each side."""
    stats = draw_stats(0.7, 2000, 1)
    interval = bootstrap_interval(ACCURACY, [stats], resamples=4000)
    assert interval.score == ACCURACY.scores_from_stats(stats)["accuracy"]
    narrow = bootstrap_interval(ACCURACY, [stats], resamples=4000, level=0.5)
    standard_error = numpy.sqrt(interval.score * (1 - interval.score) / 2000)
    for bounds, share in ((interval, 0.975), (narrow, 0.75)):
        error = NormalDist().inv_cdf(share) * standard_error
        assert [bounds.low, bounds.high] == pytest.approx(
            [interval.score - error, interval.score + error], abs=0.0015
        )


def test_resample_totals_are_sums_of_drawn_examples() -> None:
    """Each resample draws the same examples for all seeds."""
    stats = [numpy.random.default_rng(seed).random((50, 4)) for seed in range(3)]
    totals = bootstrap._resample_totals(stats, 7, seed=5)
    drawn_indices = numpy.random.default_rng(5).integers(50, size=(7, 50))
    for resample, examples in enumerate(drawn_indices):
        for seed, seed_stats in enumerate(stats):
            numpy.testing.assert_allclose(totals[resample, seed], seed_stats[examples].sum(axis=0))


def test_interval_does_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    stats = [draw_stats(0.6, 300, seed) for seed in range(2)]
    expected = bootstrap_interval(ACCURACY, stats)
    for block in (1, 1000, 300 * 999):
        monkeypatch.setattr(bootstrap, "_BLOCK_SIZE", block)
        assert bootstrap_interval(ACCURACY, stats) == expected


def test_interval_is_determined_by_the_seed() -> None:
    stats = [draw_stats(0.6, 100, 1)]
    assert bootstrap_interval(ACCURACY, stats) == bootstrap_interval(ACCURACY, stats)
    assert bootstrap_interval(ACCURACY, stats) != bootstrap_interval(ACCURACY, stats, seed=1)


def test_score_of_several_seeds_is_their_mean() -> None:
    stats = [draw_stats(rate, 400, seed) for seed, rate in enumerate((0.5, 0.6, 0.9))]
    interval = bootstrap_interval(ACCURACY, stats)
    assert interval.score == pytest.approx(
        numpy.mean([ACCURACY.scores_from_stats(seed_stats)["accuracy"] for seed_stats in stats])
    )
    single_seed, repeated_seed = (bootstrap_interval(ACCURACY, stats[:1] * count) for count in (1, 3))
    assert (single_seed.low, single_seed.high) == pytest.approx((repeated_seed.low, repeated_seed.high))


def test_interval_of_another_score() -> None:
    stats = [draw_stats(0.6, 100, 1)]
    assert (
        bootstrap_interval(ACCURACY, stats, score_name="macro F1").score
        == ACCURACY.scores_from_stats(stats[0])["macro F1"]
    )


def test_model_does_not_differ_from_itself() -> None:
    stats = [draw_stats(0.6, 200, seed) for seed in range(3)]
    assert paired_bootstrap(ACCURACY, stats, stats) == bootstrap.PairedDifference(0, 0, 0, 1)
    assert paired_bootstrap(ACCURACY, stats, [stats[2], stats[0], stats[1]]).p_value == 1
    assert paired_bootstrap(ACCURACY, stats[:1], stats[:1] * 4).p_value == 1


def test_swapped_models_change_the_sign_only() -> None:
    first = [draw_stats(0.7, 200, seed) for seed in range(2)]
    second = [draw_stats(0.6, 200, seed) for seed in range(2, 5)]
    forward, backward = paired_bootstrap(ACCURACY, first, second), paired_bootstrap(ACCURACY, second, first)
    assert forward.score == pytest.approx(
        bootstrap_interval(ACCURACY, first).score - bootstrap_interval(ACCURACY, second).score
    )
    assert backward.score == pytest.approx(-forward.score)
    assert backward.p_value == forward.p_value
    assert forward.low < forward.score < forward.high
    assert -backward.high == pytest.approx(forward.low, abs=0.01)


def test_p_value_equals_a_z_test() -> None:
    """The mean difference of 3000 examples is nearly normal: p equals that of a two-sided z-test."""
    for seed, rate in enumerate((0.60, 0.61, 0.62)):
        first, second = draw_stats(rate, 3000, 10 + seed), draw_stats(0.6, 3000, 20 + seed)
        difference = paired_bootstrap(ACCURACY, [first], [second], resamples=4000)
        correct, other_correct = (stats.reshape(-1, 2, 3)[..., 0].sum(axis=1) for stats in (first, second))
        differences = correct - other_correct
        z = differences.mean() / (differences.std() / numpy.sqrt(3000))
        assert difference.score == pytest.approx(differences.mean())
        assert difference.p_value == pytest.approx(2 * NormalDist().cdf(-abs(z)), abs=0.03)


def test_difference_from_a_model_that_is_always_wrong_has_the_interval_of_the_other() -> None:
    """Both are of the same resamples, those of seed 0."""
    stats = draw_stats(0.6, 200, 1)
    difference = paired_bootstrap(ACCURACY, [stats], [draw_stats(0, 200, 2)])
    interval = bootstrap_interval(ACCURACY, [stats])
    assert (difference.score, difference.low, difference.high) == pytest.approx(interval)


def test_p_value_is_never_0() -> None:
    difference = paired_bootstrap(ACCURACY, [draw_stats(1, 100, 1)], [draw_stats(0, 100, 1)])
    assert (difference.score, difference.low, difference.high, difference.p_value) == (1, 1, 1, 1 / 1001)


def test_unequal_or_empty_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="there are 10, 11"):
        paired_bootstrap(ACCURACY, [draw_stats(0.5, 10, 1)], [draw_stats(0.5, 11, 1)])
    with pytest.raises(ValueError, match="at least one: there are 0"):
        bootstrap_interval(ACCURACY, [draw_stats(0.5, 0, 1)])


def test_memory_of_a_large_test_set_is_bounded() -> None:
    """A matrix of 1000 resamples of 16,000 sentences would take 128 MB."""
    metric = entity_f1()
    stats = [numpy.random.default_rng(seed).integers(0, 3, (16_000, 6)).astype(float) for seed in range(5)]
    tracemalloc.start()
    interval = bootstrap_interval(metric, stats)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert interval.low < interval.score < interval.high
    assert peak < 80_000_000
