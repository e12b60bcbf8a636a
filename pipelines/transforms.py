"""PTransforms that wire the functions of corpus/ into a pipeline, as little logic as possible.

What passes between them is small: names, counts and reports.  Text goes from the source file to the
staged shard and from there to the final shard inside one call each, never through a shuffle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import apache_beam as beam

from bioshards.corpus import finishing, lifecycle, publishing, staging
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.excluded import Excluded
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.finishing import Finished
from bioshards.corpus.publishing import Outcome
from bioshards.corpus.rules import TextRules
from bioshards.corpus.sources import Source
from bioshards.corpus.staging import Staged
from bioshards.corpus.workspace import Workspace
from bioshards.corpus.xml_blocks import BadFile

from .fetching import Fetching, arriving

NAMESPACE = "bioshards"

Item = TypeVar("Item")


def tally(name: str, value: int) -> None:
    """Add to one of Beam's metrics."""
    beam.metrics.Metrics.counter(NAMESPACE, name).inc(value)


@dataclass
class StageFiles(beam.PTransform):
    """Source files in, :class:`Staged` out: each file read, parsed, shaped and split once."""

    files: LocalFiles
    work: Workspace
    rules: TextRules
    keep_dropped: bool
    digests: bool

    def expand(self, sources: beam.PCollection[Source]) -> beam.PCollection[Staged]:
        return sources | "OneFileEach" >> beam.Reshuffle() | "Stage" >> beam.Map(self.one)

    def one(self, source: Source) -> Staged:
        """Stage one file, and count."""
        started = time.monotonic()
        staged = staging.stage(self.files, self.work, source, self.rules, self.keep_dropped, self.digests)
        tally("files_bad" if staged.bad else "files_staged", 1)
        tally("records_read", staged.records)
        tally("bytes_read", source.size)
        tally("stage_milliseconds", int(1000 * (time.monotonic() - started)))
        for reason, count in staged.rejected.items():
            tally(f"rejected_{reason}", count)
        return staged


@dataclass
class FetchAndStage(beam.PTransform):
    """Lanes of files in, :class:`Staged` out: each file fetched, verified and staged.

    A lane stages one file while it fetches the next ones.  How many lanes there are, and what each
    may ask of the server, is such that no runner asks more of it than it allows (fetching.py).
    """

    fetching: Fetching
    stage: StageFiles
    source: Callable[..., Source]

    def expand(self, lanes: beam.PCollection[list[Remote]]) -> beam.PCollection[Staged]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "FetchAndStage" >> beam.FlatMap(self._lane)

    def _lane(self, remotes: list[Remote]) -> Iterator[Staged]:
        for remote, held in arriving(self.fetching, remotes):
            if isinstance(held, BadFile):
                missing = self.source(Found(self.fetching.mirror.path(remote), 0, ""))
                tally("files_not_fetched", 1)
                yield Staged(missing, None, None, bad=(held.reason, held.detail))
            else:
                tally("bytes_fetched", held.fetched)
                yield self.stage.one(self.source(held.found, held.retrieved))


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

    def expand(self, staged: beam.PCollection[Staged]) -> beam.PCollection[str]:
        everything = beam.pvalue.AsList(staged)
        return _each_bucket(staged, everything) | "Decide" >> beam.Map(self._decide, everything)

    def _decide(self, bucket: int, staged: list[Staged]) -> str:
        buckets = len(_buckets(None, staged))
        return finishing.decide(self.files, self.work, staged, bucket, buckets, self.rules.newest_by_version)


@dataclass
class DecideDuplicates(beam.PTransform):
    """All :class:`Staged` in, the file of each bucket's verdicts out, once the versions are decided."""

    files: LocalFiles
    work: Workspace
    decided: beam.PCollection[str]

    def expand(self, staged: beam.PCollection[Staged]) -> beam.PCollection[str]:
        everything = beam.pvalue.AsList(staged)
        decide = beam.Map(self._decide, everything, beam.pvalue.AsList(self.decided))
        return _each_bucket(staged, everything) | "Decide" >> decide

    def _decide(self, bucket: int, staged: list[Staged], decided: list[str]) -> str:
        buckets = len(_buckets(None, staged))
        return finishing.decide_duplicates(self.files, self.work, staged, decided, bucket, buckets)


def _each_bucket(staged: beam.PCollection[Staged], everything: beam.pvalue.AsList) -> beam.PCollection[int]:
    """The numbers of the buckets, spread over the workers."""
    return (
        staged.pipeline
        | "Once" >> beam.Create([None])
        | "Buckets" >> beam.FlatMap(_buckets, everything)
        | "OneBucketEach" >> beam.Reshuffle()
    )


def _buckets(_: None, staged: Iterable[Staged]) -> range:
    return range(lifecycle.buckets(sum(source.keys for source in staged)))


@dataclass
class FinishShards(beam.PTransform):
    """All :class:`Staged` in, a :class:`Finished` for each good one out, once all is decided."""

    files: LocalFiles
    work: Workspace
    keep_dropped: bool
    max_shard_bytes: int
    excluded: Excluded | None
    decided: beam.PCollection[str]

    def expand(self, staged: beam.PCollection[Staged]) -> beam.PCollection[Finished]:
        return (
            staged.pipeline
            | "Once" >> beam.Create([None])
            | "InOrder" >> beam.FlatMap(_numbered, beam.pvalue.AsList(staged))
            | "OneSourceEach" >> beam.Reshuffle()
            | "Finish" >> beam.Map(self._finish, beam.pvalue.AsList(self.decided))
        )

    def _finish(self, numbered: tuple[int, str], decided: list[str]) -> Finished:
        index, name = numbered
        listed = self.excluded.sha256 if self.excluded else None
        finished = finishing.finish(
            self.files, self.work, name, index, decided, self.keep_dropped, self.max_shard_bytes, listed
        )
        for reason, count in finished.funnel.items():
            tally("documents_kept" if reason == "kept" else f"dropped_{reason}", count)
        for what in ("sentences", "words"):
            tally(what, finished.counts[what])
        return finished


def _numbered(_: None, staged: list[Staged]) -> Iterator[tuple[int, str]]:
    return iter(enumerate(finishing.good_names(staged)))


@dataclass
class Publish(beam.PTransform):
    """All :class:`Staged` and :class:`Finished` in, one :class:`Outcome` out: the manifest, last."""

    files: LocalFiles
    work: Workspace
    rules: TextRules
    config: dict[str, Any]
    max_rejected: float
    excluded: Excluded | None
    run: dict[str, Any]
    finished: beam.PCollection[Finished]
    in_full: beam.PCollection[dict[str, Any]] | None = None

    def expand(self, staged: beam.PCollection[Staged]) -> beam.PCollection[Outcome]:
        given = [staged, self.finished, *([self.in_full] if self.in_full else [])]
        manifest = beam.Map(self._publish, *map(beam.pvalue.AsList, given))
        return staged.pipeline | "Once" >> beam.Create([None]) | "Manifest" >> manifest

    def _publish(
        self,
        _: None,
        staged: list[Staged],
        finished: list[Finished],
        in_full: Sequence[dict[str, Any]] = (),
    ) -> Outcome:
        run = {**self.run, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        outcome = publishing.publish(
            self.files,
            self.work,
            self.rules,
            self.config,
            staged,
            finished,
            self.max_rejected,
            run,
            in_full,
            self.excluded,
        )
        self.files.write_json(self.work.outcome, {name: getattr(outcome, name) for name in Outcome.__slots__})
        return outcome
