"""What the pipelines that write document shards share: their job, the steps after staging, the run."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeVar

import apache_beam as beam
import msgspec

from bioshards.corpus.download.pmc.article_ranges import WITHDRAWN
from bioshards.corpus.download.sources import parse_source_spec
from bioshards.corpus.errors import (
    OutputMismatchError,
    TransientStorageError,
    UsageError,
    UserError,
    escape_line,
)
from bioshards.corpus.lifecycle import full_text_overlap, id_lists, near_duplicates
from bioshards.corpus.lifecycle.decisions import decide
from bioshards.corpus.lifecycle.finalize import FinalizeResult, finalize_source, list_sources
from bioshards.corpus.lifecycle.id_lists import IdList, ListedIds
from bioshards.corpus.lifecycle.inputs import (
    describe_missing_inputs,
    forget_digests,
    save_part_lists,
    without_parts,
)
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult, is_up_to_date
from bioshards.corpus.manifest import (
    DocumentsConfig,
    DocumentsManifest,
    DocumentsPipeline,
    DocumentsRun,
    ManifestError,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.sentences import splitters
from bioshards.corpus.shards.document_shards import read_documents_manifest
from bioshards.corpus.stats import report
from bioshards.corpus.storage.source_file import SAMPLE_FOLDER, SourceFile, list_typed_folders
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_config import TextConfig
from bioshards.corpus.ui.progress import StepBar
from bioshards.pipelines import dry_run
from bioshards.pipelines.context import JobSpec, PathOption
from bioshards.pipelines.download_steps import fetch_and_stage, stage_file
from bioshards.pipelines.inputs.downloads import split_into_slots
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs
from bioshards.pipelines.options import ShardsOptions, find_sample
from bioshards.pipelines.run import (
    CommandLine,
    Session,
    check_output,
    check_published,
    make_absolute,
    open_session,
    print_notices,
)
from bioshards.pipelines.steps import create, each, listed, merge, once, slots

ParsedT = TypeVar("ParsedT")

BANDS: Final = range(near_duplicates.NUM_BANDS)


@dataclass(frozen=True, slots=True)
class ShardsSession(Session):
    """The session of a run that writes document shards.

    Attributes:
        included_ids: ids of documents to keep, which go to the work folder; None keeps all.
        excluded_ids: ids of documents to drop, likewise.
    """

    options: ShardsOptions
    included_ids: ListedIds | None
    excluded_ids: ListedIds | None


def open_shards_session(line: CommandLine, options: ShardsOptions) -> ShardsSession:
    """Open the storage of the paths that the options name, and read the lists of ids.

    Raises:
        UserError: a path cannot be reached, a list is no list, or no document would be kept.
    """
    session = open_session(line, options, _list_paths(options))
    included_ids = _read_ids(session.storage, "--include-ids", options.include_ids)
    if included_ids is not None and not len(included_ids):
        raise UsageError(f"--include-ids {options.include_ids} lists no id: no document would be kept")
    excluded_ids = _read_ids(session.storage, "--exclude-ids", options.exclude_ids)
    return ShardsSession(
        options, session.command, session.context, session.expected, included_ids, excluded_ids
    )


def _list_paths(options: ShardsOptions) -> list[PathOption]:
    """List output, mirror, the abstracts to compare with, the inputs, the lists of ids and of MeSH."""
    written = {"--output": options.output, "--mirror": options.mirror}
    read = {"--find-overlap-with": options.find_overlap_with}
    lists = {
        "--include-ids": options.include_ids,
        "--exclude-ids": options.exclude_ids,
        "--mesh-tree": options.mesh_tree,
    }
    return [
        *(PathOption(option, path, is_written=True) for option, path in written.items() if path),
        *(PathOption(option, path) for option, path in read.items() if path),
        *(PathOption("--input", path) for path in options.input if not parse_source_spec(path)),
        *(PathOption(option, path, is_used_by_workers=False) for option, path in lists.items() if path),
    ]


def make_job(pipeline: DocumentsPipeline, session: ShardsSession, documents: TextConfig) -> ShardsJob:
    """Return the job, without the facts about the inputs, if the output is new or has its configuration.

    Args:
        pipeline: name of the pipeline.
        documents: filters and text processing.

    Raises:
        UserError: the abstracts of ``--find-overlap-with`` cannot be used, or the output is another one.
    """
    options, storage = session.options, session.storage
    included = None if session.included_ids is None else id_lists.summarise(session.included_ids)
    excluded = None if session.excluded_ids is None else id_lists.summarise(session.excluded_ids)
    overlap_with = options.find_overlap_with
    job = ShardsJob(
        storage=storage,
        output=OutputDir(make_absolute(options.output)),
        config=_make_config(pipeline, options, documents, included),
        documents=documents,
        included=included,
        excluded=excluded,
        overlap_with=make_absolute(overlap_with) if overlap_with else None,
        abstracts_digest=_read_abstracts_digest(storage, overlap_with) if overlap_with else None,
        max_rejected=options.max_rejected,
        max_bad_files=options.max_bad_files,
        run=DocumentsRun(command=session.command),
        typed_folders=_list_typed_folders(options),
    )
    check_output(job)
    return job


def _list_typed_folders(options: ShardsOptions) -> dict[str, str]:
    """Return the folders of the options as they were typed, the mirror, and the sample by its package."""
    mirror = options.mirror or os.path.join(os.path.dirname(options.output.rstrip("/")), "mirror")
    paths = [*options.input, mirror, options.output, options.find_overlap_with or ""]
    return {**list_typed_folders(filter(None, paths)), find_sample("")[0]: SAMPLE_FOLDER}


def _make_config(
    pipeline: DocumentsPipeline, options: ShardsOptions, documents: TextConfig, included: IdList | None
) -> DocumentsConfig:
    """Return the configuration; runs into one output directory must have the same."""
    return DocumentsConfig(
        pipeline=pipeline,
        format=FORMAT,
        preset=options.preset,
        document_config=documents.to_dict(),
        library_versions=splitters.find_library_versions(documents.splitter, documents.treebank),
        include_ids=included.sha256 if included else None,
        keep_dropped=options.keep_dropped,
        dedup=options.dedup,
        max_shard_mb=options.max_shard_mb,
    )


# The graph


def sort_by_size(sources: Sequence[SourceFile]) -> list[SourceFile]:
    """Return the sources without their lists of files, the largest first.

    Runners deal elements out in turn, so that workers end at nearly the same time.
    """
    return sorted(without_parts(sources), key=lambda source: -source.size)


def stage(
    root: beam.Pipeline, job: ShardsJob, inputs: RunInputs, make_source: Callable[..., SourceFile]
) -> Sequence[StageResult]:
    """Stage the files of a run, and those that are downloaded by name."""
    staged = [each("stage", stage_file, job, create(root, "sources", sort_by_size(inputs.available)))]
    for name, listing in inputs.listings.items():
        if listing.to_fetch:
            plan = listing.download_plan
            file_slots = create(root, f"slots of {name}", split_into_slots(listing.to_fetch, plan))
            staged.append(slots(f"fetch {name}", fetch_and_stage, job, file_slots, plan, make_source))
    return merge("staged", staged)


def create_range_slots(
    root: beam.Pipeline, plan: PmcArticlePlan
) -> tuple[Sequence[list[int]], Sequence[list[int]]]:
    """Return the slots of the ranges of PMC's articles to check for removals, and of those to update."""
    to_check = split_into_slots(plan.ranges_to_check, plan.download_plan)
    ranges = split_into_slots(plan.ranges, plan.download_plan)
    return create(root, "ranges to check", to_check), create(root, "ranges to update", ranges)


