"""The loader of training steps: batches depend only on the set, the recipe and the step; prefetching."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.data.loader import (
    MAX_MICRO_BATCH_TOKENS,
    PREFETCH_STEPS,
    StepLoader,
    choose_micro_batch_size,
    prefetch,
)
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.recipe import TrainRecipe

Sets = dict[str, Path]
OBJECTIVES = ("electra", "bert", "albert", "plain")
RECIPES = {
    "electra": TrainRecipe("electra", batch_size=16, steps=40),
    "bert": TrainRecipe(
        "bert", mask_unit="word", mask_rate=0.05, final_mask_rate=0.25, batch_size=16, steps=40
    ),
    "albert": TrainRecipe("albert", batch_size=16, steps=40, mask_unit="ngram"),
    "plain": TrainRecipe("bert", batch_size=16, steps=40, max_predictions_per_seq=3),
}


def make_loader(
    sets: Sets,
    objective: str,
    micro_batch_size: int = 16,
    split: str = "train",
    rank: int = 0,
    world_size: int = 1,
    first_step: int = 0,
    **changes: Any,
) -> StepLoader:
    """Make the loader of one process with the recipe of an objective, changed by these fields."""
    shards = PretrainingDataset(str(sets[objective]), split)
    pieces = PieceTable.load(str(sets["vocabulary"]), shards.vocabulary_size, shards.vocabulary_sha256)
    recipe = dataclasses.replace(RECIPES[objective], **changes)
    return StepLoader(shards, pieces, recipe, micro_batch_size, rank, world_size, first_step)


def is_equal(one: Sequence[tuple[Batch, BatchCounts]], other: Sequence[tuple[Batch, BatchCounts]]) -> bool:
    """Return True if these micro-batches are equal bit by bit."""
    return len(one) == len(other) and all(
        counts == other_counts
        and all(
            torch.equal(part, other_part)
            if isinstance(part, torch.Tensor) and isinstance(other_part, torch.Tensor)
            else part == other_part
            for part, other_part in zip(batch, other_batch, strict=True)
        )
        for (batch, counts), (other_batch, other_counts) in zip(one, other, strict=True)
    )


def extract_rows(batches: Iterable[tuple[Batch, BatchCounts]]) -> list[dict[str, list[Any]]]:
    """Return each row of the micro-batches without padding: inputs, masks and label."""
    row_dicts = []
    for batch, counts in batches:
        starts = batch.row_starts.tolist()
        ends = [*starts[1:], len(batch.ids)]
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            real = batch.is_token[start:end]
            masked = (
                (batch.masked_positions >= start) & (batch.masked_positions < end) & (batch.targets != -100)
            )
            row_dicts.append(
                {
                    "ids": batch.ids[start:end][real].tolist(),
                    "types": batch.token_type_ids[start:end][real].tolist(),
                    "places": batch.position_ids[start:end][real].tolist(),
                    "at": (batch.masked_positions[masked] - start).tolist(),
                    "targets": batch.targets[masked].tolist(),
                    "noise": batch.noise[masked].tolist(),
                    "label": batch.labels[row].item(),
                }
            )
        assert len(starts) == counts.rows
    return row_dicts


def restore_ids(batches: Iterable[tuple[Batch, BatchCounts]]) -> list[tuple[int, ...]]:
    """Return the ids of each row without masks."""
    restored = []
    for row in extract_rows(batches):
        ids = list(row["ids"])
        for position, target in zip(row["at"], row["targets"], strict=True):
            ids[position] = target
        restored.append(tuple(ids))
    return restored


def list_noise(batches: Iterable[tuple[Batch, BatchCounts]]) -> set[float]:
    """Return the random numbers of the masked tokens, which equal masks have in common."""
    return {noise for row in extract_rows(batches) for noise in row["noise"]}


def load_all_ids(sets: Sets, objective: str, split: str = "train") -> list[tuple[int, ...]]:
    """Return the ids of every row of a split, in order."""
    loader = make_loader(sets, objective, split=split)
    return restore_ids([loader.load_sequential(0, PretrainingDataset(str(sets[objective]), split).rows)])


# Steps


@pytest.mark.thorough
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_step_is_independent_of_access_order(objective: str, pretraining_sets: Sets) -> None:
    """Resumed runs and other processes load the same steps in another order."""
    loader = make_loader(pretraining_sets, objective)
    sequential = [loader.load_step(step) for step in range(40)]
    for step in (39, 0, 17, 18, 3, 3):
        assert is_equal(make_loader(pretraining_sets, objective).load_step(step), sequential[step])
        assert is_equal(loader.load_step(step), sequential[step])
    assert not any(is_equal(one, other) for one, other in itertools.combinations(sequential, 2))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_epochs_have_every_row_once_in_different_orders(objective: str, pretraining_sets: Sets) -> None:
    expected = load_all_ids(pretraining_sets, objective)
    loader = make_loader(pretraining_sets, objective, len(expected), batch_size=len(expected))
    batches_by_epoch = [loader.load_step(step) for step in range(3)]
    epochs = [restore_ids(batches) for batches in batches_by_epoch]
    assert all(sorted(epoch) == sorted(expected) for epoch in epochs)
    assert all(one != other for one, other in itertools.combinations([expected, *epochs], 2))
    for one, other in itertools.combinations(batches_by_epoch, 2):
        assert not list_noise(one) & list_noise(other)
    assert loader.get_epoch(0) == 0
    assert loader.get_epoch(2) == 2


def test_seed_changes_the_row_order(pretraining_sets: Sets) -> None:
    one, other = (make_loader(pretraining_sets, "electra", seed=seed).load_step(0) for seed in (0, 1))
    assert restore_ids(one) != restore_ids(other)


# Partition of batches


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_processes_and_micro_batches_add_up_to_the_whole_batch(
    objective: str, pretraining_sets: Sets
) -> None:
    """Rows, masks, noise and counts are equal for 1, 2, 4 and 8 processes and any micro-batch."""
    for step in (0, 23):
        [(batch, counts)] = make_loader(pretraining_sets, objective).load_step(step)
        for world, size in ((1, 1), (1, 4), (1, 5), (2, 8), (2, 3), (4, 4), (4, 1), (8, 2)):
            parts = [
                part
                for rank in range(world)
                for part in make_loader(
                    pretraining_sets, objective, size, rank=rank, world_size=world
                ).load_step(step)
            ]
            assert len(parts) == world * math.ceil(16 // world / size)
            assert extract_rows(parts) == extract_rows([(batch, counts)])
            assert tuple(map(sum, zip(*(part_counts for _, part_counts in parts), strict=True))) == counts


@given(
    world=st.integers(1, 64),
    rows_per_process=st.integers(1, 512),
    length=st.sampled_from([64, 128, 256, 512]),
    device=st.sampled_from(["cpu", "cuda"]),
)
def test_default_partition_has_as_few_micro_batches_as_fit(
    world: int, rows_per_process: int, length: int, device: str
) -> None:
    size = choose_micro_batch_size(world * rows_per_process, world, length, device, None)
    num_micro_batches = math.ceil(rows_per_process / size)
    assert size * length <= MAX_MICRO_BATCH_TOKENS[device]
    assert num_micro_batches <= math.ceil(rows_per_process * length / MAX_MICRO_BATCH_TOKENS[device])


def test_invalid_partitions_are_refused() -> None:
    with pytest.raises(ValueError, match="--batch-size 10 is not a multiple of the 4 processes"):
        choose_micro_batch_size(10, 4, 64, "cpu", None)
    for micro_batch_size in (0, -1):
        with pytest.raises(ValueError, match=f"--micro-batch-size {micro_batch_size} is below 1"):
            choose_micro_batch_size(16, 2, 64, "cpu", micro_batch_size)


# Validation


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_validation_masks_are_constant_and_differ_from_training(
    objective: str, pretraining_sets: Sets
) -> None:
    loader = make_loader(pretraining_sets, objective, split="validation")
    before = [loader.load_sequential(start, 3) for start in (0, 3, 6)]
    loader.load_step(5)
    later = make_loader(pretraining_sets, objective, 4, split="validation", rank=1, first_step=7)
    assert is_equal(before, [later.load_sequential(start, 3) for start in (0, 3, 6)])
    assert extract_rows(before) == extract_rows([loader.load_sequential(0, 9)])
    assert restore_ids(before) == load_all_ids(pretraining_sets, objective, "validation")[:9]
    num_rows = PretrainingDataset(str(pretraining_sets[objective]), "validation").rows
    validation_noise = list_noise([loader.load_sequential(0, num_rows)])
    train_loader = make_loader(pretraining_sets, objective, num_rows, split="validation", batch_size=num_rows)
    assert not any(validation_noise & list_noise(train_loader.load_step(step)) for step in range(3))


# A run that continues another


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_continued_run_starts_with_a_new_epoch(objective: str, pretraining_sets: Sets) -> None:
    """Every row occurs once, in another order and with other noise than in a new run."""
    expected = load_all_ids(pretraining_sets, objective)
    changes: dict[str, Any] = {"batch_size": len(expected), "final_mask_rate": 0.0}
    new_loader, continued_loader = (
        make_loader(pretraining_sets, objective, len(expected), first_step=first, **changes)
        for first in (0, 30)
    )
    assert continued_loader.get_epoch(30) == 0
    assert continued_loader.get_epoch(32) == 2
    for step in range(2):
        one, other = new_loader.load_step(step), continued_loader.load_step(30 + step)
        assert sorted(restore_ids(other)) == sorted(expected)
        assert restore_ids(other) != restore_ids(one)
        assert not list_noise(other) & list_noise(one)


def test_mask_rate_grows_in_five_stages_that_a_continued_run_does_not_restart(pretraining_sets: Sets) -> None:
    rates: dict[str, Any] = {"mask_rate": 0.05, "final_mask_rate": 0.25, "max_predictions_per_seq": 0}
    loader, continued_loader = (
        make_loader(pretraining_sets, "plain", first_step=first, **rates) for first in (0, 20)
    )
    shares = []
    for step in range(40):
        [(_, counts)] = (continued_loader if step >= 20 else loader).load_step(step)
        shares.append(counts.masked / counts.tokens)
    for stage, rate in enumerate((0.05, 0.10, 0.15, 0.20, 0.25)):
        assert np.mean(shares[8 * stage : 8 * stage + 8]) == pytest.approx(rate, abs=0.015)


# Compiled models


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_compiled_models_get_at_most_two_shapes(objective: str, pretraining_sets: Sets) -> None:
    """One shape is usual; the other is for batches that exceed the token capacity."""
    compiled_loader = make_loader(pretraining_sets, objective, 4, compile=True)
    usual_loader = make_loader(pretraining_sets, objective, 4)
    shapes = set()
    for step in range(40):
        batches = compiled_loader.load_step(step)
        assert extract_rows(batches) == extract_rows(usual_loader.load_step(step))
        for batch, _ in batches:
            shapes.add(tuple(tuple(part.shape) if isinstance(part, torch.Tensor) else part for part in batch))
    assert len(shapes) <= 2


def count_threads() -> int:
    return sum(thread.name.startswith("prefetch") for thread in threading.enumerate())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for at most ten seconds."""
    for _ in range(1_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in ten seconds")


def test_steps_are_yielded_in_order_by_another_thread() -> None:
    steps = list(prefetch(lambda step: (step, threading.get_ident()), range(5, 55)))
    assert [step for step, _ in steps] == list(range(5, 55))
    assert len({thread for _, thread in steps} | {threading.get_ident()}) == 2
    assert not count_threads()


def test_depth_is_limited() -> None:
    steps: list[int] = []
    with contextlib.closing(prefetch(steps.append, range(100))) as batches:
        for number in range(3):
            next(batches)
            wait_until(lambda number=number: len(steps) == number + 1 + PREFETCH_STEPS)  # type: ignore[misc]
            time.sleep(0.02)
            assert len(steps) == number + 1 + PREFETCH_STEPS
    assert not count_threads()


def test_error_is_raised_at_its_step() -> None:
    def fail_at_three(step: int) -> int:
        if step == 3:
            raise ValueError("at 3")
        return step

    batches = prefetch(fail_at_three, range(10))
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="at 3"):
        next(batches)
    assert not count_threads()


def test_close_during_a_step_waits_for_that_step_alone() -> None:
    started, release, finished_steps = threading.Event(), threading.Event(), []

    def block_after_the_first(step: int) -> None:
        if step:
            started.set()
            assert release.wait(60)
        finished_steps.append(step)

    batches = prefetch(block_after_the_first, range(100))
    next(batches)
    assert started.wait(60), "a step that has not begun would be cancelled"
    threading.Timer(0.1, release.set).start()
    batches.close()
    assert finished_steps == [0, 1]
    assert not count_threads()
