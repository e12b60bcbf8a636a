"""Runs of ``bioshards evaluate`` on the bundled sample, and the reproducible part of their outputs."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from bioshards.evaluate.__main__ import main
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.train.optim import Adam
from tests.support.paths import BENCHMARK_SAMPLE

QUICK_OPTIONS = ("--device", "cpu", "--epochs", 1, "--steps", 0, "--max-seq-length", 64, "--batch-size", 16)
"""A recipe that takes seconds."""


def evaluate_argv(
    command: str, model: object, out: object, *options: object, data: object = BENCHMARK_SAMPLE
) -> list[str]:
    """Build the arguments of a quick command; ``options`` follow the defaults and override them."""
    return [
        str(one) for one in (command, model, "--benchmarks", data, "--output", out, *QUICK_OPTIONS, *options)
    ]


def run_evaluate(model: object, out: object, *options: object, data: object = BENCHMARK_SAMPLE) -> int:
    """Run ``evaluate run`` in this process; return the exit code."""
    return main(evaluate_argv("run", model, out, *options, data=data))


def load_result(out: Path, task: str, seed: int = 0) -> dict[str, Any]:
    """Load a result; ``task`` includes the suite."""
    loaded: dict[str, Any] = json.loads((out / task / f"seed-{seed}.json").read_text())
    return loaded


def load_results(out: Path) -> dict[str, Any]:
    """Load all results and predictions by path, without durations."""
    outputs: dict[str, Any] = {}
    for path in sorted(out.rglob("seed-*")):
        text = path.read_text()
        content = json.loads(text) if path.suffix == ".json" else text
        if isinstance(content, dict):
            del content["seconds"], content["sha256"]
        outputs[str(path.relative_to(out))] = content
    return outputs


def list_temporary_files(out: Path) -> list[Path]:
    """List temporary files."""
    return [path for path in out.rglob("*") if path.name.startswith((".tmp", ".bioshards"))]


def copy_benchmarks(folder: Path, *names: str) -> Path:
    """Copy benchmarks of the sample, for a test to change."""
    for name in names:
        for layout in BENCHMARKS[name].layouts:
            for pattern in layout.patterns.values():
                for path in BENCHMARK_SAMPLE.glob(pattern):
                    target = folder / path.relative_to(BENCHMARK_SAMPLE)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, target)
    return folder


@contextlib.contextmanager
def call_after_update(number: int, action: Callable[[], object]) -> Iterator[None]:
    """Call a function after a number of optimizer updates; 0: after each."""
    step, updates = Adam.step, 0

    def patched(self: Any, rate: float) -> None:
        nonlocal updates
        step(self, rate)
        updates += 1
        if number in (0, updates):
            action()

    with mock.patch.object(Adam, "step", patched):
        yield
