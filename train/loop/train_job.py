"""What is asked for on the command line, and whether it can be done: everything that is known before a model
is built."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards.pretraining_schema import LABELLED_OBJECTIVES
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.loader import BatchPartition, partition_batch
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset, TrainingDataError, manifest_of
from bioshards.train.models.factory import InitialWeightsError

from . import checkpoint, run_dir, tokenizer_files
from .distributed import ProcessGroup
from .training_loop import Intervals

_DEFAULT_CHECKPOINTS: Final = 100
"""Checkpoints that a run writes if nothing is said, but none more often than every 100 steps."""
_MIN_LOG_INTERVAL: Final = 10
"""Steps between two lines in the log of a short run, if nothing is said; of a long one ten times as many."""
_FIXED_FIELDS: Final = (
    "family",
    "hidden_size",
    "num_layers",
    "num_heads",
    "intermediate_size",
    "embedding_size",
    "max_positions",
    "generator_hidden_fraction",
    "generator_layers_fraction",
    "optimizer",
)
"""The parts of a recipe in which a run that is continued must be the same."""


@dataclass(frozen=True, slots=True)
class TrainJob:
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
    output: str
    recipe: TrainRecipe
    preset: str
    vocabulary: str | None
    init_checkpoint: str | None
    continue_from: str | None
    device: str | None
    micro_batch_size: int | None
    log_every: int | None
    save_every: int | None
    validate_every: int | None
    keep_checkpoints: int
    max_validation_rows: int
    verify_checksums: bool
    command: Sequence[str]


@dataclass(frozen=True, slots=True)
class TrainPlan:
    """A job that can be done.

    Attributes:
        recipe: the job's, with the family that the data are for.
        vocabulary: the folder of the tokenizer.
        origin: the checkpoint of the run that is continued, where this one has none of its own yet.
        identity: what a run that is gone on with must have been begun with (run_dir.py).
    """

    recipe: TrainRecipe
    dataset: PretrainingDataset
    piece_table: PieceTable
    vocabulary: str
    partition: BatchPartition
    continue_checkpoint: str | None
    intervals: Intervals
    identity: dict[str, Any]


def plan_training(job: TrainJob, processes: ProcessGroup) -> TrainPlan:
    """Look at everything that is asked for.

    Raises:
        TrainingDataError, VocabularyError, InitialWeightsError, OutputMismatchError, ValueError: it cannot
            be done.
    """
    for name, value in (
        ("keep-checkpoints", job.keep_checkpoints),
        ("max-validation-rows", job.max_validation_rows),
    ):
        if value < 1:
            raise InvalidValueError(f"--{name} {value} is below 1")
    dataset = PretrainingDataset(job.data)
    vocabulary = _find_vocabulary(job)
    piece_table = PieceTable.load(vocabulary, dataset.vocabulary_size, dataset.vocabulary_sha256)
    tokenizer_files.read_config(vocabulary)
    recipe = _resolve_recipe(job, dataset)
    has_checkpoint = (
        checkpoint.find_latest(job.output) is not None
    )  # then nothing more is taken from another run
    continue_checkpoint = (
        _find_continue_checkpoint(job, recipe, dataset) if job.continue_from and not has_checkpoint else None
    )
    starts_from = job.continue_from or job.init_checkpoint
    return TrainPlan(
        recipe,
        dataset,
        piece_table,
        vocabulary,
        partition_batch(
            recipe.batch_size,
            processes.world_size,
            dataset.max_seq_length,
            processes.device.type,
            job.micro_batch_size,
        ),
        continue_checkpoint,
        _resolve_intervals(job, recipe.steps),
        run_dir.build_identity(
            recipe.to_dict(),
            dataset.fingerprint,
            dataset.vocabulary_sha256,
            os.path.realpath(starts_from) if starts_from else None,
        ),
    )


def _resolve_recipe(job: TrainJob, dataset: PretrainingDataset) -> TrainRecipe:
    recipe = _resolve_start(job)
    family = recipe.family
    if family == "auto":
        family = "bert" if dataset.objective == "plain" else dataset.objective  # type: ignore[assignment]
    if (
        family in LABELLED_OBJECTIVES
        and dataset.objective in LABELLED_OBJECTIVES
        and dataset.objective != family
    ):
        raise TrainingDataError(
            f"{job.data} was built for {dataset.objective}: what its labels say is not what {family} learns. "
            f"Build a set with --objective {family}, or give --family {dataset.objective}"
        )
    if dataset.max_seq_length > recipe.max_positions:
        raise TrainingDataError(
            f"{job.data} has rows of up to {dataset.max_seq_length:,} tokens, and the model --max-positions "
            f"{recipe.max_positions:,}: give more, or build a set with a lower --max-seq-length"
        )
    return replace(recipe, family=family)


def _find_vocabulary(job: TrainJob) -> str:
    """The folder of the tokenizer: the one that is given, or where it was when the set was made."""
    return job.vocabulary or manifest_of(job.data).run.vocabulary


def _resolve_start(job: TrainJob) -> TrainRecipe:
    """The recipe, with what the model begins from."""
    if job.init_checkpoint and job.continue_from:
        raise InvalidValueError(
            "--init-checkpoint and --continue-from are both given: a model begins from one of them"
        )
    if job.init_checkpoint:
        return replace(job.recipe, start_from="checkpoint")
    if job.continue_from:
        if os.path.realpath(job.continue_from) == os.path.realpath(job.output):
            raise InitialWeightsError(
                "--continue-from and --output are one folder: a run that has stopped goes on without --continue-from"
            )
        return replace(job.recipe, start_from="run")
    if job.recipe.start_from != "random":
        required_option = (
            "--init-checkpoint FOLDER, a Hugging Face checkpoint"
            if job.recipe.start_from == "checkpoint"
            else "--continue-from RUN"
        )
        raise InvalidValueError(
            f"this recipe begins from a {job.recipe.start_from}: give {required_option}, or --start-from "
            "random for random weights"
        )
    return job.recipe


def _find_continue_checkpoint(job: TrainJob, recipe: TrainRecipe, dataset: PretrainingDataset) -> str:
    """The checkpoint of the run that is to be continued.

    Raises:
        InitialWeightsError: it cannot be.
    """
    source_run = job.continue_from or ""
    source_info, source_checkpoint = run_dir.read_run_info(source_run), checkpoint.find_latest(source_run)
    if source_info is None or source_checkpoint is None:
        raise InitialWeightsError(
            f"--continue-from {source_run} is no run with a checkpoint in it: give the --output of a run"
        )
    source_identity = source_info["identity"]
    own_recipe = recipe.to_dict()
    differences = [
        f"--{name.replace('_', '-')} {source_identity['recipe'][name]}"
        for name in _FIXED_FIELDS
        if source_identity["recipe"][name] != own_recipe[name]
    ]
    if source_identity["vocabulary_sha256"] != dataset.vocabulary_sha256:
        differences.append("another vocabulary")
    if differences:
        raise InitialWeightsError(
            f"--continue-from {source_run} cannot be done with this model: that one has {', '.join(differences)}"
        )
    return source_checkpoint


def _resolve_intervals(job: TrainJob, steps: int) -> Intervals:
    for name, value in (("log", job.log_every), ("save", job.save_every), ("validate", job.validate_every)):
        if value is not None and value < 1:
            raise InvalidValueError(f"--{name}-every {value} is below 1")
    default_interval = max(_DEFAULT_CHECKPOINTS, steps // _DEFAULT_CHECKPOINTS)
    return Intervals(
        log=job.log_every
        or max(_MIN_LOG_INTERVAL, min(10 * _MIN_LOG_INTERVAL, steps // (2 * _DEFAULT_CHECKPOINTS))),
        save=job.save_every or default_interval,
        validate=job.validate_every or default_interval,
    )
