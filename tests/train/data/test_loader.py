"""What is computed at a step: nothing but the set, the recipe and the step has a say in it."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.loader import MAX_MICRO_BATCH_TOKENS, BatchPartition, StepLoader, partition_batch
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset

Sets = dict[str, Path]
WHOLE = BatchPartition(rows_per_process=16, micro_batch_size=16)
KINDS = ("electra", "bert", "albert", "plain")
RECIPES = {
    "electra": TrainRecipe("electra", batch_size=16, steps=40),
    "bert": TrainRecipe(
        "bert", batch_size=16, steps=40, mask_unit="word", mask_rate=0.05, final_mask_rate=0.25
    ),
    "albert": TrainRecipe("albert", batch_size=16, steps=40, mask_unit="ngram", pad_rows=True),
    "plain": TrainRecipe("bert", batch_size=16, steps=40, max_predictions_per_seq=3),
}


def steps(
    sets: Sets,
    kind: str,
    dealt: BatchPartition = WHOLE,
    split: str = "train",
    rank: int = 0,
    first: int = 0,
    **how: Any,
) -> StepLoader:
    """The steps of one process, of the recipe that is in use for a set, or one with some fields changed."""
    shards = PretrainingDataset(str(sets[kind]), split)
    pieces = PieceTable.load(str(sets["vocabulary"]), shards.vocabulary_size, shards.vocabulary_sha256)
    recipe = dataclasses.replace(RECIPES[kind], **how)
    return StepLoader(shards, pieces, recipe, dealt, rank=rank, first_step=first)


def same(one: Sequence[tuple[Batch, BatchCounts]], other: Sequence[tuple[Batch, BatchCounts]]) -> bool:
    """Are these micro-batches the same to the bit?"""
    return len(one) == len(other) and all(
        counts == others
        and all(
            torch.equal(part, its)
            if isinstance(part, torch.Tensor) and isinstance(its, torch.Tensor)
            else part == its
            for part, its in zip(batch, second, strict=True)
        )
        for (batch, counts), (second, others) in zip(one, other, strict=True)
    )


def rows(micro: Iterable[tuple[Batch, BatchCounts]]) -> list[dict[str, list[Any]]]:
    """Each row of some micro-batches by itself, without padding: what the model sees of it, and is to say."""
    found = []
    for batch, counts in micro:
        starts = batch.row_starts.tolist()
        ends = [*starts[1:], len(batch.ids)]
        for row, (start, end) in enumerate(zip(starts, ends, strict=True)):
            real = batch.is_token[start:end]
            masked = (
                (batch.masked_positions >= start) & (batch.masked_positions < end) & (batch.targets != -100)
            )
            found.append(
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
    return found


def texts(micro: Iterable[tuple[Batch, BatchCounts]]) -> list[tuple[int, ...]]:
    """Each row as it was before anything of it was masked."""
    found = []
    for row in rows(micro):
        ids = list(row["ids"])
        for place, target in zip(row["at"], row["targets"], strict=True):
            ids[place] = target
        found.append(tuple(ids))
    return found


def all_texts(sets: Sets, kind: str, split: str = "train") -> list[tuple[int, ...]]:
    """Every row of a split, in its order."""
    of = steps(sets, kind, split=split)
    return texts([of.load_sequential(0, PretrainingDataset(str(sets[kind]), split).rows)])


# A function of the step


@pytest.mark.parametrize("kind", KINDS)
def test_a_step_asked_alone_is_what_it_is_in_its_turn(kind: str, pretraining_sets: Sets) -> None:
    """As each resumed run asks, and as no two processes ask in the same order."""
    of = steps(pretraining_sets, kind)
    in_turn = [of.load_step(step) for step in range(40)]
    for step in (39, 0, 17, 18, 3, 3):
        assert same(steps(pretraining_sets, kind).load_step(step), in_turn[step])
        assert same(of.load_step(step), in_turn[step])
    assert not any(same(one, other) for one, other in itertools.combinations(in_turn, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_an_epoch_has_every_row_once_and_the_next_one_in_another_order(
    kind: str, pretraining_sets: Sets
) -> None:
    expected = all_texts(pretraining_sets, kind)
    dealt = BatchPartition(len(expected), len(expected))
    of = steps(pretraining_sets, kind, dealt, batch_size=len(expected))
    epochs = [texts(of.load_step(step)) for step in range(3)]
    assert all(sorted(epoch) == sorted(expected) for epoch in epochs)
    assert all(one != other for one, other in itertools.combinations([expected, *epochs], 2))
    assert of.get_epoch(0) == 0
    assert of.get_epoch(2) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_masks_of_two_epochs_differ(kind: str, pretraining_sets: Sets) -> None:
    """Of every row that has more than a few ways to be masked, and so does what a generator says there."""
    number = PretrainingDataset(str(pretraining_sets[kind])).rows
    of = steps(pretraining_sets, kind, BatchPartition(number, number), batch_size=number, mask_rate=0.2)
    epochs = []
    for step in range(3):
        micro = of.load_step(step)
        epochs.append(dict(zip(texts(micro), rows(micro), strict=True)))
    one, two, three = epochs
    assert one.keys() == two.keys() == three.keys()
    long = [text for text in one if len(text) > 40]
    assert len(long) > number / 4
    for first, second in itertools.combinations(epochs, 2):
        assert np.mean([first[text]["at"] == second[text]["at"] for text in long]) < 0.01
        assert not any(set(first[text]["noise"]) & set(second[text]["noise"]) for text in long)


def test_another_seed_is_another_order_with_other_masks(pretraining_sets: Sets) -> None:
    one, other = (steps(pretraining_sets, "electra", seed=seed).load_step(0) for seed in (0, 1))
    assert texts(one) != texts(other)


# Dealt out


@pytest.mark.parametrize("kind", KINDS)
def test_processes_and_micro_batches_together_are_the_whole_batch(kind: str, pretraining_sets: Sets) -> None:
    """The very rows, the very masks and the very noise, for 1, 2, 4 and 8 processes and any micro-batch."""
    for step in (0, 23):
        whole = rows(steps(pretraining_sets, kind).load_step(step))
        assert len(whole) == 16
        for world, micro in ((1, 1), (1, 4), (1, 5), (2, 8), (2, 3), (4, 4), (4, 1), (8, 2)):
            dealt = partition_batch(16, world, 64, "cpu", micro)
            parts = [
                rows(steps(pretraining_sets, kind, dealt, rank=rank).load_step(step)) for rank in range(world)
            ]
            assert [row for part in parts for row in part] == whole


@given(world=st.sampled_from([1, 2, 3, 4, 6]), data=st.data())
@settings(max_examples=25, deadline=None)
def test_however_a_batch_is_dealt_out_there_is_as_much_of_everything(
    world: int, data: st.DataObject, pretraining_sets: Sets
) -> None:
    batch = world * data.draw(st.integers(1, 8))
    micro = data.draw(st.integers(1, 9))
    step = data.draw(st.integers(0, 10**9))
    [(_, whole)] = steps(pretraining_sets, "bert", BatchPartition(batch, batch), batch_size=batch).load_step(
        step
    )
    dealt = partition_batch(batch, world, 64, "cpu", micro)
    parts = [
        counts
        for rank in range(world)
        for _, counts in steps(pretraining_sets, "bert", dealt, batch_size=batch, rank=rank).load_step(step)
    ]
    assert len(parts) == world * dealt.accumulation_steps
    assert tuple(map(sum, zip(*parts, strict=True))) == whole


@given(
    world=st.integers(1, 64),
    each=st.integers(1, 512),
    length=st.sampled_from([64, 128, 256, 512]),
    device=st.sampled_from(["cpu", "cuda"]),
)
def test_without_a_word_there_are_as_few_micro_batches_as_fit(
    world: int, each: int, length: int, device: str
) -> None:
    dealt = partition_batch(world * each, world, length, device, None)
    assert dealt.rows_per_process == each
    assert dealt.micro_batch_size * length <= MAX_MICRO_BATCH_TOKENS[device]
    assert dealt.accumulation_steps <= math.ceil(each * length / MAX_MICRO_BATCH_TOKENS[device])
    assert (
        dealt.micro_batch_size * (dealt.accumulation_steps - 1)
        < each
        <= dealt.micro_batch_size * dealt.accumulation_steps
    )


def test_what_cannot_be_dealt_out_is_refused() -> None:
    with pytest.raises(ValueError, match="--batch-size 10 is not a multiple of the 4 processes"):
        partition_batch(10, 4, 64, "cpu", None)
    for micro in (0, -1):
        with pytest.raises(ValueError, match=f"--micro-batch-size {micro} is below 1"):
            partition_batch(16, 2, 64, "cpu", micro)


# Validation


@pytest.mark.parametrize("kind", KINDS)
def test_validation_is_masked_the_same_each_time_and_never_as_in_training(
    kind: str, pretraining_sets: Sets
) -> None:
    of = steps(pretraining_sets, kind, split="validation")
    before = [of.load_sequential(start, 3) for start in (0, 3, 6)]
    of.load_step(5)
    later = steps(pretraining_sets, kind, BatchPartition(4, 4), split="validation", rank=1, first=7)
    assert same(before, [later.load_sequential(start, 3) for start in (0, 3, 6)])
    assert rows(before) == rows([of.load_sequential(0, 9)])
    assert texts(before) == all_texts(pretraining_sets, kind, "validation")[:9]
    number = PretrainingDataset(str(pretraining_sets[kind]), "validation").rows
    held_out = {noise for row in rows([of.load_sequential(0, number)]) for noise in row["noise"]}
    trained = steps(
        pretraining_sets, kind, BatchPartition(number, number), split="validation", batch_size=number
    )
    assert not any(held_out & set(row["noise"]) for step in range(3) for row in rows(trained.load_step(step)))


# A run that continues another


@pytest.mark.parametrize("kind", KINDS)
def test_data_that_are_gone_on_with_begin_with_an_epoch_of_their_own(
    kind: str, pretraining_sets: Sets
) -> None:
    """Every row once, whatever the step; and not as they would be in a run that begins with them."""
    expected = all_texts(pretraining_sets, kind)
    dealt = BatchPartition(len(expected), len(expected))
    anew, further = (
        steps(pretraining_sets, kind, dealt, first=first, batch_size=len(expected), final_mask_rate=0.0)
        for first in (0, 30)
    )
    assert further.get_epoch(30) == 0
    assert further.get_epoch(32) == 2
    for step in range(2):
        one, other = anew.load_step(step), further.load_step(30 + step)
        assert sorted(texts(other)) == sorted(expected)
        assert texts(other) != texts(one)
        assert not {n for row in rows(other) for n in row["noise"]} & {
            n for row in rows(one) for n in row["noise"]
        }


def test_the_share_that_is_masked_goes_by_the_step_and_not_by_the_data(pretraining_sets: Sets) -> None:
    [(_, early)] = steps(pretraining_sets, "bert").load_step(0)
    [(_, late)] = steps(pretraining_sets, "bert", first=39).load_step(39)
    assert late.masked / late.tokens > 3 * early.masked / early.tokens


def test_the_share_that_is_masked_grows_in_five_stages(pretraining_sets: Sets) -> None:
    of = steps(pretraining_sets, "plain", mask_rate=0.05, final_mask_rate=0.25, max_predictions_per_seq=0)
    shares = []
    for step in range(40):
        [(_, counts)] = of.load_step(step)
        shares.append(counts.masked / counts.tokens)
    for stage, rate in enumerate((0.05, 0.10, 0.15, 0.20, 0.25)):
        assert np.mean(shares[8 * stage : 8 * stage + 8]) == pytest.approx(rate, abs=0.015)


# For a compiler


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("padded", [False, True])
def test_compiled_models_are_given_two_shapes_at_most(
    kind: str, padded: bool, pretraining_sets: Sets
) -> None:
    """The usual one, and that of the few batches with more tokens than there is room for."""
    dealt = BatchPartition(16, 4)
    of = steps(pretraining_sets, kind, dealt, compile=True, pad_rows=padded)
    usual = steps(pretraining_sets, kind, dealt, pad_rows=padded)
    shapes = set()
    for step in range(40):
        micro = of.load_step(step)
        assert rows_of_all(micro) == rows(usual.load_step(step))
        for batch, _ in micro:
            shapes.add(tuple(tuple(part.shape) if isinstance(part, torch.Tensor) else part for part in batch))
    assert len(shapes) <= (1 if padded else 2)


def rows_of_all(micro: Sequence[tuple[Batch, BatchCounts]]) -> list[dict[str, list[Any]]]:
    """The rows of batches that are filled up: what is behind the last row is no part of it."""
    cut = []
    for batch, counts in micro:
        if batch.cu_seqlens is not None:
            real = int(batch.cu_seqlens[counts.rows])
            assert not batch.is_token[real:].any()
            batch = batch._replace(
                ids=batch.ids[:real],
                token_type_ids=batch.token_type_ids[:real],
                position_ids=batch.position_ids[:real],
                is_token=batch.is_token[:real],
            )
        cut.append((batch, counts))
    return rows(cut)
