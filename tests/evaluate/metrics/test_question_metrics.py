"""Metrics of SQuAD v1.1 and of BioASQ's factoid questions against their definitions."""

from __future__ import annotations

import re
import string

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.metrics.text_metrics import bioasq_factoid, normalise_answer, squad_f1


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


@pytest.mark.parametrize(
    ("gold", "predicted", "exact", "f1"),
    [
        (["The BRCA1 gene"], "BRCA1 gene.", 1, 1),
        (["BRCA1 gene"], "BRCA1", 0, 2 / 3),  # precision 1, recall 1/2
        (["BRCA1", "the BRCA1 gene product"], "BRCA1 gene", 0, 4 / 5),  # the better of 2/3 and 4/5
        (["p53 p53 mutation"], "p53 p53 p53", 0, 2 / 3),  # p53 twice in common, of three and three
        (["aspirin"], "ibuprofen", 0, 0),
        (["aspirin"], "", 0, 0),
        (["the"], "a", 1, 0),  # both empty: equal, but no word in common
        ([], "aspirin", 0, 0),
    ],
)
def test_squad_by_hand(gold: list[str], predicted: str, exact: float, f1: float) -> None:
    assert squad_f1().compute_scores([gold], [predicted]) == pytest.approx({"exact match": exact, "F1": f1})


def test_squad_scores_are_means_over_questions() -> None:
    metric = squad_f1()
    scores = metric.compute_scores([["one two"], ["three"]], ["one", "three"])
    assert scores == pytest.approx({"exact match": 1 / 2, "F1": (2 / 3 + 1) / 2})
    assert metric.compute_scores([], []) == {"exact match": 0, "F1": 0}


WORDS = st.lists(st.sampled_from(["a", "The", "cell", "Cell,", "gene", "p53."]), max_size=5).map(" ".join)


@given(st.lists(WORDS, min_size=1, max_size=3), WORDS)
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
    assert scores["F1"] == pytest.approx(max(compute_f1(answer) for answer in gold))
    assert scores["exact match"] == any(split_words(answer) == split_words(predicted) for answer in gold)


@pytest.mark.parametrize(
    ("accepted", "answers", "strict", "lenient", "rank"),
    [
        (["MRI", "Magnetic Resonance Imaging"], ["mri"], 1, 1, 1),
        (["MRI", "Magnetic Resonance Imaging"], ["CT", "x", "magnetic resonance imaging"], 0, 1, 1 / 3),
        (["MRI"], ["the MRI", "MRI.", "MRI "], 0, 0, 0),  # only case is normalised
        (["MRI"], ["1", "2", "3", "4", "MRI"], 0, 1, 1 / 5),
        (["MRI"], ["1", "2", "3", "4", "5", "MRI"], 0, 0, 0),  # the sixth does not count
        (["MRI"], ["x", "MRI", "MRI"], 0, 1, 1 / 2),
        (["MRI"], [], 0, 0, 0),
        ([], ["MRI"], 0, 0, 0),
    ],
)
def test_bioasq_by_hand(
    accepted: list[str], answers: list[str], strict: float, lenient: float, rank: float
) -> None:
    scores = bioasq_factoid().compute_scores([accepted], [answers])
    assert scores == pytest.approx({"SACC": strict, "LACC": lenient, "MRR": rank})


def test_bioasq_scores_are_means_over_questions() -> None:
    """Draw questions whose correct answer has a known rank, or 0 if it is missing."""
    rng = numpy.random.default_rng(1)
    for _ in range(1000):
        ranks = [int(rank) for rank in rng.integers(0, 6, size=rng.integers(1, 9))]
        answers = [
            ["RIGHT" if position == rank else f"wrong {position}" for position in range(1, 6)]
            for rank in ranks
        ]
        scores = bioasq_factoid().compute_scores([["Right", "correct"]] * len(ranks), answers)
        count = len(ranks)
        assert scores["SACC"] == pytest.approx(ranks.count(1) / count)
        assert scores["LACC"] == pytest.approx((count - ranks.count(0)) / count)
        assert scores["MRR"] == pytest.approx(sum(1 / rank for rank in ranks if rank) / count)


def test_unequal_numbers_of_questions_are_refused() -> None:
    for metric in (squad_f1(), bioasq_factoid()):
        with pytest.raises(ValueError, match="0 are predicted, but there are 1"):
            metric.compute_scores([["x"]], [])
