"""Resuming: a stopped or killed run ends bit by bit like an uninterrupted one."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bioshards.train import checkpoint, train
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.models import weights
from bioshards.train.models.objectives import Objective
from tests.support.train.trainer_processes import (
    TrainerProcess,
    assert_same_runs,
    call_after_step,
    last_checkpoint,
    list_temporary_dirs,
    send_signal,
    trainer_options,
)
from tests.support.train.trainer_runs import (
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    trainer_argv,
    use_torch_threads,
)

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

FAMILIES = ("electra", "bert", "albert")
CPU = Path("/proc/cpuinfo")
BFLOAT16 = ("--precision", "bfloat16") if CPU.exists() and "bf16" in CPU.read_text() else ()
"""Used only if the CPU supports bfloat16; otherwise a step takes seconds."""

ALL_OPTIONS = {
    "electra": (
        *("--micro-batch-size", 4, "--adversarial-weight", 1.0, "--layer-decay", 0.8, "--bias-correction"),
        *("--mask-rate", 0.1, "--schedule", "electra"),
    ),
    "bert": (
        *("--micro-batch-size", 2, "--mask-unit", "word", "--mask-rate", 0.05, "--final-mask-rate", 0.25),
        *("--schedule", "bert", *BFLOAT16),
    ),
    "albert": (
        *("--micro-batch-size", 4, "--mask-unit", "ngram", "--optimizer", "lamb"),
        *("--adversarial-weight", 0.5, "--final-mask-rate", 0.3, "--precision", "float16"),
    ),
    "plain": (),
}
"""Options that together cover all that a training step does; heads are not trained on rows without labels."""


def run_with_stops(data: Path, out: Path, *options: object, stop_steps: tuple[int, ...]) -> None:
    """Run to the end, with an interrupt after each of these steps and a resume by the same command."""
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    for step in stop_steps:
        with call_after_step(step, send_signal):
            assert run_trainer(data, out, *options) == 130
        assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers
        assert last_checkpoint(out).name == f"step-{step:07d}"
        assert not (out / "manifest.json").exists()
        assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *options) == 0


# Interrupted and uninterrupted runs


@pytest.mark.parametrize("objective", ALL_OPTIONS)
def test_all_training_options_resume(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Stopped in an epoch, around its end, and at the step of a checkpoint."""
    data = pretraining_sets[objective]
    rows = PretrainingDataset(str(data)).rows
    batch = max((size for size in range(2, 9) if rows % size == 0), default=8)
    end = rows // batch
    options = ("--steps", end + 5, "--batch-size", batch, *ALL_OPTIONS[objective])
    options = (*options, "--log-every", 3, "--validate-every", 4, "--save-every", end)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    run_with_stops(data, tmp_path / "halves", *options, stop_steps=(end - 3, end - 1, end, end + 1))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


