"""PTransforms of ``beam run shards_to_pretraining``; elements are names and reports, rows are in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import msgspec

from bioshards.corpus.manifest import PretrainingInput, PretrainingRun
from bioshards.corpus.output.output_layout import SPLITS, OutputDir
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
from bioshards.vocab.pretraining import build as steps
from bioshards.vocab.pretraining import near_duplicate_filter, pretraining_dir
from bioshards.vocab.pretraining.build import BuildConfig
from bioshards.vocab.pretraining.build_result import BuildResult
from bioshards.vocab.pretraining.near_duplicate_filter import SignedShard
from bioshards.vocab.pretraining.pretraining_dir import MergeResult
from bioshards.vocab.pretraining.shard_groups import ShardGroup


@dataclass
class BuildExamples(beam.PTransform):
    """Shard groups to a :class:`BuildResult` for each; reads each once."""

    storage: Storage
    output_dir: OutputDir
    build_config: BuildConfig
    duplicates: beam.PCollection[StepResult[str]] | None = None

    def expand(self, groups: beam.PCollection[ShardGroup]) -> beam.PCollection[StepResult[BuildResult]]:
        side_inputs = [beam.pvalue.AsList(self.duplicates)] if self.duplicates else []
        return (
            groups | "OneShardGroupEach" >> beam.Reshuffle() | "Build" >> beam.Map(self._build, *side_inputs)
        )

    def _build(
        self, group: ShardGroup, duplicates: Sequence[StepResult[str]] = ()
    ) -> StepResult[BuildResult]:
        def build_group(storage: Storage) -> BuildResult:
            near_duplicates = {}
            for path in unwrap_results(duplicates):
                near_duplicates = near_duplicate_filter.read_decisions(storage, path, group)
            return steps.build_group(storage, self.output_dir, group, self.build_config, near_duplicates)

        return report_metrics(run_step("build", self.storage, build_group, _counts_from_build))


def _counts_from_build(build_result: BuildResult) -> dict[str, int]:
    return {
        "failed": int(bool(build_result.failures)),
        "documents": build_result.documents,
        **{f"dropped_{reason}": count for reason, count in build_result.dropped.items()},
        **{f"rejected_{reason}": count for reason, count in build_result.rejected.items()},
        **{
            f"{split}_{name}": counts[name]
            for split, counts in build_result.split_counts.items()
            for name in ("documents", "rows", "tokens", "lost_tokens")
        },
    }


@dataclass
class MergeShuffled(beam.PTransform):
    """All :class:`BuildResult` to a :class:`MergeResult` for each bucket; none if a build failed."""

    storage: Storage
    output_dir: OutputDir
    build_config: BuildConfig

    def expand(
        self, built: beam.PCollection[StepResult[BuildResult]]
    ) -> beam.PCollection[StepResult[MergeResult]]:
        all_built = beam.pvalue.AsList(built)
        return (
            built.pipeline
            | "Once" >> beam.Impulse()
            | "Buckets" >> beam.FlatMap(self._list_buckets, all_built)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, all_built)
        )

    def _list_buckets(self, _: bytes, built: list[StepResult[BuildResult]]) -> Iterator[tuple[str, int]]:
        build_results = unwrap_results(built)
        if any(build_result.failures for build_result in build_results):
            return
        for split in SPLITS:
            if any(build_result.spill_files.get(split) for build_result in build_results):
                yield from ((split, bucket) for bucket in range(self.build_config.num_buckets[split]))

    def _merge(
        self, split_and_bucket: tuple[str, int], built: list[StepResult[BuildResult]]
    ) -> StepResult[MergeResult]:
        split, bucket = split_and_bucket
        spill_files = [
            file for build_result in unwrap_results(built) for file in build_result.spill_files.get(split, [])
        ]

        def merge_bucket(storage: Storage) -> MergeResult:
            return pretraining_dir.merge_bucket(
                storage, self.output_dir, self.build_config, spill_files, split, bucket
            )

        return report_metrics(run_step("merge", self.storage, merge_bucket, _counts_from_merge))


def _counts_from_merge(merge_result: MergeResult) -> dict[str, int]:
    folder = f"{merge_result.split}/"
    shards = [output for output in merge_result.outputs if output.file.startswith(folder)]
    return {f"{merge_result.split}_rows": sum(shard.rows for shard in shards)}


@dataclass
class PublishExamples(beam.PTransform):
    """All results to the reason why nothing is published, or None."""

    storage: Storage
    output_dir: OutputDir
    config: dict[str, Any]
    inputs: list[PretrainingInput]
    run_info: PretrainingRun
    max_rejected: float
    merged: beam.PCollection[StepResult[MergeResult]]
    signed: beam.PCollection[StepResult[SignedShard]] | None = None
    duplicates: beam.PCollection[StepResult[str]] | None = None

    def expand(self, built: beam.PCollection[StepResult[BuildResult]]) -> beam.PCollection[str | None]:
        results = [built, self.merged, *([self.signed, self.duplicates] if self.signed else [])]
        return call_once(built.pipeline, "Manifest", self._publish, *results)

    def _publish(
        self,
        _: bytes,
        built: list[StepResult[BuildResult]],
        merged: list[StepResult[MergeResult]],
        signed: Sequence[StepResult[SignedShard]] = (),
        duplicates: Sequence[StepResult[str]] = (),
    ) -> str | None:
        run_info = msgspec.structs.replace(
            self.run_info, steps=sum_metrics(signed, duplicates, built, merged)
        )

        def publish_set(storage: Storage) -> str | None:
            duplicate_lists = [
                near_duplicate_filter.publish_duplicates(
                    storage, self.output_dir, unwrap_results(signed), decisions_path
                )
                for decisions_path in unwrap_results(duplicates)
            ]
            problem = pretraining_dir.publish_pretraining_set(
                storage,
                self.output_dir,
                self.config,
                self.inputs,
                unwrap_results(built),
                unwrap_results(merged),
                run_info,
                self.max_rejected,
                duplicate_lists,
            )
            storage.write_json(self.output_dir.result_path, {"problem": problem})
            return problem

        return report_metrics(run_step("publish", self.storage, publish_set, count_failure)).result
