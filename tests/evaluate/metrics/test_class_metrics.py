"""Metrics of single-label and multi-label classification against scikit-learn."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy
import pytest

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.text_metrics import accuracy, micro_f1, multilabel_f1, positive_f1, yes_no_f1
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
SCORE_NAMES = ("precision", "recall", "F1")


def decode_labels(codes: LabelCodes, labels: Sequence[str]) -> list[str]:
    return [labels[code] for code in codes]


@pytest.mark.parametrize("negative", ["false", None])
def test_micro_f1_ignores_the_negative_class(negative: str | None) -> None:
    gold, predicted = random_classifications(2, 6, (1000, 12))
    counted_classes = slice(1 if negative else 0, None)
    sides = [one_hot(side, 6)[..., counted_classes] for side in (gold, predicted)]
    expected, by_class = micro_scores(*sides), scores_by_class(*sides)
    metric = micro_f1(CHEMPROT, negative)
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        scores = metric.compute_scores(*(decode_labels(codes, CHEMPROT) for codes in case))
        assert [scores[name] for name in SCORE_NAMES] == pytest.approx(expected[:, index])
        assert scores["macro F1"] == pytest.approx(by_class[2, index].mean())
        if negative is None:
            assert scores["F1"] == pytest.approx((case[0] == case[1]).mean())


def test_positive_f1_equals_scikit_learn() -> None:
    gold, predicted = random_classifications(3, 2, (1000, 12))
    expected = micro_scores(gold == 1, predicted == 1)
    metric = positive_f1("1")
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        scores = metric.compute_scores(*(decode_labels(codes, "01") for codes in case))
        assert [scores[name] for name in SCORE_NAMES] == pytest.approx(expected[:, index])


def test_accuracy_and_macro_f1_equal_scikit_learn() -> None:
    labels = ("yes", "no", "maybe")
    gold, predicted = random_classifications(4, 3, (1000, 12))
    by_class = scores_by_class(one_hot(gold, 3), one_hot(predicted, 3))
    metric = accuracy(labels)
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        scores = metric.compute_scores(*(decode_labels(codes, labels) for codes in case))
        assert scores["accuracy"] == pytest.approx((case[0] == case[1]).mean())
        assert scores["macro F1"] == pytest.approx(by_class[2, index].mean())


def test_yes_no_f1_equals_scikit_learn() -> None:
    answers = ("yes", "no")
    gold, predicted = random_classifications(5, 2, (1000, 8))
    by_class = scores_by_class(one_hot(gold, 2), one_hot(predicted, 2))
    metric = yes_no_f1()
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        scores = metric.compute_scores(*(decode_labels(codes, answers) for codes in case))
        for column, answer in enumerate(answers):
            assert [scores[f"{answer} {name}"] for name in SCORE_NAMES] == pytest.approx(
                by_class[:, index, column]
            )
        assert scores["macro F1"] == pytest.approx(by_class[2, index].mean())
        assert scores["accuracy"] == pytest.approx((case[0] == case[1]).mean())


def test_multilabel_f1_equals_scikit_learn_by_label_and_by_abstract() -> None:
    """The example scores are BLUE's: mean precision and recall of abstracts with labels, and their F1."""
    random = numpy.random.default_rng(6)
    gold = random.random((1000, 5, 10)) < 0.15
    predicted = gold ^ (random.random(gold.shape) < 0.1)
    expected = micro_scores(gold, predicted)
    by_abstract = micro_scores(gold.reshape(-1, 10), predicted.reshape(-1, 10)).reshape(3, 1000, 5)
    metric = multilabel_f1(HALLMARKS)
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        scores = metric.compute_scores(
            *([frozenset(itertools.compress(HALLMARKS, labels)) for labels in side] for side in case)
        )
        assert [scores[name] for name in SCORE_NAMES] == pytest.approx(expected[:, index])
        labelled = case[0].any(axis=1)
        precision, recall = (
            by_abstract[row, index, labelled].mean() if labelled.any() else 0 for row in range(2)
        )
        assert scores["example precision"] == pytest.approx(precision)
        assert scores["example recall"] == pytest.approx(recall)
        total = precision + recall
        assert scores["example F1"] == pytest.approx(2 * precision * recall / total if total else 0)


def test_example_f1_by_hand() -> None:
    a, b, c = HALLMARKS[:3]
    gold = [frozenset({a}), frozenset({a, b}), frozenset[str](), frozenset({c})]
    predicted = [frozenset({a, b}), frozenset({a}), frozenset({c}), frozenset[str]()]
    scores = multilabel_f1(HALLMARKS).compute_scores(gold, predicted)
    assert scores["example precision"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert scores["example recall"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert scores["example F1"] == pytest.approx(1 / 2)
    assert (scores["precision"], scores["recall"]) == (2 / 4, 2 / 4)


@pytest.mark.parametrize(
    "make_metric", [lambda: micro_f1(("a", "b"), "a"), lambda: accuracy(("a", "b")), yes_no_f1]
)
def test_unknown_class_is_refused(make_metric: Callable[[], Metric]) -> None:
    with pytest.raises(ValueError, match="'c' is none of the classes"):
        make_metric().compute_scores(["c"], ["c"])


def test_unknown_label_and_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="'c' is none of the labels a, b"):
        multilabel_f1(("a", "b")).compute_scores([frozenset("a")], [frozenset("c")])
    with pytest.raises(ValueError, match="the negative class 'c' is none of a, b"):
        micro_f1(("a", "b"), "c")
    for metric in (micro_f1("ab", "a"), accuracy("ab"), positive_f1("a")):
        with pytest.raises(ValueError, match="1 are predicted, but there are 2"):
            metric.compute_scores(["a", "b"], ["a"])


@needs_data
def test_majority_class_has_accuracy_55_2_on_pubmedqa() -> None:
    """The test set has 276 yes, 169 no and 55 maybe; PubMedBERT's published accuracy is 55.84."""
    path = Path(str(DATA), "benchmarks/pubmedqa/data/test_ground_truth.json")
    gold = list(json.loads(path.read_text()).values())
    assert len(gold) == 500
    scores = accuracy(("yes", "no", "maybe")).compute_scores(gold, ["yes"] * 500)
    assert scores["accuracy"] == pytest.approx(0.552)
    assert scores["macro F1"] == pytest.approx(2 * 276 / (276 + 500) / 3)
