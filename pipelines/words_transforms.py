"""PTransforms of ``beam run shards_to_words``: names and reports pass between them, words lie in files."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace
from bioshards.vocab import counting as steps
from bioshards.vocab.counting import CountedShard, MergedBucket
from bioshards.vocab.counts import BUCKETS, Counting
from bioshards.vocab.inputs import Documents

from .transforms import tally


@dataclass
class CountShards(beam.PTransform):
    """Directories and shards in them in, a :class:`CountedShard` for each out: each is read once."""

    files: LocalFiles
    work: Workspace
    counting: Counting

    def expand(self, shards: beam.PCollection[tuple[str, Shard]]) -> beam.PCollection[CountedShard]:
        return shards | "OneShardEach" >> beam.Reshuffle() | "Count" >> beam.Map(self._count)

    def _count(self, located: tuple[str, Shard]) -> CountedShard:
        started = time.monotonic()
        folder, shard = located
        counted = steps.count(self.files, self.work, folder, shard, self.counting)
        tally("shards_bad" if counted.bad else "shards_counted", 1)
        tally("bytes_read", shard.bytes)
        tally("documents", counted.documents)
        tally("tokens", counted.tokens)
        tally("held_out_documents", counted.held_out_documents)
        tally("held_out_tokens", counted.held_out_tokens)
        tally("count_milliseconds", int(1000 * (time.monotonic() - started)))
        return counted


@dataclass
class MergeBuckets(beam.PTransform):
    """All :class:`CountedShard` in, a :class:`MergedBucket` for each bucket out; none if a shard is bad."""

    files: LocalFiles
    work: Workspace
    min_count: int

    def expand(self, counted: beam.PCollection[CountedShard]) -> beam.PCollection[MergedBucket]:
        everything = beam.pvalue.AsList(counted)
        return (
            counted.pipeline
            | "Once" >> beam.Create([None])
            | "Buckets" >> beam.FlatMap(_buckets, everything)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, everything)
        )

    def _merge(self, bucket: int, counted: list[CountedShard]) -> MergedBucket:
        names = [shard.name for shard in counted]
        merged = steps.merge(self.files, self.work, names, bucket, self.min_count)
        tally("distinct_words", merged.distinct)
        return merged


def _buckets(_: None, counted: list[CountedShard]) -> range:
    return range(0 if any(shard.bad for shard in counted) else BUCKETS)


@dataclass
class PublishWords(beam.PTransform):
    """All :class:`CountedShard` and :class:`MergedBucket` in, why nothing is published or None out."""

    files: LocalFiles
    work: Workspace
    config: dict[str, Any]
    inputs: list[Documents]
    run: dict[str, Any]
    merged: beam.PCollection[MergedBucket]

    def expand(self, counted: beam.PCollection[CountedShard]) -> beam.PCollection[str | None]:
        given = map(beam.pvalue.AsList, (counted, self.merged))
        return (
            counted.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> beam.Map(self._publish, *given)
        )

    def _publish(self, _: None, counted: list[CountedShard], merged: list[MergedBucket]) -> str | None:
        problem = steps.publish(self.files, self.work, self.config, self.inputs, counted, merged, self.run)
        self.files.write_json(self.work.outcome, {"problem": problem})
        return problem
