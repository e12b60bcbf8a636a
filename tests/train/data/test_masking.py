"""Masks of micro-batches against the rule as one reads it, row by row; what holds of all; their chances.

Bounds are of five standard deviations; all draws are the same in every run.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.config.masking_config import MaskingConfig, MaskUnit
from bioshards.train.data import masking as module
from bioshards.train.data.counter_rng import make_row_keys, random_bits, uniform
from bioshards.train.data.masking import MaskedRows, mask_rows
from bioshards.train.data.piece_table import PieceTable

CLS, SEP, MASK, SIZE = 2, 3, 4, 60
"""Pieces 0, 2, 3 and 4 are special, 1 is [UNK], and from 40 on they continue a word."""
PIECES = PieceTable(SIZE, MASK, np.isin(np.arange(SIZE), [0, CLS, SEP, MASK]), np.arange(SIZE) >= 40)
UNITS: tuple[MaskUnit, ...] = ("token", "word", "ngram")
EACH_UNIT = pytest.mark.parametrize("unit", UNITS)
LENGTH = 512
Keys = npt.NDArray[np.uint64]


def masked(
    rows: Sequence[Sequence[int]], masking: MaskingConfig, keys: Keys | None = None, length: int = LENGTH
) -> MaskedRows:
    """These rows in one micro-batch; without keys they are rows 0, 1, ... of seed 0 and epoch 0."""
    if keys is None:
        keys = keys_of(len(rows))
    ids = np.array([piece for row in rows for piece in row], np.uint16)
    return mask_rows(ids, offsets_of(rows), keys, PIECES, masking, length)


def offsets_of(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *map(len, rows)])


def keys_of(rows: int, seed: int = 0, epoch: int = 0) -> Keys:
    return make_row_keys(seed, np.full(rows, epoch), np.arange(rows))


def rows_of(found: MaskedRows, rows: Sequence[Sequence[int]]) -> list[list[Any]]:
    """What was found for each row alone: its ids, its places, its targets, its noise."""
    offsets = offsets_of(rows)
    cuts = np.searchsorted(found.positions, offsets)
    return [
        [
            found.ids[start:end].tolist(),
            (found.positions[first:last] - start).tolist(),
            found.targets[first:last].tolist(),
            found.noise[first:last].tolist(),
        ]
        for (start, end), (first, last) in zip(pairwise(offsets), pairwise(cuts), strict=True)
    ]


# The rule as one reads it


def words_of(row: Sequence[int], unit: MaskUnit) -> list[list[int]]:
    """The places of each word, or of each token; none goes beyond a special token."""
    words: list[list[int]] = []
    for place, piece in enumerate(row):
        if PIECES.is_special[piece]:
            continue
        follows = place > 0 and not PIECES.is_special[row[place - 1]]
        if unit != "token" and PIECES.is_continuation[piece] and follows:
            words[-1].append(place)
        else:
            words.append([place])
    return words


def expected(
    row: Sequence[int], of_row: np.uint64, masking: MaskingConfig, length: int = LENGTH
) -> list[Any]:
    """A row masked as the module's docstring says, in plain Python, with the same random numbers."""
    keys, places = np.full(len(row), of_row), np.arange(len(row))
    order = random_bits(keys, places, 0).tolist()
    words_drawn, fate, replacement, noise = (uniform(keys, places, s).tolist() for s in range(1, 5))
    most = masking.max_predictions or int((masking.rate + 0.005) * length)
    budget = max(1, min(most, round(len(row) * masking.rate)))
    words = words_of(row, masking.unit)
    chosen: set[int] = set()
    for number in sorted(range(len(words)), key=lambda number: order[words[number][0]]):
        first = words[number][0]
        n = 1
        if masking.unit == "ngram":
            n += sum(words_drawn[first] >= bound for bound in (6 / 11, 9 / 11))
        segment_end = next(place for place in [*range(first, len(row)), len(row)] if is_end(row, place))
        ngram = [word for word in words[number : number + n] if word[0] < segment_end]
        while sum(map(len, ngram)) > budget - len(chosen):
            ngram.pop()
        tokens = [place for word in ngram for place in word]
        if not chosen.intersection(tokens):
            chosen.update(tokens)
    seen, at = list(row), sorted(chosen)
    others = [piece for piece in range(SIZE) if not PIECES.is_special[piece]]
    for place in at:
        if fate[place] < masking.mask_token_fraction:
            seen[place] = MASK
        elif fate[place] < masking.mask_token_fraction + masking.random_token_fraction:
            seen[place] = others[int(replacement[place] * len(others))]
    noises = [int(noise[place] * (1 << 24)) / (1 << 24) for place in at]
    return [seen, at, [row[place] for place in at], noises]


