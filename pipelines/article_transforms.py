"""PTransforms of full text only: articles brought and staged, and abstracts that they hold found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import apache_beam as beam

from bioshards.corpus import article_sources, overlap, shard_keys, shards
from bioshards.corpus.download import pmc
from bioshards.corpus.download.pmc import RangeReport
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.finishing import Finished
from bioshards.corpus.manifest import OverlapFile, Shard
from bioshards.corpus.staging import Staged
from bioshards.corpus.workspace import Workspace

from .again import again
from .bucket import Bucket
from .fetch_transforms import brought
from .steps import Done, measure, results, tell, wrap_worker_errors
from .transforms import StageFiles

T = TypeVar("T")


@dataclass
class BringAndStage(beam.PTransform):
    """Lanes of ranges of PMC ids in, :class:`Staged` out: a range's articles brought, then staged.

    A lane stages one range while it brings the next.
    """

    bucket: Bucket
    stage: StageFiles

    def expand(self, lanes: beam.PCollection[list[int]]) -> beam.PCollection[Done[Staged | None]]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "BringAndStage" >> beam.FlatMap(self._lane)

    def _lane(self, numbers: list[int]) -> Iterator[Done[Staged | None]]:
        with wrap_worker_errors():
            for done in _ahead(brought(self.bucket, numbers)):
                staged, figures = None, done.figures
                if found := self._list(done.result):
                    one = self.stage.one(article_sources.source(found))
                    staged = dataclasses.replace(one.result, not_fetched=len(done.result.bad))
                    figures += one.figures
                yield tell(Done(staged, figures))

    def _list(self, done: RangeReport) -> Found | None:
        """The list of the range's articles; None where nothing of it is selected."""
        mirror = self.bucket.fetching.mirror
        if not done.selected and not done.bad:
            return None
        return mirror.files.find(pmc.selected_path(mirror.folder, done.number))[0]


def _ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, each of them made while the one before it is used."""
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(next, items, None)
        while (item := waiting.result()) is not None:
            waiting = thread.submit(next, items, None)
            yield item


@dataclass
class TakeKeys(beam.PTransform):
    """All :class:`Finished` in; out, if there is a folder to drop in, one for each shard of both.

    Their keys are in files then, which many workers have written and one can read.
    """

    files: LocalFiles
    work: Workspace
    drop_in: str | None

    def expand(self, finished: beam.PCollection[Done[Finished]]) -> beam.PCollection[Done[None]]:
        return (
            finished.pipeline
            | "Once" >> beam.Create([self.drop_in] if self.drop_in else [])
            | "Shards" >> beam.FlatMap(self._shards, beam.pvalue.AsList(finished))
            | "OneShardEach" >> beam.Reshuffle()
            | "Take" >> beam.Map(self._take)
        )

    def _shards(self, folder: str, finished: list[Done[Finished]]) -> Iterator[tuple[str, Shard]]:
        for shard in again(lambda: overlap.of_abstracts(self.files, folder)):
            yield folder, shard
        for shard in _written(finished):
            yield self.work.output, shard

    def _take(self, of: tuple[str, Shard]) -> Done[None]:
        def work(files: LocalFiles) -> None:
            shard_keys.take(files, self.work, *of)

        return tell(measure("keys", self.files, work, lambda _: {}))


@dataclass
class FindOverlap(beam.PTransform):
    """All :class:`Finished` in; out, if there is a folder to drop in, the file that lists its abstracts."""

    files: LocalFiles
    work: Workspace
    drop_in: str | None
    taken: beam.PCollection[Done[None]]

    def expand(self, finished: beam.PCollection[Done[Finished]]) -> beam.PCollection[Done[OverlapFile]]:
        given = map(beam.pvalue.AsList, (finished, self.taken))
        return (
            finished.pipeline
            | "Once" >> beam.Create([self.drop_in] if self.drop_in else [])
            | "Find" >> beam.Map(self._find, *given)
        )

    def _find(
        self, folder: str, finished: list[Done[Finished]], taken: list[Done[None]]
    ) -> Done[OverlapFile]:
        written = _written(finished)

        def work(files: LocalFiles) -> OverlapFile:
            abstracts = overlap.of_abstracts(files, folder)
            identity = shards.digest(shard.sha256 for shard in abstracts)
            held = overlap.find(
                overlap.of_pmc(shard_keys.read(files, self.work, self.work.output, written)),
                lambda: shard_keys.read(files, self.work, folder, abstracts),
            )
            found = overlap.write(files, f"{self.work.output}/{overlap.FILE}", folder, identity, held)
            shard_keys.sweep(files, self.work, [*written, *abstracts])
            return found

        done = tell(measure("overlap", self.files, work, lambda found: {"abstracts": found.rows}))
        keys = (figures for one in taken for figures in one.figures)
        return Done(done.result, (*keys, *done.figures))


def _written(finished: list[Done[Finished]]) -> list[Shard]:
    """The shards of all articles, as a manifest lists them."""
    return [shard for done in results(finished) for shard in done.shards]
