"""PTransforms of full text: download and stage articles, find abstracts whose articles are included."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import apache_beam as beam

from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.download.pmc.article_ranges import RangeReport
from bioshards.corpus.errors import MAX_SHOWN
from bioshards.corpus.jats import inputs
from bioshards.corpus.lifecycle import full_text_overlap, shard_keys
from bioshards.corpus.lifecycle.finalize import FinalizeResult
from bioshards.corpus.lifecycle.stage import StageResult
from bioshards.corpus.manifest import OverlapFile, Shard
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.source_record import DAMAGED_COPY
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan
from bioshards.pipelines.transforms.document_shards import StageFiles
from bioshards.pipelines.transforms.mirror_files import fetch_ranges
from bioshards.pipelines.transforms.step_metrics import (
    StepResult,
    report_metrics,
    run_step,
    unwrap_results,
    wrap_worker_errors,
)

T = TypeVar("T")


@dataclass
class FetchAndStageRanges(beam.PTransform):
    """Slots of ranges of PMC ids to :class:`StageResult`: downloads and stages a range's articles.

    A slot stages one range while it downloads the next.
    """

    article_plan: PmcArticlePlan
    stage_files: StageFiles
    checked: beam.PCollection[None]

    def expand(self, slots: beam.PCollection[list[int]]) -> beam.PCollection[StepResult[StageResult | None]]:
        return (
            slots
            | "OneSlotEach" >> beam.Reshuffle()
            | "FetchAndStageRanges" >> beam.FlatMap(self._process_slot, beam.pvalue.AsList(self.checked))
        )

    def _process_slot(
        self, numbers: list[int], _checked: list[None]
    ) -> Iterator[StepResult[StageResult | None]]:
        with wrap_worker_errors():
            for fetched in _prefetch_one(fetch_ranges(self.article_plan, numbers)):
                staged, metrics = None, fetched.metrics
                if list_file := self._find_list_file(fetched.result):
                    stage_result = self.stage_files.stage_one(inputs.source_from_file(list_file))
                    failures = fetched.result.failures
                    staged = dataclasses.replace(
                        stage_result.result,
                        not_fetched=len(failures),
                        fetch_errors=tuple(failure.detail for failure in failures[:MAX_SHOWN]),
                    )
                    if DAMAGED_COPY in staged.rejected:
                        self._remove_damaged(fetched.result.range_number)
                    metrics += stage_result.metrics
                yield report_metrics(StepResult(staged, metrics))

    def _remove_damaged(self, range_number: int) -> None:
        mirror = self.article_plan.download_plan.mirror
        retry(lambda: article_ranges.remove_damaged(mirror.storage, mirror.folder, range_number))

    def _find_list_file(self, report: RangeReport) -> FileInfo | None:
        """Return the list of the range's articles; None if none is selected."""
        mirror = self.article_plan.download_plan.mirror
        if not report.selected and not report.failures:
            return None
        return mirror.storage.glob(article_ranges.selected_path(mirror.folder, report.range_number))[0]


def _prefetch_one(items: Iterator[T]) -> Iterator[T]:
    """Prefetch one item: compute the next while the caller uses the current one."""
    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(next, items, None)
        while (item := future.result()) is not None:
            future = executor.submit(next, items, None)
            yield item


@dataclass
class ExtractKeys(beam.PTransform):
    """All :class:`FinalizeResult` to one element for each shard of articles and abstracts.

    Writes the keys of each shard to a file, which :class:`FindOverlap` reads.
    """

    storage: Storage
    output_dir: OutputDir
    overlap_with: str | None

    def expand(
        self, finalized: beam.PCollection[StepResult[FinalizeResult]]
    ) -> beam.PCollection[StepResult[None]]:
        return (
            finalized.pipeline
            | "Once" >> beam.Create([self.overlap_with] if self.overlap_with else [])
            | "Shards" >> beam.FlatMap(self._list_shards, beam.pvalue.AsList(finalized))
            | "OneShardEach" >> beam.Reshuffle()
            | "Extract" >> beam.Map(self._extract)
        )

    def _list_shards(
        self, folder: str, finalized: list[StepResult[FinalizeResult]]
    ) -> Iterator[tuple[str, Shard]]:
        for shard in retry(lambda: full_text_overlap.list_abstract_shards(self.storage, folder)):
            yield folder, shard
        for shard in _final_shards(finalized):
            yield self.output_dir.path, shard

    def _extract(self, folder_and_shard: tuple[str, Shard]) -> StepResult[None]:
        def extract_shard_keys(storage: Storage) -> None:
            shard_keys.extract_keys(storage, self.output_dir, *folder_and_shard)

        return report_metrics(run_step("keys", self.storage, extract_shard_keys))


@dataclass
class FindOverlap(beam.PTransform):
    """All :class:`FinalizeResult` to the file that lists the abstracts whose articles are included."""

    storage: Storage
    output_dir: OutputDir
    overlap_with: str | None
    extracted: beam.PCollection[StepResult[None]]

    def expand(
        self, finalized: beam.PCollection[StepResult[FinalizeResult]]
    ) -> beam.PCollection[StepResult[OverlapFile]]:
        side_inputs = map(beam.pvalue.AsList, (finalized, self.extracted))
        return (
            finalized.pipeline
            | "Once" >> beam.Create([self.overlap_with] if self.overlap_with else [])
            | "Find" >> beam.Map(self._find, *side_inputs)
        )

    def _find(
        self, folder: str, finalized: list[StepResult[FinalizeResult]], extracted: list[StepResult[None]]
    ) -> StepResult[OverlapFile]:
        article_shards = _final_shards(finalized)

        def find_overlap(storage: Storage) -> OverlapFile:
            abstracts = full_text_overlap.list_abstract_shards(storage, folder)
            abstracts_digest = arrow_io.combine_digests(shard.sha256 for shard in abstracts)
            matches = full_text_overlap.find_overlap(
                full_text_overlap.select_pmc_articles(
                    shard_keys.read_keys(storage, self.output_dir, self.output_dir.path, article_shards)
                ),
                lambda: shard_keys.read_keys(storage, self.output_dir, folder, abstracts),
            )
            overlap_output = full_text_overlap.write(
                storage,
                f"{self.output_dir.path}/{full_text_overlap.FILE_NAME}",
                folder,
                abstracts_digest,
                matches,
            )
            shard_keys.sweep(storage, self.output_dir, [*article_shards, *abstracts])
            return overlap_output

        result = report_metrics(
            run_step(
                "overlap", self.storage, find_overlap, lambda overlap_file: {"abstracts": overlap_file.rows}
            )
        )
        key_metrics = (metrics for key_result in extracted for metrics in key_result.metrics)
        return StepResult(result.result, (*key_metrics, *result.metrics))


def _final_shards(finalized: list[StepResult[FinalizeResult]]) -> list[Shard]:
    """Return the final shards of all sources."""
    return [shard for result in unwrap_results(finalized) for shard in result.shards]
