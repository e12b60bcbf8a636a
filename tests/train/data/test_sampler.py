"""The order of rows: each row once an epoch, whichever part is asked for, in whatever pieces."""

from __future__ import annotations

import sys
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.data.sampler import RowSampler

BLOCKS = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)
SEEDS = st.integers(0, 1 << 70)
WINDOWS = st.integers(1, 14)


def asked(order: RowSampler, start: int, count: int) -> list[tuple[int, int]]:
    """The epochs and rows of these places."""
    epochs, rows = order.get_rows(start, count)
    assert epochs.dtype == rows.dtype == np.int64
    return list(zip(epochs.tolist(), rows.tolist(), strict=True))


@given(BLOCKS, SEEDS, WINDOWS, st.integers(1, 4))
@settings(deadline=None)
def test_each_epoch_has_every_row_once(blocks: list[int], seed: int, window: int, epochs: int) -> None:
    total = sum(blocks)
    found = asked(RowSampler(blocks, seed, window), 0, epochs * total)
    assert [epoch for epoch, _ in found] == [epoch for epoch in range(epochs) for _ in range(total)]
    for epoch in range(epochs):
        assert sorted(row for of, row in found if of == epoch) == list(range(total))


@given(BLOCKS, SEEDS, WINDOWS, st.lists(st.integers(0, 40), max_size=8), st.integers(0, 60))
@settings(deadline=None)
def test_pieces_are_what_the_whole_is(
    blocks: list[int], seed: int, window: int, counts: list[int], start: int
) -> None:
    whole = asked(RowSampler(blocks, seed, window), start, sum(counts))
    order, pieces, place = RowSampler(blocks, seed, window), [], start
    for count in counts:
        pieces += asked(order, place, count)
        place += count
    assert pieces == whole


@given(
    BLOCKS,
    SEEDS,
    WINDOWS,
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), min_size=1, max_size=8),
)
@settings(deadline=None)
def test_a_part_is_the_same_whatever_was_asked_before(
    blocks: list[int], seed: int, window: int, parts: list[tuple[int, int]]
) -> None:
    used = RowSampler(blocks, seed, window)
    for start, count in parts:
        assert asked(used, start, count) == asked(RowSampler(blocks, seed, window), start, count)


@given(st.integers(1, 9), st.integers(1, 12), SEEDS, WINDOWS)
@settings(deadline=None)
def test_a_window_is_of_whole_record_batches(size: int, blocks: int, seed: int, window: int) -> None:
    """What is read from a disk for a window is not needed again in the epoch."""
    found = [row // size for _, row in asked(RowSampler([size] * blocks, seed, window), 0, size * blocks)]
    for begin in range(0, size * blocks, size * window):
        together = Counter(found[begin : begin + size * window])
        assert set(together.values()) == {size}
        assert len(together) == min(window, blocks - begin // size)


def test_epochs_and_seeds_are_in_orders_of_their_own() -> None:
    orders = [
        tuple(row for _, row in asked(RowSampler([50] * 8, seed, 4), epoch * 400, 400))
        for seed in range(5)
        for epoch in range(5)
    ]
    assert len(set(orders)) == 25


def test_an_epoch_far_away_is_found_at_once() -> None:
    order = RowSampler([3, 4], 0)
    place = 7 * 10**15
    assert sorted(asked(order, place, 7)) == [(10**15, row) for row in range(7)]


def test_every_row_is_as_often_at_a_place_as_any_other() -> None:
    """In 4,000 epochs each of 8 rows is 500 times there, within five standard deviations."""
    order = RowSampler([2, 2, 2, 2], 1, 2)
    for place in (0, 3, 7):
        first = Counter(asked(order, epoch * 8 + place, 1)[0][1] for epoch in range(4_000))
        assert all(abs(first[row] - 500) < 5 * (4_000 / 8 * 7 / 8) ** 0.5 for row in range(8))


def test_the_order_is_the_same_for_ever() -> None:
    """A change of these numbers is one of what a run sees after it is continued."""
    found = asked(RowSampler([4, 3, 5], 7, 2), 9, 6)
    assert found == [(0, 4), (0, 6), (0, 5), (1, 6), (1, 10), (1, 11)]


def test_nothing_is_asked_for() -> None:
    assert asked(RowSampler([5], 0), 3, 0) == []


@pytest.mark.parametrize("blocks", [[], [0], [0, 0]])
def test_no_rows_have_no_order(blocks: list[int]) -> None:
    with pytest.raises(ValueError, match="no rows"):
        RowSampler(blocks, 0)


def test_a_hundred_million_rows_take_a_few_megabytes() -> None:
    order = RowSampler(np.full(48_829, 2048), 0)
    order.get_rows(10**8 - 1000, 5_000)
    held = [
        part
        for value in vars(order).values()
        for part in (value if isinstance(value, tuple) else (value,))
        if isinstance(part, np.ndarray)
    ]
    assert sum(part.nbytes for part in held) + sys.getsizeof(order) < 4 << 20
