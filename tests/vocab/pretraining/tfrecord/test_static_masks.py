"""Static masks: those of the reference code for the same draws, and invariants."""

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

CLS, SEP, MASK = 2, 3, 4
CONTINUES = bytes(30 <= piece < 45 for piece in range(50))
HOW = StaticMasking(MASK, frozenset({CLS, SEP}), 50, 9, 0.25, CONTINUES)
ROW = [
    *(CLS, 10, 11, 31, 32, 12, 33, 13, 14, 15, 34, 35, 36, 16, 17, SEP),
    *(37, 18, 38, 19, 20, 21, 39, 40, 41, 42, 22, 23, 43, 24, SEP),
]
BOTH = pytest.mark.parametrize("mask", [static_masks.mask_bert_row, static_masks.mask_albert_row])
Mask = Callable[[Sequence[int], StaticMasking, Random], MaskedRow]
rows = st.lists(st.sampled_from([CLS, SEP, *range(5, 50)]), min_size=1, max_size=80)
hows = st.builds(
    replace,
    st.just(HOW),
    max_predictions_per_seq=st.integers(1, 20),
    mask_prob=st.floats(0.01, 0.9),
    is_continuation=st.sampled_from([CONTINUES, None]),
)


def words_of(ids: Sequence[int]) -> list[set[int]]:
    """The places of each word, found in another way than the module does."""
    text = [place for place, piece in enumerate(ids) if piece not in HOW.special_ids]
    begins = [n == 0 or not CONTINUES[ids[place]] for n, place in enumerate(text)]
    numbers = [sum(begins[: n + 1]) for n in range(len(text))]
    return [
        {place for place, of in zip(text, numbers, strict=True) if of == number}
        for number in sorted(set(numbers))
    ]


# What google-research's two functions give for ROW with random.Random(7) and (8), nine predictions at most, a
# probability of 0.25, whole words and single pieces; ALBERT's n drawn from the same source.
GOLDEN: list[tuple[Mask, bool, int, dict[int, int], list[int]]] = [
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
def test_the_same_draws_give_what_the_reference_gives(
    mask: Mask, whole: bool, seed: int, changed: dict[int, int], positions: list[int]
) -> None:
    masked = mask(ROW, HOW if whole else replace(HOW, is_continuation=None), Random(seed))
    assert {place: piece for place, piece in enumerate(masked.ids) if piece != ROW[place]} == changed
    assert masked.positions == positions
    assert masked.labels == [ROW[place] for place in positions]


@BOTH
@given(ids=rows, how=hows, seed=st.integers(0, 1 << 32))
@settings(max_examples=200)
def test_masks_keep_to_their_budget_and_to_what_is_text(
    mask: Mask, ids: list[int], how: StaticMasking, seed: int
) -> None:
    before = list(ids)
    masked = mask(ids, how, Random(seed))
    assert ids == before
    assert len(masked.positions) <= min(how.max_predictions_per_seq, max(1, round(len(ids) * how.mask_prob)))
    assert masked.positions == sorted(set(masked.positions))
    assert masked.labels == [ids[place] for place in masked.positions]
    assert not how.special_ids & set(masked.labels)
    assert len(masked.ids) == len(ids)
    untouched = set(range(len(ids))) - set(masked.positions)
    assert all(masked.ids[place] == ids[place] for place in untouched)
    if how.is_continuation:
        for word in words_of(ids):
            assert word <= set(masked.positions) or word.isdisjoint(masked.positions)


@BOTH
@given(ids=rows, how=hows, seed=st.integers(0, 1 << 32))
def test_single_pieces_use_the_whole_budget_where_there_is_text(
    mask: Mask, ids: list[int], how: StaticMasking, seed: int
) -> None:
    single = replace(how, is_continuation=None)
    text = sum(piece not in how.special_ids for piece in ids)
    budget = min(how.max_predictions_per_seq, max(1, round(len(ids) * how.mask_prob)))
    assert len(static_masks.mask_bert_row(ids, single, Random(seed)).positions) == min(text, budget)
    assert len(mask(ids, single, Random(seed)).positions) <= min(text, budget)


@BOTH
def test_a_word_longer_than_the_budget_is_never_taken(mask: Mask) -> None:
    ids = [CLS, 10, *[30] * 9, SEP, 11, SEP]
    how = replace(HOW, max_predictions_per_seq=4)
    for seed in range(50):
        assert set(mask(ids, how, Random(seed)).positions) <= {12}


@BOTH
def test_a_row_without_text_has_nothing_to_predict(mask: Mask) -> None:
    assert mask([CLS, SEP], HOW, Random(0)) == MaskedRow([CLS, SEP], [], [])


@BOTH
def test_what_begins_the_second_segment_within_a_word_goes_with_the_first_segments_last(mask: Mask) -> None:
    """As in the reference, where [SEP] does not end a word: a segment may be cut off in front."""
    how = replace(HOW, max_predictions_per_seq=2, mask_prob=0.3)
    masks = {tuple(mask([CLS, 10, SEP, 30, 11, SEP], how, Random(seed)).positions) for seed in range(40)}
    assert masks <= {(1, 3), (4,)}
    assert (1, 3) in masks


@BOTH
def test_eight_in_ten_pieces_are_masked_one_stays_one_is_random(mask: Mask) -> None:
    """Bounds of five standard deviations, for some 38,000 pieces."""
    fates: Counter[str] = Counter()
    how = replace(
        HOW, vocabulary_size=1_000_000, is_continuation=None, max_predictions_per_seq=77, mask_prob=0.15
    )
    ids = [CLS, *range(10, 49), SEP] * 6
    for seed in range(1000):
        masked = mask(ids, how, Random(seed))
        for place, label in zip(masked.positions, masked.labels, strict=True):
            piece = masked.ids[place]
            fates["mask" if piece == MASK else "same" if piece == label else "random"] += 1
    total = fates.total()
    assert total > 30_000
    for fate, share in (("mask", 0.8), ("same", 0.1), ("random", 0.1)):
        assert abs(fates[fate] / total - share) < 5 * (share * (1 - share) / total) ** 0.5


class Scripted(Random):
    """Gives these numbers, then 0.8 on and on, leaves lists in their order, draws the last integer."""

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
    ("drawn", "n"), [(0.0, 1), (0.5454, 1), (0.5455, 2), (0.8181, 2), (0.8182, 3), (0.9999, 3)]
)
def test_n_grams_of_one_two_and_three_words_are_six_three_and_two_of_eleven(drawn: float, n: int) -> None:
    """The first n-gram's pieces are drawn to be [MASK], all later ones to be replaced."""
    how = replace(HOW, is_continuation=None, max_predictions_per_seq=5, mask_prob=0.5)
    masked = static_masks.mask_albert_row([CLS, *range(10, 20), SEP], how, Scripted(drawn, *[0.0] * n))
    assert masked.ids == [CLS, *[MASK] * n, *[49] * (5 - n), *range(15, 20), SEP]


