"""Hyperparameter search by optuna, by the score on dev (``evaluate search``); test is never read.

Each finished trial is a file, so rerunning the command resumes the search.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import msgspec

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, BenchmarkNotFoundError
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, SearchMethod, override_recipe
from bioshards.evaluate.runs.fine_tuner import NaNLossError
from bioshards.evaluate.runs.results import ResultError
from bioshards.evaluate.runs.run import EvaluateJob, build_identity, fine_tune, lock_output, prepare_inputs
from bioshards.evaluate.runs.task_data import TaskData, load_task_data
from bioshards.evaluate.tasks.task_registry import PlannedTask
from bioshards.train.checkpoint import get_library_versions

ParamValue = int | float | str | bool
Params = dict[str, ParamValue]
"""Values of recipe fields by name."""
Grid = Mapping[str, Sequence[ParamValue]]
GRIDS: Final[Mapping[str, Grid]] = {
    # PubMedBERT (arXiv:2007.15779, section 4.2); of epochs it says 2 to 60.
    "pubmedbert": {
        "learning_rate": (1e-5, 3e-5, 5e-5),
        "batch_size": (16, 32),
        "epochs": (2, 5, 10, 20, 40, 60),
    },
    # SciCrunch/bio_electra, run_finetuning_opt.py: 25 trials by hyperopt's TPE.
    "bio-electra": {
        "learning_rate": (1e-5, 5e-5, 1e-4, 5e-4),
        "batch_size": (12, 24, 32, 64),
        "epochs": (3, 5, 10, 15, 20),
    },
}


def load_grid(name: str) -> Grid:
    """Return a paper's grid by name, or the grid of a TOML file with lines ``learning_rate = [1e-5, 5e-5]``.

    Raises:
        InvalidValueError: the name or file is unknown, or a value is invalid.
    """
    if name in GRIDS:
        return GRIDS[name]
    try:
        with open(name, "rb") as file:
            grid_values = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"--grid {name} is neither of {', '.join(GRIDS)} nor a file that can be read ({error}): "
            "write lines such as learning_rate = [1e-5, 5e-5]"
        ) from error
    if not grid_values:
        raise InvalidValueError(f"{name} has no lines such as learning_rate = [1e-5, 5e-5]")
    for field, values in grid_values.items():
        if not isinstance(values, list) or not values:
            raise InvalidValueError(f"{name}: {field} is no list of values, such as [1e-5, 5e-5]")
        for value in values:
            try:
                override_recipe(FineTuneRecipe(), {field: value})
            except TypeError as error:
                raise InvalidValueError(f"{name}: unknown field {field}") from error
    return grid_values


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """Options of a search.

    Attributes:
        max_trials: maximum number of trials.
        seed: seed of the order and of every model.
    """

    grid: Grid
    method: SearchMethod
    max_trials: int
    seed: int


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Score of one trial.

    Attributes:
        params: recipe fields of the trial.
        main_score: name of the score.
        dev_score: its value on dev; None if the training diverged.
    """

    params: Params
    main_score: str
    dev_score: float | None


def search_hyperparameters(job: EvaluateJob, config: SearchConfig) -> tuple[list[str], list[str]]:
    """Search the best settings of each task and write them as ``best.toml``, for ``run --config``.

    Returns:
        A line for each finished task, and one for each failed task.

    Raises:
        InvalidValueError: optuna is not installed.
    """
    lines, failures = [], []
    _import_optuna()
    with lock_output(job.output):
        for job_task in job.tasks:
            planned_task = replace(job_task, recipe=replace(job_task.recipe, train_on="train"))
            try:
                data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, ("train", "dev"))
                best = _search_task(job, planned_task, data, config)
                lines.append(
                    f"{planned_task.name}: {_format_trial(best)}\n  "
                    f"{_write_best_params(job.output, data, best)}"
                )
            except (BenchmarkNotFoundError, BenchmarkFileError, ValueError) as error:
                failures.append(f"{planned_task.name} failed: {error}")
                job.log(failures[-1])
    return lines, failures


