"""Measures of classes and of sets of labels against scikit-learn, on random cases and on real answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import pytest
from sklearn.metrics import precision_recall_fscore_support

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.multilabel import multilabel_f1
from bioshards.evaluate.metrics.single_label import accuracy, micro_f1, positive_f1, yes_no_f1
from tests.support.evaluate.metric_oracles import (
    LabelCodes,
    micro_scores,
    one_hot,
    random_classifications,
    scores_by_class,
)
from tests.support.real_data import DATA, needs_data

CHEMPROT = ("false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")
HALLMARKS = tuple(f"hallmark {number}" for number in range(10))
NAMES = ("precision", "recall", "F1")


def named(codes: LabelCodes, labels: Sequence[str]) -> list[str]:
    return [labels[code] for code in codes]


def test_micro_f1_as_scikit_learn_is_called_for_it() -> None:
    metric = micro_f1(CHEMPROT, "false")
    for case in zip(*random_classifications(1, 6, (20, 30)), strict=True):
        gold, predicted = (named(codes, CHEMPROT) for codes in case)
        figures = metric.compute_scores(gold, predicted)
        for average, names in (("micro", NAMES), ("macro", (None, None, "macro F1"))):
            right = precision_recall_fscore_support(
                gold, predicted, labels=CHEMPROT[1:], average=average, zero_division=0
            )
            for name, figure in zip(names, right, strict=False):
                assert name is None or figures[name] == pytest.approx(figure)


@pytest.mark.parametrize("negative", ["false", None])
def test_micro_f1_leaves_the_negative_class_out(negative: str | None) -> None:
    gold, predicted = random_classifications(2, 6, (1000, 12))
    counted = slice(1 if negative else 0, None)
    sides = [one_hot(side, 6)[..., counted] for side in (gold, predicted)]
    right, each = micro_scores(*sides), scores_by_class(*sides)
    metric = micro_f1(CHEMPROT, negative)
    for place, case in enumerate(zip(gold, predicted, strict=True)):
        figures = metric.compute_scores(*(named(codes, CHEMPROT) for codes in case))
        assert [figures[name] for name in NAMES] == pytest.approx(right[:, place])
        assert figures["macro F1"] == pytest.approx(each[2, place].mean())
        if negative is None:
            assert figures["F1"] == pytest.approx((case[0] == case[1]).mean())


def test_positive_f1_is_that_of_one_class() -> None:
    gold, predicted = random_classifications(3, 2, (1000, 12))
    right = micro_scores(gold == 1, predicted == 1)
    metric = positive_f1("1")
    for place, case in enumerate(zip(gold, predicted, strict=True)):
        figures = metric.compute_scores(*(named(codes, "01") for codes in case))
        assert [figures[name] for name in NAMES] == pytest.approx(right[:, place])


def test_accuracy() -> None:
    labels = ("yes", "no", "maybe")
    gold, predicted = random_classifications(4, 3, (1000, 12))
    each = scores_by_class(one_hot(gold, 3), one_hot(predicted, 3))
    metric = accuracy(labels)
    for place, case in enumerate(zip(gold, predicted, strict=True)):
        figures = metric.compute_scores(*(named(codes, labels) for codes in case))
        assert figures["accuracy"] == pytest.approx((case[0] == case[1]).mean())
        assert figures["macro F1"] == pytest.approx(each[2, place].mean())


def test_yes_and_no_for_themselves() -> None:
    answers = ("yes", "no")
    gold, predicted = random_classifications(5, 2, (1000, 8))
    each = scores_by_class(one_hot(gold, 2), one_hot(predicted, 2))
    metric = yes_no_f1()
    for place, case in enumerate(zip(gold, predicted, strict=True)):
        figures = metric.compute_scores(*(named(codes, answers) for codes in case))
        for column, answer in enumerate(answers):
            assert [figures[f"{answer} {name}"] for name in NAMES] == pytest.approx(each[:, place, column])
        assert figures["macro F1"] == pytest.approx(each[2, place].mean())
        assert figures["accuracy"] == pytest.approx((case[0] == case[1]).mean())


def test_multilabel_f1_is_scikit_learns_by_label_and_by_abstract() -> None:
    """BLUE's: the mean precision and recall of abstracts with labels, and the F1 of these two."""
    random = numpy.random.default_rng(6)
    gold = random.random((1000, 5, 10)) < 0.15
    predicted = gold ^ (random.random(gold.shape) < 0.1)
    right = micro_scores(gold, predicted)
    by_abstract = micro_scores(gold.reshape(-1, 10), predicted.reshape(-1, 10)).reshape(3, 1000, 5)
    metric = multilabel_f1(HALLMARKS)
    for place, case in enumerate(zip(gold, predicted, strict=True)):
        figures = metric.compute_scores(
            *([frozenset(itertools.compress(HALLMARKS, row)) for row in side] for side in case)
        )
        assert [figures[name] for name in NAMES] == pytest.approx(right[:, place])
        labelled = case[0].any(axis=1)
        precision, recall = (
            by_abstract[kind, place, labelled].mean() if labelled.any() else 0 for kind in range(2)
        )
        assert figures["example precision"] == pytest.approx(precision)
        assert figures["example recall"] == pytest.approx(recall)
        both = precision + recall
        assert figures["example F1"] == pytest.approx(2 * precision * recall / both if both else 0)


def test_example_f1_by_hand() -> None:
    a, b, c = HALLMARKS[:3]
    gold = [frozenset({a}), frozenset({a, b}), frozenset[str](), frozenset({c})]
    predicted = [frozenset({a, b}), frozenset({a}), frozenset({c}), frozenset[str]()]
    figures = multilabel_f1(HALLMARKS).compute_scores(gold, predicted)
    assert figures["example precision"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert figures["example recall"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert figures["example F1"] == pytest.approx(1 / 2)
    assert (figures["precision"], figures["recall"]) == (2 / 4, 2 / 4)


@pytest.mark.parametrize("make", [lambda: micro_f1(("a", "b"), "a"), lambda: accuracy(("a", "b")), yes_no_f1])
def test_an_unknown_class_is_refused(make: Callable[[], Metric]) -> None:
    with pytest.raises(ValueError, match="'c' is none of the classes"):
        make().compute_scores(["c"], ["c"])


def test_what_else_is_refused() -> None:
    with pytest.raises(ValueError, match="'c' is none of the labels a, b"):
        multilabel_f1(("a", "b")).compute_scores([frozenset("a")], [frozenset("c")])
    with pytest.raises(ValueError, match="the negative class 'c' is none of a, b"):
        micro_f1(("a", "b"), "c")
    for metric in (micro_f1("ab", "a"), accuracy("ab"), positive_f1("a")):
        with pytest.raises(ValueError, match="1 are predicted, but there are 2"):
            metric.compute_scores(["a", "b"], ["a"])


@needs_data
def test_the_majority_class_scores_55_2_on_pubmedqa() -> None:
    """276 yes, 169 no, 55 maybe: PubMedBERT's 55.84 is hardly more than always yes."""
    path = Path(str(DATA), "benchmarks/pubmedqa/data/test_ground_truth.json")
    gold = list(json.loads(path.read_text()).values())
    assert len(gold) == 500
    figures = accuracy(("yes", "no", "maybe")).compute_scores(gold, ["yes"] * 500)
    assert figures["accuracy"] == pytest.approx(0.552)
    assert figures["macro F1"] == pytest.approx(2 * 276 / (276 + 500) / 3)
