"""Full text, JATS XML, to document shards: ``beam run pmc_to_shards``.

The recipe is :func:`build`; the options are in article_options.py.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Final

from bioshards.corpus import article_sources

from .article_inputs import find as find
from .article_options import parser as parser
from .article_options import rules_of as rules_of
from .job import Job

if TYPE_CHECKING:
    import apache_beam as beam

NAME: Final = "pmc_to_shards"


def build(root: beam.Pipeline, job: Job) -> None:
    """The pipeline: stage every source, decide which versions live, finish the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from .article_transforms import BringAndStage, FindOverlap, TakeKeys
    from .transforms import (
        DecideDuplicates,
        DecideVersions,
        FetchAndStage,
        FinishShards,
        Publish,
        StageFiles,
        lanes,
    )

    stage = StageFiles(job.files, job.work, job.rules, job.keep_dropped, digests=job.dedup == "exact")
    here = root | "Sources" >> beam.Create(job.sources, reshuffle=False) | "StageFiles" >> stage
    each = [here]
    if job.fetching and job.wanted:
        wanted = root | "Lanes" >> beam.Create(lanes(job.wanted, job.fetching), reshuffle=False)
        each.append(wanted | "FetchAndStage" >> FetchAndStage(job.fetching, stage, article_sources.source))
    if job.bucket:
        ranges = root | "Ranges" >> beam.Create(
            lanes(job.bucket.ranges, job.bucket.fetching), reshuffle=False
        )
        each.append(ranges | "BringAndStage" >> BringAndStage(job.bucket, stage))
    staged = each | "Staged" >> beam.Flatten()
    decided = staged | "DecideVersions" >> DecideVersions(job.files, job.work, job.rules)
    if job.dedup == "exact":
        duplicates = staged | "DecideDuplicates" >> DecideDuplicates(job.files, job.work, decided)
        decided = (decided, duplicates) | "Decided" >> beam.Flatten()
    finished = staged | "FinishShards" >> FinishShards(
        job.files, job.work, job.keep_dropped, job.max_shard_bytes, job.excluded, decided
    )
    taken = finished | "TakeKeys" >> TakeKeys(job.files, job.work, job.drop_in)
    overlap = finished | "FindOverlap" >> FindOverlap(job.files, job.work, job.drop_in, taken)
    staged | "Publish" >> Publish(
        job.files,
        job.work,
        job.rules,
        job.config,
        job.max_rejected,
        job.excluded,
        job.run,
        decided,
        finished,
        overlap,
    )


def sample() -> str:
    """The folder of the sample that comes with bioshards: 20 articles, all of them invented."""
    return str(resources.files("bioshards.corpus") / "sample" / "pmc")
