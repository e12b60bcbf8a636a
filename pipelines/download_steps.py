"""Steps that download, as workers call them: files of listings, and PMC's articles by ranges of ids.

A slot downloads with its share of the connections; while it downloads the next item, the one before is
staged.  Download and staging are one step, otherwise staging would wait for all downloads.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from bioshards.corpus.download import mirror_manifest
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import MirroredFile, distrust_copy
from bioshards.corpus.download.mirror_manifest import FetchedFile
from bioshards.corpus.download.pmc import article_ranges, range_plan
from bioshards.corpus.download.pmc.article_ranges import RangeReport
from bioshards.corpus.download.pmc.metadata_cache import RangeUpdate
from bioshards.corpus.download.pmc.range_plan import RangePlan
from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.errors import MAX_SHOWN, BadFileError
from bioshards.corpus.jats import inputs as article_inputs
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult
from bioshards.corpus.lifecycle.stage import stage_source
from bioshards.corpus.manifest import MirrorArticles, MirrorConfig, MirrorRun
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.source_record import DAMAGED_COPY
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.pipelines.inputs.downloads import DownloadPlan, stream_downloads
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan
from bioshards.pipelines.steps import Done, Job, run_step

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchJob:
    """Sources to a mirror of verified files.

    Attributes:
        output: the mirror as an output directory, for its manifest and work folder.
        config: the options, as the manifest has them; they may change from run to run.
        max_rejected: accepted fraction of articles that could not be fetched.
        run: facts about this run; the last step completes them.
    """

    storage: Storage
    output: OutputDir
    config: MirrorConfig
    max_rejected: float
    run: MirrorRun


def stage_file(job: ShardsJob, source: SourceFile) -> StageResult:
    """Stage a file; a damaged copy of a mirror is verified by the next run, which downloads it again."""
    stage_result = stage_source(job, source)
    if not source.retrieved_at:
        return stage_result
    if stage_result.rejection:
        distrust_copy(job.storage, source.path)
        reason, detail = stage_result.rejection
        detail += "; rerun the command, which downloads it again if the mirror's copy is damaged"
        return dataclasses.replace(stage_result, rejection=(reason, detail))
    return stage_result


# Files of listings


def fetch_and_stage(
    job: ShardsJob,
    remote_files: list[RemoteFile],
    download_plan: DownloadPlan,
    make_source: Callable[..., SourceFile],
) -> Iterator[Done[StageResult | None]]:
    """Download, verify and stage the files of a slot."""
    for remote_file, outcome in stream_downloads(download_plan, remote_files):
        if isinstance(outcome, BadFileError):
            missing = make_source(FileInfo(download_plan.mirror.path(remote_file), 0, ""))
            rejection = (outcome.reason, outcome.detail)
            yield _measure_download(outcome, StageResult(missing, None, None, rejection=rejection))
        else:
            yield _measure_download(outcome, None)
            yield run_step("stage", stage_file, job, make_source(outcome.info, outcome.retrieved_at))


def fetch_files(
    job: Job,
    remote_files: list[RemoteFile],
    source: str,
    download_plan: DownloadPlan,
    checked: Sequence[None],
) -> Iterator[Done[FetchedFile | None]]:
    """Download and verify the files of a slot."""
    for remote_file, outcome in stream_downloads(download_plan, remote_files):
        if isinstance(outcome, MirroredFile):
            yield _measure_download(outcome, FetchedFile(source, remote_file, outcome))
        else:
            yield _measure_download(outcome, FetchedFile(source, remote_file, None, outcome.detail))


def _measure_download(outcome: MirroredFile | BadFileError, result: T) -> Done[T]:
    """Return a result with the metrics of a download."""
    if isinstance(outcome, BadFileError):
        return Done("fetch", result, 0, {"items": 1, "skipped": 0, "failed": 1, "bytes": 0})
    size = outcome.fetched_bytes
    milliseconds = round(1000 * outcome.download_seconds) if size else 0
    return Done("fetch", result, milliseconds, {"items": 1, "skipped": int(not size), "bytes": size})


# PMC's articles


def find_removals(
    job: Job, numbers: list[int], article_plan: PmcArticlePlan
) -> Iterator[Done[RangePlan | None]]:
    """Find what would be removed of the ranges of a slot; nothing is removed yet."""
    for update in _make_updates(article_plan, numbers):
        yield run_step("removals", range_plan.find_removals, update)


def check_removals(job: Job, found: Sequence[RangePlan], mirror: str) -> None:
    """Check that few of the mirror's articles would be removed, and mark the output as incomplete.

    It is marked only then, so that a run that is stopped here leaves it finished.  Whatever removes or
    replaces something waits for this step.

    Args:
        mirror: folder of the mirror.

    Raises:
        RemovalError: too many would be.
    """
    range_plan.check_removals(found, mirror)
    output_layout.mark_incomplete(job.storage, job.output)


def fetch_ranges(
    job: Job, numbers: list[int], article_plan: PmcArticlePlan, checked: Sequence[None]
) -> Iterator[Done[RangeReport | None]]:
    """Download the ranges of a slot, one after the other, and write each one's report into the mirror."""
    for update in _make_updates(article_plan, numbers):
        yield run_step("ranges", _fetch_range, update)


