"""PTransforms that wire the functions of corpus/ into a pipeline, as little logic as possible.

What passes between them is small: names, counts and reports.  Text goes from the source file to the
staged shard and from there to the final shard inside one call each, never through a shuffle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import apache_beam as beam

from bioshards.corpus import finishing, lifecycle, publishing, staging
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.excluded import Excluded
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.finishing import Finished
from bioshards.corpus.manifest import DocumentsRun, OverlapFile, utc_now
from bioshards.corpus.publishing import Outcome
from bioshards.corpus.rules import TextRules
from bioshards.corpus.sources import Source
from bioshards.corpus.staging import Staged
from bioshards.corpus.workspace import Workspace

from .fetch_transforms import fetched
from .fetching import Fetching, arriving
from .steps import Done, measure, results, summed, tell, wrap_worker_errors

Item = TypeVar("Item")


@dataclass
class StageFiles(beam.PTransform):
    """Source files in, :class:`Staged` out: each file read, parsed, shaped and split once."""

    files: LocalFiles
    work: Workspace
    rules: TextRules
    keep_dropped: bool
    digests: bool

    def expand(self, sources: beam.PCollection[Source]) -> beam.PCollection[Done[Staged]]:
        return sources | "OneFileEach" >> beam.Reshuffle() | "Stage" >> beam.Map(self._stage)

    def _stage(self, source: Source) -> Done[Staged]:
        return tell(self.one(source))

    def one(self, source: Source) -> Done[Staged]:
        """Stage one file."""

        def work(files: LocalFiles) -> Staged:
            return staging.stage(files, self.work, source, self.rules, self.keep_dropped, self.digests)

        return measure("stage", self.files, work, _in_staged)


def _in_staged(staged: Staged) -> dict[str, int]:
    return {
        "failed": int(staged.bad is not None),
        "records": staged.records,
        "deletions": staged.deletions,
        **{f"rejected_{reason}": count for reason, count in staged.rejected.items()},
    }


@dataclass
class FetchAndStage(beam.PTransform):
    """Lanes of files in, :class:`Staged` out: each file fetched, verified and staged.

    A lane stages one file while it fetches the next ones.  How many lanes there are, and what each
    may ask of the server, is such that no runner asks more of it than it allows (fetching.py).
    """

    fetching: Fetching
    stage: StageFiles
    source: Callable[..., Source]

    def expand(self, lanes: beam.PCollection[list[Remote]]) -> beam.PCollection[Done[Staged]]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "FetchAndStage" >> beam.FlatMap(self._lane)

    def _lane(self, remotes: list[Remote]) -> Iterator[Done[Staged]]:
        with wrap_worker_errors():
            for remote, held in arriving(self.fetching, remotes):
                if isinstance(held, BadFileError):
                    missing = self.source(Found(self.fetching.mirror.path(remote), 0, ""))
                    done = Done(Staged(missing, None, None, bad=(held.reason, held.detail)), ())
                else:
                    done = self.stage.one(self.source(held.found, held.retrieved))
                yield tell(Done(done.result, (fetched(held), *done.figures)))


def lanes(items: list[Item], fetching: Fetching) -> list[list[Item]]:
    """The items dealt out to the lanes that there are, so that the first ones come first."""
    count = min(len(items), fetching.lanes)
    return [items[first::count] for first in range(count)]


@dataclass
class DecideVersions(beam.PTransform):
    """All :class:`Staged` in, the file of each bucket's verdicts out."""

    files: LocalFiles
    work: Workspace
    rules: TextRules

    def expand(self, staged: beam.PCollection[Done[Staged]]) -> beam.PCollection[Done[str]]:
        everything = beam.pvalue.AsList(staged)
        return _each_bucket(staged, everything) | "Decide" >> beam.Map(self._decide, everything)

    def _decide(self, bucket: int, staged: list[Done[Staged]]) -> Done[str]:
        buckets, by_version = len(_buckets(None, staged)), self.rules.newest_by_version

        def work(files: LocalFiles) -> str:
            return finishing.decide(files, self.work, results(staged), bucket, buckets, by_version)

        return tell(measure("decide", self.files, work, lambda _: {}))


