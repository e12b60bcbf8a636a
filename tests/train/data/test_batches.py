"""Gathering of rows from shards and their layout as batches, compared with a computation row by row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.batch import Batch
from bioshards.train.data.loader import collate_rows, compute_token_capacity
from bioshards.train.data.masking import MaskedRows
from bioshards.train.data.pretraining_dataset import FlatRows, PretrainingDataset
from tests.support.train.synthetic_rows import (
    SyntheticRow,
    random_rows,
    split_into_batches,
    write_pretraining_set,
)

LENGTH = 12
PAD = 77
MASK = 4


def gather_synthetic(rows: Sequence[SyntheticRow]) -> FlatRows:
    """Return these rows as ``gather_rows`` would."""
    return FlatRows(
        np.array([token for row in rows for token in row.ids], np.uint16),
        np.cumsum([0, *(len(row.ids) for row in rows)]),
        np.array([row.split for row in rows], np.int64),
        np.array([row.label for row in rows], np.int64),
    )


def mask_randomly(rows: FlatRows, seed: int) -> MaskedRows:
    """Mask some positions, except the first of each row."""
    rng = np.random.default_rng(seed)
    ids = rows.ids.astype(np.int64)
    positions = np.flatnonzero(rng.random(len(ids)) < 0.3)
    positions = np.setdiff1d(positions, rows.offsets)
    targets = ids[positions]
    ids[positions] = MASK
    return MaskedRows(ids, positions, targets, rng.random(len(positions), np.float32))


class SeenRow(NamedTuple):
    """A row as a model sees it: (id, type, position) by token, and (position, target, noise) by mask."""

    tokens: list[tuple[int, int, int]]
    masks: list[tuple[int, int, float]]
    label: int


def compute_expected_rows(rows: Sequence[SyntheticRow], seed: int) -> list[SeenRow]:
    """Compute from the definitions what the model is to see."""
    gathered = gather_synthetic(rows)
    masking = mask_randomly(gathered, seed)
    seen_rows = []
    for row, row_start in zip(rows, gathered.offsets.tolist(), strict=False):
        tokens = [
            (int(masking.ids[row_start + place]), int(0 < row.split <= place), place)
            for place in range(len(row.ids))
        ]
        places = [
            (int(at) - row_start, int(target), float(noise))
            for at, target, noise in zip(masking.positions, masking.targets, masking.noise, strict=True)
            if row_start <= at < row_start + len(row.ids)
        ]
        seen_rows.append(SeenRow(tokens, places, row.label))
    return seen_rows


def extract_rows(batch: Batch, segments: Sequence[tuple[int, int]]) -> list[SeenRow]:
    """Return what the model sees in each of these token ranges."""
    masked_tokens = [
        (int(at), int(target), float(noise))
        for at, target, noise in zip(batch.masked_positions, batch.targets, batch.noise, strict=True)
        if target != -100
    ]
    return [
        SeenRow(
            [
                (int(batch.ids[place]), int(batch.token_type_ids[place]), int(batch.position_ids[place]))
                for place in range(begin, end)
                if batch.is_token[place]
            ],
            [(at - begin, target, noise) for at, target, noise in masked_tokens if begin <= at < end],
            int(label),
        )
        for (begin, end), label in zip(segments, batch.labels, strict=True)
    ]


def assert_valid_batch(batch: Batch, tokens: int, rows: int) -> None:
    """Check the types, shapes and padding of a batch."""
    masked = len(batch.masked_positions)
    fields = {
        **dict.fromkeys(("ids", "token_type_ids", "position_ids"), (torch.int64, (tokens,))),
        **dict.fromkeys(("masked_positions", "targets"), (torch.int64, (masked,))),
        **dict.fromkeys(("row_starts", "labels"), (torch.int64, (rows,))),
        "is_token": (torch.bool, (tokens,)),
        "noise": (torch.float32, (masked,)),
        "cu_seqlens": (torch.int32, tuple(batch.cu_seqlens.shape)),
    }
    for name, field in fields.items():
        assert (getattr(batch, name).dtype, tuple(getattr(batch, name).shape)) == field, name
    assert batch.max_seqlen == LENGTH
    assert (batch.masked_positions[batch.targets == -100] == 0).all()
    assert (batch.ids[~batch.is_token] == PAD).all()
    assert (batch.token_type_ids[~batch.is_token] == 0).all()
    assert (batch.position_ids[batch.row_starts] == 0).all()
    assert 0 <= int(batch.position_ids.min()) <= int(batch.position_ids.max()) < LENGTH


ROWS = st.builds(
    lambda number, labelled, seed: random_rows(number, LENGTH, 70, labelled, seed),
    st.integers(1, 9),
    st.booleans(),
    st.integers(0, 1 << 30),
)
SEEDS = st.integers(0, 1 << 30)


@given(ROWS, SEEDS, st.just(0) | st.integers(1, 110), st.sampled_from([0, 60]))
def test_flat_layout(rows: list[SyntheticRow], seed: int, constant_tokens: int, constant_masked: int) -> None:
    """A constant layout has two shapes: the constant one, and the padded size for batches that exceed it."""
    gathered, num_rows = gather_synthetic(rows), len(rows)
    masking, num_tokens = mask_randomly(gathered, seed), len(gathered.ids)
    constant = {"constant_tokens": constant_tokens} if constant_tokens else {}  # the default is none
    batch = collate_rows(gathered, masking, PAD, LENGTH, **constant, constant_masked=constant_masked)
    if constant_tokens:
        size = padding = constant_tokens if num_tokens <= constant_tokens else num_rows * LENGTH
    else:
        size, padding = 128 * math.ceil(num_tokens / 128), 128
    assert_valid_batch(batch, size, num_rows)
    bounds = batch.cu_seqlens.tolist()
    segments = list(pairwise(bounds))
    assert bounds[: num_rows + 1] == gathered.offsets.tolist()
    assert (bounds[-1], len(bounds)) == (size, num_rows + math.ceil(padding / LENGTH) + 1)
    assert all(0 <= end - begin <= LENGTH for begin, end in segments)
    assert batch.row_starts.tolist() == bounds[:num_rows]
    assert batch.is_token.tolist() == [place < num_tokens for place in range(size)]
    assert len(batch.masked_positions) == (constant_masked or 64 * math.ceil(len(masking.positions) / 64))
    assert extract_rows(batch, segments[:num_rows]) == compute_expected_rows(rows, seed)
    for begin, end in segments[num_rows:]:
        assert batch.position_ids[begin:end].tolist() == list(range(end - begin))


def test_batch_does_not_share_memory_with_its_rows() -> None:
    """A write to a batch leaves the mapped shard unchanged, although torch ignores read-only numpy arrays."""
    rows = gather_synthetic(random_rows(4, LENGTH, 70, labelled=True))
    for constant_tokens in (0, 60):
        masking = mask_randomly(rows, 0)
        batch = collate_rows(rows, masking, PAD, LENGTH, constant_tokens)
        before = [part.copy() for part in (rows.ids, rows.offsets, rows.segment_b_starts)]
        for part in batch:
            if isinstance(part, torch.Tensor):
                part.zero_()
        for now, was in zip((rows.ids, rows.offsets, rows.segment_b_starts), before, strict=True):
            assert now.tolist() == was.tolist()


# Gathering


@pytest.fixture(scope="module", params=["electra", "bert"])
def dataset_and_rows(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PretrainingDataset, list[SyntheticRow]]:
    """A pretraining set of three shards, and its rows."""
    rows = random_rows(120, LENGTH, 70, request.param == "bert")
    blocks = split_into_batches(rows, [9, 4, 1, 17])
    names = {"a": blocks[:5], "b": blocks[5:6], "c": blocks[6:]}
    folder = write_pretraining_set(tmp_path_factory.mktemp("set"), names, None, request.param, LENGTH, 70)
    return PretrainingDataset(str(folder)), rows


@given(wanted=st.lists(st.integers(0, 119), max_size=40))
def test_rows_are_gathered_in_the_requested_order(
    dataset_and_rows: tuple[PretrainingDataset, list[SyntheticRow]], wanted: list[int]
) -> None:
    shards, rows = dataset_and_rows
    gathered = shards.gather_rows(np.array(wanted, np.int64))
    expected = gather_synthetic([rows[row] for row in wanted])
    assert gathered.ids.dtype == np.uint16
    for actual_part, expected_part in zip(gathered, expected, strict=True):
        assert actual_part.tolist() == expected_part.tolist()


# Constant shapes


def test_token_capacity_is_the_mean_and_four_deviations(tmp_path: Path) -> None:
    """Rows have 4 and 12 tokens in turn, so that the mean is 8 and the standard deviation is 4."""
    rows = [SyntheticRow([2, *[5] * (size - 2), 3]) for size in (4, 12) * 50]
    folder = write_pretraining_set(tmp_path, {"a": split_into_batches(rows, [10])}, length=512)
    shards = PretrainingDataset(str(folder))
    for num_rows in (1, 64, 1000):
        expected = 8 * num_rows + 4 * 4 * math.sqrt(num_rows)
        assert compute_token_capacity(shards, num_rows) == math.ceil(expected / 128) * 128


def test_token_capacity_is_at_most_that_of_padded_rows(tmp_path: Path) -> None:
    folder = write_pretraining_set(tmp_path, {"a": [random_rows(30, 12, 70, labelled=False)]}, length=12)
    assert compute_token_capacity(PretrainingDataset(str(folder)), 3) == 36
