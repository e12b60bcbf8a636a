"""Plan the download of a source: read its listing, find mirrored files, distribute the rest."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from bioshards import __version__
from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    RefusedError,
    Server,
)
from bioshards.corpus.download.listing import ListingError, RemoteFile, SelectedFiles, is_large_removal
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.download.rate_limit import RateLimiter, name_server
from bioshards.corpus.download.sources import SOURCES, SourceSpec, load_list_files
from bioshards.corpus.errors import BadFileError, UsageError, shorten_list
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.storage.retry import INTERACTIVE_RETRY_POLICY, MAX_FAILED_FILES, retry
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.pipelines.options import DownloadOptions

Item = TypeVar("Item")

REFUSED: Final = "refused"
UNREACHABLE: Final = "unreachable"
"""Reasons of a file that its server refuses, or does not give."""

_MIN_SIZE_RATIO: Final = 0.5
"""A file of less than this fraction of the mirror's copy has lost content; listed sizes are rounded."""

REMOTE_SLOTS: Final = 4
"""Parallel downloads on a cluster, whose machines share no rate limiter: as many as NCBI allows.

A slot is one element behind a Reshuffle.  Runners do not split elements, so that no more slots are active."""


@dataclass(frozen=True, slots=True)
class DownloadPlan:
    """How files are downloaded: a number of parallel slots, each with a number of connections.

    Attributes:
        server: its rate limiter is that of all slots together, or of each if they are distributed.
        slots: parallel downloads; a slot is one element of a PCollection.
        is_distributed: True if slots may run on machines that share no rate limiter.
    """

    mirror: Mirror
    server: Server
    slots: int
    threads_per_slot: int
    is_distributed: bool = False

    def server_for_slot(self, first_item: str) -> Server:
        """Return the server with the rate limiter of one slot, identified by its first item.

        Distributed slots may run on one machine, where a shared limiter would make them wait for each other.
        """
        if not self.is_distributed:
            return self.server
        rate_limiter = self.server.rate_limiter
        return replace(
            self.server,
            rate_limiter=replace(rate_limiter, server_name=f"{rate_limiter.server_name}.{first_item}"),
        )


@dataclass(frozen=True, slots=True)
class SourceListing:
    """The selected files of a source's listing.

    Attributes:
        selected: the files that are asked for.
        mirrored: those in the mirror.
        to_fetch: the others.
        listed_at: UTC time at which the listing was read.
        unlisted: selected files that the mirror has and the listing lacks; they are used as they are.
    """

    selected: list[RemoteFile]
    mirrored: dict[RemoteFile, MirroredFile]
    to_fetch: list[RemoteFile]
    download_plan: DownloadPlan
    notices: list[str]
    listed_at: str
    unlisted: list[FileInfo] = field(default_factory=list)


def list_sources(
    storage: Storage,
    specs_by_source: Mapping[str, Sequence[SourceSpec]],
    options: DownloadOptions,
    output: str,
    is_local_run: bool,
) -> dict[str, SourceListing]:
    """Read the listings of sources, and find their files in the mirror, by default beside the output.

    Raises:
        UsageError: there can be no mirror there.
        ListingError, EmptySelectionError, DownloadError: a listing cannot be read, or nothing is selected.
    """
    return {
        source: list_source(
            open_mirror(storage, options.mirror, output), source, specs, options, is_local_run
        )
        for source, specs in specs_by_source.items()
    }


