"""Pooling of the answers to a question over its passages: golden cases, and random ones against a sum."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.tasks.question_answering import pool_answers, trim_answer


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("BRCA1", "BRCA1"),
        ("BRCA1,", "BRCA1"),
        ("BRCA1.", "BRCA1"),
        ("BRCA1 ", "BRCA1"),
        ("BRCA1.,", "BRCA1."),  # one character at most
        (".", ""),
        ("(BRCA1)", "BRCA1"),
        ("(BRCA1).", "(BRCA1)"),  # one rule at most
        ("()", "()"),  # too short
        ("(a) and (b)", "(a) and (b)"),
        ("((a))", "((a))"),
        ("f(x)", "f(x)"),
        ("BRCA1 (breast", ""),
        ("breast) BRCA1", ""),
        ("(BRCA1,", "(BRCA1"),
        (")(", ")("),
    ],
)
def test_trim_answer(text: str, expected: str) -> None:
    assert trim_answer(text) == expected


def test_golden_question_with_three_passages() -> None:
    candidates = [
        *(("p53", 0.5), ("the p53 gene", 0.3), ("", 0.2)),
        *(("P53.", 0.6), ("MDM2", 0.4)),
        *(("(mdm2)", 0.55), ("gene (TP53", 0.35), ("x" * 101, 0.1)),
    ]
    assert pool_answers(candidates) == [
        ("P53", pytest.approx(1.1)),
        ("mdm2", pytest.approx(0.95)),
        ("the p53 gene", 0.3),
    ]


def test_five_best_answers_are_kept_first_of_equals_first() -> None:
    candidates = [(name, 0.25) for name in "abcdefg"]
    assert [text for text, _ in pool_answers(candidates)] == list("abcde")
    assert [text for text, _ in pool_answers([*candidates, ("G", 0.125)], n_best=2)] == ["g", "a"]
    assert pool_answers([]) == []


TEXTS = st.sampled_from(["", "a", "A", "a.", "(a)", "b", "B,", "b c", "(b", "x" * 101, "d", "E", "f", "F "])


@given(st.lists(st.tuples(TEXTS, st.integers(0, 64).map(lambda sixtyfourth: sixtyfourth / 64))))
def test_probabilities_of_equal_answers_are_summed(candidates: list[tuple[str, float]]) -> None:
    kept = [(trim_answer(text), probability) for text, probability in candidates]
    kept = [(text, probability) for text, probability in kept if text and len(text) <= 100]
    answers = pool_answers(candidates, n_best=99)
    assert {text.lower() for text, _ in answers} == {text.lower() for text, _ in kept}
    for answer, total in answers:
        equal_texts = [(text, probability) for text, probability in kept if text.lower() == answer.lower()]
        assert total == sum(probability for _, probability in equal_texts)
        best = max(probability for _, probability in equal_texts)
        assert answer == next(text for text, probability in equal_texts if probability == best)
    assert [total for _, total in answers] == sorted((total for _, total in answers), reverse=True)
    assert pool_answers(candidates) == answers[:5]
