"""Score a model on tasks with several seeds (``evaluate run``).

A result file is written atomically and never recomputed, so rerunning the command resumes it. A failed or
missing task does not stop the others.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import torch

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.locks import lock_folder
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, BenchmarkNotFoundError, Split
from bioshards.evaluate.config import suites
from bioshards.evaluate.config.legacy_mode import LegacyMode
from bioshards.evaluate.modeling.pretrained import Checkpoint
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.fine_tune_run import (
    FineTuneRun,
    TaskInputs,
    build_identity,
    fine_tune,
    prepare_inputs,
    score_model,
)
from bioshards.evaluate.runs.fine_tuner import NaNLossError
from bioshards.evaluate.runs.task_data import load_task_data
from bioshards.evaluate.tasks.task_registry import PlannedTask


@dataclass(frozen=True, slots=True)
class EvaluateJob:
    """Job of ``run`` and ``search``.

    Attributes:
        benchmarks_dir: directory of the benchmarks.
        output: directory of the results.
        num_seeds: number of seeds of each task; None: as many as its paper averages over.
        progress: shows the runs.
        log: prints a line.
        max_examples: maximum examples of each split; 0: all.
    """

    checkpoint: Checkpoint
    benchmarks_dir: str
    output: str
    tasks: Sequence[PlannedTask]
    device: torch.device
    progress: Progress
    log: Callable[[str], None]
    first_seed: int = 0
    num_seeds: int | None = None
    max_examples: int = 0
    legacy_modes: Sequence[LegacyMode] = ()


@dataclass(slots=True)
class RunSummary:
    """Counts of written and skipped results, and the reasons of missing and failed tasks by name."""

    written: int = 0
    skipped: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)


def run_evaluation(job: EvaluateJob) -> RunSummary:
    """Score all tasks with all seeds.

    Raises:
        OutputMismatchError: a result with other settings exists, or another process uses the output
            directory.
        ModelError: the checkpoint cannot be loaded.
    """
    summary = RunSummary()
    num_runs = sum(_count_seeds(job, planned_task) for planned_task in job.tasks)
    with lock_output(job.output), job.progress.bar("evaluating", num_runs, " runs") as bar:
        for planned_task in job.tasks:
            try:
                _score_task(job, planned_task, summary, bar)
            except BenchmarkNotFoundError as error:
                summary.missing[planned_task.name] = str(error)
            except (BenchmarkFileError, ValueError) as error:
                summary.failed[planned_task.name] = str(error)
                job.log(f"{planned_task.name}: {error}")
    return summary


def _count_seeds(job: EvaluateJob, planned_task: PlannedTask) -> int:
    return job.num_seeds or suites.find_num_seeds(planned_task.suite, planned_task.task.name)


def _score_task(job: EvaluateJob, planned_task: PlannedTask, summary: RunSummary, bar: ProgressBar) -> None:
    """Score a task with all seeds."""
    storage = LocalStorage()
    needed_splits: tuple[Split, ...] = (
        ("train", "dev", "test") if planned_task.recipe.select_epoch == "best" else ("train", "test")
    )
    bar.advance(0, planned_task.name)
    data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, needed_splits)
    legacy_modes = planned_task.task.applicable_legacy_modes(job.legacy_modes)
    seeds = range(job.first_seed, job.first_seed + _count_seeds(job, planned_task))
    inputs: TaskInputs | None = None
    for seed in bar.each(seeds):
        path = results.result_path(job.output, planned_task.suite, planned_task.task.name, seed)
        prefix = f"{planned_task.name}, seed {seed}: "
        fine_tune_run = FineTuneRun(
            checkpoint=job.checkpoint,
            data=data,
            seed=seed,
            device=job.device,
            legacy_modes=legacy_modes,
            progress=job.progress.with_prefix(prefix),
        )
        if storage.exists(path):
            _check_same_settings(path, results.read_result(storage, path), fine_tune_run)
            summary.skipped += 1
            continue
        start_time = time.monotonic()
        try:
            inputs = inputs or prepare_inputs(fine_tune_run)
            result, predictions = score_model(fine_tune(fine_tune_run, inputs), start_time)
        except NaNLossError as error:
            summary.failed[prefix.removesuffix(": ")] = str(error)
            job.log(f"{prefix}{error}")
            continue
        with storage.write(path.removesuffix(".json") + ".predictions.jsonl") as file:
            file.write(predictions)
        results.write_result(storage, path, result)
        summary.written += 1
        job.log(prefix + format_result(result))


def format_result(result: results.Result) -> str:
    """Format a result as one line."""
    scores = result["scores"]
    main_score = result["main_score"]
    dev_text = (
        f", dev {100 * scores['dev'][main_score]:.2f} at step {result['selected_step']:,}"
        if "dev" in scores
        else ""
    )
    majority_text = f", majority class {100 * scores['majority'][main_score]:.2f}"
    invented_text = ", invented sample" if result["provenance"]["file_status"] == "invented" else ""
    return (
        f"{main_score} {100 * scores['test'][main_score]:.2f}{majority_text}{dev_text}{invented_text}, "
        f"{result['seconds']:,.0f} s"
    )


def _check_same_settings(path: str, existing_result: results.Result, fine_tune_run: FineTuneRun) -> None:
    """Check that an existing result is the one that this run would make.

    Raises:
        OutputMismatchError: its settings, model or files differ.
    """
    expected: dict[str, object] = {**build_identity(fine_tune_run), "model": fine_tune_run.checkpoint.sha256}
    existing: dict[str, object] = {**existing_result, "model": existing_result["model"]["sha256"]}
    for name, value in expected.items():
        if existing[name] != value:
            raise OutputMismatchError(
                f"{path} was made with other {_describe_difference(name, existing[name], value)}: give "
                "another --output, or remove that file"
            )


def _describe_difference(name: str, existing: object, expected: object) -> str:
    if name == "settings" and isinstance(existing, dict) and isinstance(expected, dict):
        changed_names = [
            setting for setting in {**expected, **existing} if existing.get(setting) != expected.get(setting)
        ]
        changes = (
            f"{setting} {existing.get(setting)}, now {expected.get(setting)}" for setting in changed_names
        )
        return f"settings ({', '.join(changes)})"
    descriptions = {
        "provenance": "files or counts",
        "model": "weights",
        "sample_sizes": "--max-examples",
        "legacy": "--legacy",
    }
    return descriptions.get(name, name)


@contextlib.contextmanager
def lock_output(output: str) -> Iterator[None]:
    """Hold an exclusive lock on the output directory, creating it if needed.

    Raises:
        OutputMismatchError: the path is a file, or another process holds the lock.
    """
    try:
        os.makedirs(output, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise OutputMismatchError(f"{error.filename} is a file, and --output must be a directory") from error
    with lock_folder(f"{output}/.lock", f"another process writes to {output}; wait for it or stop it"):
        yield
