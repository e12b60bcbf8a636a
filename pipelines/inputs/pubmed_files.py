"""Find the inputs of ``pubmed_to_shards``: local files, mirrored files and files to download."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bioshards.corpus.download import pubmed
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.remote_file import RemoteFile
from bioshards.corpus.download.source_spec import FileSelection
from bioshards.corpus.pubmed.discovery import check_numbers, discover_sources, source_from_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.pipelines.options.shard_options import ShardsOptions

from .downloads import list_source, resolve_mirror_folder
from .run_inputs import RunInputs, split_specs_and_paths


def find_inputs(storage: LocalStorage, options: ShardsOptions, output: str, is_local_run: bool) -> RunInputs:
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
    mirror = Mirror(storage, resolve_mirror_folder(options.downloads.mirror, output))
    listing = list_source(mirror, "pubmed", specs, options.downloads, is_local_run)
    notices += check_numbers(available, (remote_file.name for remote_file in listing.selected))
    paths_to_fetch = {mirror.path(remote_file) for remote_file in listing.to_fetch}
    available = [source for source in available if source.path not in paths_to_fetch]
    available += [
        source_from_file(mirrored_file.info, mirrored_file.retrieved_at)
        for mirrored_file in listing.mirrored.values()
    ]
    notices += listing.notices
    unfiltered_parts = {spec.subset for spec in specs if spec.selection == FileSelection()}
    parts_by_folder = {pubmed.BASELINE: {"", "baseline"}, pubmed.UPDATES: {"", "updates"}}
    unlisted, unlisted_notices = _find_unlisted(
        mirror,
        listing.selected,
        [folder for folder, part_names in parts_by_folder.items() if part_names & unfiltered_parts],
    )
    available, notices = available + unlisted, notices + unlisted_notices
    notices += pubmed.check_replaced_baseline(
        storage.list_names(f"{mirror.folder}/pubmed/{pubmed.BASELINE}"), listing.selected
    )
    sources_by_path = {source.path: source for source in available}
    return RunInputs(
        available=sorted(sources_by_path.values()),
        listings={"pubmed": listing},
        notices=notices,
    )


def _find_unlisted(
    mirror: Mirror, selected: Sequence[RemoteFile], folders: Iterable[str]
) -> tuple[list[SourceFile], list[str]]:
    """Files in these folders of the mirror that the listing has lost, and what to say of them."""
    unlisted: list[SourceFile] = []
    for folder in folders:
        path = f"{mirror.folder}/pubmed/{folder}"
        for name in pubmed.find_unlisted(mirror.storage.list_names(path), selected, folder):
            unlisted += [source_from_file(file) for file in mirror.storage.glob(f"{path}/{name}")]
    if not unlisted:
        return [], []
    names = ", ".join(source.name for source in unlisted[:5]) + (" ..." if len(unlisted) > 5 else "")
    return unlisted, [
        f"The listing has no {names}, which the mirror holds: {len(unlisted):,} files are used as they are. "
        "If NLM has withdrawn them, delete them from the mirror"
    ]
