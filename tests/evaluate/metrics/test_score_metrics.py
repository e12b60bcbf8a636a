"""Pearson's r against scipy, mean reciprocal rank by hand and by counting, and what holds of any measure."""

from __future__ import annotations

import warnings

import numpy
import pytest
from scipy.stats import pearsonr

from bioshards.evaluate.metrics.correlation import pearson
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.multilabel import multilabel_f1
from bioshards.evaluate.metrics.qa import bioasq_factoid, squad_f1
from bioshards.evaluate.metrics.ranking import mean_reciprocal_rank
from bioshards.evaluate.metrics.single_label import accuracy, micro_f1, positive_f1, yes_no_f1
from bioshards.evaluate.metrics.tag_f1 import entity_f1, word_f1


def test_pearson_is_scipys() -> None:
    random = numpy.random.default_rng(1)
    metric = pearson()
    for _ in range(1000):
        gold = random.integers(0, 21, size=random.integers(3, 30)) / 5
        predicted = gold * random.normal() + random.normal(size=len(gold)) * 10 ** random.uniform(-4, 2)
        if len(set(gold)) > 1:
            right = pearsonr(gold, predicted).statistic
            assert metric.compute_scores(gold.tolist(), predicted.tolist())["Pearson"] == pytest.approx(
                right, abs=1e-7
            )


@pytest.mark.parametrize("slope", [1, -1, 1e-3, -250.0])
def test_numbers_on_a_line_have_a_correlation_of_1(slope: float) -> None:
    gold = [0.0, 0.8, 2.2, 3.4, 4.0]
    found = pearson().compute_scores(gold, [slope * number + 2 for number in gold])["Pearson"]
    assert found == pytest.approx(numpy.sign(slope))
    assert abs(found) <= 1


@pytest.mark.parametrize("constant", [0.0, 0.1, 1 / 3, 3.7, 4.0, -2.3])
@pytest.mark.parametrize("size", [1, 2, 3, 20, 999])
def test_a_constant_correlates_with_nothing(constant: float, size: int) -> None:
    """Whatever rounding makes of its variance."""
    numbers = numpy.random.default_rng(size).uniform(0, 4, size).tolist()
    assert pearson().compute_scores(numbers, [constant] * size) == {"Pearson": 0}
    assert pearson().compute_scores([constant] * size, numbers) == {"Pearson": 0}


def test_numbers_have_to_be_finite() -> None:
    for wrong in (numpy.nan, numpy.inf):
        with pytest.raises(ValueError, match="not a finite number"):
            pearson().compute_scores([1.0, 2.0], [1.0, wrong])
    with pytest.raises(ValueError, match="not a number"):
        mean_reciprocal_rank().compute_scores([("a", True)], [numpy.nan])


def test_reciprocal_ranks_by_hand() -> None:
    gold = [
        *(("first", relevant) for relevant in (False, True, True)),  # ranks 1, 3, 2: 1/2
        *(("none", False), ("none", False)),  # 0
        ("one", True),  # 1
        *(("tie", False), ("tie", True)),  # the first of equals first: 1/2
        ("first", True),  # the same words again are another question: 1
    ]
    predicted = [0.9, 0.1, 0.5, 0.3, 0.2, 0.0, 0.4, 0.4, 0.1]
    metric = mean_reciprocal_rank()
    assert metric.compute_stats(gold, predicted)[:, 0].tolist() == [1 / 2, 0, 1, 1 / 2, 1]
    assert metric.compute_scores(gold, predicted) == {"MRR": 3 / 5}
    assert metric.compute_scores([], []) == {"MRR": 0}


def test_ranking_is_that_of_counting_what_stands_before() -> None:
    """The rank of a candidate is 1 and how many score higher, or as high and stand before it."""
    random = numpy.random.default_rng(2)
    metric = mean_reciprocal_rank()
    for _ in range(500):
        sizes = random.integers(1, 8, size=random.integers(1, 5))
        gold = [
            (str(place), bool(random.random() < 0.3)) for place, size in enumerate(sizes) for _ in range(size)
        ]
        scores = (random.integers(0, 5, size=len(gold)) / 4).tolist()
        best = dict.fromkeys((question for question, _ in gold), 0.0)
        for place, (question, relevant) in enumerate(gold):
            before = sum(
                other == question
                and (scores[i] > scores[place] or (scores[i] == scores[place] and i < place))
                for i, (other, _) in enumerate(gold)
            )
            if relevant:
                best[question] = max(best[question], 1 / (1 + before))
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
def test_figures_of_many_sums_at_once_are_those_of_each(metric: Metric) -> None:
    random = numpy.random.default_rng(3)
    sums = random.integers(0, 5, size=(6, 4, len(metric.stat_names))).astype(float)
    sums[0] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metric.scores_from_totals(sums)
        assert metric.main_score in found
        for name, figure in found.items():
            assert figure.shape == (6, 4)
            assert (figure[0] == 0).all()
            for place in numpy.ndindex(6, 4):
                alone = metric.scores_from_totals(sums[place])[name]
                assert numpy.shape(alone) == ()
                numpy.testing.assert_allclose(figure[place], alone, rtol=1e-12)