def is_end(row: Sequence[int], place: int) -> bool:
    return place == len(row) or bool(PIECES.is_special[row[place]])


def invented(chance: np.random.Generator, longest: int) -> list[int]:
    """A row of one or two segments, of words of many sizes or few, a segment may begin within a word."""
    ends = 1 + chance.integers(2)
    size = int(chance.integers(0, longest - 1 - ends))
    share = chance.choice([0.0, 0.2, 0.5, 0.9, 1.0])
    continuing = chance.random(size) < share
    text = np.where(continuing, chance.integers(40, SIZE, size), chance.choice([1, *range(5, 40)], size))
    cut = int(chance.integers(size + 1)) if ends == 2 else size
    row = [CLS, *text[:cut].tolist(), SEP]
    return row if ends == 1 else [*row, *text[cut:].tolist(), SEP]


@EACH_UNIT
@pytest.mark.parametrize("most", [0, 3, 20])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.15, 0.2, 0.25, 0.6])
def test_masks_are_those_of_the_rule_row_by_row(unit: MaskUnit, rate: float, most: int) -> None:
    chance = np.random.default_rng([UNITS.index(unit), int(rate * 100), most])
    rows = [invented(chance, int(longest)) for longest in chance.choice([6, 12, 40, 128], 60)]
    masking = MaskingConfig(
        unit, rate, mask_token_fraction=0.8, random_token_fraction=0.1, max_predictions=most
    )
    keys = keys_of(len(rows), seed=most)
    found = rows_of(masked(rows, masking, keys), rows)
    for row, of_row, one in zip(rows, keys, found, strict=True):
        assert one == expected(row, of_row, masking)


@EACH_UNIT
def test_twenty_predictions_of_512_tokens_are_those_of_the_rule(unit: MaskUnit) -> None:
    """What ALBERT's script does unless told otherwise."""
    chance = np.random.default_rng(1)
    rows = [invented(chance, 512) for _ in range(40)]
    masking = MaskingConfig(
        unit, 0.15, mask_token_fraction=0.8, random_token_fraction=0.1, max_predictions=20
    )
    found = rows_of(masked(rows, masking), rows)
    assert max(len(at) for _, at, _, _ in found) == 20
    for row, of_row, one in zip(rows, keys_of(40), found, strict=True):
        assert one == expected(row, of_row, masking)


@EACH_UNIT
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 1.0])
def test_how_many_groups_are_sorted_at_first_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, unit: MaskUnit, share: float
) -> None:
    chance = np.random.default_rng(2)
    rows = [invented(chance, 100) for _ in range(100)]
    masking = MaskingConfig(unit, 0.15, mask_token_fraction=0.8, random_token_fraction=0.1)
    before = rows_of(masked(rows, masking), rows)
    below = np.uint64(min(share * 2.0**64, 2.0**64 - 2048))
    monkeypatch.setattr(
        module, "_compute_priority_thresholds", lambda left, tokens: np.full(len(left), below)
    )
    assert rows_of(masked(rows, masking), rows) == before


# What holds of all masks

texts = st.lists(st.sampled_from([SEP, *range(5, SIZE)]), max_size=60)
batches = st.lists(texts.map(lambda text: [CLS, *text, SEP]), min_size=1, max_size=12)
maskings = st.builds(
    MaskingConfig,
    unit=st.sampled_from(UNITS),
    rate=st.floats(0.01, 0.9),
    mask_token_fraction=st.floats(0, 0.5),
    random_token_fraction=st.floats(0, 0.5),
    max_predictions=st.integers(0, 20),
)
seeds = st.integers(0, (1 << 64) - 1)


