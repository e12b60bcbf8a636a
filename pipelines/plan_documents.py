"""``--dry-run`` of what is made of documents: words, and pretraining examples."""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.corpus.shards import Shard

from . import cost
from .fetching import as_size
from .plan import Plan
from .shards_to_pretraining import Job as ExampleJob
from .shards_to_words import Job as CountJob


def of_words(job: CountJob) -> Plan:
    """What ``beam run shards_to_words`` would do."""
    there = set(job.files.names(f"{job.work.folder}/counts"))
    every = [shard for documents in job.inputs for shard in documents.shards]
    to_do = [shard for shard in every if f"{shard.sha256}.json" not in there]
    size = sum(shard.bytes for shard in to_do)
    lines = [
        *_begun(every, job.work.output),
        f"  counted:   {len(every) - len(to_do):,} shards before, {len(to_do):,} to do",
    ]
    waiting = cost.waiting(cost.SHARD_CALLS * len(to_do), size)
    return Plan(lines, cost.WORDS.seconds(size), size, len(to_do), waiting)


def of_examples(job: ExampleJob) -> Plan:
    """What ``beam run shards_to_pretraining`` would do."""
    there = set(job.files.names(f"{job.work.folder}/made"))
    to_do = [portion for portion in job.portions if f"{portion.name}.json" not in there]
    size = sum(shard.bytes for portion in to_do for shard in portion.shards)
    recipe, buckets = job.making.recipe, job.making.buckets
    passes = f"{recipe.dupe_factor} passes" if recipe.dupe_factor > 1 else "one pass"
    dealt = f", dealt out to {sum(buckets.values()):,} shards" if buckets else ""
    lines = [
        *_begun([shard for portion in job.portions for shard in portion.shards], job.work.output),
        f"  examples:  {recipe.objective}, {recipe.length} tokens a row at most, {passes}{dealt}",
        f"  made:      {len(job.portions) - len(to_do):,} portions before, {len(to_do):,} to do",
    ]
    seconds = cost.EXAMPLES[recipe.objective].seconds(size, recipe.dupe_factor)
    waiting = cost.waiting(cost.SHARD_CALLS * len(to_do), size)
    return Plan(lines, seconds, size, len(to_do), waiting)


def _begun(shards: Sequence[Shard], output: str) -> list[str]:
    rows, size = sum(shard.rows for shard in shards), sum(shard.bytes for shard in shards)
    return [
        "dry run: nothing is written",
        f"output:      {output}",
        f"  input:     {rows:,} documents in {len(shards):,} shards, {as_size(size)}",
    ]
