"""Rules that hold between parts of the trainer, each of which is right by itself."""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.train.config.masking_config import mask_rate
from bioshards.train.config.model_presets import PRESETS
from bioshards.train.data.loader import MAX_MICRO_BATCH_TOKENS, StepLoader, partition_batch
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.loop.run_dir import claim_run_dir
from tests.support.outputs import load_manifest
from tests.support.train.synthetic_rows import random_rows, split_into_batches, write_pretraining_set
from tests.support.train.trainer_runs import (
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    trainer_argv,
)


@pytest.mark.parametrize("preset", [name for name in PRESETS if not PRESETS[name].max_predictions_per_seq])
def test_progressive_masking_masks_as_much_as_it_says(preset: str) -> None:
    recipe = replace(PRESETS[preset], family="bert", mask_rate=0.05, final_mask_rate=0.25)
    for step in range(0, recipe.steps, recipe.steps // 5):
        rate = mask_rate(step, recipe.steps, recipe.mask_rate, recipe.final_mask_rate)
        [budget] = replace(recipe.masking_config, rate=rate).compute_budgets(np.array([512]), 512)
        assert budget == pytest.approx(512 * rate, abs=1)


def test_only_where_a_paper_says_so_are_predictions_limited() -> None:
    assert {name for name in PRESETS if PRESETS[name].max_predictions_per_seq} == {
        "bioalbert-base",
        "bioalbert-large",
    }


def test_a_run_that_is_continued_on_the_same_set_sees_its_rows_in_another_order_with_other_masks(
    tmp_path: Path,
) -> None:
    shards = PretrainingDataset(
        str(write_pretraining_set(tmp_path, {"a": split_into_batches(random_rows(48, 16, 100, False), [16])}))
    )
    special = np.arange(100) < 5
    pieces = PieceTable(100, 4, special, np.zeros(100, np.bool_))
    recipe = replace(PRESETS["tiny"], family="electra", batch_size=16, steps=60)
    dealt = partition_batch(recipe.batch_size, 1, shards.max_seq_length, "cpu", None)

    def rows(first: int, steps: range) -> list[tuple[list[int], list[int]]]:
        made = StepLoader(shards, pieces, recipe, dealt, first_step=first)
        batches = [batch for step in steps for batch, _ in made.load_step(step)]
        return [(batch.ids.tolist(), batch.masked_positions.tolist()) for batch in batches]

    before, after = rows(0, range(30)), rows(30, range(30, 60))
    assert all(batch not in before for batch in after)


def test_shards_for_validation_are_verified_too(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "set"
    for output in load_manifest(pretraining_sets["electra"])["outputs"]:
        (data / output["file"]).parent.mkdir(parents=True, exist_ok=True)
        (data / output["file"]).write_bytes((pretraining_sets["electra"] / output["file"]).read_bytes())
    (data / "manifest.json").write_bytes((pretraining_sets["electra"] / "manifest.json").read_bytes())
    shard = next((data / "validation").iterdir())
    shard.write_bytes(shard.read_bytes()[:-9] + b"?" * 9)
    assert run_trainer(data, tmp_path / "run") == 2
    assert str(shard) in capsys.readouterr().err
    assert not (tmp_path / "run" / "log.jsonl").exists()


def test_a_folder_in_which_a_run_was_killed_before_it_said_what_it_is_can_be_used(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / f"{TEMPORARY_PREFIX}0").touch()
    with claim_run_dir(str(tmp_path)):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("option", ["--continue-from", "--init-checkpoint"])
def test_what_a_run_began_from_may_be_gone_when_it_goes_on(
    option: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, first, out = pretraining_sets["electra"], tmp_path / "first", tmp_path / "out"
    assert run_trainer(data, first) == 0
    origin = first if option == "--continue-from" else first / "step-0000012" / "hf"
    options = ("--steps", "24", option, origin)
    assert run_trainer(data, out, *options) == 0
    before = load_state(out / "step-0000024")
    shutil.rmtree(out / "step-0000024")
    (out / "manifest.json").unlink()
    first.rename(tmp_path / "elsewhere")
    assert run_trainer(data, out, *options) == 0
    assert is_same_state(before, load_state(out / "step-0000024"))


@given(
    batch=st.integers(1, 10_000),
    length=st.sampled_from([128, 256, 512]),
    micro=st.none() | st.integers(1, 20_000),
)
def test_a_batch_of_any_size_is_dealt_out_in_few_parts(batch: int, length: int, micro: int | None) -> None:
    dealt = partition_batch(batch, 1, length, "cuda", micro)
    most = micro or MAX_MICRO_BATCH_TOKENS["cuda"] // length
    assert dealt.rows_per_process == batch
    assert 1 <= dealt.micro_batch_size <= most
    assert dealt.accumulation_steps == math.ceil(batch / min(most, batch))


@pytest.mark.parametrize("family", ["electra", "bert", "albert"])
def test_parts_of_other_sizes_give_the_same_losses(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    without_chance = ("--dropout", "0", "--attention-dropout", "0", "--log-every", "1")
    for micro in (8, 3):
        assert (
            run_trainer(
                pretraining_sets[family], tmp_path / str(micro), *without_chance, "--micro-batch-size", micro
            )
            == 0
        )
    whole, parts = (load_reproducible_log(tmp_path / str(micro)) for micro in (8, 3))
    for one, other in zip(whole, parts, strict=True):
        assert one["losses"] == pytest.approx(other["losses"], rel=1e-4)
        assert (one["split"], one["step"]) == (other["split"], other["step"])


def test_a_run_whose_output_nobody_reads_goes_on(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        trainer_argv(pretraining_sets["bert"], tmp_path / "run", "--log-every", "1"),
        stdout=write,
        stderr=write,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    os.close(write)
    assert len(load_log(tmp_path / "run")) == 13
    assert (tmp_path / "run" / "manifest.json").exists()
    assert done.returncode in (0, 120)  # 120: Python's own, of what it could not write at its end
