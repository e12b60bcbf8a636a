"""Download PubMed, PMC and Europe PMC into a mirror: ``beam run fetch``.

The graph is built by :func:`build`.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from bioshards.corpus.download.sources import (
    DEFAULT_SETS,
    SETS,
    SOURCES,
    SourceSpec,
    Versions,
    parse_source_spec,
)
from bioshards.corpus.errors import UsageError
from bioshards.corpus.jats.filters import LICENCES_OPTION
from bioshards.corpus.licences import DEFAULT_LICENCES
from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import nonempty_subset_of
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import (
    CONNECTIONS_OPTION,
    MAX_REJECTED_OPTION,
    DownloadOptions,
    make_url_options,
)

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.corpus.download.pmc.article_filter import ArticleFilter
    from bioshards.pipelines.job_types import FetchJob

NAME: Final = "fetch"
DESCRIPTION = """\
Fetch PubMed's files, PMC's articles and Europe PMC's packages into a mirror: a folder of verified copies,
from which they are processed later. What is there is not fetched again."""


_ARTICLES_GROUP: Final = "which of PMC's articles (pmc:), decided before any is fetched"


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchOptions(DownloadOptions):
    """Options of ``beam run fetch``."""

    input: Annotated[
        tuple[str, ...],
        Option(
            "; ".join(source.usage for source in SOURCES.values())
            + " (numbers for pmc: are ids, in whole ranges of 10,000); repeatable",
            group="what to fetch",
            metavar="NAME",
            many="repeat",
        ),
    ] = ()
    max_rejected: Annotated[float, MAX_REJECTED_OPTION] = 0.001
    connections: Annotated[int, CONNECTIONS_OPTION] = 64
    licences: Annotated[tuple[str, ...], dataclasses.replace(LICENCES_OPTION, group=_ARTICLES_GROUP)] = tuple(
        sorted(DEFAULT_LICENCES)
    )
    sets: Annotated[
        tuple[str, ...],
        Option(
            f"comma-separated, of {', '.join(SETS)} (default: all but ocr, scanned pages)",
            group=_ARTICLES_GROUP,
            metavar="NAMES",
            parse=nonempty_subset_of(SETS),
        ),
    ] = tuple(sorted(DEFAULT_SETS))
    drop_retracted: Annotated[
        bool | None,
        Option(
            "leave out retracted articles (default: no; their list says which they are)",
            group=_ARTICLES_GROUP,
        ),
    ] = None
    versions: Annotated[Versions, Option("of an article (default: newest)", group=_ARTICLES_GROUP)] = "newest"
    urls: Annotated[tuple[tuple[str, str], ...], make_url_options(SOURCES)] = ()

    def check(self) -> None:
        """Check the inputs."""
        self.parse_specs()

    def parse_specs(self) -> dict[str, list[SourceSpec]]:
        """Parse the sources that the inputs name.

        Raises:
            UsageError, SourceSpecError: an input that cannot be downloaded.
        """
        names = " or ".join(f"{name}:" for name in SOURCES)
        if not self.input:
            raise UsageError(f"--input is missing: what to fetch, {names}")
        specs_by_source: dict[str, list[SourceSpec]] = {}
        for text in self.input:
            spec = parse_source_spec(text)
            if spec is None:
                raise UsageError(f"--input {text} is no source that can be fetched: {names}")
            specs_by_source.setdefault(spec.source, []).append(spec)
        return specs_by_source

    @property
    def article_filter(self) -> ArticleFilter:
        """Return which of PMC's articles are downloaded."""
        from bioshards.corpus.download.pmc.article_filter import ArticleFilter

        return ArticleFilter(
            licences=frozenset(self.licences),
            sets=frozenset(self.sets),
            drop_retracted=bool(self.drop_retracted),
            versions=self.versions,
        )


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


def make_parser() -> Parser[FetchOptions]:
    """Make the parser of ``beam run fetch``."""
    return Parser(f"beam run {NAME}", DESCRIPTION, FetchOptions)
