"""The mirror: under a final name only ever whole, verified files, and no byte fetched that is there already."""

from __future__ import annotations

import gzip
import hashlib
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest

from bioshards.corpus.download import mirror as module
from bioshards.corpus.download.mirror import Held, Mirror
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.download.web import Connection
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.xml_blocks import BadFile
from tests.asking import connected
from tests.standin import (
    Html,
    Missing,
    StandIn,
)
from tests.standin_pages import publish

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

NAME = "pubmed26n0007.xml.gz"
AT = f"pubmed/baseline/{NAME}"
SIDECAR = f"{AT}.md5"
LONG_AGO = datetime(2020, 1, 2, 3, 4)
PAGE = "<html><body>Please try again later</body></html>"


def contents(seed: int, size: int = 200_000) -> bytes:
    """A gzipped file of about this size; each seed gives another."""
    words = random.Random(seed).randbytes(size).hex()
    return gzip.compress(f"<PubmedArticleSet>{words}</PubmedArticleSet>".encode(), 6, mtime=0)


OLD, NEW = contents(1), contents(2)


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between attempts nobody waits."""
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: None))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    publish(tmp_path / "server" / AT, OLD, md5=True)
    with StandIn(tmp_path / "server") as running:
        yield running


@pytest.fixture
def connection(server: StandIn) -> Iterator[Connection]:
    with connected(server.url) as made:
        yield made


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(LocalFiles(), str(tmp_path / "mirror"))


@pytest.fixture
def listed(server: StandIn) -> Remote:
    """The file as a listing names it: put there long ago."""
    return Remote(
        f"{server.url}{AT}", AT, "PubmedArticleSet", True, "2020-01-02 03:04 195K", LONG_AGO, 200_000
    )


def just_now(remote: Remote) -> Remote:
    """The same, put there just now."""
    return replace(remote, changed=datetime.now(UTC).replace(tzinfo=None))


def data_of(mirror: Mirror) -> bytes | None:
    path = Path(mirror.folder) / AT
    return path.read_bytes() if path.exists() else None


def record_of(mirror: Mirror) -> Path:
    return Path(mirror.folder) / "pubmed/baseline/.records" / f"{NAME}.json"


def left(mirror: Mirror) -> list[str]:
    """The names of all files in the mirror."""
    return sorted(path.name for path in Path(mirror.folder).rglob("*") if path.is_file())


WHOLE = [NAME, f"{NAME}.json", f"{NAME}.md5"]


# What is fetched, and what is left of it.


@pytest.mark.parametrize("changed", [datetime.max, datetime.min])
def test_a_date_at_the_end_of_time_is_a_date(
    mirror: Mirror, connection: Connection, listed: Remote, changed: datetime
) -> None:
    remote = replace(listed, changed=changed)
    mirror.fetch(connection, remote)
    assert list(mirror.held(connection, [remote])) == [remote]


def test_a_checksum_that_goes_away_was_published_all_the_same(
    server: StandIn, mirror: Mirror, connection: Connection, listed: Remote
) -> None:
    mirror.fetch(connection, listed)
    server.fault(SIDECAR, Missing())
    assert mirror.fetch(connection, listed).published
    assert mirror.held(None, [listed])[listed].published


def test_a_page_in_a_recent_files_checksums_place_does_not_end_the_look_at_what_is_held(
    server: StandIn, mirror: Mirror, connection: Connection, listed: Remote
) -> None:
    recent = just_now(listed)
    mirror.fetch(connection, recent)
    server.fault(SIDECAR, Html(PAGE))
    assert mirror.held(connection, [recent]) == {}
    assert mirror.fetch(connection, recent).fetched == 0


# Wrong content.


def test_a_file_that_is_gone_is_named_and_leaves_nothing(
    server: StandIn, mirror: Mirror, connection: Connection, listed: Remote
) -> None:
    server.fault(AT, Missing(), times=None)
    with pytest.raises(BadFile, match="gone") as caught:
        mirror.fetch(connection, listed)
    assert listed.url in caught.value.detail
    assert len(server.asked(AT)) == 1
    assert left(mirror) == []


@pytest.mark.parametrize("content", [b"", b"{", bytes(300), b"\xff\xfe", b'{"md5": '])
def test_a_damaged_record_is_as_none(
    server: StandIn, mirror: Mirror, connection: Connection, listed: Remote, content: bytes
) -> None:
    mirror.fetch(connection, listed)
    record_of(mirror).write_bytes(content)
    assert mirror.held(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched == 0
    assert list(mirror.held(None, [listed])) == [listed]


def test_a_record_that_another_process_takes_away_just_now_is_as_none(
    mirror: Mirror, connection: Connection, listed: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.fetch(connection, listed)
    record_of(mirror).unlink()
    monkeypatch.setattr(LocalFiles, "exists", lambda *_: True)
    assert mirror.held(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched == 0


def test_a_folder_whose_name_looks_like_a_pattern_is_a_folder(
    tmp_path: Path, connection: Connection, listed: Remote
) -> None:
    other = Mirror(LocalFiles(), str(tmp_path / "mirror1"))
    mirror = Mirror(LocalFiles(), str(tmp_path / "mirror[1]"))
    other.fetch(connection, listed)
    assert mirror.fetch(connection, listed).found.path == mirror.path(listed)
    assert data_of(mirror) == OLD


# Several at once.


@pytest.mark.parametrize("md5_beside", [True, False])
def test_two_who_fetch_the_same_file_fetch_it_once(
    server: StandIn, mirror: Mirror, listed: Remote, monkeypatch: pytest.MonkeyPatch, md5_beside: bool
) -> None:
    remember = Mirror._remember

    def slowly(self: Mirror, remote: Remote, held: Held) -> Held:
        time.sleep(0.2)
        return remember(self, remote, held)

    def fetch() -> None:
        with connected(server.url) as connection:
            results.append(mirror.fetch(connection, remote))

    monkeypatch.setattr(Mirror, "_remember", slowly)
    remote = replace(listed, md5_beside=md5_beside)
    results: list[Held] = []
    server.bytes_per_second = 1_000_000
    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held.fetched for held in results) == [0, 0, len(OLD)]
    assert {held.md5 for held in results} == {md5_of(OLD)}
    assert len(server.asked(AT)) == 1


CHILD = """
import sys
from datetime import datetime
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import LocalFiles
from tests.asking import connected
folder, base, path = sys.argv[1:]
remote = Remote(base + path, path, "PubmedArticleSet", True, "2020-01-02 03:04 195K", datetime(2020, 1, 2, 3, 4))
with connected(base) as connection:
    print(Mirror(LocalFiles(), folder).fetch(connection, remote).fetched)
"""


def child(server: StandIn, mirror: Mirror) -> subprocess.Popen[str]:
    """A process that fetches the file."""
    command = [sys.executable, "-c", CHILD, mirror.folder, server.url, AT]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
