"""Metrics of texts and numbers against scikit-learn, SciPy, counting and their definitions."""

from __future__ import annotations

import itertools
import re
import string
import warnings
from collections.abc import Callable, Sequence

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.tags import entity_f1, word_f1
from bioshards.evaluate.metrics.text_metrics import (
    accuracy,
    bioasq_factoid,
    mean_reciprocal_rank,
    micro_f1,
    multilabel_f1,
    normalise_answer,
    pearson,
    positive_f1,
    squad_f1,
    yes_no_f1,
)
from tests.support.evaluate.metric_oracles import (
    LabelCodes,
    micro_scores,
    one_hot,
    random_classifications,
    scores_by_class,
)

CHEMPROT = ("false", "CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")
HALLMARKS = tuple(f"hallmark {number}" for number in range(10))
SCORE_NAMES = ("precision", "recall", "F1")
YES_NO_NAMES = [f"{answer} {name}" for answer in ("yes", "no") for name in SCORE_NAMES]


def decode_labels(codes: LabelCodes, labels: Sequence[str]) -> list[str]:
    return [labels[code] for code in codes]


@pytest.mark.parametrize(
    ("metric", "labels", "num_negative", "names"),
    [
        (micro_f1(CHEMPROT, "false"), CHEMPROT, 1, [*SCORE_NAMES, "macro F1"]),
        (micro_f1(CHEMPROT, None), CHEMPROT, 0, [*SCORE_NAMES, "macro F1"]),
        (positive_f1("1"), "01", 1, SCORE_NAMES),
        (accuracy(("yes", "no", "maybe")), ("yes", "no", "maybe"), 0, ["accuracy", "macro F1"]),
        (yes_no_f1(), ("yes", "no"), 0, [*YES_NO_NAMES, "macro F1", "accuracy"]),
    ],
    ids=lambda value: value.name if isinstance(value, Metric) else "",
)
def test_scores_of_classes_equal_scikit_learn(
    metric: Metric, labels: Sequence[str], num_negative: int, names: Sequence[str]
) -> None:
    gold, predicted = random_classifications(2, len(labels), (1000, 12))
    sides = [one_hot(side, len(labels))[..., num_negative:] for side in (gold, predicted)]
    expected, by_class = micro_scores(*sides), scores_by_class(*sides)
    for index, case in enumerate(zip(gold, predicted, strict=True)):
        known = dict(zip(SCORE_NAMES, expected[:, index], strict=True))
        known |= {"macro F1": by_class[2, index].mean(), "accuracy": (case[0] == case[1]).mean()}
        for label, scores_of_class in zip(labels[num_negative:], by_class[:, index].T, strict=True):
            known |= {f"{label} {name}": scores_of_class[at] for at, name in enumerate(SCORE_NAMES)}
        scores = metric.compute_scores(*(decode_labels(codes, labels) for codes in case))
        assert scores == pytest.approx({name: known[name] for name in names})


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The  BRCA1 gene.", "brca1 gene"),
        ("an IL-2 receptor", "il2 receptor"),
        ("vitamin A", "vitamin"),  # SQuAD counts "a" as an article
        ("anaemia of the\tabc", "anaemia of abc"),
        ("a", ""),
        ("α-synuclein’s", "αsynuclein’s"),  # punctuation is that of ASCII alone
        ("a.b", "ab"),
        ("the-end", "theend"),  # punctuation goes before articles
    ],
)
def test_normalise_answer(text: str, expected: str) -> None:
    assert normalise_answer(text) == expected


def test_squad_scores_are_means_over_questions() -> None:
    metric = squad_f1()
    scores = metric.compute_scores([["one two"], ["three"]], ["one", "three"])
    assert scores == pytest.approx({"exact match": 1 / 2, "F1": (2 / 3 + 1) / 2})
    assert metric.compute_scores([], []) == {"exact match": 0, "F1": 0}


WORDS = st.lists(st.sampled_from(["a", "The", "cell", "Cell,", "gene", "p53."]), max_size=5).map(" ".join)


