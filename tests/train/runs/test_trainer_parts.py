"""Interaction of the parts of the trainer."""

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
from bioshards.train.checkpoint import claim
from bioshards.train.data.loader import MAX_MICRO_BATCH_TOKENS, StepLoader, choose_micro_batch_size
from bioshards.train.data.masking import MaskingConfig
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.presets import PRESETS
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
def test_progressive_masking_budgets_follow_the_rate(preset: str) -> None:
    recipe = replace(PRESETS[preset], family="bert", mask_rate=0.05, final_mask_rate=0.25)
    for step in range(0, recipe.steps, recipe.steps // 5):
        rate = recipe.mask_rate_at(step)
        [budget] = MaskingConfig.of_recipe(recipe, rate).compute_budgets(np.array([512]), 512)
        assert budget == pytest.approx(512 * rate, abs=1)


def test_only_bioalbert_limits_predictions() -> None:
    assert {name for name in PRESETS if PRESETS[name].max_predictions_per_seq} == {
        "bioalbert",
        "bioalbert-pmc",
        "bioalbert-large",
        "bioalbert-large-pmc",
    }


def test_continued_run_on_the_same_set_has_other_batches(
    tmp_path: Path,
) -> None:
    dataset = PretrainingDataset(
        str(write_pretraining_set(tmp_path, {"a": split_into_batches(random_rows(48, 16, 100, False), [16])}))
    )
    special = np.arange(100) < 5
    pieces = PieceTable(100, 4, special, np.zeros(100, np.bool_))
    recipe = replace(PRESETS["tiny"], family="electra", batch_size=16, steps=60)
    size = choose_micro_batch_size(recipe.batch_size, 1, dataset.max_seq_length, "cpu", None)

    def load_rows(first: int, steps: range) -> list[tuple[list[int], list[int]]]:
        loader = StepLoader(dataset, pieces, recipe, size, first_step=first)
        batches = [batch for step in steps for batch, _ in loader.load_step(step)]
        return [(batch.ids.tolist(), batch.masked_positions.tolist()) for batch in batches]

    before, after = load_rows(0, range(30)), load_rows(30, range(30, 60))
    assert all(batch not in before for batch in after)


def test_validation_shards_are_verified(
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


def test_directory_of_a_run_killed_before_run_json_is_accepted(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / f"{TEMPORARY_PREFIX}0").touch()
    with claim(str(tmp_path)):
        assert [path.name for path in tmp_path.iterdir()] == [".lock"]


@pytest.mark.parametrize("option", ["--continue-from", "--init-checkpoint"])
def test_run_resumes_without_its_origin(
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
    batch_size=st.integers(1, 10_000),
    length=st.sampled_from([128, 256, 512]),
    micro_batch_size=st.none() | st.integers(1, 20_000),
)
def test_partition_of_any_batch_size(batch_size: int, length: int, micro_batch_size: int | None) -> None:
    size = choose_micro_batch_size(batch_size, 1, length, "cuda", micro_batch_size)
    max_rows = micro_batch_size or MAX_MICRO_BATCH_TOKENS["cuda"] // length
    assert 1 <= size <= max_rows
    assert math.ceil(batch_size / size) == math.ceil(batch_size / min(max_rows, batch_size))


@pytest.mark.parametrize("family", ["electra", "bert", "albert"])
def test_losses_are_independent_of_the_micro_batch_size(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    options = ("--dropout", "0", "--attention-dropout", "0", "--log-every", "1")
    for micro_batch_size in (8, 3):
        assert (
            run_trainer(
                pretraining_sets[family],
                tmp_path / str(micro_batch_size),
                *options,
                "--micro-batch-size",
                micro_batch_size,
            )
            == 0
        )
    one_part_log, log = (
        load_reproducible_log(tmp_path / str(micro_batch_size)) for micro_batch_size in (8, 3)
    )
    for one, other in zip(one_part_log, log, strict=True):
        assert one["losses"] == pytest.approx(other["losses"], rel=1e-4)
        assert (one["split"], one["step"]) == (other["split"], other["step"])


def test_run_continues_when_its_output_pipe_is_closed(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    read, write = os.pipe()
    os.close(read)
    completed = subprocess.run(
        trainer_argv(pretraining_sets["bert"], tmp_path / "run", "--log-every", "1"),
        stdout=write,
        stderr=write,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    os.close(write)
    assert len(load_log(tmp_path / "run")) == 13
    assert (tmp_path / "run" / "manifest.json").exists()
    assert completed.returncode in (0, 120)  # 120: Python's own, of what it could not write at its end