def list_source(
    mirror: Mirror,
    source_name: str,
    specs: Sequence[SourceSpec],
    options: DownloadOptions,
    is_local_run: bool,
) -> SourceListing:
    """Read a source's listing and find its files in the mirror.

    Args:
        source_name: a source with a listing.
        specs: what to select of the listing.

    Raises:
        ListingError, EmptySelectionError, DownloadError: the listing cannot be read, or nothing is selected.
    """
    source = SOURCES[source_name]
    list_files = load_list_files(source_name)
    server = make_server(
        options.get_url(source_name), options.contact, source.max_connections, source.requests_per_second
    )
    mirrored_infos = {
        info.path.removeprefix(f"{mirror.folder}/"): info
        for folder in source.folders
        for info in mirror.storage.walk(f"{mirror.folder}/{folder}")
        if not info.path.endswith(".md5")
    }
    with with_interactive_retry(server).connect() as connection:
        listed_at = utc_now()
        selected, notices, unlisted_paths = _merge_selections(
            list_files(connection, server.base_url, spec, mirrored_infos.keys(), options.allow_removals)
            for spec in specs
        )
        mirrored = mirror.find_mirrored(connection, selected, is_read_only=options.dry_run)
    to_fetch = [remote_file for remote_file in selected if remote_file not in mirrored]
    if not options.allow_removals:
        _check_sizes(server.base_url, to_fetch, mirrored_infos)
    unlisted = [mirrored_infos[path] for path in unlisted_paths]
    notices += _describe_mirror(source_name, unlisted_paths, mirrored)
    notices += check_free_space(mirror.folder, sum(remote_file.size for remote_file in to_fetch))
    download_plan = make_download_plan(mirror, server, options.workers, is_local_run)
    return SourceListing(selected, mirrored, to_fetch, download_plan, notices, listed_at, unlisted)


def _check_sizes(
    base_url: str, to_fetch: Iterable[RemoteFile], mirrored_infos: Mapping[str, FileInfo]
) -> None:
    """Check that few files of the mirror would be replaced by far smaller ones.

    Raises:
        ListingError: a large part of them would.
    """
    shrunken = [
        remote_file
        for remote_file in to_fetch
        if remote_file.path in mirrored_infos
        and 0 < remote_file.size < _MIN_SIZE_RATIO * mirrored_infos[remote_file.path].size
    ]
    if is_large_removal(len(shrunken), len(mirrored_infos)):
        names = shorten_list([remote_file.name for remote_file in shrunken])
        raise ListingError(
            f"{len(shrunken):,} files of {base_url} have less than half of the size of the mirror's copies, "
            f"which they would replace ({names}). Repeat the command later; if the new files are right, "
            "add --allow-removals"
        )


def _describe_mirror(
    source_name: str, unlisted_paths: Sequence[str], mirrored: Iterable[RemoteFile]
) -> Iterator[str]:
    """Yield notices on files of the mirror that are not listed, and on files that may not be current."""
    if unlisted_paths:
        names = shorten_list([path.rpartition("/")[2] for path in unlisted_paths])
        yield (
            f"The listing has no {names}, which the mirror holds: {len(unlisted_paths):,} files are used as "
            f"they are. If {source_name} has withdrawn them, delete them from the mirror"
        )
    if undated := [file for file in mirrored if not file.listing_text and not file.has_md5_file]:
        yield (
            f"The listing has no date that can be read for {undated[0].name} and {len(undated) - 1:,} other "
            "files of the mirror: they are used without looking for newer ones. If the page shows dates, "
            "update corpus/download/listing.py"
        )


def with_interactive_retry(server: Server) -> Server:
    """Return the server as the driver uses it: a missing network is reported soon, and waits are printed."""
    return replace(server, retry_policy=INTERACTIVE_RETRY_POLICY, report_wait=_print_wait)


def _print_wait(text: str) -> None:
    print(f"waiting: {text}", file=sys.stderr)


