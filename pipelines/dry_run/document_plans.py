"""``--dry-run`` of what is made of documents: words, and pretraining examples."""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.corpus.manifest import Shard
from bioshards.pipelines.dry_run import cost
from bioshards.pipelines.dry_run.cost import DryRunPlan
from bioshards.pipelines.inputs.downloads import format_size
from bioshards.pipelines.job_types import PretrainingJob, WordsJob
from bioshards.vocab.pretraining.objectives.example_recipes import OBJECTIVES


def plan_words(job: WordsJob) -> DryRunPlan:
    """Plan ``beam run shards_to_words``."""
    report_names = set(job.storage.list_names(job.output_dir.word_counts_folder))
    all_shards = [shard for document_input in job.inputs for shard in document_input.shards]
    to_do = [shard for shard in all_shards if f"{shard.sha256}.json" not in report_names]
    size = sum(shard.bytes for shard in to_do)
    lines = [
        *_format_header(all_shards, job.output_dir.path),
        f"  counted:   {len(all_shards) - len(to_do):,} shards before, {len(to_do):,} to do",
    ]
    store_wait_seconds = cost.estimate_store_wait(cost.STORE_CALLS_PER_SHARD * len(to_do), size)
    seconds = size / 1e6 / cost.WORD_COUNT_MB_PER_CORE_SECOND
    return DryRunPlan(lines, seconds, size, len(to_do), store_wait_seconds)


def plan_pretraining(job: PretrainingJob) -> DryRunPlan:
    """Plan ``beam run shards_to_pretraining``."""
    report_names = set(job.storage.list_names(job.output_dir.build_reports_folder))
    to_do = [group for group in job.shard_groups if f"{group.name}.json" not in report_names]
    size = sum(shard.bytes for group in to_do for shard in group.shards)
    recipe, buckets = job.build_config.recipe, job.build_config.num_buckets
    passes_text = f"{recipe.dupe_factor} passes" if recipe.dupe_factor > 1 else "one pass"
    shuffle_text = f", dealt out to {sum(buckets.values()):,} shards" if buckets else ""
    lines = [
        *_format_header([shard for group in job.shard_groups for shard in group.shards], job.output_dir.path),
        f"  examples:  {recipe.objective}, {recipe.max_seq_length} tokens a row at most, "
        f"{passes_text}{shuffle_text}",
        f"  built:     {len(job.shard_groups) - len(to_do):,} groups of shards before, {len(to_do):,} to do",
    ]
    seconds = OBJECTIVES[recipe.objective].cost.estimate_core_seconds(size, recipe.dupe_factor)
    store_wait_seconds = cost.estimate_store_wait(cost.STORE_CALLS_PER_SHARD * len(to_do), size)
    return DryRunPlan(lines, seconds, size, len(to_do), store_wait_seconds)


def _format_header(shards: Sequence[Shard], output: str) -> list[str]:
    rows, size = sum(shard.rows for shard in shards), sum(shard.bytes for shard in shards)
    return [
        "dry run: nothing is written",
        f"output:      {output}",
        f"  input:     {rows:,} documents in {len(shards):,} shards, {format_size(size)}",
    ]
