"""Static masks: comparison with the reference code, and invariants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.vocab.pretraining.tfrecord import static_masks
from bioshards.vocab.pretraining.tfrecord.static_masks import (
    MaskedRow,
    StaticMasking,
    find_sentencepiece_continuations,
)
from tests.support.hypothesis_profiles import examples

CLS, SEP, MASK = 2, 3, 4
CONTINUES = bytes(30 <= piece < 45 for piece in range(50))
MASKING = StaticMasking(MASK, frozenset({CLS, SEP}), 50, 9, 0.25, CONTINUES)
ROW = [
    *(CLS, 10, 11, 31, 32, 12, 33, 13, 14, 15, 34, 35, 36, 16, 17, SEP),
    *(37, 18, 38, 19, 20, 21, 39, 40, 41, 42, 22, 23, 43, 24, SEP),
]
both_functions = pytest.mark.parametrize("mask", [static_masks.mask_bert_row, static_masks.mask_albert_row])
MaskFunction = Callable[[Sequence[int], StaticMasking, Random], MaskedRow]
rows = st.lists(st.sampled_from([CLS, SEP, *range(5, 50)]), min_size=1, max_size=80)
maskings = st.builds(
    replace,
    st.just(MASKING),
    max_predictions_per_seq=st.integers(1, 20),
    mask_prob=st.floats(0.01, 0.9),
    is_continuation=st.sampled_from([CONTINUES, None]),
)


def group_words(ids: Sequence[int]) -> list[set[int]]:
    """Return the positions of each word, computed independently of the module."""
    positions = [position for position, piece in enumerate(ids) if piece not in MASKING.special_ids]
    is_first = [n == 0 or not CONTINUES[ids[position]] for n, position in enumerate(positions)]
    word_numbers = [sum(is_first[: n + 1]) for n in range(len(positions))]
    return [
        {
            position
            for position, word_number in zip(positions, word_numbers, strict=True)
            if word_number == number
        }
        for number in sorted(set(word_numbers))
    ]


# Output of google-research's two functions for ROW with random.Random(7) and (8), nine predictions at most, a
# probability of 0.25, whole words and single pieces; ALBERT's n drawn from the same source.
GOLDEN: list[tuple[MaskFunction, bool, int, dict[int, int], list[int]]] = [
    (static_masks.mask_bert_row, True, 7, {7: 4, 8: 4, 14: 4, 26: 4, 27: 4, 28: 25, 29: 4},
     [7, 8, 14, 16, 26, 27, 28, 29]),
    (static_masks.mask_bert_row, True, 8, {8: 4, 14: 4, 19: 4, 20: 4, 26: 4, 27: 4, 28: 4},
     [8, 14, 16, 19, 20, 26, 27, 28]),
    (static_masks.mask_bert_row, False, 7, {6: 4, 8: 4, 10: 4, 16: 4, 28: 4}, [6, 8, 9, 10, 16, 21, 24, 28]),
    (static_masks.mask_bert_row, False, 8, {4: 4, 6: 42, 10: 4, 14: 4, 21: 4, 22: 4, 23: 4},
     [4, 6, 9, 10, 14, 21, 22, 23]),
    (static_masks.mask_albert_row, True, 7, {7: 4, 8: 4, 14: 4, 16: 25, 26: 4, 27: 4, 28: 4, 29: 4},
     [7, 8, 14, 16, 26, 27, 28, 29]),
    (static_masks.mask_albert_row, True, 8, {8: 4, 14: 4, 16: 4, 26: 4, 27: 4, 28: 4},
     [8, 14, 16, 19, 20, 26, 27, 28]),
    (static_masks.mask_albert_row, False, 7, {6: 4, 7: 4, 8: 4, 10: 4, 16: 4, 28: 4},
     [6, 7, 8, 10, 11, 16, 24, 28]),
    (static_masks.mask_albert_row, False, 8, {6: 4, 9: 13, 14: 4, 21: 4, 22: 4, 23: 4, 24: 4},
     [6, 7, 9, 14, 21, 22, 23, 24]),
]  # fmt: skip


@pytest.mark.parametrize(("mask", "whole", "seed", "changed", "positions"), GOLDEN)
def test_masks_equal_recorded_output_of_the_reference(
    mask: MaskFunction, whole: bool, seed: int, changed: dict[int, int], positions: list[int]
) -> None:
    masked = mask(ROW, MASKING if whole else replace(MASKING, is_continuation=None), Random(seed))
    assert {position: piece for position, piece in enumerate(masked.ids) if piece != ROW[position]} == changed
    assert masked.positions == positions
    assert masked.labels == [ROW[position] for position in positions]


@both_functions
@given(ids=rows, masking=maskings, seed=st.integers(0, 1 << 32))
@settings(max_examples=examples(200))
def test_masks_stay_within_budget_and_text(
    mask: MaskFunction, ids: list[int], masking: StaticMasking, seed: int
) -> None:
    before = list(ids)
    masked = mask(ids, masking, Random(seed))
    assert ids == before
    assert len(masked.positions) <= min(
        masking.max_predictions_per_seq, max(1, round(len(ids) * masking.mask_prob))
    )
    assert masked.positions == sorted(set(masked.positions))
    assert masked.labels == [ids[position] for position in masked.positions]
    assert not masking.special_ids & set(masked.labels)
    assert len(masked.ids) == len(ids)
    unmasked = set(range(len(ids))) - set(masked.positions)
    assert all(masked.ids[position] == ids[position] for position in unmasked)
    if masking.is_continuation:
        for word in group_words(ids):
            assert word <= set(masked.positions) or word.isdisjoint(masked.positions)


@both_functions
@given(ids=rows, masking=maskings, seed=st.integers(0, 1 << 32))
def test_single_pieces_use_the_whole_budget(
    mask: MaskFunction, ids: list[int], masking: StaticMasking, seed: int
) -> None:
    single = replace(masking, is_continuation=None)
    text = sum(piece not in masking.special_ids for piece in ids)
    budget = min(masking.max_predictions_per_seq, max(1, round(len(ids) * masking.mask_prob)))
    assert len(static_masks.mask_bert_row(ids, single, Random(seed)).positions) == min(text, budget)
    assert len(mask(ids, single, Random(seed)).positions) <= min(text, budget)


@both_functions
def test_word_longer_than_the_budget_is_not_masked(mask: MaskFunction) -> None:
    ids = [CLS, 10, *[30] * 9, SEP, 11, SEP]
    masking = replace(MASKING, max_predictions_per_seq=4)
    for seed in range(50):
        assert set(mask(ids, masking, Random(seed)).positions) <= {12}


@both_functions
def test_row_without_text_has_no_predictions(mask: MaskFunction) -> None:
    assert mask([CLS, SEP], MASKING, Random(0)) == MaskedRow([CLS, SEP], [], [])


@both_functions
def test_continuation_at_the_start_of_segment_b_joins_the_last_word_of_segment_a(mask: MaskFunction) -> None:
    """As in the reference code, [SEP] does not end a word; truncation may start a segment within a word."""
    masking = replace(MASKING, max_predictions_per_seq=2, mask_prob=0.3)
    masks = {tuple(mask([CLS, 10, SEP, 30, 11, SEP], masking, Random(seed)).positions) for seed in range(40)}
    assert masks <= {(1, 3), (4,)}
    assert (1, 3) in masks


@both_functions
def test_replacement_rates_are_80_10_10(mask: MaskFunction) -> None:
    """Rates of about 38,000 pieces are within five standard deviations."""
    fates: Counter[str] = Counter()
    masking = replace(
        MASKING, vocabulary_size=1_000_000, is_continuation=None, max_predictions_per_seq=77, mask_prob=0.15
    )
    ids = [CLS, *range(10, 49), SEP] * 6
    for seed in range(1000):
        masked = mask(ids, masking, Random(seed))
        for position, label in zip(masked.positions, masked.labels, strict=True):
            piece = masked.ids[position]
            fates["mask" if piece == MASK else "same" if piece == label else "random"] += 1
    total = fates.total()
    assert total > 30_000
    for fate, share in (("mask", 0.8), ("same", 0.1), ("random", 0.1)):
        assert abs(fates[fate] / total - share) < 5 * (share * (1 - share) / total) ** 0.5


class ScriptedRandom(Random):
    """Random that draws given numbers, then always 0.8, and the highest integer; it shuffles nothing."""

    def __init__(self, *numbers: float) -> None:
        super().__init__(0)
        self._numbers = chain(numbers, repeat(0.8))

    def random(self) -> float:
        return next(self._numbers)

    def randint(self, a: int, b: int) -> int:
        return b

    def shuffle(self, x: object) -> None:
        pass


@pytest.mark.parametrize(
    ("draw", "num_words"), [(0.0, 1), (0.5454, 1), (0.5455, 2), (0.8181, 2), (0.8182, 3), (0.9999, 3)]
)
def test_n_gram_lengths_have_odds_of_6_3_2(draw: float, num_words: int) -> None:
    """Pieces of the first n-gram become [MASK], those of later ones random pieces."""
    masking = replace(MASKING, is_continuation=None, max_predictions_per_seq=5, mask_prob=0.5)
    masked = static_masks.mask_albert_row(
        [CLS, *range(10, 20), SEP], masking, ScriptedRandom(draw, *[0.0] * num_words)
    )
    assert masked.ids == [CLS, *[MASK] * num_words, *[49] * (5 - num_words), *range(15, 20), SEP]


def test_n_gram_is_shortened_to_the_budget_and_overlaps_are_skipped() -> None:
    """The first n-gram takes three words, and n-grams that start in it overlap. One more word has room."""
    ids = [CLS, *range(10, 20), SEP]
    masking = replace(MASKING, is_continuation=None, max_predictions_per_seq=4, mask_prob=0.5)
    masked = static_masks.mask_albert_row(
        ids, masking, ScriptedRandom(0.99, 0.0, 0.0, 0.0, 0.0, 0.99, 0.7, 0.0)
    )
    assert masked.positions == [1, 2, 3, 4]
    assert masked.ids[1:5] == [MASK] * 4


def test_draws_decide_between_mask_original_and_random_piece() -> None:
    ids = [CLS, 10, 11, 12, SEP]
    masking = replace(MASKING, is_continuation=None, max_predictions_per_seq=3, mask_prob=0.6)
    masked = static_masks.mask_bert_row(ids, masking, ScriptedRandom(0.79, 0.8, 0.49, 0.8, 0.5))
    assert masked == MaskedRow([CLS, MASK, 11, 49, SEP], [1, 2, 3], [10, 11, 12])


def test_sentencepiece_continuations_equal_albert_code() -> None:
    """Recorded answers of ALBERT's code, except for special tokens, which it does not test."""
    expected = {
        **dict.fromkeys(["▁cell", "▁(", "▁", "▁3", "-", "6", ")", "%", "β", "é", "€", "3a"], 0),
        **dict.fromkeys(["<s>", "'s", "="], 0),
        **dict.fromkeys(["s", "IL", "ing", ").", "a-b", "K", "..."], 1),
        **dict.fromkeys(["[CLS]", "[SEP]", "[MASK]"], 0),
    }
    pieces = {piece: number for number, piece in enumerate(expected)}
    special = ["[CLS]", "[SEP]", "[MASK]"]
    assert find_sentencepiece_continuations(pieces, special) == bytes(expected.values())
