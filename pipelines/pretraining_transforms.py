"""PTransforms of ``beam run shards_to_pretraining``: names and reports pass between them, rows lie in
files."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import PretrainingInput, PretrainingRun
from bioshards.corpus.pretraining import SPLITS
from bioshards.corpus.workspace import Workspace
from bioshards.vocab.examples import making as steps
from bioshards.vocab.examples import publishing
from bioshards.vocab.examples.made import Made
from bioshards.vocab.examples.making import Making
from bioshards.vocab.examples.portions import Portion
from bioshards.vocab.examples.publishing import Merged

from .steps import Done, measure, results, summed, tell


@dataclass
class MakeExamples(beam.PTransform):
    """Portions of documents in, what is made of each out: each is read once."""

    files: LocalFiles
    work: Workspace
    making: Making

    def expand(self, portions: beam.PCollection[Portion]) -> beam.PCollection[Done[Made]]:
        return portions | "OnePortionEach" >> beam.Reshuffle() | "Make" >> beam.Map(self._make)

    def _make(self, portion: Portion) -> Done[Made]:
        def work(files: LocalFiles) -> Made:
            return steps.make(files, self.work, portion, self.making)

        return tell(measure("make", self.files, work, _in_made))


def _in_made(made: Made) -> dict[str, int]:
    return {
        "failed": int(bool(made.bad)),
        "documents": made.documents,
        **{f"dropped_{reason}": count for reason, count in made.dropped.items()},
        **{f"rejected_{reason}": count for reason, count in made.rejected.items()},
        **{
            f"{split}_{what}": counts[what]
            for split, counts in made.splits.items()
            for what in ("documents", "rows", "tokens", "lost_tokens")
        },
    }


@dataclass
class MergeDealt(beam.PTransform):
    """All :class:`Made` in, a shard of the globally shuffled set out for each bucket; none if one is bad."""

    files: LocalFiles
    work: Workspace
    making: Making

    def expand(self, made: beam.PCollection[Done[Made]]) -> beam.PCollection[Done[Merged]]:
        everything = beam.pvalue.AsList(made)
        return (
            made.pipeline
            | "Once" >> beam.Create([None])
            | "Buckets" >> beam.FlatMap(self._buckets, everything)
            | "OneBucketEach" >> beam.Reshuffle()
            | "Merge" >> beam.Map(self._merge, everything)
        )

    def _buckets(self, _: None, made: list[Done[Made]]) -> Iterator[tuple[str, int]]:
        portions = results(made)
        if any(portion.bad for portion in portions):
            return
        for split in SPLITS:
            if any(portion.dealt.get(split) for portion in portions):
                yield from ((split, bucket) for bucket in range(self.making.buckets[split]))

    def _merge(self, place: tuple[str, int], made: list[Done[Made]]) -> Done[Merged]:
        split, bucket = place
        dealt = [file for portion in results(made) for file in portion.dealt.get(split, [])]

        def work(files: LocalFiles) -> Merged:
            return publishing.merge(files, self.work, self.making, dealt, split, bucket)

        return tell(measure("merge", self.files, work, _in_merged))


def _in_merged(merged: Merged) -> dict[str, int]:
    folder = f"{merged.split}/"
    shards = [one for one in merged.outputs if one.file.startswith(folder)]
    return {f"{merged.split}_rows": sum(shard.rows for shard in shards)}


@dataclass
class PublishExamples(beam.PTransform):
    """All :class:`Made` and :class:`Merged` in, why nothing is published or None out."""

    files: LocalFiles
    work: Workspace
    config: dict[str, Any]
    inputs: list[PretrainingInput]
    run: PretrainingRun
    max_rejected: float
    merged: beam.PCollection[Done[Merged]]

    def expand(self, made: beam.PCollection[Done[Made]]) -> beam.PCollection[str | None]:
        given = map(beam.pvalue.AsList, (made, self.merged))
        return made.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> beam.Map(self._publish, *given)

    def _publish(self, _: None, made: list[Done[Made]], merged: list[Done[Merged]]) -> str | None:
        run = dataclasses.replace(self.run, steps=summed(made, merged))

        def work(files: LocalFiles) -> str | None:
            problem = publishing.publish(
                files,
                self.work,
                self.config,
                self.inputs,
                results(made),
                results(merged),
                run,
                self.max_rejected,
            )
            files.write_json(self.work.outcome, {"problem": problem})
            return problem

        return tell(measure("publish", self.files, work, _in_outcome)).result


def _in_outcome(problem: str | None) -> dict[str, int]:
    return {"failed": int(bool(problem))}
