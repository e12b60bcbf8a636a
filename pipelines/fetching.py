"""How a named source is fetched: its listing read, what the mirror holds found, and lanes for the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from bioshards import __version__
from bioshards.corpus.download.listing import Chosen
from bioshards.corpus.download.mirror import REFUSED, UNREACHABLE, Held, Mirror
from bioshards.corpus.download.named import Named
from bioshards.corpus.download.places import Places
from bioshards.corpus.download.pool import Pool
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.web import Connection, Patience, Server, UnreachableError
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.manifest import utc_now

from .again import again
from .options import UsageError

REMOTE_LANES: Final = 4
"""Width of the step that downloads on a runner whose machines do not see each other: what NCBI allows.

A lane is one element behind a Reshuffle: no runner splits an element, and what is tried again is a whole
lane.  So there are never more at work, but where a machine is taken for lost and still works."""

GIVE_UP_AFTER: Final = 3
"""So many files without an answer or refused, one after the other, and it is not the files."""

_DRIVER_PATIENCE: Final = Patience(tries=4)


@dataclass(frozen=True, slots=True)
class Fetching:
    """How files that are not here are fetched: so many lanes, each with so many connections.

    Attributes:
        server: with the places of all lanes together, or of each if they are ``apart``.
    """

    mirror: Mirror
    server: Server
    lanes: int
    threads: int
    apart: bool = False

    @property
    def connections(self) -> int:
        """Of all lanes together."""
        return self.server.places.connections * (self.lanes if self.apart else 1)

    def of_lane(self, first: str) -> Server:
        """The server as the lane may ask it that begins with this item.

        Lanes that are apart may yet be processes of one machine, and must not take each other's places there.
        """
        if not self.apart:
            return self.server
        places = self.server.places
        return replace(self.server, places=replace(places, server=f"{places.server}.{first}"))


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
    """Read a source's listing, and see what the mirror holds.

    Raises:
        ListingError, EmptySelectionError, DownloadError: with a message for the person.
    """
    server = server_at(url or source.URL, options.contact, source.CONNECTIONS, source.PER_SECOND)
    with patient_with_a_person(server).connect() as connection:
        at = utc_now()
        chosen, notices = _merged(source.listed(connection, server.base, name) for name in by_name)
        held = mirror.held(connection, chosen, look_only=options.dry_run)
    wanted = [remote for remote in chosen if remote not in held]
    notices += too_little_room(mirror.folder, sum(remote.size for remote in wanted))
    fetching = fetching_by(mirror, server, options.workers, local)
    return Listed(chosen, held, wanted, fetching, notices, at)


def patient_with_a_person(server: Server) -> Server:
    """The server, asked for a listing while a person waits, who wants to hear soon of a missing network."""
    return replace(server, patience=_DRIVER_PATIENCE)


def fetching_by(mirror: Mirror, server: Server, workers: int, local: bool) -> Fetching:
    """Lanes for this machine's workers, who share the server's places, or for a runner's, a share each."""
    connections = server.places.connections
    lanes = workers if local else min(REMOTE_LANES, connections)
    shared = server if local else replace(server, places=server.places.share(lanes))
    return Fetching(mirror, shared, lanes, threads=-(-connections // lanes), apart=not local)


def arriving(fetching: Fetching, remotes: list[Remote]) -> Iterator[tuple[Remote, Held | BadFileError]]:
    """The files of a lane as they arrive, or why one could not be fetched.

    Raises:
        UnreachableError: it is not one file, the server does not answer any more, or refuses everything.
    """

    def fetch(connection: Connection, remote: Remote) -> Held | BadFileError:
        return again(lambda: fetching.mirror.fetch_or_say(connection, remote))

    pool = Pool(fetching.of_lane(remotes[0].name), fetching.threads)
    without_answer = 0
    for remote, held in pool.completed(fetch, remotes):
        failed = isinstance(held, BadFileError) and held.reason in (UNREACHABLE, REFUSED)
        without_answer = without_answer + 1 if failed else 0
        if isinstance(held, BadFileError) and without_answer == GIVE_UP_AFTER:
            raise UnreachableError(held.detail)
        yield remote, held


def mirror_folder(given: str | None, output: str) -> str:
    """The mirror's folder: as given, else ``mirror`` beside the output."""
    beside = output.rstrip("/").rpartition("/")[0]
    if not given and beside.endswith("/"):  # gs:// is left of gs://bucket
        raise UsageError(f"--mirror DIR is missing: there is no folder beside --output {output}")
    folder = given or f"{beside}/mirror"
    folder = folder if "://" in folder else os.path.abspath(folder)
    if folder.rstrip("/") == output.rstrip("/"):
        raise UsageError(f"--mirror {folder} is the --output; choose another folder")
    return folder.rstrip("/")


def server_at(base: str, contact: str | None, connections: int, per_second: float) -> Server:
    """A source's server as all processes of this machine may use it together."""
    agent = f"bioshards/{__version__}" + (f" ({contact})" if contact else "")
    return Server(base, agent, Places(urlsplit(base).netloc, connections, per_second))


def _merged(each: Iterable[Chosen]) -> tuple[list[Remote], list[str]]:
    """The files that several names name, once each, and what is to be said of them, once each."""
    files: dict[str, Remote] = {}
    notices: dict[str, None] = {}
    for chosen in each:
        files.update((remote.path, remote) for remote in chosen.files)
        notices.update(dict.fromkeys(chosen.notices))
    return list(files.values()), list(notices)


def too_little_room(folder: str, needed: int) -> list[str]:
    """What to say if so many bytes are more than the disk has room for."""
    if "://" in folder or not needed:
        return []
    there = folder
    while not os.path.isdir(there):
        there = os.path.dirname(there)
    free = shutil.disk_usage(there).free
    if needed < free:
        return []
    return [f"{as_size(needed)} are to be fetched into {folder}, where {as_size(free)} are free"]


def as_size(size: float) -> str:
    """Bytes for a person: ``19.7 MB``."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:,.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"
