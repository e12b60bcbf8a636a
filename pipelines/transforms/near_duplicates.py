"""PTransforms that find near duplicates.  Elements are numbers of bands and buckets, and paths of files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import apache_beam as beam

from bioshards.corpus.lifecycle import finalize, near_duplicate_files, near_duplicates
from bioshards.corpus.lifecycle.near_duplicate_files import SignatureSource
from bioshards.corpus.lifecycle.stage import StageResult
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.transforms.step_metrics import StepResult, report_metrics, run_step, unwrap_results

ReportT = TypeVar("ReportT")


@dataclass
class FindNearDuplicates(beam.PTransform, ABC, Generic[ReportT]):
    """Reports on signatures to the path of the decisions: compares a bucket of a band at a time."""

    storage: Storage
    output_dir: OutputDir
    decisions: beam.PCollection[StepResult[str]] | None = None

    @abstractmethod
    def count_documents(self, reports: list[ReportT]) -> int:
        """Return the number of documents, or more."""

    @abstractmethod
    def list_sources(
        self, storage: Storage, reports: list[ReportT], decision_files: list[str]
    ) -> list[SignatureSource]:
        """Return the signatures to compare, in order.

        Args:
            reports: all reports, in any order.
            decision_files: the decisions so far.
        """

    def expand(self, reports: beam.PCollection[StepResult[ReportT]]) -> beam.PCollection[StepResult[str]]:
        all_reports = beam.pvalue.AsList(reports)
        side_inputs = [all_reports, *([beam.pvalue.AsList(self.decisions)] if self.decisions else [])]
        once = reports.pipeline | "Once" >> beam.Impulse()
        candidates = (
            once
            | "Bands" >> beam.FlatMap(self._list_bands, all_reports)
            | "OneBucketEach" >> beam.Reshuffle()
            | "FindCandidates" >> beam.Map(self._find_candidates, *side_inputs)
        )
        return once | "Cluster" >> beam.Map(self._cluster, beam.pvalue.AsList(candidates), *side_inputs)

    def _list_bands(self, _: bytes, reports: list[StepResult[ReportT]]) -> Iterator[tuple[int, int, int]]:
        num_buckets = near_duplicates.count_buckets(self.count_documents(unwrap_results(reports)))
        for band in range(near_duplicates.NUM_BANDS):
            yield from ((band, bucket, num_buckets) for bucket in range(num_buckets))

    def _find_candidates(
        self,
        band_and_bucket: tuple[int, int, int],
        reports: list[StepResult[ReportT]],
        decisions: Sequence[StepResult[str]] = (),
    ) -> StepResult[str]:
        band, bucket, num_buckets = band_and_bucket

        def find_candidates(storage: Storage) -> str:
            sources = self.list_sources(storage, unwrap_results(reports), unwrap_results(decisions))
            return near_duplicate_files.write_candidates(
                storage, self.output_dir, sources, band, bucket, num_buckets
            )

        return report_metrics(run_step("candidates", self.storage, find_candidates))

    def _cluster(
        self,
        _: bytes,
        candidates: list[StepResult[str]],
        reports: list[StepResult[ReportT]],
        decisions: Sequence[StepResult[str]] = (),
    ) -> StepResult[str]:
        def write_decisions(storage: Storage) -> str:
            sources = self.list_sources(storage, unwrap_results(reports), unwrap_results(decisions))
            return near_duplicate_files.write_near_duplicate_decisions(
                storage, self.output_dir, sources, unwrap_results(candidates)
            )

        decided = report_metrics(run_step("duplicates", self.storage, write_decisions))
        candidate_metrics = [metrics for candidate in candidates for metrics in candidate.metrics]
        return StepResult(decided.result, (*candidate_metrics, *decided.metrics))


class ResolveNearDuplicates(FindNearDuplicates[StageResult]):
    """All :class:`StageResult` to the path of the decisions on near duplicates."""

    def count_documents(self, reports: list[StageResult]) -> int:
        return sum(stage_result.num_keys for stage_result in reports)

    def list_sources(
        self, storage: Storage, reports: list[StageResult], decision_files: list[str]
    ) -> list[SignatureSource]:
        return finalize.list_signature_sources(storage, self.output_dir, reports, decision_files)
