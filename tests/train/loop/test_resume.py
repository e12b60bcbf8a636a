"""A run that was stopped, however, ends as one that was not: to the bit."""

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

from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.loop import checkpoint
from bioshards.train.models import factory
from bioshards.train.models.objective import Objective
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
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    trainer_argv,
    use_torch_threads,
)

FAMILIES = ("electra", "bert", "albert")
LONG = ("--steps", 60, "--save-every", 20, "--log-every", 7, "--validate-every", 11)
CPU = Path("/proc/cpuinfo")
BFLOAT16 = ("--precision", "bfloat16") if CPU.exists() and "bf16" in CPU.read_text() else ()
"""Where the processor has such numbers: elsewhere a step takes seconds, and this file four minutes more."""

EVERYTHING = {
    "electra": (
        *("--micro-batch-size", 4, "--adversarial-weight", 1.0, "--layer-decay", 0.8, "--bias-correction"),
        *("--mask-rate", 0.1, "--schedule", "electra"),
    ),
    "bert": (
        *("--micro-batch-size", 2, "--mask-unit", "word", "--mask-rate", 0.05, "--final-mask-rate", 0.25),
        *("--schedule", "bert", *BFLOAT16),
    ),
    "albert": (
        *("--micro-batch-size", 4, "--mask-unit", "ngram", "--optimizer", "lamb", "--pad-rows"),
        *("--adversarial-weight", 0.5, "--final-mask-rate", 0.3),
    ),
}
"""Between them, all that a step may do."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


def stopped(data: Path, out: Path, *options: object, at: tuple[int, ...]) -> None:
    """A run that is stopped after these steps, each time gone on with by the same command, to its end."""
    for step in at:
        with call_after_step(step, send_signal):
            assert run_trainer(data, out, *options) == 130
        assert last_checkpoint(out).name == f"step-{step:07d}"
        assert not (out / "manifest.json").exists()
        assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *options) == 0


# Whole runs and halves


@pytest.mark.parametrize("objective", FAMILIES)
def test_sixty_steps_are_thirty_and_a_stop_and_thirty(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets[objective]
    assert run_trainer(data, tmp_path / "whole", *LONG) == 0
    stopped(data, tmp_path / "halves", *LONG, at=(30,))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")
    early, late = (load_state(tmp_path / "whole" / f"step-{step:07d}") for step in (20, 60))
    assert not is_same_state(early["model"], late["model"])
    assert not is_same_state(early["optimiser"], late["optimiser"])
    assert max(entry.get("epoch", 0) for entry in load_log(tmp_path / "whole")) > 1


@pytest.mark.parametrize("objective", FAMILIES)
def test_it_may_be_stopped_at_an_epochs_very_end_and_on_either_side_of_it(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets[objective]
    rows = PretrainingDataset(str(data)).rows
    batch = max(size for size in range(2, 9) if rows % size == 0)
    end = rows // batch
    options = ("--steps", end + 5, "--batch-size", batch, "--log-every", 1, "--validate-every", 10)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    stopped(data, tmp_path / "stopped", *options, at=(end - 1, end, end + 1))
    assert_same_runs(tmp_path / "whole", tmp_path / "stopped")
    assert [entry["step"] for entry in load_log(tmp_path / "stopped") if entry.get("epoch") == 1] == [end]


@pytest.mark.parametrize("objective", FAMILIES)
def test_whatever_a_step_does_is_gone_on_with(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, options = pretraining_sets[objective], ("--steps", 20, *EVERYTHING[objective])
    options = (*options, "--log-every", 3, "--validate-every", 4, "--save-every", 8)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    stopped(data, tmp_path / "halves", *options, at=(5, 8, 13))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


@pytest.mark.parametrize("objective", FAMILIES)
def test_so_it_is_with_two_threads(objective: str, pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data = pretraining_sets[objective]
    wide = (
        "--hidden-size",
        128,
        "--intermediate-size",
        512,
        "--embedding-size",
        128,
    )  # enough to be dealt out to threads
    options = (*wide, "--num-layers", 1, "--steps", 4)
    with use_torch_threads(2):
        assert run_trainer(data, tmp_path / "whole", *options) == 0
        stopped(data, tmp_path / "halves", *options, at=(2,))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


def test_a_run_of_unlabelled_rows_is_gone_on_with(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    """The heads that nothing is learned for are part of the model all the same."""
    data = pretraining_sets["plain"]
    assert run_trainer(data, tmp_path / "whole") == 0
    stopped(data, tmp_path / "halves", at=(6, 7))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


def test_a_run_that_continues_another_is_gone_on_with(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Its rows are counted from where it began, which every checkpoint of it knows."""
    data = pretraining_sets["electra"]
    assert run_trainer(data, tmp_path / "before") == 0
    options = ("--continue-from", tmp_path / "before", "--steps", 24, "--log-every", 1)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    stopped(data, tmp_path / "halves", *options, at=(15, 20))
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")
    assert [entry["step"] for entry in load_log(tmp_path / "halves") if entry["split"] == "train"] == [
        *range(13, 25)
    ]


