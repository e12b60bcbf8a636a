"""Masks of micro-batches, compared with a plain implementation row by row.

``test_random_bits.py`` has the random numbers, which the plain implementation shares.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.data import masking as module
from bioshards.train.data.masking import (
    MaskedRows,
    MaskingConfig,
    make_row_keys,
    mask_rows,
    random_bits,
    uniform,
)
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.presets import PRESETS
from bioshards.train.recipe import MaskUnit
from tests.support.hypothesis_profiles import examples

CLS, SEP, MASK, SIZE = 2, 3, 4, 60
"""Pieces 0, 2, 3 and 4 are special, 1 is [UNK], and from 40 on they continue a word."""
PIECES = PieceTable(SIZE, MASK, np.isin(np.arange(SIZE), [0, CLS, SEP, MASK]), np.arange(SIZE) >= 40)
UNITS: tuple[MaskUnit, ...] = ("token", "word", "ngram")
every_unit = pytest.mark.parametrize("unit", UNITS)
LENGTH = 512
Keys = npt.NDArray[np.uint64]


def mask_batch(
    rows: Sequence[Sequence[int]], masking: MaskingConfig, keys: Keys | None = None, length: int = LENGTH
) -> MaskedRows:
    """Mask rows as one micro-batch. The default keys are of rows 0, 1, ... with seed 0 and epoch 0."""
    if keys is None:
        keys = make_keys(len(rows))
    ids = np.array([piece for row in rows for piece in row], np.uint16)
    return mask_rows(ids, compute_offsets(rows), keys, PIECES, masking, length)


def compute_offsets(rows: Sequence[Sequence[int]]) -> npt.NDArray[np.int64]:
    return np.cumsum([0, *map(len, rows)])


def make_keys(rows: int, seed: int = 0, epoch: int = 0) -> Keys:
    return make_row_keys(seed, np.full(rows, epoch), np.arange(rows))


def split_rows(mask_batch: MaskedRows, rows: Sequence[Sequence[int]]) -> list[list[Any]]:
    """Return ids, positions, targets and noise of each row."""
    offsets = compute_offsets(rows)
    cuts = np.searchsorted(mask_batch.positions, offsets)
    return [
        [
            mask_batch.ids[start:end].tolist(),
            (mask_batch.positions[first:last] - start).tolist(),
            mask_batch.targets[first:last].tolist(),
            mask_batch.noise[first:last].tolist(),
        ]
        for (start, end), (first, last) in zip(pairwise(offsets), pairwise(cuts), strict=True)
    ]


# Plain implementation


def group_words(row: Sequence[int], unit: MaskUnit) -> list[list[int]]:
    """Return the positions of each word, or of each token. A special token ends a word."""
    words: list[list[int]] = []
    for position, piece in enumerate(row):
        if PIECES.is_special[piece]:
            continue
        follows = position > 0 and not PIECES.is_special[row[position - 1]]
        if unit != "token" and PIECES.is_continuation[piece] and follows:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def compute_expected_row(
    row: Sequence[int], row_key: np.uint64, masking: MaskingConfig, length: int = LENGTH
) -> list[Any]:
    """Mask a row in plain Python, by the rule in the module's docstring and the same random numbers."""
    keys, positions = np.full(len(row), row_key), np.arange(len(row))
    order = random_bits(keys, positions, 0).tolist()
    words_drawn, fate, replacement, noise = (
        uniform(keys, positions, stream).tolist() for stream in range(1, 5)
    )
    limit = masking.max_predictions or int((masking.rate + 0.005) * length)
    budget = max(1, min(limit, round(len(row) * masking.rate)))
    words = group_words(row, masking.unit)
    chosen: set[int] = set()
    for number in sorted(range(len(words)), key=lambda number: order[words[number][0]]):
        first = words[number][0]
        num_words = 1
        if masking.unit == "ngram":
            num_words += sum(words_drawn[first] >= bound for bound in (6 / 11, 9 / 11))
        segment_end = next(
            position for position in [*range(first, len(row)), len(row)] if is_end(row, position)
        )
        ngram = [word for word in words[number : number + num_words] if word[0] < segment_end]
        while sum(map(len, ngram)) > budget - len(chosen):
            ngram.pop()
        tokens = [position for word in ngram for position in word]
        if not chosen.intersection(tokens):
            chosen.update(tokens)
    ids, masked_positions = list(row), sorted(chosen)
    others = [piece for piece in range(SIZE) if not PIECES.is_special[piece]]
    for position in masked_positions:
        if fate[position] < masking.mask_token_fraction:
            ids[position] = MASK
        elif fate[position] < masking.mask_token_fraction + masking.random_token_fraction:
            ids[position] = others[int(replacement[position] * len(others))]
    noises = [int(noise[position] * (1 << 24)) / (1 << 24) for position in masked_positions]
    return [ids, masked_positions, [row[position] for position in masked_positions], noises]


