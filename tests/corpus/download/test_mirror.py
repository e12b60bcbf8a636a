"""The mirror: downloads are resumed, verified and published atomically, for any division into blocks."""

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
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download import mirror as mirror_module
from bioshards.corpus.download.http_client import Connection, DownloadError, UnreachableError
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import (
    DownloadVerifier,
    Mirror,
    MirroredFile,
    distrust_copy,
    parse_root_name,
)
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.storage import retry, storage_protocol
from bioshards.corpus.storage.checksums import add_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX
from tests.support.hypothesis_profiles import examples
from tests.support.memory import measure_peak_memory
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.http_connections import open_connection
from tests.support.servers.server_faults import (
    ConnectionReset,
    CorruptByte,
    Fault,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NotFound,
    RangeIgnored,
    ServiceUnavailable,
    TruncatedBody,
)
from tests.support.servers.server_pages import publish_file

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

NAME = "pubmed26n0007.xml.gz"
REMOTE_PATH = f"pubmed/baseline/{NAME}"
SIDECAR = f"{REMOTE_PATH}.md5"
PAGE = "<html><body>Please try again later</body></html>"
COMPLETE_FILES = [NAME, f"{NAME}.json", f"{NAME}.md5"]
RELISTED = "2020-02-02 03:04 196K"


def make_gzip_file(seed: int, size: int = 200_000) -> bytes:
    """Return a gzip file of about this size; each seed gives other bytes."""
    words = random.Random(seed).randbytes(size).hex()
    return gzip.compress(f"<PubmedArticleSet>{words}</PubmedArticleSet>".encode(), 6, mtime=0)


OLD, NEW = make_gzip_file(1), make_gzip_file(2)


def compute_md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@dataclass
class Download:
    """A file of a server, listed with an old date, and the mirror that it is fetched into.

    Keyword arguments of its methods change what the listing says of the file.
    """

    server: FakeServer
    connection: Connection
    mirror: Mirror
    file: RemoteFile

    def fetch(self, **listed: Any) -> MirroredFile:
        return self.mirror.fetch(self.connection, replace(self.file, **listed))

    def find(self, is_server_asked: bool = False, **listed: Any) -> MirroredFile | None:
        file = replace(self.file, **listed)
        return self.mirror.find_mirrored(self.connection if is_server_asked else None, [file]).get(file)

    @property
    def path(self) -> Path:
        return Path(self.mirror.path(self.file))

    @property
    def content(self) -> bytes | None:
        return self.path.read_bytes() if self.path.exists() else None

    @property
    def record(self) -> Path:
        return self.path.parent / ".records" / f"{NAME}.json"

    @property
    def names(self) -> list[str]:
        """Names of all files in the mirror."""
        return sorted(path.name for path in Path(self.mirror.folder).rglob("*") if path.is_file())

    def publish(self, data: bytes, md5: bool = True) -> None:
        publish_file(self.server.root / REMOTE_PATH, data, md5=md5)

    def write_partial(self, data: bytes, version: str) -> None:
        """Write a partial download as a killed process leaves it, of an MD5 or of what was listed."""
        digest = compute_md5(version.encode())[:8]
        path = self.path.parent / f"{PARTIAL_PREFIX}{digest}-{NAME}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture(autouse=True)
def skip_retry_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def download(tmp_path: Path) -> Iterator[Download]:
    publish_file(tmp_path / "server" / REMOTE_PATH, OLD, md5=True)
    with FakeServer(tmp_path / "server") as server, open_connection(server.url) as connection:
        url, listed_at = f"{server.url}{REMOTE_PATH}", datetime(2020, 1, 2, 3, 4)
        listing = "2020-01-02 03:04 195K"
        file = RemoteFile(url, REMOTE_PATH, "PubmedArticleSet", True, listing, listed_at, 200_000)
        yield Download(server, connection, Mirror(LocalStorage(), str(tmp_path / "mirror")), file)


# Fetching and adoption.


