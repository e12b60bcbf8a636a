"""Find the inputs of ``pubmed_to_shards``: local files, mirrored files and files to download."""

from __future__ import annotations

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.pubmed.discovery import check_numbers, discover_sources, source_from_file
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.inputs.downloads import list_source, resolve_mirror_folder
from bioshards.pipelines.inputs.run_inputs import RunInputs, split_specs_and_paths
from bioshards.pipelines.options.shard_options import ShardsOptions


def find_inputs(storage: Storage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
    """Find the inputs of ``pubmed_to_shards`` in folders, listings and the mirror.

    Raises:
        InputNotFoundError, SourceSpecError, ListingError, EmptySelectionError, DownloadError: with a message
            for the person.
    """
    specs_by_source, paths = split_specs_and_paths(options.input, "citations")
    notices: list[str] = []
    available = discover_sources(storage, paths, notices.append)
    specs = specs_by_source.get("pubmed")
    if not specs:
        return RunInputs(available, notices=[*notices, *check_numbers(available, ())])
    mirror = Mirror(storage, resolve_mirror_folder(options.mirror, output))
    listing = list_source(mirror, "pubmed", specs, options, is_local_run)
    notices += check_numbers(available, (remote_file.name for remote_file in listing.selected))
    paths_to_fetch = {mirror.path(remote_file) for remote_file in listing.to_fetch}
    available = [source for source in available if source.path not in paths_to_fetch]
    available += [
        source_from_file(mirrored_file.info, mirrored_file.retrieved_at)
        for mirrored_file in listing.mirrored.values()
    ]
    available += [source_from_file(info) for info in listing.unlisted]
    notices += listing.notices
    sources_by_path = {source.path: source for source in available}
    return RunInputs(
        available=sorted(sources_by_path.values()),
        listings={"pubmed": listing},
        notices=notices,
    )
