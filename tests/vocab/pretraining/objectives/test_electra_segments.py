"""ELECTRA's rows: recorded output of google-research/electra, invariants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import DEFAULTS
from bioshards.vocab.pretraining.objectives import (
    DocumentRng,
    ExampleRow,
    TokenRange,
)
from tests.support.vocab.reference_cases import (
    ScriptedRandom,
    load_golden,
    sentence_offsets,
)

CASES = load_golden("electra")["cases"]
PUBLISHED = DEFAULTS["electra"]
LONG = 0.99
"""A draw for the frequent case: a full row of two segments."""


def build_rows(sentences: Sequence[int], rng: random.Random, **recipe: Any) -> list[ExampleRow]:
    return list(
        objectives.build_electra_rows(0, [sentence_offsets(sentences, 0)], rng, replace(PUBLISHED, **recipe))
    )


def build_segments(sentences: Sequence[int], *draws: float, **recipe: Any) -> list[list[Any]]:
    """Return the segments of a document that begins at token 0, and check that all draws were used."""
    rng = ScriptedRandom(*draws)
    rows = [[row.segment_a, row.segment_b] for row in build_rows(sentences, rng, **recipe)]
    assert not rng.remaining
    return rows


# Recorded output of the reference code


@pytest.mark.parametrize("number", range(len(CASES)))
def test_rows_equal_recorded_output_of_the_reference(number: int) -> None:
    case = CASES[number]
    rng = random.Random(case["seed"])
    rng.random()  # the reference draws this one for the row of the previous document
    offsets = sentence_offsets(case["sentences"])
    rows = list(
        objectives.build_electra_rows(0, [offsets], rng, replace(PUBLISHED, max_seq_length=case["length"]))
    )
    assert [
        [_list_bounds(row.segment_a, offsets[0]), _list_bounds(row.segment_b, offsets[0])] for row in rows
    ] == case["rows"]


def _list_bounds(ranges: Sequence[TokenRange], first: int) -> list[int]:
    return [bound - first for one in ranges for bound in one]


# The rules, one by one


def test_first_row_of_a_document_draws_its_own_target() -> None:
    assert build_segments([4, 4, 4, 4], 0.01, 7, LONG, LONG, LONG, LONG, max_seq_length=40) == [
        [[(0, 4)], [(4, 8)]],
        [[(8, 16)], []],
    ]


def test_one_row_in_twenty_has_a_target_below_its_length() -> None:
    assert len(build_segments([5, 5], 0.0499, 5, *[LONG] * 4, max_seq_length=20)) == 2
    assert len(build_segments([5, 5], 0.05, LONG, 0.9, LONG, max_seq_length=20)) == 1


def test_one_row_in_ten_has_one_segment() -> None:
    assert build_segments([5, 5, 5, 5], LONG, 0.0999, LONG, max_seq_length=20) == [[[(0, 18)], []]]
    assert build_segments([5, 5, 5, 5], LONG, 0.1, LONG, LONG, max_seq_length=20) == [[[(0, 5)], [(5, 17)]]]


def test_sentence_that_crosses_half_the_row_goes_to_either_segment() -> None:
    # half of a row is (20 - 3) // 2 = 8: with exactly 8 tokens a sentence has passed it
    assert build_segments([4, 4, 6], LONG, LONG, 0.4999, LONG, max_seq_length=20) == [[[(0, 8)], [(8, 14)]]]
    assert build_segments([4, 4, 6], LONG, LONG, 0.5, LONG, max_seq_length=20) == [[[(0, 4)], [(4, 14)]]]
    assert build_segments([4, 3, 7], LONG, LONG, 0.5, LONG, max_seq_length=20) == [[[(0, 7)], [(7, 14)]]]


def test_a_short_row_is_cut_at_the_length_and_not_at_its_target() -> None:
    assert build_segments([30], 0.0, 5, LONG, LONG, max_seq_length=40) == [[[(0, 30)], []]]
    assert build_segments([50], 0.0, 5, LONG, LONG, max_seq_length=40) == [[[(0, 38)], []]]


def test_a_document_without_tokens_has_no_rows() -> None:
    assert build_rows([], DocumentRng().reseed(1)) == []


def test_overflow_is_lost_by_default() -> None:
    (row,) = build_rows([10, 15], ScriptedRandom(LONG, LONG, LONG), max_seq_length=20)
    assert (row.segment_a, row.segment_b, row.lost_tokens, row.other_document_tokens) == (
        [(0, 10)],
        [(10, 17)],
        8,
        0,
    )


def test_kept_overflow_starts_the_next_row() -> None:
    assert build_segments([10, 15, 2], *[LONG] * 5, max_seq_length=20, keep_overflow=True) == [
        [[(0, 10)], [(10, 17)]],
        [[(17, 25)], [(25, 27)]],
    ]


def test_kept_overflow_may_precede_text_of_its_original_row() -> None:
    # 4 and 1 are segment A; 12, 2 and 1 are segment B, which has room for 11
    assert build_segments(
        [4, 13, 1, 1, 1], LONG, LONG, 0.5, *[LONG] * 3, max_seq_length=20, keep_overflow=True
    ) == [
        [[(0, 4), (17, 20)], [(4, 14)]],
        [[(14, 17)], []],
    ]