@given(st.lists(WORDS, max_size=3), WORDS)
def test_squad_f1_equals_its_definition(gold: list[str], predicted: str) -> None:
    """Compute precision and recall of bags of words, removing each matched word from the gold bag."""

    def split_words(text: str) -> list[str]:
        without_punctuation = "".join(letter for letter in text.lower() if letter not in string.punctuation)
        return [word for word in re.split(r"\s+", without_punctuation) if word not in ("", "a", "an", "the")]

    def compute_f1(answer: str) -> float:
        remaining = split_words(answer)
        hits = 0
        for word in split_words(predicted):
            if word in remaining:
                remaining.remove(word)
                hits += 1
        if not hits:
            return 0
        precision, recall = hits / len(split_words(predicted)), hits / len(split_words(answer))
        return 2 * precision * recall / (precision + recall)

    scores = squad_f1().compute_scores([gold], [predicted])
    assert scores["F1"] == pytest.approx(max(map(compute_f1, gold), default=0))
    assert scores["exact match"] == any(split_words(answer) == split_words(predicted) for answer in gold)


BIOASQ_QUESTIONS: list[tuple[list[str], list[str], float, float, float]] = [
    (["MRI", "Magnetic Resonance Imaging"], ["mri"], 1, 1, 1),
    (["MRI", "Magnetic Resonance Imaging"], ["CT", "x", "magnetic resonance imaging"], 0, 1, 1 / 3),
    (["MRI"], ["the MRI", "MRI.", "MRI "], 0, 0, 0),  # only case is normalised
    (["MRI"], ["1", "2", "3", "4", "MRI"], 0, 1, 1 / 5),
    (["MRI"], ["1", "2", "3", "4", "5", "MRI"], 0, 0, 0),  # the sixth does not count
    (["MRI"], ["x", "MRI", "MRI"], 0, 1, 1 / 2),
    (["MRI"], [], 0, 0, 0),
    ([], ["MRI"], 0, 0, 0),
]


@pytest.mark.parametrize(("accepted", "answers", "strict", "lenient", "rank"), BIOASQ_QUESTIONS)
def test_bioasq_by_hand(
    accepted: list[str], answers: list[str], strict: float, lenient: float, rank: float
) -> None:
    scores = bioasq_factoid().compute_scores([accepted], [answers])
    assert scores == pytest.approx({"SACC": strict, "LACC": lenient, "MRR": rank})


def test_bioasq_scores_are_means_over_questions() -> None:
    accepted, answers, *expected = zip(*BIOASQ_QUESTIONS, strict=True)
    scores = bioasq_factoid().compute_scores(accepted, answers)
    assert list(scores.values()) == pytest.approx([sum(values) / len(accepted) for values in expected])


def test_unequal_numbers_of_questions_are_refused() -> None:
    for metric in (squad_f1(), bioasq_factoid()):
        with pytest.raises(ValueError, match="0 are predicted, but there are 1"):
            metric.compute_scores([["x"]], [])


def test_pearson_equals_scipy() -> None:
    from scipy.stats import pearsonr

    rng = numpy.random.default_rng(1)
    metric = pearson()
    for _ in range(300):
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


def test_reciprocal_rank_equals_counting() -> None:
    """The rank of a candidate is 1 plus the number that score higher, or equal and precede it.

    The same words again, after another question, are one more question.
    """
    rng = numpy.random.default_rng(2)
    metric = mean_reciprocal_rank()
    for _ in range(500):
        sizes = rng.integers(1, 8, size=rng.integers(1, 5))
        questions = [index for index, size in enumerate(sizes) for _ in range(size)]
        gold = [(str(question % 2), bool(rng.random() < 0.3)) for question in questions]
        scores = (rng.integers(0, 5, size=len(gold)) / 4).tolist()
        best = [0.0] * len(sizes)
        for index, question in enumerate(questions):
            better = sum(
                other_question == question
                and (
                    scores[other_index] > scores[index]
                    or (scores[other_index] == scores[index] and other_index < index)
                )
                for other_index, other_question in enumerate(questions)
            )
            if gold[index][1]:
                best[question] = max(best[question], 1 / (1 + better))
        assert metric.compute_stats(gold, scores)[:, 0] == pytest.approx(best)
        assert metric.compute_scores(gold, scores)["MRR"] == pytest.approx(sum(best) / len(best))
    assert metric.compute_scores([], []) == {"MRR": 0}


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