@dataclass
class DecideDuplicates(beam.PTransform):
    """All :class:`Staged` in, the file of each bucket's verdicts out, once the versions are decided."""

    files: LocalFiles
    work: Workspace
    decided: beam.PCollection[Done[str]]

    def expand(self, staged: beam.PCollection[Done[Staged]]) -> beam.PCollection[Done[str]]:
        everything = beam.pvalue.AsList(staged)
        decide = beam.Map(self._decide, everything, beam.pvalue.AsList(self.decided))
        return _each_bucket(staged, everything) | "Decide" >> decide

    def _decide(self, bucket: int, staged: list[Done[Staged]], decided: list[Done[str]]) -> Done[str]:
        buckets, verdicts = len(_buckets(None, staged)), results(decided)

        def work(files: LocalFiles) -> str:
            return finishing.decide_duplicates(files, self.work, results(staged), verdicts, bucket, buckets)

        return tell(measure("duplicates", self.files, work, lambda _: {}))


def _each_bucket(
    staged: beam.PCollection[Done[Staged]], everything: beam.pvalue.AsList
) -> beam.PCollection[int]:
    """The numbers of the buckets, spread over the workers."""
    return (
        staged.pipeline
        | "Once" >> beam.Create([None])
        | "Buckets" >> beam.FlatMap(_buckets, everything)
        | "OneBucketEach" >> beam.Reshuffle()
    )


def _buckets(_: None, staged: Iterable[Done[Staged]]) -> range:
    return range(lifecycle.buckets(sum(source.keys for source in results(staged))))


@dataclass
class FinishShards(beam.PTransform):
    """All :class:`Staged` in, a :class:`Finished` for each good one out, once all is decided."""

    files: LocalFiles
    work: Workspace
    keep_dropped: bool
    max_shard_bytes: int
    excluded: Excluded | None
    decided: beam.PCollection[Done[str]]

    def expand(self, staged: beam.PCollection[Done[Staged]]) -> beam.PCollection[Done[Finished]]:
        return (
            staged.pipeline
            | "Once" >> beam.Create([None])
            | "InOrder" >> beam.FlatMap(_numbered, beam.pvalue.AsList(staged))
            | "OneSourceEach" >> beam.Reshuffle()
            | "Finish" >> beam.Map(self._finish, beam.pvalue.AsList(self.decided))
        )

    def _finish(self, numbered: tuple[int, str], decided: list[Done[str]]) -> Done[Finished]:
        index, name = numbered
        listed = self.excluded.sha256 if self.excluded else None
        verdicts = results(decided)

        def work(files: LocalFiles) -> Finished:
            return finishing.finish(
                files, self.work, name, index, verdicts, self.keep_dropped, self.max_shard_bytes, listed
            )

        return tell(measure("finish", self.files, work, _in_finished))


def _in_finished(finished: Finished) -> dict[str, int]:
    became = {
        "kept" if reason == "kept" else f"dropped_{reason}": count
        for reason, count in finished.funnel.items()
    }
    return {**became, **{what: finished.counts[what] for what in ("sentences", "words")}}


def _numbered(_: None, staged: list[Done[Staged]]) -> Iterator[tuple[int, str]]:
    return iter(enumerate(finishing.good_names(results(staged))))


@dataclass
class Publish(beam.PTransform):
    """All :class:`Staged` and :class:`Finished` in, one :class:`Outcome` out: the manifest, last."""

    files: LocalFiles
    work: Workspace
    rules: TextRules
    config: dict[str, Any]
    max_rejected: float
    excluded: Excluded | None
    run: DocumentsRun
    decided: beam.PCollection[Done[str]]
    finished: beam.PCollection[Done[Finished]]
    overlap: beam.PCollection[Done[OverlapFile]] | None = None

    def expand(self, staged: beam.PCollection[Done[Staged]]) -> beam.PCollection[Outcome]:
        given = [staged, self.decided, self.finished, *([self.overlap] if self.overlap else [])]
        manifest = beam.Map(self._publish, *map(beam.pvalue.AsList, given))
        return staged.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> manifest

    def _publish(
        self,
        _: None,
        staged: list[Done[Staged]],
        decided: list[Done[str]],
        finished: list[Done[Finished]],
        overlap: Sequence[Done[OverlapFile]] = (),
    ) -> Outcome:
        steps = summed(staged, decided, finished, overlap)
        run = dataclasses.replace(self.run, finished=utc_now(), steps=steps)

        def work(files: LocalFiles) -> Outcome:
            outcome = publishing.publish(
                files,
                self.work,
                self.rules,
                self.config,
                results(staged),
                results(finished),
                self.max_rejected,
                run,
                results(overlap),
                self.excluded,
            )
            said = {name: getattr(outcome, name) for name in Outcome.__slots__}
            files.write_json(self.work.outcome, said)
            return outcome

        return tell(measure("publish", self.files, work, _in_outcome)).result


def _in_outcome(outcome: Outcome) -> dict[str, int]:
    return {"records": outcome.records, "documents": outcome.documents, "failed": int(bool(outcome.problem))}
