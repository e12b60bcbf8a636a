"""``--dry-run`` of what is made of sources: what a run would fetch and process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, removals
from bioshards.corpus.download.pmc.removals import RangeRemovals
from bioshards.corpus.errors import escape_line
from bioshards.corpus.jats.inputs import is_article_list
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.dry_run import cost
from bioshards.pipelines.dry_run.cost import DryRunPlan, format_duration
from bioshards.pipelines.inputs.downloads import (
    SourceListing,
    check_free_space,
    format_size,
    with_interactive_retry,
)
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan
from bioshards.pipelines.job_types import FetchJob, ShardsJob

DOWNLOAD_MEGABYTES_PER_SECOND: Final = 20.0
"""Megabytes fetched a second over all connections: a guess, for want of a measurement.  From 4 connections
people report 90 on a fast link."""
INVENTORY_BYTES_PER_ARTICLE: Final = 26.4
"""Of an inventory's compressed files, for each article version (245 MB for 9.3 million, September 2026)."""
MEAN_ARTICLE_BYTES: Final = 190_000
"""Of an article's XML, in the mean of samples that people report."""
ARTICLES_PER_SECOND: Final = 60.0
"""Objects of PMC's bucket fetched a second: a guess for 64 connections, at 0.6 to 1.6 seconds an object, as
people report for one connection."""
_PACKED_SUFFIXES: Final = (".gz", ".tgz", ".zip")
_PACKED_TEXT_SUFFIXES: Final = (".gz", ".bz2", ".xz", ".zst", ".parquet")


def plan_shards(job: ShardsJob) -> DryRunPlan:
    """Plan a run that writes document shards."""
    run_inputs = job.run_inputs
    cached_reports = _load_staged_reports(job.storage, job.output_dir, run_inputs.available)
    to_stage = [source for source in run_inputs.available if source not in cached_reports]
    lines = ["dry run: nothing is fetched, nothing is written"]
    lines += [escape_line(f"notice: {notice}") for notice in run_inputs.notices]
    mirror_folders = {listing.download_plan.mirror.folder for listing in run_inputs.listings.values()}
    lines += [f"mirror:      {folder}" for folder in mirror_folders]
    for source, listing in run_inputs.listings.items():
        lines += _format_listing(source, listing)
    lines.append(f"output:      {job.output_dir.path}")
    if run_inputs.available or run_inputs.to_fetch:
        noun = "sources" if job.config["pipeline"] == "pmc_to_shards" else "files"
        lines += [
            f"  input:     {_format_files([*run_inputs.available, *run_inputs.to_fetch])}",
            f"  processed: {len(cached_reports):,} {noun} before, "
            f"{len(to_stage) + len(run_inputs.to_fetch):,} {noun} to do",
        ]
    if job.verify_inputs and run_inputs.available:
        lines.append(f"  verified:  {_format_files(run_inputs.available)}")
    to_do: list[SourceFile | RemoteFile] = [*to_stage, *run_inputs.to_fetch]
    seconds, rate_source = (
        sum(_estimate_core_seconds(job, file) for file in to_do),
        "as measured on one machine",
    )
    staged_seconds = sum(report["seconds"] for report in cached_reports.values())
    if staged_seconds > 1:
        seconds *= staged_seconds / sum(_estimate_core_seconds(job, source) for source in cached_reports)
        rate_source = "as here before"
    size: float = sum(_input_bytes(job, file) for file in to_do)
    store_wait_seconds = cost.estimate_source_wait(
        len(to_do), size, sum(_estimate_single_articles(job, source) for source in to_stage)
    )
    parallelism, fetch_seconds, fetch_note = len(to_stage), 0.0, ""
    for listing in run_inputs.listings.values():
        if listing.to_fetch:
            parallelism += min(len(listing.to_fetch), listing.download_plan.slots)
            fetch_seconds, fetch_note = max((fetch_seconds, fetch_note), _estimate_download(listing))
    if job.article_plan:
        articles = _plan_articles(job.article_plan)
        lines += articles.lines
        seconds, size = seconds + articles.core_seconds, size + articles.size
        parallelism, fetch_seconds = (
            parallelism + articles.parallelism,
            fetch_seconds + articles.fetch_seconds,
        )
        store_wait_seconds += articles.store_wait_seconds
    return DryRunPlan(
        lines, seconds, size, parallelism, store_wait_seconds, fetch_seconds, fetch_note, rate_source
    )


