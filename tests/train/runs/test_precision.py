"""Precision by device, and the loss scale of float16."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from bioshards.train import distributed, train
from bioshards.train.models.objectives import Objective
from bioshards.train.train import MAX_NON_FINITE_STEPS
from tests.support.train.trainer_runs import load_log, load_state, run_trainer

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

CPU, CUDA = torch.device("cpu"), torch.device("cuda:0")


@pytest.mark.parametrize(("has_bfloat16", "chosen"), [(True, "bfloat16"), (False, "float16")])
def test_precision_is_that_of_the_device(
    has_bfloat16: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_supported(including_emulation: bool = True) -> bool:
        return has_bfloat16 or including_emulation

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", is_supported)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "Tesla T4")
    assert distributed.choose_precision(CUDA) == chosen
    assert distributed.choose_precision(CPU) == "float32"
    distributed.check_precision("bfloat16", CPU, "--precision")
    if not has_bfloat16:
        with pytest.raises(ValueError, match="run was started in bfloat16, which the GPU Tesla T4 lacks"):
            distributed.check_precision("bfloat16", CUDA, "run was started in")


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
    monkeypatch.setattr("bioshards.train.distributed.choose_precision", lambda _: "float16")
    assert run_trainer(data, out) == 0
    assert run_trainer(data, out, "--precision", "bfloat16") == 2
    assert "--precision float32, not bfloat16" in capsys.readouterr().err


def test_float16_skips_steps_until_the_loss_scale_fits(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a GPU no gradient overflows at first, so the initial scale is higher."""
    monkeypatch.setattr(train, "MAX_SCALE", 2.0**40)
    monkeypatch.setattr(train, "INITIAL_SCALE", 2.0**36)
    options = ("--precision", "float16", "--steps", 24, "--save-every", 24)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
    entries = [entry for entry in load_log(tmp_path / "run") if entry["split"] == "train"]
    skipped = sum(entry["skipped_steps"] for entry in entries)
    assert skipped > MAX_NON_FINITE_STEPS
    assert entries[-1]["loss_scale"] == 2.0 ** (36 - skipped)
    assert entries[-1]["skipped_steps"] == 0


def test_float16_has_the_losses_of_float32(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    losses: dict[str, list[float]] = {}
    for name in ("float32", "bfloat16", "float16"):
        options = ("--precision", name, "--dropout", 0, "--attention-dropout", 0, "--log-every", 1)
        assert run_trainer(pretraining_sets["bert"], tmp_path / name, *options) == 0
        losses[name] = [entry["loss"] for entry in load_log(tmp_path / name) if entry["split"] == "train"]
    assert losses["float32"][-1] < losses["float32"][0]
    assert losses["float16"] == pytest.approx(losses["float32"], rel=2e-3)
    assert losses["bfloat16"] == pytest.approx(losses["float32"], rel=2e-2)


def test_loss_scale_is_doubled_and_resumed(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It doubles after each fifth finite step, up to its maximum; a stop does not count anew."""
    monkeypatch.setattr(train, "GROWTH_INTERVAL", 5)
    monkeypatch.setattr(train, "INITIAL_SCALE", 4.0)
    monkeypatch.setattr(train, "MAX_SCALE", 16.0)
    options = ("--precision", "float16", "--steps", 24, "--log-every", 1, "--save-every", 100)
    for stop_after in (3, 12):
        run = (pretraining_sets["bert"], tmp_path / "run", *options, "--stop-after", stop_after)
        assert run_trainer(*run) == 0
    assert load_state(tmp_path / "run" / "step-0000012")["loss_scale"] == {"scale": 16.0, "finite_steps": 2}
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
    scales = [entry["loss_scale"] for entry in load_log(tmp_path / "run") if entry["split"] == "train"]
    assert scales == [4.0] * 4 + [8.0] * 5 + [16.0] * 15


@pytest.mark.parametrize("name", ["float32", "float16"])
def test_search_for_the_loss_scale_is_no_divergence(
    name: str,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ten steps at a scale of 1 without a finite gradient end the run."""
    compute_loss = Objective.compute_loss
    monkeypatch.setattr(Objective, "compute_loss", lambda *args: compute_loss(*args) * torch.nan)
    options = ("--precision", name, "--steps", 40, "--log-every", 1, "--save-every", 100)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 1
    last_step = MAX_NON_FINITE_STEPS + (16 if name == "float16" else 0)
    message = f"no finite gradient in {MAX_NON_FINITE_STEPS} consecutive steps up to step {last_step:,}"
    assert message in capsys.readouterr().err
    assert len(load_log(tmp_path / "run")) == last_step - 1
    assert not list((tmp_path / "run").glob("step-*"))
