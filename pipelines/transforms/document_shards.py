"""PTransforms of the pipelines that write document shards.

The elements between them are names, counts and reports.  Text goes from the source file to the staged shard,
and from there to the final shard, inside one call each.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import msgspec

from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import distrust_copy
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.lifecycle import finalize, publish, stage, versions
from bioshards.corpus.lifecycle.finalize import FinalizeResult
from bioshards.corpus.lifecycle.id_lists import IdList
from bioshards.corpus.lifecycle.publish import PublishResult
from bioshards.corpus.lifecycle.stage import StageResult
from bioshards.corpus.manifest import DocumentsRun, OverlapFile, utc_now
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.corpus.text_config import TextConfig
from bioshards.pipelines.inputs.downloads import DownloadPlan, split_into_slots, stream_downloads
from bioshards.pipelines.job_types import ShardsJob
from bioshards.pipelines.transforms.near_duplicates import ResolveNearDuplicates
from bioshards.pipelines.transforms.step_metrics import (
    StepResult,
    call_once,
    metrics_from_download,
    report_metrics,
    run_step,
    sum_metrics,
    unwrap_results,
    wrap_worker_errors,
)


@dataclass
class StageFiles(beam.PTransform):
    """Source files to :class:`StageResult`: reads, parses and splits each file once."""

    storage: Storage
    output_dir: OutputDir
    document_config: TextConfig
    keep_dropped: bool
    has_digests: bool
    has_signatures: bool = False
    has_inclusion_list: bool = False

    def expand(self, sources: beam.PCollection[SourceFile]) -> beam.PCollection[StepResult[StageResult]]:
        return sources | "OneFileEach" >> beam.Reshuffle() | "Stage" >> beam.Map(self._stage)

    def _stage(self, source: SourceFile) -> StepResult[StageResult]:
        return report_metrics(self.stage_one(source))

    def stage_one(self, source: SourceFile) -> StepResult[StageResult]:
        """Stage one file."""

        def stage_file(storage: Storage) -> StageResult:
            stage_result = stage.stage_source(
                storage,
                self.output_dir,
                source,
                self.document_config,
                self.keep_dropped,
                self.has_digests,
                self.has_signatures,
                self.has_inclusion_list,
            )
            if source.retrieved_at and stage_result.rejection:
                distrust_copy(storage, source.path)
                reason, detail = stage_result.rejection
                detail += "; rerun the command, which downloads it again if the mirror's copy is damaged"
                return dataclasses.replace(stage_result, rejection=(reason, detail))
            return stage_result

        return run_step("stage", self.storage, stage_file, _counts_from_stage)


def _counts_from_stage(stage_result: StageResult) -> dict[str, int]:
    return {
        "failed": int(stage_result.rejection is not None),
        "records": stage_result.records,
        "deletions": stage_result.deletions,
        **{f"rejected_{reason}": count for reason, count in stage_result.rejected.items()},
    }


@dataclass
class FetchAndStage(beam.PTransform):
    """Slots of files to :class:`StageResult`: downloads, verifies and stages each file.

    A slot stages one file while it downloads the next ones.  Download and staging are one DoFn; otherwise
    staging would wait for all downloads.  The number of slots bounds the load on the server (downloads.py).
    """

    download_plan: DownloadPlan
    stage_files: StageFiles
    make_source: Callable[..., SourceFile]

    def expand(self, slots: beam.PCollection[list[RemoteFile]]) -> beam.PCollection[StepResult[StageResult]]:
        return slots | "OneSlotEach" >> beam.Reshuffle() | "FetchAndStage" >> beam.FlatMap(self._process_slot)

    def _process_slot(self, remote_files: list[RemoteFile]) -> Iterator[StepResult[StageResult]]:
        with wrap_worker_errors():
            for remote_file, outcome in stream_downloads(self.download_plan, remote_files):
                if isinstance(outcome, BadFileError):
                    missing = self.make_source(FileInfo(self.download_plan.mirror.path(remote_file), 0, ""))
                    step_result = StepResult(
                        StageResult(missing, None, None, rejection=(outcome.reason, outcome.detail)), ()
                    )
                else:
                    step_result = self.stage_files.stage_one(
                        self.make_source(outcome.info, outcome.retrieved_at)
                    )
                yield report_metrics(
                    StepResult(step_result.result, (metrics_from_download(outcome), *step_result.metrics))
                )


@dataclass
class ResolveVersions(beam.PTransform):
    """All :class:`StageResult` to the path of each bucket's version decisions."""

    storage: Storage
    output_dir: OutputDir
    document_config: TextConfig

    def expand(self, staged: beam.PCollection[StepResult[StageResult]]) -> beam.PCollection[StepResult[str]]:
        all_staged = beam.pvalue.AsList(staged)
        return _spread_buckets(staged, all_staged) | "Resolve" >> beam.Map(self._resolve, all_staged)

    def _resolve(self, bucket: int, staged: list[StepResult[StageResult]]) -> StepResult[str]:
        num_buckets = len(_list_buckets(b"", staged))
        highest_version_wins = self.document_config.highest_version_wins

        def resolve_bucket(storage: Storage) -> str:
            return finalize.write_version_decisions(
                storage, self.output_dir, unwrap_results(staged), bucket, num_buckets, highest_version_wins
            )

        return report_metrics(run_step("versions", self.storage, resolve_bucket))


