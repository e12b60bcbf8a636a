"""Evaluation runs that are interrupted, killed, run twice at once, or meet a full disk or a closed pipe."""

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
from bioshards.evaluate.runs.run import lock_output
from tests.support.evaluate.evaluate_commands import (
    call_after_update,
    evaluate_argv,
    list_temporary_files,
    load_results,
    run_evaluate,
)
from tests.support.full_disk import limit_file_size
from tests.support.train.trainer_processes import TrainerProcess, send_signal
from tests.support.train.trainer_runs import use_torch_threads

Capture = pytest.CaptureFixture[str]
TWO_TASKS = (
    "--tasks",
    "blurb/ncbi-disease",
    "factoid-7b",
    "--seeds",
    2,
    "--max-examples",
    8,
    "--batch-size",
    4,
)
"""Two tasks with two seeds: 2 updates a seed for the first; 14 with SQuAD and 2 for the second."""


pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("use_one_thread")]


@pytest.fixture(scope="module")
def uninterrupted_results(checkpoint_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The results of an uninterrupted run."""
    output_dir = tmp_path_factory.mktemp("whole")
    with use_torch_threads(1):
        assert run_evaluate(checkpoint_dir, output_dir, *TWO_TASKS) == 0
    return load_results(output_dir)


def test_killed_run_resumes_with_the_same_results(
    checkpoint_dir: Path, uninterrupted_results: dict[str, Any], tmp_path: Path
) -> None:
    output_dir = tmp_path / "out"
    process = TrainerProcess(
        evaluate_argv("run", checkpoint_dir, output_dir, *TWO_TASKS),
        tmp_path / "told",
        partial(call_after_update, 7, partial(send_signal, signal.SIGKILL)),
        command=main,
    )
    assert process.wait() == -signal.SIGKILL, process.read_output()
    results = load_results(output_dir)
    assert {name.rpartition("/")[0] for name in results} == {"blurb/ncbi-disease"}
    assert not list_temporary_files(output_dir)
    assert run_evaluate(checkpoint_dir, output_dir, *TWO_TASKS) == 0
    assert load_results(output_dir) == uninterrupted_results


@pytest.mark.parametrize(
    ("signal_number", "update"),
    [(signal.SIGINT, 1), (signal.SIGTERM, 3), (signal.SIGINT, 8), (signal.SIGTERM, 8)],
)
def test_interrupted_run_resumes_with_the_same_results(
    checkpoint_dir: Path,
    uninterrupted_results: dict[str, Any],
    tmp_path: Path,
    capsys: Capture,
    signal_number: signal.Signals,
    update: int,
) -> None:
    with call_after_update(update, partial(send_signal, signal_number)):
        assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 130
    assert "evaluate: interrupted. Rerun the command to resume" in capsys.readouterr().err
    assert load_results(tmp_path).items() <= uninterrupted_results.items()
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 0
    assert load_results(tmp_path) == uninterrupted_results


def test_interrupt_while_writing_leaves_no_partial_result(
    checkpoint_dir: Path,
    uninterrupted_results: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = LocalStorage.write

    @contextlib.contextmanager
    def write_and_interrupt(self: LocalStorage, path: str) -> Iterator[BinaryIO]:
        with write(self, path) as file:
            yield file
            if path.endswith("seed-0.json"):
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(LocalStorage, "write", write_and_interrupt)
        assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 130
    assert not list(tmp_path.rglob("seed-0.json"))
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 0
    assert load_results(tmp_path) == uninterrupted_results


def test_second_process_is_refused_by_the_lock(checkpoint_dir: Path, tmp_path: Path, capsys: Capture) -> None:
    with lock_output(str(tmp_path)):
        assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 2
    assert f"another run is writing {tmp_path}: process " in capsys.readouterr().err
    assert not load_results(tmp_path)


def test_run_resumes_after_a_full_disk(
    checkpoint_dir: Path, uninterrupted_results: dict[str, Any], tmp_path: Path, capsys: Capture
) -> None:
    with limit_file_size(100):
        assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 1
    assert "evaluate: " in capsys.readouterr().err
    assert not load_results(tmp_path)
    assert not list_temporary_files(tmp_path)
    assert run_evaluate(checkpoint_dir, tmp_path, *TWO_TASKS) == 0
    assert load_results(tmp_path) == uninterrupted_results


def test_run_completes_when_its_output_pipe_is_closed(
    checkpoint_dir: Path, uninterrupted_results: dict[str, Any], tmp_path: Path
) -> None:
    output_dir = tmp_path / "out"
    process = TrainerProcess(
        evaluate_argv("run", checkpoint_dir, output_dir, *TWO_TASKS),
        tmp_path / "told",
        close_output_pipe,
        command=main,
    )
    assert process.wait() in (0, 120)  # 120: Python could not flush stdout at exit
    assert load_results(output_dir) == uninterrupted_results
    assert not process.read_output()


@contextlib.contextmanager
def close_output_pipe() -> Iterator[None]:
    """Send stdout and stderr to a pipe whose read end is closed."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    for stream in (1, 2):
        os.dup2(write_end, stream)
    yield