@pytest.mark.parametrize("objective", FAMILIES)
def test_run_with_two_threads_resumes(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets[objective]
    wide = ("--hidden-size", 128, "--intermediate-size", 512, "--embedding-size", 128)  # for several threads
    options = (*wide, "--num-layers", 1, "--steps", 4)
    with use_torch_threads(2):
        assert run_trainer(data, tmp_path / "whole", *options) == 0
        run_with_stops(data, tmp_path / "halves", *options, stop_steps=(2,))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


@pytest.mark.parametrize(("option", "first_step"), [("--continue-from", 13), ("--init-checkpoint", 1)])
def test_run_that_starts_from_another_resumes_without_it(
    option: str, first_step: int, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The position in the data counts from the first step of the run, which its checkpoints record."""
    data, before = pretraining_sets["electra"], tmp_path / "before"
    assert run_trainer(data, before) == 0
    origin = before if option == "--continue-from" else last_checkpoint(before) / "hf"
    options = (option, origin, "--steps", 24, "--log-every", 1)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    with call_after_step(15, send_signal):
        assert run_trainer(data, tmp_path / "halves", *options) == 130
    before.rename(tmp_path / "elsewhere")
    run_with_stops(data, tmp_path / "halves", *options, stop_steps=(20,))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")
    steps = [entry["step"] for entry in load_log(tmp_path / "halves") if entry["split"] == "train"]
    assert steps == [*range(first_step, 25)]


def test_run_can_be_stopped_before_the_first_step(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data = pretraining_sets["bert"]
    assert run_trainer(data, tmp_path / "whole") == 0
    build = weights.build_objective

    def build_and_interrupt(*args: Any) -> Objective:
        send_signal()
        return build(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train, "build_objective", build_and_interrupt)
        assert run_trainer(data, tmp_path / "early") == 130
    assert [path.name for path in (tmp_path / "early").glob("step-*")] == ["step-0000000"]
    assert run_trainer(data, tmp_path / "early") == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "early")


# Signals


def test_signals_stop_a_process_with_a_checkpoint_of_its_step(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The command is stopped by SIGTERM as from a scheduler, resumed, and stopped by Ctrl-C."""
    data, out = pretraining_sets["bert"], tmp_path / "run"
    options = ("--steps", 1_000_000, "--log-every", 1, "--save-every", 1_000_000, "--keep-checkpoints", 2)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(tmp_path / "told", "wb") as stderr:
        process = subprocess.Popen(trainer_argv(data, out, *options), stderr=stderr, env=environment)
        _wait_for_step(1, out, process.poll)
        process.terminate()
        assert process.wait(60) == 130
    first = assert_stopped_cleanly(out, (tmp_path / "told").read_text())

    child = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told again")
    _wait_for_step(first + 1, out, lambda: child.process.exitcode)
    os.kill(child.process.pid or 0, signal.SIGINT)
    assert child.wait() == 130
    second = assert_stopped_cleanly(out, child.read_output())
    assert second > first
    steps = [entry["step"] for entry in load_log(out) if entry["split"] == "train"]
    assert steps == list(range(1, second + 1))


def _wait_for_step(step: int, run: Path, get_exit_code: Callable[[], int | None]) -> None:
    while get_exit_code() is None and read_last_logged_step(run) < step:
        time.sleep(0.02)
    assert get_exit_code() is None


def assert_stopped_cleanly(run: Path, output: str) -> int:
    """Check that the last checkpoint is of the last step, and return the step."""
    last_step = read_last_logged_step(run)
    assert last_checkpoint(run).name == f"step-{last_step:07d}"
    assert load_state(last_checkpoint(run))["done"] == last_step
    assert f"train: stopped. Rerun the command to resume from {last_checkpoint(run)}" in output
    assert not list_temporary_dirs(run)
    return last_step


def read_last_logged_step(run: Path) -> int:
    """Return the last step of a log that another process may be writing."""
    path = run / "log.jsonl"
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return 0 if not lines else int(lines[-1].split(b'"step": ')[1].split(b",")[0])


def test_second_ctrl_c_exits_immediately(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pretraining_sets["electra"]

    def send_two_signals() -> None:
        send_signal()
        send_signal()

    assert run_trainer(data, tmp_path / "whole") == 0
    out = tmp_path / "run"
    with call_after_step(3, send_two_signals):
        assert run_trainer(data, out) == 130
    assert "No checkpoint was saved: rerun the command to start again" in capsys.readouterr().err
    with call_after_step(9, send_two_signals):
        assert run_trainer(data, out) == 130
    assert f"Rerun the command to resume from {out}/step-0000006" in capsys.readouterr().err
    assert [path.name for path in out.glob("step-*")] == ["step-0000006"]
    assert run_trainer(data, out) == 0
    assert_same_runs(tmp_path / "whole", out)


def test_second_ctrl_c_during_a_checkpoint_leaves_no_partial_files(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pretraining_sets["bert"]
    assert run_trainer(data, tmp_path / "whole") == 0
    monkeypatch.setattr(checkpoint, "_fsync", lambda _path: send_signal())
    with call_after_step(3, send_signal):
        assert run_trainer(data, tmp_path / "run") == 130
    assert not list((tmp_path / "run").glob("step-*"))
    assert not list_temporary_dirs(tmp_path / "run")
    monkeypatch.undo()
    assert run_trainer(data, tmp_path / "run") == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "run")


# kill -9


@contextlib.contextmanager
def kill_at_operation(num_operations: int, run: str) -> Iterator[None]:
    """Kill this process at its n-th file operation in the run directory."""
    remaining = num_operations

    def kill_after_operations(event: str, args: tuple[object, ...]) -> None:
        nonlocal remaining
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir") and run in str(args[0]):
            remaining -= 1
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill_after_operations)
    yield


@pytest.mark.parametrize("objective", ["electra", "bert"])
def test_repeatedly_killed_run_equals_an_uninterrupted_run(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Checkpoints are written every two steps, and each process is killed within about three checkpoints."""
    data, out = pretraining_sets[objective], tmp_path / "killed"
    checkpoints = ("--save-every", 2, "--keep-checkpoints", 2)
    options = ("--steps", 16, "--validate-every", 5, "--log-every", 3, *checkpoints)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    rng = random.Random(objective)
    num_kills, previous_step = 0, -1
    while not (out / "manifest.json").exists():
        if num_kills < 5:
            kill_randomly = partial(kill_at_operation, rng.randint(1, 90), str(out))
            process = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told", kill_randomly)
            assert process.wait() == -signal.SIGKILL
            num_kills += 1
        else:
            assert run_trainer(data, out, *options) == 0
        paths = sorted(out.glob("step-*"))
        assert len(paths) <= 3  # the two that stay, and one that is not yet removed
        for path in paths:  # whatever is there is whole
            assert load_state(path)["done"] == int(path.name.removeprefix("step-"))
        last_step = load_state(paths[-1])["done"] if paths else -1
        assert last_step >= previous_step
        previous_step = last_step
    assert num_kills == 5
    assert_same_runs(tmp_path / "whole", out)


def test_run_killed_at_random_times_equals_an_uninterrupted_run(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["albert"], tmp_path / "killed"
    options = ("--steps", 40, "--save-every", 1)
    started = time.monotonic()
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    duration = time.monotonic() - started
    rng, num_kills = random.Random(3), 0
    while num_kills < 3:
        child = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told")
        child.process.join(rng.uniform(0, duration))
        child.process.kill()
        exit_code = child.wait()
        assert exit_code in (-signal.SIGKILL, 0)
        num_kills += exit_code == -signal.SIGKILL
        assert all(load_state(path)["done"] == int(path.name[5:]) for path in out.glob("step-*"))
        if (out / "manifest.json").exists():
            shutil.rmtree(out)
    assert run_trainer(data, out, *options) == 0
    assert_same_runs(tmp_path / "whole", out)


def test_directory_of_a_run_killed_before_run_json_is_accepted(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The first file is ``run.json``, written under a temporary name."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").touch()
    (tmp_path / "run" / ".tmp-0123456789").write_text('{"identity"')
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 0
    assert not list_temporary_dirs(tmp_path / "run")


def test_steps_after_the_last_checkpoint_are_logged_once(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The run is killed after step 10 and resumes from the checkpoint of step 6."""
    data, options = pretraining_sets["electra"], ("--log-every", 1, "--validate-every", 2)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    out = tmp_path / "killed"
    kill_after_step = partial(call_after_step, 10, partial(send_signal, signal.SIGKILL))
    child = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told", kill_after_step)
    assert child.wait() == -signal.SIGKILL
    assert load_log(out)[-1]["step"] == 9
    with open(out / "log.jsonl", "ab") as file:
        file.write(b'{"step": 10, "split": "tra')
    assert run_trainer(data, out, *options) == 0
    assert load_reproducible_log(out) == load_reproducible_log(tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", out)


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
