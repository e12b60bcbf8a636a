"""Runs of the trainer that are interrupted, killed or concurrent, and the comparison of two runs.

A new process takes seconds to import its libraries.  They are imported once, by a server from which each
process is forked (tests/support/fork_server.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from bioshards.train.__main__ import main
from bioshards.train.optim import Adam
from tests.support import fork_server
from tests.support.train.trainer_runs import (
    SMALL_MODEL_OPTIONS,
    is_same_state,
    load_reproducible_log,
    load_state,
)

ContextFactory = Callable[[], contextlib.AbstractContextManager[None]]

fork_server.preload_modules(
    __name__, *(f"transformers.models.{family}.modeling_{family}" for family in ("electra", "bert", "albert"))
)


def trainer_options(data: Path, out: Path, *options: object) -> list[str]:
    """Build the options of a command that trains a small model."""
    return [str(word) for word in (data, "--output", out, *SMALL_MODEL_OPTIONS, *options)]


# Stopped in this process


@contextlib.contextmanager
def call_after_step(step: int, action: Callable[[], object]) -> Iterator[None]:
    """Call a function after the update of a step, counted by the optimizer."""
    update = Adam.step

    def patched(self: Adam, lr: float) -> None:
        update(self, lr)
        if self.state_dict()["steps"] == step:
            action()

    with mock.patch.object(Adam, "step", patched):
        yield


def send_signal(signal_number: int = signal.SIGINT) -> None:
    """What a user does, or a scheduler."""
    os.kill(os.getpid(), signal_number)


# Processes of their own


class TrainerProcess:
    """A process that trains.

    Args:
        given: the arguments of its command.
        within: makes the context manager that it trains in; a picklable function or partial.
        env: environment variables of its own.
        command: what it runs, if not the trainer.
    """

    def __init__(
        self,
        argv: Sequence[str],
        output_path: Path,
        context: ContextFactory = contextlib.nullcontext,
        env: Mapping[str, str] | None = None,
        command: Callable[[list[str]], int] = main,
    ) -> None:
        self._output_path = output_path
        self.process: BaseProcess = fork_server.FORK_SERVER.Process(
            target=_run_in_process,
            args=(list(argv), str(output_path), context, dict(env or {}), command),
            daemon=True,
        )
        self.process.start()

    def wait(self, seconds: float = 120) -> int:
        """Wait for its end; return its exit code, which is negative after a signal."""
        self.process.join(seconds)
        exit_code = self.process.exitcode
        if exit_code is None:
            self.process.kill()
            raise AssertionError(f"it did not end in {seconds} s, and had said: {self.read_output()}")
        return exit_code

    def read_output(self) -> str:
        """Return its stdout and stderr."""
        return self._output_path.read_text()


def _run_in_process(
    argv: list[str],
    output_path: str,
    context: ContextFactory,
    env: dict[str, str],
    command: Callable[[list[str]], int],
) -> None:
    os.environ.update({"HF_HUB_OFFLINE": "1", **env})
    with open(output_path, "ab") as file:
        sys.stdout.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    torch.set_num_threads(1)
    with context():
        code = command(argv)
    sys.exit(code)


# What must be the same


def last_checkpoint(run: Path) -> Path:
    """Return the last checkpoint of a run."""
    return sorted(run.glob("step-*"))[-1]


def list_temporary_dirs(run: Path) -> list[Path]:
    """List the temporary directories of a run."""
    return [path for path in run.iterdir() if path.name.startswith(".tmp-")]


def load_run_manifest(run: Path) -> dict[str, Any]:
    """Load a run's manifest without its field ``run``."""
    loaded: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    del loaded["run"]
    return loaded


def read_model_files(checkpoint: Path) -> dict[str, bytes]:
    """Read the files of the Hugging Face model by name."""
    return {
        str(path.relative_to(checkpoint)): path.read_bytes()
        for path in sorted((checkpoint / "hf").rglob("*"))
        if path.is_file()
    }


def assert_same_runs(left: Path, right: Path) -> None:
    """Assert that two finished runs have bitwise equal models and equal logs."""
    assert load_reproducible_log(left) == load_reproducible_log(right)
    left_checkpoint, right_checkpoint = last_checkpoint(left), last_checkpoint(right)
    assert left_checkpoint.name == right_checkpoint.name
    assert is_same_state(load_state(left_checkpoint), load_state(right_checkpoint))
    assert read_model_files(left_checkpoint) == read_model_files(right_checkpoint)
    assert load_run_manifest(left) == load_run_manifest(right)
    for name in ("README.md", "report.html"):
        assert (left / name).read_bytes() == (right / name).read_bytes()
    assert not list_temporary_dirs(left)
    assert not list_temporary_dirs(right)
