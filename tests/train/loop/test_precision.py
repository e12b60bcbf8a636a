"""Precision by device, loss scaling, and updates that do not wait for the device."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.loop import precision
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.precision import GROWTH_INTERVAL, INITIAL_SCALE, LossScaler
from bioshards.train.loop.trainer import MAX_NON_FINITE_STEPS, MetricSums, Trainer
from tests.support.train.synthetic_batches import (
    FAMILIES,
    count_rows,
    make_flat_batch,
    make_objective,
    random_masked_rows,
)
from tests.support.train.trainer_runs import is_same_state, load_log, run_trainer

pytestmark = pytest.mark.usefixtures("single_thread")

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")
READING_OPS = {"_local_scalar_dense", "equal", "is_nonzero", "masked_select", "nonzero", "_unique2"}
"""Operations whose result the host waits for."""
FINITE, INFINITE = torch.tensor(True), torch.tensor(False)


def make_trainer(family: str, dropout: float = 0.0, **fields: Any) -> Trainer:
    recipe = TrainRecipe(**{"precision": "float32", "warmup": 0.0, **fields})
    return Trainer(make_objective(family, dropout=dropout), recipe, ProcessGroup(0, 1, CPU))


def make_micro_batches(*seeds: int) -> tuple[list[tuple[Batch, BatchCounts]], dict[str, int]]:
    """Make micro-batches, and the counts of their step."""
    rows_by_seed = [random_masked_rows(seed) for seed in seeds]
    micro_batches = [(make_flat_batch(rows), count_rows(rows)) for rows in rows_by_seed]
    columns = zip(*(counts for _, counts in micro_batches), strict=True)
    return micro_batches, dict(zip(BatchCounts._fields, map(sum, columns), strict=True))


@pytest.mark.parametrize(("has_bfloat16", "chosen"), [(True, "bfloat16"), (False, "float16")])
def test_precision_is_that_of_the_device(
    has_bfloat16: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_supported(including_emulation: bool = True) -> bool:
        return has_bfloat16 or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_supported)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    assert precision.choose_precision(CUDA) == chosen
    assert precision.choose_precision(CPU) == "float32"
    precision.check_precision("bfloat16", CPU, "--precision")
    if not has_bfloat16:
        with pytest.raises(ValueError, match="run was started in bfloat16, which the GPU Tesla T4 lacks"):
            precision.check_precision("bfloat16", CUDA, "run was started in")


def test_resumed_run_keeps_its_precision(
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    assert run_trainer(data, out) == 0
    assert json.loads((out / "manifest.json").read_text())["config"]["precision"] == "float32"
    (out / "manifest.json").unlink()
    monkeypatch.setattr("bioshards.train.loop.training_plan.choose_precision", lambda _: "float16")
    assert run_trainer(data, out) == 0
    assert run_trainer(data, out, "--precision", "bfloat16") == 2
    assert "--precision float32, not bfloat16" in capsys.readouterr().err


def test_float16_skips_steps_until_the_loss_scale_fits(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU no gradient overflows at first, so the initial scale is higher."""
    monkeypatch.setattr(precision, "MAX_SCALE", 2.0**40)
    monkeypatch.setattr(precision, "INITIAL_SCALE", 2.0**36)
    options = ("--precision", "float16", "--steps", 24, "--save-every", 24)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
    entries = [entry for entry in load_log(tmp_path / "run") if entry["split"] == "train"]
    skipped = sum(entry["skipped_steps"] for entry in entries)
    assert skipped > MAX_NON_FINITE_STEPS
    assert entries[-1]["loss_scale"] == 2.0 ** (36 - skipped)
    assert entries[-1]["skipped_steps"] == 0


def test_float16_has_the_losses_of_float32() -> None:
    losses: dict[str, list[float]] = {}
    micro_batches, counts = make_micro_batches(0, 1)
    for name in ("float32", "bfloat16", "float16"):
        trainer, losses[name] = make_trainer("bert", precision=name), []
        for step in range(5):
            sums = MetricSums()
            trainer.update(step, micro_batches, counts, sums)
            metrics = sums.compute_metrics(trainer.objective, ProcessGroup(0, 1, CPU))
            losses[name].append(metrics["loss"])
    assert losses["float32"][-1] < losses["float32"][0]
    assert losses["float16"] == pytest.approx(losses["float32"], rel=2e-3)
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=2e-2)


def test_loss_scale_is_halved_and_doubled() -> None:
    scaler = LossScaler("float16", CPU)
    for _ in range(GROWTH_INTERVAL - 1):
        scaler.update(FINITE)
    assert scaler.scale == INITIAL_SCALE
    resumed = LossScaler("float16", CPU)
    resumed.load_state_dict(scaler.state_dict())
    scaler.update(FINITE)
    resumed.update(FINITE)
    assert scaler.scale == resumed.scale == 2 * INITIAL_SCALE
    scaler.update(INFINITE)
    assert scaler.state_dict() == {"loss_scale": {"scale": INITIAL_SCALE, "finite_steps": 0}}
    for _ in range(40):
        scaler.update(INFINITE)
    assert scaler.scale == 1
    unscaled = LossScaler("bfloat16", CPU)
    unscaled.update(INFINITE)
    unscaled.load_state_dict(scaler.state_dict())
    assert unscaled.scale == 1
    assert not unscaled.state_dict()


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_search_for_the_loss_scale_is_no_divergence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step whose gradients are not finite changes neither weights nor optimizer, the first one included."""
    trainer = make_trainer("bert", precision=name, bias_correction=True)
    compute_loss: Callable[..., Tensor] = trainer.objective.compute_loss
    monkeypatch.setattr(trainer.objective, "compute_loss", lambda *args: compute_loss(*args) * torch.nan)
    micro_batches, counts = make_micro_batches(0)
    before = {key: value.clone() for key, value in trainer.state_dict()["model"].items()}
    scale_search = 16 if name == "float16" else 0
    for step in range(scale_search + MAX_NON_FINITE_STEPS):
        assert trainer.find_divergence() is None
        trainer.update(step, micro_batches, counts, MetricSums())
    assert trainer.find_divergence() == scale_search + MAX_NON_FINITE_STEPS
    state = trainer.state_dict()
    assert is_same_state(before, state["model"])
    assert state["optimiser"]["steps"] == 0
    assert not any(moment.any() for moment in state["optimiser"]["second"].values())


class _ReadingOps(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Record the operations that wait for the device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        if name in READING_OPS or (name.startswith("index") and _has_bool_index(args)):
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def _has_bool_index(args: tuple[Any, ...]) -> bool:
    indices = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
    return any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("optimizer", ["adam", "lamb"])
def test_update_does_not_wait_for_the_device(family: str, optimizer: str) -> None:
    trainer = make_trainer(family, optimizer=optimizer, dropout=0.1, precision="float16", layer_decay=0.9)
    micro_batches, counts = make_micro_batches(0, 1)
    with _ReadingOps() as reading_ops:
        trainer.update(0, micro_batches, counts, MetricSums())
        assert reading_ops.names == []
        trainer.find_divergence()
        assert reading_ops.names == ["_local_scalar_dense"]
