"""PTransforms of ``beam run fetch``; their elements are reports, files are written to the mirror."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import msgspec

from bioshards.corpus.download import mirror_manifest
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.mirror_manifest import FetchedFile
from bioshards.corpus.download.pmc import article_ranges, removals
from bioshards.corpus.download.pmc.article_ranges import RangeReport, RangeUpdate
from bioshards.corpus.download.pmc.removals import RangeRemovals
from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.manifest import Steps, utc_now
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.inputs.downloads import DownloadPlan, split_into_slots, stream_downloads
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan
from bioshards.pipelines.transforms.step_metrics import (
    StepResult,
    call_once,
    count_failure,
    metrics_from_download,
    report_metrics,
    run_step,
    sum_metrics,
    unwrap_results,
    wrap_worker_errors,
)

if TYPE_CHECKING:
    from bioshards.pipelines.job_types import FetchJob


@dataclass
class FetchFiles(beam.PTransform):
    """Slots of a source's files to a :class:`FetchedFile` for each."""

    source: str
    download_plan: DownloadPlan
    checked: beam.PCollection[None]

    def expand(self, slots: beam.PCollection[list[RemoteFile]]) -> beam.PCollection[StepResult[FetchedFile]]:
        return (
            slots
            | "OneSlotEach" >> beam.Reshuffle()
            | "Fetch" >> beam.FlatMap(self._process_slot, beam.pvalue.AsList(self.checked))
        )

    def default_label(self) -> str:
        return f"Fetch {self.source}"

    def _process_slot(
        self, remote_files: list[RemoteFile], _checked: list[None]
    ) -> Iterator[StepResult[FetchedFile]]:
        with wrap_worker_errors():
            for remote_file, outcome in stream_downloads(self.download_plan, remote_files):
                if isinstance(outcome, MirroredFile):
                    fetched_file = FetchedFile(self.source, remote_file, outcome)
                else:
                    fetched_file = FetchedFile(self.source, remote_file, None, outcome.detail)
                yield report_metrics(StepResult(fetched_file, (metrics_from_download(outcome),)))


@dataclass
class FindRemovals(beam.PTransform):
    """The ranges of PMC ids in the mirror to a :class:`RangeRemovals` for each; nothing is removed yet."""

    article_plan: PmcArticlePlan

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[StepResult[RangeRemovals]]:
        slots = split_into_slots(self.article_plan.ranges_to_check, self.article_plan.download_plan)
        return (
            pipeline
            | "Slots" >> beam.Create(slots, reshuffle=False)
            | "OneSlotEach" >> beam.Reshuffle()
            | "Find" >> beam.FlatMap(self._process_slot)
        )

    def _process_slot(self, numbers: list[int]) -> Iterator[StepResult[RangeRemovals]]:
        for update in _make_updates(self.article_plan, numbers):
            yield report_metrics(
                run_step(
                    "removals",
                    update.storage,
                    functools.partial(_find_removals, update=update),
                    lambda range_removals: {"articles": range_removals.removed},
                )
            )


def _find_removals(storage: Storage, update: RangeUpdate) -> RangeRemovals:
    return removals.find_removals(dataclasses.replace(update, storage=storage))


@dataclass
class CheckRemovals(beam.PTransform):
    """All :class:`RangeRemovals` to one None, if few of the mirror's articles would be removed.

    The output is marked as incomplete only then, so that a run that is stopped here leaves it finished.
    Whatever removes or replaces something waits for this step.
    """

    mirror: Mirror
    output_dir: OutputDir

    def expand(self, range_removals: beam.PCollection[StepResult[RangeRemovals]]) -> beam.PCollection[None]:
        return call_once(range_removals.pipeline, "Check", self._check, range_removals)

    def _check(self, _: bytes, range_removals: list[StepResult[RangeRemovals]]) -> None:
        with wrap_worker_errors():
            removals.check_removals(unwrap_results(range_removals), self.mirror.folder)
            retry(lambda: output_layout.mark_incomplete(self.mirror.storage, self.output_dir))


@dataclass
class FetchRanges(beam.PTransform):
    """Slots of ranges of PMC ids to a :class:`RangeReport` for each; its articles are in the mirror."""

    article_plan: PmcArticlePlan
    checked: beam.PCollection[None]

    def expand(self, slots: beam.PCollection[list[int]]) -> beam.PCollection[StepResult[RangeReport]]:
        return (
            slots
            | "OneSlotEach" >> beam.Reshuffle()
            | "Fetch" >> beam.FlatMap(self._process_slot, beam.pvalue.AsList(self.checked))
        )

    def _process_slot(self, numbers: list[int], _checked: list[None]) -> Iterator[StepResult[RangeReport]]:
        with wrap_worker_errors():
            for result in fetch_ranges(self.article_plan, numbers):
                yield report_metrics(result)