def make_download_plan(mirror: Mirror, server: Server, workers: int, is_local_run: bool) -> DownloadPlan:
    """Return one slot for each local worker, or slots that divide the rate limit on a cluster."""
    connections = server.rate_limiter.max_connections
    slots = workers if is_local_run else min(REMOTE_SLOTS, connections)
    slot_server = server if is_local_run else replace(server, rate_limiter=server.rate_limiter.divide(slots))
    return DownloadPlan(
        mirror, slot_server, slots, threads_per_slot=-(-connections // slots), is_distributed=not is_local_run
    )


def stream_downloads(
    download_plan: DownloadPlan, remote_files: list[RemoteFile]
) -> Iterator[tuple[RemoteFile, MirroredFile | BadFileError]]:
    """Yield the files of a slot as they arrive, or the error of a file.

    Raises:
        OutageError: it is not one file, the server does not answer any more, or refuses everything.
    """

    def fetch(connection: Connection, remote_file: RemoteFile) -> MirroredFile | BadFileError:
        """Fetch a file, or return why its content is not used."""
        try:
            return retry(lambda: download_plan.mirror.fetch(connection, remote_file))
        except BadFileError as error:
            return error

    server = download_plan.server_for_slot(remote_files[0].name)
    pool = DownloadPool(server, download_plan.threads_per_slot, MAX_FAILED_FILES)
    for remote_file, outcome in pool.map_unordered(fetch, remote_files):
        if isinstance(outcome, DownloadError):
            reason = REFUSED if isinstance(outcome, RefusedError) else UNREACHABLE
            outcome = BadFileError(reason, str(outcome))
        yield remote_file, outcome


def open_mirror(storage: Storage, mirror: str | None, output: str) -> Mirror:
    """Return the mirror in this folder; by default in ``mirror`` next to the output."""
    return Mirror(storage, resolve_mirror_folder(mirror, output))


def resolve_mirror_folder(mirror: str | None, output: str) -> str:
    """Return the mirror's folder; the default is ``mirror`` next to the output."""
    parent = output.rstrip("/").rpartition("/")[0]
    if not mirror and parent.endswith("/"):  # gs:// is left of gs://bucket
        raise UsageError(f"--mirror DIR is missing: there is no folder beside --output {output}")
    folder = mirror or f"{parent}/mirror"
    folder = folder if "://" in folder else os.path.abspath(folder)
    if folder.rstrip("/") == output.rstrip("/"):
        raise UsageError(f"--mirror {folder} is the --output; choose another folder")
    return folder.rstrip("/")


def make_server(base_url: str, contact: str | None, connections: int, requests_per_second: float) -> Server:
    """Return a source's server with the rate limiter that all processes of this machine share."""
    user_agent = f"bioshards/{__version__}" + (f" ({contact})" if contact else "")
    return Server(base_url, user_agent, RateLimiter(name_server(base_url), connections, requests_per_second))


def _merge_selections(
    selections: Iterable[SelectedFiles],
) -> tuple[list[RemoteFile], list[str], list[str]]:
    """Merge selections; return their files, notices and unlisted paths without duplicates."""
    files: dict[str, RemoteFile] = {}
    notices: dict[str, None] = {}
    unlisted: set[str] = set()
    for selection in selections:
        files.update((remote_file.path, remote_file) for remote_file in selection.files)
        notices.update(dict.fromkeys(selection.notices))
        unlisted.update(selection.unlisted)
    return list(files.values()), list(notices), sorted(unlisted)


def check_free_space(folder: str, needed_bytes: int) -> list[str]:
    """Return a notice if the disk has too little free space, else no notice."""
    if "://" in folder or not needed_bytes:
        return []
    existing_folder = folder
    while not os.path.isdir(existing_folder):
        existing_folder = os.path.dirname(existing_folder)
    free_bytes = shutil.disk_usage(existing_folder).free
    if needed_bytes < free_bytes:
        return []
    return [
        f"{format_size(needed_bytes)} are to be fetched into {folder}, where {format_size(free_bytes)} are "
        "free"
    ]


def format_size(size: float) -> str:
    """Bytes for a person: ``19.7 MB``."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def split_into_slots(items: list[Item], download_plan: DownloadPlan) -> list[list[Item]]:
    """Distribute items over the slots round-robin."""
    num_slots = min(len(items), download_plan.slots)
    return [items[slot::num_slots] for slot in range(num_slots)]
