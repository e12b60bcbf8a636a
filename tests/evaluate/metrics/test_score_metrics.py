"""Pearson's r against SciPy, mean reciprocal rank against counting, and properties of every metric."""

from __future__ import annotations

import warnings

import numpy
import pytest

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.tags import entity_f1, word_f1
from bioshards.evaluate.metrics.text_metrics import (
    accuracy,
    bioasq_factoid,
    mean_reciprocal_rank,
    micro_f1,
    multilabel_f1,
    pearson,
    positive_f1,
    squad_f1,
    yes_no_f1,
)


def test_pearson_equals_scipy() -> None:
    from scipy.stats import pearsonr

    rng = numpy.random.default_rng(1)
    metric = pearson()
    for _ in range(1000):
        gold = rng.integers(0, 21, size=rng.integers(3, 30)) / 5
        predicted = gold * rng.normal() + rng.normal(size=len(gold)) * 10 ** rng.uniform(-4, 2)
        if len(set(gold)) > 1:
            expected = pearsonr(gold, predicted).statistic
            assert metric.compute_scores(gold.tolist(), predicted.tolist())["Pearson"] == pytest.approx(
                expected, abs=1e-7
            )


@pytest.mark.parametrize("slope", [1, -1, 1e-3, -250.0])
def test_linear_predictions_have_correlation_1(slope: float) -> None:
    gold = [0.0, 0.8, 2.2, 3.4, 4.0]
    correlation = pearson().compute_scores(gold, [slope * number + 2 for number in gold])["Pearson"]
    assert correlation == pytest.approx(numpy.sign(slope))
    assert abs(correlation) <= 1


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 3.7, 4.0, -2.3])
@pytest.mark.parametrize("size", [1, 2, 3, 20, 999])
def test_constant_predictions_have_correlation_0(constant: float, size: int) -> None:
    """The variance of a constant may round to a small positive number."""
    numbers = numpy.random.default_rng(size).uniform(0, 4, size).tolist()
    assert pearson().compute_scores(numbers, [constant] * size) == {"Pearson": 0}
    assert pearson().compute_scores([constant] * size, numbers) == {"Pearson": 0}


def test_non_finite_numbers_are_refused() -> None:
    for value in (numpy.nan, numpy.inf):
        with pytest.raises(ValueError, match="not a finite number"):
            pearson().compute_scores([1.0, 2.0], [1.0, value])
    with pytest.raises(ValueError, match="not a number"):
        mean_reciprocal_rank().compute_scores([("a", True)], [numpy.nan])


def test_reciprocal_ranks_by_hand() -> None:
    gold = [
        *(("first", relevant) for relevant in (False, True, True)),  # ranks 1, 3, 2: 1/2
        *(("none", False), ("none", False)),  # 0
        ("one", True),  # 1
        *(("tie", False), ("tie", True)),  # of equal scores the first ranks first: 1/2
        ("first", True),  # the same words again are another question: 1
    ]
    predicted = [0.9, 0.1, 0.5, 0.3, 0.2, 0.0, 0.4, 0.4, 0.1]
    metric = mean_reciprocal_rank()
    assert metric.compute_stats(gold, predicted)[:, 0].tolist() == [1 / 2, 0, 1, 1 / 2, 1]
    assert metric.compute_scores(gold, predicted) == {"MRR": 3 / 5}
    assert metric.compute_scores([], []) == {"MRR": 0}


def test_reciprocal_rank_equals_counting() -> None:
    """The rank of a candidate is 1 plus the number that score higher, or equal and precede it."""
    rng = numpy.random.default_rng(2)
    metric = mean_reciprocal_rank()
    for _ in range(500):
        sizes = rng.integers(1, 8, size=rng.integers(1, 5))
        gold = [
            (str(index), bool(rng.random() < 0.3)) for index, size in enumerate(sizes) for _ in range(size)
        ]
        scores = (rng.integers(0, 5, size=len(gold)) / 4).tolist()
        best = dict.fromkeys((question for question, _ in gold), 0.0)
        for index, (question, relevant) in enumerate(gold):
            better = sum(
                other_question == question
                and (
                    scores[other_index] > scores[index]
                    or (scores[other_index] == scores[index] and other_index < index)
                )
                for other_index, (other_question, _) in enumerate(gold)
            )
            if relevant:
                best[question] = max(best[question], 1 / (1 + better))
        assert metric.compute_scores(gold, scores)["MRR"] == pytest.approx(sum(best.values()) / len(best))


METRICS = [
    entity_f1(),
    word_f1(("PAR", "INT")),
    micro_f1(("a", "b", "c"), "a"),
    micro_f1(("a", "b", "c"), None),
    positive_f1("a"),
    accuracy(("a", "b", "c")),
    yes_no_f1(),
    multilabel_f1(("a", "b")),
    pearson(),
    squad_f1(),
    bioasq_factoid(),
    mean_reciprocal_rank(),
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_scores_from_totals_are_vectorized(metric: Metric) -> None:
    rng = numpy.random.default_rng(3)
    totals = rng.integers(0, 5, size=(6, 4, len(metric.stat_names))).astype(float)
    totals[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = metric.scores_from_totals(totals)
        assert metric.main_score in scores
        for name, values in scores.items():
            assert values.shape == (6, 4)
            assert (values[0] == 0).all()
            for index in numpy.ndindex(6, 4):
                expected = metric.scores_from_totals(totals[index])[name]
                assert numpy.shape(expected) == ()
                numpy.testing.assert_allclose(values[index], expected, rtol=1e-12)
