"""The sampler: each row occurs once per epoch, in an order that is independent of how it is read."""

from __future__ import annotations

import tracemalloc
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.data.sampler import RowSampler

BLOCKS = st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(any)
SEEDS = st.integers(0, 1 << 70)
WINDOWS = st.integers(1, 14)


def list_positions(sampler: RowSampler, start: int, count: int) -> list[tuple[int, int]]:
    """Return the epoch and row of each of these positions."""
    epochs, rows = sampler.get_rows(start, count)
    assert epochs.dtype == rows.dtype == np.int64
    return list(zip(epochs.tolist(), rows.tolist(), strict=True))


@given(BLOCKS, SEEDS, WINDOWS, st.integers(1, 4))
def test_each_epoch_has_every_row_once(blocks: list[int], seed: int, window: int, epochs: int) -> None:
    num_rows = sum(blocks)
    positions = list_positions(RowSampler(blocks, seed, window), 0, epochs * num_rows)
    assert [epoch for epoch, _ in positions] == [epoch for epoch in range(epochs) for _ in range(num_rows)]
    for epoch in range(epochs):
        assert sorted(row for row_epoch, row in positions if row_epoch == epoch) == list(range(num_rows))


@given(BLOCKS, SEEDS, WINDOWS, st.lists(st.integers(0, 40), max_size=8), st.integers(0, 60))
def test_order_is_independent_of_chunking(
    blocks: list[int], seed: int, window: int, counts: list[int], start: int
) -> None:
    expected = list_positions(RowSampler(blocks, seed, window), start, sum(counts))
    sampler, pieces, position = RowSampler(blocks, seed, window), [], start
    for count in counts:
        pieces += list_positions(sampler, position, count)
        position += count
    assert pieces == expected


@given(
    BLOCKS,
    SEEDS,
    WINDOWS,
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 30)), min_size=1, max_size=8),
)
def test_order_is_independent_of_earlier_reads(
    blocks: list[int], seed: int, window: int, parts: list[tuple[int, int]]
) -> None:
    used_sampler = RowSampler(blocks, seed, window)
    for start, count in parts:
        assert list_positions(used_sampler, start, count) == list_positions(
            RowSampler(blocks, seed, window), start, count
        )


@given(st.integers(1, 9), st.integers(1, 12), SEEDS, WINDOWS)
def test_window_has_whole_record_batches(size: int, blocks: int, seed: int, window: int) -> None:
    """Each record batch is read in one window per epoch only."""
    block_numbers = [
        row // size for _, row in list_positions(RowSampler([size] * blocks, seed, window), 0, size * blocks)
    ]
    for begin in range(0, size * blocks, size * window):
        blocks_of_window = Counter(block_numbers[begin : begin + size * window])
        assert set(blocks_of_window.values()) == {size}
        assert len(blocks_of_window) == min(window, blocks - begin // size)


def test_default_window_has_64_record_batches() -> None:
    """60 MB of rows of 256 tokens."""
    blocks = [3] * 130
    default, wide, wider = (
        list_positions(RowSampler(blocks, 7, *window), 0, 390) for window in ((), (64,), (65,))
    )
    assert default == wide
    assert default != wider


def test_epochs_and_seeds_have_different_orders() -> None:
    orders = [
        tuple(row for _, row in list_positions(RowSampler([50] * 8, seed, 4), epoch * 400, 400))
        for seed in range(5)
        for epoch in range(5)
    ]
    assert len(set(orders)) == 25


def test_distant_epoch_is_read_directly() -> None:
    sampler = RowSampler([3, 4], 0)
    position = 7 * 10**15
    assert sorted(list_positions(sampler, position, 7)) == [(10**15, row) for row in range(7)]


def test_rows_are_uniform_at_each_position() -> None:
    """In 4,000 epochs each of 8 rows occurs 500 times at a position, within five standard deviations."""
    _, rows = RowSampler([2, 2, 2, 2], 1, 2).get_rows(0, 4_000 * 8)
    for position in (0, 3, 7):
        counts = np.bincount(rows[position::8], minlength=8)
        assert (abs(counts - 500) < 5 * (4_000 / 8 * 7 / 8) ** 0.5).all()


def test_order_equals_recorded_values() -> None:
    """A change of these numbers changes the rows that a resumed run sees."""
    rows = list_positions(RowSampler([4, 3, 5], 7, 2), 9, 6)
    assert rows == [(0, 4), (0, 6), (0, 5), (1, 6), (1, 10), (1, 11)]


def test_100_million_rows_take_a_few_megabytes() -> None:
    block_sizes = np.full(48_829, 2048)
    tracemalloc.start()
    sampler = RowSampler(block_sizes, 0)
    sampler.get_rows(10**8 - 1000, 5_000)
    allocated, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert allocated + block_sizes.nbytes < 4 << 20
