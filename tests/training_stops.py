"""Runs of the trainer that are stopped, killed or beside each other, and what must be the same of two runs.

A process of its own takes seconds to load its libraries.  Here they are loaded once, by a server of which
each process that is wanted is a fork (tests/forked.py); what it does, how it ends and what
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
from bioshards.train.trainer import Trainer
from tests.training_runs import SMALL, same_state, state, told

from . import forked

Within = Callable[[], contextlib.AbstractContextManager[None]]

forked.imports(
    __name__, *(f"transformers.models.{family}.modeling_{family}" for family in ("electra", "bert", "albert"))
)


def words(data: Path, out: Path, *options: object) -> list[str]:
    """The words of a command that trains a small model."""
    return [str(word) for word in (data, "--out", out, *SMALL, *options)]


# Stopped in this process


@contextlib.contextmanager
def after_step(step: int, act: Callable[[], object]) -> Iterator[None]:
    """Something happens when so many steps are done."""
    update = Trainer.update

    def patched(self: Trainer, number: int, *rest: Any) -> float:
        norm = update(self, number, *rest)
        if number + 1 == step:
            act()
        return norm

    with mock.patch.object(Trainer, "update", patched):
        yield


def interrupt(number: int = signal.SIGINT) -> None:
    """What a user does, or a scheduler."""
    os.kill(os.getpid(), number)


# Processes of their own


class Child:
    """A process of its own that trains.

    Args:
        given: the words of its command.
        within: makes the context that it trains in; a function of a module, or a part of one.
        env: environment variables of its own.
        command: what it runs, if not the trainer.
    """

    def __init__(
        self,
        given: Sequence[str],
        told: Path,
        within: Within = contextlib.nullcontext,
        env: Mapping[str, str] | None = None,
        command: Callable[[list[str]], int] = main,
    ) -> None:
        self._told = told
        self.process: BaseProcess = forked.SERVER.Process(
            target=_train, args=(list(given), str(told), within, dict(env or {}), command), daemon=True
        )
        self.process.start()

    def end(self, seconds: float = 120) -> int:
        """Wait for its end; returns its exit code, which is below 0 if a signal has ended it."""
        self.process.join(seconds)
        code = self.process.exitcode
        if code is None:
            self.process.kill()
            raise AssertionError(f"it did not end in {seconds} s, and had said: {self.told()}")
        return code

    def told(self) -> str:
        """What it has written to its standard output and error."""
        return self._told.read_text()


def _train(
    given: list[str], told: str, within: Within, env: dict[str, str], command: Callable[[list[str]], int]
) -> None:
    os.environ.update({"HF_HUB_OFFLINE": "1", **env})
    with open(told, "ab") as file:
        sys.stdout.flush()
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    torch.set_num_threads(1)
    with within():
        code = command(given)
    sys.exit(code)


# What must be the same


def last_of(run: Path) -> Path:
    """A run's last checkpoint."""
    return sorted(run.glob("step-*"))[-1]


def leftovers(run: Path) -> list[Path]:
    """What is half-made in a run's folder."""
    return [path for path in run.iterdir() if path.name.startswith(".tmp-")]


def manifest(run: Path) -> dict[str, Any]:
    """A run's manifest without what it says of the run."""
    found: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    del found["run"]
    return found


def model_files(checkpoint: Path) -> dict[str, bytes]:
    """The files that Hugging Face's classes load, by their names."""
    return {
        str(path.relative_to(checkpoint)): path.read_bytes()
        for path in sorted((checkpoint / "hf").rglob("*"))
        if path.is_file()
    }


def assert_same_run(one: Path, other: Path) -> None:
    """Two finished runs have learned the same, to the bit, and say the same of it."""
    assert told(one) == told(other)
    first, second = last_of(one), last_of(other)
    assert first.name == second.name
    assert same_state(state(first), state(second))
    assert model_files(first) == model_files(second)
    assert manifest(one) == manifest(other)
    assert not leftovers(one)
    assert not leftovers(other)
