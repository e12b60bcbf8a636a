"""The mirror: under a final name only whole, verified files, and no byte fetched that is there already."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bioshards.corpus.download import mirror as module
from bioshards.corpus.download.http_client import Connection, DownloadError, UnreachableError
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.remote_file import RemoteFile
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.storage import resumable_file
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.resumable_file import PARTIAL_PREFIX
from bioshards.corpus.storage.retry import MAX_READ_ATTEMPTS
from tests.support.servers.fake_server import (
    ConnectionReset,
    CorruptByte,
    FakeServer,
    Fault,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NotFound,
    RangeIgnored,
    Republication,
    ServiceUnavailable,
    TruncatedBody,
)
from tests.support.servers.http_connections import open_connection
from tests.support.servers.server_pages import publish_file

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
def server(tmp_path: Path) -> Iterator[FakeServer]:
    publish_file(tmp_path / "server" / AT, OLD, md5=True)
    with FakeServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def connection(server: FakeServer) -> Iterator[Connection]:
    with open_connection(server.url) as made:
        yield made


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(LocalStorage(), str(tmp_path / "mirror"))


@pytest.fixture
def listed(server: FakeServer) -> RemoteFile:
    """The file as a listing names it: put there long ago."""
    return RemoteFile(
        f"{server.url}{AT}", AT, "PubmedArticleSet", True, "2020-01-02 03:04 195K", LONG_AGO, 200_000
    )


def just_now(remote: RemoteFile) -> RemoteFile:
    """The same, put there just now."""
    return replace(remote, modified_at=datetime.now(UTC).replace(tzinfo=None))


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


def test_a_file_is_fetched_and_recorded(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    assert mirror.find_mirrored(connection, [listed]) == {}
    held = mirror.fetch(connection, listed)
    assert data_of(mirror) == OLD
    assert (held.md5, held.is_md5_published, held.fetched_bytes) == (md5_of(OLD), True, len(OLD))
    assert held.info.path == mirror.path(listed)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(held.retrieved_at)) < timedelta(minutes=1)
    assert held.download_seconds >= 0
    assert left(mirror) == sorted(WHOLE)
    assert (Path(mirror.folder) / SIDECAR).read_text() == f"MD5({NAME})= {md5_of(OLD)}\n"
    assert json.loads(record_of(mirror).read_text())["url"] == listed.url


def test_a_settled_record_needs_no_request_at_all(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    held = mirror.fetch(connection, listed)
    asked = len(server.requests)
    assert mirror.find_mirrored(connection, [listed]) == {listed: replace(held, fetched_bytes=0)}
    assert mirror.find_mirrored(None, [listed]) == {listed: replace(held, fetched_bytes=0)}
    assert len(server.requests) == asked


def test_fetching_again_asks_for_the_checksum_only(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    first = mirror.fetch(connection, listed)
    again = mirror.fetch(connection, listed)
    assert again == replace(first, fetched_bytes=0)
    assert len(server.requests_for(AT)) == 1
    assert len(server.requests_for(SIDECAR)) == 2


def test_a_right_file_without_a_record_is_adopted(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    publish_file(Path(mirror.folder) / AT, OLD)
    assert mirror.find_mirrored(connection, [listed]) == {}
    held = mirror.fetch(connection, listed)
    assert (held.md5, held.is_md5_published, held.fetched_bytes) == (md5_of(OLD), True, 0)
    assert server.requests_for(AT) == []
    assert list(mirror.find_mirrored(None, [listed])) == [listed]
    assert left(mirror) == sorted(WHOLE)


@pytest.mark.parametrize("there", [NEW, OLD[:-1], b""])
def test_a_wrong_file_without_a_record_is_replaced(
    mirror: Mirror, connection: Connection, listed: RemoteFile, there: bytes
) -> None:
    publish_file(Path(mirror.folder) / AT, there or b"\x1f\x8b")
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD)
    assert data_of(mirror) == OLD


def test_a_file_that_has_changed_since_its_record_is_replaced(
    mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    path = Path(mirror.folder) / AT
    path.write_bytes(OLD[:-5] + b"wrong")
    assert mirror.find_mirrored(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD)
    assert data_of(mirror) == OLD


def test_a_file_that_was_only_touched_is_not_fetched_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    os.utime(mirror.path(listed), (1, 1))
    assert mirror.find_mirrored(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [listed])) == [listed]


def test_of_many_files_those_are_held_that_are_there(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    others = []
    for number in range(8, 14):
        path = AT.replace("0007", f"{number:04d}")
        publish_file(server.root / path, contents(number, 500), md5=True)
        others.append(replace(listed, url=server.url + path, path=path))
    for remote in (listed, *others[:3]):
        mirror.fetch(connection, remote)
    assert list(mirror.find_mirrored(None, [*others, listed])) == [*others[:3], listed]


# Republication.


def test_a_republished_file_is_noticed_by_its_listing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    publish_file(server.root / AT, NEW, md5=True)
    again = replace(listed, listing_text="2020-02-02 03:04 196K")
    assert mirror.find_mirrored(connection, [again]) == {}
    assert mirror.fetch(connection, again).md5 == md5_of(NEW)
    assert data_of(mirror) == NEW
    assert (Path(mirror.folder) / SIDECAR).read_text() == f"MD5({NAME})= {md5_of(NEW)}\n"


def test_a_listing_that_changes_without_the_file_fetches_nothing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    again = replace(listed, listing_text="2020-02-02 03:04 195K")
    assert mirror.fetch(connection, again).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [again])) == [again]


def test_a_file_republished_within_the_same_minute_is_noticed_as_it_is_recent(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    recent = just_now(listed)
    mirror.fetch(connection, recent)
    assert list(mirror.find_mirrored(connection, [recent])) == [recent]
    assert mirror.find_mirrored(None, [recent]) == {}, "nobody can be asked"
    publish_file(server.root / AT, NEW, md5=True)
    assert mirror.find_mirrored(connection, [recent]) == {}
    mirror.fetch(connection, recent)
    assert data_of(mirror) == NEW


def test_a_file_without_a_date_in_its_listing_is_always_asked_for(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    undated = replace(listed, modified_at=None)
    mirror.fetch(connection, undated)
    assert mirror.find_mirrored(None, [undated]) == {}
    assert list(mirror.find_mirrored(connection, [undated])) == [undated]


@pytest.mark.parametrize("changed", [datetime.max, datetime.min])
def test_a_date_at_the_end_of_time_is_a_date(
    mirror: Mirror, connection: Connection, listed: RemoteFile, changed: datetime
) -> None:
    remote = replace(listed, modified_at=changed)
    mirror.fetch(connection, remote)
    assert list(mirror.find_mirrored(connection, [remote])) == [remote]


def test_republication_between_the_checksum_and_the_data(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(AT, FunctionCall(lambda: publish_file(server.root / AT, NEW, md5=True)))
    assert mirror.fetch(connection, listed).md5 == md5_of(NEW)
    assert data_of(mirror) == NEW
    assert left(mirror) == sorted(WHOLE)


def test_republication_in_mid_body(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(AT, TruncatedBody(50_000))
    server.schedule_fault(AT, FunctionCall(lambda: publish_file(server.root / AT, NEW, md5=True)))
    assert mirror.fetch(connection, listed).md5 == md5_of(NEW)
    assert data_of(mirror) == NEW


def test_republication_while_the_old_file_is_sent_to_its_end(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    """What came is what its checksum said; the next run reads another listing."""
    server.schedule_fault(AT, Republication(AT, NEW, md5=True))
    assert mirror.fetch(connection, listed).md5 == md5_of(OLD)
    again = replace(listed, listing_text="2020-02-02 03:04 195K")
    assert mirror.fetch(connection, again).md5 == md5_of(NEW)


# The checksum.


def test_a_missing_checksum_leaves_what_the_file_says_itself(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, NotFound(), times=None)
    held = mirror.fetch(connection, listed)
    assert (held.md5, held.is_md5_published) == (md5_of(OLD), False)
    assert left(mirror) == [NAME, f"{NAME}.json"]
    assert list(mirror.find_mirrored(None, [listed])) == [listed]
    assert mirror.fetch(connection, listed).fetched_bytes == 0


def test_a_checksum_that_comes_later_is_recorded(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, NotFound())
    assert not mirror.fetch(connection, listed).is_md5_published
    later = mirror.fetch(connection, listed)
    assert (later.is_md5_published, later.fetched_bytes) == (True, 0)
    assert left(mirror) == sorted(WHOLE)


def test_a_checksum_that_goes_away_was_published_all_the_same(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    server.schedule_fault(SIDECAR, NotFound())
    assert mirror.fetch(connection, listed).is_md5_published
    assert mirror.find_mirrored(None, [listed])[listed].is_md5_published


@pytest.mark.parametrize(
    "sidecar",
    [
        f"MD5({NAME})= {md5_of(OLD)}\n",
        f"{md5_of(OLD)}  {NAME}\n",
        md5_of(OLD).upper(),
        f"\ufeff\n\n  {md5_of(OLD)}\n",
    ],
)
def test_a_checksum_may_be_written_in_several_ways(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, sidecar: str
) -> None:
    server.schedule_fault(SIDECAR, FixedBody(sidecar.encode()))
    assert mirror.fetch(connection, listed).is_md5_published


def test_a_page_in_the_checksums_place_is_read_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, HtmlPage(PAGE))
    assert mirror.fetch(connection, listed).is_md5_published
    assert len(server.requests_for(AT)) == 1


def test_a_page_in_the_checksums_place_for_ever(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, HtmlPage(PAGE), times=None)
    with pytest.raises(BadFileError, match=r"no MD5; it begins b'<html>.*read 3 times") as caught:
        mirror.fetch(connection, listed)
    assert listed.url in caught.value.detail
    assert len(server.requests_for(SIDECAR)) == MAX_READ_ATTEMPTS
    assert server.requests_for(AT) == []
    assert left(mirror) == []


@pytest.mark.parametrize("fault", [HtmlPage(PAGE), ServiceUnavailable(status=403)])
def test_a_recent_file_without_its_checksum_does_not_end_the_look_at_what_is_held(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, fault: Fault
) -> None:
    recent = just_now(listed)
    mirror.fetch(connection, recent)
    server.schedule_fault(SIDECAR, fault)
    assert mirror.find_mirrored(connection, [recent]) == {}
    assert mirror.fetch(connection, recent).fetched_bytes == 0


# Wrong content.


@pytest.mark.parametrize(
    "fault", [CorruptByte(100_000), CorruptByte(0), HtmlPage(PAGE), FixedBody(OLD[:1000]), FixedBody(b"")]
)
def test_what_is_wrong_once_is_fetched_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, fault: Fault
) -> None:
    server.schedule_fault(AT, fault)
    assert mirror.fetch(connection, listed).md5 == md5_of(OLD)
    assert data_of(mirror) == OLD
    assert left(mirror) == sorted(WHOLE)
    assert server.pending_faults == []


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (CorruptByte(100_000), "corrupt-gzip"),
        (HtmlPage(PAGE), "not-gzip"),
        (FixedBody(OLD[:1000]), "checksum"),
        (FixedBody(NEW), "checksum"),
        (FixedBody(b""), "checksum"),
        (FixedBody(gzip.compress(PAGE.encode(), mtime=0)), "checksum"),
    ],
)
def test_what_is_wrong_for_ever_is_named_and_leaves_nothing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, fault: Fault, reason: str
) -> None:
    server.schedule_fault(AT, fault, times=None)
    said = mirror.try_fetch(connection, listed)
    assert isinstance(said, BadFileError)
    assert said.reason in (reason, "checksum")
    assert listed.url in said.detail
    assert f"read {MAX_READ_ATTEMPTS} times" in said.detail
    assert len(server.requests_for(AT)) == MAX_READ_ATTEMPTS
    assert left(mirror) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(PAGE.encode(), mtime=0), "wrong-root"),
        (OLD[:1000], "truncated-gzip"),
        (b"", "empty-file"),
    ],
)
def test_without_a_checksum_the_content_is_all_there_is_to_tell(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, body: bytes, reason: str
) -> None:
    server.schedule_fault(AT, FixedBody(body), times=None)
    with pytest.raises(BadFileError) as caught:
        mirror.fetch(connection, replace(listed, has_md5_file=False))
    assert caught.value.reason == reason
    assert left(mirror) == []


def test_what_is_wrong_for_ever_leaves_the_file_that_was_there_as_it_was(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    publish_file(server.root / AT, NEW)  # its checksum is still the old file's
    again = replace(listed, listing_text="2020-02-02 03:04 196K")
    Path(mirror.path(listed)).write_bytes(contents(3))
    with pytest.raises(BadFileError, match="checksum"):
        mirror.fetch(connection, again)
    assert data_of(mirror) == contents(3)
    assert mirror.find_mirrored(None, [listed, again]) == {}


def test_a_file_that_is_gone_is_named_and_leaves_nothing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(AT, NotFound(), times=None)
    with pytest.raises(BadFileError, match="gone") as caught:
        mirror.fetch(connection, listed)
    assert listed.url in caught.value.detail
    assert len(server.requests_for(AT)) == 1
    assert left(mirror) == []


def test_a_server_that_does_not_answer_leaves_the_part_to_go_on_from(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    server.schedule_fault(AT, TruncatedBody(100_000))
    server.schedule_fault(AT, ServiceUnavailable(), times=4)
    with pytest.raises(UnreachableError, match=NAME):
        mirror.fetch(connection, listed)
    [part] = left(mirror)
    assert part.startswith(PARTIAL_PREFIX)
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD) - 100_000


# Going on.


def part_of(mirror: Mirror, data: bytes, of: str) -> Path:
    """A part as a killed process leaves it; ``of`` is the MD5 it should have."""
    version = hashlib.md5(of.encode(), usedforsecurity=False).hexdigest()[:8]
    path = Path(mirror.folder) / "pubmed/baseline" / f"{PARTIAL_PREFIX}{version}-{NAME}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("there", [1, 1000, 100_000, len(OLD) - 1, len(OLD)])
def test_a_part_is_gone_on_with(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, there: int
) -> None:
    part_of(mirror, OLD[:there], md5_of(OLD))
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD) - there
    assert data_of(mirror) == OLD
    assert server.requests_for(AT)[0].range == f"bytes={there}-"
    assert (
        sum(request.bytes_sent for request in server.requests_for(AT) if request.status < 400)
        == len(OLD) - there
    )
    assert left(mirror) == sorted(WHOLE)


@pytest.mark.parametrize(
    "there",
    [
        OLD[:50_000] + b"damage" + OLD[50_006:100_000],
        b"<html>",
        OLD + b"more",
        OLD + bytes(7),
        NEW,
        NEW[:100_000],
        bytes(100),
    ],
    ids=["damaged", "page", "longer", "padded", "another file", "of another file", "zeros"],
)
def test_a_damaged_part_is_begun_again(
    mirror: Mirror, connection: Connection, listed: RemoteFile, there: bytes
) -> None:
    part_of(mirror, there, md5_of(OLD))
    mirror.fetch(connection, listed)
    assert data_of(mirror) == OLD
    assert left(mirror) == sorted(WHOLE)


def test_a_part_of_another_version_is_removed(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    part_of(mirror, NEW[:100_000], md5_of(NEW))
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD)
    assert left(mirror) == sorted(WHOLE)


def test_a_server_that_knows_no_ranges_begins_the_part_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    part_of(mirror, OLD[:100_000], md5_of(OLD))
    server.schedule_fault(AT, RangeIgnored())
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD)
    assert data_of(mirror) == OLD


def test_a_full_disk_is_an_error_and_leaves_no_final_name(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed: RemoteFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = resumable_file._LocalResumableFile.write

    def full(self: Any, data: bytes) -> None:
        write(self, data)
        if self.size > 100_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(resumable_file._LocalResumableFile, "write", full)
        with pytest.raises(OSError, match="No space") as caught:
            mirror.fetch(connection, listed)
        assert caught.value.errno == errno.ENOSPC
    assert data_of(mirror) is None
    assert all(name.startswith(PARTIAL_PREFIX) for name in left(mirror))
    assert mirror.fetch(connection, listed).fetched_bytes < len(OLD)
    assert data_of(mirror) == OLD


# Sources without checksums.


def test_without_checksums_the_listing_tells_what_is_new(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    bare = replace(listed, has_md5_file=False)
    held = mirror.fetch(connection, bare)
    assert (held.md5, held.is_md5_published) == (md5_of(OLD), False)
    assert server.requests_for(SIDECAR) == []
    assert list(mirror.find_mirrored(None, [bare])) == [bare]
    assert mirror.fetch(connection, bare).fetched_bytes == 0
    publish_file(server.root / AT, NEW)
    again = replace(bare, listing_text="2020-02-02 03:04 196K")
    assert mirror.find_mirrored(None, [again]) == {}
    assert mirror.fetch(connection, again).md5 == md5_of(NEW)


def test_without_checksums_and_without_words_in_the_listing_it_is_fetched_each_time(
    mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    bare = replace(listed, has_md5_file=False, listing_text="")
    for _ in range(2):
        assert mirror.fetch(connection, bare).fetched_bytes == len(OLD)


# Records.


@pytest.mark.parametrize("content", [b"", b"{", bytes(300), b"\xff\xfe", b'{"md5": '])
def test_a_damaged_record_is_as_none(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile, content: bytes
) -> None:
    mirror.fetch(connection, listed)
    record_of(mirror).write_bytes(content)
    assert mirror.find_mirrored(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [listed])) == [listed]


def test_a_record_that_another_process_takes_away_just_now_is_as_none(
    mirror: Mirror, connection: Connection, listed: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.fetch(connection, listed)
    record_of(mirror).unlink()
    monkeypatch.setattr(LocalStorage, "exists", lambda *_: True)
    assert mirror.find_mirrored(None, [listed]) == {}
    assert mirror.fetch(connection, listed).fetched_bytes == 0


def test_a_record_of_another_server_does_not_speak_for_this_one(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    mirror.fetch(connection, listed)
    elsewhere = replace(listed, url=listed.url.replace("127.0.0.1", "localhost"))
    assert mirror.find_mirrored(None, [elsewhere]) == {}


def test_a_folder_whose_name_looks_like_a_pattern_is_a_folder(
    tmp_path: Path, connection: Connection, listed: RemoteFile
) -> None:
    other = Mirror(LocalStorage(), str(tmp_path / "mirror1"))
    mirror = Mirror(LocalStorage(), str(tmp_path / "mirror[1]"))
    other.fetch(connection, listed)
    assert mirror.fetch(connection, listed).info.path == mirror.path(listed)
    assert data_of(mirror) == OLD


# Several at once.


@pytest.mark.parametrize("md5_beside", [True, False])
def test_two_who_fetch_the_same_file_fetch_it_once(
    server: FakeServer, mirror: Mirror, listed: RemoteFile, monkeypatch: pytest.MonkeyPatch, md5_beside: bool
) -> None:
    remember = Mirror._write_record

    def slowly(self: Mirror, remote: RemoteFile, held: MirroredFile) -> MirroredFile:
        time.sleep(0.2)
        return remember(self, remote, held)

    def fetch() -> None:
        with open_connection(server.url) as connection:
            results.append(mirror.fetch(connection, remote))

    monkeypatch.setattr(Mirror, "_write_record", slowly)
    remote = replace(listed, has_md5_file=md5_beside)
    results: list[MirroredFile] = []
    server.bytes_per_second = 1_000_000
    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(held.fetched_bytes for held in results) == [0, 0, len(OLD)]
    assert {held.md5 for held in results} == {md5_of(OLD)}
    assert len(server.requests_for(AT)) == 1


CHILD = """
import sys
from datetime import datetime
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.remote_file import RemoteFile
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.servers.http_connections import open_connection
folder, base, path = sys.argv[1:]
changed = datetime(2020, 1, 2, 3, 4)
remote = RemoteFile(base + path, path, "PubmedArticleSet", True, "2020-01-02 03:04 195K", changed)
with open_connection(base) as connection:
    print(Mirror(LocalStorage(), folder).fetch(connection, remote).fetched_bytes)
