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

from bioshards.corpus.errors import InvalidValueError, describe_install
from bioshards.corpus.storage.checksums import add_sha256, has_wrong_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, BenchmarkNotFoundError
from bioshards.evaluate.recipes import FineTuneRecipe, SearchMethod, override_recipe
from bioshards.evaluate.runs.fine_tuner import NaNLossError
from bioshards.evaluate.runs.results import ResultError
from bioshards.evaluate.runs.run import (
    EvaluateJob,
    TaskData,
    build_identity,
    fine_tune,
    load_task_data,
    lock_output,
    prepare_inputs,
    score_dev,
)
from bioshards.train.checkpoint import get_library_versions

ParamValue = int | float | str | bool
Params = dict[str, ParamValue]
"""Values of recipe fields by name."""
Grid = Mapping[str, Sequence[ParamValue]]
"""Values of recipe fields to try."""
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

    @property
    def objective(self) -> float:
        """The score, or one below all scores."""
        return -1.0 if self.dev_score is None else self.dev_score

    def __str__(self) -> str:
        score = "no score" if self.dev_score is None else f"dev {self.main_score} {100 * self.dev_score:.2f}"
        return f"{score} with " + ", ".join(f"{name} {value}" for name, value in self.params.items())


def search_hyperparameters(
    job: EvaluateJob, grid: Grid, method: SearchMethod, max_trials: int
) -> tuple[list[str], list[str]]:
    """Search the best settings of each task and write them as ``best.toml``, for ``run --config``.

    The first seed of the job is that of the order of trials, and of every model.

    Returns:
        A line for each finished task, and one for each failed task.

    Raises:
        InvalidValueError: optuna is not installed.
    """
    lines, failures = [], []
    _import_optuna()
    with lock_output(job.output) as storage:
        for job_task in job.tasks:
            planned_task = replace(job_task, recipe=replace(job_task.recipe, train_on="train"))
            try:
                data = load_task_data(job.benchmarks_dir, planned_task, job.max_examples, ("train", "dev"))
                best = _search_task(job, storage, data, grid, method, max_trials)
                path = _write_best_params(storage, job.output, data, best)
                lines.append(f"{planned_task.name}: {best}\n  {path}")
            except (BenchmarkNotFoundError, BenchmarkFileError, ValueError) as error:
                failures.append(f"{planned_task.name} failed: {error}")
                job.log(failures[-1])
    return lines, failures


def _import_optuna() -> Any:
    """Import optuna, of the extra ``search``.

    Raises:
        InvalidValueError: optuna is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise InvalidValueError(f"search needs the library optuna: {describe_install('search')}") from error
    return optuna


def _search_task(
    job: EvaluateJob,
    storage: LocalStorage,
    data: TaskData,
    grid: Grid,
    method: SearchMethod,
    max_trials: int,
) -> TrialResult:
    """Run the trials of a task and return the best; of equal ones the first.

    Proposals are a function of seed and scores, so a resumed search finds its finished trials.
    """
    planned_task = data.planned_task
    trials: list[TrialResult] = []

    def run_trial(trial: Any) -> float:
        params: Params = {name: trial.suggest_categorical(name, values) for name, values in choices.items()}
        recipe = planned_task.task.drop_unused_settings(override_recipe(planned_task.recipe, params))
        prefix = f"{planned_task.name}, trial {len(trials) + 1}: "
        trial_data = replace(data, planned_task=replace(planned_task, recipe=recipe))
        trial_job = replace(job, progress=job.progress.with_prefix(prefix))
        trials.append(_run_trial(trial_job, storage, trial_data, params))
        job.log(f"{prefix}{trials[-1]}")
        return trials[-1].objective

    optuna = _import_optuna()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    choices = {name: list(values) for name, values in grid.items()}
    num_trials = max_trials
    if method == "grid":
        sampler = optuna.samplers.GridSampler(choices, job.first_seed)
        num_trials = min(num_trials, math.prod(map(len, choices.values())))
    else:
        sampler = optuna.samplers.TPESampler(seed=job.first_seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with job.progress.bar(f"searching {planned_task.name}", num_trials, " trials") as bar:
        study.optimize(run_trial, max_trials, callbacks=[lambda *_: bar.advance()])
    best = max(trials, key=lambda trial: trial.objective)
    if best.dev_score is None:
        raise InvalidValueError("no trial has a score: give lower learning rates")
    return best


def _run_trial(job: EvaluateJob, storage: LocalStorage, data: TaskData, params: Params) -> TrialResult:
    """Run a trial, or read its file if it is finished."""
    seed = job.first_seed
    identity = msgspec.to_builtins(build_identity(job, data, seed))
    identity_hash = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:12]
    path = f"{job.output}/{data.planned_task.name}/trial-{identity_hash}.json"
    if storage.exists(path):
        return _read_trial(storage, path)
    start_time = time.monotonic()
    main_score, dev_score = data.planned_task.metric.main_score, None
    try:
        inputs = prepare_inputs(job, data)
        fine_tuner = fine_tune(inputs, seed, job.progress)
        dev_score = (fine_tuner.dev_scores or score_dev(inputs, fine_tuner))[main_score]
    except NaNLossError as error:
        job.progress.write(str(error))
    trial = TrialResult(params, main_score, dev_score)
    run_facts = {
        "seconds": round(time.monotonic() - start_time, 1),
        "library_versions": get_library_versions(),
    }
    storage.write_json(path, add_sha256(asdict(trial) | identity | run_facts))
    return trial


def _read_trial(storage: LocalStorage, path: str) -> TrialResult:
    """Read a finished trial.

    Raises:
        ResultError: the file is damaged.
    """
    try:
        content = storage.read_json(path)
        if has_wrong_sha256(content):
            raise InvalidValueError("its SHA-256 is not the one that it names")
        return TrialResult(content["params"], content["main_score"], content["dev_score"])
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ResultError(
            f"{path} is damaged ({error}): remove it, and rerun the command to repeat that trial"
        ) from error


def _write_best_params(storage: LocalStorage, output: str, data: TaskData, best: TrialResult) -> str:
    """Write the settings, below the score and what limits it; return the path."""
    name, file_status = data.planned_task.name, data.provenance.file_status
    lines = [f"# {name}: {best}"]
    if file_status == "invented":
        lines.append(
            "# Found on invented text, the sample bundled with bioshards: these settings mean nothing."
        )
    elif file_status != "verified":
        lines.append(f"# Files of the benchmark: {file_status} (bioshards evaluate verify says more).")
    if data.sample_sizes is not None:
        sizes = ", ".join(f"{split} {size:,}" for split, size in data.sample_sizes.items())
        lines.append(f"# Found on a sample of the data: {sizes} examples.")
    lines += [f"{field} = {json.dumps(value)}" for field, value in best.params.items()]
    path = f"{output}/{name}/best.toml"
    with storage.write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path