def test_the_same_command_before_the_first_step_and_after_the_last_one(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pretraining_sets["bert"]
    assert run_trainer(data, tmp_path / "whole") == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "whole").rglob("*") if path.is_file()}
    before.pop(tmp_path / "whole" / ".lock")
    capsys.readouterr()
    assert run_trainer(data, tmp_path / "whole") == 0
    assert "is finished: there is nothing to do" in capsys.readouterr().out
    assert all(path.stat().st_mtime_ns == when for path, when in before.items())

    build = factory.build_objective

    def told_meanwhile(*given: Any) -> Objective:
        send_signal()
        return build(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(factory, "build_objective", told_meanwhile)
        assert run_trainer(data, tmp_path / "early") == 130
    assert [path.name for path in (tmp_path / "early").glob("step-*")] == ["step-0000000"]
    assert run_trainer(data, tmp_path / "early") == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "early")


def test_without_its_manifest_it_is_only_said_once_more_that_it_is_finished(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Killed between its last checkpoint and its manifest."""
    data = pretraining_sets["albert"]
    for name in ("whole", "killed"):
        assert run_trainer(data, tmp_path / name) == 0
    (tmp_path / "killed" / "manifest.json").unlink()
    assert run_trainer(data, tmp_path / "killed") == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "killed")


# Signals


def test_signals_end_a_process_with_a_checkpoint_of_that_very_step(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The command as it is given in a shell, stopped by a scheduler, gone on with, stopped by Ctrl-C."""
    data, out = pretraining_sets["bert"], tmp_path / "run"
    endless = ("--steps", 1_000_000, "--log-every", 1, "--save-every", 1_000_000, "--keep-checkpoints", 2)
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with open(tmp_path / "told", "wb") as told:
        process = subprocess.Popen(trainer_argv(data, out, *endless), stderr=told, env=environment)
        _wait_for_step(1, out, process.poll)
        process.terminate()
        assert process.wait(60) == 130
    first = _stopped_cleanly(out, (tmp_path / "told").read_text())

    child = TrainerProcess(trainer_options(data, out, *endless), tmp_path / "told again")
    _wait_for_step(first + 1, out, lambda: child.process.exitcode)
    os.kill(child.process.pid or 0, signal.SIGINT)
    assert child.wait() == 130
    second = _stopped_cleanly(out, child.read_output())
    assert second > first
    steps = [entry["step"] for entry in load_log(out) if entry["split"] == "train"]
    assert steps == list(range(1, second + 1))


def _wait_for_step(step: int, run: Path, ended: Callable[[], int | None]) -> None:
    while ended() is None and _logged(run) < step:
        time.sleep(0.02)
    assert ended() is None


def _stopped_cleanly(run: Path, said: str) -> int:
    """Is the last checkpoint that of the last step that was done?  Returns the step."""
    done = _logged(run)
    assert last_checkpoint(run).name == f"step-{done:07d}"
    assert load_state(last_checkpoint(run))["done"] == done
    assert f"train: stopped. Rerun the command to resume from {last_checkpoint(run)}" in said
    assert not list_temporary_dirs(run)
    return done


def _logged(run: Path) -> int:
    """The last step in the log, which another process may be writing."""
    path = run / "log.jsonl"
    whole = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return 0 if not whole else int(whole[-1].split(b'"step": ')[1].split(b",")[0])


def test_a_second_ctrl_c_ends_it_at_once(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = pretraining_sets["electra"]

    def twice() -> None:
        send_signal()
        send_signal()

    assert run_trainer(data, tmp_path / "whole") == 0
    out = tmp_path / "run"
    with call_after_step(3, twice):
        assert run_trainer(data, out) == 130
    assert "No checkpoint was saved: rerun the command to start again" in capsys.readouterr().err
    with call_after_step(9, twice):
        assert run_trainer(data, out) == 130
    assert f"Rerun the command to resume from {out}/step-0000006" in capsys.readouterr().err
    assert [path.name for path in out.glob("step-*")] == ["step-0000006"]
    assert run_trainer(data, out) == 0
    assert_same_runs(tmp_path / "whole", out)


def test_a_second_ctrl_c_while_the_checkpoint_is_written_leaves_nothing_half_made(
    pretraining_sets: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = pretraining_sets["bert"]
    assert run_trainer(data, tmp_path / "whole") == 0
    monkeypatch.setattr(checkpoint, "_fsync_tree", lambda _folder: send_signal())
    with call_after_step(3, send_signal):
        assert run_trainer(data, tmp_path / "run") == 130
    assert not list((tmp_path / "run").glob("step-*"))
    assert not list_temporary_dirs(tmp_path / "run")
    monkeypatch.undo()
    assert run_trainer(data, tmp_path / "run") == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "run")


def test_handlers_of_signals_are_as_they_were_afterwards(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with call_after_step(2, send_signal):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 130
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


# kill -9


@contextlib.contextmanager
def dying_at(moment: int, run: str) -> Iterator[None]:
    """Die at the so-manieth time that this process does something to a file in the run's folder."""
    left = moment

    def watch(event: str, given: tuple[object, ...]) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir") and run in str(given[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    yield


@pytest.mark.parametrize("objective", ["electra", "bert"])
def test_killed_again_and_again_while_it_writes_it_ends_as_if_nothing_had_been(
    objective: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """A checkpoint every two steps, and each process dies somewhere within the next three or so."""
    data, out = pretraining_sets[objective], tmp_path / "killed"
    options = (
        "--steps",
        16,
        "--save-every",
        2,
        "--validate-every",
        5,
        "--log-every",
        3,
        "--keep-checkpoints",
        2,
    )
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    chance = random.Random(objective)
    killed, before = 0, -1
    while not (out / "manifest.json").exists():
        if killed < 5:
            dying = partial(dying_at, chance.randint(1, 90), str(out))
            assert (
                TrainerProcess(trainer_options(data, out, *options), tmp_path / "told", dying).wait()
                == -signal.SIGKILL
            )
            killed += 1
        else:
            assert run_trainer(data, out, *options) == 0
        found = sorted(out.glob("step-*"))
        assert len(found) <= 3  # the two that stay, and one that is not yet removed
        for each in found:  # whatever is there is whole
            assert load_state(each)["done"] == int(each.name.removeprefix("step-"))
        done = load_state(found[-1])["done"] if found else -1
        assert done >= before
        before = done
    assert killed == 5
    assert_same_runs(tmp_path / "whole", out)


def test_killed_from_outside_at_any_moment(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data, out = pretraining_sets["albert"], tmp_path / "killed"
    options = ("--steps", 40, "--save-every", 1)
    begun = time.monotonic()
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    lasts = time.monotonic() - begun
    chance, killed = random.Random(3), 0
    while killed < 3:
        child = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told")
        child.process.join(chance.uniform(0, lasts))
        child.process.kill()
        ended = child.wait()
        assert ended in (-signal.SIGKILL, 0)
        killed += ended == -signal.SIGKILL
        assert all(load_state(each)["done"] == int(each.name[5:]) for each in out.glob("step-*"))
        if (out / "manifest.json").exists():
            shutil.rmtree(out)
    assert run_trainer(data, out, *options) == 0
    assert_same_runs(tmp_path / "whole", out)


def test_killed_before_it_could_say_what_it_is_the_folder_is_still_its_own(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The very first file is run.json, under another name at first."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".lock").touch()
    (tmp_path / "run" / ".tmp-0123456789").write_text('{"identity"')
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 0
    assert not list_temporary_dirs(tmp_path / "run")


def test_steps_that_a_killed_run_had_logged_are_logged_once(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Killed after step 10, it goes on from its checkpoint of step 6."""
    data, options = pretraining_sets["electra"], ("--log-every", 1, "--validate-every", 2)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    out = tmp_path / "killed"
    dying = partial(call_after_step, 10, partial(send_signal, signal.SIGKILL))
    child = TrainerProcess(trainer_options(data, out, *options), tmp_path / "told", dying)
    assert child.wait() == -signal.SIGKILL
    assert load_log(out)[-1]["step"] == 9
    with open(out / "log.jsonl", "ab") as file:
        file.write(b'{"step": 10, "split": "tra')
    assert run_trainer(data, out, *options) == 0
    assert load_reproducible_log(out) == load_reproducible_log(tmp_path / "whole")
    assert_same_runs(tmp_path / "whole", out)
