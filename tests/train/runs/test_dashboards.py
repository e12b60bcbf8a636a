"""TensorBoard and Weights & Biases: what is sent to them, and what is said where they are not installed."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.train.trainer_processes import call_after_step, send_signal
from tests.support.train.trainer_runs import load_log, run_trainer

pytestmark = pytest.mark.thorough  # this file takes minutes

MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}


class FakeDashboard:
    """Stands for SummaryWriter, for the module wandb and for its run."""

    def __init__(self) -> None:
        self.starts: list[dict[str, Any]] = []
        self.values: dict[tuple[str, int], float] = {}
        self.num_closed = 0

    def init(self, **settings: Any) -> FakeDashboard:
        self.starts.append(settings)
        return self

    def make_writer(self, folder: str, purge_step: int) -> FakeDashboard:
        return self.init(folder=folder, purge_step=purge_step)

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.values[name, step] = value

    def log(self, values: dict[str, float], step: int) -> None:
        self.values.update({(name, step): value for name, value in values.items()})

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.num_closed += 1

    finish = close


def test_dashboards_show_the_log_of_a_resumed_run(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tensorboard, wandb = FakeDashboard(), FakeDashboard()
    monkeypatch.setitem(
        sys.modules, MODULES["tensorboard"], SimpleNamespace(SummaryWriter=tensorboard.make_writer)
    )
    monkeypatch.setitem(sys.modules, MODULES["wandb"], SimpleNamespace(init=wandb.init))
    argv = (pretraining_sets["bert"], tmp_path / "run", "--tensorboard", "--wandb")
    with call_after_step(6, send_signal):
        assert run_trainer(*argv) == 130
    assert run_trainer(*argv) == 0
    for line in load_log(tmp_path / "run"):
        for dashboard in (tensorboard, wandb):
            assert dashboard.values[f"{line['split']}/losses/mlm", line["step"]] == line["losses"]["mlm"]
    assert tensorboard.values == wandb.values
    assert tensorboard.values["train/tokens_per_second", 8] > 0
    assert [start["purge_step"] for start in tensorboard.starts] == [1, 7]
    assert tensorboard.starts[0]["folder"] == f"{tmp_path}/run/tensorboard"
    first, second = wandb.starts
    assert first == second
    assert first["config"]["batch_size"] == 8
    assert tensorboard.num_closed == wandb.num_closed == 2


@pytest.mark.parametrize("name", MODULES)
def test_missing_package_is_named_before_anything_is_written(
    name: str,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, MODULES[name], None)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", f"--{name}") == 2
    assert f"--{name} needs the package {name}" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