def test_file_is_fetched_and_recorded_once(download: Download) -> None:
    assert download.find(is_server_asked=True) is None
    fetched = download.fetch()
    assert download.content == OLD
    assert (fetched.md5, fetched.is_md5_published, fetched.fetched_bytes) == (
        compute_md5(OLD),
        True,
        len(OLD),
    )
    assert fetched.info.path == str(download.path)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(fetched.retrieved_at)) < timedelta(minutes=1)
    assert fetched.download_seconds >= 0
    assert download.names == sorted(COMPLETE_FILES)
    sidecar = Path(f"{download.path}.md5").read_text()
    assert sidecar == f"MD5({NAME})= {compute_md5(OLD)}\n"
    assert json.loads(download.record.read_text())["url"] == download.file.url
    num_requests = len(download.server.requests)
    known = replace(fetched, fetched_bytes=0, download_seconds=0)
    assert download.find(is_server_asked=True) == download.find() == known
    assert len(download.server.requests) == num_requests, "an old file needs none"
    assert download.fetch() == known
    assert len(download.server.requests_for(REMOTE_PATH)) == 1
    assert len(download.server.requests_for(SIDECAR)) == 2
    assert download.find(url=download.file.url.replace("127.0.0.1", "localhost")) is None, "of another server"
    assert download.fetch(listing_text=RELISTED).fetched_bytes == 0, "listed anew, it is the same file"
    assert download.find(listing_text=RELISTED)


@pytest.mark.parametrize("existing", [OLD, NEW, OLD[:-1], b"\x1f\x8b"])
def test_file_without_a_record_is_adopted_if_it_is_right(download: Download, existing: bytes) -> None:
    publish_file(download.path, existing)
    assert download.find(is_server_asked=True) is None
    fetched = download.fetch()
    assert (fetched.md5, fetched.is_md5_published) == (compute_md5(OLD), True)
    assert fetched.fetched_bytes == (0 if existing == OLD else len(OLD))
    assert bool(download.server.requests_for(REMOTE_PATH)) == (existing != OLD)
    assert download.find()
    assert (download.content, download.names) == (OLD, sorted(COMPLETE_FILES))


def test_file_changed_since_its_record_is_replaced_and_a_touched_one_kept(download: Download) -> None:
    download.fetch()
    os.utime(download.path, (1, 1))
    assert download.find() is None
    assert download.fetch().fetched_bytes == 0
    assert download.find()
    download.path.write_bytes(OLD[:-5] + b"wrong")
    assert download.find() is None
    assert download.fetch().fetched_bytes == len(OLD)
    assert download.content == OLD


def flip_bit(path: Path) -> None:
    """Damage a file as a disk does: size and time stay."""
    info, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_distrusted_copy_is_compared_and_fetched_again_if_damaged(
    download: Download, has_md5_file: bool
) -> None:
    publish_file(download.path, OLD)
    distrust_copy(download.mirror.storage, str(download.path))
    assert download.names == [NAME], "without a record there is nothing to do"
    download.path.unlink()
    download.fetch(has_md5_file=has_md5_file)
    distrust_copy(download.mirror.storage, str(download.path))
    assert download.find(has_md5_file=has_md5_file) is None
    assert download.fetch(has_md5_file=has_md5_file).fetched_bytes == 0, "it is as it was"
    assert download.find(has_md5_file=has_md5_file)
    flip_bit(download.path)
    distrust_copy(download.mirror.storage, str(download.path))
    assert download.fetch(has_md5_file=has_md5_file).fetched_bytes == len(OLD)
    assert download.content == OLD
    assert download.find(has_md5_file=has_md5_file)


# Republication.


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_listing_detects_republished_files(download: Download, has_md5_file: bool) -> None:
    fetched = download.fetch(has_md5_file=has_md5_file)
    assert (fetched.md5, fetched.is_md5_published) == (compute_md5(OLD), has_md5_file)
    assert bool(download.server.requests_for(SIDECAR)) == has_md5_file
    assert download.fetch(has_md5_file=has_md5_file).fetched_bytes == 0
    download.publish(NEW, md5=has_md5_file)
    assert download.find(is_server_asked=True, has_md5_file=has_md5_file, listing_text=RELISTED) is None
    assert download.fetch(has_md5_file=has_md5_file, listing_text=RELISTED).md5 == compute_md5(NEW)
    assert download.content == NEW
    if has_md5_file:
        assert Path(f"{download.path}.md5").read_text() == f"MD5({NAME})= {compute_md5(NEW)}\n"


@pytest.mark.parametrize(
    "listed",
    [{"modified_at": None}, {"modified_at": None, "listing_text": ""}, {"modified_at": datetime.max}],
    ids=["undated", "unreadable", "recent"],
)
def test_file_without_an_old_date_is_compared_by_its_md5_file(
    download: Download, listed: dict[str, Any]
) -> None:
    download.fetch(**listed)
    assert download.find(is_server_asked=True, **listed)
    assert download.find(**listed) is None, "nobody can be asked"
    download.publish(NEW)
    assert download.find(is_server_asked=True, **listed) is None
    download.fetch(**listed)
    assert download.content == NEW