def is_end(row: Sequence[int], position: int) -> bool:
    return position == len(row) or bool(PIECES.is_special[row[position]])


def draw_row(rng: np.random.Generator, max_length: int) -> list[int]:
    """Draw a row of one or two segments with words of various lengths. A segment may begin within a word."""
    num_segments = 1 + rng.integers(2)
    num_tokens = int(rng.integers(0, max_length - 1 - num_segments))
    continuation_rate = rng.choice([0.0, 0.2, 0.5, 0.9, 1.0])
    is_continuation = rng.random(num_tokens) < continuation_rate
    text = np.where(
        is_continuation, rng.integers(40, SIZE, num_tokens), rng.choice([1, *range(5, 40)], num_tokens)
    )
    cut = int(rng.integers(num_tokens + 1)) if num_segments == 2 else num_tokens
    row = [CLS, *text[:cut].tolist(), SEP]
    return row if num_segments == 1 else [*row, *text[cut:].tolist(), SEP]


@every_unit
@pytest.mark.parametrize("max_predictions", [0, 3, 20])
@pytest.mark.parametrize("rate", [0.05, 0.1, 0.15, 0.2, 0.25, 0.6])
def test_masks_equal_the_rule_row_by_row(unit: MaskUnit, rate: float, max_predictions: int) -> None:
    rng = np.random.default_rng([UNITS.index(unit), int(rate * 100), max_predictions])
    rows = [draw_row(rng, int(max_length)) for max_length in rng.choice([6, 12, 40, 128, 512], 30)]
    masking = MaskingConfig(
        unit, rate, mask_token_fraction=0.8, random_token_fraction=0.1, max_predictions=max_predictions
    )
    keys = make_keys(len(rows), seed=max_predictions)
    masked_rows = split_rows(mask_batch(rows, masking, keys), rows)
    for row, row_key, masked_row in zip(rows, keys, masked_rows, strict=True):
        assert masked_row == compute_expected_row(row, row_key, masking)


@every_unit
@pytest.mark.parametrize("share", [0.0, 0.02, 0.2, 1.0])
def test_masks_are_independent_of_the_priority_threshold(
    monkeypatch: pytest.MonkeyPatch, unit: MaskUnit, share: float
) -> None:
    rng = np.random.default_rng(2)
    rows = [draw_row(rng, 100) for _ in range(100)]
    masking = MaskingConfig(unit, 0.15, mask_token_fraction=0.8, random_token_fraction=0.1)
    before = split_rows(mask_batch(rows, masking), rows)
    threshold = np.uint64(min(share * 2.0**64, 2.0**64 - 2048))
    monkeypatch.setattr(
        module, "_compute_priority_thresholds", lambda left, tokens: np.full(len(left), threshold)
    )
    assert split_rows(mask_batch(rows, masking), rows) == before


def test_few_groups_are_sorted_first_and_nearly_always_enough() -> None:
    """The number of groups below the threshold is at least three standard deviations above the budget."""
    budgets, tokens = np.array([38, 15, 77]), np.array([256, 100, 512])
    shares = module._compute_priority_thresholds(budgets, tokens) / 2.0**64
    assert (tokens * shares - budgets > 3 * np.sqrt(tokens * shares * (1 - shares))).all()
    assert (shares < 0.4).all()
    assert module._compute_priority_thresholds(np.array([1]), np.array([1])) == (1 << 64) - (1 << 11)


