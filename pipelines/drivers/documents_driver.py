"""The course of a run that reads finished directories of documents, from its folders to its exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.manifest import Manifest, read_manifest
from bioshards.corpus.output import output_layout
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.execution.executor import ProgressMonitor, execute, prepare_run
from bioshards.pipelines.execution.session import (
    check_reachable_by_workers,
    claim_output,
    make_absolute,
    make_context,
    translate_output_errors,
)
from bioshards.pipelines.job_types import JobT
from bioshards.pipelines.options.parser import Parser, UsageError

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.dry_run.source_plans import DryRunPlan


M = TypeVar("M", bound=Manifest)


def run(
    parser: Parser,
    args: Any,
    beam_args: Sequence[str],
    make_job: Callable[[LocalStorage, list[str]], JobT],
    *,
    is_complete: Callable[[JobT], bool],
    build: Callable[[beam.Pipeline, JobT], None],
    make_progress: Callable[[JobT, TextIO], ProgressMonitor],
    format_summary: Callable[[JobT, M], Iterable[str]],
    make_dry_run_plan: Callable[[JobT], DryRunPlan],
    kind: type[M],
    extra_paths: Sequence[str] = (),
) -> int:
    """Do what the command line asks for; returns the exit code.

    Args:
        make_job: makes the job of the inputs' paths, and looks at the inputs.
        finished: is there nothing to do?
        lines: what to say at the end, of the manifest.
        planned: what a dry run says.
        kind: the type of the manifest.
        beside: what else is read before the run, on whichever store.

    Raises:
        UsageError, InputError, OutputMismatchError: nothing has been begun.
    """
    input_folders = [make_absolute(folder) for folder in args.input or []]
    output = {"--output": args.output} if args.output else {}
    notices = check_reachable_by_workers(beam_args, output, args.dry_run)
    for folder in input_folders:
        notices += check_reachable_by_workers(beam_args, {"--input": folder}, args.dry_run)
    paths = [*input_folders, *extra_paths, args.output or ""]
    context = make_context(parser, beam_args, args.workers, paths, paths[-1:] if args.dry_run else [])
    storage = context.storage
    if not input_folders:
        raise UsageError("--input DIR is missing: a finished --output of pubmed_to_shards or pmc_to_shards")
    if not args.output:
        raise UsageError("--output DIR is missing: the folder to write")
    job = make_job(storage, input_folders)
    with translate_output_errors(job.output_dir.path):
        output_layout.check_config(storage, job.output_dir, job.config)
    config = job.config
    job_spec = JobSpec(
        config["pipeline"], job.output_dir.path, job.num_items, ("vocab",), config["library_versions"]
    )
    if args.dry_run:
        from bioshards.pipelines.dry_run import estimates

        print(
            estimates.format_estimate(
                make_dry_run_plan(job),
                notices,
                context,
                job_spec,
                args.workers,
                lambda root: build(root, job),
            )
        )
        return OK
    prepare_run(context, job_spec)
    with claim_output(storage, job.output_dir, config):
        if is_complete(job):
            subject = f"{len(job.inputs)} inputs are" if len(job.inputs) > 1 else "input is"
            print(f"{job.output_dir.path} is finished and its {subject} unchanged: nothing to do.")
            return OK
        output_layout.reset(storage, job.output_dir)
        deferred_message = execute(
            lambda root: build(root, job),
            context,
            args.workers,
            job_spec,
            lambda terminal: make_progress(job, terminal),
        )
        return _print_report(job, format_summary, deferred_message, kind)


def _print_report(
    job: JobT, format_summary: Callable[[JobT, M], Iterable[str]], deferred_message: str, kind: type[M]
) -> int:
    if deferred_message:
        print(deferred_message)
        return OK
    storage, output_dir = job.storage, job.output_dir
    problem = storage.read_json(output_dir.result_path)["problem"]
    if problem:
        print(f"beam: {problem}", file=sys.stderr)
        return NOT_PUBLISHED
    manifest = read_manifest(storage, output_dir.path)
    assert isinstance(manifest, kind)
    print("\n".join([*format_summary(job, manifest), f"{'report:':13} {output_dir.manifest_path}"]))
    return OK
