"""PTransforms of ``beam run shards_to_words``; their elements are names and reports, words are in files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import msgspec

from bioshards.corpus.manifest import InputDocuments, Shard, WordsRun
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.transforms.step_metrics import (
    StepResult,
    call_once,
    count_failure,
    report_metrics,
    run_step,
    sum_metrics,
    unwrap_results,
)
from bioshards.vocab.counting import count_steps as steps
from bioshards.vocab.counting.count_steps import BucketCounts, ShardCounts
from bioshards.vocab.counting.word_counts import NUM_BUCKETS, CountConfig


@dataclass
class CountShards(beam.PTransform):
    """Shards, with their directories, to a :class:`ShardCounts` for each; reads each once."""

    storage: Storage
    output_dir: OutputDir
    count_config: CountConfig

    def expand(
        self, shards: beam.PCollection[tuple[str, Shard]]
    ) -> beam.PCollection[StepResult[ShardCounts]]:
        return shards | "OneShardEach" >> beam.Reshuffle() | "Count" >> beam.Map(self._count)

    def _count(self, folder_and_shard: tuple[str, Shard]) -> StepResult[ShardCounts]:
        folder, shard = folder_and_shard

        def count_shard(storage: Storage) -> ShardCounts:
            return steps.count_shard(storage, self.output_dir, folder, shard, self.count_config)

        return report_metrics(run_step("count", self.storage, count_shard, _counts_from_shard))


def _counts_from_shard(shard_counts: ShardCounts) -> dict[str, int]:
    return {
        "failed": int(shard_counts.failure is not None),
        "documents": shard_counts.documents,
        "tokens": shard_counts.tokens,
        "validation_documents": shard_counts.validation_documents,
        "validation_tokens": shard_counts.validation_tokens,
    }


@dataclass
class MergeBuckets(beam.PTransform):
    """All :class:`ShardCounts` to a :class:`BucketCounts` for each bucket; none if a shard is damaged."""

    storage: Storage
    output_dir: OutputDir
    min_count: int

    def expand(
        self, counted: beam.PCollection[StepResult[ShardCounts]]
    ) -> beam.PCollection[StepResult[BucketCounts]]:
        all_counted = beam.pvalue.AsList(counted)
        return (
            counted.pipeline
            | "Once" >> beam.Impulse()
            | "Buckets" >> beam.FlatMap(_list_buckets, all_counted)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, all_counted)
        )

    def _merge(self, bucket: int, counted: list[StepResult[ShardCounts]]) -> StepResult[BucketCounts]:
        names = [shard.sha256 for shard in unwrap_results(counted)]

        def merge_bucket(storage: Storage) -> BucketCounts:
            return steps.merge_bucket(storage, self.output_dir, names, bucket, self.min_count)

        return report_metrics(run_step("merge", self.storage, merge_bucket, _counts_from_merge))


def _counts_from_merge(merge_result: BucketCounts) -> dict[str, int]:
    return {
        "distinct_words": merge_result.distinct_words,
        "validation_distinct_words": merge_result.validation_distinct_words,
        "pruned_distinct_words": merge_result.pruned_distinct_words,
    }


def _list_buckets(_: bytes, counted: list[StepResult[ShardCounts]]) -> range:
    return range(0 if any(shard.failure for shard in unwrap_results(counted)) else NUM_BUCKETS)


@dataclass
class PublishWords(beam.PTransform):
    """All results to the reason why nothing is published, or None."""

    storage: Storage
    output_dir: OutputDir
    config: dict[str, Any]
    inputs: list[InputDocuments]
    run_info: WordsRun
    merged: beam.PCollection[StepResult[BucketCounts]]

    def expand(self, counted: beam.PCollection[StepResult[ShardCounts]]) -> beam.PCollection[str | None]:
        return call_once(counted.pipeline, "Manifest", self._publish, counted, self.merged)

    def _publish(
        self, _: bytes, counted: list[StepResult[ShardCounts]], merged: list[StepResult[BucketCounts]]
    ) -> str | None:
        run_info = msgspec.structs.replace(self.run_info, steps=sum_metrics(counted, merged))

        def publish_words(storage: Storage) -> str | None:
            problem = steps.publish_words(
                storage,
                self.output_dir,
                self.config,
                self.inputs,
                unwrap_results(counted),
                unwrap_results(merged),
                run_info,
            )
            storage.write_json(self.output_dir.result_path, {"problem": problem})
            return problem

        return report_metrics(run_step("publish", self.storage, publish_words, count_failure)).result
