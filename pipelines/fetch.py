"""Download PubMed, PMC and Europe PMC into a mirror: ``beam run fetch``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.corpus.download.pmc.article_filter import DEFAULT_SETS, SETS, ArticleFilter
from bioshards.corpus.download.source_registry import SOURCES
from bioshards.corpus.licences import DEFAULT_LICENCES
from bioshards.pipelines.options.argument_types import nonempty_subset_of
from bioshards.pipelines.options.common import (
    DownloadOptions,
    RunOptions,
    add_download_options,
    add_run_options,
    add_server_options,
    download_options_from_args,
)
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pmc_options import add_connection_option, add_licence_option

if TYPE_CHECKING:
    import apache_beam as beam

    from .job_types import FetchJob

NAME: Final = "fetch"
DESCRIPTION = """\
Fetch PubMed's files, PMC's articles and Europe PMC's packages into a mirror: a folder of verified copies,
from which they are processed later. What is there is not fetched again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions(RunOptions):
    """Options of ``beam run fetch``.

    Attributes:
        input: names of sources, with what to select of them.
        max_rejected: fraction of articles that may be missing.
        article_filter: which of PMC's articles are downloaded.
        downloads: mirror, servers and connections.
    """

    input: tuple[str, ...]
    max_rejected: float
    article_filter: ArticleFilter
    downloads: DownloadOptions


def build(pipeline: beam.Pipeline, job: FetchJob) -> None:
    """Build the graph: download each source's files and PMC's ranges, then write the manifest."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from bioshards.pipelines.inputs.downloads import split_into_slots
    from bioshards.pipelines.transforms.mirror_files import (
        CheckRemovals,
        FetchFiles,
        FetchRanges,
        FindRemovals,
        PublishMirror,
    )

    removal_collections = [pipeline | "No removals" >> beam.Create([])]
    if job.article_plan:
        removal_collections.append(pipeline | "FindRemovals" >> FindRemovals(job.article_plan))
    all_removals = removal_collections | "Removals" >> beam.Flatten()
    checked = all_removals | "CheckRemovals" >> CheckRemovals(job.mirror, job.output_dir)
    file_collections, range_collections = [], []
    for source, listing in job.listings.items():
        file_slots = split_into_slots(listing.to_fetch, listing.download_plan)
        file_collections.append(
            pipeline
            | f"Slots of {source}" >> beam.Create(file_slots)
            | FetchFiles(source, listing.download_plan, checked)
        )
    if job.article_plan:
        range_slots = split_into_slots(job.article_plan.ranges, job.article_plan.download_plan)
        range_collections.append(
            pipeline | "Ranges" >> beam.Create(range_slots) | FetchRanges(job.article_plan, checked)
        )
    all_files = (*file_collections, pipeline | "No files" >> beam.Create([])) | "Files" >> beam.Flatten()
    all_ranges = (
        *range_collections,
        pipeline | "No ranges" >> beam.Create([]),
    ) | "Articles" >> beam.Flatten()
    pipeline | "Publish" >> PublishMirror(job, all_files, all_removals, all_ranges)


def make_parser() -> Parser:
    """Make the parser of ``beam run fetch``."""
    parser = Parser("beam run fetch", DESCRIPTION)
    inputs = parser.add_argument_group("what to fetch")
    inputs.add_argument(
        "--input",
        action="append",
        metavar="NAME",
        help="; ".join(source.usage for source in SOURCES.values())
        + " (numbers for pmc: are ids, in whole ranges of 10,000); repeatable",
    )
    add_run_options(parser, "articles")
    add_download_options(parser, "mirror, in this folder")
    _add_article_options(parser)
    add_server_options(parser, SOURCES)
    return parser


def options_from_args(args: argparse.Namespace) -> FetchOptions:
    """Build the options of parsed arguments."""
    return FetchOptions(
        workers=args.workers,
        dry_run=args.dry_run,
        input=tuple(args.input or ()),
        max_rejected=args.max_rejected,
        article_filter=ArticleFilter(
            licences=frozenset(args.licences),
            sets=frozenset(args.sets),
            drop_retracted=args.drop_retracted,
            versions=args.versions,
        ),
        downloads=download_options_from_args(args),
    )


def _add_article_options(parser: Parser) -> None:
    articles = parser.add_argument_group("which of PMC's articles (pmc:), decided before any is fetched")
    add_licence_option(articles, tuple(sorted(DEFAULT_LICENCES)))
    articles.add_argument(
        "--sets",
        type=nonempty_subset_of(SETS),
        metavar="NAMES",
        default=tuple(sorted(DEFAULT_SETS)),
        help=f"comma-separated, of {', '.join(SETS)} (default: all but ocr, scanned pages)",
    )
    articles.add_argument(
        "--drop-retracted",
        action=argparse.BooleanOptionalAction,
        default=False,
        help="leave out retracted articles (default: no; their list says which they are)",
    )
    articles.add_argument(
        "--versions", choices=["newest", "all"], default="newest", help="of an article (default: newest)"
    )
    add_connection_option(articles)
