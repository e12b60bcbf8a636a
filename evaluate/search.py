"""The best settings for a task: fine-tune with many, score on dev, and never look at test.

A finished trial is kept, so that a search that was stopped goes on by the same command.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
import time
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.files import LocalFiles

from .datasets import BenchmarkFileError, BenchmarkNotFoundError
from .finetune import NaNLossError
from .prepare import Prepared, prepare
from .recipes import Recipe, changed
from .results import ResultError
from .run import Job, locked
from .score import Trial, headed, identity, tune, units, versions
from .tasks import Planned

Method = Literal["grid", "random", "optuna"]
Grid = Mapping[str, Sequence[Any]]
Choice = dict[str, Any]
GRIDS: Final[Mapping[str, Grid]] = {
    # PubMedBERT (arXiv:2007.15779, section 4.2); of epochs it says 2 to 60.
    "pubmedbert": {
        "learning_rate": (1e-5, 3e-5, 5e-5),
        "batch": (16, 32),
        "epochs": (2, 5, 10, 20, 40, 60),
    },
    # SciCrunch/bio_electra, run_finetuning_opt.py: 25 trials by hyperopt's TPE.
    "bio-electra": {
        "learning_rate": (1e-5, 5e-5, 1e-4, 5e-4),
        "batch": (12, 24, 32, 64),
        "epochs": (3, 5, 10, 15, 20),
    },
}


def grid(name: str) -> Grid:
    """A paper's grid, or that of a TOML file of lines such as ``learning_rate = [1e-5, 5e-5]``.

    Raises:
        ValueError: there is no such grid or file, or a value that no recipe can have.
    """
    if name in GRIDS:
        return GRIDS[name]
    try:
        with open(name, "rb") as file:
            found = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidValueError(
            f"--grid {name} is neither of {', '.join(GRIDS)} nor a file that can be read ({error}): "
            "write lines such as learning_rate = [1e-5, 5e-5]"
        ) from error
    if not found:
        raise InvalidValueError(f"{name} has no lines such as learning_rate = [1e-5, 5e-5]")
    for field, values in found.items():
        if not isinstance(values, list) or not values:
            raise InvalidValueError(f"{name}: {field} is no list of values, such as [1e-5, 5e-5]")
        for value in values:
            try:
                replace(Recipe(), **{field: value})
            except TypeError as error:
                raise InvalidValueError(f"{name}: {field} is no part of a recipe") from error
    return found


@dataclass(frozen=True, slots=True)
class Search:
    """How to search.

    Attributes:
        trials: with other settings, at most.
        seed: of what is drawn, and of every model.
    """

    grid: Grid
    method: Method
    trials: int
    seed: int


def search(job: Job, how: Search) -> tuple[list[str], list[str]]:
    """The best settings for each of a job's tasks, written as ``best.toml``, for ``run --config``.

    Returns:
        What to tell of each task, and of those that have none, why.

    Raises:
        ValueError: optuna is asked for and not installed.
    """
    told, failed = [], []
    if how.method == "optuna":
        _optuna()
    with locked(job.out):
        for asked in job.tasks:
            planned = replace(asked, recipe=replace(asked.recipe, learn_from="train"))
            try:
                prepared = prepare(job.data, planned, job.sample, ("train", "dev"))
                best = _best(job, planned, prepared, how)
                told.append(f"{planned.name}: {_shown(best)}\n  {_publish(job.out, planned, best)}")
            except (BenchmarkNotFoundError, BenchmarkFileError, ValueError) as error:
                failed.append(f"{planned.name} failed: {error}")
                job.note(failed[-1])
    return told, failed


def _best(job: Job, planned: Planned, prepared: Prepared, how: Search) -> Choice:
    """The first of the best trials."""
    folder = f"{job.out}/{planned.suite}/{planned.task.name}"
    best: Choice | None = None
    scores: list[float | None] = []
    for number, choice in enumerate(itertools.islice(_choices(how, scores), how.trials), 1):
        recipe = planned.task.own(changed(planned.recipe, choice))
        trial = Trial(
            *(
                job.checkpoint,
                replace(prepared, planned=replace(planned, recipe=recipe)),
                how.seed,
                job.device,
            ),
            planned.task.ways(job.ways),
            headed(job.say, f"{planned.name}, trial {number}: "),
        )
        found = _trial(folder, trial, choice)
        scores.append(found["dev"])
        job.note(f"{planned.name}, trial {number}: {_shown(found)}")
        if found["dev"] is not None and (best is None or found["dev"] > best["dev"]):
            best = found
    if best is None:
        raise InvalidValueError("no trial came to a score; give lower learning rates")
    return best


def _trial(folder: str, trial: Trial, choice: Choice) -> Choice:
    """What a trial comes to; what is finished is read."""
    files = LocalFiles()
    about = {**identity(trial), "model": trial.checkpoint.sha256}
    name = hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]
    path = f"{folder}/trial-{name}.json"
    if files.exists(path):
        return _read(files, path)
    began = time.monotonic()
    dev = None
    try:
        tuned = tune(trial)
        metric = trial.metric
        figures = tuned.dev or metric.of(units(tuned, trial.prepared.parts["dev"]))
        dev = figures[metric.main]
    except NaNLossError as error:
        trial.say(str(error))
    found = {
        "choice": choice,
        "figure": trial.metric.main,
        "dev": dev,
        **about,
        "seconds": round(time.monotonic() - began, 1),
        "versions": versions(),
    }
    files.write_json(path, found)
    return found


def _read(files: LocalFiles, path: str) -> Choice:
    """A finished trial.

    Raises:
        ResultError: the file is damaged.
    """
    try:
        found: Choice = files.read_json(path)
        return {name: found[name] for name in ("choice", "figure", "dev")}
    except (ValueError, TypeError, KeyError) as error:
        raise ResultError(
            f"{path} is damaged ({error}): remove it, and the same command makes that trial again"
        ) from error


def _choices(how: Search, scores: Sequence[float | None]) -> Iterator[Choice]:
    """What to try, one after the other; before the next one is asked for, ``scores`` has those of all
    before."""
    if how.method == "optuna":
        yield from _by_optuna(how, scores)
        return
    names = list(how.grid)
    every = [dict(zip(names, values, strict=True)) for values in itertools.product(*how.grid.values())]
    if how.method == "random":
        random.Random(how.seed).shuffle(every)
    yield from every


def _by_optuna(how: Search, scores: Sequence[float | None]) -> Iterator[Choice]:
    """By TPE, as hyperopt's of Bio-ELECTRA: the same choices for the same scores, so that trials are
    found again."""
    optuna = _optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=how.seed))
    spread = {
        name: optuna.distributions.CategoricalDistribution(list(values)) for name, values in how.grid.items()
    }
    while True:
        asked = study.ask(spread)
        yield dict(asked.params)
        study.tell(asked, -1.0 if scores[-1] is None else scores[-1])


def _optuna() -> Any:
    """The library, which few need.

    Raises:
        ValueError: it is not installed.
    """
    try:
        import optuna
    except ImportError as error:
        raise InvalidValueError("--method optuna needs a library: pip install 'bioshards[search]'") from error
    return optuna


def _shown(found: Choice) -> str:
    score = "no score" if found["dev"] is None else f"dev {found['figure']} {100 * found['dev']:.2f}"
    return f"{score} with " + ", ".join(f"{name} {value}" for name, value in found["choice"].items())


def _publish(out: str, planned: Planned, best: Choice) -> str:
    path = f"{out}/{planned.suite}/{planned.task.name}/best.toml"
    lines = [f"# {planned.name}: {_shown(best)}"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in best["choice"].items()]
    with LocalFiles().write(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return path
