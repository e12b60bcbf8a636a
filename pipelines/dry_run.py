"""``--dry-run``: what a run would fetch and process, in files, bytes and items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory
from bioshards.corpus.download.pmc.range_plan import describe_removals, plan_range
from bioshards.corpus.errors import OK, escape_line
from bioshards.corpus.jats.inputs import is_article_list
from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.manifest import Shard
from bioshards.corpus.output.work_files import read_report
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.pipelines.inputs.downloads import SourceListing, format_size, with_interactive_retry
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs

if TYPE_CHECKING:
    from bioshards.pipelines.run import Build, Session

HEADER: Final = "dry run: nothing is fetched, nothing is written"
MAX_GRAPH_MB: Final = 10
"""The largest job graph that Dataflow takes (docs.cloud.google.com/dataflow/docs/request-quotas, read in
November 2026)."""


def print_plan(session: Session, lines: Sequence[str], build: Build) -> int:
    """Print the lines of a plan and, for a runner, the size of the graph; return the exit code."""
    report = [HEADER, *(f"notice: {notice}" for notice in session.context.notices), *lines]
    if session.context.has_runner:
        num_steps, graph_bytes = _measure_graph(build)
        report.append(f"job graph:   {num_steps:,} steps, {graph_bytes / 1e6:.2f} MB")
        if session.context.is_on_dataflow and graph_bytes > MAX_GRAPH_MB * 1e6:
            report.append(f"notice: Dataflow takes {MAX_GRAPH_MB} MB at most: give fewer files at a time")
    print("\n".join(map(escape_line, report)))
    return OK


def _measure_graph(build: Build) -> tuple[int, int]:
    """Return the number of steps of a job, and its bytes as a runner is given it."""
    from apache_beam.options.pipeline_options import PipelineOptions

    from bioshards.pipelines.execution import executor, local_runner

    options = PipelineOptions([])
    pipeline = executor.make_pipeline(local_runner.make_runner(options), options)
    build(pipeline)
    graph = pipeline.to_runner_api()
    num_steps = sum(not transform.subtransforms for transform in graph.components.transforms.values())
    return num_steps, graph.ByteSize()


def describe_sources(
    job: ShardsJob, inputs: RunInputs, notices: Sequence[str], verify_inputs: bool
) -> list[str]:
    """Return lines on the files of a run that writes document shards."""
    lines = [f"notice: {notice}" for notice in notices]
    lines += describe_listings(inputs.listings)
    lines.append(f"output:      {job.output.path}")
    to_stage = _list_unstaged(job, inputs.available)
    to_do: list[SourceFile | RemoteFile] = [*to_stage, *inputs.to_fetch]
    noun = "sources" if job.config.pipeline == "pmc_to_shards" else "files"
    if inputs.available or inputs.to_fetch:
        num_staged = len(inputs.available) - len(to_stage)
        size = sum(_measure_bytes(job, file) for file in to_do)
        lines += [
            f"  input:     {_format_files([*inputs.available, *inputs.to_fetch])}",
            f"  processed: {num_staged:,} {noun} before, {len(to_do):,} {noun} to do, {format_size(size)}",
        ]
    if verify_inputs and inputs.available:
        lines.append(f"  verified:  {_format_files(inputs.available)}")
    return lines + (describe_articles(inputs.article_plan) if inputs.article_plan else [])


def _list_unstaged(job: ShardsJob, sources: Sequence[SourceFile]) -> list[SourceFile]:
    """List the sources that no earlier run has staged."""
    reports = set(job.storage.list_names(job.output.work_path("staged")))

    def is_staged(source: SourceFile) -> bool:
        path = job.output.input_digest_path(source.path, source.stamp)
        cached = read_report(job.storage, path, []) or {"md5": ""}
        return f"{source.stem}-{cached['md5'][:8]}.json" in reports

    staged = prefetch_map(job.storage, is_staged, sources)
    return [source for source, is_done in zip(sources, staged, strict=True) if not is_done]


def _measure_bytes(job: ShardsJob, file: SourceFile | RemoteFile) -> int:
    """Return the size of a file, or of the articles that it lists."""
    if isinstance(file, SourceFile) and is_article_list(file.path):
        return article_ranges.sum_selected_bytes(job.storage, file.path)
    return file.size


def describe_listings(listings: Mapping[str, SourceListing]) -> list[str]:
    """Return lines on the server of each source and its files in the mirror and to fetch."""
    lines = []
    for source, listing in listings.items():
        lines += [
            f"{source + ':':12} {listing.download_plan.server.base_url}, listed {listing.listed_at}",
            f"  mirror:    {listing.download_plan.mirror.folder}",
            f"  mirrored:  {_format_files(list(listing.mirrored))}",
            f"  to fetch:  {_format_files(listing.to_fetch)}",
        ]
    return lines


def describe_articles(plan: PmcArticlePlan) -> list[str]:
    """Return lines on PMC's articles in the mirror and to fetch."""
    mirror, server = plan.download_plan.mirror, plan.download_plan.server
    notices: list[str] = []
    with with_interactive_retry(server).connect() as connection:
        newest = bucket_inventory.find_newest(connection, server.base_url, notices.append)
    lines = [f"notice: {notice}" for notice in notices]
    lines.append(f"pmc:         {server.base_url}, newest inventory {newest.date}")
    inventory = bucket_inventory.read_inventory(mirror.storage, mirror.folder)
    if inventory is None:
        size = format_size(sum(data.size for data in newest.files))
        return [*lines, f"  inventory: {len(newest.files)} files, {size}; it says which articles there are"]
    if inventory.md5 != newest.md5:
        lines.append(
            f"  inventory: {inventory.date} is in the mirror and is used here; the newest is read first"
        )
    plans = list(
        prefetch_map(
            mirror.storage,
            lambda number: plan_range(mirror.storage, mirror.folder, number, plan.article_filter),
            plan.ranges,
        )
    )
    if plan.ranges_to_check and (problem := describe_removals(plans, mirror.folder)):
        lines.append(f"notice: a run would stop: {problem}")
    return [
        *lines,
        f"  articles:  {sum(ranges.listed for ranges in plans):,} in {len(plans):,} ranges of ids",
        f"  unknown:   {sum(ranges.unknown for ranges in plans):,}, whose metadata is read first",
        f"  selected:  {sum(ranges.selected for ranges in plans):,} of the others",
        f"  to fetch:  {sum(ranges.to_fetch for ranges in plans):,} of these",
        f"  mirrored:  {sum(ranges.mirrored for ranges in plans):,}",
        f"  to remove: {sum(ranges.removed for ranges in plans):,} of these",
    ]


def describe_shards(shards: Sequence[Shard], output: str, verb: str, done: Sequence[Shard]) -> list[str]:
    """Return lines on the document shards that a run reads.

    Args:
        verb: what is done to them.
        done: those of them that an earlier run has done.
    """
    size, done_size = (sum(shard.bytes for shard in items) for items in (shards, done))
    return [
        f"output:      {output}",
        f"  input:     {sum(shard.rows for shard in shards):,} documents in {len(shards):,} shards, "
        f"{format_size(size)}",
        f"  {verb + ':':10} {len(done):,} shards before, {len(shards) - len(done):,} to do, "
        f"{format_size(size - done_size)}",
    ]


def _format_files(files: Sequence[SourceFile | RemoteFile]) -> str:
    if not files:
        return "no files"
    names = files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name}"
    count = sum(file.num_files or 1 if isinstance(file, SourceFile) else 1 for file in files)
    return f"{count:,} files, {format_size(sum(file.size for file in files))} ({names})"
