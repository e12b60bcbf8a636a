"""Small pretraining sets of synthetic prose, and runs of the trainer on them."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

from bioshards.train.__main__ import main
from bioshards.train.log import SPEED_FIELDS
from tests.support.vocab.synthetic_corpora import build_vocabulary, run_shards_to_pretraining, write_abstracts

SMALL_MODEL_OPTIONS = (
    *("--hidden-size", "32", "--intermediate-size", "64", "--embedding-size", "32", "--max-positions", "64"),
    *("--steps", "12", "--batch-size", "8", "--log-every", "4", "--save-every", "6"),
)
"""A model that takes a second for its steps, and checkpoints at 6 and 12 of them."""


def write_corpus_and_vocabulary(folder: Path) -> tuple[Path, Path]:
    """Write 120 synthetic abstracts, and build a vocabulary on them."""
    documents = write_abstracts(folder / "abstracts", a=range(1, 61), b=range(61, 121))
    return documents, build_vocabulary(folder / "vocabulary", documents)


def build_pretraining_set(folder: Path, objective: str, documents: Path, vocabulary: Path) -> Path:
    """Build a set of rows of 64 tokens, with a tenth of the documents for validation."""
    options = ("--objective", objective, "--max-seq-length", "64", "--validation-fraction", "0.1")
    code = run_shards_to_pretraining(
        "--input", documents, "--vocab", vocabulary, "--output", folder, *options
    )
    assert code == 0
    return folder


def run_trainer(data: Path, out: Path, *options: object) -> int:
    """Train a small model in this process; return the exit code."""
    return main([str(data), "--output", str(out), *SMALL_MODEL_OPTIONS, *map(str, options)])


def trainer_argv(data: Path, out: Path, *options: object) -> list[str]:
    """Build the command line of a trainer process."""
    argv = [sys.executable, "-m", "bioshards.train", data, "--output", out, *SMALL_MODEL_OPTIONS, *options]
    return [str(word) for word in argv]


def load_log(run_folder: Path) -> list[dict[str, Any]]:
    """Load the lines of a run's log."""
    return [json.loads(line) for line in (run_folder / "log.jsonl").read_text().splitlines()]


def load_reproducible_log(run_folder: Path) -> list[dict[str, Any]]:
    """Load the lines of a run's log without durations and rates."""
    return [
        {name: value for name, value in line.items() if name not in SPEED_FIELDS}
        for line in load_log(run_folder)
    ]


def load_state(checkpoint: Path) -> dict[str, Any]:
    """Load the training state of a checkpoint."""
    loaded: dict[str, Any] = torch.load(checkpoint / "state.pt", weights_only=True)
    return loaded


def is_same_state(left: Any, right: Any) -> bool:
    """Return True if two states are bitwise equal."""
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(is_same_state(left[name], right[name]) for name in left)
    return bool(left == right)


@contextlib.contextmanager
def use_torch_threads(number: int) -> Any:
    """Set the number of PyTorch's threads inside a ``with`` block."""
    previous = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(previous)
