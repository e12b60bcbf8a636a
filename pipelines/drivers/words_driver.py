"""A run that counts words: from parsed options to the exit code."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

from bioshards.corpus.manifest import ValidationWords, WordCounts, WordsManifest, WordsRun
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import shards_to_words
from bioshards.pipelines.dry_run import document_plans
from bioshards.pipelines.execution.progress_monitor import WordsProgress
from bioshards.pipelines.execution.session import command_of, make_absolute
from bioshards.pipelines.job_types import WordsJob
from bioshards.pipelines.options.parser import Parser, UsageError
from bioshards.pipelines.shards_to_words import NAME
from bioshards.vocab.counting import count_steps as steps
from bioshards.vocab.counting.word_counts import CountConfig

from . import documents_driver


def run(parser: Parser, args: Any, beam_args: Sequence[str], argv: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    return documents_driver.run(
        parser,
        args,
        beam_args,
        lambda storage, input_folders: _make_job(args, argv, storage, input_folders),
        is_complete=lambda job: steps.is_up_to_date(job.storage, job.output_dir, job.inputs),
        build=shards_to_words.build,
        make_progress=WordsProgress,
        format_summary=_format_summary,
        make_dry_run_plan=document_plans.plan_words,
        kind=WordsManifest,
    )


def _make_job(
    args: Any, argv: Sequence[str], storage: LocalStorage, input_folders: Sequence[str]
) -> WordsJob:
    """The job that the command line asks for, its inputs looked at.

    Raises:
        UsageError: options that contradict each other.
        InputError: an input that cannot be used.
    """
    output = make_absolute(args.output)
    input_dirs.check_disjoint(input_folders, output)
    try:
        count_config = CountConfig(args.pretokenizer, args.validation_fraction, args.seed)
    except ValueError as error:
        raise UsageError(f"--validation-fraction: {error}") from error
    document_inputs = input_dirs.load_document_inputs(storage, input_folders)
    return WordsJob(
        storage=storage,
        output_dir=OutputDir(output),
        inputs=document_inputs,
        count_config=count_config,
        min_count=args.min_count,
        config={
            "pipeline": NAME,
            "format": FORMAT,
            **count_config.to_dict(),
            "min_count": args.min_count,
            "library_versions": {
                library: importlib.metadata.version(library)
                for library in (["tokenizers"] if count_config.pretokenizer == "bert" else [])
            },
        },
        run_info=WordsRun(
            command=command_of(NAME, argv),
            inputs=tuple(document_input.folder for document_input in document_inputs),
        ),
    )


def _format_summary(job: WordsJob, manifest: WordsManifest) -> list[str]:
    counts = manifest.counts
    lines = [_format_counts(counts)]
    if counts.pruned.distinct_words:
        pruned, min_count = counts.pruned, job.min_count
        lines.append(
            f"  {pruned.distinct_words:,} of the words are left out: below {min_count} times, {pruned.tokens:,} "
            "tokens"
        )
    if job.count_config.validation_fraction:
        lines.append(f"  held out: {_format_counts(counts.validation)}")
    folder = job.output_dir.path
    return lines + [f"{output.file + ':':13} {folder}/{output.file}" for output in manifest.outputs]


def _format_counts(counts: WordCounts | ValidationWords) -> str:
    return f"{counts.documents:,} documents, {counts.tokens:,} tokens of {counts.distinct_words:,} words"