def plan_mirror(job: FetchJob) -> DryRunPlan:
    """Plan ``beam run fetch``."""
    lines = ["dry run: nothing is fetched, nothing is written", f"mirror:      {job.mirror.folder}"]
    seconds = fetch_seconds = 0.0
    parallelism = 0
    for source, listing in job.listings.items():
        source_seconds, line = _estimate_download(listing)
        lines += [f"notice: {notice}" for notice in listing.notices]
        lines += [
            *_format_listing(source, listing),
            f"  estimate:  {line}",
        ]
        seconds += _total_size(listing.to_fetch) / 1e6 / cost.DOWNLOAD_MB_PER_CORE_SECOND
        fetch_seconds = max(fetch_seconds, source_seconds)
        parallelism += min(len(listing.to_fetch), listing.download_plan.slots)
    if job.article_plan:
        articles = _plan_articles(job.article_plan)
        lines += articles.lines
        seconds += articles.size / MEAN_ARTICLE_BYTES * cost.OBJECT_DOWNLOAD_CORE_SECONDS
        fetch_seconds, parallelism = (
            max(fetch_seconds, articles.fetch_seconds),
            parallelism + articles.parallelism,
        )
    return DryRunPlan(lines, seconds, 0, parallelism, fetch_seconds=fetch_seconds)


def _plan_articles(article_plan: PmcArticlePlan) -> DryRunPlan:
    """Plan the download and the processing of PMC's articles."""
    mirror, server, slots = (
        article_plan.download_plan.mirror,
        article_plan.download_plan.server,
        article_plan.download_plan.slots,
    )
    with with_interactive_retry(server).connect() as connection:
        notices: list[str] = []
        newest_manifest = bucket_inventory.find_newest(connection, server.base_url, notices.append)
    cached_inventory = bucket_inventory.read_inventory(mirror.storage, mirror.folder)
    lines = [f"notice: {notice}" for notice in notices]
    lines += [f"pmc:         {server.base_url}, newest inventory {newest_manifest.date}"]
    if cached_inventory is None:
        packed_bytes = sum(data.size for data in newest_manifest.files)
        num_articles = packed_bytes / INVENTORY_BYTES_PER_ARTICLE
        lines += [
            f"  inventory: {len(newest_manifest.files)} files, {format_size(packed_bytes)}, some "
            f"{num_articles:,.0f} "
            "article versions; it is read first, then the metadata of each, which says what is selected",
            f"  estimate:  {format_duration(num_articles / ARTICLES_PER_SECOND)} for the metadata alone, at "
            f"{ARTICLES_PER_SECOND:.0f} objects a second (a guess)",
        ]
        size = num_articles * MEAN_ARTICLE_BYTES
        store_wait_seconds = cost.estimate_source_wait(len(article_plan.ranges), size, num_articles)
        fetch_seconds = 2 * num_articles / ARTICLES_PER_SECOND
        return DryRunPlan(
            lines,
            size / 1e6 / cost.ARTICLE_MB_PER_CORE_SECOND,
            size,
            slots,
            store_wait_seconds,
            fetch_seconds,
        )
    if cached_inventory.md5 != newest_manifest.md5:
        lines.append(
            f"  inventory: {cached_inventory.date} is in the mirror and is used here; the newest is read "
            "first"
        )
    counts = article_ranges.plan_ranges(
        mirror.storage, mirror.folder, article_plan.ranges, article_plan.article_filter
    )
    num_to_fetch = counts.selected - counts.mirrored
    seconds = (2 * counts.without_metadata + num_to_fetch) / ARTICLES_PER_SECOND

    def forecast_removals(number: int) -> RangeRemovals:
        return removals.forecast_removals(mirror.storage, mirror.folder, number, article_plan.article_filter)

    range_removals = prefetch_map(mirror.storage, forecast_removals, article_plan.ranges_to_check)
    if problem := removals.describe_removals(range_removals, mirror.folder):
        lines.append(f"notice: a run would stop: {problem}")
    lines += [
        f"  articles:  {counts.num_articles:,} in {len(article_plan.ranges):,} ranges of ids",
        f"  unknown:   {counts.without_metadata:,}, whose metadata is read first",
        f"  selected:  {counts.selected:,} of the others",
        f"  mirrored:  {counts.mirrored:,} of these",
        f"  to fetch:  {num_to_fetch:,}, some {format_size(num_to_fetch * MEAN_ARTICLE_BYTES)}",
        f"  surplus:   {counts.surplus:,} others in the mirror, which are taken out if they are not selected",
        *(
            f"notice: {notice}"
            for notice in check_free_space(mirror.folder, num_to_fetch * MEAN_ARTICLE_BYTES)
        ),
        f"  estimate:  {format_duration(seconds)}, at {ARTICLES_PER_SECOND:.0f} objects a second (a guess), "
        "if all "
        "unknown ones are selected",
    ]
    num_articles = num_to_fetch + counts.without_metadata
    size = num_articles * MEAN_ARTICLE_BYTES
    store_wait_seconds = cost.estimate_source_wait(len(article_plan.ranges), size, num_articles)
    return DryRunPlan(
        lines,
        size / 1e6 / cost.ARTICLE_MB_PER_CORE_SECOND,
        size,
        min(len(article_plan.ranges), slots),
        store_wait_seconds,
        seconds,
    )