@given(rows=batches, masking=maskings, seed=seeds)
@settings(max_examples=300)
def test_masks_keep_to_their_budget_to_text_and_to_whole_words(
    rows: list[list[int]], masking: MaskingConfig, seed: int
) -> None:
    found = masked(rows, masking, keys_of(len(rows), seed))
    ids = np.concatenate(rows)
    assert (np.diff(found.positions) > 0).all()
    assert (found.targets == ids[found.positions]).all()
    assert not PIECES.is_special[found.targets].any()
    untouched = np.delete(np.arange(len(ids)), found.positions)
    assert (found.ids[untouched] == ids[untouched]).all()
    changed = found.ids[found.positions][found.ids[found.positions] != found.targets]
    assert (~PIECES.is_special[changed] | (changed == MASK)).all()
    assert ((found.noise >= 0) & (found.noise < 1)).all()
    assert [str(part.dtype) for part in found] == ["int64", "int64", "int64", "float32"]
    for row, (_, at, _, _) in zip(rows, rows_of(found, rows), strict=True):
        most = masking.max_predictions or int((masking.rate + 0.005) * LENGTH)
        budget = max(1, min(most, round(len(row) * masking.rate)))
        words = words_of(row, masking.unit)
        assert len(at) <= budget
        if masking.unit == "token":
            assert len(at) == min(budget, len(words))
        left_out = [word for word in words if not set(word) <= set(at)]
        assert all(set(word).isdisjoint(at) for word in left_out)
        if masking.unit != "ngram":
            assert all(len(word) > budget - len(at) for word in left_out)


@given(rows=batches, masking=maskings, seed=seeds, data=st.data())
@settings(max_examples=200)
def test_a_rows_mask_does_not_depend_on_its_batch(
    rows: list[list[int]], masking: MaskingConfig, seed: int, data: st.DataObject
) -> None:
    """Not on its neighbours, its place among them, nor their number."""
    keys = keys_of(len(rows), seed)
    together = rows_of(masked(rows, masking, keys), rows)
    cut = data.draw(st.integers(1, len(rows)))
    parts = [*rows_of(masked(rows[:cut], masking, keys[:cut]), rows[:cut])]
    if rows[cut:]:
        parts += rows_of(masked(rows[cut:], masking, keys[cut:]), rows[cut:])
    assert parts == together
    order = data.draw(st.permutations(range(len(rows))))
    moved = [rows[number] for number in order]
    assert rows_of(masked(moved, masking, keys[order]), moved) == [together[number] for number in order]


@EACH_UNIT
def test_a_row_may_be_in_any_of_very_many(unit: MaskUnit) -> None:
    rows = [[CLS, *range(5, 5 + number % 50), SEP] for number in range(3000)]
    masking = MaskingConfig(unit, 0.2)
    keys = keys_of(3000)
    together = rows_of(masked(rows, masking, keys), rows)
    for number in (0, 1, 1777, 2999):
        alone = [rows[number]]
        assert rows_of(masked(alone, masking, keys[number : number + 1]), alone) == [together[number]]


def test_rows_are_not_changed() -> None:
    ids = np.array([CLS, *range(5, 35), SEP])
    before = ids.copy()
    ids.setflags(write=False)
    found = mask_rows(ids, np.array([0, 32]), keys_of(1), PIECES, MaskingConfig(rate=0.5), LENGTH)
    assert (ids == before).all()
    assert (found.ids != ids).any()


# Rows at the edge


@EACH_UNIT
def test_rows_of_three_tokens_have_their_one_predicted(unit: MaskUnit) -> None:
    rows = [[CLS, 5 + number % 55, SEP] for number in range(200)]
    found = masked(rows, MaskingConfig(unit, 0.05))
    assert found.positions.tolist() == list(range(1, 600, 3))
    assert found.targets.tolist() == [row[1] for row in rows]


@EACH_UNIT
def test_rows_of_special_tokens_only_have_nothing_to_predict(unit: MaskUnit) -> None:
    rows = [[CLS, SEP], [CLS, SEP, SEP], [CLS]]
    found = masked(rows, MaskingConfig(unit, 0.25))
    assert found.ids.tolist() == [CLS, SEP, CLS, SEP, SEP, CLS]
    assert [len(part) for part in found[1:]] == [0, 0, 0]
    mixed = masked([rows[0], [CLS, 5, SEP], rows[1]], MaskingConfig(unit, 0.25))
    assert mixed.positions.tolist() == [3]


