"""Rows copied out of shards and laid out as batches, against the same written row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.data.collate import BatchShape, collate_rows, compute_counts, compute_token_capacity
from bioshards.train.data.gather import FlatRows, gather_rows
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.data.sampler import RowSampler
from tests.support.train.synthetic_rows import (
    SyntheticRow,
    random_rows,
    split_into_batches,
    write_pretraining_set,
)

LENGTH = 12
PAD = 77
MASK = 4


class _Masked(NamedTuple):
    ids: Any
    positions: Any
    targets: Any
    noise: Any


def rows_of(rows: Sequence[SyntheticRow]) -> FlatRows:
    """These rows as they are gathered."""
    return FlatRows(
        np.array([token for row in rows for token in row.ids], np.uint16),
        np.cumsum([0, *(len(row.ids) for row in rows)]),
        np.array([row.split for row in rows], np.int64),
        np.array([row.label for row in rows], np.int64),
        np.arange(len(rows)),
        np.zeros(len(rows), np.int64),
    )


def masked(rows: FlatRows, seed: int) -> Any:
    """Some places masked, none that begins a row."""
    chance = np.random.default_rng(seed)
    ids = rows.ids.astype(np.int64)
    at = np.flatnonzero(chance.random(len(ids)) < 0.3)
    at = np.setdiff1d(at, rows.offsets)
    targets = ids[at]
    ids[at] = MASK
    return _Masked(ids, at, targets, chance.random(len(at), np.float32))


class Seen(NamedTuple):
    """A row as a model sees it: of each token the id, type and place, and of masked ones the rest."""

    tokens: list[tuple[int, int, int]]
    masked: list[tuple[int, int, float]]
    label: int


def written(rows: Sequence[SyntheticRow], seed: int) -> list[Seen]:
    """What the model is to see, from the definitions."""
    gathered = rows_of(rows)
    chosen = masked(gathered, seed)
    found = []
    for row, begin in zip(rows, gathered.offsets.tolist(), strict=False):
        tokens = [
            (int(chosen.ids[begin + place]), int(0 < row.split <= place), place)
            for place in range(len(row.ids))
        ]
        places = [
            (int(at) - begin, int(target), float(noise))
            for at, target, noise in zip(chosen.positions, chosen.targets, chosen.noise, strict=True)
            if begin <= at < begin + len(row.ids)
        ]
        found.append(Seen(tokens, places, row.label))
    return found


def seen(found: Batch, segments: Sequence[tuple[int, int]]) -> list[Seen]:
    """What the model sees in these stretches, a row each."""
    masked = [
        (int(at), int(target), float(noise))
        for at, target, noise in zip(found.masked_positions, found.targets, found.noise, strict=True)
        if target != -100
    ]
    return [
        Seen(
            [
                (int(found.ids[place]), int(found.token_type_ids[place]), int(found.position_ids[place]))
                for place in range(begin, end)
                if found.is_token[place]
            ],
            [(at - begin, target, noise) for at, target, noise in masked if begin <= at < end],
            int(label),
        )
        for (begin, end), label in zip(segments, found.labels, strict=True)
    ]


def check(found: Batch, tokens: int, rows: int) -> None:
    """What is true of every batch."""
    for name in (
        "ids",
        "token_type_ids",
        "position_ids",
        "masked_positions",
        "targets",
        "row_starts",
        "labels",
    ):
        assert getattr(found, name).dtype == torch.int64, name
        assert getattr(found, name).dim() == 1, name
    assert found.noise.dtype == torch.float32
    assert found.is_token.dtype == torch.bool
    assert {len(getattr(found, name)) for name in ("ids", "token_type_ids", "position_ids", "is_token")} == {
        tokens
    }
    assert len(found.masked_positions) == len(found.targets) == len(found.noise)
    assert len(found.row_starts) == len(found.labels) == rows
    assert found.max_seqlen == LENGTH
    assert (found.masked_positions[found.targets == -100] == 0).all()
    assert (found.ids[~found.is_token] == PAD).all()
    assert (found.token_type_ids[~found.is_token] == 0).all()
    assert (found.position_ids[found.row_starts] == 0).all()
    assert 0 <= int(found.position_ids.min()) <= int(found.position_ids.max()) < LENGTH


ROWS = st.builds(
    lambda number, labelled, seed: random_rows(number, LENGTH, 70, labelled, seed),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 1 << 30),
)
SEEDS = st.integers(0, 1 << 30)


@given(ROWS, SEEDS, st.sampled_from([0, 60]))
@settings(deadline=None)
def test_rows_end_to_end(rows: list[SyntheticRow], seed: int, most: int) -> None:
    gathered = rows_of(rows)
    found = collate_rows(gathered, masked(gathered, seed), PAD, BatchShape(LENGTH, num_masked=most))
    used, number = len(gathered.ids), len(rows)
    size = 128 * math.ceil(used / 128)
    check(found, size, number)
    assert found.cu_seqlens is not None
    assert found.cu_seqlens.dtype == torch.int32
    bounds = found.cu_seqlens.tolist()
    assert bounds[: number + 1] == gathered.offsets.tolist()
    assert (bounds[-1], len(bounds)) == (size, number + math.ceil(128 / LENGTH) + 1)
    assert all(0 <= end - begin <= LENGTH for begin, end in pairwise(bounds))
    assert found.row_starts.tolist() == bounds[:number]
    assert found.is_token.tolist() == [place < used for place in range(size)]
    assert len(found.masked_positions) == (most or 64 * math.ceil(len(masked(gathered, seed).positions) / 64))
    assert seen(found, list(pairwise(bounds[: number + 1]))) == written(rows, seed)


def test_few_shapes_in_all() -> None:
    """Of a thousand batches of other rows: libraries keep something of each."""
    shapes = set()
    for seed in range(1000):
        gathered = rows_of(random_rows(16, LENGTH, 70, labelled=True, seed=seed))
        found = collate_rows(gathered, masked(gathered, seed), PAD, BatchShape(LENGTH))
        assert found.cu_seqlens is not None
        shapes.add((len(found.ids), len(found.masked_positions), len(found.cu_seqlens)))
    assert len(shapes) < 10


@given(ROWS, SEEDS, st.sampled_from([0, 60]))
@settings(deadline=None)
def test_rows_padded(rows: list[SyntheticRow], seed: int, most: int) -> None:
    gathered = rows_of(rows)
    found = collate_rows(
        gathered, masked(gathered, seed), PAD, BatchShape(LENGTH, pad_rows=True, num_masked=most)
    )
    check(found, len(rows) * LENGTH, len(rows))
    assert found.cu_seqlens is None
    assert found.row_starts.tolist() == [LENGTH * row for row in range(len(rows))]
    assert found.position_ids.tolist() == list(range(LENGTH)) * len(rows)
    assert seen(found, [(LENGTH * row, LENGTH * (row + 1)) for row in range(len(rows))]) == written(
        rows, seed
    )


@given(ROWS, SEEDS, st.integers(1, 110))
@settings(deadline=None)
def test_rows_end_to_end_in_constant_shapes(rows: list[SyntheticRow], seed: int, tokens: int) -> None:
    """Two shapes at most, whatever the rows; what is more than there is room for is as large as if padded."""
    gathered, number = rows_of(rows), len(rows)
    found = collate_rows(
        gathered, masked(gathered, seed), PAD, BatchShape(LENGTH, num_tokens=tokens, num_masked=60)
    )
    size = tokens if len(gathered.ids) <= tokens else number * LENGTH
    check(found, size, number)
    assert found.cu_seqlens is not None
    assert len(found.cu_seqlens) == number + math.ceil(size / LENGTH) + 1
    assert len(found.masked_positions) == 60
    bounds = found.cu_seqlens.tolist()
    segments = list(pairwise(bounds))
    assert (bounds[0], bounds[-1]) == (0, size)
    assert all(0 <= end - begin <= LENGTH for begin, end in segments)
    assert found.row_starts.tolist() == bounds[:number]
    assert found.is_token.tolist() == [place < len(gathered.ids) for place in range(size)]
    assert seen(found, segments[:number]) == written(rows, seed)
    for begin, end in segments[number:]:
        assert found.position_ids[begin:end].tolist() == list(range(end - begin))


@given(ROWS, SEEDS)
@settings(deadline=None)
def test_counts_leave_padding_out(rows: list[SyntheticRow], seed: int) -> None:
    gathered = rows_of(rows)
    chosen = masked(gathered, seed)
    assert compute_counts(gathered, chosen) == BatchCounts(
        rows=len(rows),
        tokens=sum(len(row.ids) for row in rows),
        masked=len(chosen.positions),
        labelled=sum(row.label != -100 for row in rows),
        squares=sum(len(row.ids) ** 2 for row in rows),
    )
    assert all(isinstance(count, int) for count in compute_counts(gathered, chosen))


def test_what_does_not_fit_is_an_error() -> None:
    rows = rows_of([SyntheticRow([2, 5, 6, 7, 3])])
    chosen = _Masked(rows.ids.astype(np.int64), np.array([1, 2]), np.array([5, 6]), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="a row has 5 tokens, more than max_seq_length 4"):
        collate_rows(rows, chosen, PAD, BatchShape(4))  # type: ignore[arg-type,unused-ignore]
    with pytest.raises(ValueError, match="2 masked positions exceed the 1 of the batch layout"):
        collate_rows(rows, chosen, PAD, BatchShape(5, num_masked=1))  # type: ignore[arg-type,unused-ignore]


def test_a_batch_is_of_memory_of_its_own() -> None:
    """What a model does to its input changes no shard: torch would write even where numpy may not."""
    rows = rows_of(random_rows(4, LENGTH, 70, labelled=True))
    for layout in (BatchShape(LENGTH), BatchShape(LENGTH, pad_rows=True), BatchShape(LENGTH, num_tokens=60)):
        chosen = masked(rows, 0)
        found = collate_rows(rows, chosen, PAD, layout)
        before = [part.copy() for part in (rows.ids, rows.offsets, rows.segment_b_starts)]
        for part in found:
            if isinstance(part, torch.Tensor):
                part.zero_()
        for now, was in zip((rows.ids, rows.offsets, rows.segment_b_starts), before, strict=True):
            assert now.tolist() == was.tolist()


# Gathering


@pytest.fixture(scope="module", params=["electra", "bert"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PretrainingDataset, list[SyntheticRow]]:
    """A set of three shards, and its rows."""
    rows = random_rows(120, LENGTH, 70, request.param == "bert")
    blocks = split_into_batches(rows, [9, 4, 1, 17])
    names = {"a": blocks[:5], "b": blocks[5:6], "c": blocks[6:]}
    folder = write_pretraining_set(tmp_path_factory.mktemp("set"), names, None, request.param, LENGTH, 70)
    return PretrainingDataset(str(folder)), rows


@given(wanted=st.lists(st.integers(0, 119), max_size=40))
@settings(deadline=None)
def test_rows_are_gathered_in_the_order_asked_for(
    made: tuple[PretrainingDataset, list[SyntheticRow]], wanted: list[int]
) -> None:
    shards, rows = made
    epochs = np.arange(len(wanted), dtype=np.int64)
    found = gather_rows(shards, epochs, np.array(wanted, np.int64))
    whole = rows_of([rows[row] for row in wanted])
    assert found.ids.dtype == np.uint16
    for here, there in zip(found[:4], whole[:4], strict=True):
        assert here.tolist() == there.tolist()
    assert found.row_ids.tolist() == wanted
    assert found.epochs.tolist() == epochs.tolist()


def test_an_epoch_of_batches_has_every_row_once(made: tuple[PretrainingDataset, list[SyntheticRow]]) -> None:
    shards, rows = made
    order = RowSampler(shards.block_sizes, 3, window_blocks=2)
    found: list[tuple[int, ...]] = []
    for step in range(0, 240, 16):
        gathered = gather_rows(shards, *order.get_rows(step, 16))
        found += [tuple(part) for part in np.split(gathered.ids.tolist(), gathered.offsets[1:-1])]
    for epoch in (found[:120], found[120:]):
        assert sorted(epoch) == sorted(tuple(row.ids) for row in rows)
    assert found[:120] != found[120:]


# Constant shapes


@pytest.mark.parametrize("rows", [1, 5, 32, 128])
def test_nearly_all_batches_have_room(rows: int, made: tuple[PretrainingDataset, list[SyntheticRow]]) -> None:
    shards, _ = made
    room = compute_token_capacity(shards, rows)
    assert room <= rows * LENGTH
    assert room % 128 == 0 or room == rows * LENGTH
    order = RowSampler(shards.block_sizes, 0)
    sizes = [len(gather_rows(shards, *order.get_rows(step * rows, rows)).ids) for step in range(300)]
    assert max(sizes) <= room


def test_room_is_the_mean_and_four_deviations(tmp_path: Path) -> None:
    """Rows of 4 and of 12 tokens in turns: the mean is 8 and so is four times the deviation, by 2."""
    rows = [SyntheticRow([2, *[5] * (size - 2), 3]) for size in (4, 12) * 50]
    shards = PretrainingDataset(
        str(write_pretraining_set(tmp_path, {"a": split_into_batches(rows, [10])}, length=512))
    )
    for number in (1, 64, 1000):
        wanted = 8 * number + 4 * 4 * math.sqrt(number)
        assert compute_token_capacity(shards, number) == math.ceil(wanted / 128) * 128


def test_no_more_room_than_if_padded(tmp_path: Path) -> None:
    shards = PretrainingDataset(
        str(write_pretraining_set(tmp_path, {"a": [random_rows(30, 12, 70, labelled=False)]}, length=12))
    )
    assert compute_token_capacity(shards, 3) == 36
