"""Out of memory: a step is done again in smaller micro-batches, with the same result."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from bioshards.train.batch import Batch
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.trainer import MetricSums, MicroBatchMemoryError, Trainer
from bioshards.train.models.objective import Objective
from tests.support.train.synthetic_batches import (
    count_rows,
    make_flat_batch,
    make_objective,
    random_masked_rows,
)
from tests.support.train.trainer_processes import call_after_step, send_signal
from tests.support.train.trainer_runs import is_same_state, load_reproducible_log, load_state, run_trainer

pytestmark = pytest.mark.usefixtures("single_thread")

NO_DROPOUT = ("--dropout", 0.0, "--attention-dropout", 0.0)


@pytest.fixture
def num_forward_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make memory run out in the backward pass of more than two rows, from the fifth training batch on."""
    forward, num_rows = Objective.forward, list[int]()

    def fail(gradient: Tensor) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    def forward_or_fail(self: Objective, batch: Batch) -> dict[str, Tensor]:
        sums = forward(self, batch)
        if self.training:
            num_rows.append(len(batch.row_starts))
            if len(num_rows) > 4 and num_rows[-1] > 2:
                sums["mlm"].register_hook(fail)  # type: ignore[no-untyped-call]
        return sums

    monkeypatch.setattr(Objective, "forward", forward_or_fail)
    return num_rows


def test_step_that_does_not_fit_into_memory_has_the_same_result(
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    num_forward_rows: list[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, options = pretraining_sets["bert"], (*NO_DROPOUT, "--log-every", 1)
    assert run_trainer(data, tmp_path / "small", *options, "--micro-batch-size", 2) == 0
    num_forward_rows.clear()
    assert run_trainer(data, tmp_path / "large", *options) == 0
    assert num_forward_rows == [8] * 4 + [8, 4] + [2] * 4 * 8
    assert "step 5: 8 rows at once do not fit into memory; going on with --micro-batch-size 4" in (
        capsys.readouterr().err
    )
    small, large = (load_reproducible_log(tmp_path / name) for name in ("small", "large"))
    for entry, other in zip(small, large, strict=True):
        assert entry["losses"] == pytest.approx(other["losses"], rel=1e-4)
        assert entry.get("tokens_seen") == other.get("tokens_seen")
    manifest = json.loads((tmp_path / "large" / "manifest.json").read_text())
    assert manifest["run"]["micro_batch_size"] == 2


def test_resumed_run_begins_with_the_micro_batches_that_fit(
    pretraining_sets: dict[str, Path], tmp_path: Path, num_forward_rows: list[int]
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    with call_after_step(7, send_signal):
        assert run_trainer(data, out) == 130
    assert load_state(out / "step-0000007")["micro_batch_limit"] == 2
    num_forward_rows.clear()
    assert run_trainer(data, out) == 0
    assert num_forward_rows == [2] * 4 * 5


def test_row_that_does_not_fit_into_memory_ends_the_run(
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(self: Objective, batch: Batch) -> dict[str, Tensor]:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    monkeypatch.setattr(Objective, "forward", fail)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 1
    assert "even one at a time. Train a smaller model" in capsys.readouterr().err


class _OtherProcessLacksMemory(ProcessGroup):
    def all_reduce(self, values: Sequence[float]) -> list[float]:
        return [value + 1 for value in values]


def test_all_processes_do_the_step_again_if_one_lacks_memory() -> None:
    recipe = TrainRecipe(precision="float32", warmup=0.0)
    processes = _OtherProcessLacksMemory(0, 2, torch.device("cpu"))
    trainer, rows = Trainer(make_objective("bert"), recipe, processes), random_masked_rows(0)
    before = copy.deepcopy(trainer.state_dict())
    micro_batches, sums = [(make_flat_batch(rows), count_rows(rows))], MetricSums()
    with pytest.raises(MicroBatchMemoryError):
        trainer.update(0, micro_batches, count_rows(rows)._asdict(), sums)
    assert is_same_state(before, trainer.state_dict())
    assert not any(sums.counts.values())