@EACH_UNIT
def test_rows_need_not_end_with_a_special_token(unit: MaskUnit) -> None:
    rows = [[CLS, *range(5, 5 + number), *[40] * (number % 3)] for number in range(1, 30)] * 5
    masking = MaskingConfig(unit, 0.5)
    keys = keys_of(len(rows))
    for row, of_row, one in zip(rows, keys, rows_of(masked(rows, masking, keys), rows), strict=True):
        assert one == expected(row, of_row, masking)
        assert rows_of(masked([row], masking, np.array([of_row])), [row]) == [one]


@EACH_UNIT
def test_no_rows_have_no_masks(unit: MaskUnit) -> None:
    found = masked([], MaskingConfig(unit))
    assert [len(part) for part in found] == [0, 0, 0, 0]


@pytest.mark.parametrize("unit", ["word", "ngram"])
def test_a_word_larger_than_the_budget_is_never_taken(unit: MaskUnit) -> None:
    row = [CLS, *[40] * 100, SEP, 5, SEP]
    for found in rows_of(masked([row] * 100, MaskingConfig(unit, 0.15)), [row] * 100):
        assert found[1] == [102]
    assert not len(masked([[CLS, *[40] * 100, SEP]] * 9, MaskingConfig(unit, 0.15)).positions)


@pytest.mark.parametrize("unit", ["word", "ngram"])
def test_neither_words_nor_n_grams_go_beyond_a_special_token(unit: MaskUnit) -> None:
    """Two words, the second of which begins with a piece that continues one."""
    rows = [[CLS, 5, 40, SEP, 41, 42, SEP]] * 300
    found = {
        tuple(at) for _, at, _, _ in rows_of(masked(rows, MaskingConfig(unit, 0.3, max_predictions=2)), rows)
    }
    assert found == {(1, 2), (4, 5)}


def test_unknown_tokens_are_text() -> None:
    assert masked([[CLS, 1, SEP]], MaskingConfig()).targets.tolist() == [1]


def test_a_budget_is_the_references() -> None:
    """ELECTRA: round(n * rate), at most int((rate + 0.005) * length), at least 1; halves go to even."""
    tokens = np.array([1, 3, 10, 30, 50, 100, 256])
    assert MaskingConfig(rate=0.15).compute_budgets(tokens, 256).tolist() == [1, 1, 2, 4, 8, 15, 38]
    assert MaskingConfig(rate=0.15).compute_budgets(tokens, 128).tolist() == [1, 1, 2, 4, 8, 15, 19]
    assert MaskingConfig(rate=0.15, max_predictions=20).compute_budgets(tokens, 512).tolist() == [
        1,
        1,
        2,
        4,
        8,
        15,
        20,
    ]
    assert MaskingConfig(rate=0.25).compute_budgets(tokens, 256).tolist() == [1, 1, 2, 8, 12, 25, 64]
    assert MaskingConfig(rate=0.15).compute_budgets(np.array([130]), 130).tolist() == [20]
    assert MaskingConfig(rate=0.01).compute_budgets(tokens, 5).tolist() == [1] * 7


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"unit": "sentence"}, "'sentence'; choose from token, word, ngram"),
        ({"rate": 0.0}, "rate 0.0 .* between 0 and 1"),
        ({"rate": 15}, "rate 15 .* between 0 and 1"),
        (
            {"mask_token_fraction": 0.95, "random_token_fraction": 0.1},
            "0.95 and random_token_fraction 0.1 must .* at most 1",
        ),
        ({"random_token_fraction": -0.1}, "random_token_fraction -0.1"),
        ({"max_predictions": -1}, "max_predictions -1 is below 0"),
    ],
)
def test_masking_that_makes_no_sense_is_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        replace(MaskingConfig(), **wrong)


# Chances


def near(found: float, share: float, of: int) -> bool:
    return abs(found / of - share) <= 5 * math.sqrt(share * (1 - share) / of)


TEXT = [[CLS, *[5 + (7 * row + place) % 35 for place in range(254)], SEP] for row in range(600)]