# Invariants

texts = st.lists(st.sampled_from([1, SEP, *range(5, SIZE)]), max_size=60)
batches = st.lists(texts.map(lambda text: [CLS, *text]), max_size=12)
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
@settings(max_examples=examples(300))
def test_masks_equal_the_rule_for_any_tokens(
    rows: list[list[int]], masking: MaskingConfig, seed: int
) -> None:
    keys = make_keys(len(rows), seed)
    masked = mask_batch(rows, masking, keys)
    assert [str(part.dtype) for part in masked] == ["int64", "int64", "int64", "float32"]
    assert split_rows(masked, rows) == [
        compute_expected_row(row, row_key, masking) for row, row_key in zip(rows, keys, strict=True)
    ]


@every_unit
def test_mask_of_a_row_is_independent_of_a_large_batch(unit: MaskUnit) -> None:
    rows = [[CLS, *range(5, 5 + number % 50), SEP] for number in range(3000)]
    masking = MaskingConfig(unit, 0.2)
    keys = make_keys(3000)
    whole_batch = split_rows(mask_batch(rows, masking, keys), rows)
    for number in (0, 1, 1777, 2999):
        assert whole_batch[number] == compute_expected_row(rows[number], keys[number], masking)


def test_input_rows_are_not_modified() -> None:
    ids = np.array([CLS, *range(5, 35), SEP])
    before = ids.copy()
    ids.setflags(write=False)
    masked_rows = mask_rows(ids, np.array([0, 32]), make_keys(1), PIECES, MaskingConfig(rate=0.5), LENGTH)
    assert (ids == before).all()
    assert (masked_rows.ids != ids).any()


# Edge cases


def test_defaults_are_electras() -> None:
    assert MaskingConfig.of_recipe(PRESETS["electra-small"], 0.15) == MaskingConfig()


def test_number_at_the_bound_of_the_mask_tokens_gives_a_random_token() -> None:
    row, keys = [CLS, *range(5, 35), SEP], make_keys(1)
    for bound in uniform(np.repeat(keys, len(row)), np.arange(len(row)), 2).tolist():
        masking = MaskingConfig(rate=0.9, mask_token_fraction=bound, random_token_fraction=1 - bound)
        assert split_rows(mask_batch([row], masking, keys), [row]) == [
            compute_expected_row(row, keys[0], masking)
        ]


@pytest.mark.parametrize("unit", ["word", "ngram"])
def test_words_and_n_grams_end_at_special_tokens(unit: MaskUnit) -> None:
    """The second word begins with a continuation piece after [SEP]."""
    rows = [[CLS, 5, 40, SEP, 41, 42, SEP]] * 300
    masked = mask_batch(rows, MaskingConfig(unit, 0.3, max_predictions=2))
    assert {tuple(positions) for _, positions, _, _ in split_rows(masked, rows)} == {(1, 2), (4, 5)}


def test_budgets_equal_those_of_the_reference() -> None:
    """ELECTRA: round(n * rate) with halves to even, at most int((rate + 0.005) * length), at least 1."""
    tokens = np.array([1, 3, 10, 30, 50, 100, 256])
    assert MaskingConfig(rate=0.15).compute_budgets(tokens, 256).tolist() == [1, 1, 2, 4, 8, 15, 38]
    assert MaskingConfig(rate=0.15).compute_budgets(tokens, 128).tolist() == [1, 1, 2, 4, 8, 15, 19]
    limited = MaskingConfig(rate=0.15, max_predictions=20)
    assert limited.compute_budgets(tokens, 512).tolist() == [1, 1, 2, 4, 8, 15, 20]
    assert MaskingConfig(rate=0.25).compute_budgets(tokens, 256).tolist() == [1, 1, 2, 8, 12, 25, 64]
    assert MaskingConfig(rate=0.15).compute_budgets(np.array([130]), 130).tolist() == [20]
    assert MaskingConfig(rate=0.01).compute_budgets(tokens, 5).tolist() == [1] * 7
