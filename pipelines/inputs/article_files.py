"""Find the inputs of ``pmc_to_shards``: local files, mirrored files, files and articles to download."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from bioshards.corpus.download.listing import EmptySelectionError
from bioshards.corpus.download.mirror import Mirror, remove_temporaries
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, s3_bucket
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import Inventory
from bioshards.corpus.download.sources import DEFAULT_SETS, SOURCES, SourceSpec
from bioshards.corpus.jats import inputs
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.inputs.downloads import (
    list_sources,
    make_download_plan,
    make_server,
    open_mirror,
    with_interactive_retry,
)
from bioshards.pipelines.inputs.run_inputs import (
    PmcArticlePlan,
    RunInputs,
    merge_sources,
    split_specs_and_paths,
)
from bioshards.pipelines.options import DownloadOptions, ShardsOptions


def find_inputs(storage: Storage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
    """Find the inputs of ``pmc_to_shards`` in folders, listings and the mirror.

    Raises:
        UsageError, InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError:
            an input cannot be used.
    """
    specs_by_source, paths = split_specs_and_paths(options.input, "articles")
    range_specs = specs_by_source.pop("pmc", [])
    notices: list[str] = []
    found = inputs.discover(storage, paths, notices.append)
    listings = list_sources(storage, specs_by_source, options, output, is_local_run)
    available = merge_sources(found, listings.values(), inputs.source_from_file)
    article_plan = None
    if range_specs:
        mirror = open_mirror(storage, options.mirror, output)
        article_filter = _make_article_filter(options)
        article_plan = plan_articles(mirror, range_specs, article_filter, options, is_local_run)
        selected = {article_ranges.selected_path(mirror.folder, number) for number in article_plan.ranges}
        available = [source for source in available if source.path not in selected]
        notices += article_plan.notices
    notices += [notice for listing in listings.values() for notice in listing.notices]
    return RunInputs(available, listings, notices, article_plan)


def _make_article_filter(options: ShardsOptions) -> ArticleFilter:
    """Return which of PMC's articles documents are made of."""
    config = options.make_config()
    assert isinstance(config, PmcConfig)
    sets = DEFAULT_SETS | {"ocr"} if config.keep_ocr else DEFAULT_SETS
    return ArticleFilter(frozenset(config.licences), sets, config.drop_retracted)


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
    server = make_server(
        options.get_url("pmc"), options.contact, options.connections, SOURCES["pmc"].requests_per_second
    )
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
        raise _make_empty_selection_error(specs, inventory)
    mirrored_ranges = set(article_ranges.list_mirrored_ranges(mirror.storage, mirror.folder))
    return PmcArticlePlan(
        make_download_plan(mirror, server, options.workers, is_local_run),
        ranges,
        article_filter,
        inventory,
        [] if options.allow_removals else [number for number in ranges if number in mirrored_ranges],
        notices,
    )


def _make_empty_selection_error(specs: Sequence[SourceSpec], inventory: Inventory) -> EmptySelectionError:
    spec_texts = ", ".join(spec.text for spec in specs)
    first = s3_bucket.range_label(inventory.ranges[0])
    last = s3_bucket.range_label(inventory.ranges[-1])
    return EmptySelectionError(f"--input {spec_texts} selects no article; there are {first} to {last}")