def test_dates_of_any_age_are_accepted(download: Download) -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    for modified_at, is_old in ((datetime.min, True), (now, False)):
        download.fetch(modified_at=modified_at)
        assert download.find(is_server_asked=True, modified_at=modified_at)
        assert bool(download.find(modified_at=modified_at)) == is_old


def test_republication_between_md5_file_and_data(download: Download) -> None:
    download.server.schedule_fault(REMOTE_PATH, FunctionCall(lambda: download.publish(NEW)))
    assert download.fetch().md5 == compute_md5(NEW)
    assert (download.content, download.names) == (NEW, sorted(COMPLETE_FILES))


@pytest.mark.parametrize("has_md5_file", [True, False])
@pytest.mark.parametrize("sent_before", [1, 50_000, len(OLD) - 9, len(OLD) - 1])
def test_republication_during_the_transfer(download: Download, has_md5_file: bool, sent_before: int) -> None:
    """The server sends the beginning of the old file and the rest of the new one: neither is kept."""
    download.server.schedule_fault(REMOTE_PATH, TruncatedBody(sent_before))
    download.server.schedule_fault(REMOTE_PATH, FunctionCall(lambda: download.publish(NEW)))
    assert download.fetch(has_md5_file=has_md5_file).md5 == compute_md5(NEW)
    assert download.content == NEW
    assert download.server.requests_for(REMOTE_PATH)[1].range == f"bytes={sent_before}-"


def test_partial_of_another_file_under_the_same_name_is_not_kept(download: Download) -> None:
    """A killed run left the beginning of a file that was republished since, unseen by the listing."""
    download.write_partial(NEW[:100_000], download.file.listing_text)
    assert download.fetch(has_md5_file=False).md5 == compute_md5(OLD)
    assert download.content == OLD


# The checksum.


def test_missing_md5_file_leaves_the_computed_md5(download: Download) -> None:
    download.server.schedule_fault(SIDECAR, NotFound(), times=2)
    fetched = download.fetch()
    assert (fetched.md5, fetched.is_md5_published) == (compute_md5(OLD), False)
    assert download.names == [NAME, f"{NAME}.json"]
    assert download.find()
    assert download.fetch().fetched_bytes == 0
    later = download.fetch()
    assert (later.is_md5_published, later.fetched_bytes) == (True, 0), "it is published later"
    assert download.names == sorted(COMPLETE_FILES)
    download.server.schedule_fault(SIDECAR, NotFound())
    assert download.fetch().is_md5_published, "it stays recorded"
    found = download.find()
    assert found
    assert found.is_md5_published


def test_listed_md5_file_must_be_there(download: Download) -> None:
    download.server.schedule_fault(SIDECAR, NotFound(), times=3)
    with pytest.raises(BadFileError, match=r"its \.md5 is listed and is not there") as caught:
        download.fetch(is_md5_listed=True)
    assert caught.value.reason == "no-checksum"
    assert download.names == []
    download.server.schedule_fault(SIDECAR, NotFound())
    assert download.fetch(is_md5_listed=True).is_md5_published
    download.server.schedule_fault(SIDECAR, NotFound(), times=None)
    assert download.fetch(is_md5_listed=True).fetched_bytes == 0, "a verified copy needs no other check"


@pytest.mark.parametrize(
    "sidecar",
    [
        FixedBody(f"{compute_md5(OLD)}  {NAME}\n".encode()),
        FixedBody(compute_md5(OLD).upper().encode()),
        FixedBody(f"\ufeff\n\n  {compute_md5(OLD)}\n".encode()),
        HtmlPage(PAGE),  # and then the file
    ],
)
def test_md5_file_of_another_format_is_read(download: Download, sidecar: Fault) -> None:
    download.server.schedule_fault(SIDECAR, sidecar)
    assert download.fetch().is_md5_published
    assert len(download.server.requests_for(REMOTE_PATH)) == 1


