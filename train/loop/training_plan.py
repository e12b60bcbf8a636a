"""Check a training job, and open its inputs, before a model is built."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Final

import torch

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.ui.options import option_from_field
from bioshards.train.config.model_families import FAMILIES, FamilyName, get_default_family
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.config.train_job import TrainJob
from bioshards.train.data.loader import BatchPartition, partition_batch
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import PretrainingDataset, TrainingDataError, manifest_of
from bioshards.train.loop import checkpoint, dashboards, run_dir, tokenizer_files
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.precision import Precision, check_precision, choose_precision
from bioshards.train.loop.run_dir import RunIdentity
from bioshards.train.loop.training_loop import Intervals
from bioshards.train.models.factory import InitialWeightsError

_DEFAULT_CHECKPOINTS: Final = 100
"""Default number of checkpoints of a run; they are at least 100 steps apart."""
_MIN_LOG_INTERVAL: Final = 10
"""Default steps between log lines of a short run; ten times as many in a long run."""
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
"""Recipe fields that a continued run must share with its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainPlan:
    """A checked job, with its inputs opened.

    Attributes:
        recipe: the job's recipe with its family and precision resolved.
        vocabulary: folder of the tokenizer.
        continue_checkpoint: checkpoint of the run to continue; None if this run has a checkpoint of its own.
        identity: what a rerun must have in common with the run (run_dir.py).
    """

    recipe: TrainRecipe
    dataset: PretrainingDataset
    piece_table: PieceTable
    vocabulary: str
    partition: BatchPartition
    continue_checkpoint: str | None
    intervals: Intervals
    identity: RunIdentity


def plan_training(job: TrainJob, processes: ProcessGroup) -> TrainPlan:
    """Check a job and open its inputs.

    Raises:
        TrainingDataError: the pretraining set is unfinished, damaged, or built for another objective.
        VocabularyError: the vocabulary is missing or another one.
        InitialWeightsError: the run cannot be continued with this model.
        InvalidValueError: an option has an invalid value, or needs a package that is not installed.
    """
    for name, value in (
        ("keep-checkpoints", job.keep_checkpoints),
        ("max-validation-rows", job.max_validation_rows),
    ):
        if value < 1:
            raise InvalidValueError(f"--{name} {value} is below 1")
    if processes.is_main:
        dashboards.check_installed(job.dashboards)
    dataset = PretrainingDataset(job.data)
    vocabulary = job.vocab or manifest_of(job.data).run.vocabulary
    piece_table = PieceTable.load(vocabulary, dataset.vocabulary_size, dataset.vocabulary_sha256)
    tokenizer_files.read_config(vocabulary)
    recipe = replace(_resolve_recipe(job, dataset), precision=_resolve_precision(job, processes.device))
    is_resumed = checkpoint.find_latest(job.output) is not None
    origin = job.continue_from or job.init_checkpoint
    return TrainPlan(
        recipe=recipe,
        dataset=dataset,
        piece_table=piece_table,
        vocabulary=vocabulary,
        partition=partition_batch(
            recipe.batch_size,
            processes.world_size,
            dataset.max_seq_length,
            processes.device.type,
            job.micro_batch_size,
        ),
        continue_checkpoint=(
            _find_continue_checkpoint(job.continue_from, recipe, dataset)
            if job.continue_from and not is_resumed
            else None
        ),
        intervals=_resolve_intervals(job, recipe.steps),
        identity=RunIdentity(
            recipe=recipe.to_dict(),
            data_fingerprint=dataset.fingerprint,
            vocabulary_sha256=dataset.vocabulary_sha256,
            origin=os.path.realpath(origin) if origin else None,
        ),
    )


