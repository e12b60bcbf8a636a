"""What ``--input`` names: files that are here, and files of a named source that are to be fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from bioshards import __version__
from bioshards.corpus import sources
from bioshards.corpus.download import pubmed
from bioshards.corpus.download.listing import Chosen
from bioshards.corpus.download.mirror import Held, Mirror
from bioshards.corpus.download.named import Named, Selection, named
from bioshards.corpus.download.places import Places
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.web import Connection, Patience, Server
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import Source

from .options import UsageError

REMOTE_LANES: Final = 4
"""Width of the step that downloads on a runner whose machines do not see each other: what NCBI allows."""

_DRIVER_PATIENCE: Final = Patience(tries=4)
"""A person waits for the listing, and would rather hear soon that there is no network."""


@dataclass(frozen=True, slots=True)
class Fetching:
    """How files that are not here are fetched: so many lanes, each with so many connections."""

    mirror: Mirror
    server: Server
    lanes: int
    threads: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files of a run.

    Attributes:
        here: those that can be read as they are, in order; with those that the mirror holds.
        wanted: those to be fetched first, and ``fetching``: how.
        notices: what a person should know of the listings.
        listed: when the listings were read, UTC; '' where there are none.
        rate: bytes a second at which what the mirror holds came over one connection; 0 if not known.
    """

    here: list[Source]
    wanted: list[Remote] = field(default_factory=list)
    fetching: Fetching | None = None
    notices: list[str] = field(default_factory=list)
    listed: str = ""
    rate: float = 0

    @property
    def count(self) -> int:
        return len(self.here) + len(self.wanted)


def names_and_paths(given: Sequence[str], source: str) -> tuple[list[Named], list[str]]:
    """The inputs apart: those that name ``source``, and paths.

    Raises:
        UsageError: a name of another source than this pipeline reads.
        BadName: a name that cannot be read.
    """
    by_name, paths = [], []
    for text in given:
        name = named(text)
        if name is None:
            paths.append(text)
        elif name.source == source:
            by_name.append(name)
        else:
            raise UsageError(f"--input {text} is not what this pipeline reads, which is {source}: and files")
    return by_name, paths


def mirror_folder(given: str | None, output: str) -> str:
    """The mirror's folder: as given, else ``mirror`` beside the output."""
    folder = given or f"{output.rstrip('/').rpartition('/')[0]}/mirror"
    folder = folder if "://" in folder else os.path.abspath(folder)
    if folder.rstrip("/") == output.rstrip("/"):
        raise UsageError(f"--mirror {folder} is the --output; choose another folder")
    return folder.rstrip("/")


def server_at(base: str, contact: str | None, connections: int, per_second: float) -> Server:
    """A source's server as all processes of this machine may use it together."""
    agent = f"bioshards/{__version__}" + (f" ({contact})" if contact else "")
    return Server(base, agent, Places(urlsplit(base).netloc, connections, per_second))


def find(files: LocalFiles, options: Any, output: str, given: Sequence[str], local: bool) -> Inputs:
    """Find what the inputs of ``pubmed_to_shards`` name: look at folders, listings and the mirror.

    Raises:
        NoInput, BadName, NoListing, EmptySelection, WebError: with a message for the person.
    """
    by_name, paths = names_and_paths(given, "pubmed")
    here = sources.discover(files, paths) if paths else []
    if not by_name:
        return Inputs(here)
    mirror = Mirror(files, mirror_folder(options.mirror, output))
    listed = look(mirror, pubmed, options.pubmed_url, by_name, options, local)
    here += [sources.source(there.found, there.retrieved) for there in listed.held.values()]
    notices = list(listed.notices)
    if any(name.selection == Selection() for name in by_name):
        kept, said = _unlisted(mirror, listed.chosen)
        here, notices = here + kept, notices + said
    notices += pubmed.replaced(files.names(f"{mirror.folder}/pubmed/{pubmed.BASELINE}"), listed.chosen)
    once = {source.path: source for source in here}
    rate = _rate(listed.held.values())
    return Inputs(sorted(once.values()), listed.wanted, listed.fetching, notices, listed.at, rate)


