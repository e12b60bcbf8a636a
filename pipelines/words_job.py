"""A run that counts words: from parsed options to the exit code."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import ValidationWords, WordCounts, WordsManifest, WordsRun
from bioshards.corpus.workspace import FORMAT, Workspace
from bioshards.vocab import counting as steps
from bioshards.vocab import inputs
from bioshards.vocab.counts import Counting

from . import from_documents, plan_documents, shards_to_words
from .options import Parser, UsageError
from .progress import CountProgress
from .shards_to_words import NAME, Job
from .starting import absolute, command_of


def run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    return from_documents.run(
        parser,
        options,
        rest,
        lambda files, given: _job(options, arguments, files, given),
        finished=lambda job: steps.finished(job.files, job.work, job.inputs),
        build=shards_to_words.build,
        watcher=CountProgress,
        lines=_lines,
        planned=plan_documents.of_words,
        kind=WordsManifest,
    )


def _job(options: Any, arguments: Sequence[str], files: LocalFiles, given: Sequence[str]) -> Job:
    """The job that the command line asks for, its inputs looked at.

    Raises:
        UsageError: options that contradict each other.
        InputError: an input that cannot be used.
    """
    output = absolute(options.output)
    inputs.apart(given, output)
    try:
        counting = Counting(options.words, options.hold_out, options.seed)
    except ValueError as error:
        raise UsageError(f"--hold-out: {error}") from error
    found = inputs.find(files, given)
    return Job(
        files=files,
        work=Workspace(output),
        inputs=found,
        counting=counting,
        min_count=options.min_count,
        config={
            "pipeline": NAME,
            "format": FORMAT,
            **counting.as_dict(),
            "min_count": options.min_count,
            "library_versions": {
                library: importlib.metadata.version(library)
                for library in (["tokenizers"] if counting.kind == "bert" else [])
            },
        },
        run=WordsRun(
            command=command_of(NAME, arguments), inputs=tuple(documents.folder for documents in found)
        ),
    )


def _lines(job: Job, manifest: WordsManifest) -> list[str]:
    counts = manifest.counts
    lines = [_counted(counts)]
    if counts.pruned.distinct:
        pruned, least = counts.pruned, job.min_count
        lines.append(
            f"  {pruned.distinct:,} of the words are left out: below {least} times, {pruned.tokens:,} tokens"
        )
    if job.counting.hold_out:
        lines.append(f"  held out: {_counted(counts.validation)}")
    folder = job.work.output
    return lines + [f"{one.file + ':':13} {folder}/{one.file}" for one in manifest.outputs]


def _counted(counts: WordCounts | ValidationWords) -> str:
    return f"{counts.documents:,} documents, {counts.tokens:,} tokens of {counts.distinct:,} words"
