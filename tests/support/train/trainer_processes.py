"""Runs of the trainer that are stopped, killed or beside each other, and what must be the same of two runs.

A process of its own takes seconds to load its libraries.  Here they are loaded once, by a server of which
each process that is wanted is a fork (tests/support/fork_server.py); what it does, how it ends and what
ends it are those of any other process.
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
from bioshards.train.loop.trainer import Trainer
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
    """The words of a command that trains a small model."""
    return [str(word) for word in (data, "--output", out, *SMALL_MODEL_OPTIONS, *options)]


# Stopped in this process


@contextlib.contextmanager
def call_after_step(step: int, action: Callable[[], object]) -> Iterator[None]:
    """Something happens when so many steps are done."""
    update = Trainer.update

    def patched(self: Trainer, number: int, *rest: Any) -> float:
        norm = update(self, number, *rest)
        if number + 1 == step:
            action()
        return norm

    with mock.patch.object(Trainer, "update", patched):
        yield


def send_signal(signal_number: int = signal.SIGINT) -> None:
    """What a user does, or a scheduler."""
    os.kill(os.getpid(), signal_number)


# Processes of their own


class TrainerProcess:
    """A process of its own that trains.

    Args:
        given: the words of its command.
        within: makes the context that it trains in; a function of a module, or a part of one.
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
        """Wait for its end; returns its exit code, which is below 0 if a signal has ended it."""
        self.process.join(seconds)
        exit_code = self.process.exitcode
        if exit_code is None:
            self.process.kill()
            raise AssertionError(f"it did not end in {seconds} s, and had said: {self.read_output()}")
        return exit_code

    def read_output(self) -> str:
        """What it has written to its standard output and error."""
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
    """A run's last checkpoint."""
    return sorted(run.glob("step-*"))[-1]


def list_temporary_dirs(run: Path) -> list[Path]:
    """What is half-made in a run's folder."""
    return [path for path in run.iterdir() if path.name.startswith(".tmp-")]


def load_run_manifest(run: Path) -> dict[str, Any]:
    """A run's manifest without what it says of the run."""
    loaded: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    del loaded["run"]
    return loaded


def read_model_files(checkpoint: Path) -> dict[str, bytes]:
    """The files that Hugging Face's classes load, by their names."""
    return {
        str(path.relative_to(checkpoint)): path.read_bytes()
        for path in sorted((checkpoint / "hf").rglob("*"))
        if path.is_file()
    }


def assert_same_runs(left: Path, right: Path) -> None:
    """Two finished runs have learned the same, to the bit, and say the same of it."""
    assert load_reproducible_log(left) == load_reproducible_log(right)
    left_checkpoint, right_checkpoint = last_checkpoint(left), last_checkpoint(right)
    assert left_checkpoint.name == right_checkpoint.name
    assert is_same_state(load_state(left_checkpoint), load_state(right_checkpoint))
    assert read_model_files(left_checkpoint) == read_model_files(right_checkpoint)
    assert load_run_manifest(left) == load_run_manifest(right)
    assert not list_temporary_dirs(left)
    assert not list_temporary_dirs(right)
