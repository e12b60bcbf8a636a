"""Cost of all of PubMed and PMC by the rates in pipelines/dry_run/cost.py: ``python -m
tests.bench.tables.full_corpora``.

Nothing is run.  The table is for Dataflow's default machines; core hours alone are for any other cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bioshards.pipelines.dataflow import settings
from bioshards.pipelines.dry_run import cost
from bioshards.pipelines.dry_run.cost import DryRunPlan
from bioshards.pipelines.dry_run.source_plans import MEAN_ARTICLE_BYTES
from bioshards.vocab.pretraining.objectives.example_recipes import OBJECTIVES, PRESETS
from bioshards.vocab.pretraining.shard_groups import MIN_GROUP_BYTES

CITATION_BYTES: Final = 65e9
"""Bytes of PubMed's 1,334 baseline and, by the autumn, some 270 update files: 40 million records."""
PUBMED_FILES: Final = 1_600
ARTICLE_COUNT: Final = 8_000_000
"""Of PMC, in their newest versions."""
PMC_RANGES: Final = 1_400
"""Of 10,000 PMC ids."""
ABSTRACT_BYTES: Final = 28_300_000 * 1_950
"""Bytes of documents: so many records have an abstract, each of 1,950 bytes as ours have."""
ARTICLE_TEXT_BYTES: Final = 0.334 * ARTICLE_COUNT * MEAN_ARTICLE_BYTES
"""Bytes of documents: so much of their XML articles' text takes, of 2,254 real ones."""
SHARD_BYTES: Final = 256_000_000
TABLE_HEADER: Final = (
    "| pipeline | input | core hours | hours of waiting | worker hours | time | money |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class CostedJob:
    """A job: name, input, core seconds, waiting seconds, and items processed in parallel."""

    name: str
    what: str
    core_seconds: float
    waiting: float
    items: int


def iter_jobs() -> Iterator[CostedJob]:
    """Yield all jobs over the full corpora."""
    document_bytes = ABSTRACT_BYTES + ARTICLE_TEXT_BYTES
    shards = PUBMED_FILES + max(PMC_RANGES, math.ceil(ARTICLE_TEXT_BYTES / SHARD_BYTES))
    yield CostedJob(
        "pubmed_to_shards",
        f"40 million citations, {CITATION_BYTES / 1e9:.0f} GB",
        CITATION_BYTES / 1e6 / cost.PUBMED_MB_PER_CORE_SECOND,
        cost.estimate_source_wait(PUBMED_FILES, CITATION_BYTES),
        PUBMED_FILES,
    )
    yield CostedJob(
        "pmc_to_shards",
        f"{ARTICLE_COUNT / 1e6:.0f} million articles, {ARTICLE_COUNT * MEAN_ARTICLE_BYTES / 1e12:.1f} TB",
        ARTICLE_COUNT * MEAN_ARTICLE_BYTES / 1e6 / cost.ARTICLE_MB_PER_CORE_SECOND,
        cost.estimate_source_wait(PMC_RANGES, ARTICLE_COUNT * MEAN_ARTICLE_BYTES, ARTICLE_COUNT),
        PMC_RANGES,
    )
    yield CostedJob(
        "shards_to_words",
        f"all documents, {document_bytes / 1e9:.0f} GB",
        document_bytes / 1e6 / cost.WORD_COUNT_MB_PER_CORE_SECOND,
        cost.estimate_store_wait(cost.STORE_CALLS_PER_SHARD * shards, document_bytes),
        shards,
    )
    for preset, recipe in PRESETS.items():
        what, size = (
            ("articles", ARTICLE_TEXT_BYTES) if preset == "bio-electra-pp" else ("abstracts", ABSTRACT_BYTES)
        )
        passes = f", {recipe.dupe_factor} passes" if recipe.dupe_factor > 1 else ""
        seconds = OBJECTIVES[recipe.objective].cost.estimate_core_seconds(size, recipe.dupe_factor)
        portions = math.ceil(size / MIN_GROUP_BYTES)
        yield CostedJob(
            f"shards_to_pretraining, {preset}",
            f"{what}, {size / 1e9:.0f} GB{passes}",
            seconds,
            cost.estimate_store_wait(cost.STORE_CALLS_PER_SHARD * portions, size),
            portions,
        )


def make_table() -> str:
    """Make the Markdown table."""
    rows = []
    for job in iter_jobs():
        plan = DryRunPlan([], job.core_seconds, 0, job.items, job.waiting)
        job_cost = cost.estimate_cost(plan, settings.MAX_WORKERS, settings.DEFAULT_VCPUS)
        rows.append(
            f"| {job.name} | {job.what} | {job.core_seconds / 3600:.1f} | {job.waiting / 3600:.1f} | "
            f"{job_cost.worker_hours:.1f} | {job_cost.seconds / 60:.0f} min | ${job_cost.dollars:.2f} |"
        )
    return "\n".join([TABLE_HEADER, *rows])


if __name__ == "__main__":
    print(make_table())
