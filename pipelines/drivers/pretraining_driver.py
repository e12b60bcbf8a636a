"""A run that makes pretraining examples: from parsed options to the exit code."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import math
from collections.abc import Sequence
from typing import Any, Final

from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.manifest import (
    ManifestError,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    VocabularyManifest,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.input_dirs import DocumentsInput, InputError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import shards_to_pretraining
from bioshards.pipelines.dry_run import document_plans
from bioshards.pipelines.execution.progress_monitor import PretrainingProgress
from bioshards.pipelines.execution.session import command_of, make_absolute
from bioshards.pipelines.job_types import PretrainingJob
from bioshards.pipelines.options.parser import Parser, UsageError
from bioshards.pipelines.shards_to_pretraining import NAME
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import overlap_filter, pretraining_dir, shard_groups, vocabulary_checks
from bioshards.vocab.pretraining.build import BuildConfig
from bioshards.vocab.pretraining.objectives import example_recipes
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.shard_writer import ShardWriter
from bioshards.vocab.pretraining.tfrecord.record_encoder import make_record_encoder

from . import documents_driver

_MAX_SHARD_MB: Final = 2000
"""The largest shard: Arrow's lists are addressed with 31 bits."""
_TOKENS_PER_BYTE: Final = 0.22
"""Of document shards; abstracts and articles have 0.19 to 0.21.  How many shards a global shuffle makes
depends on it, not what is in them."""


