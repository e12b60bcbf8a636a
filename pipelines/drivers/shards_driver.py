"""A run that makes document shards: from parsed options to the exit code.

Is there input, is the output folder ours, what is done already, and at the end: what has become of it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bioshards.corpus.download.source_spec import parse_source_spec
from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.exit_codes import NOT_PUBLISHED, OK
from bioshards.corpus.lifecycle import exclusion_list, full_text_overlap, part_lists
from bioshards.corpus.lifecycle.exclusion_list import ExclusionList
from bioshards.corpus.lifecycle.publish import is_up_to_date
from bioshards.corpus.manifest import DocumentsManifest, DocumentsRun, ManifestError
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.sentences import splitters
from bioshards.corpus.shards.arrow_io import read_documents_manifest
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.text_config import TextConfig
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.execution.executor import execute, prepare_run
from bioshards.pipelines.execution.session import (
    check_reachable_by_workers,
    claim_output,
    command_of,
    make_absolute,
    make_context,
    translate_output_errors,
)
from bioshards.pipelines.inputs.run_inputs import RunInputs
from bioshards.pipelines.job_types import ShardsJob
from bioshards.pipelines.options.parser import Parser, UsageError

if TYPE_CHECKING:
    import apache_beam as beam


class ShardsPipeline(Protocol):
    """A module of a pipeline that makes document shards: pubmed_to_shards or pmc_to_shards."""

    NAME: str

    def sample_folder(self) -> str: ...

    def config_from_args(self, args: Any) -> TextConfig: ...

    def find_inputs(
        self, storage: LocalStorage, args: Any, output: str, input_args: Sequence[str], is_local_run: bool
    ) -> RunInputs: ...

    def build(self, pipeline: beam.Pipeline, job: ShardsJob) -> None: ...


def run(
    pipeline: ShardsPipeline, parser: Parser, args: Any, beam_args: Sequence[str], argv: Sequence[str]
) -> int:
    """Do what the command line asks for; returns the exit code."""
    input_args = args.input or [pipeline.sample_folder()]
    overlap_with = getattr(args, "find_overlap_with", None)
    paths = [
        *input_args,
        *(path or "" for path in (args.output, args.mirror, overlap_with, args.exclude_ids)),
    ]
    folders = {"--output": args.output, "--mirror": args.mirror, "--find-overlap-with": overlap_with}
    notices = check_reachable_by_workers(
        beam_args, {option: folder for option, folder in folders.items() if folder}, args.dry_run
    )
    for path in input_args:
        notices += check_reachable_by_workers(
            beam_args, {} if parse_source_spec(path) else {"--input": path}, args.dry_run
        )
    optional_paths = [path for path in (args.output, args.mirror) if path and args.dry_run]
    context = make_context(parser, beam_args, args.workers, paths, optional_paths)
    storage = context.storage
    if not args.output:
        raise UsageError("--output DIR is missing: the folder to write")
    output_dir = OutputDir(make_absolute(args.output))
    document_config = pipeline.config_from_args(args)
    config = _make_config(pipeline.NAME, args, document_config)
    abstracts_digest = _read_abstracts_digest(storage, overlap_with) if overlap_with else None
    excluded_ids = None if args.exclude_ids is None else _read_excluded_ids(storage, args.exclude_ids)
    exclusions = None if excluded_ids is None else exclusion_list.summarise(excluded_ids)
    exclusion_digest = exclusions.sha256 if exclusions else None
    with translate_output_errors(output_dir.path):
        output_layout.check_config(storage, output_dir, config)
    run_inputs = pipeline.find_inputs(
        storage, args, output_dir.path, input_args, is_local_run=not context.has_runner
    )
    job = _make_job(
        pipeline.NAME, args, argv, storage, output_dir, run_inputs, document_config, exclusions, config
    )
    job_spec = JobSpec(
        pipeline.NAME, output_dir.path, run_inputs.num_items, library_versions=config["library_versions"]
    )
    if args.dry_run:
        from bioshards.pipelines.dry_run import estimates, source_plans

        dry_run_plan = source_plans.plan_shards(job, run_inputs)
        print(
            estimates.format_estimate(
                dry_run_plan, notices, context, job_spec, args.workers, lambda root: pipeline.build(root, job)
            )
        )
        return OK
    for notice in run_inputs.notices:
        print(f"notice: {notice}", file=sys.stderr)
    prepare_run(context, job_spec)
    with claim_output(storage, output_dir, config):
        is_all_fetched = not job.to_fetch and not job.article_plan
        if is_all_fetched and is_up_to_date(
            storage, output_dir, job.sources, abstracts_digest, exclusion_digest
        ):
            unchanged = f"its {len(job.sources)} input files are unchanged"
            print(f"{output_dir.path} is finished and {unchanged}: nothing to do.")
            return OK
        output_layout.reset(storage, output_dir)
        part_lists.save_part_lists(storage, output_dir, run_inputs.available)
        if excluded_ids is not None:
            exclusion_list.write(storage, output_dir.exclusion_list_path, excluded_ids)
        from bioshards.pipelines.execution.progress_monitor import ShardsProgress

        deferred_message = execute(
            lambda root: pipeline.build(root, job),
            context,
            args.workers,
            job_spec,
            lambda terminal: ShardsProgress(storage, output_dir, run_inputs, terminal),
        )
        return _print_report(job, deferred_message)


def _read_abstracts_digest(storage: LocalStorage, overlap_with: str) -> str:
    """The identity of the abstracts that are to be looked for in the articles."""
    try:
        return full_text_overlap.digest_abstracts(storage, overlap_with.rstrip("/"))
    except (FileNotFoundError, ManifestError, full_text_overlap.OverlapInputError) as error:
        raise UsageError(f"--find-overlap-with: {str(error).rstrip('.')}") from error


def _read_excluded_ids(storage: LocalStorage, path: str) -> exclusion_list.ExcludedIds:
    """The ids of the documents that are to be left out."""
    if not storage.exists(path):
        raise UsageError(f"--exclude-ids {path}: there is no such file")
    try:
        with storage.open(path) as file:
            return exclusion_list.parse(file, path)
    except exclusion_list.ExclusionListError as error:
        raise UsageError(f"--exclude-ids: {error}") from error
    except TransientStorageError:
        raise
    except OSError as error:
        raise UsageError(f"--exclude-ids {path} cannot be read: {error.strerror or error}") from error


def _make_config(pipeline: str, args: Any, document_config: TextConfig) -> dict[str, Any]:
    """What must be the same for an output to be gone on with."""
    return {
        "pipeline": pipeline,
        "format": FORMAT,
        "preset": args.preset,
        "document_config": document_config.to_dict(),
        "library_versions": splitters.find_library_versions(
            document_config.splitter, document_config.treebank
        ),
        "keep_dropped": args.keep_dropped,
        "dedup": args.dedup,
        "max_shard_mb": args.max_shard_mb,
    }


def _make_job(
    pipeline: str,
    args: Any,
    argv: Sequence[str],
    storage: LocalStorage,
    output_dir: OutputDir,
    run_inputs: RunInputs,
    document_config: TextConfig,
    exclusions: ExclusionList | None,
    config: dict[str, Any],
) -> ShardsJob:
    """The job that the command line asks for, its inputs found."""
    return ShardsJob(
        storage=storage,
        output_dir=output_dir,
        sources=part_lists.without_parts(run_inputs.available),
        to_fetch=run_inputs.to_fetch,
        download_plan=run_inputs.download_plan,
        article_plan=run_inputs.article_plan,
        document_config=document_config,
        keep_dropped=args.keep_dropped,
        dedup=args.dedup,
        overlap_with=make_absolute(overlap_with)
        if (overlap_with := getattr(args, "find_overlap_with", None))
        else None,
        exclusion_list=exclusions,
        max_shard_bytes=args.max_shard_mb * 1_000_000,
        max_rejected=args.max_rejected,
        config=config,
        run_info=DocumentsRun(
            command=command_of(pipeline, argv),
            listed_at=run_inputs.listed_at or None,
            notices=tuple(run_inputs.notices) if run_inputs.listed_at else (),
        ),
    )


def _format_overlap(manifest: DocumentsManifest) -> str:
    """A line of each list of abstracts that the articles hold in full."""
    return "".join(
        f"  {overlap_entry.rows:>12,}  abstracts of {overlap_entry.abstracts_path} are here in full: "
        f"{overlap_entry.file}\n"
        for overlap_entry in manifest.overlap
    )


def _format_exclusions(manifest: DocumentsManifest) -> str:
    """A line on the list of ids that were to be left out, if there is one."""
    if not (exclusion_entry := manifest.exclusion_list):
        return ""
    return f"  {exclusion_entry.matched:>12,}  of {exclusion_entry.num_ids:,} ids to exclude dropped a document\n"


def _print_report(job: ShardsJob, deferred_message: str) -> int:
    if deferred_message:
        print(deferred_message)
        return OK
    outcome = job.storage.read_json(job.output_dir.result_path)
    if outcome["problem"]:
        print(f"beam: {outcome['problem']}", file=sys.stderr)
        return NOT_PUBLISHED
    manifest = read_documents_manifest(job.storage, job.output_dir.path)
    for warning in manifest.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    funnel = "\n".join(f"  {count:>12,}  {reason}" for reason, count in manifest.funnel.items())
    print(
        f"{outcome['documents']:,} documents, {outcome['sentences']:,} sentences in "
        f"{len(manifest.outputs)} shards\n{funnel}\n{_format_exclusions(manifest)}{_format_overlap(manifest)}"
        f"shards:   {job.output_dir.path}\nreport:   {job.output_dir.manifest_path}"
    )
    if outcome["rejected"] or manifest.bad_files:
        print(f"rejected: {job.output_dir.path}/rejected")
    return OK
