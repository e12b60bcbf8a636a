"""The driver of ``beam run shards_to_pretraining``."""

from __future__ import annotations

import hashlib
import importlib.metadata
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

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
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines import shards_to_pretraining
from bioshards.pipelines.context import PathOption
from bioshards.pipelines.drivers.documents_driver import DocumentsDriver
from bioshards.pipelines.dry_run import document_plans
from bioshards.pipelines.dry_run.cost import DryRunPlan
from bioshards.pipelines.execution.executor import ProgressMonitor
from bioshards.pipelines.execution.progress_monitor import PretrainingProgress
from bioshards.pipelines.execution.session import make_absolute
from bioshards.pipelines.job_types import PretrainingJob
from bioshards.pipelines.shards_to_pretraining import PretrainingOptions
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining import overlap_filter, pretraining_dir, shard_groups, vocabulary_checks
from bioshards.vocab.pretraining.build import BuildConfig
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe

if TYPE_CHECKING:
    import apache_beam as beam

_TOKENS_PER_BYTE: Final = 0.22
"""Tokens per byte of document shards; abstracts and articles have 0.19 to 0.21.  It sets the number of shards
of a global shuffle, which has no effect on their content."""


class PretrainingDriver(DocumentsDriver[PretrainingOptions, PretrainingJob, PretrainingManifest]):
    """Builds the pretraining examples of document shards."""

    pipeline = shards_to_pretraining.NAME
    manifest_type = PretrainingManifest

    def list_paths(self) -> list[PathOption]:
        """Return the output, the inputs and the vocabulary, which only the driver reads."""
        vocab = self.options.vocab
        return [
            *super().list_paths(),
            *([PathOption("--vocab", vocab, is_used_by_workers=False)] if vocab else []),
        ]

    def load_inputs(self, storage: Storage, input_folders: list[str]) -> PretrainingJob:
        """Return the job of these inputs."""
        options = self.options
        assert options.vocab, "checked"
        example_recipe = options.make_recipe()
        output = make_absolute(options.output)
        input_dirs.check_disjoint(input_folders, output)
        document_inputs = input_dirs.load_document_inputs(storage, input_folders)
        encoder, vocabulary_sha256 = _load_vocabulary(storage, options.vocab)
        vocabulary_checks.check_vocabulary(storage, document_inputs, encoder, options.vocab)
        overlap_lists = overlap_filter.load_overlap_lists(storage, document_inputs)
        build_config = BuildConfig(
            recipe=example_recipe,
            encoder=encoder,
            vocabulary_sha256=vocabulary_sha256,
            seed=options.seed,
            validation_fraction=options.validation_fraction,
            num_buckets=_count_shuffled_shards(options, example_recipe, document_inputs, encoder.size)
            if options.shuffle == "global"
            else {},
            max_shard_bytes=options.max_shard_mb * 1_000_000,
        )
        return PretrainingJob(
            storage=storage,
            output_dir=OutputDir(output),
            inputs=[
                PretrainingInput(
                    pipeline=document_input.pipeline,
                    shards_sha256=document_input.summary.shards_sha256,
                    shards=document_input.summary.shards,
                    documents=document_input.summary.documents,
                    overlap=tuple(sorted(overlap_lists.get(document_input.folder, {}).values())),
                )
                for document_input in document_inputs
            ],
            shard_groups=list(shard_groups.group_shards(document_inputs, options.seed, overlap_lists)),
            build_config=build_config,
            dedup=options.dedup,
            max_rejected=options.max_rejected,
            config={
                "pipeline": self.pipeline,
                "format": FORMAT,
                **example_recipe.to_dict(),
                "seed": options.seed,
                "validation_fraction": options.validation_fraction,
                "shuffle": options.shuffle,
                "dedup": options.dedup,
                "max_shard_mb": options.max_shard_mb,
                "vocabulary": {"sha256": vocabulary_sha256, "size": encoder.size},
                "library_versions": {"tokenizers": importlib.metadata.version("tokenizers")},
            },
            run_info=PretrainingRun(
                command=self.command,
                inputs=tuple(document_input.folder for document_input in document_inputs),
                vocabulary=make_absolute(options.vocab),
            ),
        )

    def build(self, root: beam.Pipeline, job: PretrainingJob) -> None:
        """Build the graph."""
        shards_to_pretraining.build(root, job)

    def plan(self, job: PretrainingJob) -> DryRunPlan:
        """Return the plan that a dry run prints."""
        return document_plans.plan_pretraining(job)

    def is_up_to_date(self, job: PretrainingJob) -> bool:
        """Return True if the output is complete and of the same inputs; remove its spill files then."""
        is_up_to_date = pretraining_dir.is_up_to_date(job.storage, job.output_dir, job.inputs)
        if is_up_to_date:
            pretraining_dir.remove_spill_files(job.storage, job.output_dir)
        return is_up_to_date

    def count_workers(self, job: PretrainingJob) -> int:
        """Return the number of local processes; shuffling and comparing have more items than shard groups."""
        has_wider_step = job.dedup == "near" or job.build_config.num_buckets
        return self.options.workers if has_wider_step else super().count_workers(job)

    def make_progress(self, job: PretrainingJob, progress: Progress) -> ProgressMonitor:
        """Return the monitor of built shard groups."""
        return PretrainingProgress(job, progress)

    def format_counts(self, job: PretrainingJob, manifest: PretrainingManifest) -> list[str]:
        """Return lines on the rows of each split and on dropped documents."""
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
                f"{split_counts.tokens:,} tokens ({fill:.0%} of {length} a row){lost_text}"
            )
        dropped = {**counts.dropped, **counts.rejected}
        lines += [f"  {reason + ':':11} {count:,} documents" for reason, count in dropped.items() if count]
        return [*lines, f"{'examples:':13} {job.output_dir.path}"]


def _load_vocabulary(storage: Storage, folder: str) -> tuple[Encoder, str]:
    """Load the encoder of a folder; return it and the SHA-256 of its tokenizer.json.

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
                f"--vocab {folder}: it is no vocabulary, it was made by {manifest.pipeline}. Give the "
                "--output of a python -m bioshards.vocab build"
            )
        listed_digests = {output.file: output.sha256 for output in manifest.outputs}
        if listed_digests.get("tokenizer.json", digest) != digest:
            raise InputError(
                f"--vocab {folder}: tokenizer.json is not the one that its manifest.json lists; one of "
                "the two has been changed. Build the vocabulary again"
            )
    return encoder, digest


def _count_shuffled_shards(
    options: PretrainingOptions,
    example_recipe: ExampleRecipe,
    document_inputs: Sequence[DocumentsInput],
    vocabulary_size: int,
) -> dict[str, int]:
    """How many shards a global shuffle makes of each split, by the size of the inputs."""
    size = sum(shard.bytes for document_input in document_inputs for shard in document_input.shards)
    bytes_per_token = 2 if vocabulary_size <= 1 << 16 else 4
    train = (
        size * _TOKENS_PER_BYTE * bytes_per_token * example_recipe.dupe_factor / (options.max_shard_mb * 1e6)
    )
    validation = train / example_recipe.dupe_factor * options.validation_fraction
    return {"train": max(1, math.ceil(train)), "validation": max(1, math.ceil(validation))}