def run(parser: Parser, args: Any, beam_args: Sequence[str], argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    return documents_driver.run(
        parser,
        args,
        beam_args,
        lambda storage, input_folders: _make_job(args, argv, storage, input_folders),
        is_complete=_is_complete,
        build=shards_to_pretraining.build,
        make_progress=PretrainingProgress,
        format_summary=_format_summary,
        make_dry_run_plan=document_plans.plan_pretraining,
        kind=PretrainingManifest,
        extra_paths=[args.vocab] if args.vocab else [],
    )


def _is_complete(job: PretrainingJob) -> bool:
    is_complete = pretraining_dir.is_up_to_date(job.storage, job.output_dir, job.inputs)
    if is_complete:
        pretraining_dir.remove_spill_files(job.storage, job.output_dir)
    return is_complete


def recipe_from_args(args: Any) -> ExampleRecipe:
    """The recipe that the command line asks for.

    Raises:
        UsageError: options that contradict each other.
    """
    if args.preset:
        base = example_recipes.PRESETS[args.preset]
        if args.objective not in (None, base.objective):
            raise UsageError(
                f"--preset {args.preset} has the objective {base.objective}, and --objective "
                f"{args.objective} is another one"
            )
    else:
        base = example_recipes.DEFAULTS[args.objective or "electra"]
    if args.max_predictions_per_seq and not args.tfrecord:
        raise UsageError(
            "--max-predictions-per-seq says nothing without --tfrecord: other rows are not masked"
        )
    names = (
        "max_seq_length",
        "short_seq_prob",
        "single_segment_prob",
        "dupe_factor",
        "max_predictions_per_seq",
    )
    option_values = {name: getattr(args, name) for name in names}
    overrides = {name: value for name, value in option_values.items() if value is not None}
    try:
        return dataclasses.replace(
            base, **overrides, keep_overflow=args.keep_overflow, as_published=args.as_published
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _make_job(
    args: Any, argv: Sequence[str], storage: LocalStorage, input_folders: Sequence[str]
) -> PretrainingJob:
    """The job that the command line asks for, its inputs looked at.

    Raises:
        UsageError: options that contradict each other.
        InputError: an input or the vocabulary cannot be used.
    """
    if not args.vocab:
        raise UsageError("--vocab DIR is missing: the --out of a python -m bioshards.vocab build")
    example_recipe = recipe_from_args(args)
    if args.max_shard_mb > _MAX_SHARD_MB:
        raise UsageError(
            f"--max-shard-mb {args.max_shard_mb} is above {_MAX_SHARD_MB}, what a worker can sort"
        )
    if args.validation_fraction == 1:
        raise UsageError(
            "--validation-fraction 1 holds out every document, and there would be nothing to train on"
        )
    output = make_absolute(args.output)
    input_dirs.check_disjoint(input_folders, output)
    document_inputs = input_dirs.load_document_inputs(storage, input_folders)
    encoder, vocabulary_sha256 = _load_vocabulary(storage, args.vocab)
    vocabulary_checks.check_vocabulary(storage, document_inputs, encoder, args.vocab)
    overlap_lists = overlap_filter.load_overlap_lists(storage, document_inputs)
    build_config = BuildConfig(
        recipe=example_recipe,
        encoder=encoder,
        vocabulary_sha256=vocabulary_sha256,
        seed=args.seed,
        validation_fraction=args.validation_fraction,
        num_buckets=_count_shuffled_shards(args, example_recipe, document_inputs, encoder.size)
        if args.shuffle == "global"
        else {},
        max_shard_bytes=args.max_shard_mb * 1_000_000,
        writer=_make_writer(args, encoder, example_recipe),
    )
    return PretrainingJob(
        storage=storage,
        output_dir=OutputDir(output),
        inputs=[
            PretrainingInput(
                pipeline=document_input.summary.pipeline,
                shards_sha256=document_input.summary.shards_sha256,
                shards=document_input.summary.shards,
                documents=document_input.summary.documents,
                overlap=tuple(sorted(overlap_lists.get(document_input.folder, {}).values())),
            )
            for document_input in document_inputs
        ],
        shard_groups=list(shard_groups.group_shards(document_inputs, args.seed, overlap_lists)),
        build_config=build_config,
        max_rejected=args.max_rejected,
        config={
            "pipeline": NAME,
            "format": FORMAT,
            **example_recipe.to_dict(),
            "seed": args.seed,
            "validation_fraction": args.validation_fraction,
            "shuffle": args.shuffle,
            "max_shard_mb": args.max_shard_mb,
            "tfrecord": args.tfrecord,
            "vocabulary": {"sha256": vocabulary_sha256, "size": encoder.size},
            "library_versions": {"tokenizers": importlib.metadata.version("tokenizers")},
        },
        run_info=PretrainingRun(
            command=command_of(NAME, argv),
            inputs=tuple(document_input.folder for document_input in document_inputs),
            vocabulary=make_absolute(args.vocab),
        ),
    )


def _load_vocabulary(storage: LocalStorage, folder: str) -> tuple[Encoder, str]:
    """The encoder of a folder, and the SHA-256 of what it is made of.

    Raises:
        InputError: there is none, or it is not as its manifest lists it.
    """
    try:
        encoder = Encoder(folder, special_as_text=True, storage=storage)
    except TransientStorageError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"--vocab: {error}".rstrip(".")) from error
    with storage.open(f"{folder}/tokenizer.json") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    if storage.exists(f"{folder}/manifest.json"):
        try:
            manifest = read_manifest(storage, folder)
        except ManifestError as error:
            raise InputError(f"--vocab: {str(error).rstrip('.')}. Build the vocabulary again") from error
        if not isinstance(manifest, VocabularyManifest):
            raise InputError(
                f"--vocab {folder}: it is no vocabulary, it was made by {manifest.pipeline}. Give the --out "
                "of a python -m bioshards.vocab build"
            )
        listed_digests = {output.file: output.sha256 for output in manifest.outputs}
        if listed_digests.get("tokenizer.json", digest) != digest:
            raise InputError(
                f"--vocab {folder}: tokenizer.json is not the one that its manifest.json lists; one of "
                "the two has been changed. Build the vocabulary again"
            )
    return encoder, digest


def _make_writer(args: Any, encoder: Encoder, example_recipe: ExampleRecipe) -> ShardWriter:
    try:
        return ShardWriter(make_record_encoder(encoder, example_recipe) if args.tfrecord else None)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _count_shuffled_shards(
    args: Any, example_recipe: ExampleRecipe, document_inputs: Sequence[DocumentsInput], vocabulary_size: int
) -> dict[str, int]:
    """How many shards a global shuffle makes of each split, by the size of the inputs."""
    size = sum(shard.bytes for document_input in document_inputs for shard in document_input.shards)
    bytes_per_token = 2 if vocabulary_size <= 1 << 16 else 4
    train = size * _TOKENS_PER_BYTE * bytes_per_token * example_recipe.dupe_factor / (args.max_shard_mb * 1e6)
    validation = train / example_recipe.dupe_factor * args.validation_fraction
    return {"train": max(1, math.ceil(train)), "validation": max(1, math.ceil(validation))}


def _format_summary(job: PretrainingJob, manifest: PretrainingManifest) -> list[str]:
    length, counts = job.build_config.recipe.max_seq_length, manifest.counts
    lines = [f"{counts.documents:,} documents"]
    for split, split_counts in (("train", counts.train), ("validation", counts.validation)):
        if not split_counts.rows:
            continue
        fill = split_counts.tokens / (split_counts.rows * length)
        lost_text = "".join(
            f", {tokens:,} lost ({reason})" for reason, tokens in split_counts.lost_tokens.items()
        )
        lines.append(
            f"  {split + ':':11} {split_counts.documents:,} documents, {split_counts.rows:,} rows, "
            f"{split_counts.tokens:,} tokens "
            f"({fill:.0%} of {length} a row){lost_text}"
        )
    dropped = {**counts.dropped, **counts.rejected}
    lines += [f"  {reason + ':':11} {count:,} documents" for reason, count in dropped.items() if count]
    return [*lines, f"{'examples:':13} {job.output_dir.path}"]
