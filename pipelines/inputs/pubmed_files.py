"""Find the inputs of ``pubmed_to_shards``: local files, mirrored files and files to download."""

from __future__ import annotations

from bioshards.corpus.pubmed.discovery import check_numbers, discover_sources, source_from_file
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.inputs.downloads import list_sources
from bioshards.pipelines.inputs.run_inputs import RunInputs, merge_sources, split_specs_and_paths
from bioshards.pipelines.options import ShardsOptions


def find_inputs(storage: Storage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
    """Find the inputs of ``pubmed_to_shards`` in folders, listings and the mirror.

    Raises:
        InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError: with a message
            for the person.
    """
    specs_by_source, paths = split_specs_and_paths(options.input, "citations")
    notices: list[str] = []
    found = discover_sources(storage, paths, notices.append)
    listings = list_sources(storage, specs_by_source, options, output, is_local_run)
    selected = [remote_file for listing in listings.values() for remote_file in listing.selected]
    notices += check_numbers(found, (remote_file.name for remote_file in selected))
    notices += [notice for listing in listings.values() for notice in listing.notices]
    return RunInputs(merge_sources(found, listings.values(), source_from_file), listings, notices)