def _format_files(files: Sequence[SourceFile | RemoteFile]) -> str:
    if not files:
        return "no files"
    names = files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name}"
    count = sum(file.num_files or 1 if isinstance(file, SourceFile) else 1 for file in files)
    return f"{count:,} files, {format_size(_total_size(files))} ({names})"


def _total_size(files: Iterable[SourceFile | RemoteFile]) -> int:
    return sum(file.size for file in files)


def _load_staged_reports(
    storage: Storage, output_dir: OutputDir, sources: Iterable[SourceFile]
) -> dict[SourceFile, Any]:
    """Load the reports of the sources that an earlier run staged."""
    digest_paths, report_paths = (
        {f"{folder}/{name}" for name in storage.list_names(folder)}
        for folder in (output_dir.input_digests_folder, output_dir.staged_folder)
    )
    digest_path_by_source = {
        source: path
        for source in sources
        if (path := output_dir.input_digest_path(source.path, source.stamp)) in digest_paths
    }
    reports = {
        source: output_dir.staged_path(f"{source.stem}-{digest['md5'][:8]}", "json")
        for source, digest in zip(
            digest_path_by_source,
            prefetch_map(storage, storage.read_json, digest_path_by_source.values()),
            strict=True,
        )
    }
    reports = {source: report for source, report in reports.items() if report in report_paths}
    return dict(zip(reports, prefetch_map(storage, storage.read_json, reports.values()), strict=True))


def _input_bytes(job: ShardsJob, file: SourceFile | RemoteFile) -> int:
    """Return the size of a file, or of the articles that it lists, in bytes."""
    if isinstance(file, SourceFile) and is_article_list(file.path):
        return article_ranges.sum_selected_bytes(job.storage, file.path)
    return file.size


def _estimate_single_articles(job: ShardsJob, source: SourceFile) -> float:
    """How many articles of a source lie there by themselves, about."""
    return (
        _input_bytes(job, source) / MEAN_ARTICLE_BYTES if is_article_list(source.path) else source.num_files
    )


def _estimate_core_seconds(job: ShardsJob, file: SourceFile | RemoteFile) -> float:
    """How long one core stages and finishes a file, by what was measured elsewhere."""
    if job.config["pipeline"] == "pubmed_to_shards":
        rate = cost.PUBMED_MB_PER_CORE_SECOND
    elif job.config["pipeline"] == "text_to_shards":
        is_packed = file.name.lower().endswith(_PACKED_TEXT_SUFFIXES)
        rate = cost.PACKED_TEXT_MB_PER_CORE_SECOND if is_packed else cost.TEXT_MB_PER_CORE_SECOND
    elif file.name.lower().endswith(_PACKED_SUFFIXES):
        rate = cost.PACKED_ARTICLE_MB_PER_CORE_SECOND
    else:
        rate = cost.ARTICLE_MB_PER_CORE_SECOND
    return _input_bytes(job, file) / 1e6 / rate


def _format_listing(source: str, listing: SourceListing) -> list[str]:
    """Return lines on the server of a source and its files in the mirror and to fetch."""
    return [
        f"{source + ':':12} {listing.download_plan.server.base_url}, listed {listing.listed_at}",
        f"  mirrored:  {_format_files(list(listing.mirrored))}",
        f"  to fetch:  {_format_files(listing.to_fetch)}",
    ]


def _estimate_download(listing: SourceListing) -> tuple[float, str]:
    """Return the seconds of downloading a listing's files, and a note with the rate and its source."""
    connections = listing.download_plan.connections
    megabytes_per_second, rate_source = DOWNLOAD_MEGABYTES_PER_SECOND, "a guess"
    if listing.download_rate:
        megabytes_per_second, rate_source = (
            connections * listing.download_rate / 1e6,
            f"as here before, {connections} connections",
        )
    seconds = _total_size(listing.to_fetch) / 1e6 / megabytes_per_second
    return seconds, f"{format_duration(seconds)} of fetching, {megabytes_per_second:.1f} MB/s ({rate_source})"
