"""Hyperparameter search by the score on dev (``evaluate search``); test is never read.

Each finished trial is a file, so rerunning the command resumes the search.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, BenchmarkNotFoundError
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, override_recipe
from bioshards.evaluate.tasks.task_registry import PlannedTask

from .evaluate_job import EvaluateJob, lock_output
from .fine_tune_run import (
    FineTuneRun,
    build_identity,
    compute_example_stats,
    fine_tune,
    get_library_versions,
    prefix_progress,
)
from .fine_tuner import NaNLossError
from .results import ResultError
from .task_data import TaskData, load_task_data

SearchMethod = Literal["grid", "random", "optuna"]
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
        seed: seed of the draws and of every model.
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
        InvalidValueError: optuna is requested and not installed.
    """
    lines, failures = [], []
    if config.method == "optuna":
        _import_optuna()
    with lock_output(job.output):
        for job_task in job.tasks:
            planned_task = replace(job_task, recipe=replace(job_task.recipe, train_on="train"))
            try:
                data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, ("train", "dev"))
                best = _search_task(job, planned_task, data, config)
                lines.append(
                    f"{planned_task.name}: {_format_trial(best)}\n  "
                    f"{_write_best_params(job.output, planned_task, best)}"
                )
            except (BenchmarkNotFoundError, BenchmarkFileError, ValueError) as error:
                failures.append(f"{planned_task.name} failed: {error}")
                job.log(failures[-1])
    return lines, failures


def _search_task(
    job: EvaluateJob, planned_task: PlannedTask, data: TaskData, config: SearchConfig
) -> TrialResult:
    """Run the trials of a task and return the best; of equal ones the first."""
    folder = f"{job.output}/{planned_task.suite}/{planned_task.task.name}"
    best: TrialResult | None = None
    best_score = -math.inf
    dev_scores: list[float | None] = []
    proposals = itertools.islice(_propose_params(config, dev_scores), config.max_trials)
    for trial_number, params in enumerate(proposals, 1):
        recipe = planned_task.task.drop_unused_settings(override_recipe(planned_task.recipe, params))
        prefix = f"{planned_task.name}, trial {trial_number}: "
        fine_tune_run = FineTuneRun(
            checkpoint=job.checkpoint,
            data=replace(data, planned_task=replace(planned_task, recipe=recipe)),
            seed=config.seed,
            device=job.device,
            legacy_modes=planned_task.task.applicable_legacy_modes(job.legacy_modes),
            progress=prefix_progress(job.progress, prefix),
        )
        trial = _run_trial(folder, fine_tune_run, params)
        dev_scores.append(trial.dev_score)
        job.log(f"{prefix}{_format_trial(trial)}")
        if trial.dev_score is not None and trial.dev_score > best_score:
            best, best_score = trial, trial.dev_score
    if best is None:
        raise InvalidValueError("no trial has a score: give lower learning rates")
    return best


def _run_trial(folder: str, fine_tune_run: FineTuneRun, params: Params) -> TrialResult:
    """Run a trial, or read its file if it is finished."""
    storage = LocalStorage()
    trial_identity = {**build_identity(fine_tune_run), "model": fine_tune_run.checkpoint.sha256}
    trial_hash = hashlib.sha256(json.dumps(trial_identity, sort_keys=True).encode()).hexdigest()[:12]
    path = f"{folder}/trial-{trial_hash}.json"
    if storage.exists(path):
        return _read_trial(storage, path)
    start_time = time.monotonic()
    metric = fine_tune_run.metric
    dev_score = None
    try:
        fine_tuned = fine_tune(fine_tune_run)
        scores = fine_tuned.dev_scores or metric.scores_from_stats(
            compute_example_stats(fine_tuned, fine_tune_run.data.records_by_split["dev"])
        )
        dev_score = scores[metric.main_score]
    except NaNLossError as error:
        fine_tune_run.progress(str(error))
    trial = TrialResult(params, metric.main_score, dev_score)
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


def _propose_params(config: SearchConfig, dev_scores: Sequence[float | None]) -> Iterator[Params]:
    """Yield the parameters of each trial; ``dev_scores`` holds the scores of all trials before."""
    if config.method == "optuna":
        yield from _propose_by_optuna(config, dev_scores)
        return
    names = list(config.grid)
    combinations = [
        dict(zip(names, values, strict=True)) for values in itertools.product(*config.grid.values())
    ]
    if config.method == "random":
        random.Random(config.seed).shuffle(combinations)
    yield from combinations


def _propose_by_optuna(config: SearchConfig, dev_scores: Sequence[float | None]) -> Iterator[Params]:
    """Yield proposals of optuna's TPE sampler (Bio-ELECTRA used hyperopt's).

    Proposals are a function of seed and scores, so a resumed search finds its finished trials.
    """
    optuna = _import_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=config.seed))
    distributions = {
        name: optuna.distributions.CategoricalDistribution(list(values))
        for name, values in config.grid.items()
    }
    while True:
        trial = study.ask(distributions)
        yield dict(trial.params)
        study.tell(trial, -1.0 if dev_scores[-1] is None else dev_scores[-1])


def _import_optuna() -> Any:
    """Import optuna, an optional dependency.

    Raises:
        InvalidValueError: optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise InvalidValueError("--method optuna needs a library: pip install 'bioshards[search]'") from error
    return optuna


def _format_trial(trial: TrialResult) -> str:
    score = "no score" if trial.dev_score is None else f"dev {trial.main_score} {100 * trial.dev_score:.2f}"
    return f"{score} with " + ", ".join(f"{name} {value}" for name, value in trial.params.items())


def _write_best_params(output: str, planned_task: PlannedTask, best: TrialResult) -> str:
    path = f"{output}/{planned_task.suite}/{planned_task.task.name}/best.toml"
    lines = [f"# {planned_task.name}: {_format_trial(best)}"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in best.params.items()]
    with LocalStorage().write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path
