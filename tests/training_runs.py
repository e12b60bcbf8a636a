"""Small pretraining sets of invented prose, and runs of the trainer on them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from bioshards.train import flops
from bioshards.train.__main__ import main
from bioshards.train.log import SPEED_FIELDS
from tests.pretraining_sets import abstracts, built, run

flops.measure_peak.__defaults__ = (128,)
"""What a processor can do is measured on matrices of this size: half a second less in every run."""

SMALL = (
    *("--hidden", "32", "--ffn", "64", "--embedding", "32", "--positions", "64"),
    *("--steps", "12", "--batch", "8", "--log-every", "4", "--save-every", "6"),
)
"""A model that takes a second for its steps, and checkpoints at 6 and 12 of them."""


def corpus(folder: Path) -> tuple[Path, Path]:
    """120 abstracts of invented prose, and a vocabulary built on them."""
    documents = abstracts(folder / "abstracts", a=range(1, 61), b=range(61, 121))
    return documents, built(folder / "vocabulary", documents)


def pretraining_set(folder: Path, objective: str, documents: Path, vocabulary: Path) -> Path:
    """A set of rows of 64 tokens, a tenth of the documents held out."""
    how = ("--objective", objective, "--length", "64", "--validation", "0.1")
    code = run("--input", documents, "--vocab", vocabulary, "--output", folder, *how)
    assert code == 0
    return folder


def train(data: Path, out: Path, *options: object) -> int:
    """Train a small model in this process; returns the exit code."""
    return main([str(data), "--out", str(out), *SMALL, *map(str, options)])


def command(data: Path, out: Path, *options: object) -> list[str]:
    """The same as words for a process of its own."""
    words = [sys.executable, "-m", "bioshards.train", data, "--out", out, *SMALL, *options]
    return [str(word) for word in words]


def trained(words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """Run such a process to its end."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", **options.pop("env", {})}
    return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, **options)


def log(run_folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's log."""
    return [json.loads(line) for line in (run_folder / "log.jsonl").read_text().splitlines()]


def told(run_folder: Path) -> list[dict[str, Any]]:
    """The lines of a run's log without what depends on the machine's speed."""
    return [
        {name: value for name, value in line.items() if name not in SPEED_FIELDS} for line in log(run_folder)
    ]


def state(checkpoint: Path) -> dict[str, Any]:
    """What a run goes on from."""
    found: dict[str, Any] = torch.load(checkpoint / "state.pt", weights_only=True)
    return found


def same_state(one: Any, other: Any) -> bool:
    """Are two states the same to the bit?"""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_state(one[name], other[name]) for name in one)
    return bool(one == other)


@contextlib.contextmanager
def threads(number: int) -> Any:
    """PyTorch with so many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
