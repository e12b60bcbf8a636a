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
from bioshards.vocab.pretraining.objectives import sentence_pairs
from bioshards.vocab.pretraining.objectives.document_rng import DocumentRng, RandomSource, derive_document_key
from bioshards.vocab.pretraining.objectives.example_recipes import DEFAULTS, ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import (
    NUM_PAIR_SPECIALS,
    ExampleRow,
    TokenRange,
    count_tokens,
)
from tests.support.vocab.reference_cases import (
    ScriptedRandom,
    assert_spans_match,
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
"""A chance that a document is not short."""
FIRST, LAST = 0.4999, 0.5
"""Chances that a token goes from the front, from the end."""
RANDOM = SWAPPED = 0.4999
NEXT = IN_ORDER = 0.5

Piece = list[int]
"""A document, the first of its tokens, and the one after the last, both counted within the document."""


def piece(ranges: Sequence[TokenRange], whole: Sequence[Sequence[int]]) -> Piece:
    ((start, stop),) = ranges
    document = max(number for number, edges in enumerate(whole) if edges[0] <= start)
    return [document, start - whole[document][0], stop - whole[document][0]]


def build(
    several: Sequence[Sequence[int]], source: RandomSource, recipe: ExampleRecipe, document: int = 0
) -> list[Any]:
    """A document's rows, each as its segments (of none: []) and its label."""
    whole = document_offsets(several)
    return [
        [piece(row.segment_a, whole), piece(row.segment_b, whole) if row.segment_b else [], row.label]
        for row in sentence_pairs.build_rows(document, whole, source, recipe)
    ]


def scripted(
    several: Sequence[Sequence[int]], *chances: float, recipe: ExampleRecipe, document: int = 0
) -> list[Any]:
    """The same, with chances one by one, all of which must be drawn."""
    source = ScriptedRandom(*chances)
    found = build(several, source, recipe, document)
    assert not source.remaining
    return found


# What the references make of a document


@pytest.mark.parametrize(("name", "number"), EVERY)
def test_rows_are_those_of_the_reference(name: str, number: int) -> None:
    case = CASES[name][number]
    recipe = replace(DEFAULTS[name], max_seq_length=case["length"], as_published=name == "albert")
    found = build(case["documents"], random.Random(case["seed"]), recipe, case["document"])
    assert found == case["rows"]


def test_without_a_sentence_alone_albert_is_the_same_published_or_not() -> None:
    same = 0
    for case in CASES["albert"]:
        if all(first[0] == second[0] for first, second, _ in case["rows"]):
            recipe = replace(ALBERT, max_seq_length=case["length"])
            source = random.Random(case["seed"])
            assert build(case["documents"], source, recipe, case["document"]) == case["rows"]
            same += 1
    assert same >= 20


@pytest.mark.parametrize("name", ["bert", "albert"])
def test_the_recorded_cases_meet_every_rule(name: str) -> None:
    met: Counter[str] = Counter()
    for case in CASES[name]:
        room = case["length"] - NUM_PAIR_SPECIALS
        (bounds,) = document_offsets([case["documents"][case["document"]]])
        ends = {bound - bounds[0] for bound in bounds}
        rows = case["rows"]
        for number, (first, second, label) in enumerate(rows):
            other = first[0] != second[0]
            size = first[2] - first[1] + second[2] - second[1]
            met["of two documents"] += other
            met["one after the other"] += not other and not label
            met["swapped"] += not other and label
            met["put back"] += (
                (name, other) == ("bert", True)
                and (first[2] - first[1]) * 2 < room
                and rows[number + 1 :][:1] != []
                and rows[number + 1][0][1] == first[2]
            )
            met["cut at the front"] += first[1] not in ends
            met["cut at the end"] += first[2] not in ends
            met["cut at both ends"] += first[1] not in ends and first[2] not in ends
            met["full"] += size == room
            met["shorter, not the last"] += size < room and number + 1 < len(rows)
            met["a document of one sentence"] += len(ends) == 2
            met["sentences without tokens, left out"] += 0 in case["documents"][case["document"]]
    absent = {"swapped"} if name == "bert" else {"put back"}
    assert {rule for rule, times in met.items() if not times} == absent
    assert min(times for times in met.values() if times) >= 10, met


# The rules, one by one

OTHER = [100, 10, 10, 10]
SHORTER = replace(BERT, max_seq_length=23)
SWAPPING = replace(ALBERT, max_seq_length=23)


def test_a_chunk_is_closed_by_the_sentence_that_reaches_the_target() -> None:
    several = [[10, 10, 5, 4, 6], OTHER]
    assert scripted(several, LONG, 1, NEXT, 2, NEXT, recipe=SHORTER) == [
        [[0, 0, 10], [0, 10, 20], 0],
        [[0, 20, 29], [0, 29, 35], 0],
    ]


def test_a_short_document_has_one_target_for_all_of_its_rows() -> None:
    several = [[3, 3, 3, 3, 3], OTHER]
    assert scripted(several, 0.0999, 6, 1, NEXT, 1, NEXT, 1, 2, recipe=SHORTER) == [
        [[0, 0, 3], [0, 3, 6], 0],
        [[0, 6, 9], [0, 9, 12], 0],
        [[0, 12, 15], [1, 110, 120], 1],
    ]


def test_a_random_pair_puts_back_what_its_second_segment_would_have_been() -> None:
    several = [[5, 5, 5, 5], OTHER]
    assert scripted(several, LONG, 1, RANDOM, 1, 3, 2, NEXT, recipe=SHORTER) == [
        [[0, 0, 5], [1, 120, 130], 1],
        [[0, 5, 15], [0, 15, 20], 0],
    ]


def test_a_random_segment_is_of_whole_sentences_until_the_target_is_reached() -> None:
    several = [[5, 15], [7, 7, 7, 7, 7]]
    recipe = replace(BERT, max_seq_length=63)
    assert scripted(several, LONG, 1, RANDOM, 1, 0, 1, 3, recipe=recipe) == [
        [[0, 0, 5], [1, 0, 35], 1],
        [[0, 5, 20], [1, 21, 35], 1],
    ]
    assert scripted([[5, 15], [40, 10, 10]], 0.0, 15, 1, RANDOM, 1, 1, 1, 0, recipe=recipe) == [
        [[0, 0, 5], [1, 40, 50], 1],
        [[0, 5, 20], [1, 0, 40], 1],
    ]


def test_the_longer_segment_loses_a_token_at_either_end_until_both_fit() -> None:
    several = [[13, 12], OTHER]
    ends = (FIRST, LAST, LAST, FIRST, FIRST)  # 13: A, then B of 12 and 12, A, B, A
    assert scripted(several, LONG, 1, NEXT, *ends, recipe=SHORTER) == [[[0, 2, 12], [0, 14, 24], 0]]


def test_albert_swaps_half_of_the_pairs() -> None:
    several = [[5, 10, 5]]
    assert scripted(several, LONG, 2, SWAPPED, recipe=SWAPPING) == [[[0, 15, 20], [0, 0, 15], 1]]
    assert scripted(several, LONG, 2, IN_ORDER, recipe=SWAPPING) == [[[0, 0, 15], [0, 15, 20], 0]]


def test_swapped_segments_are_cut_after_the_swap() -> None:
    chances = (LONG, 1, SWAPPED, FIRST)  # equally long: segment B, the earlier text, is cut
    assert scripted([[12, 12]], *chances, LAST, FIRST, LAST, recipe=SWAPPING) == [
        [[0, 12, 22], [0, 2, 12], 1],
    ]


def test_what_is_cut_is_lost_unless_it_is_borrowed() -> None:
    # 13 and 30 tokens become 10 and 10, and so do 12 and 30
    source = ScriptedRandom(LONG, 1, RANDOM, 1, 0, *[LAST] * 23, 1, 0, *[LAST] * 22)
    rows = list(sentence_pairs.build_rows(0, document_offsets([[13, 12], [30]]), source, SHORTER))
    assert [
        (count_tokens(row.segment_a), count_tokens(row.segment_b), row.lost_tokens, row.other_document_tokens)
        for row in rows
    ] == [
        (10, 10, 3, 10),
        (10, 10, 2, 10),
    ]
    source = ScriptedRandom(LONG, 1, NEXT, *[LAST] * 5)
    (row,) = sentence_pairs.build_rows(0, document_offsets([[13, 12], [30]]), source, SHORTER)
    assert (row.lost_tokens, row.other_document_tokens) == (5, 0)


# Where ours differ


def test_a_random_segment_is_never_of_the_document_itself() -> None:
    several = [[5], [6], [7]]
    assert scripted(several, LONG, *[1] * 9, 2, 0, recipe=SHORTER, document=1) == [[[1, 0, 6], [2, 0, 7], 1]]
    assert scripted(several, LONG, *[1] * 10, 0, recipe=SHORTER, document=1) == [[[1, 0, 6], [2, 0, 7], 1]]
    assert scripted(several, LONG, *[2] * 10, 0, recipe=SHORTER, document=2) == [[[2, 0, 7], [0, 0, 5], 1]]


def test_berts_document_without_others_is_paired_with_nothing() -> None:
    assert scripted([[5, 10, 5, 12]], LONG, 2, recipe=SHORTER) == [
        [[0, 0, 15], [0, 15, 20], 0],
        [[0, 20, 32], [], NO_LABEL],
    ]


def test_alberts_sentence_alone_has_no_label() -> None:
    several = [[25, 10, 5], OTHER]
    cut = (FIRST, LAST, LAST, FIRST)  # a row of one segment has room for 21
    assert scripted(several, LONG, *cut, 1, IN_ORDER, recipe=SWAPPING) == [
        [[0, 2, 23], [], NO_LABEL],
        [[0, 25, 35], [0, 35, 40], 0],
    ]


def test_as_published_alberts_sentence_alone_is_labelled_as_if_it_were_swapped() -> None:
    published = replace(SWAPPING, as_published=True)
    several = [[20, 10, 5], OTHER]
    cut = (LAST,) * 10
    assert scripted(several, LONG, 0, 1, 2, *cut, 1, IN_ORDER, recipe=published) == [
        [[0, 0, 10], [1, 110, 120], 1],
        [[0, 20, 30], [0, 30, 35], 0],
    ]
    assert scripted([[20]], LONG, recipe=published) == [[[0, 0, 20], [], NO_LABEL]]


# Rates

ONES = [1] * 200
"""A document in which every chunk has exactly as many tokens as its target."""


def many(recipe: ExampleRecipe, documents: int = 4000) -> list[list[ExampleRow]]:
    """The rows of each of many documents of sentences of one token."""
    whole = document_offsets([ONES] * 20)
    chances = DocumentRng()
    return [
        list(
            sentence_pairs.build_rows(
                number % 20, whole, chances.reseed(derive_document_key(0, number, "")), recipe
            )
        )
        for number in range(documents)
    ]


@pytest.mark.parametrize("recipe", [replace(BERT, max_seq_length=32), replace(ALBERT, max_seq_length=32)])
def test_one_document_in_ten_is_short(recipe: ExampleRecipe) -> None:
    sizes = Counter(max(count_tokens(row.segment_a + row.segment_b) for row in rows) for rows in many(recipe))
    assert is_near_expected_count(4000 - sizes[29], 4000, 0.1 * 27 / 28)
    assert set(sizes) == set(range(2, 30))


def test_targets_of_short_documents_are_all_as_likely() -> None:
    sizes = Counter(
        count_tokens(rows[0].segment_a + rows[0].segment_b)
        for rows in many(replace(ALBERT, max_seq_length=32, short_seq_prob=1))
    )
    assert all(is_near_expected_count(sizes[size], 4000, 1 / 28) for size in range(2, 30))


def test_half_of_berts_pairs_are_random() -> None:
    labels: Counter[int] = Counter()
    end = document_offsets([ONES] * 20)
    for number, rows in enumerate(many(replace(BERT, max_seq_length=32, short_seq_prob=0.0), 400)):
        # the last one has no choice where it is a sentence alone
        labels.update(row.label for row in rows if row.segment_a[-1][1] != end[number % 20][-1])
    assert set(labels) == {0, 1}
    assert is_near_expected_count(labels[1], labels.total(), 0.5)


def test_half_of_alberts_pairs_are_swapped() -> None:
    labels = Counter(
        row.label for rows in many(replace(ALBERT, max_seq_length=32, short_seq_prob=0.0)) for row in rows
    )
    assert set(labels) == {0, 1}
    assert is_near_expected_count(labels[1], labels.total(), 0.5)


def test_a_pair_is_divided_after_any_of_its_sentences() -> None:
    rows = [
        row
        for rows in many(replace(ALBERT, max_seq_length=32, short_seq_prob=0.0), 1000)
        for row in rows[:-1]
    ]
    sizes = Counter(count_tokens(row.segment_b if row.label else row.segment_a) for row in rows)
    assert set(sizes) == set(range(1, 29))
    assert all(is_near_expected_count(times, len(rows), 1 / 28) for times in sizes.values())


def test_other_documents_and_their_sentences_are_all_as_likely() -> None:
    whole = document_offsets([[30], *[[30] * 10] * 9])
    chances, found = DocumentRng(), Counter[int]()
    for number in range(9000):
        (row,) = sentence_pairs.build_rows(
            0, whole, chances.reseed(number), replace(BERT, max_seq_length=63, short_seq_prob=0.0)
        )
        found[row.segment_b[0][0]] += 1
    assert set(found) == {edge for edges in whole[1:] for edge in edges[:-1]}
    assert all(is_near_expected_count(times, 9000, 1 / 90) for times in found.values())


def test_as_many_tokens_go_from_the_front_as_from_the_end() -> None:
    chances, recipe = DocumentRng(), replace(ALBERT, max_seq_length=23, short_seq_prob=0.0)
    (whole,) = document_offsets([[120]])
    found = [
        next(sentence_pairs.build_rows(0, [whole], chances.reseed(number), recipe)) for number in range(200)
    ]
    assert all(row.lost_tokens == 99 for row in found)
    assert is_near_expected_count(sum(row.segment_a[0][0] - whole[0] for row in found), 200 * 99, 0.5)


@pytest.mark.parametrize("name", ["bert", "albert"])
@pytest.mark.parametrize("length", [128, 512])
def test_figures_of_many_documents_are_those_of_the_reference(name: str, length: int) -> None:
    several = random_documents(4000, 1)[:2000]
    whole, read = document_offsets(several), sum(map(sum, several))
    chances, recipe = (
        DocumentRng(),
        replace(DEFAULTS[name], max_seq_length=length, as_published=name == "albert"),
    )
    rows = [
        row
        for number in range(len(whole))
        for row in sentence_pairs.build_rows(
            number, whole, chances.reseed(derive_document_key(0, 0, str(number))), recipe
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
    assert is_near_recorded_mean(sum(row.lost_tokens for row in rows) / read, expected["lost"])


# What always holds

DOCUMENT = st.lists(st.one_of(st.integers(1, 12), st.integers(1, 90)), min_size=1, max_size=20)
POOL = st.lists(DOCUMENT, min_size=1, max_size=5)
CHANCE = st.sampled_from([0.0, 0.1, 1.0])
LENGTH = st.integers(5, 70)
RECIPES = st.one_of(
    st.builds(ExampleRecipe, st.just("bert"), LENGTH, CHANCE),
    st.builds(ExampleRecipe, st.just("albert"), LENGTH, CHANCE, as_published=st.booleans()),
)


@given(POOL, RECIPES, st.integers(0, 1 << 64))
def test_every_token_is_in_one_row_or_lost(
    several: list[list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    whole = document_offsets(several)
    for number, edges in enumerate(whole):
        rows = list(sentence_pairs.build_rows(number, whole, DocumentRng().reseed(seed), recipe))
        own, borrowed = [], 0
        for row in rows:
            own += expand_ranges(row.segment_a)
            if row.segment_b and row.spans[1].document != number:
                borrowed += count_tokens(row.segment_b)
            else:
                own += expand_ranges(row.segment_b)
        assert len(own) == len(set(own))
        assert set(own) <= set(range(edges[0], edges[-1]))
        assert sum(row.other_document_tokens for row in rows) == borrowed
        assert len(own) + sum(row.lost_tokens for row in rows) == edges[-1] - edges[0]


@given(POOL, RECIPES, st.integers(0, 1 << 64))
def test_every_row_fits_and_says_where_it_is_from(
    several: list[list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    whole = document_offsets(several)
    for number in range(len(whole)):
        for row in sentence_pairs.build_rows(number, whole, DocumentRng().reseed(seed), recipe):
            assert len(input_positions(row)) <= recipe.max_seq_length
            assert len(row.segment_a) == 1
            assert len(row.segment_b) == len(row.spans) - 1
            assert all(start < stop for start, stop in row.segment_a + row.segment_b)
            assert_spans_match(row, whole)
            assert row.spans[0].document == number


@given(POOL, RECIPES, st.integers(0, 1 << 64))
def test_a_label_says_what_the_segments_are(
    several: list[list[int]], recipe: ExampleRecipe, seed: int
) -> None:
    whole = document_offsets(several)
    for number in range(len(whole)):
        for row in sentence_pairs.build_rows(number, whole, DocumentRng().reseed(seed), recipe):
            if not row.segment_b:
                assert row.label == NO_LABEL
                assert recipe.objective == "albert" or len(whole) == 1
            elif row.spans[1].document != number:
                assert row.label == 1
                assert recipe.objective == "bert" or recipe.as_published
            else:
                in_order = row.segment_a[0] < row.segment_b[0]
                assert row.label == (0 if in_order else 1)
                assert in_order or recipe.objective == "albert"


@given(POOL, DOCUMENT, LENGTH, CHANCE, st.integers(0, 1 << 64))
def test_alberts_rows_depend_on_no_other_document(
    several: list[list[int]], another: list[int], length: int, short: float, seed: int
) -> None:
    recipe = ExampleRecipe("albert", length, short)
    number = len(several) - 1
    alone = build(several[-1:], DocumentRng().reseed(seed), recipe)
    among = build([*several, another], DocumentRng().reseed(seed), recipe, number)
    assert alone == [[[0, *piece[1:]] if piece else [] for piece in row[:2]] + row[2:] for row in among]