def _search_task(
    job: EvaluateJob, planned_task: PlannedTask, data: TaskData, config: SearchConfig
) -> TrialResult:
    """Run the trials of a task and return the best; of equal ones the first.

    Proposals are a function of seed and scores, so a resumed search finds its finished trials.
    """
    folder = f"{job.output}/{planned_task.suite}/{planned_task.task.name}"
    trials: list[TrialResult] = []

    def run_trial(trial: Any) -> float:
        params: Params = {name: trial.suggest_categorical(name, values) for name, values in grid.items()}
        recipe = planned_task.task.drop_unused_settings(override_recipe(planned_task.recipe, params))
        prefix = f"{planned_task.name}, trial {len(trials) + 1}: "
        trial_data = replace(data, planned_task=replace(planned_task, recipe=recipe))
        trial_job = replace(job, progress=job.progress.with_prefix(prefix))
        trials.append(_run_trial(folder, trial_job, trial_data, config.seed, params))
        job.log(f"{prefix}{_format_trial(trials[-1])}")
        return _score_or_lowest(trials[-1])

    optuna = _import_optuna()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    grid = {name: list(values) for name, values in config.grid.items()}
    samplers = optuna.samplers
    sampler = (
        samplers.GridSampler(grid, config.seed)
        if config.method == "grid"
        else samplers.TPESampler(seed=config.seed)
    )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    num_trials = config.max_trials
    if config.method == "grid":
        num_trials = min(num_trials, math.prod(map(len, grid.values())))
    with job.progress.bar(f"searching {planned_task.name}", num_trials, " trials") as bar:
        study.optimize(run_trial, config.max_trials, callbacks=[lambda *_: bar.advance()])
    best = max(trials, key=_score_or_lowest)
    if best.dev_score is None:
        raise InvalidValueError("no trial has a score: give lower learning rates")
    return best


def _score_or_lowest(trial: TrialResult) -> float:
    return -1.0 if trial.dev_score is None else trial.dev_score


def _run_trial(folder: str, job: EvaluateJob, data: TaskData, seed: int, params: Params) -> TrialResult:
    """Run a trial, or read its file if it is finished."""
    storage = LocalStorage()
    trial_identity = msgspec.to_builtins({**build_identity(data, seed), "model": job.checkpoint.sha256})
    trial_hash = hashlib.sha256(json.dumps(trial_identity, sort_keys=True).encode()).hexdigest()[:12]
    path = f"{folder}/trial-{trial_hash}.json"
    if storage.exists(path):
        return _read_trial(storage, path)
    start_time = time.monotonic()
    main_score = data.planned_task.metric.main_score
    dev_score = None
    try:
        fine_tuned = fine_tune(prepare_inputs(job, data), seed, job.progress)
        dev_score = (fine_tuned.dev_scores or fine_tuned.score_dev())[main_score]
    except NaNLossError as error:
        job.progress.write(str(error))
    trial = TrialResult(params, main_score, dev_score)
    run_facts = {
        "seconds": round(time.monotonic() - start_time, 1),
        "library_versions": get_library_versions(),
    }
    storage.write_json(path, asdict(trial) | trial_identity | run_facts)
    return trial


def _read_trial(storage: LocalStorage, path: str) -> TrialResult:
    """Read a finished trial.

    Raises:
        ResultError: the file is damaged.
    """
    try:
        content = storage.read_json(path)
        return TrialResult(content["params"], content["main_score"], content["dev_score"])
    except (ValueError, TypeError, KeyError) as error:
        raise ResultError(
            f"{path} is damaged ({error}): remove it, and rerun the command to repeat that trial"
        ) from error


def _import_optuna() -> Any:
    """Import optuna, of the extra ``search``.

    Raises:
        InvalidValueError: optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise InvalidValueError("search needs the library optuna: pip install 'bioshards[search]'") from error
    return optuna


def _format_trial(trial: TrialResult) -> str:
    score = "no score" if trial.dev_score is None else f"dev {trial.main_score} {100 * trial.dev_score:.2f}"
    return f"{score} with " + ", ".join(f"{name} {value}" for name, value in trial.params.items())


def _write_best_params(output: str, data: TaskData, best: TrialResult) -> str:
    """Write the settings, below the score and what limits it."""
    planned_task, file_status = data.planned_task, data.provenance.file_status
    path = f"{output}/{planned_task.suite}/{planned_task.task.name}/best.toml"
    lines = [f"# {planned_task.name}: {_format_trial(best)}"]
    if file_status == "invented":
        lines.append(
            "# Found on invented text, the sample bundled with bioshards: these settings mean nothing."
        )
    elif file_status != "verified":
        lines.append(f"# Files of the benchmark: {file_status} (bioshards evaluate verify says more).")
    if data.sample_sizes is not None:
        sizes = ", ".join(f"{split} {size:,}" for split, size in data.sample_sizes.items())
        lines.append(f"# Found on a sample of the data: {sizes} examples.")
    lines += [f"{name} = {json.dumps(value)}" for name, value in best.params.items()]
    with LocalStorage().write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path
