"""Runs of ``bioshards.evaluate`` on the bundled sample, and what must be the same of two of them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from bioshards.evaluate import finetune
from bioshards.evaluate.__main__ import main
from bioshards.evaluate.sets import BENCHMARKS
from tests.evaluation_sample import SAMPLE

QUICK = ("--device", "cpu", "--epochs", 1, "--steps", 0, "--length", 64, "--batch", 16)
"""A recipe for seconds."""


def words(command: str, model: object, out: object, *options: object, data: object = SAMPLE) -> list[str]:
    """The words of a command that is quick; ``options`` come after what makes it so, and win."""
    return [str(one) for one in (command, model, "--data", data, "--out", out, *QUICK, *options)]


def run(model: object, out: object, *options: object, data: object = SAMPLE) -> int:
    """Score a model in this process; returns the exit code."""
    return main(words("run", model, out, *options, data=data))


def result(out: Path, task: str, seed: int = 0) -> dict[str, Any]:
    """A result; ``task`` with its suite."""
    found: dict[str, Any] = json.loads((out / task / f"seed-{seed}.json").read_text())
    return found


def results(out: Path) -> dict[str, Any]:
    """All results and predictions by their paths, without what depends on the machine's speed."""
    found: dict[str, Any] = {}
    for path in sorted(out.rglob("seed-*")):
        text = path.read_text()
        told = json.loads(text) if path.suffix == ".json" else text
        if isinstance(told, dict):
            del told["seconds"]
        found[str(path.relative_to(out))] = told
    return found


def leftovers(out: Path) -> list[Path]:
    """What is half-made."""
    return [path for path in out.rglob("*") if path.name.startswith((".tmp", ".bioshards"))]


def benchmarks(folder: Path, *names: str) -> Path:
    """Some of the sample's sets, to be damaged."""
    for name in names:
        for layout in BENCHMARKS[name].layouts:
            for pattern in layout.patterns.values():
                for path in SAMPLE.glob(pattern):
                    to = folder / path.relative_to(SAMPLE)
                    to.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, to)
    return folder


@contextlib.contextmanager
def after_update(number: int, act: Callable[[], object]) -> Iterator[None]:
    """Something happens when a process has made so many updates of weights."""
    step, done = finetune._ScheduledOptimizer.step, 0

    def patched(self: Any, loss: Any) -> None:
        nonlocal done
        step(self, loss)
        done += 1
        if done == number:
            act()

    with mock.patch.object(finetune._ScheduledOptimizer, "step", patched):
        yield


def stop(how: signal.Signals) -> None:
    """What a user does, or a scheduler."""
    os.kill(os.getpid(), how)
