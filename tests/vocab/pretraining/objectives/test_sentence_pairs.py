"""Pairs of BERT and ALBERT: recorded output of the reference code, differences, invariants."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import DEFAULTS, ExampleRecipe
from bioshards.vocab.pretraining.objectives import (
    DocumentRng,
    TokenRange,
    count_tokens,
)
from tests.support.vocab.reference_cases import (
    ScriptedRandom,
    document_offsets,
    load_golden,
)

BERT = DEFAULTS["bert"]
ALBERT = DEFAULTS["albert"]
CASES = {name: load_golden(name)["cases"] for name in ("bert", "albert")}
EVERY = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]
LONG = 0.99
"""A draw that makes a document of full length."""
FIRST, LAST = 0.4999, 0.5
"""Draws that remove a token from the front and from the end."""
RANDOM = SWAPPED = 0.4999
NEXT = IN_ORDER = 0.5

Piece = list[int]
"""A document, the first of its tokens, and the one after the last, both counted within the document."""


def locate_segment(ranges: Sequence[TokenRange], offsets: Sequence[Sequence[int]]) -> Piece:
    ((start, stop),) = ranges
    document = max(number for number, edges in enumerate(offsets) if edges[0] <= start)
    return [document, start - offsets[document][0], stop - offsets[document][0]]


def build_pairs(
    documents: Sequence[Sequence[int]], rng: random.Random, recipe: ExampleRecipe, document: int = 0
) -> list[Any]:
    """Return each row of a document as its two segments ([] for an empty one) and its label."""
    offsets = document_offsets(documents)
    return [
        [
            locate_segment(row.segment_a, offsets),
            locate_segment(row.segment_b, offsets) if row.segment_b else [],
            row.label,
        ]
        for row in objectives.build_pair_rows(document, offsets, rng, recipe)
    ]


def build_pairs_from_draws(
    documents: Sequence[Sequence[int]], *draws: float, recipe: ExampleRecipe, document: int = 0
) -> list[Any]:
    """Build the pairs from given random draws, and check that all draws were used."""
    rng = ScriptedRandom(*draws)
    rows = build_pairs(documents, rng, recipe, document)
    assert not rng.remaining
    return rows


# Recorded output of the reference code


@pytest.mark.parametrize(("name", "number"), EVERY)
def test_rows_equal_recorded_output_of_the_reference(name: str, number: int) -> None:
    case = CASES[name][number]
    recipe = replace(DEFAULTS[name], max_seq_length=case["length"], as_published=name == "albert")
    rows = build_pairs(case["documents"], random.Random(case["seed"]), recipe, case["document"])
    assert rows == case["rows"]


def test_as_published_changes_only_documents_with_single_segments() -> None:
    compared = 0
    for case in CASES["albert"]:
        if all(first[0] == second[0] for first, second, _ in case["rows"]):
            recipe = replace(ALBERT, max_seq_length=case["length"])
            rng = random.Random(case["seed"])
            assert build_pairs(case["documents"], rng, recipe, case["document"]) == case["rows"]
            compared += 1
    assert compared >= 20


# The rules, one by one

OTHER = [100, 10, 10, 10]
SHORTER = replace(BERT, max_seq_length=23)
SWAPPING = replace(ALBERT, max_seq_length=23)


def test_a_short_document_has_one_target_for_all_of_its_rows() -> None:
    documents = [[3, 3, 3, 3, 3], OTHER]
    assert build_pairs_from_draws(documents, 0.0999, 6, 1, NEXT, 1, NEXT, 1, 2, recipe=SHORTER) == [
        [[0, 0, 3], [0, 3, 6], 0],
        [[0, 6, 9], [0, 9, 12], 0],
        [[0, 12, 15], [1, 110, 120], 1],
    ]


def test_albert_swaps_a_pair_below_the_threshold() -> None:
    documents = [[5, 10, 5]]
    assert build_pairs_from_draws(documents, LONG, 2, SWAPPED, recipe=SWAPPING) == [
        [[0, 15, 20], [0, 0, 15], 1]
    ]
    assert build_pairs_from_draws(documents, LONG, 2, IN_ORDER, recipe=SWAPPING) == [
        [[0, 0, 15], [0, 15, 20], 0]
    ]


def test_lost_tokens_exclude_tokens_of_other_documents() -> None:
    # 13 and 30 tokens become 10 and 10, and so do 12 and 30
    rng = ScriptedRandom(LONG, 1, RANDOM, 1, 0, *[LAST] * 23, 1, 0, *[LAST] * 22)
    rows = list(objectives.build_pair_rows(0, document_offsets([[13, 12], [30]]), rng, SHORTER))
    assert [
        (count_tokens(row.segment_a), count_tokens(row.segment_b), row.lost_tokens, row.other_document_tokens)
        for row in rows
    ] == [
        (10, 10, 3, 10),
        (10, 10, 2, 10),
    ]
    rng = ScriptedRandom(LONG, 1, NEXT, *[LAST] * 5)
    (row,) = objectives.build_pair_rows(0, document_offsets([[13, 12], [30]]), rng, SHORTER)
    assert (row.lost_tokens, row.other_document_tokens) == (5, 0)


# Differences from the reference code


def test_random_segment_comes_from_another_document() -> None:
    documents = [[5], [6], [7]]
    assert build_pairs_from_draws(documents, LONG, *[1] * 9, 2, 0, recipe=SHORTER, document=1) == [
        [[1, 0, 6], [2, 0, 7], 1]
    ]
    assert build_pairs_from_draws(documents, LONG, *[1] * 10, 0, recipe=SHORTER, document=1) == [
        [[1, 0, 6], [2, 0, 7], 1]
    ]
    assert build_pairs_from_draws(documents, LONG, *[2] * 10, 0, recipe=SHORTER, document=2) == [
        [[2, 0, 7], [0, 0, 5], 1]
    ]


def test_bert_has_no_random_pair_for_a_lone_document() -> None:
    assert build_pairs_from_draws([[5, 10, 5, 12]], LONG, 2, recipe=SHORTER) == [
        [[0, 0, 15], [0, 15, 20], 0],
        [[0, 20, 32], [], NO_LABEL],
    ]


def test_albert_single_segment_has_no_label() -> None:
    documents = [[25, 10, 5], OTHER]
    cut = (FIRST, LAST, LAST, FIRST)  # a row of one segment has room for 21
    assert build_pairs_from_draws(documents, LONG, *cut, 1, IN_ORDER, recipe=SWAPPING) == [
        [[0, 2, 23], [], NO_LABEL],
        [[0, 25, 35], [0, 35, 40], 0],
    ]


def test_as_published_albert_labels_a_single_sentence_as_swapped() -> None:
    published = replace(SWAPPING, as_published=True)
    documents = [[20, 10, 5], OTHER]
    cut = (LAST,) * 10
    assert build_pairs_from_draws(documents, LONG, 0, 1, 2, *cut, 1, IN_ORDER, recipe=published) == [
        [[0, 0, 10], [1, 110, 120], 1],
        [[0, 20, 30], [0, 30, 35], 0],
    ]
    assert build_pairs_from_draws([[20]], LONG, recipe=published) == [[[0, 0, 20], [], NO_LABEL]]


# Invariants

DOCUMENT = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 90)), min_size=1, max_size=20)
POOL = st.lists(DOCUMENT, min_size=1, max_size=5)
CHANCE = st.sampled_from([0.0, 0.1, 1.0])
LENGTH = st.integers(5, 70)
RECIPES = st.one_of(
    st.builds(ExampleRecipe, st.just("bert"), LENGTH, CHANCE),
    st.builds(ExampleRecipe, st.just("albert"), LENGTH, CHANCE, as_published=st.booleans()),
)


def is_of_document(segment: list[TokenRange], edges: list[int]) -> bool:
    """Return True if all tokens of a segment are of the document with these edges."""
    return all(edges[0] <= start < end <= edges[-1] for start, end in segment)


@given(POOL, RECIPES, st.integers(0, 1 << 64))
def test_label_describes_the_segments(documents: list[list[int]], recipe: ExampleRecipe, seed: int) -> None:
    offsets = document_offsets(documents)
    for number in range(len(offsets)):
        for row in objectives.build_pair_rows(number, offsets, DocumentRng().reseed(seed), recipe):
            if not row.segment_b:
                assert row.label == NO_LABEL
                assert recipe.objective == "albert" or len(offsets) == 1
            elif not is_of_document(row.segment_b, offsets[number]):
                assert row.label == 1
                assert recipe.objective == "bert" or recipe.as_published
            else:
                in_order = row.segment_a[0] < row.segment_b[0]
                assert row.label == (0 if in_order else 1)
                assert in_order or recipe.objective == "albert"
