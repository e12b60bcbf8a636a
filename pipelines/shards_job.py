"""A run that makes document shards: from parsed options to the exit code.

Is there input, is the output folder ours, what is done already, and at the end: what has become of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bioshards.corpus import excluded, overlap, parts, splitters, workspace
from bioshards.corpus.download.named import named
from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.excluded import Excluded
from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import DocumentsManifest, DocumentsRun, ManifestError
from bioshards.corpus.rules import TextRules
from bioshards.corpus.shards import documents_manifest
from bioshards.corpus.workspace import FORMAT, Workspace

from .dataflow import Task
from .executing import execute, prepare
from .inputs import Inputs
from .job import Job
from .options import Parser, UsageError
from .starting import absolute, begun, command_of, for_workers_elsewhere, output_at_fault, where

if TYPE_CHECKING:
    import apache_beam as beam


class Pipeline(Protocol):
    """A module of a pipeline that makes document shards: pubmed_to_shards or pmc_to_shards."""

    NAME: str

    def sample(self) -> str: ...

    def rules_of(self, options: Any) -> TextRules: ...

    def find(
        self, files: LocalFiles, options: Any, output: str, given: Sequence[str], local: bool
    ) -> Inputs: ...

    def build(self, root: beam.Pipeline, job: Job) -> None: ...


def run(
    pipeline: Pipeline, parser: Parser, options: Any, rest: Sequence[str], arguments: Sequence[str]
) -> int:
    """Do what the command line asks for; returns the exit code."""
    given = options.input or [pipeline.sample()]
    drop_in = getattr(options, "drop_in", None)
    paths = [*given, *(path or "" for path in (options.output, options.mirror, drop_in, options.exclude_ids))]
    folders = {"--output": options.output, "--mirror": options.mirror, "--drop-in": drop_in}
    notices = for_workers_elsewhere(
        rest, {option: folder for option, folder in folders.items() if folder}, options.dry_run
    )
    for path in given:
        notices += for_workers_elsewhere(rest, {} if named(path) else {"--input": path}, options.dry_run)
    unseen = [path for path in (options.output, options.mirror) if path and options.dry_run]
    place = where(parser, rest, options.workers, paths, unseen)
    files = place.files
    if not options.output:
        raise UsageError("--output DIR is missing: the folder to write")
    work = Workspace(absolute(options.output))
    rules = pipeline.rules_of(options)
    config = _config(pipeline.NAME, options, rules)
    abstracts = _abstracts(files, drop_in) if drop_in else None
    ids = None if options.exclude_ids is None else _ids(files, options.exclude_ids)
    listed = None if ids is None else excluded.described(ids)
    digest = listed.sha256 if listed else None
    with output_at_fault(work.output):
        workspace.check(files, work, config)
    found = pipeline.find(files, options, work.output, given, local=not place.runner_given)
    job = _job(pipeline.NAME, options, arguments, files, work, found, rules, listed, config)
    task = Task(pipeline.NAME, work.output, found.count, tools=config["library_versions"])
    if options.dry_run:
        from . import estimates, plan

        planned = plan.of_shards(job, found)
        print(
            estimates.said(
                planned, notices, place, task, options.workers, lambda root: pipeline.build(root, job)
            )
        )
        return OK
    for notice in found.notices:
        print(f"notice: {notice}", file=sys.stderr)
    prepare(place, task)
    with begun(files, work, config):
        fetched = not job.wanted and not job.bucket
        if fetched and workspace.finished(files, work, job.sources, abstracts, digest):
            unchanged = f"its {len(job.sources)} input files are unchanged"
            print(f"{work.output} is finished and {unchanged}: nothing to do.")
            return OK
        workspace.clear(files, work)
        parts.lay_aside(files, work, found.here)
        if ids is not None:
            excluded.write(files, work.excluded, ids)
        from .progress import Progress

        later = execute(
            lambda root: pipeline.build(root, job),
            place,
            options.workers,
            task,
            lambda terminal: Progress(files, work, found, terminal),
        )
        return _report(job, later)


def _abstracts(files: LocalFiles, drop_in: str) -> str:
    """The identity of the abstracts that are to be looked for in the articles."""
    try:
        return overlap.identity(files, drop_in.rstrip("/"))
    except (FileNotFoundError, ManifestError, overlap.OverlapInputError) as error:
        raise UsageError(f"--drop-in: {str(error).rstrip('.')}") from error


def _ids(files: LocalFiles, path: str) -> excluded.Ids:
    """The ids of the documents that are to be left out."""
    if not files.exists(path):
        raise UsageError(f"--exclude-ids {path}: there is no such file")
    try:
        with files.open(path) as file:
            return excluded.parse(file, path)
    except excluded.ExclusionListError as error:
        raise UsageError(f"--exclude-ids: {error}") from error
    except TransientStorageError:
        raise
    except OSError as error:
        raise UsageError(f"--exclude-ids {path} cannot be read: {error.strerror or error}") from error


def _config(pipeline: str, options: Any, rules: TextRules) -> dict[str, Any]:
    """What must be the same for an output to be gone on with."""
    return {
        "pipeline": pipeline,
        "format": FORMAT,
        "preset": options.preset,
        "rules": rules.as_dict(),
        "library_versions": splitters.tools(rules.splitter, rules.treebank),
        "keep_dropped": options.keep_dropped,
        "dedup": options.dedup,
        "max_shard_mb": options.max_shard_mb,
    }


def _job(
    pipeline: str,
    options: Any,
    arguments: Sequence[str],
    files: LocalFiles,
    work: Workspace,
    found: Inputs,
    rules: TextRules,
    listed: Excluded | None,
    config: dict[str, Any],
) -> Job:
    """The job that the command line asks for, its inputs found."""
    return Job(
        files=files,
        work=work,
        sources=parts.left_out(found.here),
        wanted=found.wanted,
        fetching=found.fetching,
        bucket=found.bucket,
        rules=rules,
        keep_dropped=options.keep_dropped,
        dedup=options.dedup,
        drop_in=absolute(drop_in) if (drop_in := getattr(options, "drop_in", None)) else None,
        excluded=listed,
        max_shard_bytes=options.max_shard_mb * 1_000_000,
        max_rejected=options.max_rejected,
        config=config,
        run=DocumentsRun(
            command=command_of(pipeline, arguments),
            listed_at=found.listed or None,
            notices=tuple(found.notices) if found.listed else (),
        ),
    )


def _in_full(manifest: DocumentsManifest) -> str:
    """A line of each list of abstracts that the articles hold in full."""
    return "".join(
        f"  {listed.rows:>12,}  abstracts of {listed.of} are here in full: {listed.file}\n"
        for listed in manifest.overlap
    )


def _left_out(manifest: DocumentsManifest) -> str:
    """A line on the list of ids that were to be left out, if there is one."""
    if not (listed := manifest.excluded):
        return ""
    return f"  {listed.found:>12,}  of {listed.ids:,} ids to exclude dropped a document\n"


def _report(job: Job, later: str) -> int:
    if later:
        print(later)
        return OK
    outcome = job.files.read_json(job.work.outcome)
    if outcome["problem"]:
        print(f"beam: {outcome['problem']}", file=sys.stderr)
        return NOT_PUBLISHED
    manifest = documents_manifest(job.files, job.work.output)
    for warning in manifest.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    funnel = "\n".join(f"  {count:>12,}  {what}" for what, count in manifest.funnel.items())
    print(
        f"{outcome['documents']:,} documents, {outcome['sentences']:,} sentences in "
        f"{len(manifest.outputs)} shards\n{funnel}\n{_left_out(manifest)}{_in_full(manifest)}"
        f"shards:   {job.work.output}\nreport:   {job.work.manifest}"
    )
    if outcome["rejected"] or manifest.bad_files:
        print(f"rejected: {job.work.output}/rejected")
    return OK
