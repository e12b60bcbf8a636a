"""Runs that are stopped, killed, beside each other, on a full disk, or that nobody reads."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.__main__ import main
from bioshards.evaluate.runs.evaluate_job import lock_output
from tests.support.evaluate.evaluate_commands import (
    call_after_update,
    evaluate_argv,
    list_temporary_files,
    load_results,
    run_evaluate,
    send_signal,
)
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.full_disk import limit_file_size
from tests.support.train.trainer_processes import TrainerProcess
from tests.support.train.trainer_runs import use_torch_threads

Capture = pytest.CaptureFixture[str]
TWO = ("--tasks", "ncbi-disease", "factoid-7b", "--seeds", 2, "--max-examples", 8, "--batch-size", 4)
"""Two tasks with two seeds: 2 updates a seed, and 14 and 2 for the questions, which begin with SQuAD."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    with use_torch_threads(1):
        yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of a run that nothing stops."""
    out = tmp_path_factory.mktemp("whole")
    with use_torch_threads(1):
        assert run_evaluate(model, out, *TWO) == 0
    return load_results(out)


def test_a_run_that_is_killed_goes_on_and_ends_the_same(
    model: Path, whole: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    killed = TrainerProcess(
        evaluate_argv("run", model, out, *TWO),
        tmp_path / "told",
        partial(call_after_update, 7, partial(send_signal, signal.SIGKILL)),
        command=main,
    )
    assert killed.wait() == -signal.SIGKILL, killed.read_output()
    made = load_results(out)
    assert {name.rpartition("/")[0] for name in made} == {"blurb/ncbi-disease"}
    assert not list_temporary_files(out)
    assert run_evaluate(model, out, *TWO) == 0
    assert load_results(out) == whole


@pytest.mark.parametrize(
    ("how", "update"), [(signal.SIGINT, 1), (signal.SIGTERM, 3), (signal.SIGINT, 8), (signal.SIGTERM, 8)]
)
def test_it_can_be_stopped_and_goes_on(
    model: Path, whole: dict[str, Any], tmp_path: Path, capsys: Capture, how: signal.Signals, update: int
) -> None:
    with call_after_update(update, partial(send_signal, how)):
        assert run_evaluate(model, tmp_path, *TWO) == 130
    assert "evaluate: interrupted. Rerun the command to resume" in capsys.readouterr().err
    assert load_results(tmp_path).items() <= whole.items()
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(model, tmp_path, *TWO) == 0
    assert load_results(tmp_path) == whole


def test_it_can_be_stopped_while_a_result_is_written(
    model: Path, whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = LocalStorage.write

    @contextlib.contextmanager
    def stopped(self: LocalStorage, path: str) -> Iterator[BinaryIO]:
        with write(self, path) as file:
            yield file
            if path.endswith("seed-0.json"):
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", stopped)
        assert run_evaluate(model, tmp_path, *TWO) == 130
    assert not list(tmp_path.rglob("seed-0.json"))
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(model, tmp_path, *TWO) == 0
    assert load_results(tmp_path) == whole


def test_two_processes_do_not_write_into_one_folder(model: Path, tmp_path: Path, capsys: Capture) -> None:
    with lock_output(str(tmp_path)):
        assert run_evaluate(model, tmp_path, *TWO) == 2
    assert f"another process writes to {tmp_path}; wait for it or stop it" in capsys.readouterr().err
    assert not load_results(tmp_path)


def test_a_full_disk_ends_it_and_the_same_command_goes_on(
    model: Path, whole: dict[str, Any], tmp_path: Path, capsys: Capture
) -> None:
    with limit_file_size(100):
        assert run_evaluate(model, tmp_path, *TWO) == 1
    assert "evaluate: " in capsys.readouterr().err
    assert not load_results(tmp_path)
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(model, tmp_path, *TWO) == 0
    assert load_results(tmp_path) == whole


def test_a_run_whose_output_nobody_reads_goes_on(model: Path, whole: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    child = TrainerProcess(evaluate_argv("run", model, out, *TWO), tmp_path / "told", unread, command=main)
    assert child.wait() in (0, 120)  # 120: Python's own, of what it could not write at its end
    assert load_results(out) == whole
    assert not child.read_output()


@contextlib.contextmanager
def unread() -> Iterator[None]:
    """What a process says goes into a pipe that is closed at the other end."""
    read, write = os.pipe()
    os.close(read)
    for stream in (1, 2):
        os.dup2(write, stream)
    yield
