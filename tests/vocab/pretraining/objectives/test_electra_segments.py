"""ELECTRA's rows: recorded output of google-research/electra, rates, invariants."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import DEFAULTS, ExampleRecipe
from bioshards.vocab.pretraining.objectives import (
    NUM_PAIR_SPECIALS,
    DocumentRng,
    ExampleRow,
    TokenRange,
    count_tokens,
    derive_document_key,
)
from tests.support.vocab.reference_cases import (
    ScriptedRandom,
    document_offsets,
    expand_ranges,
    input_positions,
    is_near_expected_count,
    is_near_recorded_mean,
    load_golden,
    random_documents,
    sentence_offsets,
)

CASES = load_golden("electra")["cases"]
FIGURES = load_golden("figures")
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


def test_recorded_cases_cover_every_rule() -> None:
    occurrences: Counter[str] = Counter()
    for case in CASES:
        length, sentences = case["length"], case["sentences"]
        bounds = sentence_offsets(sentences, 0)
        for number, (first, second) in enumerate(case["rows"]):
            size = sum(first[1::2]) - sum(first[::2]) + sum(second[1::2]) - sum(second[::2])
            occurrences["a document in one row"] += len(case["rows"]) == 1
            occurrences["a full row of one segment"] += not second and size == length - 2
            occurrences["a row of two segments that is full"] += (
                bool(second) and size == length - NUM_PAIR_SPECIALS
            )
            occurrences["a short one before the last"] += (
                size < length - NUM_PAIR_SPECIALS and number < len(case["rows"]) - 1
            )
            occurrences["a sentence goes back to segment A"] += len(first) > 2
            occurrences["a sentence makes A longer than half"] += first[1] > (
                length - NUM_PAIR_SPECIALS
            ) // 2 and bool(second)
            occurrences["a sentence longer than a row"] += first[0] in bounds and first[1] not in bounds
            occurrences["sentences without tokens, left out"] += 0 in sentences
    assert len(occurrences) == 8
    assert min(occurrences.values()) >= 10, occurrences


# The rules, one by one


def test_first_row_of_a_document_draws_its_own_target() -> None:
    assert build_segments([4, 4, 4, 4], 0.01, 7, LONG, LONG, LONG, LONG, max_seq_length=40) == [
        [[(0, 4)], [(4, 8)]],
        [[(8, 16)], []],
    ]


def test_one_row_in_twenty_has_a_target_below_its_length() -> None:
    assert len(build_segments([5, 5], 0.0499, 5, *[LONG] * 4, max_seq_length=20)) == 2
    assert len(build_segments([5, 5], 0.05, LONG, 0.9, LONG, max_seq_length=20)) == 1


def test_row_ends_with_the_sentence_that_reaches_the_target() -> None:
    two = [[[(0, 10)], [(10, 17)]], [[(20, 30)], [(30, 37)]]]
    assert build_segments([10, 10, 10, 10], *[LONG] * 5, max_seq_length=20) == two
    assert build_segments([10, 9, 10], LONG, LONG, LONG, max_seq_length=20) == [[[(0, 10)], [(10, 17)]]]


def test_one_row_in_ten_has_one_segment() -> None:
    assert build_segments([5, 5, 5, 5], LONG, 0.0999, LONG, max_seq_length=20) == [[[(0, 18)], []]]
    assert build_segments([5, 5, 5, 5], LONG, 0.1, LONG, LONG, max_seq_length=20) == [[[(0, 5)], [(5, 17)]]]


def test_sentence_that_crosses_half_the_row_goes_to_either_segment() -> None:
    # half of a row is (20 - 3) // 2 = 8: with exactly 8 tokens a sentence has passed it
    assert build_segments([4, 4, 6], LONG, LONG, 0.4999, LONG, max_seq_length=20) == [[[(0, 8)], [(8, 14)]]]
    assert build_segments([4, 4, 6], LONG, LONG, 0.5, LONG, max_seq_length=20) == [[[(0, 4)], [(4, 14)]]]
    assert build_segments([4, 3, 7], LONG, LONG, 0.5, LONG, max_seq_length=20) == [[[(0, 7)], [(7, 14)]]]


def test_first_sentence_over_half_is_segment_a_without_a_draw() -> None:
    assert build_segments([9, 2], LONG, LONG, LONG, max_seq_length=20) == [[[(0, 9)], [(9, 11)]]]


def test_later_sentence_that_fits_is_added_to_segment_a() -> None:
    assert build_segments([4, 9, 2, 1], LONG, LONG, 0.5, LONG, max_seq_length=20) == [
        [[(0, 4), (13, 16)], [(4, 13)]]
    ]


def test_the_half_of_a_short_row_is_half_of_its_target() -> None:
    assert build_segments([2, 2, 2, 2], 0.0, 8, LONG, LONG, max_seq_length=40) == [[[(0, 2)], [(2, 8)]]]
    assert build_segments([2, 2, 2, 2], 0.0, 12, LONG, 0.9, LONG, max_seq_length=40) == [[[(0, 2)], [(2, 8)]]]
    assert build_segments([2, 2, 2, 2], 0.0, 13, LONG, 0.9, LONG, max_seq_length=40) == [[[(0, 4)], [(4, 8)]]]


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


# Rates


def build_from_one_token_sentences(count: int, rng: random.Random, **recipe: Any) -> list[ExampleRow]:
    return build_rows([1] * count, rng, **recipe)


def test_one_row_in_twenty_is_short_by_any_number_of_tokens() -> None:
    rows = build_from_one_token_sentences(
        300_000, DocumentRng().reseed(1), max_seq_length=32, single_segment_prob=0.0
    )[:-1]
    sizes = Counter(len(input_positions(row)) - NUM_PAIR_SPECIALS for row in rows)
    assert is_near_expected_count(len(rows) - sizes[29], len(rows), 0.05 * 24 / 28)
    assert set(sizes) == set(range(5, 30))


def test_short_row_lengths_are_uniform() -> None:
    rows = build_from_one_token_sentences(
        300_000, DocumentRng().reseed(2), max_seq_length=32, single_segment_prob=0.0, short_seq_prob=1.0
    )[:-1]
    sizes = Counter(len(input_positions(row)) - NUM_PAIR_SPECIALS for row in rows)
    assert all(is_near_expected_count(sizes[size], len(rows), 1 / 28) for size in range(5, 29))
    assert is_near_expected_count(sizes[29], len(rows), 4 / 28)


def test_first_rows_are_short_at_the_same_rate() -> None:
    rng = DocumentRng()
    is_short = [
        len(input_positions(build_from_one_token_sentences(40, rng.reseed(number), max_seq_length=32)[0]))
        < 32
        for number in range(4000)
    ]
    assert is_near_expected_count(sum(is_short), len(is_short), 0.05 * 24 / 28)


def test_one_row_in_ten_is_single() -> None:
    rows = build_from_one_token_sentences(
        300_000, DocumentRng().reseed(3), max_seq_length=32, short_seq_prob=0.0
    )[:-1]
    assert is_near_expected_count(sum(not row.segment_b for row in rows), len(rows), 0.1)


def test_half_of_the_sentences_that_cross_half_the_row_go_to_segment_a() -> None:
    rows = build_rows(
        [20] * 20_000, DocumentRng().reseed(4), max_seq_length=64, short_seq_prob=0.0, single_segment_prob=0.0
    )
    sizes = Counter(count_tokens(row.segment_a) for row in rows)
    assert set(sizes) == {20, 40}
    assert is_near_expected_count(sizes[40], len(rows), 0.5)


@pytest.mark.parametrize("length", [128, 512])
def test_statistics_of_many_documents_equal_those_of_the_reference(length: int) -> None:
    documents = random_documents(4000, 1)
    assert sum(map(sum, documents)) == FIGURES["tokens"]
    rng, recipe = DocumentRng(), replace(PUBLISHED, max_seq_length=length)
    rows = [
        row
        for number, sentences in enumerate(documents)
        for row in objectives.build_electra_rows(
            number,
            {number: sentence_offsets(sentences)},
            rng.reseed(derive_document_key(0, 0, str(number))),
            recipe,
        )
    ]
    expected = FIGURES["figures"][f"electra-{length}"]
    assert is_near_recorded_mean(len(rows), expected["rows"])
    assert is_near_recorded_mean(
        sum(count_tokens(row.segment_a + row.segment_b) for row in rows) / len(rows), expected["mean"]
    )
    assert is_near_recorded_mean(
        sum(count_tokens(row.segment_a) for row in rows) / len(rows), expected["first"]
    )
    assert is_near_recorded_mean(sum(not row.segment_b for row in rows) / len(rows), expected["single"])
    assert is_near_recorded_mean(sum(row.lost_tokens for row in rows) / FIGURES["tokens"], expected["lost"])


# Invariants

SENTENCES = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 90)), max_size=25)
CHANCE = st.sampled_from([0.0, 0.05, 0.5, 1.0])
RECIPES = st.builds(
    ExampleRecipe,
    st.just("electra"),
    st.integers(5, 70),
    short_seq_prob=CHANCE,
    single_segment_prob=CHANCE,
    keep_overflow=st.booleans(),
)


@given(SENTENCES, RECIPES, st.integers(0, 1 << 64))
def test_every_token_is_in_one_row_or_lost(sentences: list[int], recipe: ExampleRecipe, seed: int) -> None:
    offsets = sentence_offsets(sentences)
    rows = list(objectives.build_electra_rows(0, [offsets], DocumentRng().reseed(seed), recipe))
    used = [token for row in rows for token in expand_ranges(row.segment_a + row.segment_b)]
    assert len(used) == len(set(used))
    assert set(used) <= set(range(offsets[0], offsets[-1]))
    lost = sum(row.lost_tokens for row in rows)
    assert len(used) + lost == sum(sentences)
    assert not (recipe.keep_overflow and lost)
    assert all(row.other_document_tokens == 0 for row in rows)


@given(SENTENCES, RECIPES, st.integers(0, 1 << 64))
def test_rows_fit_and_segments_are_in_order(sentences: list[int], recipe: ExampleRecipe, seed: int) -> None:
    offsets = sentence_offsets(sentences)
    for row in objectives.build_electra_rows(0, [offsets], DocumentRng().reseed(seed), recipe):
        assert row.segment_a
        assert len(input_positions(row)) <= recipe.max_seq_length
        assert all(start < stop for start, stop in row.segment_a + row.segment_b)
        for segment in (row.segment_a, row.segment_b):
            assert expand_ranges(segment) == sorted(expand_ranges(segment))
        assert row.document == 0


@given(st.lists(SENTENCES, min_size=2, max_size=5), RECIPES, st.randoms(use_true_random=False))
def test_rows_are_independent_of_other_documents(
    documents: list[list[int]], recipe: ExampleRecipe, order: random.Random
) -> None:
    def build_rows_by_document(numbers: list[int]) -> dict[int, list[ExampleRow]]:
        rng = DocumentRng()
        return {
            number: list(
                objectives.build_electra_rows(
                    number, offsets, rng.reseed(derive_document_key(1, 0, str(number))), recipe
                )
            )
            for number in numbers
        }

    offsets = document_offsets(documents)
    numbers = list(range(len(documents)))
    expected = build_rows_by_document(numbers)
    order.shuffle(numbers)
    assert build_rows_by_document(numbers) == expected
    assert build_rows_by_document(numbers[:1])[numbers[0]] == expected[numbers[0]]


def test_seed_pass_and_document_id_each_change_the_rows() -> None:
    sentences = random_documents(1, 5)[0] * 20
    found = [
        build_rows(sentences, DocumentRng().reseed(derive_document_key(seed, number, document)))
        for seed, number, document in [
            (0, 0, "pubmed:1"),
            (1, 0, "pubmed:1"),
            (0, 1, "pubmed:1"),
            (0, 0, "pubmed:2"),
        ]
    ]
    assert len({str(rows) for rows in found}) == 4