def fetch_ranges(article_plan: PmcArticlePlan, numbers: list[int]) -> Iterator[StepResult[RangeReport]]:
    """Download ranges into the mirror, one after the other, and write each one's report there."""
    for update in _make_updates(article_plan, numbers):
        yield run_step(
            "ranges", update.storage, functools.partial(_fetch_range, update=update), _counts_from_range
        )


def _fetch_range(storage: Storage, update: RangeUpdate) -> RangeReport:
    range_report = article_ranges.fetch_range(dataclasses.replace(update, storage=storage))
    path = f"{update.mirror}/pmc/reports/{range_label(update.number)}.json"
    storage.write_json(path, dataclasses.asdict(range_report))
    return range_report


def _make_updates(article_plan: PmcArticlePlan, numbers: list[int]) -> Iterator[RangeUpdate]:
    """Yield the updates of a slot of ranges, which share their connections."""
    plan = article_plan.download_plan
    pool = DownloadPool(plan.server_for_slot(range_label(numbers[0])), plan.threads_per_slot)
    for number in numbers:
        yield RangeUpdate(
            storage=plan.mirror.storage,
            mirror=plan.mirror.folder,
            base_url=plan.server.base_url,
            pool=pool,
            number=number,
            article_filter=article_plan.article_filter,
            today=datetime.now(UTC).date(),
        )


_INVALID_IN_METRIC_NAME = re.compile(r"[^A-Za-z0-9]+")
"""What is in reasons (``licence:CC BY-NC``) and better not in the name of a metric."""


def _counts_from_range(range_report: RangeReport) -> dict[str, int]:
    return {
        "articles_selected": range_report.selected,
        "articles_cached": range_report.mirrored,
        "articles_fetched": range_report.fetched,
        "articles_removed": range_report.removed,
        "articles_bytes": range_report.fetched_bytes,
        "articles_failed": len(range_report.failures),
        **{
            f"dropped_{_INVALID_IN_METRIC_NAME.sub('-', reason)}": count
            for reason, count in range_report.dropped.items()
        },
    }


@dataclass
class PublishMirror(beam.PTransform):
    """All download results to the mirror's manifest, written last."""

    job: FetchJob
    files: beam.PCollection[StepResult[FetchedFile]]
    range_removals: beam.PCollection[StepResult[RangeRemovals]]
    ranges: beam.PCollection[StepResult[RangeReport]]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection[None]:
        return call_once(pipeline, "Manifest", self._publish, self.files, self.range_removals, self.ranges)

    def _publish(
        self,
        _: bytes,
        file_results: list[StepResult[FetchedFile]],
        removal_results: list[StepResult[RangeRemovals]],
        range_results: list[StepResult[RangeReport]],
    ) -> None:
        steps = sum_metrics(file_results, removal_results, range_results)

        def publish_mirror(storage: Storage) -> dict[str, Any]:
            return _publish_mirror(
                storage, self.job, unwrap_results(file_results), unwrap_results(range_results), steps
            )

        report_metrics(
            run_step(
                "publish",
                self.job.mirror.storage,
                publish_mirror,
                lambda outcome: count_failure(outcome["problem"]),
            )
        )


def _publish_mirror(
    storage: Storage,
    job: FetchJob,
    fetched_files: list[FetchedFile],
    range_reports: list[RangeReport],
    steps: Steps,
) -> dict[str, Any]:
    """Write the manifest and the result file; return the result."""
    mirrored_files = [
        FetchedFile(source, remote_file, mirrored_file)
        for source, listing in job.listings.items()
        for remote_file, mirrored_file in listing.mirrored.items()
    ]
    run_info = msgspec.structs.replace(job.run_info, finished_at=utc_now(), steps=steps)
    manifest = mirror_manifest.build_manifest(
        job.config, [*mirrored_files, *fetched_files], range_reports, run_info
    )
    outcome = {
        "problem": mirror_manifest.publish_mirror(
            storage, job.output_dir.manifest_path, manifest, job.max_rejected
        ),
        "mirrored": len(mirrored_files),
        "fetched": sum(
            1 for file in fetched_files if file.mirrored_file and file.mirrored_file.fetched_bytes
        ),
        "files": len(manifest.files),
        "bytes": sum(file.mirrored_file.fetched_bytes for file in fetched_files if file.mirrored_file),
        "articles": msgspec.to_builtins(manifest.articles),
        "articles_cached": sum(range_report.mirrored for range_report in range_reports),
        "articles_fetched": sum(range_report.fetched for range_report in range_reports),
        "articles_removed": sum(range_report.removed for range_report in range_reports),
        "articles_bytes": sum(range_report.fetched_bytes for range_report in range_reports),
    }
    storage.write_json(job.output_dir.result_path, outcome)
    return outcome