def test_persistent_html_page_in_place_of_the_md5_file_fails(download: Download) -> None:
    page = f"{PAGE}<p>session {'0' * 32}</p>"
    download.server.schedule_fault(SIDECAR, HtmlPage(page), times=None)
    with pytest.raises(BadFileError, match=r"no MD5; it begins b'<html>.*read 3 times") as caught:
        download.fetch()
    assert download.file.url in caught.value.detail
    assert len(download.server.requests_for(SIDECAR)) == retry.READ_RETRY_POLICY.max_attempts
    assert download.server.requests_for(REMOTE_PATH) == []
    assert download.names == []


@pytest.mark.parametrize("fault", [HtmlPage(PAGE), ServiceUnavailable(status=403)])
def test_find_mirrored_continues_when_the_md5_file_cannot_be_read(download: Download, fault: Fault) -> None:
    download.fetch(modified_at=None)
    download.server.schedule_fault(SIDECAR, fault)
    assert download.find(is_server_asked=True, modified_at=None) is None
    assert download.fetch(modified_at=None).fetched_bytes == 0


# Wrong content.


@pytest.mark.parametrize(
    ("has_md5_file", "fault", "reason"),
    [
        (True, CorruptByte(100_000), "corrupt-gzip"),
        (True, HtmlPage(PAGE), "not-gzip"),
        (True, FixedBody(OLD[:1000]), "checksum"),
        (True, FixedBody(NEW), "checksum"),
        (True, FixedBody(b""), "checksum"),
        (True, FixedBody(gzip.compress(PAGE.encode(), mtime=0)), "checksum"),
        (False, FixedBody(gzip.compress(PAGE.encode(), mtime=0)), "wrong-root"),
        (False, FixedBody(OLD[:1000]), "truncated-gzip"),
        (False, FixedBody(b""), "empty-file"),
    ],
)
def test_wrong_content_is_fetched_again_and_never_kept(
    download: Download, has_md5_file: bool, fault: Fault, reason: str
) -> None:
    download.server.schedule_fault(REMOTE_PATH, fault, times=retry.READ_RETRY_POLICY.max_attempts)
    with pytest.raises(BadFileError) as caught:
        download.fetch(has_md5_file=has_md5_file)
    assert caught.value.reason == reason
    assert download.file.url in caught.value.detail
    assert f"read {retry.READ_RETRY_POLICY.max_attempts} times" in caught.value.detail
    assert len(download.server.requests_for(REMOTE_PATH)) == retry.READ_RETRY_POLICY.max_attempts
    assert download.names == []
    download.server.schedule_fault(REMOTE_PATH, fault)
    assert download.fetch().md5 == compute_md5(OLD)
    assert (download.content, download.names) == (OLD, sorted(COMPLETE_FILES))
    assert download.server.pending_faults == []


def test_persistently_wrong_content_keeps_the_existing_file(download: Download) -> None:
    download.fetch()
    download.publish(NEW, md5=False)  # the MD5 file is still that of the old file
    download.path.write_bytes(make_gzip_file(3))
    with pytest.raises(BadFileError, match="checksum"):
        download.fetch(listing_text=RELISTED)
    assert download.content == make_gzip_file(3)
    assert download.find() is None
    assert download.find(listing_text=RELISTED) is None


def test_missing_file_fails_and_leaves_no_file(download: Download) -> None:
    download.server.schedule_fault(REMOTE_PATH, NotFound(), times=None)
    with pytest.raises(BadFileError, match="gone") as caught:
        download.fetch()
    assert download.file.url in caught.value.detail
    assert len(download.server.requests_for(REMOTE_PATH)) == 1
    assert download.names == []


# Resuming.


def test_unreachable_server_leaves_a_partial_that_is_resumed(download: Download) -> None:
    download.server.schedule_fault(REMOTE_PATH, TruncatedBody(100_000))
    download.server.schedule_fault(REMOTE_PATH, ServiceUnavailable(), times=4)
    with pytest.raises(UnreachableError, match=NAME):
        download.fetch()
    [partial] = download.names
    assert partial.startswith(PARTIAL_PREFIX)
    assert download.fetch().fetched_bytes == len(OLD) - 100_000


@pytest.mark.parametrize("num_bytes", [1, 1000, 100_000, len(OLD) - 1, len(OLD)])
def test_partial_is_resumed(download: Download, num_bytes: int) -> None:
    download.write_partial(OLD[:num_bytes], compute_md5(OLD))
    assert download.fetch().fetched_bytes == len(OLD) - num_bytes
    requests = download.server.requests_for(REMOTE_PATH)
    assert requests[0].range == f"bytes={num_bytes}-"
    assert sum(request.bytes_sent for request in requests if request.status < 400) == len(OLD) - num_bytes
    assert (download.content, download.names) == (OLD, sorted(COMPLETE_FILES))


