"""PTransforms of ``beam run shards_to_pretraining``: names and reports pass between them, rows lie in
files."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.pretraining import SPLITS
from bioshards.corpus.workspace import Workspace
from bioshards.vocab.examples import making as steps
from bioshards.vocab.examples import publishing
from bioshards.vocab.examples.made import Made
from bioshards.vocab.examples.making import Making
from bioshards.vocab.examples.portions import Portion
from bioshards.vocab.examples.publishing import Merged

from .transforms import tally


@dataclass
class MakeExamples(beam.PTransform):
    """Portions of documents in, what is made of each out: each is read once."""

    files: LocalFiles
    work: Workspace
    making: Making

    def expand(self, portions: beam.PCollection[Portion]) -> beam.PCollection[Made]:
        return portions | "OnePortionEach" >> beam.Reshuffle() | "Make" >> beam.Map(self._make)

    def _make(self, portion: Portion) -> Made:
        started = time.monotonic()
        made = steps.make(self.files, self.work, portion, self.making)
        tally("portions_bad" if made.bad else "portions_made", 1)
        tally("bytes_read", sum(shard.bytes for shard in portion.shards))
        tally("documents", made.documents)
        tally("documents_rejected", made.rejected.total())
        for split, counts in made.splits.items():
            for what in ("rows", "tokens", "lost"):
                tally(f"{split}_{what}", counts[what])
        tally("make_milliseconds", int(1000 * (time.monotonic() - started)))
        return made


@dataclass
class MergeDealt(beam.PTransform):
    """All :class:`Made` in, a shard of the globally shuffled set out for each bucket; none if one is bad."""

    files: LocalFiles
    work: Workspace
    making: Making

    def expand(self, made: beam.PCollection[Made]) -> beam.PCollection[Merged]:
        everything = beam.pvalue.AsList(made)
        return (
            made.pipeline
            | "Once" >> beam.Create([None])
            | "Buckets" >> beam.FlatMap(self._buckets, everything)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, everything)
        )

    def _buckets(self, _: None, made: list[Made]) -> Iterator[tuple[str, int]]:
        if any(portion.bad for portion in made):
            return
        for split in SPLITS:
            if any(portion.dealt.get(split) for portion in made):
                yield from ((split, bucket) for bucket in range(self.making.buckets[split]))

    def _merge(self, place: tuple[str, int], made: list[Made]) -> Merged:
        split, bucket = place
        dealt = [file for portion in made for file in portion.dealt.get(split, [])]
        merged = publishing.merge(self.files, self.work, self.making, dealt, split, bucket)
        tally("shards_merged", 1)
        return merged


@dataclass
class PublishExamples(beam.PTransform):
    """All :class:`Made` and :class:`Merged` in, why nothing is published or None out."""

    files: LocalFiles
    work: Workspace
    config: dict[str, Any]
    inputs: list[dict[str, Any]]
    run: dict[str, Any]
    max_rejected: float
    merged: beam.PCollection[Merged]

    def expand(self, made: beam.PCollection[Made]) -> beam.PCollection[str | None]:
        given = map(beam.pvalue.AsList, (made, self.merged))
        return made.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> beam.Map(self._publish, *given)

    def _publish(self, _: None, made: list[Made], merged: list[Merged]) -> str | None:
        problem = publishing.publish(
            self.files, self.work, self.config, self.inputs, made, merged, self.run, self.max_rejected
        )
        self.files.write_json(self.work.outcome, {"problem": problem})
        return problem
