"""PTransforms of full text only: articles brought and staged, and abstracts that they hold found."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import apache_beam as beam

from bioshards.corpus import article_sources, overlap
from bioshards.corpus.download import pmc
from bioshards.corpus.download.pmc import RangeReport
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.finishing import Finished
from bioshards.corpus.staging import Staged
from bioshards.corpus.workspace import Workspace

from .bucket import Bucket
from .fetch_transforms import brought
from .steps import Done, measure, results, tell
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
class FindOverlap(beam.PTransform):
    """All :class:`Finished` in; out, if there is a folder to drop in, the file that lists its abstracts."""

    files: LocalFiles
    work: Workspace
    drop_in: str | None

    def expand(self, finished: beam.PCollection[Done[Finished]]) -> beam.PCollection[Done[dict[str, Any]]]:
        asked = [self.drop_in] if self.drop_in else []
        return (
            finished.pipeline
            | "Once" >> beam.Create(asked)
            | "Find" >> beam.Map(self._find, beam.pvalue.AsList(finished))
        )

    def _find(self, folder: str, finished: list[Done[Finished]]) -> Done[dict[str, Any]]:
        listed = [shard for done in results(finished) for shard in done.shards]

        def work(files: LocalFiles) -> dict[str, Any]:
            identity = overlap.identity(files, folder)
            articles = overlap.articles_of(files, self.work.output, listed)
            held = overlap.find(articles, lambda: overlap.abstracts_of(files, folder))
            written = overlap.write(files, f"{self.work.output}/{overlap.FILE}", identity, held)
            return {**dataclasses.asdict(written), "of": folder, "abstracts": identity}

        return tell(measure("overlap", self.files, work, lambda found: {"in_full": found["rows"]}))