@pytest.mark.parametrize(
    ("data", "version"),
    [
        (OLD[:50_000] + b"damage" + OLD[50_006:100_000], OLD),
        (b"<html>", OLD),
        (OLD + b"more", OLD),
        (OLD + bytes(7), OLD),
        (NEW, OLD),
        (NEW[:100_000], OLD),
        (bytes(100), OLD),
        (NEW[:100_000], NEW),
    ],
    ids=["damaged", "page", "longer", "padded", "another", "of another", "zeros", "another version"],
)
def test_damaged_partial_or_that_of_another_version_is_discarded(
    download: Download, data: bytes, version: bytes
) -> None:
    download.write_partial(data, compute_md5(version))
    fetched = download.fetch()
    assert version is OLD or fetched.fetched_bytes == len(OLD)
    assert (download.content, download.names) == (OLD, sorted(COMPLETE_FILES))


def test_full_disk_fails_without_a_final_file(download: Download, monkeypatch: pytest.MonkeyPatch) -> None:
    write = storage_protocol.ResumableFile.write

    def write_to_full_disk(self: Any, data: bytes) -> None:
        write(self, data)
        if self.size > 100_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(storage_protocol.ResumableFile, "write", write_to_full_disk)
        with pytest.raises(OSError, match="No space") as caught:
            download.fetch()
        assert caught.value.errno == errno.ENOSPC
    assert download.content is None
    assert all(name.startswith(PARTIAL_PREFIX) for name in download.names)
    assert download.fetch().fetched_bytes < len(OLD)
    assert download.content == OLD


# Records.


INVALID_VALUES: list[dict[str, object]] = [
    {"checked_at": "yesterday"},
    {"checked_at": ""},
    {"checked_at": None},
    {"checked_at": 7},
    {"retrieved_at": "2026-13-01T00:00:00Z"},
    {"retrieved_at": None},
    {"md5": None},
    {"md5_published": "yes"},
    {"stamp": 1},
    {"url": []},
    {"listing_text": None},
]


@pytest.mark.parametrize("damage", [b"", b"{", bytes(300), b"\xff\xfe", b'{"md5": ', *INVALID_VALUES])
def test_damaged_record_is_ignored(download: Download, damage: bytes | dict[str, object]) -> None:
    download.fetch()
    record = json.loads(download.record.read_text())
    del record["sha256"]
    content = damage if isinstance(damage, bytes) else json.dumps(add_sha256(record | damage)).encode()
    download.record.write_bytes(content)
    assert download.find() is None
    assert download.fetch().fetched_bytes == 0
    assert download.find()


def test_fields_that_an_earlier_version_wrote_are_ignored(download: Download) -> None:
    download.fetch()
    record = json.loads(download.record.read_text())
    del record["sha256"]
    download.record.write_text(json.dumps(record | {"bytes": 7, "download_seconds": 3.2}))
    assert download.find()


def test_record_removed_by_another_process_is_ignored(
    download: Download, monkeypatch: pytest.MonkeyPatch
) -> None:
    download.fetch()
    download.record.unlink()
    monkeypatch.setattr(LocalStorage, "exists", lambda *_: True)
    assert download.find() is None
    assert download.fetch().fetched_bytes == 0


def test_folder_name_with_glob_characters(tmp_path: Path, download: Download) -> None:
    Mirror(LocalStorage(), str(tmp_path / "mirror1")).fetch(download.connection, download.file)
    download.mirror = Mirror(LocalStorage(), str(tmp_path / "mirror[1]"))
    assert download.fetch().info.path == str(download.path)
    assert download.content == OLD


# Concurrency and interruption.


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_concurrent_threads_fetch_a_file_once(
    download: Download, monkeypatch: pytest.MonkeyPatch, has_md5_file: bool
) -> None:
    write_record = Mirror._save_record

    def write_record_slowly(self: Mirror, remote: RemoteFile, mirrored: MirroredFile) -> MirroredFile:
        time.sleep(0.2)
        return write_record(self, remote, mirrored)

    def fetch() -> None:
        with open_connection(download.server.url) as connection:
            results.append(download.mirror.fetch(connection, remote))

    monkeypatch.setattr(Mirror, "_save_record", write_record_slowly)
    remote = replace(download.file, has_md5_file=has_md5_file)
    results: list[MirroredFile] = []
    download.server.bytes_per_second = 1_000_000
    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(mirrored.fetched_bytes for mirrored in results) == [0, 0, len(OLD)]
    assert {mirrored.md5 for mirrored in results} == {compute_md5(OLD)}
    assert len(download.server.requests_for(REMOTE_PATH)) == 1


