"""What is asked for on the command line, and whether it can be done: everything that is known before a model
is built."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.pretraining import LABELLED

from . import checkpoint, runs, tokenizer
from .loop import Every
from .models import InitialWeightsError
from .pieces import Pieces
from .processes import Processes
from .recipes import Recipe
from .shards import Shards, TrainingDataError, manifest_of
from .steps import Division, division

_SAVED: Final = 100
"""Checkpoints that a run writes if nothing is said, but none more often than every 100 steps."""
_LOGGED: Final = 10
"""Steps between two lines in the log of a short run, if nothing is said; of a long one ten times as many."""
_MODEL: Final = (
    *("family", "hidden", "layers", "heads", "ffn", "embedding", "positions"),
    *("generator", "generator_layers", "optimiser"),
)
"""The parts of a recipe in which a run that is continued must be the same."""


@dataclass(frozen=True, slots=True)
class Job:
    """What is asked for.

    Attributes:
        data, out: a finished pretraining set, and the run's folder.
        vocabulary: the folder of its vocabulary; None: where it was when the set was built.
        init: a Hugging Face checkpoint to begin from; continued: a run to go on from, on other data.
        micro: rows in a forward pass; None: as many as fit.
        log_every, save_every, validate_every: in steps; None: by the length of the run.
        keep: how many checkpoints stay.
        validation_rows: rows of the validation split that are looked at, at most.
        verify: read all shards and compare their SHA-256 before a run begins.
        command: the command line.
    """

    data: str
    out: str
    recipe: Recipe
    preset: str
    vocabulary: str | None
    init: str | None
    continued: str | None
    device: str | None
    micro: int | None
    log_every: int | None
    save_every: int | None
    validate_every: int | None
    keep: int
    validation_rows: int
    verify: bool
    command: Sequence[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """A job that can be done.

    Attributes:
        recipe: the job's, with the family that the data are for.
        vocabulary: the folder of the tokenizer.
        origin: the checkpoint of the run that is continued, where this one has none of its own yet.
        identity: what a run that is gone on with must have been begun with (runs.py).
    """

    recipe: Recipe
    shards: Shards
    pieces: Pieces
    vocabulary: str
    dealt: Division
    origin: str | None
    every: Every
    identity: dict[str, Any]


def plan(job: Job, us: Processes) -> Plan:
    """Look at everything that is asked for.

    Raises:
        TrainingDataError, VocabularyError, InitialWeightsError, OutputMismatchError, ValueError: it cannot
            be done.
    """
    for name, value in (("keep", job.keep), ("validation-rows", job.validation_rows)):
        if value < 1:
            raise InvalidValueError(f"--{name} {value} is below 1")
    shards = Shards(job.data)
    vocabulary = _vocabulary(job)
    pieces = Pieces.read(vocabulary, shards.vocabulary_size, shards.vocabulary_sha256)
    tokenizer.settings(vocabulary)
    recipe = _for_data(job, shards)
    began = checkpoint.last(job.out) is not None  # then nothing more is taken from another run
    origin = _origin(job, recipe, shards) if job.continued and not began else None
    begins = job.continued or job.init
    return Plan(
        recipe,
        shards,
        pieces,
        vocabulary,
        division(recipe.batch, us.world, shards.length, us.device.type, job.micro),
        origin,
        _every(job, recipe.steps),
        runs.identity(
            recipe.as_dict(),
            shards.fingerprint,
            shards.vocabulary_sha256,
            os.path.realpath(begins) if begins else None,
        ),
    )


def _for_data(job: Job, shards: Shards) -> Recipe:
    recipe = _beginning(job)
    family = recipe.family
    if family == "auto":
        family = "bert" if shards.objective == "plain" else shards.objective  # type: ignore[assignment]
    if family in LABELLED and shards.objective in LABELLED and shards.objective != family:
        raise TrainingDataError(
            f"{job.data} was built for {shards.objective}: what its labels say is not what {family} learns. "
            f"Build a set with --objective {family}, or give --family {shards.objective}"
        )
    if shards.length > recipe.positions:
        raise TrainingDataError(
            f"{job.data} has rows of up to {shards.length:,} tokens, and the model --positions "
            f"{recipe.positions:,}: give more, or build a set with a lower --length"
        )
    return replace(recipe, family=family)


def _vocabulary(job: Job) -> str:
    """The folder of the tokenizer: the one that is given, or where it was when the set was made."""
    return job.vocabulary or manifest_of(job.data).run.vocabulary


def _beginning(job: Job) -> Recipe:
    """The recipe, with what the model begins from."""
    if job.init and job.continued:
        raise InvalidValueError("--init and --continue are both given: a model begins from one of them")
    if job.init:
        return replace(job.recipe, begins="checkpoint")
    if job.continued:
        if os.path.realpath(job.continued) == os.path.realpath(job.out):
            raise InitialWeightsError(
                "--continue and --out are one folder: a run that has stopped goes on without --continue"
            )
        return replace(job.recipe, begins="run")
    if job.recipe.begins != "random":
        wanted = (
            "--init FOLDER, a Hugging Face checkpoint"
            if job.recipe.begins == "checkpoint"
            else "--continue RUN"
        )
        raise InvalidValueError(
            f"this recipe begins from a {job.recipe.begins}: give {wanted}, or --begins "
            "random for random weights"
        )
    return job.recipe


def _origin(job: Job, recipe: Recipe, shards: Shards) -> str:
    """The checkpoint of the run that is to be continued.

    Raises:
        InitialWeightsError: it cannot be.
    """
    run = job.continued or ""
    theirs, last = runs.about(run), checkpoint.last(run)
    if theirs is None or last is None:
        raise InitialWeightsError(
            f"--continue {run} is no run with a checkpoint in it: give the --out of a run"
        )
    there = theirs["identity"]
    ours = recipe.as_dict()
    other = [
        f"--{name.replace('_', '-')} {there['recipe'][name]}"
        for name in _MODEL
        if there["recipe"][name] != ours[name]
    ]
    if there["vocabulary"] != shards.vocabulary_sha256:
        other.append("another vocabulary")
    if other:
        raise InitialWeightsError(
            f"--continue {run} cannot be done with this model: that one has {', '.join(other)}"
        )
    return last


def _every(job: Job, steps: int) -> Every:
    for name, value in (("log", job.log_every), ("save", job.save_every), ("validate", job.validate_every)):
        if value is not None and value < 1:
            raise InvalidValueError(f"--{name}-every {value} is below 1")
    seldom = max(_SAVED, steps // _SAVED)
    return Every(
        log=job.log_every or max(_LOGGED, min(10 * _LOGGED, steps // (2 * _SAVED))),
        save=job.save_every or seldom,
        validate=job.validate_every or seldom,
    )