def finalize(
    root: beam.Pipeline, job: ShardsJob, staged: Sequence[StageResult]
) -> tuple[Sequence[FinalizeResult], list[Sequence[str]]]:
    """Decide which records are dropped, and finalize the shards of the others.

    Returns:
        The results, and the collections of the steps before.
    """
    decided = once("decide", decide, job, staged)
    steps = [decided]
    if job.config.dedup == "near":
        bands = create(root, "bands", BANDS)
        candidates = each("candidates", near_duplicates.find_candidates, job, bands, staged, decided)
        near = once("duplicates", near_duplicates.decide_near_duplicates, job, staged, decided, candidates)
        steps += [candidates, near]
        decided = merge("decisions", [decided, near])
    sources = listed("usable sources", list_sources, job, staged)
    return each("finalize", finalize_source, job, sources, decided), steps


# The run


def run_job(
    session: ShardsSession,
    job: ShardsJob,
    inputs: RunInputs,
    build: Callable[[beam.Pipeline, ShardsJob], None],
) -> int:
    """Plan or execute a run whose inputs are found, and return the exit code.

    Args:
        build: builds the graph of a job.
    """
    options, config = session.options, job.config
    spec = JobSpec(
        config.pipeline, job.output.path, inputs.num_items, library_versions=config.library_versions
    )
    notices = [*job.documents.describe_unknown_values(), *inputs.notices]
    if options.dry_run:
        notices += describe_missing_inputs(job, inputs.available, inputs.names_to_fetch)
        lines = dry_run.describe_sources(job, inputs, notices, options.verify_inputs)
        return dry_run.print_plan(session, lines, lambda root: build(root, job))
    print_notices(notices)
    with session.claimed(job, spec):
        if _is_up_to_date(job, inputs, options.verify_inputs):
            finished = f"{job.output.path} is finished and its {len(inputs.available)} input files are"
            print(f"{finished} unchanged: nothing to do.")
            return session.compare(job)
        missing = describe_missing_inputs(job, inputs.available, inputs.names_to_fetch)
        is_finished = job.storage.exists(job.output.manifest_path)  # a damaged one, too
        if missing and is_finished and not options.allow_fewer_inputs:
            raise OutputMismatchError(
                f"{'; '.join(missing)}. Nothing is changed. Give all inputs, choose another --output, or add "
                "--allow-fewer-inputs"
            )
        print_notices(missing)
        facts = msgspec.structs.replace(job.run, listed_at=inputs.listed_at, notices=(*notices, *missing))
        job = dataclasses.replace(job, run=facts)
        _prepare_output(session, job, inputs)
        result = session.execute(
            job,
            spec,
            lambda root: build(root, job),
            _count_workers(job, inputs, options.workers),
            list_bars(job, inputs),
        )
        for path, detail in result["bad_files"]:
            print(escape_line(f"bad file: {path}: {detail}"), file=sys.stderr)
        check_published(result)
        _print_summary(job)
    return session.compare(job)