"""


def child(server: FakeServer, mirror: Mirror) -> subprocess.Popen[str]:
    """A process that fetches the file."""
    command = [sys.executable, "-c", CHILD, mirror.folder, server.url, AT]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_processes_that_fetch_the_same_file_fetch_it_once(server: FakeServer, mirror: Mirror) -> None:
    server.bytes_per_second = 500_000
    both = [child(server, mirror) for _ in range(2)]
    fetched = [int(running.communicate(timeout=30)[0]) for running in both]
    assert sorted(fetched) == [0, len(OLD)]
    assert server.bytes_sent_for(AT) == len(OLD)
    assert data_of(mirror) == OLD
    assert left(mirror) == sorted(WHOLE)


def test_killed_at_any_moment_only_whole_bytes_have_the_name(
    server: FakeServer, mirror: Mirror, listed: RemoteFile
) -> None:
    """Ten times, in the transfer and just after it; a mirror with an older file keeps that until the end."""
    publish_file(server.root / AT, NEW, md5=True)
    chance = random.Random(4)
    for number in range(10):
        mirror = Mirror(mirror.storage, f"{mirror.folder}-{number}")
        if number % 2:
            publish_file(Path(mirror.folder) / AT, OLD)
        before, after = server.bytes_sent_for(AT), chance.randrange(len(NEW)) if number < 6 else len(NEW)
        server.bytes_per_second = 1_000_000
        running = child(server, mirror)
        while server.bytes_sent_for(AT) - before < after and running.poll() is None:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 0.02))
        running.send_signal(signal.SIGKILL)
        running.communicate()
        assert data_of(mirror) in ((OLD if number % 2 else None), NEW)
        server.bytes_per_second = None
        sent = server.bytes_sent_for(AT)
        with open_connection(server.url) as connection:
            mirror.find_mirrored(connection, [listed])  # removes what the killed run was just writing
            mirror.fetch(connection, listed)
        assert data_of(mirror) == NEW
        assert left(mirror) == sorted(WHOLE)
        if before < sent < before + len(NEW):
            assert server.bytes_sent_for(AT) - before < len(NEW) * 1.7, "it is gone on with"


def test_every_fault_in_any_order_ends_with_the_file_or_says_why(
    server: FakeServer, mirror: Mirror, connection: Connection, listed: RemoteFile
) -> None:
    chance = random.Random(7)
    data: list[Fault] = [
        CorruptByte(70_000),
        HtmlPage(PAGE),
        ConnectionReset(30_000),
        TruncatedBody(9),
        ServiceUnavailable(),
        RangeIgnored(),
    ]
    sidecar: list[Fault] = [HtmlPage(PAGE), NotFound(), ServiceUnavailable()]
    for number in range(25):
        fresh = Mirror(mirror.storage, f"{mirror.folder}-{number}")
        for fault in chance.sample(data, 4):
            server.schedule_fault(AT, fault)
        server.schedule_fault(SIDECAR, chance.choice(sidecar))
        with contextlib.suppress(BadFileError, DownloadError):
            fresh.fetch(connection, listed)
            assert data_of(fresh) == OLD
        assert data_of(fresh) in (None, OLD)
        while server.pending_faults:
            with contextlib.suppress(DownloadError):
                connection.read(server.url + AT, 1 << 20)
            with contextlib.suppress(DownloadError):
                connection.read(server.url + SIDECAR, 1 << 20)
