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

from bioshards.train.batch import Batch, Counts
from bioshards.train.gather import Rows, gather
from bioshards.train.layout import Layout, batch, capacity, counts
from bioshards.train.order import Order
from bioshards.train.shards import Shards
from tests.training_sets import Example, examples, in_blocks, put

LENGTH = 12
PAD = 77
MASK = 4


class _Masked(NamedTuple):
    ids: Any
    at: Any
    targets: Any
    noise: Any


def rows_of(rows: Sequence[Example]) -> Rows:
    """These rows as they are gathered."""
    return Rows(
        np.array([token for row in rows for token in row.ids], np.uint16),
        np.cumsum([0, *(len(row.ids) for row in rows)]),
        np.array([row.split for row in rows], np.int64),
        np.array([row.label for row in rows], np.int64),
        np.arange(len(rows)),
        np.zeros(len(rows), np.int64),
    )


def masked(rows: Rows, seed: int) -> Any:
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


def written(rows: Sequence[Example], seed: int) -> list[Seen]:
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
            for at, target, noise in zip(chosen.at, chosen.targets, chosen.noise, strict=True)
            if begin <= at < begin + len(row.ids)
        ]
        found.append(Seen(tokens, places, row.label))
    return found


def seen(found: Batch, segments: Sequence[tuple[int, int]]) -> list[Seen]:
    """What the model sees in these stretches, a row each."""
    masked = [
        (int(at), int(target), float(noise))
        for at, target, noise in zip(found.at, found.targets, found.noise, strict=True)
        if target != -100
    ]
    return [
        Seen(
            [
                (int(found.ids[place]), int(found.types[place]), int(found.places[place]))
                for place in range(begin, end)
                if found.real[place]
            ],
            [(at - begin, target, noise) for at, target, noise in masked if begin <= at < end],
            int(label),
        )
        for (begin, end), label in zip(segments, found.labels, strict=True)
    ]


def check(found: Batch, tokens: int, rows: int) -> None:
    """What is true of every batch."""
    for name in ("ids", "types", "places", "at", "targets", "starts", "labels"):
        assert getattr(found, name).dtype == torch.int64, name
        assert getattr(found, name).dim() == 1, name
    assert found.noise.dtype == torch.float32
    assert found.real.dtype == torch.bool
    assert {len(getattr(found, name)) for name in ("ids", "types", "places", "real")} == {tokens}
    assert len(found.at) == len(found.targets) == len(found.noise)
    assert len(found.starts) == len(found.labels) == rows
    assert found.longest == LENGTH
    assert (found.at[found.targets == -100] == 0).all()
    assert (found.ids[~found.real] == PAD).all()
    assert (found.types[~found.real] == 0).all()
    assert (found.places[found.starts] == 0).all()
    assert 0 <= int(found.places.min()) <= int(found.places.max()) < LENGTH


ROWS = st.builds(
    lambda number, labelled, seed: examples(number, LENGTH, 70, labelled, seed),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 1 << 30),
)
SEEDS = st.integers(0, 1 << 30)


@given(ROWS, SEEDS, st.sampled_from([0, 60]))
@settings(deadline=None)
def test_rows_end_to_end(rows: list[Example], seed: int, most: int) -> None:
    gathered = rows_of(rows)
    found = batch(gathered, masked(gathered, seed), PAD, Layout(LENGTH, masked=most))
    used, number = len(gathered.ids), len(rows)
    size = 128 * math.ceil(used / 128)
    check(found, size, number)
    assert found.bounds is not None
    assert found.bounds.dtype == torch.int32
    bounds = found.bounds.tolist()
    assert bounds[: number + 1] == gathered.offsets.tolist()
    assert (bounds[-1], len(bounds)) == (size, number + math.ceil(128 / LENGTH) + 1)
    assert all(0 <= end - begin <= LENGTH for begin, end in pairwise(bounds))
    assert found.starts.tolist() == bounds[:number]
    assert found.real.tolist() == [place < used for place in range(size)]
    assert len(found.at) == (most or 64 * math.ceil(len(masked(gathered, seed).at) / 64))
    assert seen(found, list(pairwise(bounds[: number + 1]))) == written(rows, seed)


