"""A run that counts words: from parsed options to the exit code."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Sequence
from typing import Any

from bioshards.corpus import workspace
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.workspace import FORMAT, Workspace
from bioshards.vocab import counting as steps
from bioshards.vocab import inputs
from bioshards.vocab.counts import Counting
from bioshards.vocab.inputs import PIPELINES

from . import shards_to_words
from .executing import execute
from .exits import NOT_PUBLISHED, OK
from .options import Parser, UsageError
from .shards_to_words import NAME, Job
from .starting import absolute, for_workers_elsewhere, output_at_fault, this_run, where


def run(parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]) -> int:
    """Do what the command line asks for; returns the exit code."""
    given = [absolute(folder) for folder in options.input or []]
    for folder in given:
        for_workers_elsewhere(rest, {"--input": folder})
    for_workers_elsewhere(rest, {"--output": options.output} if options.output else {})
    runner_given, beams, files = where(parser, rest, options.workers, [*given, options.output or ""])
    if not given:
        raise UsageError(f"--input DIR is missing: a finished --output of {' or '.join(PIPELINES)}")
    if not options.output:
        raise UsageError("--output DIR is missing: the folder to write")
    job = _job(options, arguments, files, given)
    with output_at_fault(job.work.output):
        workspace.check(files, job.work, job.config)
        workspace.begin(files, job.work, job.config)
    with workspace.locked(job.work):
        if steps.finished(files, job.work, job.inputs):
            unchanged = f"its {len(job.inputs)} inputs are unchanged"
            print(f"{job.work.output} is finished and {unchanged}: nothing to do.")
            return OK
        workspace.clear(files, job.work)
        from .progress import CountProgress

        execute(
            lambda root: shards_to_words.build(root, job),
            beams,
            options.workers,
            runner_given,
            job.work.folder,
            lambda terminal: CountProgress(job, terminal),
        )
        return _report(job)


def _job(options: Any, arguments: Sequence[str], files: LocalFiles, given: Sequence[str]) -> Job:
    """The job that the command line asks for, its inputs looked at.

    Raises:
        UsageError: options that contradict each other.
        WrongInput: an input that cannot be used.
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
            "tools": {
                library: importlib.metadata.version(library)
                for library in (["tokenizers"] if counting.kind == "bert" else [])
            },
        },
        run={**this_run(NAME, arguments), "inputs": [documents.folder for documents in found]},
    )


def _report(job: Job) -> int:
    files, work = job.files, job.work
    if not files.exists(work.outcome):
        print(f"The job goes on without this command. It is finished when {work.manifest} is there.")
        return OK
    problem = files.read_json(work.outcome)["problem"]
    if problem:
        print(f"beam: {problem}", file=sys.stderr)
        return NOT_PUBLISHED
    manifest = files.read_json(work.manifest)
    counts = manifest["counts"]
    lines = [_counted(counts)]
    if counts["pruned"]["distinct"]:
        pruned, least = counts["pruned"], job.min_count
        lines.append(
            f"  {pruned['distinct']:,} of the words are left out: below {least} times, "
            f"{pruned['tokens']:,} tokens"
        )
    if job.counting.hold_out:
        lines.append(f"  held out: {_counted(counts['held_out'])}")
    lines += [f"{listed['file'] + ':':13} {work.output}/{listed['file']}" for listed in manifest["outputs"]]
    print("\n".join([*lines, f"{'report:':13} {work.manifest}"]))
    return OK


def _counted(counts: dict[str, Any]) -> str:
    return f"{counts['documents']:,} documents, {counts['tokens']:,} tokens of {counts['distinct']:,} words"
