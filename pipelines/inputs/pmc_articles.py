"""Plan the download of PMC's articles: ranges of ids and connections."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from bioshards.corpus.download.listing import EmptySelectionError
from bioshards.corpus.download.mirror import Mirror, remove_temporaries
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, s3_bucket
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import Inventory
from bioshards.corpus.download.sources import SOURCES, SourceSpec
from bioshards.corpus.errors import UsageError
from bioshards.pipelines.inputs.downloads import (
    DownloadPlan,
    make_download_plan,
    make_server,
    with_interactive_retry,
)
from bioshards.pipelines.options.common import DownloadOptions

REQUESTS_PER_SECOND = 1000.0
"""Requests to PMC's bucket at most; S3 serves several thousand a second."""


@dataclass(frozen=True, slots=True)
class PmcArticlePlan:
    """PMC's articles to download: those of these ranges of 10,000 ids that the filter selects.

    Attributes:
        inventory: the one that was read when the run began; None where the bucket was not asked.
        ranges_to_check: ranges in the mirror, of which no more than a small part may be removed.
        notices: messages on the inventory.
    """

    download_plan: DownloadPlan
    ranges: list[int]
    article_filter: ArticleFilter
    inventory: Inventory | None = None
    ranges_to_check: list[int] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)


def check_specs(specs: Iterable[SourceSpec]) -> None:
    """Check that no selection of PMC's articles is by date.

    Raises:
        UsageError: one is.
    """
    for spec in specs:
        if spec.selection.since:
            raise UsageError(
                f"--input {spec.text}: pmc: has no need of since=, as what the mirror has is not read again"
            )


def plan_articles(
    mirror: Mirror,
    specs: Sequence[SourceSpec],
    article_filter: ArticleFilter,
    options: DownloadOptions,
    is_local_run: bool,
) -> PmcArticlePlan:
    """Bring PMC's inventory into the mirror, unless it is a dry run, and see which ranges are asked for.

    Raises:
        EmptySelectionError, ListingError, DownloadError: an input cannot be used.
    """
    url = options.get_url("pmc", SOURCES["pmc"].url)
    server = make_server(url, options.contact, options.connections, REQUESTS_PER_SECOND)
    inventory = None
    notices: list[str] = []
    if not options.dry_run:
        for subfolder in ("", "/inventory", "/metadata", "/selected", "/reports"):
            remove_temporaries(mirror.storage, f"{mirror.folder}/pmc{subfolder}")
        print(f"reading the newest inventory of {server.base_url} ...", file=sys.stderr)
        with with_interactive_retry(server).connect() as connection:
            inventory = bucket_inventory.update_inventory(
                mirror.storage,
                mirror.folder,
                connection,
                server.base_url,
                options.allow_removals,
                notices.append,
            )
    ranges = [
        number
        for number in article_ranges.list_ranges(mirror.storage, mirror.folder)
        if any(spec.selection.overlaps(*s3_bucket.range_ids(number)) for spec in specs)
    ]
    if inventory and not ranges:
        spec_texts = ", ".join(spec.text for spec in specs)
        first_label, last_label = (
            s3_bucket.range_label(number) for number in (inventory.ranges[0], inventory.ranges[-1])
        )
        raise EmptySelectionError(
            f"--input {spec_texts} selects no article; there are {first_label} to {last_label}"
        )
    mirrored_ranges = set(article_ranges.list_mirrored_ranges(mirror.storage, mirror.folder))
    return PmcArticlePlan(
        make_download_plan(mirror, server, options.workers, is_local_run),
        ranges,
        article_filter,
        inventory,
        [] if options.allow_removals else [number for number in ranges if number in mirrored_ranges],
        notices,
    )