FETCH_SCRIPT = """
import sys
from datetime import datetime
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.servers.http_connections import open_connection
folder, base, path = sys.argv[1:]
changed = datetime(2020, 1, 2, 3, 4)
remote = RemoteFile(base + path, path, "PubmedArticleSet", True, "2020-01-02 03:04 195K", changed)
with open_connection(base) as connection:
    print(Mirror(LocalStorage(), folder).fetch(connection, remote).fetched_bytes)
"""


def start_fetch(download: Download) -> subprocess.Popen[str]:
    """Start a process that fetches the file."""
    folder, url = download.mirror.folder, download.server.url
    command = [sys.executable, "-c", FETCH_SCRIPT, folder, url, REMOTE_PATH]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_concurrent_processes_fetch_a_file_once(download: Download) -> None:
    download.server.bytes_per_second = 500_000
    children = [start_fetch(download) for _ in range(2)]
    fetched = [int(child.communicate(timeout=60)[0]) for child in children]
    assert sorted(fetched) == [0, len(OLD)]
    assert download.server.bytes_sent_for(REMOTE_PATH) == len(OLD)
    assert (download.content, download.names) == (OLD, sorted(COMPLETE_FILES))


@pytest.mark.thorough
def test_killed_fetch_leaves_only_complete_files(download: Download) -> None:
    """Kill six runs during the transfer and four after it; half of the mirrors hold an older file."""
    server, folder = download.server, download.mirror.folder
    download.publish(NEW)
    rng = random.Random(4)
    for attempt in range(10):
        download.mirror = Mirror(download.mirror.storage, f"{folder}-{attempt}")
        if attempt % 2:
            publish_file(download.path, OLD)
        sent_before = server.bytes_sent_for(REMOTE_PATH)
        kill_after = rng.randrange(len(NEW)) if attempt < 6 else len(NEW)
        server.bytes_per_second = 1_000_000
        child = start_fetch(download)
        while server.bytes_sent_for(REMOTE_PATH) - sent_before < kill_after and child.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert download.content in ((OLD if attempt % 2 else None), NEW)
        server.bytes_per_second = None
        partials = [path.stat().st_size for path in download.path.parent.rglob(f"{PARTIAL_PREFIX}*")]
        download.find(is_server_asked=True)  # removes temporary files of the killed run
        fetched_bytes = download.fetch().fetched_bytes
        assert (download.content, download.names) == (NEW, sorted(COMPLETE_FILES))
        if partials:
            assert fetched_bytes == len(NEW) - sum(partials), "it is resumed"


def test_any_sequence_of_faults_ends_with_the_file_or_an_error(download: Download) -> None:
    rng, folder = random.Random(7), download.mirror.folder
    data_faults: list[Fault] = [
        CorruptByte(70_000),
        HtmlPage(PAGE),
        ConnectionReset(30_000),
        TruncatedBody(9),
        ServiceUnavailable(),
        RangeIgnored(),
    ]
    sidecar_faults: list[Fault] = [HtmlPage(PAGE), NotFound(), ServiceUnavailable()]
    for attempt in range(25):
        download.mirror = Mirror(download.mirror.storage, f"{folder}-{attempt}")
        for fault in rng.sample(data_faults, 4):
            download.server.schedule_fault(REMOTE_PATH, fault)
        download.server.schedule_fault(SIDECAR, rng.choice(sidecar_faults))
        with contextlib.suppress(BadFileError, DownloadError):
            download.fetch()
            assert download.content == OLD
        assert download.content in (None, OLD)
        download.server.clear_faults()


# Verifier: MD5, gzip integrity and size.

XML = b'<?xml version="1.0"?>\n<Set><a>' + bytes(range(97, 123)) * 4000 + b"</a></Set>"
GOOD = gzip.compress(XML, mtime=0)


def check(blocks: Iterable[bytes], md5: str | None = None) -> str:
    """Return the MD5 of a good file."""
    download_verifier = DownloadVerifier("Set")
    for block in blocks:
        download_verifier.feed(block)
    return download_verifier.finish(md5)