@pytest.mark.parametrize(("of_masked", "of_random"), [(0.85, 0.0), (0.8, 0.1)])
@EACH_UNIT
def test_tokens_are_masked_kept_or_replaced_as_often_as_told(
    unit: MaskUnit, of_masked: float, of_random: float
) -> None:
    found = masked(TEXT, MaskingConfig(unit, 0.15, of_masked, of_random))
    seen, total = found.ids[found.positions], len(found.positions)
    others = SIZE - int(PIECES.is_special.sum())
    assert near(float((seen == MASK).sum()), of_masked, total)
    changed = (seen != MASK) & (seen != found.targets)
    assert near(float(changed.sum()), of_random * (1 - 1 / others), total)
    if of_random:
        frequencies = np.bincount(seen[changed], minlength=SIZE)
        assert not frequencies[PIECES.is_special].any()
        share = changed.sum() / others
        assert (abs(frequencies[40:] - share) < 5 * share**0.5).all()


@EACH_UNIT
def test_noise_is_even_and_has_nothing_to_do_with_the_rest(unit: MaskUnit) -> None:
    found = masked(TEXT, MaskingConfig(unit, 0.15, 0.5, 0.25))
    noise, n = found.noise.astype(np.float64), len(found.positions)
    assert (abs(np.histogram(noise, 20, (0, 1))[0] - n / 20) < 5 * (n / 20) ** 0.5).all()
    seen = found.ids[found.positions]
    for other in (seen == MASK, seen == found.targets, found.positions % 256, seen, noise[np.argsort(seen)]):
        assert abs(np.corrcoef(noise, other)[0, 1]) < 5 / n**0.5


@EACH_UNIT
def test_all_places_of_a_row_are_as_likely(unit: MaskUnit) -> None:
    """N-grams begin where there is a word, so that a row's first and last have fewer that cover them."""
    found = masked(TEXT * 5, MaskingConfig(unit, 0.15), keys_of(3000))
    times = np.bincount(found.positions % 256, minlength=256)
    assert (times[0], times[255]) == (0, 0)
    inner = times[3:253] if unit == "ngram" else times[1:255]
    share = inner.mean()
    assert (abs(inner - share) < 5 * share**0.5).all()


@EACH_UNIT
@pytest.mark.parametrize("other", [{"seed": 1}, {"epoch": 1}])
def test_masks_of_two_epochs_and_two_seeds_meet_as_chance_has_it(
    unit: MaskUnit, other: dict[str, int]
) -> None:
    first = set(masked(TEXT, MaskingConfig(unit, 0.15)).positions.tolist())
    second = set(masked(TEXT, MaskingConfig(unit, 0.15), keys_of(600, **other)).positions.tolist())
    assert near(len(first & second), 38 / 254, len(first))


def test_no_row_is_masked_as_another_or_as_before() -> None:
    """38 of 254 places: two of 6,000 masks that are the same are no chance."""
    masks = [
        tuple(at)
        for epoch in range(10)
        for _, at, _, _ in rows_of(masked(TEXT, MaskingConfig(), keys_of(600, epoch=epoch)), TEXT)
    ]
    assert len(set(masks)) == 6000


def test_n_grams_are_as_long_as_alberts() -> None:
    """Of three tokens to predict in a long row the runs tell what was drawn: 6, 3 and 2 of 11 for one, two
    and three words, and what is drawn when one or two tokens are left is made as short as that.

    In one row of a hundred two n-grams touch by chance.
    """
    rows = [[CLS, *[5] * 998, SEP]] * 2000
    found = masked(rows, MaskingConfig("ngram", 0.15, max_predictions=3), length=1000)
    runs = []
    for _, at, _, _ in rows_of(found, rows):
        numbered = groupby(enumerate(at), lambda numbered: numbered[1] - numbered[0])
        runs.append(sorted(len(list(run)) for _, run in numbered))
    for lengths, share in (([3], 22 / 121), ([1, 2], 63 / 121), ([1, 1, 1], 36 / 121)):
        deviation = (share * (1 - share) / len(runs)) ** 0.5
        assert abs(runs.count(lengths) / len(runs) - share) < 5 * deviation + 0.01


def test_a_rate_that_grows_masks_what_a_lower_one_masked_and_more() -> None:
    """As the order of the tokens is a row's, and the budget is another."""
    before: set[int] = set()
    for rate in (0.05, 0.1, 0.15, 0.2, 0.25):
        now = set(masked(TEXT, replace(MaskingConfig(), rate=rate)).positions.tolist())
        assert before < now
        before = now
