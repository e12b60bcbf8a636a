"""PTransforms that find near duplicates among the shards that a pretraining set is made of."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import apache_beam as beam

from bioshards.corpus.lifecycle.near_duplicate_files import SignatureSource
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.transforms.near_duplicates import FindNearDuplicates
from bioshards.pipelines.transforms.step_metrics import StepResult, report_metrics, run_step
from bioshards.vocab.pretraining import near_duplicate_filter
from bioshards.vocab.pretraining.near_duplicate_filter import SignedShard
from bioshards.vocab.pretraining.shard_groups import ShardGroup


@dataclass
class SignDocuments(beam.PTransform):
    """Shard groups to a :class:`SignedShard` for each shard."""

    storage: Storage
    output_dir: OutputDir

    def expand(self, groups: beam.PCollection[ShardGroup]) -> beam.PCollection[StepResult[SignedShard]]:
        return groups | "OneShardGroupEach" >> beam.Reshuffle() | "Sign" >> beam.FlatMap(self._sign)

    def _sign(self, group: ShardGroup) -> Iterator[StepResult[SignedShard]]:
        for index in range(len(group.shards)):
            sign_shard = functools.partial(self._sign_shard, group=group, index=index)
            yield report_metrics(run_step("sign", self.storage, sign_shard))

    def _sign_shard(self, storage: Storage, group: ShardGroup, index: int) -> SignedShard:
        return near_duplicate_filter.sign_shard(storage, self.output_dir, group, index)


class CompareDocuments(FindNearDuplicates[SignedShard]):
    """All :class:`SignedShard` to the path of the decisions on near duplicates, a batch per shard."""

    def count_documents(self, reports: list[SignedShard]) -> int:
        return sum(signed_shard.shard.rows for signed_shard in reports)

    def list_sources(
        self, storage: Storage, reports: list[SignedShard], decision_files: list[str]
    ) -> list[SignatureSource]:
        return near_duplicate_filter.list_sources(reports)