def verify(blocks: Iterable[bytes]) -> str:
    """Return the MD5 of a good file, the reason of a bad one."""
    try:
        return check(blocks)
    except BadFileError as error:
        return error.reason


def split_into_bytes(data: bytes) -> list[bytes]:
    return [data[offset : offset + 1] for offset in range(len(data))]


def compress(xml: bytes) -> bytes:
    return gzip.compress(xml, mtime=0)


@pytest.mark.parametrize(
    ("data", "md5", "message"),
    [
        (GOOD, "0" * 32, f"its MD5 is {compute_md5(GOOD)}, the published one is 0000"),
        (b"<html>Too many requests</html>", None, "it begins b'<html>Too many"),
        (compress(b"<html><body>Sorry</body></html>"), None, "should be <Set>, it is <html>"),
    ],
)
def test_message_names_what_is_there(data: bytes, md5: str | None, message: str) -> None:
    with pytest.raises(BadFileError, match=message):
        check([data], md5)


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body>Service unavailable</body></html>",
        b"ORA-12537: TNS:connection closed",
        b"\x1e\x8b",
        b"PK\x03\x04",
        XML,
    ],
)
def test_first_bytes_identify_files_other_than_gzip(page: bytes) -> None:
    download_verifier = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="not-gzip"):
        download_verifier.feed(page[:2])
    assert verify(split_into_bytes(page)) == "not-gzip"


@pytest.mark.parametrize("length", [1, len(GOOD) // 10, len(GOOD) // 2, *(len(GOOD) - n for n in (8, 4, 1))])
def test_truncated_file_is_rejected(length: int) -> None:
    assert verify([GOOD[:length]]) == "truncated-gzip"


def test_every_wrong_byte_is_detected() -> None:
    """Header bytes 3 to 9, such as time and system, are not checked."""
    compressed = compress(b"<Set>some words of no great length</Set>")
    for offset in [0, 1, 2, *range(10, len(compressed))]:
        damaged = bytearray(compressed)
        damaged[offset] ^= 0x41
        assert verify([bytes(damaged)]) in {"not-gzip", "corrupt-gzip", "truncated-gzip", "wrong-root"}, (
            offset
        )


def test_zero_padding_is_accepted_and_other_trailing_data_rejected() -> None:
    padded = GOOD + bytes(512)
    assert verify([padded]) == verify(split_into_bytes(padded)) == compute_md5(padded)
    for garbage in (b"garbage", b"\0\0garbage", b"<html>", GOOD[:20][2:]):
        assert verify([GOOD + garbage]) == "corrupt-gzip"
    assert verify([GOOD + GOOD[:20]]) == verify([GOOD, b"\x1f"]) == "truncated-gzip"


# Verifier: root element.


@pytest.mark.parametrize(
    "head",
    [
        b"<Set>",
        b"<Set\n>",
        b"<Set a='>'>",
        b"<p:Set xmlns:p='x'>",
        b"\xef\xbb\xbf<Set>",
        b" \r\n\t<Set>",
        b"<!-- <Other> --><Set>",
        b"<!-- -- > --><!-- --><?do <Other>?><Set>",
        b'<!DOCTYPE Set PUBLIC "-//NLM//DTD" "https://dtd.example.org/set.dtd">\n<Set>',
        b"<!DOCTYPE Set [ <!ENTITY a 'b'> <!ELEMENT Other ANY> ]><Set>",
        b"<!DOCTYPE Set SYSTEM 'x' [ <!ENTITY a 'b'> ] >\n<!-- --><Set>",
        b"<!DOCTYPE Set SYSTEM 'a[>b' [ <!ENTITY a ']>'> <!-- ]> isn't --> <?do ']' ?> ]><Set>",
        b"""<!DOCTYPE Set [ <!ENTITY a "]><Other>'"> ]><Set>""",
        b"\xef\xbb\xbf\n<?xml version='1.0'?><Set>",
        b"<!-- caf\xe9 --><Set>",
        b"<?xml version='1.0'?><?xml version='1.0'?><Set>",
        b"<Set a='" + b"x" * 100_000 + b"'>",
    ],
)
def test_root_element_after_any_prolog(head: bytes) -> None:
    assert parse_root_name(head) == "Set"
    assert verify([compress(head + b"</Set>")]) != "wrong-root"


@pytest.mark.parametrize(
    ("head", "root"),
    [
        (b"<html>", "html"),
        (b"<!doctype html><html>", None),
        (b"<!DOCTYPE html><html>", "html"),
        (b"<!-- <Set> -->", None),
        (b"<!-- <Set>", None),
        (b"<!DOCTYPE Set [ <Set>", None),
        (b"text <Set>", None),
        (b"", None),
        (b"<Set", None),
        ("<Set>".encode("utf-16"), None),
    ],
)
def test_wrong_or_missing_root_element_is_rejected(head: bytes, root: str | None) -> None:
    assert parse_root_name(head) == root
    assert verify([compress(head)]) == "wrong-root"


def test_wrong_root_element_is_detected_before_the_end() -> None:
    download_verifier = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="wrong-root"):
        download_verifier.feed(compress(b"<Other>" + b"x" * 100_000)[:-8])


@pytest.mark.parametrize(
    "head",
    [
        b"<!--" * 20_000,
        b"<?" * 40_000,
        b"<!DOCTYPE a [" * 8000,
        b"<!DOCTYPE a ['" + b"]<!--" * 20_000,
        b" " * 90_000,
        b"<a:" * 30_000,
    ],
)
def test_hostile_prolog_is_parsed_in_linear_time(head: bytes) -> None:
    assert parse_root_name(head) is None


# Verifier: decompression bombs.


def make_gzip_bomb(megabytes: int) -> Iterable[bytes]:
    """Yield a gzip file of blanks in a ``<Set>``, which expands about a thousandfold."""
    compressor = zlib.compressobj(9, wbits=31)
    yield compressor.compress(b"<Set>")
    for _ in range(megabytes):
        yield compressor.compress(b" " * (1 << 20))
    yield compressor.flush()


def test_bomb_is_rejected_at_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror_module, "MAX_FILE_BYTES", 8 << 20)
    assert verify(make_gzip_bomb(7)) not in {"too-large", "corrupt-gzip", "wrong-root"}
    assert verify(make_gzip_bomb(9)) == "too-large"
    assert verify([b"".join(make_gzip_bomb(9))]) == "too-large"


