"""Find the inputs of ``pmc_to_shards``: local files, mirrored files and files to download."""

from __future__ import annotations

import dataclasses

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.download.pmc.article_filter import DEFAULT_SETS, ArticleFilter
from bioshards.corpus.jats import inputs
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines.options.shard_options import ShardsOptions

from . import pmc_articles
from .downloads import list_source, resolve_mirror_folder
from .run_inputs import RunInputs, measure_download_rate, split_specs_and_paths


def find_inputs(storage: LocalStorage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
    """Find the inputs of ``pmc_to_shards`` in folders, listings and the mirror.

    Raises:
        UsageError, InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError:
            an input cannot be used.
    """
    specs, paths = split_specs_and_paths(options.input, "pmc", "europepmc")
    pmc_articles.check_specs(specs)
    run_inputs = RunInputs(inputs.discover(storage, paths) if paths else [])
    if not specs:
        return run_inputs
    mirror = Mirror(storage, resolve_mirror_folder(options.downloads.mirror, output))
    package_specs = [spec for spec in specs if spec.source == "europepmc"]
    if package_specs:
        listing = list_source(mirror, "europepmc", package_specs, options.downloads, is_local_run)
        mirrored = [
            inputs.source_from_file(mirrored_file.info, mirrored_file.retrieved_at)
            for mirrored_file in listing.mirrored.values()
        ]
        paths_to_fetch = {mirror.path(remote) for remote in listing.to_fetch}
        sources_by_path = {
            source.path: source
            for source in [*run_inputs.available, *mirrored]
            if source.path not in paths_to_fetch
        }
        run_inputs = RunInputs(
            available=sorted(sources_by_path.values()),
            to_fetch=listing.to_fetch,
            download_plan=listing.download_plan,
            notices=listing.notices,
            listed_at=listing.listed_at,
            download_rate=measure_download_rate(listing.mirrored.values()),
        )
    range_specs = [spec for spec in specs if spec.source == "pmc"]
    if range_specs:
        document_config = options.document_config
        assert isinstance(document_config, PmcConfig)
        sets = DEFAULT_SETS | {"ocr"} if document_config.keep_ocr else DEFAULT_SETS
        article_filter = ArticleFilter(
            frozenset(document_config.licences), sets, document_config.drop_retracted
        )
        article_plan = pmc_articles.plan_articles(
            mirror, range_specs, article_filter, options.downloads, is_local_run
        )
        list_paths = {article_ranges.selected_path(mirror.folder, number) for number in article_plan.ranges}
        sources_by_path = {
            source.path: source for source in run_inputs.available if source.path not in list_paths
        }
        run_inputs = dataclasses.replace(
            run_inputs, available=sorted(sources_by_path.values()), article_plan=article_plan
        )
    return run_inputs
