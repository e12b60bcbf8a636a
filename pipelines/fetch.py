"""Fill a mirror with PubMed, PMC and Europe PMC, to be processed later: ``beam run fetch``.

The recipe is :func:`build`.  Around it: the options.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bioshards.corpus.download import europepmc, pmc_bucket, pubmed
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc_selection import DEFAULT_SETS, SETS
from bioshards.corpus.licences import DEFAULT_LICENCES
from bioshards.corpus.manifest import MirrorConfig, MirrorRun
from bioshards.corpus.workspace import Workspace

from .bucket import Bucket, add_connections, add_licences, add_servers
from .fetching import Listed
from .options import Parser, add_download, add_local
from .values import at_least_one_of

if TYPE_CHECKING:
    import apache_beam as beam

DESCRIPTION = """\
Fetch PubMed's files, PMC's articles and Europe PMC's packages into a mirror: a folder of verified copies,
from which they are processed later. What is there is not fetched again."""


@dataclass(frozen=True)
class Job:
    """Everything a run is made of: sources with a listing, by name, and PMC's articles."""

    mirror: Mirror
    listed: dict[str, Listed]
    bucket: Bucket | None
    max_rejected: float
    config: MirrorConfig
    run: MirrorRun

    @property
    def something_to_do(self) -> bool:
        """Is there more to do than to write the manifest anew?"""
        return bool(self.bucket or any(listed.wanted for listed in self.listed.values()))

    @property
    def work(self) -> Workspace:
        """Where the mirror's manifest and the run's own files are."""
        return Workspace(self.mirror.folder)


def build(root: beam.Pipeline, job: Job) -> None:
    """The pipeline: fetch the files of each server, bring PMC's ranges, write the manifest."""
    import apache_beam as beam  # here, so that --help does not wait for it

    from .fetch_transforms import BringRanges, FetchFiles, PublishMirror
    from .transforms import lanes

    files, ranges = [], []
    for name, listed in job.listed.items():
        wanted = lanes(listed.wanted, listed.fetching)
        files.append(root | f"Lanes of {name}" >> beam.Create(wanted) | FetchFiles(name, listed.fetching))
    if job.bucket:
        wanted_ranges = lanes(job.bucket.ranges, job.bucket.fetching)
        ranges.append(root | "Ranges" >> beam.Create(wanted_ranges) | BringRanges(job.bucket))
    fetched = (*files, root | "No files" >> beam.Create([])) | "Files" >> beam.Flatten()
    brought = (*ranges, root | "No ranges" >> beam.Create([])) | "Articles" >> beam.Flatten()
    root | "Publish" >> PublishMirror(job, fetched, brought)


def parser() -> Parser:
    """The options of ``beam run fetch``."""
    parser = Parser("beam run fetch", DESCRIPTION)
    what = parser.add_argument_group("what to fetch")
    what.add_argument(
        "--input",
        action="append",
        metavar="NAME",
        help="pubmed: (baseline and updates), 'pubmed:baseline[1-10]', 'pubmed:updates[-3:]', "
        "'pubmed:[since=2026-08-01]'; pmc:, or 'pmc:[11000000-11010000]' for ids, in whole ranges of 10,000; "
        "europepmc:, 'europepmc:[-3:]'; may be given several times",
    )
    add_local(parser, "articles")
    add_download(parser, "mirror, in this folder")
    _add_articles(parser)
    add_servers(parser, {"pubmed": pubmed.URL, "europepmc": europepmc.URL, "pmc": pmc_bucket.URL})
    return parser


def _add_articles(parser: Parser) -> None:
    articles = parser.add_argument_group("which of PMC's articles (pmc:), decided before any is fetched")
    add_licences(articles, tuple(sorted(DEFAULT_LICENCES)))
    articles.add_argument(
        "--sets",
        type=at_least_one_of(SETS),
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
    add_connections(articles)