def _fetch_range(update: RangeUpdate) -> RangeReport:
    report = article_ranges.fetch_range(update)
    path = f"{update.mirror}/pmc/reports/{range_label(update.number)}.json"
    update.storage.write_json(path, msgspec.to_builtins(report))
    return report


def fetch_and_stage_ranges(
    job: ShardsJob, numbers: list[int], article_plan: PmcArticlePlan, checked: Sequence[None]
) -> Iterator[Done[StageResult | None]]:
    """Download the ranges of a slot, and stage the articles of each while the next one is downloaded."""
    for fetched in _prefetch_one(fetch_ranges(job, numbers, article_plan, checked)):
        yield Done(fetched.step, None, fetched.milliseconds, fetched.counts)
        assert fetched.result is not None
        report = fetched.result
        if report.selected or report.failures:
            yield run_step("stage", _stage_range, job, article_plan, report)


def _stage_range(job: ShardsJob, article_plan: PmcArticlePlan, report: RangeReport) -> StageResult:
    """Stage the articles in the list of a range."""
    mirror = article_plan.download_plan.mirror
    [list_file] = mirror.storage.glob(article_ranges.selected_path(mirror.folder, report.range_number))
    staged = stage_file(job, article_inputs.source_from_file(list_file))
    if DAMAGED_COPY in staged.rejected:
        article_ranges.remove_damaged(mirror.storage, mirror.folder, report.range_number)
    return dataclasses.replace(
        staged,
        not_fetched=len(report.failures),
        fetch_errors=tuple(failure.detail for failure in report.failures[:MAX_SHOWN]),
    )


def _prefetch_one(items: Iterator[T]) -> Iterator[T]:
    """Prefetch one item: compute the next while the caller uses the current one."""
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(next, items, None)
        while (item := future.result()) is not None:
            future = executor.submit(next, items, None)
            yield item


def _make_updates(article_plan: PmcArticlePlan, numbers: list[int]) -> Iterator[RangeUpdate]:
    """Yield the updates of a slot of ranges, which share their connections."""
    plan = article_plan.download_plan
    pool = DownloadPool(plan.server_for_slot(range_label(numbers[0])), plan.threads_per_slot)
    for number in numbers:
        yield RangeUpdate(
            storage=plan.mirror.storage,
            mirror=plan.mirror.folder,
            pool=pool,
            number=number,
            article_filter=article_plan.article_filter,
            today=datetime.now(UTC).date(),
        )


# The mirror


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Result of the last step, for the process that started the run.

    Attributes:
        problem: None if the manifest was written, else the reason.
        files: number of files in the mirror; ``fetched``: of those that this run has fetched.
        bytes: size of the latter.
        articles: selected articles of PMC; None if none were requested.
    """

    problem: str | None
    files: int
    fetched: int
    bytes: int
    articles: MirrorArticles | None
    articles_cached: int
    articles_fetched: int
    articles_removed: int
    articles_withdrawn: dict[str, int]
    articles_bytes: int

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"failed": int(self.problem is not None)}


def publish_mirror(
    job: FetchJob,
    mirrored: Sequence[FetchedFile],
    fetched: Sequence[FetchedFile],
    ranges: Sequence[RangeReport],
) -> FetchResult:
    """Write the manifest of the mirror, if it is complete.

    Args:
        mirrored: files that were in the mirror.
    """
    manifest = mirror_manifest.build_manifest(job.config, [*mirrored, *fetched], ranges, job.run)
    withdrawn = Counter[str]()
    for report in ranges:
        withdrawn.update(report.withdrawn)
    problem = mirror_manifest.publish_mirror(
        job.storage, job.output.manifest_path, manifest, job.max_rejected
    )
    fetched_sizes = [file.mirrored_file.fetched_bytes for file in fetched if file.mirrored_file]
    return FetchResult(
        problem=problem,
        files=len(manifest.files),
        fetched=sum(size > 0 for size in fetched_sizes),
        bytes=sum(fetched_sizes),
        articles=manifest.articles,
        articles_cached=sum(report.mirrored for report in ranges),
        articles_fetched=sum(report.fetched for report in ranges),
        articles_removed=sum(report.removed for report in ranges),
        articles_withdrawn=dict(sorted(withdrawn.items())),
        articles_bytes=sum(report.fetched_bytes for report in ranges),
    )