def list_bars(job: ShardsJob, inputs: RunInputs) -> list[StepBar]:
    """Return the bars of a run: the bytes of the files to stage, then the steps that follow."""
    sizes = [file.size for file in inputs.available] + [file.size for file in inputs.to_fetch]
    texts = {
        "stage": f"{{:,}}/{inputs.num_items:,} files",
        "records": "{:,} records",
        "fetched": "{:,} fetched",
        "requests": "{:,} requests",
    }
    staged = job.output.work_path("staged")
    if all(sizes) and not inputs.article_plan:
        stage = StepBar("stage", "staging", "B", sum(sizes), "units", texts, staged)
    else:
        stage = StepBar("stage", "staging", " files", inputs.num_items, texts=texts, reports=staged)
    return [
        stage,
        StepBar("decide", "resolving versions"),
        StepBar("candidates", "comparing documents", " bands", near_duplicates.NUM_BANDS),
        StepBar("duplicates", "finding duplicates"),
        StepBar("finalize", "finishing the shards", " files", inputs.num_items),
        StepBar("overlap", "finding abstracts of articles"),
        StepBar("publish", "publishing"),
    ]


def _is_up_to_date(job: ShardsJob, inputs: RunInputs, verify_inputs: bool) -> bool:
    """Return True if nothing is to be fetched or verified and the output is complete and unchanged."""
    if inputs.to_fetch or inputs.article_plan or verify_inputs:
        return False
    key = job.make_inputs_key(inputs.available)
    return is_up_to_date(job.storage, job.output, DocumentsManifest, key)


