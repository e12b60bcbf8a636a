"""PTransforms of ``beam run fetch``: reports pass between them, files go to the mirror at once."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import apache_beam as beam

from bioshards.corpus.download import pmc, report
from bioshards.corpus.download.mirror import Held
from bioshards.corpus.download.pmc import RangeReport
from bioshards.corpus.download.pmc_bucket import label
from bioshards.corpus.download.pool import Pool
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.report import FetchedFile

from .bucket import Bucket
from .fetching import Fetching, arriving
from .transforms import tally

if TYPE_CHECKING:
    from .fetch import Job


@dataclass
class FetchFiles(beam.PTransform):
    """Lanes of a source's files in, a :class:`FetchedFile` for each out."""

    source: str
    fetching: Fetching

    def expand(self, lanes: beam.PCollection[list[Remote]]) -> beam.PCollection[FetchedFile]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "Fetch" >> beam.FlatMap(self._lane)

    def default_label(self) -> str:
        return f"Fetch {self.source}"

    def _lane(self, remotes: list[Remote]) -> Iterator[FetchedFile]:
        for remote, held in arriving(self.fetching, remotes):
            if isinstance(held, Held):
                tally("bytes_fetched", held.fetched)
                yield FetchedFile(self.source, remote, held)
            else:
                tally("files_not_fetched", 1)
                yield FetchedFile(self.source, remote, None, held.detail)


@dataclass
class BringRanges(beam.PTransform):
    """Lanes of ranges of PMC ids in, a :class:`RangeReport` for each out; its articles in the mirror."""

    bucket: Bucket

    def expand(self, lanes: beam.PCollection[list[int]]) -> beam.PCollection[RangeReport]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "Bring" >> beam.FlatMap(self._lane)

    def _lane(self, numbers: list[int]) -> Iterator[RangeReport]:
        yield from brought(self.bucket, numbers)


def brought(bucket: Bucket, numbers: list[int]) -> Iterator[RangeReport]:
    """Bring ranges into the mirror, one after the other, and leave each one's report there."""
    server, mirror = bucket.fetching.server, bucket.fetching.mirror
    pool = Pool(server, bucket.fetching.threads)
    for number in numbers:
        today = datetime.now(UTC).date()
        done = pmc.bring(mirror.files, mirror.folder, server.base, pool, number, bucket.articles, today)
        path = f"{mirror.folder}/pmc/reports/{label(number)}.json"
        mirror.files.write_json(path, dataclasses.asdict(done))
        for what in ("selected", "fetched", "bytes", "removed"):
            tally(f"articles_{what}", getattr(done, what))
        yield done


@dataclass
class PublishMirror(beam.PTransform):
    """Everything that was fetched in, the mirror's manifest written, last."""

    job: Job
    fetched: beam.PCollection[FetchedFile]
    brought: beam.PCollection[RangeReport]

    def expand(self, root: beam.Pipeline) -> beam.PCollection[None]:
        return (
            root
            | "Once" >> beam.Create([None])
            | "Manifest"
            >> beam.Map(self._publish, beam.pvalue.AsList(self.fetched), beam.pvalue.AsList(self.brought))
        )

    def _publish(self, _: None, fetched: list[FetchedFile], brought: list[RangeReport]) -> None:
        job, files = self.job, self.job.mirror.files
        held = [
            FetchedFile(name, remote, there)
            for name, listed in job.listed.items()
            for remote, there in listed.held.items()
        ]
        made = report.manifest(job.config, [*held, *fetched], brought)
        run = {**job.run, "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        problem = report.publish(files, job.work.manifest, made, job.max_rejected, run)
        files.write_json(
            job.work.outcome,
            {
                "problem": problem,
                "held": len(held),
                "fetched": sum(1 for file in fetched if file.held and file.held.fetched),
                "files": len(made["files"]),
                "bytes": sum(file.held.fetched for file in fetched if file.held),
                "articles": made["articles"],
                "articles_held": sum(done.held for done in brought),
                "articles_fetched": sum(done.fetched for done in brought),
                "articles_removed": sum(done.removed for done in brought),
                "articles_bytes": sum(done.bytes for done in brought),
            },
        )
