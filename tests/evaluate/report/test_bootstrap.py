"""Bootstrap: what holds exactly, and intervals and p-values where theory or other ways give them."""

from __future__ import annotations

import itertools
import tracemalloc
from statistics import NormalDist

import numpy
import pytest

from bioshards.evaluate.metrics.metric import Numbers
from bioshards.evaluate.metrics.single_label import accuracy, micro_f1
from bioshards.evaluate.metrics.tag_f1 import entity_f1
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.bootstrap import bootstrap_interval, paired_bootstrap

ACCURACY = accuracy(("0", "1"))


def answers(rate: float, examples: int, seed: int) -> Numbers:
    """Units of accuracy where a share of answers is right."""
    right = numpy.random.default_rng(seed).random(examples) < rate
    return ACCURACY.compute_stats(["1"] * examples, ["1" if one else "0" for one in right])


def test_an_interval_is_that_of_a_share() -> None:
    """Of 2000 examples with 70 % right: 0.7 and 1.96 standard errors, within what 4000 resamples tell."""
    units = answers(0.7, 2000, 1)
    found = bootstrap_interval(ACCURACY, [units], resamples=4000)
    assert found.score == ACCURACY.scores_from_stats(units)["accuracy"]
    error = NormalDist().inv_cdf(0.975) * numpy.sqrt(found.score * (1 - found.score) / 2000)
    assert [found.low, found.high] == pytest.approx([found.score - error, found.score + error], abs=0.002)
    narrow = bootstrap_interval(ACCURACY, [units], resamples=4000, level=0.5)
    assert found.low < narrow.low < found.score < narrow.high < found.high


def test_every_resample_of_three_examples_comes_as_often_as_it_should() -> None:
    """All 27 draws worked out, with a measure that is no mean."""
    metric = micro_f1(("a", "b", "c"), "a")
    units = metric.compute_stats(["b", "a", "c"], ["b", "b", "a"])
    exact = [
        metric.scores_from_stats(units[list(draw)])["F1"] for draw in itertools.product(range(3), repeat=3)
    ]
    drawn = metric.scores_from_totals(bootstrap._resample_totals([units], 20_000, seed=1))["F1"][:, 0]
    assert {round(score, 9) for score in drawn} == {round(score, 9) for score in exact}
    for score in set(exact):
        share = numpy.isclose(drawn, score).mean()
        assert share == pytest.approx(numpy.isclose(exact, score).mean(), abs=0.02)


def test_resampled_sums_are_those_of_the_drawn_examples() -> None:
    """Whatever the size of a block, every seed's examples are drawn alike."""
    units = [numpy.random.default_rng(seed).random((50, 4)) for seed in range(3)]
    sums = bootstrap._resample_totals(units, 7, seed=5)
    drawn = numpy.random.default_rng(5).integers(50, size=(7, 50))
    for resample, examples in enumerate(drawn):
        for seed, one in enumerate(units):
            numpy.testing.assert_allclose(sums[resample, seed], one[examples].sum(axis=0))


def test_blocks_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    units = [answers(0.6, 300, seed) for seed in range(2)]
    whole = bootstrap_interval(ACCURACY, units)
    for block in (1, 1000, 300 * 999):
        monkeypatch.setattr(bootstrap, "_BLOCK_SIZE", block)
        assert bootstrap_interval(ACCURACY, units) == whole


def test_it_is_the_same_again_and_another_with_another_seed() -> None:
    units = [answers(0.6, 100, 1)]
    assert bootstrap_interval(ACCURACY, units) == bootstrap_interval(ACCURACY, units)
    assert bootstrap_interval(ACCURACY, units) != bootstrap_interval(ACCURACY, units, seed=1)


def test_several_seeds_are_a_mean_of_scores() -> None:
    units = [answers(rate, 400, seed) for seed, rate in enumerate((0.5, 0.6, 0.9))]
    found = bootstrap_interval(ACCURACY, units)
    assert found.score == pytest.approx(
        numpy.mean([ACCURACY.scores_from_stats(one)["accuracy"] for one in units])
    )
    once, thrice = bootstrap_interval(ACCURACY, units[:1]), bootstrap_interval(ACCURACY, units[:1] * 3)
    assert (once.low, once.high) == pytest.approx((thrice.low, thrice.high))