@dataclass
class ResolveDuplicates(beam.PTransform):
    """All :class:`StageResult` to the path of each bucket's duplicate decisions."""

    storage: Storage
    output_dir: OutputDir
    decisions: beam.PCollection[StepResult[str]]

    def expand(self, staged: beam.PCollection[StepResult[StageResult]]) -> beam.PCollection[StepResult[str]]:
        all_staged = beam.pvalue.AsList(staged)
        resolve = beam.Map(self._resolve, all_staged, beam.pvalue.AsList(self.decisions))
        return _spread_buckets(staged, all_staged) | "Resolve" >> resolve

    def _resolve(
        self, bucket: int, staged: list[StepResult[StageResult]], decisions: list[StepResult[str]]
    ) -> StepResult[str]:
        num_buckets, decision_files = len(_list_buckets(b"", staged)), unwrap_results(decisions)

        def resolve_bucket(storage: Storage) -> str:
            return finalize.write_duplicate_decisions(
                storage, self.output_dir, unwrap_results(staged), decision_files, bucket, num_buckets
            )

        return report_metrics(run_step("duplicates", self.storage, resolve_bucket))


def _spread_buckets(
    staged: beam.PCollection[StepResult[StageResult]], all_staged: beam.pvalue.AsList
) -> beam.PCollection[int]:
    """Distribute the bucket numbers over the workers."""
    return (
        staged.pipeline
        | "Once" >> beam.Impulse()
        | "Buckets" >> beam.FlatMap(_list_buckets, all_staged)
        | "OneBucketEach" >> beam.Reshuffle()
    )


def _list_buckets(_: bytes, staged: Iterable[StepResult[StageResult]]) -> range:
    return range(versions.count_buckets(sum(source.num_keys for source in unwrap_results(staged))))


@dataclass
class FinalizeShards(beam.PTransform):
    """All :class:`StageResult` to a :class:`FinalizeResult` for each usable one."""

    storage: Storage
    output_dir: OutputDir
    keep_dropped: bool
    max_shard_bytes: int
    exclusion_list: IdList | None
    has_inclusion_list: bool
    decisions: beam.PCollection[StepResult[str]]

    def expand(
        self, staged: beam.PCollection[StepResult[StageResult]]
    ) -> beam.PCollection[StepResult[FinalizeResult]]:
        return (
            staged.pipeline
            | "Once" >> beam.Impulse()
            | "InOrder" >> beam.FlatMap(_number_sources, beam.pvalue.AsList(staged))
            | "OneSourceEach" >> beam.Reshuffle()
            | "Finalize" >> beam.Map(self._finalize, beam.pvalue.AsList(self.decisions))
        )

    def _finalize(
        self, index_and_name: tuple[int, str], decisions: list[StepResult[str]]
    ) -> StepResult[FinalizeResult]:
        index, name = index_and_name
        exclusion_digest = self.exclusion_list.sha256 if self.exclusion_list else None
        decision_files = unwrap_results(decisions)

        def finalize_source(storage: Storage) -> FinalizeResult:
            return finalize.finalize_source(
                storage,
                self.output_dir,
                name,
                index,
                decision_files,
                self.keep_dropped,
                self.max_shard_bytes,
                exclusion_digest,
                self.has_inclusion_list,
            )

        return report_metrics(run_step("finalize", self.storage, finalize_source, _counts_from_finalize))


def _counts_from_finalize(finalize_result: FinalizeResult) -> dict[str, int]:
    drop_counts = {
        "kept" if reason == "kept" else f"dropped_{reason}": count
        for reason, count in finalize_result.funnel.items()
    }
    return {**drop_counts, **{name: finalize_result.counts[name] for name in ("sentences", "words")}}


def _number_sources(_: bytes, staged: list[StepResult[StageResult]]) -> list[tuple[int, str]]:
    """Return the number and output name of each usable source, those with most keys first."""
    results = unwrap_results(staged)
    num_keys = {result.output_name: result.num_keys for result in results}
    numbered = enumerate(finalize.usable_output_names(results))
    return sorted(numbered, key=lambda source: -num_keys[source[1]])


