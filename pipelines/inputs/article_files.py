"""Find the inputs of ``pmc_to_shards``: local files, mirrored files and files to download."""

from __future__ import annotations

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.sources import DEFAULT_SETS
from bioshards.corpus.jats import inputs
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.inputs import pmc_articles
from bioshards.pipelines.inputs.downloads import list_source, resolve_mirror_folder
from bioshards.pipelines.inputs.run_inputs import RunInputs, split_specs_and_paths
from bioshards.pipelines.options.shard_options import ShardsOptions


def find_inputs(storage: Storage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
    """Find the inputs of ``pmc_to_shards`` in folders, listings and the mirror.

    Raises:
        UsageError, InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError:
            an input cannot be used.
    """
    specs_by_source, paths = split_specs_and_paths(options.input, "articles")
    range_specs = specs_by_source.pop("pmc", [])
    pmc_articles.check_specs(range_specs)
    notices: list[str] = []
    sources_by_path = {source.path: source for source in inputs.discover(storage, paths, notices.append)}
    if not specs_by_source and not range_specs:
        return RunInputs(list(sources_by_path.values()), notices=notices)
    mirror = Mirror(storage, resolve_mirror_folder(options.mirror, output))
    listings = {
        source: list_source(mirror, source, specs, options, is_local_run)
        for source, specs in specs_by_source.items()
    }
    to_fetch_paths: set[str] = set()
    for listing in listings.values():
        to_fetch_paths.update(mirror.path(remote_file) for remote_file in listing.to_fetch)
        for mirrored_file in listing.mirrored.values():
            source = inputs.source_from_file(mirrored_file.info, mirrored_file.retrieved_at)
            sources_by_path[source.path] = source
        for info in listing.unlisted:
            sources_by_path.setdefault(info.path, inputs.source_from_file(info))
    article_plan = None
    if range_specs:
        document_config = options.make_config()
        assert isinstance(document_config, PmcConfig)
        sets = DEFAULT_SETS | {"ocr"} if document_config.keep_ocr else DEFAULT_SETS
        article_filter = ArticleFilter(
            frozenset(document_config.licences), sets, document_config.drop_retracted
        )
        article_plan = pmc_articles.plan_articles(mirror, range_specs, article_filter, options, is_local_run)
        to_fetch_paths.update(
            article_ranges.selected_path(mirror.folder, number) for number in article_plan.ranges
        )
        notices += article_plan.notices
    return RunInputs(
        available=sorted(source for path, source in sources_by_path.items() if path not in to_fetch_paths),
        listings=listings,
        notices=[*notices, *(notice for listing in listings.values() for notice in listing.notices)],
        article_plan=article_plan,
    )