def test_another_figure() -> None:
    units = [answers(0.6, 100, 1)]
    assert (
        bootstrap_interval(ACCURACY, units, score_name="macro F1").score
        == ACCURACY.scores_from_stats(units[0])["macro F1"]
    )


def test_a_model_does_not_differ_from_itself() -> None:
    units = [answers(0.6, 200, seed) for seed in range(3)]
    assert paired_bootstrap(ACCURACY, units, units) == bootstrap.PairedDifference(0, 0, 0, 1)
    assert paired_bootstrap(ACCURACY, units, [units[2], units[0], units[1]]).p_value == 1
    assert paired_bootstrap(ACCURACY, units[:1], units[:1] * 4).p_value == 1


def test_the_other_way_round_only_the_sign_changes() -> None:
    first = [answers(0.7, 200, seed) for seed in range(2)]
    second = [answers(0.6, 200, seed) for seed in range(2, 5)]
    one, other = paired_bootstrap(ACCURACY, first, second), paired_bootstrap(ACCURACY, second, first)
    assert one.score == pytest.approx(
        bootstrap_interval(ACCURACY, first).score - bootstrap_interval(ACCURACY, second).score
    )
    assert other.score == pytest.approx(-one.score)
    assert other.p_value == one.p_value
    assert one.low < one.score < one.high
    assert -other.high == pytest.approx(one.low, abs=0.01)


def test_p_is_that_of_a_normal_difference() -> None:
    """Of 3000 examples the mean difference is nearly normal; p is that of a two-sided z-test."""
    for seed, rate in enumerate((0.60, 0.61, 0.62)):
        first, second = answers(rate, 3000, 10 + seed), answers(0.6, 3000, 20 + seed)
        found = paired_bootstrap(ACCURACY, [first], [second], resamples=4000)
        differences = first.reshape(-1, 2, 3)[..., 0].sum(axis=1) - second.reshape(-1, 2, 3)[..., 0].sum(
            axis=1
        )
        z = differences.mean() / (differences.std() / numpy.sqrt(3000))
        assert found.score == pytest.approx(differences.mean())
        assert found.p_value == pytest.approx(2 * NormalDist().cdf(-abs(z)), abs=0.03)


def test_p_is_right_where_there_is_no_difference() -> None:
    """Of two models as good as each other, one in ten pairs has p below 0.1, or hardly more."""
    pairs = [([answers(0.7, 150, 2 * at)], [answers(0.7, 150, 2 * at + 1)]) for at in range(200)]
    low = sum(paired_bootstrap(ACCURACY, *pair, resamples=300).p_value <= 0.1 for pair in pairs)
    assert 6 <= low <= 36


def test_better_on_every_example_is_never_p_of_0() -> None:
    found = paired_bootstrap(ACCURACY, [answers(1, 100, 1)], [answers(0, 100, 1)])
    assert (found.score, found.low, found.high, found.p_value) == (1, 1, 1, 1 / 1001)


def test_the_same_examples_are_needed() -> None:
    with pytest.raises(ValueError, match="there are 10, 11"):
        paired_bootstrap(ACCURACY, [answers(0.5, 10, 1)], [answers(0.5, 11, 1)])
    with pytest.raises(ValueError, match="at least one: there are 0"):
        bootstrap_interval(ACCURACY, [answers(0.5, 0, 1)])


def test_a_large_test_set_takes_little_memory() -> None:
    """16,000 sentences, five seeds, 1000 resamples: a matrix of all would take 128 MB."""
    metric = entity_f1()
    units = [numpy.random.default_rng(seed).integers(0, 3, (16_000, 6)).astype(float) for seed in range(5)]
    tracemalloc.start()
    found = bootstrap_interval(metric, units)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.low < found.score < found.high
    assert peak < 80_000_000
