"""PTransforms of ``beam run fetch``: reports pass between them, files go to the mirror at once."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import apache_beam as beam

from bioshards.corpus.download import pmc, report
from bioshards.corpus.download.mirror import Held
from bioshards.corpus.download.pmc import RangeReport
from bioshards.corpus.download.pmc_bucket import label
from bioshards.corpus.download.pool import Pool
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.report import FetchedFile
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import Steps, encode, utc_now

from .bucket import Bucket
from .fetching import Fetching, arriving
from .steps import Done, Figures, measure, results, summed, tell, wrap_worker_errors

if TYPE_CHECKING:
    from .fetch import Job


@dataclass
class FetchFiles(beam.PTransform):
    """Lanes of a source's files in, a :class:`FetchedFile` for each out."""

    source: str
    fetching: Fetching

    def expand(self, lanes: beam.PCollection[list[Remote]]) -> beam.PCollection[Done[FetchedFile]]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "Fetch" >> beam.FlatMap(self._lane)

    def default_label(self) -> str:
        return f"Fetch {self.source}"

    def _lane(self, remotes: list[Remote]) -> Iterator[Done[FetchedFile]]:
        with wrap_worker_errors():
            for remote, held in arriving(self.fetching, remotes):
                if isinstance(held, Held):
                    file = FetchedFile(self.source, remote, held)
                else:
                    file = FetchedFile(self.source, remote, None, held.detail)
                yield tell(Done(file, (fetched(held),)))


def fetched(held: Held | BadFileError) -> Figures:
    """What fetching a file took, or trying to; ``bytes_in`` are the server's."""
    if isinstance(held, BadFileError):
        return Figures("fetch", counts={"failed": 1})
    size, milliseconds = held.fetched, round(1000 * held.seconds) if held.fetched else 0
    return Figures("fetch", not size, size, size, milliseconds)


@dataclass
class BringRanges(beam.PTransform):
    """Lanes of ranges of PMC ids in, a :class:`RangeReport` for each out; its articles in the mirror."""

    bucket: Bucket

    def expand(self, lanes: beam.PCollection[list[int]]) -> beam.PCollection[Done[RangeReport]]:
        return lanes | "OneLaneEach" >> beam.Reshuffle() | "Bring" >> beam.FlatMap(self._lane)

    def _lane(self, numbers: list[int]) -> Iterator[Done[RangeReport]]:
        with wrap_worker_errors():
            for done in brought(self.bucket, numbers):
                yield tell(done)


def brought(bucket: Bucket, numbers: list[int]) -> Iterator[Done[RangeReport]]:
    """Bring ranges into the mirror, one after the other, and leave each one's report there."""
    server, mirror = bucket.fetching.server, bucket.fetching.mirror
    pool = Pool(bucket.fetching.of_lane(label(numbers[0])), bucket.fetching.threads)

    def work(files: LocalFiles, number: int) -> RangeReport:
        today = datetime.now(UTC).date()
        done = pmc.bring(files, mirror.folder, server.base, pool, number, bucket.articles, today)
        path = f"{mirror.folder}/pmc/reports/{label(number)}.json"
        files.write_json(path, dataclasses.asdict(done))
        return done

    for number in numbers:
        yield measure("bring", mirror.files, functools.partial(work, number=number), _in_range)


_NO_NAME = re.compile(r"[^A-Za-z0-9]+")
"""What is in reasons (``licence:CC BY-NC``) and better not in the name of a metric."""


def _in_range(done: RangeReport) -> dict[str, int]:
    return {
        **{f"articles_{what}": getattr(done, what) for what in ("selected", "held", "fetched", "removed")},
        "articles_bytes": done.bytes,
        "articles_failed": len(done.bad),
        **{f"dropped_{_NO_NAME.sub('-', reason)}": count for reason, count in done.dropped.items()},
    }


@dataclass
class PublishMirror(beam.PTransform):
    """Everything that was fetched in, the mirror's manifest written, last."""

    job: Job
    fetched: beam.PCollection[Done[FetchedFile]]
    brought: beam.PCollection[Done[RangeReport]]

    def expand(self, root: beam.Pipeline) -> beam.PCollection[None]:
        return (
            root
            | "Once" >> beam.Create([None])
            | "Manifest"
            >> beam.Map(self._publish, beam.pvalue.AsList(self.fetched), beam.pvalue.AsList(self.brought))
        )

    def _publish(self, _: None, fetched: list[Done[FetchedFile]], brought: list[Done[RangeReport]]) -> None:
        steps = summed(fetched, brought)

        def work(files: LocalFiles) -> dict[str, Any]:
            return _published(files, self.job, results(fetched), results(brought), steps)

        tell(measure("publish", self.job.mirror.files, work, _in_outcome))


def _in_outcome(outcome: dict[str, Any]) -> dict[str, int]:
    return {"failed": int(bool(outcome["problem"]))}


def _published(
    files: LocalFiles, job: Job, fetched: list[FetchedFile], brought: list[RangeReport], steps: Steps
) -> dict[str, Any]:
    """Write the manifest; returns, and leaves for the driver, what became of it all."""
    held = [
        FetchedFile(name, remote, there)
        for name, listed in job.listed.items()
        for remote, there in listed.held.items()
    ]
    run = dataclasses.replace(job.run, finished=utc_now(), steps=steps)
    made = report.manifest(job.config, [*held, *fetched], brought, run)
    outcome = {
        "problem": report.publish(files, job.work.manifest, made, job.max_rejected),
        "held": len(held),
        "fetched": sum(1 for file in fetched if file.held and file.held.fetched),
        "files": len(made.files),
        "bytes": sum(file.held.fetched for file in fetched if file.held),
        "articles": encode(made.articles),
        "articles_held": sum(done.held for done in brought),
        "articles_fetched": sum(done.fetched for done in brought),
        "articles_removed": sum(done.removed for done in brought),
        "articles_bytes": sum(done.bytes for done in brought),
    }
    files.write_json(job.work.outcome, outcome)
    return outcome
