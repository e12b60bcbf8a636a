"""PubMed citation XML to document shards: ``beam run pubmed_to_shards``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

import argparse
from importlib import resources
from typing import TYPE_CHECKING, Final

from bioshards.corpus.document_presets import PUBMED_PRESETS
from bioshards.corpus.download.source_registry import SOURCES, list_source_names
from bioshards.corpus.pubmed.citation import OTHER_ABSTRACT_TYPES
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.pipelines.options.argument_types import (
    int_at_least,
    language_list,
    name_list,
    publication_type_list,
)
from bioshards.pipelines.options.common import add_download_options, add_server_options
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.shard_options import (
    ShardsOptions,
    add_reject_options,
    add_shard_options,
    shards_options_from_args,
)
from bioshards.pipelines.options.text_options import (
    add_dedup_option,
    add_exclusion_option,
    add_text_options,
    override_config,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import ShardsJob

NAME: Final = "pubmed_to_shards"
DESCRIPTION: Final = """\
PubMed citation XML (baseline and update files, any mixture) to document shards: the latest version of
each citation, cleaned of markup, split into sentences, in Arrow files with a manifest."""

INPUT_HELP: Final = f"""\
a folder, a file or a quoted glob, also on gs:// or s3://; or a source to fetch, by name:
{"; ".join(SOURCES[name].usage for name in list_source_names("citations"))};
repeatable (default: the sample that comes with bioshards)"""


def build(pipeline: beam.Pipeline, job: ShardsJob) -> None:
    """Build the graph: stage every file, resolve versions, finalize the shards, publish."""
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

    stage_files = StageFiles(
        job.storage, job.output_dir, job.document_config, job.keep_dropped, has_digests=job.dedup == "exact"
    )
    staged = pipeline | "Sources" >> beam.Create(job.sources, reshuffle=False) | "StageFiles" >> stage_files
    for source, listing in job.run_inputs.listings.items():
        if not listing.to_fetch:
            continue
        file_slots = split_into_slots(listing.to_fetch, listing.download_plan)
        fetched = (
            pipeline
            | f"Slots of {source}" >> beam.Create(file_slots, reshuffle=False)
            | f"Fetch and stage {source}"
            >> FetchAndStage(listing.download_plan, stage_files, source_from_file)
        )
        staged = (staged, fetched) | "Staged" >> beam.Flatten()
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
    )


def make_parser() -> Parser:
    """Make the parser of ``beam run pubmed_to_shards``."""
    parser = Parser("beam run pubmed_to_shards", DESCRIPTION)
    add_shard_options(parser, sorted(PUBMED_PRESETS), INPUT_HELP)
    add_reject_options(parser, "records", "files")
    add_download_options(parser, "mirror, beside the output")
    add_server_options(parser, list_source_names("citations"))
    documents = parser.add_argument_group(
        "which citations, and what of them (defaults: every citation that has an abstract)"
    )
    documents.add_argument(
        "--languages",
        type=language_list,
        metavar="CODES",
        help="keep articles in any of these languages: MARC codes, comma-separated (eng,fre); "
        "PubMed's titles and abstracts are English for all of them",
    )
    documents.add_argument(
        "--min-abstract-words", type=int_at_least(0), metavar="WORDS", help="drop abstracts of fewer words"
    )
    documents.add_argument("--min-pmid", type=int_at_least(0), metavar="PMID", help="drop lower PMIDs")
    documents.add_argument(
        "--drop-publication-types",
        type=publication_type_list,
        metavar="TYPES",
        help='drop records of any of these types, comma-separated ("Published Erratum,Comment")',
    )
    documents.add_argument(
        "--other-abstract-types",
        type=name_list,
        metavar="TYPES",
        help="use the English OtherAbstract of a record without an abstract if it has one of these types, "
        f"comma-separated ({','.join(OTHER_ABSTRACT_TYPES)}; default: none)",
    )
    for option, help_text in (
        ("drop-retracted", "drop retracted articles (default: keep them, marked in the column retracted)"),
        ("keep-title-only", "keep records without an abstract, as their title alone"),
        ("titles", "begin the text with the title (default: yes; the title column is there either way)"),
        ("section-labels", "begin a section's text with its label, METHODS: ... (default: no)"),
    ):
        documents.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=help_text)
    add_dedup_option(documents, "title and abstract", "PMID")
    add_exclusion_option(documents)
    add_text_options(parser)
    return parser


def options_from_args(args: argparse.Namespace) -> ShardsOptions:
    """Build the options of parsed arguments; they override the preset.

    Raises:
        UsageError: options contradict each other.
    """
    preset = PUBMED_PRESETS[args.preset] if args.preset else PubMedConfig()
    return shards_options_from_args(args, override_config(preset, args), sample_folder())


def sample_folder() -> str:
    """Return the folder of the sample that comes with bioshards: 112 invented records."""
    return str(resources.files("bioshards.corpus") / "sample" / "pubmed")
