"""The mirror: a folder of verified copies, laid out as on the servers.

    MIRROR/pubmed/baseline/pubmed26n0001.xml.gz       under this name only whole and verified
                          /pubmed26n0001.xml.gz.md5   as NLM publishes it
                          /.part-5c1b09f2-...         what a broken or killed download goes on from
                          /.records/...xml.gz.json    what was verified, when, against what

So the folder serves other programs as well, and ``--input MIRROR/pubmed`` without a network.  What is there
with the right checksum is not fetched again.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from bioshards.corpus import checksums
from bioshards.corpus.ahead import ahead
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.partial import Partial

from .remote import Remote
from .verify import Check
from .web import Connection, DownloadError, NotFoundError, RefusedError

REFUSED: Final = "refused"
UNREACHABLE: Final = "unreachable"
"""The reason where a server gives no answer: it may be the file, or the network."""
ATTEMPTS: Final = 3
"""How often a file whose content is wrong is read again from its beginning."""

_SETTLED: Final = timedelta(days=1)
"""A listing gives minutes of an unnamed time zone: a file that was put there less than this before it
was verified may have been replaced since without a change in the listing."""
_RECORD: Final = {"url", "md5", "published", "stamp", "listed", "retrieved", "checked", "seconds"}
"""What a record must say to be used."""
_SIDECAR_BYTES: Final = 1 << 20
_MD5 = re.compile(rb"\b[0-9a-fA-F]{32}\b")


@dataclass(frozen=True, slots=True)
class Held:
    """A verified file in the mirror.

    Attributes:
        md5: of its bytes; ``published``: has the source itself published that MD5?
        retrieved: the day and time at which it was verified, UTC.
        fetched: bytes that were asked of the server for it now; 0 where it was there.
        seconds: that its download took when it was fetched; 0 where that is not known.
    """

    found: Found
    md5: str
    published: bool
    retrieved: str
    fetched: int = 0
    seconds: float = 0


@dataclass(frozen=True, slots=True)
class Mirror:
    """A mirror folder, on any storage."""

    files: LocalFiles
    folder: str

    def path(self, remote: Remote) -> str:
        return f"{self.folder}/{remote.path}"

    def held(
        self, connection: Connection | None, remotes: list[Remote], look_only: bool = False
    ) -> dict[Remote, Held]:
        """Those of the files that are there, verified and still what the server has.

        Only records are read, and for the newest files the published MD5, by ``connection``; without
        one these count as not held.  Unless ``look_only``, it is remembered that they were asked for.
        """
        folders = sorted({self.path(remote).rpartition("/")[0] for remote in remotes})
        found = {item.path: item for folder in folders for item in self.files.walk(folder)}
        here = [remote for remote in remotes if self.path(remote) in found]
        held = {}
        for remote, record in zip(here, ahead(self.files, self._record, here), strict=True):
            there = found[self.path(remote)]
            if record is None or not _still(record, there, remote):
                continue
            if remote.md5_beside and not _settled(record, remote):
                try:
                    published = self._published(connection, remote) if connection else None
                except (
                    BadFileError,
                    RefusedError,
                ):  # a page in its place; `fetch` asks again, and names the file
                    continue
                if published is None or published != record["md5"]:
                    continue
                if not look_only:
                    self.files.write_json(self._record_path(remote), {**record, "checked": utc_now()})
            held[remote] = Held(
                there, record["md5"], record["published"], record["retrieved"], seconds=record["seconds"]
            )
        return held

    def fetch(self, connection: Connection, remote: Remote) -> Held:
        """Make sure that the file is there, verified: fetched only if it is not there already.

        Raises:
            BadFileError: what the server has is not the file it should be, however often it is read.
            DownloadError: the server does not give it.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                md5 = self._published(connection, remote)
                return self._there(remote, md5) or self._download(connection, remote, md5)
            except NotFoundError as gone:
                raise BadFileError(
                    "gone", f"{gone}; it was listed when the run began. Run again to read the new listing"
                ) from gone
            except BadFileError as bad:
                if attempt == ATTEMPTS:
                    raise BadFileError(
                        bad.reason, f"{remote.url}: {bad.detail} (read {ATTEMPTS} times)"
                    ) from bad
                time.sleep(attempt)
        raise AssertionError("attempts end with a file or an error")

    def fetch_or_say(self, connection: Connection, remote: Remote) -> Held | BadFileError:
        """As :meth:`fetch`, but what keeps the file from being fetched is the result, not raised."""
        try:
            return self.fetch(connection, remote)
        except BadFileError as bad:
            return bad
        except DownloadError as error:
            return BadFileError(REFUSED if isinstance(error, RefusedError) else UNREACHABLE, str(error))

    def _published(self, connection: Connection, remote: Remote) -> str | None:
        """The MD5 that the source publishes for the file; None where it publishes none."""
        if not remote.md5_beside:
            return None
        try:
            body = connection.read(f"{remote.url}.md5", _SIDECAR_BYTES).body
        except NotFoundError:  # a file may be there some time before its checksum
            return None
        given = _MD5.search(body)
        if given is None:
            raise BadFileError("no-checksum", f"its .md5 holds no MD5; it begins {body[:80]!r}")
        return given[0].decode().lower()

    def _there(self, remote: Remote, md5: str | None) -> Held | None:
        """The file as it lies here, if it is the one that the server has."""
        path = self.path(remote)
        # Where there is no such file, a folder's name such as mirror[1] is taken for a pattern.
        found = next((item for item in self.files.find(path) if item.path == path), None)
        if found is None:
            return None
        record = self._record(remote)
        if record and _still(record, found, remote) and md5 in (None, record["md5"]):
            published = md5 is not None or record["published"]
            held = Held(found, record["md5"], published, record["retrieved"], seconds=record["seconds"])
            return self._remember(remote, held)
        # Copied here, or touched: its bytes say whether it is the same.
        expected = md5 or (record["md5"] if record and _listed_as_before(record, remote) else None)
        if expected is None or self._md5(found.path) != expected:
            return None
        return self._remember(remote, Held(found, expected, md5 is not None, utc_now()))

    def _download(self, connection: Connection, remote: Remote, md5: str | None) -> Held:
        path = self.path(remote)
        began, fetched = time.monotonic(), 0
        # A part is gone on with only if the same file is meant: its name carries which.
        version = hashlib.md5((md5 or remote.listed).encode(), usedforsecurity=False).hexdigest()[:8]
        with self.files.partial(path, version) as part:
            if there := self._there(remote, md5):  # another process has been quicker
                part.discard()
                return there
            check = _fed(Check(remote.root), part)
            try:
                for offset, block in connection.stream(remote.url, part.size):
                    if offset != part.size:
                        part.restart()
                        check = Check(remote.root)
                    part.write(block)
                    fetched += len(block)
                    check.feed(block)
                found_md5 = check.finish(md5)
            except (BadFileError, NotFoundError):
                part.discard()
                raise
            self._forget(remote)
            part.keep()
            [found] = self.files.find(path)
            seconds = round(time.monotonic() - began, 3)
            # Recorded while the part is ours: who waits for it then knows that the file is there.
            return self._remember(
                remote, Held(found, found_md5, md5 is not None, utc_now(), fetched, seconds)
            )

    def _record_path(self, remote: Remote) -> str:
        folder, _, name = self.path(remote).rpartition("/")
        return f"{folder}/.records/{name}.json"

    def _record(self, remote: Remote) -> dict[str, Any] | None:
        path = self._record_path(remote)
        if not self.files.exists(path):
            return None
        try:
            record: dict[str, Any] = self.files.read_json(path)
        except (FileNotFoundError, ValueError):  # another process is replacing the file, or it is damaged
            return None
        return record if isinstance(record, dict) and record.keys() >= _RECORD else None

    def _forget(self, remote: Remote) -> None:
        self.files.remove(self._record_path(remote))
        self.files.remove(f"{self.path(remote)}.md5")

    def _remember(self, remote: Remote, held: Held) -> Held:
        if held.published:
            with self.files.write(f"{held.found.path}.md5") as sidecar:
                sidecar.write(f"MD5({remote.name})= {held.md5}\n".encode())
        record = {
            "url": remote.url,
            "md5": held.md5,
            "published": held.published,
            "bytes": held.found.size,
            "stamp": held.found.stamp,
            "listed": remote.listed,
            "retrieved": held.retrieved,
            "checked": utc_now(),
            "seconds": held.seconds,
        }
        self.files.write_json(self._record_path(remote), record)
        return held

    def _md5(self, path: str) -> str:
        with self.files.open(path) as file:
            return checksums.of_file(file)


def _still(record: dict[str, Any], found: Found, remote: Remote) -> bool:
    """Is the file as it was verified, and the listing's words on it as they were?"""
    return record["stamp"] == found.stamp and _listed_as_before(record, remote)


def _listed_as_before(record: dict[str, Any], remote: Remote) -> bool:
    return bool(record["url"] == remote.url and remote.listed and record["listed"] == remote.listed)


def _settled(record: dict[str, Any], remote: Remote) -> bool:
    """Was it checked so long after it was put there that another file would show in the listing?"""
    if remote.changed is None:
        return False
    checked = datetime.fromisoformat(record["checked"]).replace(tzinfo=None)
    return checked - remote.changed > _SETTLED


def _fed(check: Check, part: Partial) -> Check:
    """The check, once it has seen what is there from before; a part that is wrong begins anew."""
    try:
        for block in part.blocks():
            check.feed(block)
    except BadFileError:
        part.restart()
        return Check(check.root)
    return check