@dataclass(frozen=True, slots=True)
class Listed:
    """What a source's listing has, and how much of it the mirror holds.

    Attributes:
        chosen: the files that were asked for; ``held`` those that the mirror has, ``wanted`` the others.
        at: when the listing was read, UTC.
    """

    chosen: list[Remote]
    held: dict[Remote, Held]
    wanted: list[Remote]
    fetching: Fetching
    notices: list[str]
    at: str


class FileSource(Protocol):
    """A module of corpus/download/ about a server with files and a listing of them."""

    URL: str
    CONNECTIONS: int
    PER_SECOND: float

    def listed(self, connection: Connection, base: str, named: Named) -> Chosen: ...


def look(
    mirror: Mirror, source: FileSource, url: str | None, by_name: Sequence[Named], options: Any, local: bool
) -> Listed:
    """Read a source's listing, and see what the mirror holds; nothing is written.

    Raises:
        NoListing, EmptySelection, WebError: with a message for the person.
    """
    server = server_at(url or source.URL, options.contact, source.CONNECTIONS, source.PER_SECOND)
    with replace(server, patience=_DRIVER_PATIENCE).connect() as connection:
        at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        chosen, notices = _merged(source.listed(connection, server.base, name) for name in by_name)
        held = mirror.held(connection, chosen)
    wanted = [remote for remote in chosen if remote not in held]
    notices += _too_little_room(mirror.folder, wanted)
    fetching = fetching_by(mirror, server, options.workers, local)
    return Listed(chosen, held, wanted, fetching, notices, at)


def fetching_by(mirror: Mirror, server: Server, workers: int, local: bool) -> Fetching:
    """Lanes for this machine's workers, who share the server's places, or for a runner's, a share each."""
    connections = server.places.connections
    lanes = workers if local else min(REMOTE_LANES, connections)
    shared = server if local else replace(server, places=server.places.share(lanes))
    return Fetching(mirror, shared, lanes, threads=-(-connections // lanes))


def _unlisted(mirror: Mirror, chosen: Sequence[Remote]) -> tuple[list[Source], list[str]]:
    """Files of the mirror that the listing has lost, and what to say of them."""
    lost: list[Source] = []
    for folder in (pubmed.BASELINE, pubmed.UPDATES):
        path = f"{mirror.folder}/pubmed/{folder}"
        for name in pubmed.unlisted(mirror.files.names(path), chosen, folder):
            lost += [sources.source(found) for found in mirror.files.find(f"{path}/{name}")]
    if not lost:
        return [], []
    names = ", ".join(source.name for source in lost[:5]) + (" ..." if len(lost) > 5 else "")
    return lost, [
        f"The listing has no {names}, which the mirror holds: {len(lost):,} files are used as they are. If "
        "NLM has withdrawn them, delete them from the mirror"
    ]


def _merged(each: Iterable[Chosen]) -> tuple[list[Remote], list[str]]:
    """The files that several names name, once each, and what is to be said of them, once each."""
    files: dict[str, Remote] = {}
    notices: dict[str, None] = {}
    for chosen in each:
        files.update((remote.path, remote) for remote in chosen.files)
        notices.update(dict.fromkeys(chosen.notices))
    return list(files.values()), list(notices)


def _rate(held: Iterable[Held]) -> float:
    timed = [there for there in held if there.seconds]
    return sum(there.found.size for there in timed) / sum(there.seconds for there in timed) if timed else 0


def _too_little_room(folder: str, wanted: Sequence[Remote]) -> list[str]:
    """What to say if the listing's sizes are more than the disk has room for."""
    if "://" in folder or not wanted:
        return []
    there = folder
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    free, needed = shutil.disk_usage(there).free, sum(remote.size for remote in wanted)
    if needed < free:
        return []
    return [f"{needed / 1e9:.1f} GB are to be fetched into {folder}, where {free / 1e9:.1f} GB are free"]