@pytest.mark.thorough
def test_bomb_takes_bounded_memory() -> None:
    data = b"".join(make_gzip_bomb(60))
    assert len(data) < 1 << 18
    assert measure_peak_memory(lambda: verify([data])) < 4 << 20
    assert verify([data]) == compute_md5(data)
    assert verify(make_gzip_bomb(70)) == "bomb"


OPEN_COMPRESSOR = zlib.compressobj(wbits=31)
OPEN_GZIP = OPEN_COMPRESSOR.compress(b"<Set>") + OPEN_COMPRESSOR.flush(zlib.Z_FULL_FLUSH)


@pytest.mark.parametrize(
    ("first", "endless"),
    [(GOOD, bytes(1 << 16)), (GOOD, compress(b"") * 3000), (OPEN_GZIP, b"\0\0\0\xff\xff" * 10_000)],
    ids=["padding", "empty members", "empty blocks"],
)
def test_endless_data_that_expands_to_nothing_is_rejected(
    first: bytes, endless: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding, empty members and empty blocks count towards the size limit."""
    monkeypatch.setattr(mirror_module, "MAX_FILE_BYTES", 1 << 20)
    assert verify([first, *[endless] * 40]) == "too-large"


# Verifier: block boundaries.


@settings(max_examples=examples(40))
@given(
    data=st.one_of(
        st.just(GOOD[:300]),
        st.binary(max_size=60),
        st.binary(max_size=40).map(compress),
        st.binary(max_size=40).map(lambda tail: compress(b"<Set>words</Set>") + tail),
        st.binary(max_size=40).map(lambda text: compress(b"<Set>" + text) + compress(text + b"</Set>")),
    ),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)
def test_result_is_independent_of_block_boundaries(data: bytes, cuts: list[int]) -> None:
    boundaries = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    blocks = [data[start:end] for start, end in pairwise(boundaries)]
    assert verify([data]) == verify(split_into_bytes(data)) == verify(blocks)


@settings(max_examples=examples(40))
@given(text=st.text(max_size=200), split=st.integers(0, 200))
def test_any_valid_gzip_file_is_accepted(text: str, split: int) -> None:
    xml = b"<Set>" + text.encode() + b"</Set>"
    compressed = compress(xml[:split]) + compress(xml[split:])
    assert verify([compressed]) == compute_md5(compressed)
