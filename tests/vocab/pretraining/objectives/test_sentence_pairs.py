"""Pairs of BERT and ALBERT: recorded output of the reference code, rates, differences, invariants."""

from __future__ import annotations

import random
from collections import Counter
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
)

BERT = DEFAULTS["bert"]
ALBERT = DEFAULTS["albert"]
CASES = {name: load_golden(name)["cases"] for name in ("bert", "albert")}
EVERY = [(name, number) for name, cases in CASES.items() for number in range(len(cases))]
FIGURES = load_golden("figures")["figures"]
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


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_recorded_cases_cover_every_rule(name: str) -> None:
    occurrences: Counter[str] = Counter()
    for case in CASES[name]:
        room = case["length"] - NUM_PAIR_SPECIALS
        (bounds,) = document_offsets([case["documents"][case["document"]]])
        ends = {bound - bounds[0] for bound in bounds}
        rows = case["rows"]
        for number, (first, second, label) in enumerate(rows):
            other = first[0] != second[0]
            size = first[2] - first[1] + second[2] - second[1]
            occurrences["of two documents"] += other
            occurrences["one after the other"] += not other and not label
            occurrences["swapped"] += not other and label
            occurrences["put back"] += (
                (name, other) == ("bert", True)
                and (first[2] - first[1]) * 2 < room
                and rows[number + 1 :][:1] != []
                and rows[number + 1][0][1] == first[2]
            )
            occurrences["cut at the front"] += first[1] not in ends
            occurrences["cut at the end"] += first[2] not in ends
            occurrences["cut at both ends"] += first[1] not in ends and first[2] not in ends
            occurrences["full"] += size == room
            occurrences["shorter, not the last"] += size < room and number + 1 < len(rows)
            occurrences["a document of one sentence"] += len(ends) == 2
            occurrences["sentences without tokens, left out"] += 0 in case["documents"][case["document"]]
    absent = {"swapped"} if name == "bert" else {"put back"}
    assert {rule for rule, times in occurrences.items() if not times} == absent
    assert min(times for times in occurrences.values() if times) >= 10, occurrences


# The rules, one by one

OTHER = [100, 10, 10, 10]
SHORTER = replace(BERT, max_seq_length=23)
SWAPPING = replace(ALBERT, max_seq_length=23)


def test_pair_ends_with_the_sentence_that_reaches_the_target() -> None:
    documents = [[10, 10, 5, 4, 6], OTHER]
    assert build_pairs_from_draws(documents, LONG, 1, NEXT, 2, NEXT, recipe=SHORTER) == [
        [[0, 0, 10], [0, 10, 20], 0],
        [[0, 20, 29], [0, 29, 35], 0],
    ]


def test_a_short_document_has_one_target_for_all_of_its_rows() -> None:
    documents = [[3, 3, 3, 3, 3], OTHER]
    assert build_pairs_from_draws(documents, 0.0999, 6, 1, NEXT, 1, NEXT, 1, 2, recipe=SHORTER) == [
        [[0, 0, 3], [0, 3, 6], 0],
        [[0, 6, 9], [0, 9, 12], 0],
        [[0, 12, 15], [1, 110, 120], 1],
    ]


def test_random_pair_returns_its_unused_sentences() -> None:
    documents = [[5, 5, 5, 5], OTHER]
    assert build_pairs_from_draws(documents, LONG, 1, RANDOM, 1, 3, 2, NEXT, recipe=SHORTER) == [
        [[0, 0, 5], [1, 120, 130], 1],
        [[0, 5, 15], [0, 15, 20], 0],
    ]


def test_random_segment_has_whole_sentences_up_to_the_target() -> None:
    documents = [[5, 15], [7, 7, 7, 7, 7]]
    recipe = replace(BERT, max_seq_length=63)
    assert build_pairs_from_draws(documents, LONG, 1, RANDOM, 1, 0, 1, 3, recipe=recipe) == [
        [[0, 0, 5], [1, 0, 35], 1],
        [[0, 5, 20], [1, 21, 35], 1],
    ]
    assert build_pairs_from_draws([[5, 15], [40, 10, 10]], 0.0, 15, 1, RANDOM, 1, 1, 1, 0, recipe=recipe) == [
        [[0, 0, 5], [1, 40, 50], 1],
        [[0, 5, 20], [1, 0, 40], 1],
    ]