def test_few_shapes_in_all() -> None:
    """Of a thousand batches of other rows: libraries keep something of each."""
    shapes = set()
    for seed in range(1000):
        gathered = rows_of(examples(16, LENGTH, 70, labelled=True, seed=seed))
        found = batch(gathered, masked(gathered, seed), PAD, Layout(LENGTH))
        assert found.bounds is not None
        shapes.add((len(found.ids), len(found.at), len(found.bounds)))
    assert len(shapes) < 10


@given(ROWS, SEEDS, st.sampled_from([0, 60]))
@settings(deadline=None)
def test_rows_padded(rows: list[Example], seed: int, most: int) -> None:
    gathered = rows_of(rows)
    found = batch(gathered, masked(gathered, seed), PAD, Layout(LENGTH, padded=True, masked=most))
    check(found, len(rows) * LENGTH, len(rows))
    assert found.bounds is None
    assert found.starts.tolist() == [LENGTH * row for row in range(len(rows))]
    assert found.places.tolist() == list(range(LENGTH)) * len(rows)
    assert seen(found, [(LENGTH * row, LENGTH * (row + 1)) for row in range(len(rows))]) == written(
        rows, seed
    )


@given(ROWS, SEEDS, st.integers(1, 110))
@settings(deadline=None)
def test_rows_end_to_end_in_constant_shapes(rows: list[Example], seed: int, tokens: int) -> None:
    """Two shapes at most, whatever the rows; what is more than there is room for is as large as if padded."""
    gathered, number = rows_of(rows), len(rows)
    found = batch(gathered, masked(gathered, seed), PAD, Layout(LENGTH, tokens=tokens, masked=60))
    size = tokens if len(gathered.ids) <= tokens else number * LENGTH
    check(found, size, number)
    assert found.bounds is not None
    assert len(found.bounds) == number + math.ceil(size / LENGTH) + 1
    assert len(found.at) == 60
    bounds = found.bounds.tolist()
    segments = list(pairwise(bounds))
    assert (bounds[0], bounds[-1]) == (0, size)
    assert all(0 <= end - begin <= LENGTH for begin, end in segments)
    assert found.starts.tolist() == bounds[:number]
    assert found.real.tolist() == [place < len(gathered.ids) for place in range(size)]
    assert seen(found, segments[:number]) == written(rows, seed)
    for begin, end in segments[number:]:
        assert found.places[begin:end].tolist() == list(range(end - begin))


@given(ROWS, SEEDS)
@settings(deadline=None)
def test_counts_leave_padding_out(rows: list[Example], seed: int) -> None:
    gathered = rows_of(rows)
    chosen = masked(gathered, seed)
    assert counts(gathered, chosen) == Counts(
        rows=len(rows),
        tokens=sum(len(row.ids) for row in rows),
        masked=len(chosen.at),
        labelled=sum(row.label != -100 for row in rows),
        squares=sum(len(row.ids) ** 2 for row in rows),
    )
    assert all(isinstance(count, int) for count in counts(gathered, chosen))


def test_what_does_not_fit_is_an_error() -> None:
    rows = rows_of([Example([2, 5, 6, 7, 3])])
    chosen = _Masked(rows.ids.astype(np.int64), np.array([1, 2]), np.array([5, 6]), np.zeros(2, np.float32))
    with pytest.raises(ValueError, match="a row has 5 tokens, and rows are laid out for 4"):
        batch(rows, chosen, PAD, Layout(4))  # type: ignore[arg-type,unused-ignore]
    with pytest.raises(ValueError, match="there are 2 masked places, and batches are laid out for 1"):
        batch(rows, chosen, PAD, Layout(5, masked=1))  # type: ignore[arg-type,unused-ignore]


