"""Full text, JATS XML, to document shards: ``beam run pmc_to_shards``.

The graph is built by :func:`build`; the options are in options/pmc_options.py.
"""

from __future__ import annotations

import argparse
from importlib import resources
from typing import TYPE_CHECKING, Final

from bioshards.corpus.jats import inputs
from bioshards.pipelines.options.pmc_options import config_from_args
from bioshards.pipelines.options.pmc_options import make_parser as make_parser
from bioshards.pipelines.options.shard_options import ShardsOptions, shards_options_from_args

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import ShardsJob

NAME: Final = "pmc_to_shards"


def build(pipeline: beam.Pipeline, job: ShardsJob) -> None:
    """Build the graph: stage every source, resolve versions, finalize the shards, publish."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.inputs.downloads import split_into_slots
    from bioshards.pipelines.transforms.document_shards import (
        FetchAndStage,
        FinalizeShards,
        PublishShards,
        ResolveDuplicates,
        ResolveVersions,
        StageFiles,
    )
    from bioshards.pipelines.transforms.full_text import ExtractKeys, FetchAndStageRanges, FindOverlap
    from bioshards.pipelines.transforms.mirror_files import CheckRemovals, FindRemovals

    stage_files = StageFiles(
        job.storage, job.output_dir, job.document_config, job.keep_dropped, has_digests=job.dedup == "exact"
    )
    staged_files = (
        pipeline | "Sources" >> beam.Create(job.sources, reshuffle=False) | "StageFiles" >> stage_files
    )
    staged_collections = [staged_files]
    for source, listing in job.run_inputs.listings.items():
        if not listing.to_fetch:
            continue
        file_slots = split_into_slots(listing.to_fetch, listing.download_plan)
        staged_collections.append(
            pipeline
            | f"Slots of {source}" >> beam.Create(file_slots, reshuffle=False)
            | f"Fetch and stage {source}"
            >> FetchAndStage(listing.download_plan, stage_files, inputs.source_from_file)
        )
    if job.article_plan:
        range_slots = pipeline | "Ranges" >> beam.Create(
            split_into_slots(job.article_plan.ranges, job.article_plan.download_plan), reshuffle=False
        )
        range_removals = pipeline | "FindRemovals" >> FindRemovals(job.article_plan)
        checked = range_removals | "CheckRemovals" >> CheckRemovals(
            job.article_plan.download_plan.mirror, job.output_dir
        )
        staged_collections.append(
            range_slots | "FetchAndStageRanges" >> FetchAndStageRanges(job.article_plan, stage_files, checked)
        )
    staged = staged_collections | "Staged" >> beam.Flatten()
    decisions = staged | "ResolveVersions" >> ResolveVersions(
        job.storage, job.output_dir, job.document_config
    )
    if job.dedup == "exact":
        duplicate_decisions = staged | "ResolveDuplicates" >> ResolveDuplicates(
            job.storage, job.output_dir, decisions
        )
        decisions = (decisions, duplicate_decisions) | "Decisions" >> beam.Flatten()
    finalized = staged | "FinalizeShards" >> FinalizeShards(
        job.storage, job.output_dir, job.keep_dropped, job.max_shard_bytes, job.exclusion_list, decisions
    )
    shard_keys = finalized | "ExtractKeys" >> ExtractKeys(job.storage, job.output_dir, job.overlap_with)
    overlap = finalized | "FindOverlap" >> FindOverlap(
        job.storage, job.output_dir, job.overlap_with, shard_keys
    )
    staged | "Publish" >> PublishShards(
        job.storage,
        job.output_dir,
        job.document_config,
        job.config,
        job.max_rejected,
        job.max_bad_files,
        job.exclusion_list,
        job.run_info,
        decisions,
        finalized,
        overlap,
    )


def options_from_args(args: argparse.Namespace) -> ShardsOptions:
    """Build the options of parsed arguments; they override the preset.

    Raises:
        UsageError: options contradict each other.
    """
    return shards_options_from_args(args, config_from_args(args), sample_folder())


def sample_folder() -> str:
    """Return the folder of the sample that comes with bioshards: 20 invented articles."""
    return str(resources.files("bioshards.corpus") / "sample" / "pmc")