def _resolve_recipe(job: TrainJob, dataset: PretrainingDataset) -> TrainRecipe:
    """Return the recipe with its start and family set, checked against the pretraining set."""
    recipe = _resolve_start(job)
    family: FamilyName = get_default_family(dataset.objective) if recipe.family == "auto" else recipe.family
    if dataset.objective not in FAMILIES[family].data_objectives:
        raise TrainingDataError(
            f"{job.data} was built with --objective {dataset.objective}, whose labels {family} cannot use. "
            f"Build a set with --objective {family}, or give --family {dataset.objective}"
        )
    if dataset.max_seq_length > recipe.max_positions:
        raise TrainingDataError(
            f"{job.data} has rows of up to {dataset.max_seq_length:,} tokens, more than --max-positions "
            f"{recipe.max_positions:,}. Raise it, or build a set with a lower --max-seq-length"
        )
    return replace(recipe, family=family)


def _resolve_precision(job: TrainJob, device: torch.device) -> Precision:
    """Return the precision: with ``auto``, that of the run to resume, or the fastest of the device."""
    requested, source = job.recipe.precision, "--precision"
    if requested == "auto":
        run_info = run_dir.read_run_info(job.output)
        if run_info is None:
            return choose_precision(device)
        requested, source = run_info["identity"]["recipe"]["precision"], f"{job.output} was started in"
    check_precision(requested, device, source)
    return requested


def _resolve_start(job: TrainJob) -> TrainRecipe:
    """Return the recipe with ``start_from`` set by --init-checkpoint and --continue-from."""
    if job.init_checkpoint and job.continue_from:
        raise InvalidValueError("--init-checkpoint and --continue-from exclude each other")
    if job.init_checkpoint:
        return replace(job.recipe, start_from="checkpoint")
    if job.continue_from:
        if os.path.realpath(job.continue_from) == os.path.realpath(job.output):
            raise InitialWeightsError(
                "--continue-from and --output are the same folder; rerun the command without --continue-from "
                "to resume it"
            )
        return replace(job.recipe, start_from="run")
    if job.recipe.start_from != "random":
        required_option = (
            "--init-checkpoint FOLDER, a Hugging Face checkpoint"
            if job.recipe.start_from == "checkpoint"
            else "--continue-from RUN"
        )
        raise InvalidValueError(
            f"this recipe starts from a {job.recipe.start_from}: give {required_option}, or --start-from "
            "random for random weights"
        )
    return job.recipe


def _find_continue_checkpoint(source_run: str, recipe: TrainRecipe, dataset: PretrainingDataset) -> str:
    """Return the latest checkpoint of the run to continue.

    Raises:
        InitialWeightsError: it has none, or its model, optimizer or vocabulary differs.
    """
    source_info, source_checkpoint = run_dir.read_run_info(source_run), checkpoint.find_latest(source_run)
    if source_info is None or source_checkpoint is None:
        raise InitialWeightsError(
            f"--continue-from {source_run} has no checkpoint: give the --output of a training run"
        )
    source_identity = source_info["identity"]
    source_recipe, own_recipe = source_identity["recipe"], recipe.to_dict()
    differences = [
        f"{option_from_field(name)} {source_recipe[name]}"
        for name in _FIXED_FIELDS
        if source_recipe[name] != own_recipe[name]
    ]
    if source_identity["vocabulary_sha256"] != dataset.vocabulary_sha256:
        differences.append("another vocabulary")
    if differences:
        raise InitialWeightsError(
            f"--continue-from {source_run}: that run has another model: {', '.join(differences)}"
        )
    return source_checkpoint


def _resolve_intervals(job: TrainJob, steps: int) -> Intervals:
    for name, value in (("log", job.log_every), ("save", job.save_every), ("validate", job.validate_every)):
        if value is not None and value < 1:
            raise InvalidValueError(f"--{name}-every {value} is below 1")
    default_interval = max(_DEFAULT_CHECKPOINTS, steps // _DEFAULT_CHECKPOINTS)
    default_log_interval = max(
        _MIN_LOG_INTERVAL, min(10 * _MIN_LOG_INTERVAL, steps // (2 * _DEFAULT_CHECKPOINTS))
    )
    return Intervals(
        log=job.log_every or default_log_interval,
        save=job.save_every or default_interval,
        validate=job.validate_every or default_interval,
    )