def test_a_batch_is_of_memory_of_its_own() -> None:
    """What a model does to its input changes no shard: torch would write even where numpy may not."""
    rows = rows_of(examples(4, LENGTH, 70, labelled=True))
    for layout in (Layout(LENGTH), Layout(LENGTH, padded=True), Layout(LENGTH, tokens=60)):
        chosen = masked(rows, 0)
        found = batch(rows, chosen, PAD, layout)
        before = [part.copy() for part in (rows.ids, rows.offsets, rows.splits)]
        for part in found:
            if isinstance(part, torch.Tensor):
                part.zero_()
        for now, was in zip((rows.ids, rows.offsets, rows.splits), before, strict=True):
            assert now.tolist() == was.tolist()


# Gathering


@pytest.fixture(scope="module", params=["electra", "bert"])
def made(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Shards, list[Example]]:
    """A set of three shards, and its rows."""
    rows = examples(120, LENGTH, 70, request.param == "bert")
    blocks = in_blocks(rows, [9, 4, 1, 17])
    names = {"a": blocks[:5], "b": blocks[5:6], "c": blocks[6:]}
    folder = put(tmp_path_factory.mktemp("set"), names, None, request.param, LENGTH, 70)
    return Shards(str(folder)), rows


@given(wanted=st.lists(st.integers(0, 119), max_size=40))
@settings(deadline=None)
def test_rows_are_gathered_in_the_order_asked_for(
    made: tuple[Shards, list[Example]], wanted: list[int]
) -> None:
    shards, rows = made
    epochs = np.arange(len(wanted), dtype=np.int64)
    found = gather(shards, epochs, np.array(wanted, np.int64))
    whole = rows_of([rows[row] for row in wanted])
    assert found.ids.dtype == np.uint16
    for here, there in zip(found[:4], whole[:4], strict=True):
        assert here.tolist() == there.tolist()
    assert found.rows.tolist() == wanted
    assert found.epochs.tolist() == epochs.tolist()


def test_an_epoch_of_batches_has_every_row_once(made: tuple[Shards, list[Example]]) -> None:
    shards, rows = made
    order = Order(shards.blocks, 3, window=2)
    found: list[tuple[int, ...]] = []
    for step in range(0, 240, 16):
        gathered = gather(shards, *order.rows(step, 16))
        found += [tuple(part) for part in np.split(gathered.ids.tolist(), gathered.offsets[1:-1])]
    for epoch in (found[:120], found[120:]):
        assert sorted(epoch) == sorted(tuple(row.ids) for row in rows)
    assert found[:120] != found[120:]


# Constant shapes


@pytest.mark.parametrize("rows", [1, 5, 32, 128])
def test_nearly_all_batches_have_room(rows: int, made: tuple[Shards, list[Example]]) -> None:
    shards, _ = made
    room = capacity(shards, rows)
    assert room <= rows * LENGTH
    assert room % 128 == 0 or room == rows * LENGTH
    order = Order(shards.blocks, 0)
    sizes = [len(gather(shards, *order.rows(step * rows, rows)).ids) for step in range(300)]
    assert max(sizes) <= room


def test_room_is_the_mean_and_four_deviations(tmp_path: Path) -> None:
    """Rows of 4 and of 12 tokens in turns: the mean is 8 and so is four times the deviation, by 2."""
    rows = [Example([2, *[5] * (size - 2), 3]) for size in (4, 12) * 50]
    shards = Shards(str(put(tmp_path, {"a": in_blocks(rows, [10])}, length=512)))
    for number in (1, 64, 1000):
        wanted = 8 * number + 4 * 4 * math.sqrt(number)
        assert capacity(shards, number) == math.ceil(wanted / 128) * 128


def test_no_more_room_than_if_padded(tmp_path: Path) -> None:
    shards = Shards(str(put(tmp_path, {"a": [examples(30, 12, 70, labelled=False)]}, length=12)))
    assert capacity(shards, 3) == 36