def test_an_n_gram_is_shortened_to_what_is_left_and_one_that_meets_another_is_left_out() -> None:
    """Three words are taken; what begins in them meets them; of two more there is room for one."""
    ids = [CLS, *range(10, 20), SEP]
    how = replace(HOW, is_continuation=None, max_predictions_per_seq=4, mask_prob=0.5)
    masked = static_masks.mask_albert_row(ids, how, Scripted(0.99, 0.0, 0.0, 0.0, 0.0, 0.99, 0.7, 0.0))
    assert masked.positions == [1, 2, 3, 4]
    assert masked.ids[1:5] == [MASK] * 4


def test_a_piece_is_masked_kept_or_replaced_by_the_draws() -> None:
    ids = [CLS, 10, 11, 12, SEP]
    how = replace(HOW, is_continuation=None, max_predictions_per_seq=3, mask_prob=0.6)
    masked = static_masks.mask_bert_row(ids, how, Scripted(0.79, 0.8, 0.49, 0.8, 0.5))
    assert masked == MaskedRow([CLS, MASK, 11, 49, SEP], [1, 2, 3], [10, 11, 12])


def test_what_continues_a_word_is_what_albert_holds_it_to_be() -> None:
    """Its own answers for these pieces, but for special tokens, which it never asks about."""
    expected = {
        **dict.fromkeys(["▁cell", "▁(", "▁", "▁3", "-", "6", ")", "%", "β", "é", "€", "3a"], 0),
        **dict.fromkeys(["<s>", "'s", "="], 0),
        **dict.fromkeys(["s", "IL", "ing", ").", "a-b", "K", "..."], 1),
        **dict.fromkeys(["[CLS]", "[SEP]", "[MASK]"], 0),
    }
    pieces = {piece: number for number, piece in enumerate(expected)}
    special = ["[CLS]", "[SEP]", "[MASK]"]
    assert find_sentencepiece_continuations(pieces, special) == bytes(expected.values())