def test_longer_segment_is_truncated_at_random_ends() -> None:
    documents = [[13, 12], OTHER]
    ends = (FIRST, LAST, LAST, FIRST, FIRST)  # 13: A, then B of 12 and 12, A, B, A
    assert build_pairs_from_draws(documents, LONG, 1, NEXT, *ends, recipe=SHORTER) == [
        [[0, 2, 12], [0, 14, 24], 0]
    ]


def test_albert_swaps_a_pair_below_the_threshold() -> None:
    documents = [[5, 10, 5]]
    assert build_pairs_from_draws(documents, LONG, 2, SWAPPED, recipe=SWAPPING) == [
        [[0, 15, 20], [0, 0, 15], 1]
    ]
    assert build_pairs_from_draws(documents, LONG, 2, IN_ORDER, recipe=SWAPPING) == [
        [[0, 0, 15], [0, 15, 20], 0]
    ]


def test_swapped_segments_are_truncated_after_the_swap() -> None:
    draws = (LONG, 1, SWAPPED, FIRST)  # equally long: segment B, the earlier text, is cut
    assert build_pairs_from_draws([[12, 12]], *draws, LAST, FIRST, LAST, recipe=SWAPPING) == [
        [[0, 12, 22], [0, 2, 12], 1],
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


# Rates

ONES = [1] * 200
"""A document in which every chunk has exactly as many tokens as its target."""


def build_many_documents(recipe: ExampleRecipe, documents: int = 4000) -> list[list[ExampleRow]]:
    """Return the rows of each of many documents whose sentences have one token."""
    offsets = document_offsets([ONES] * 20)
    rng = DocumentRng()
    return [
        list(
            objectives.build_pair_rows(
                number % 20, offsets, rng.reseed(derive_document_key(0, number, "")), recipe
            )
        )
        for number in range(documents)
    ]


@pytest.mark.parametrize("recipe", [replace(BERT, max_seq_length=32), replace(ALBERT, max_seq_length=32)])
def test_one_document_in_ten_is_short(recipe: ExampleRecipe) -> None:
    sizes = Counter(
        max(count_tokens(row.segment_a + row.segment_b) for row in rows)
        for rows in build_many_documents(recipe)
    )
    assert is_near_expected_count(4000 - sizes[29], 4000, 0.1 * 27 / 28)
    assert set(sizes) == set(range(2, 30))


@pytest.mark.thorough
def test_targets_of_short_documents_are_uniform() -> None:
    sizes = Counter(
        count_tokens(rows[0].segment_a + rows[0].segment_b)
        for rows in build_many_documents(replace(ALBERT, max_seq_length=32, short_seq_prob=1))
    )
    assert all(is_near_expected_count(sizes[size], 4000, 1 / 28) for size in range(2, 30))


def test_half_of_bert_pairs_are_random() -> None:
    labels: Counter[int] = Counter()
    end = document_offsets([ONES] * 20)
    for number, rows in enumerate(
        build_many_documents(replace(BERT, max_seq_length=32, short_seq_prob=0.0), 400)
    ):
        # the last one has no choice where it is a sentence alone
        labels.update(row.label for row in rows if row.segment_a[-1][1] != end[number % 20][-1])
    assert set(labels) == {0, 1}
    assert is_near_expected_count(labels[1], labels.total(), 0.5)


def test_half_of_albert_pairs_are_swapped() -> None:
    labels = Counter(
        row.label
        for rows in build_many_documents(replace(ALBERT, max_seq_length=32, short_seq_prob=0.0))
        for row in rows
    )
    assert set(labels) == {0, 1}
    assert is_near_expected_count(labels[1], labels.total(), 0.5)


def test_split_points_of_pairs_are_uniform() -> None:
    rows = [
        row
        for rows in build_many_documents(replace(ALBERT, max_seq_length=32, short_seq_prob=0.0), 1000)
        for row in rows[:-1]
    ]
    sizes = Counter(count_tokens(row.segment_b if row.label else row.segment_a) for row in rows)
    assert set(sizes) == set(range(1, 29))
    assert all(is_near_expected_count(times, len(rows), 1 / 28) for times in sizes.values())


def test_random_segment_starts_are_uniform() -> None:
    offsets = document_offsets([[30], *[[30] * 10] * 9])
    rng, found = DocumentRng(), Counter[int]()
    for number in range(9000):
        (row,) = objectives.build_pair_rows(
            0, offsets, rng.reseed(number), replace(BERT, max_seq_length=63, short_seq_prob=0.0)
        )
        found[row.segment_b[0][0]] += 1
    assert set(found) == {edge for edges in offsets[1:] for edge in edges[:-1]}
    assert all(is_near_expected_count(times, 9000, 1 / 90) for times in found.values())


def test_truncation_removes_front_and_end_equally_often() -> None:
    rng, recipe = DocumentRng(), replace(ALBERT, max_seq_length=23, short_seq_prob=0.0)
    (offsets,) = document_offsets([[120]])
    rows = [
        next(objectives.build_pair_rows(0, [offsets], rng.reseed(number), recipe)) for number in range(200)
    ]
    assert all(row.lost_tokens == 99 for row in rows)
    assert is_near_expected_count(sum(row.segment_a[0][0] - offsets[0] for row in rows), 200 * 99, 0.5)


@pytest.mark.parametrize("name", ["bert", "albert"])
@pytest.mark.parametrize("length", [128, 512])
def test_statistics_of_many_documents_equal_those_of_the_reference(name: str, length: int) -> None:
    documents = random_documents(4000, 1)[:2000]
    offsets, total_tokens = document_offsets(documents), sum(map(sum, documents))
    rng, recipe = (
        DocumentRng(),
        replace(DEFAULTS[name], max_seq_length=length, as_published=name == "albert"),
    )
    rows = [
        row
        for number in range(len(offsets))
        for row in objectives.build_pair_rows(
            number, offsets, rng.reseed(derive_document_key(0, 0, str(number))), recipe
        )
    ]
    expected = FIGURES[f"{name}-{length}"]
    assert is_near_recorded_mean(len(rows), expected["rows"])
    assert is_near_recorded_mean(
        sum(count_tokens(row.segment_a + row.segment_b) for row in rows) / len(rows), expected["mean"]
    )
    assert is_near_recorded_mean(
        sum(count_tokens(row.segment_a) for row in rows) / len(rows), expected["first"]
    )
    assert is_near_recorded_mean(sum(not row.segment_b for row in rows) / len(rows), expected["single"])
    assert is_near_recorded_mean(sum(row.label for row in rows) / len(rows), expected["label"])
    assert is_near_recorded_mean(
        sum(row.other_document_tokens > 0 for row in rows) / len(rows), expected["across"]
    )
    assert is_near_recorded_mean(sum(row.lost_tokens for row in rows) / total_tokens, expected["lost"])


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
def test_every_token_is_in_one_row_or_lost(
    documents: list[list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    offsets = document_offsets(documents)
    for number, edges in enumerate(offsets):
        rows = list(objectives.build_pair_rows(number, offsets, DocumentRng().reseed(seed), recipe))
        own, borrowed = [], 0
        for row in rows:
            own += expand_ranges(row.segment_a)
            if row.segment_b and not is_of_document(row.segment_b, edges):
                borrowed += count_tokens(row.segment_b)
            else:
                own += expand_ranges(row.segment_b)
        assert len(own) == len(set(own))
        assert set(own) <= set(range(edges[0], edges[-1]))
        assert sum(row.other_document_tokens for row in rows) == borrowed
        assert len(own) + sum(row.lost_tokens for row in rows) == edges[-1] - edges[0]


@given(POOL, RECIPES, st.integers(0, 1 << 64))
def test_rows_fit_and_segments_are_of_one_document(
    documents: list[list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    offsets = document_offsets(documents)
    for number in range(len(offsets)):
        for row in objectives.build_pair_rows(number, offsets, DocumentRng().reseed(seed), recipe):
            assert len(input_positions(row)) <= recipe.max_seq_length
            assert len(row.segment_a) == 1
            assert len(row.segment_b) <= 1
            assert all(start < stop for start, stop in row.segment_a + row.segment_b)
            assert row.document == number
            assert row.other_document_tokens or is_of_document(row.segment_a, offsets[number])
            assert any(is_of_document(row.segment_a, edges) for edges in offsets)
            assert any(is_of_document(row.segment_b, edges) for edges in offsets)


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


@given(POOL, DOCUMENT, LENGTH, CHANCE, st.integers(0, 1 << 64))
def test_albert_rows_are_independent_of_other_documents(
    documents: list[list[int]], another: list[int], length: int, short: float, seed: int
) -> None:
    recipe = ExampleRecipe("albert", length, short)
    number = len(documents) - 1
    alone = build_pairs(documents[-1:], DocumentRng().reseed(seed), recipe)
    among = build_pairs([*documents, another], DocumentRng().reseed(seed), recipe, number)
    assert alone == [[[0, *segment[1:]] if segment else [] for segment in row[:2]] + row[2:] for row in among]
