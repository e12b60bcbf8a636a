"""What all of PubMed and PMC take, by the rates in pipelines/cost.py: ``python -m tests.bench.full_corpora``.

Nothing is run.  The table is for Dataflow's default machines; core hours alone are for any other cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from bioshards.pipelines import cost, dataflow
from bioshards.pipelines.cost import Machines
from bioshards.vocab.examples.portions import ENOUGH
from bioshards.vocab.examples.recipes import PRESETS

CITATIONS: Final = 65e9
"""Bytes of PubMed's 1,334 baseline and, by the autumn, some 270 update files: 40 million records."""
FILES: Final = 1_600
ARTICLES: Final = 8_000_000 * 190_000
"""Bytes of PMC's articles: 8 million in their newest versions, 190 kB of XML each."""
RANGES: Final = 1_400
"""Of 10,000 PMC ids."""
ABSTRACTS: Final = 28_300_000 * 1_950
"""Bytes of documents: so many records have an abstract, each of 1,950 bytes as ours have."""
BODIES: Final = 0.334 * ARTICLES
"""Bytes of documents: so much of their XML articles' text takes, of 2,254 real ones."""
SHARD: Final = 256_000_000
MACHINES: Final = Machines(
    dataflow.MOST_WORKERS, dataflow.VCPUS, dataflow.MEMORY_GB, dataflow.DEFAULTS.disk_size_gb
)
HEAD: Final = "| pipeline | input | core hours | worker hours | time | money |\n|---|---|---|---|---|---|"


def jobs() -> Iterator[tuple[str, str, float, int]]:
    """What is run: its name, its input, core seconds, and how much can be done at a time."""
    both = ABSTRACTS + BODIES
    shards = FILES + max(RANGES, math.ceil(BODIES / SHARD))
    yield "pubmed_to_shards", "40 million citations, 65 GB", cost.PUBMED.seconds(CITATIONS), FILES
    yield "pmc_to_shards", "8 million articles, 1.5 TB", cost.ARTICLES.seconds(ARTICLES), RANGES
    yield "shards_to_words", f"all documents, {both / 1e9:.0f} GB", cost.WORDS.seconds(both), shards
    for preset, recipe in PRESETS.items():
        what, size = ("articles", BODIES) if preset == "bio-electra-pp" else ("abstracts", ABSTRACTS)
        passes = f", {recipe.dupe_factor} passes" if recipe.dupe_factor > 1 else ""
        seconds = cost.EXAMPLES[recipe.objective].seconds(size, recipe.dupe_factor)
        name = f"shards_to_pretraining, {preset}"
        yield name, f"{what}, {size / 1e9:.0f} GB{passes}", seconds, math.ceil(size / ENOUGH)


def table() -> str:
    """The table in Markdown."""
    rows = []
    for name, what, core_seconds, at_a_time in jobs():
        takes = cost.cost(core_seconds, at_a_time, MACHINES)
        rows.append(
            f"| {name} | {what} | {takes.core_hours:.1f} | {takes.worker_hours:.1f} | "
            f"{takes.seconds / 60:.0f} min | ${takes.dollars:.2f} |"
        )
    return "\n".join([HEAD, *rows])


if __name__ == "__main__":
    print(table())