def _prepare_output(session: ShardsSession, job: ShardsJob, inputs: RunInputs) -> None:
    """Mark the output as incomplete, remove what a killed run left, and write the lists that workers read.

    With a mirror of PMC's articles the graph marks it, after the check of removals.
    """
    if not inputs.article_plan:
        output_layout.mark_incomplete(job.storage, job.output)
    output_layout.remove_leftovers(job.storage, job.output)
    if session.options.verify_inputs:
        forget_digests(job, inputs.available)
    save_part_lists(job, inputs.available)
    if session.included_ids is not None:
        id_lists.write(job.storage, job.output.inclusion_list_path, session.included_ids)
    if session.excluded_ids is not None:
        id_lists.write(job.storage, job.output.exclusion_list_path, session.excluded_ids)


def _count_workers(job: ShardsJob, inputs: RunInputs, workers: int) -> int:
    """Return the number of local processes: one for each source at most, as each imports Beam first.

    Comparisons of documents have more items than sources.
    """
    compares = job.config.dedup == "near" or job.overlap_with
    return workers if compares else min(workers, max(1, inputs.num_items))


def _print_summary(job: ShardsJob) -> None:
    """Print the warnings of the manifest, and what was kept, dropped and rejected."""
    manifest = read_documents_manifest(job.storage, job.output.path)
    for warning in manifest.warnings:
        print(escape_line(f"warning: {warning}"), file=sys.stderr)
    counts, folder = manifest.counts, job.output.path
    print(
        f"{counts.documents:,} documents, {counts.sentences:,} sentences in {len(manifest.outputs)} shards",
        *(f"  {count:>12,}  {reason}" for reason, count in manifest.funnel.items()),
        *_format_withdrawn(manifest),
        *_format_id_lists(manifest),
        *(
            f"  {overlap.rows:>12,}  abstracts of {overlap.abstracts_path} are here in full: {overlap.file}"
            for overlap in manifest.overlap
        ),
        f"shards:   {folder}",
        f"report:   {folder}/{report.FILE}",
        *([f"rejected: {folder}/rejected"] if counts.rejected or manifest.bad_files else []),
        sep="\n",
    )


def _format_withdrawn(manifest: DocumentsManifest) -> list[str]:
    """Return a line on each reason why articles of a mirror have been taken out by this run."""
    return [
        f"  {count:>12,}  withdrawn from the mirror: {name.removeprefix(WITHDRAWN)}"
        for name, count in manifest.run.steps.get("ranges", {}).items()
        if name.startswith(WITHDRAWN)
    ]


def _format_id_lists(manifest: DocumentsManifest) -> list[str]:
    """Return a line on each list of ids."""
    return [
        f"  {id_list.matched:>12,}  of {id_list.num_ids:,} ids to {verb} a document"
        for id_list, verb in (
            (manifest.inclusion_list, "include kept"),
            (manifest.exclusion_list, "exclude dropped"),
        )
        if id_list
    ]


# Files that options name


def _read_abstracts_digest(storage: Storage, overlap_with: str) -> str:
    """Return the digest that identifies the abstracts to look for in the articles."""
    try:
        return full_text_overlap.digest_abstracts(storage, overlap_with.rstrip("/"))
    except (FileNotFoundError, ManifestError, full_text_overlap.OverlapInputError) as error:
        raise UsageError(f"--find-overlap-with: {str(error).rstrip('.')}") from error


def _read_ids(storage: Storage, option: str, path: str | None) -> ListedIds | None:
    """Read the list of ids that an option names, None without one."""
    return None if path is None else parse_file(storage, option, path, id_lists.parse)


def parse_file(
    storage: Storage, option: str, path: str, parse: Callable[[BinaryIO, str], ParsedT]
) -> ParsedT:
    """Parse the file that an option names.

    Raises:
        UsageError: it does not exist, cannot be read, or ``parse`` raises a UserError.
    """
    if not storage.exists(path):
        raise UsageError(f"{option} {path}: there is no such file")
    try:
        with storage.open(path) as file:
            return parse(file, path)
    except UserError as error:
        raise UsageError(f"{option}: {error}") from error
    except TransientStorageError:
        raise
    except OSError as error:
        raise UsageError(f"{option} {path} cannot be read: {error.strerror or error}") from error