@dataclass
class PublishShards(beam.PTransform):
    """All results to one :class:`PublishResult`: writes the manifest, last."""

    storage: Storage
    output_dir: OutputDir
    document_config: TextConfig
    config: dict[str, Any]
    max_rejected: float
    max_bad_files: float
    exclusion_list: IdList | None
    inclusion_list: IdList | None
    run_info: DocumentsRun
    decisions: beam.PCollection[StepResult[str]]
    finalized: beam.PCollection[StepResult[FinalizeResult]]
    overlap: beam.PCollection[StepResult[OverlapFile]] | None = None

    def expand(self, staged: beam.PCollection[StepResult[StageResult]]) -> beam.PCollection[PublishResult]:
        results = [staged, self.decisions, self.finalized, *([self.overlap] if self.overlap else [])]
        return call_once(staged.pipeline, "Manifest", self._publish, *results)

    def _publish(
        self,
        _: bytes,
        staged: list[StepResult[StageResult]],
        decisions: list[StepResult[str]],
        finalized: list[StepResult[FinalizeResult]],
        overlap: Sequence[StepResult[OverlapFile]] = (),
    ) -> PublishResult:
        steps = sum_metrics(staged, decisions, finalized, overlap)
        run_info = msgspec.structs.replace(self.run_info, finished_at=utc_now(), steps=steps)

        def publish_output(storage: Storage) -> PublishResult:
            publish_result = publish.publish_output(
                storage,
                self.output_dir,
                self.document_config,
                self.config,
                unwrap_results(staged),
                unwrap_results(finalized),
                self.max_rejected,
                self.max_bad_files,
                run_info,
                unwrap_results(overlap),
                self.exclusion_list,
                self.inclusion_list,
            )
            result_fields = {name: getattr(publish_result, name) for name in PublishResult.__slots__}
            storage.write_json(self.output_dir.result_path, result_fields)
            return publish_result

        return report_metrics(run_step("publish", self.storage, publish_output, _counts_from_publish)).result


def _counts_from_publish(publish_result: PublishResult) -> dict[str, int]:
    return {
        "records": publish_result.records,
        "documents": publish_result.documents,
        "failed": int(bool(publish_result.problem)),
    }


def stage_inputs(
    pipeline: beam.Pipeline, job: ShardsJob, stage_files: StageFiles, make_source: Callable[..., SourceFile]
) -> list[beam.PCollection[StepResult[StageResult]]]:
    """Stage the files of a job, and those that are downloaded by name: a collection for each origin."""
    # Runners deal elements out in turn: with the largest first, workers end at nearly the same time.
    largest_first = sorted(job.sources, key=lambda source: -source.size)
    sources = pipeline | "Sources" >> beam.Create(largest_first, reshuffle=False)
    staged_collections = [sources | "StageFiles" >> stage_files]
    for source, listing in job.run_inputs.listings.items():
        if listing.to_fetch:
            file_slots = split_into_slots(listing.to_fetch, listing.download_plan)
            staged_collections.append(
                pipeline
                | f"Slots of {source}" >> beam.Create(file_slots, reshuffle=False)
                | f"Fetch and stage {source}"
                >> FetchAndStage(listing.download_plan, stage_files, make_source)
            )
    return staged_collections


def make_stage_files(job: ShardsJob) -> StageFiles:
    """Return the transform that stages the source files of a job."""
    return StageFiles(
        job.storage,
        job.output_dir,
        job.document_config,
        job.keep_dropped,
        has_digests=job.dedup == "exact",
        has_signatures=job.dedup == "near",
        has_inclusion_list=job.inclusion_list is not None,
    )


def finalize_documents(
    staged: beam.PCollection[StepResult[StageResult]], job: ShardsJob
) -> tuple[beam.PCollection[StepResult[str]], beam.PCollection[StepResult[FinalizeResult]]]:
    """Resolve versions and duplicates, and finalize the shards; return the decisions and the results."""
    decisions = staged | "ResolveVersions" >> ResolveVersions(
        job.storage, job.output_dir, job.document_config
    )
    if job.dedup != "none":
        resolve = ResolveDuplicates if job.dedup == "exact" else ResolveNearDuplicates
        duplicate_decisions = staged | "ResolveDuplicates" >> resolve(job.storage, job.output_dir, decisions)
        decisions = (decisions, duplicate_decisions) | "Decisions" >> beam.Flatten()
    finalized = staged | "FinalizeShards" >> FinalizeShards(
        job.storage,
        job.output_dir,
        job.keep_dropped,
        job.max_shard_bytes,
        job.exclusion_list,
        job.inclusion_list is not None,
        decisions,
    )
    return decisions, finalized


def publish_documents(
    staged: beam.PCollection[StepResult[StageResult]],
    job: ShardsJob,
    decisions: beam.PCollection[StepResult[str]],
    finalized: beam.PCollection[StepResult[FinalizeResult]],
    overlap: beam.PCollection[StepResult[OverlapFile]] | None = None,
) -> None:
    """Publish the output of a job."""
    staged | "Publish" >> PublishShards(
        job.storage,
        job.output_dir,
        job.document_config,
        job.config,
        job.max_rejected,
        job.max_bad_files,
        job.exclusion_list,
        job.inclusion_list,
        job.run_info,
        decisions,
        finalized,
        overlap,
    )
