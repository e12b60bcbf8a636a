"""A model's scores on tasks: what ``python -m bioshards.evaluate run`` does, task by task, seed by seed.

A result is written when it is whole, and never made twice: the same command again goes on where the last
one stopped.  A task that fails, or whose files are not there, ends nothing but itself.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.files import LocalFiles

from . import results
from .datasets import BenchmarkFileError, BenchmarkNotFoundError, Part
from .encoder import Checkpoint
from .finetune import NaNLossError
from .prepare import prepare
from .score import Say, Trial, headed, identity, score, tune
from .tasks import Legacy, Planned


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be scored.

    Attributes:
        data: the folder of the benchmarks.
        out: the folder of the results.
        sample: examples of each part, at most; 0: all.
        say, note: take a line of progress, and a line that stays.
    """

    checkpoint: Checkpoint
    data: str
    out: str
    tasks: Sequence[Planned]
    seeds: Sequence[int]
    device: torch.device
    say: Say
    note: Say
    sample: int = 0
    ways: Sequence[Legacy] = ()


@dataclass(slots=True)
class Outcome:
    """What became of the tasks: results, new ones and those that were there, and why others have
    none."""

    made: int = 0
    there: int = 0
    absent: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run(job: Job) -> Outcome:
    """Score all tasks with all seeds.

    Raises:
        OutputMismatchError: the folder of results has some of other settings, or another process writes
            there.
        ModelError: the checkpoint cannot be loaded.
    """
    outcome = Outcome()
    with locked(job.out):
        for planned in job.tasks:
            job.say(f"{planned.name}: reading")
            try:
                _score(job, planned, outcome)
            except BenchmarkNotFoundError as error:
                outcome.absent[planned.name] = str(error)
            except (BenchmarkFileError, ValueError) as error:
                outcome.failed[planned.name] = str(error)
                job.note(f"{planned.name}: {error}")
    return outcome


def _score(job: Job, planned: Planned, outcome: Outcome) -> None:
    """All seeds of a task."""
    files = LocalFiles()
    needed: tuple[Part, ...] = (
        ("train", "dev", "test") if planned.recipe.keep == "best" else ("train", "test")
    )
    prepared = prepare(job.data, planned, job.sample, needed)
    ways = planned.task.ways(job.ways)
    for seed in job.seeds:
        path = results.path(job.out, planned.suite, planned.task.name, seed)
        head = f"{planned.name}, seed {seed}: "
        trial = Trial(*(job.checkpoint, prepared, seed, job.device, ways, headed(job.say, head)))
        if files.exists(path):
            _same(path, results.read(files, path), trial)
            outcome.there += 1
            continue
        began = time.monotonic()
        try:
            result, predictions = score(tune(trial), began)
        except NaNLossError as error:
            outcome.failed[head.removesuffix(": ")] = str(error)
            job.note(f"{head}{error}")
            continue
        with files.write(path.removesuffix(".json") + ".predictions.jsonl") as file:
            file.write(predictions)
        results.write(files, path, result)
        outcome.made += 1
        job.note(head + told(result))


def told(result: results.Result) -> str:
    """A result in a line."""
    figures = result["scores"]
    main = result["main"]
    dev = (
        f", dev {100 * figures['dev'][main]:.2f} in epoch {result['best_epoch']}" if "dev" in figures else ""
    )
    return f"{main} {100 * figures['test'][main]:.2f}{dev}, {result['seconds']:,.0f} s"


def _same(path: str, found: results.Result, trial: Trial) -> None:
    """Is a result that is there the one that would be made?

    Raises:
        OutputMismatchError: it is another.
    """
    wanted = {**identity(trial), "model": trial.checkpoint.sha256}
    there = {**found, "model": found["model"]["sha256"]}
    for name, value in wanted.items():
        if there[name] != value:
            raise OutputMismatchError(
                f"{path} was made with other {_difference(name, there[name], value)}: give another --out, or "
                "remove that file"
            )


def _difference(name: str, there: object, wanted: object) -> str:
    if name == "settings" and isinstance(there, dict) and isinstance(wanted, dict):
        other = [one for one in {**wanted, **there} if there.get(one) != wanted.get(one)]
        told = (f"{one} {there.get(one)}, now {wanted.get(one)}" for one in other)
        return f"settings ({', '.join(told)})"
    kinds = {"data": "files or counts", "model": "weights", "sampled": "--sample", "legacy": "--legacy"}
    return kinds.get(name, name)


@contextlib.contextmanager
def locked(out: str) -> Iterator[None]:
    """The folder of results, for this process alone.

    Raises:
        OutputMismatchError: it cannot be one, or another process writes there.
    """
    try:
        os.makedirs(out, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(
            f"{error.filename} is a file, and --out is to be a folder: give another"
        ) from error
    with open(f"{out}/.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputMismatchError(f"another process writes to {out}; wait for it or stop it") from error
        yield
