"""PTransforms of ``beam run shards_to_words``: names and reports pass between them, words lie in files."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import InputDocuments, WordsRun
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace
from bioshards.vocab import counting as steps
from bioshards.vocab.counting import CountedShard, MergedBucket
from bioshards.vocab.counts import BUCKETS, Counting

from .steps import Done, measure, results, summed, tell


@dataclass
class CountShards(beam.PTransform):
    """Directories and shards in them in, a :class:`CountedShard` for each out: each is read once."""

    files: LocalFiles
    work: Workspace
    counting: Counting

    def expand(self, shards: beam.PCollection[tuple[str, Shard]]) -> beam.PCollection[Done[CountedShard]]:
        return shards | "OneShardEach" >> beam.Reshuffle() | "Count" >> beam.Map(self._count)

    def _count(self, located: tuple[str, Shard]) -> Done[CountedShard]:
        folder, shard = located

        def work(files: LocalFiles) -> CountedShard:
            return steps.count(files, self.work, folder, shard, self.counting)

        return tell(measure("count", self.files, work, _in_counted))


def _in_counted(counted: CountedShard) -> dict[str, int]:
    return {
        "failed": int(counted.bad is not None),
        "documents": counted.documents,
        "tokens": counted.tokens,
        "validation_documents": counted.held_out_documents,
        "validation_tokens": counted.held_out_tokens,
    }


@dataclass
class MergeBuckets(beam.PTransform):
    """All :class:`CountedShard` in, a :class:`MergedBucket` for each bucket out; none if a shard is bad."""

    files: LocalFiles
    work: Workspace
    min_count: int

    def expand(self, counted: beam.PCollection[Done[CountedShard]]) -> beam.PCollection[Done[MergedBucket]]:
        everything = beam.pvalue.AsList(counted)
        return (
            counted.pipeline
            | "Once" >> beam.Create([None])
            | "Buckets" >> beam.FlatMap(_buckets, everything)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, everything)
        )

    def _merge(self, bucket: int, counted: list[Done[CountedShard]]) -> Done[MergedBucket]:
        names = [shard.name for shard in results(counted)]

        def work(files: LocalFiles) -> MergedBucket:
            return steps.merge(files, self.work, names, bucket, self.min_count)

        return tell(measure("merge", self.files, work, _in_merged))


def _in_merged(merged: MergedBucket) -> dict[str, int]:
    return {
        "distinct": merged.distinct,
        "validation_distinct": merged.held_out_distinct,
        "pruned_distinct": merged.pruned_distinct,
    }


def _buckets(_: None, counted: list[Done[CountedShard]]) -> range:
    return range(0 if any(shard.bad for shard in results(counted)) else BUCKETS)


@dataclass
class PublishWords(beam.PTransform):
    """All :class:`CountedShard` and :class:`MergedBucket` in, why nothing is published or None out."""

    files: LocalFiles
    work: Workspace
    config: dict[str, Any]
    inputs: list[InputDocuments]
    run: WordsRun
    merged: beam.PCollection[Done[MergedBucket]]

    def expand(self, counted: beam.PCollection[Done[CountedShard]]) -> beam.PCollection[str | None]:
        given = map(beam.pvalue.AsList, (counted, self.merged))
        return (
            counted.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> beam.Map(self._publish, *given)
        )

    def _publish(
        self, _: None, counted: list[Done[CountedShard]], merged: list[Done[MergedBucket]]
    ) -> str | None:
        run = dataclasses.replace(self.run, steps=summed(counted, merged))

        def work(files: LocalFiles) -> str | None:
            problem = steps.publish(
                files, self.work, self.config, self.inputs, results(counted), results(merged), run
            )
            files.write_json(self.work.outcome, {"problem": problem})
            return problem

        return tell(measure("publish", self.files, work, _in_outcome)).result


def _in_outcome(problem: str | None) -> dict[str, int]:
    return {"failed": int(bool(problem))}
