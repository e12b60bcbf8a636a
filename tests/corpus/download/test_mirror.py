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
import tracemalloc
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
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
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX
from tests.support.hypothesis_profiles import examples
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
    Republication,
    ServiceUnavailable,
    TruncatedBody,
)
from tests.support.servers.server_pages import publish_file

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

NAME = "pubmed26n0007.xml.gz"
REMOTE_PATH = f"pubmed/baseline/{NAME}"
SIDECAR = f"{REMOTE_PATH}.md5"
LONG_AGO = datetime(2020, 1, 2, 3, 4)
PAGE = "<html><body>Please try again later</body></html>"


def make_gzip_file(seed: int, size: int = 200_000) -> bytes:
    """Return a gzip file of about this size; each seed gives other bytes."""
    words = random.Random(seed).randbytes(size).hex()
    return gzip.compress(f"<PubmedArticleSet>{words}</PubmedArticleSet>".encode(), 6, mtime=0)


OLD, NEW = make_gzip_file(1), make_gzip_file(2)


def compute_md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


@pytest.fixture(autouse=True)
def skip_retry_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "time", SimpleNamespace(sleep=lambda _: None))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    publish_file(tmp_path / "server" / REMOTE_PATH, OLD, md5=True)
    with FakeServer(tmp_path / "server") as running:
        yield running


@pytest.fixture
def connection(server: FakeServer) -> Iterator[Connection]:
    with open_connection(server.url) as opened:
        yield opened


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    return Mirror(LocalStorage(), str(tmp_path / "mirror"))


@pytest.fixture
def listed_file(server: FakeServer) -> RemoteFile:
    """The file as a listing names it, with an old date."""
    return RemoteFile(
        f"{server.url}{REMOTE_PATH}",
        REMOTE_PATH,
        "PubmedArticleSet",
        True,
        "2020-01-02 03:04 195K",
        LONG_AGO,
        200_000,
    )


def set_modified_now(remote: RemoteFile) -> RemoteFile:
    """Return the file with the current time as its date of modification."""
    return replace(remote, modified_at=datetime.now(UTC).replace(tzinfo=None))


def read_mirrored(mirror: Mirror) -> bytes | None:
    path = Path(mirror.folder) / REMOTE_PATH
    return path.read_bytes() if path.exists() else None


def get_record_path(mirror: Mirror) -> Path:
    return Path(mirror.folder) / "pubmed/baseline/.records" / f"{NAME}.json"


def list_mirror(mirror: Mirror) -> list[str]:
    """Return the names of all files in the mirror."""
    return sorted(path.name for path in Path(mirror.folder).rglob("*") if path.is_file())


COMPLETE_FILES = [NAME, f"{NAME}.json", f"{NAME}.md5"]


# Fetching and adoption.


def test_file_is_fetched_and_recorded(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    assert mirror.find_mirrored(connection, [listed_file]) == {}
    fetched = mirror.fetch(connection, listed_file)
    assert read_mirrored(mirror) == OLD
    assert (fetched.md5, fetched.is_md5_published, fetched.fetched_bytes) == (
        compute_md5(OLD),
        True,
        len(OLD),
    )
    assert fetched.info.path == mirror.path(listed_file)
    assert abs(datetime.now(UTC) - datetime.fromisoformat(fetched.retrieved_at)) < timedelta(minutes=1)
    assert fetched.download_seconds >= 0
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)
    assert (Path(mirror.folder) / SIDECAR).read_text() == f"MD5({NAME})= {compute_md5(OLD)}\n"
    assert json.loads(get_record_path(mirror).read_text())["url"] == listed_file.url


def test_record_of_an_old_file_needs_no_request(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    fetched = mirror.fetch(connection, listed_file)
    num_requests = len(server.requests)
    assert mirror.find_mirrored(connection, [listed_file]) == {
        listed_file: replace(fetched, fetched_bytes=0, download_seconds=0)
    }
    assert mirror.find_mirrored(None, [listed_file]) == {
        listed_file: replace(fetched, fetched_bytes=0, download_seconds=0)
    }
    assert len(server.requests) == num_requests


def test_second_fetch_requests_the_md5_file_only(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    first = mirror.fetch(connection, listed_file)
    second = mirror.fetch(connection, listed_file)
    assert second == replace(first, fetched_bytes=0, download_seconds=0)
    assert len(server.requests_for(REMOTE_PATH)) == 1
    assert len(server.requests_for(SIDECAR)) == 2


def test_correct_file_without_a_record_is_adopted(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    publish_file(Path(mirror.folder) / REMOTE_PATH, OLD)
    assert mirror.find_mirrored(connection, [listed_file]) == {}
    adopted = mirror.fetch(connection, listed_file)
    assert (adopted.md5, adopted.is_md5_published, adopted.fetched_bytes) == (compute_md5(OLD), True, 0)
    assert server.requests_for(REMOTE_PATH) == []
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


@pytest.mark.parametrize("existing", [NEW, OLD[:-1], b""])
def test_wrong_file_without_a_record_is_replaced(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile, existing: bytes
) -> None:
    publish_file(Path(mirror.folder) / REMOTE_PATH, existing or b"\x1f\x8b")
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD)
    assert read_mirrored(mirror) == OLD


def test_file_changed_since_its_record_is_replaced(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    path = Path(mirror.folder) / REMOTE_PATH
    path.write_bytes(OLD[:-5] + b"wrong")
    assert mirror.find_mirrored(None, [listed_file]) == {}
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD)
    assert read_mirrored(mirror) == OLD


def flip_bit(path: Path) -> None:
    """Damage a file as a disk does: size and time stay."""
    info, data = path.stat(), bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_distrusted_copy_is_compared_and_fetched_again_if_damaged(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed_file: RemoteFile,
    has_md5_file: bool,
) -> None:
    remote = replace(listed_file, has_md5_file=has_md5_file)
    mirror.fetch(connection, remote)
    distrust_copy(mirror.storage, mirror.path(remote))
    assert mirror.find_mirrored(None, [remote]) == {}
    assert mirror.fetch(connection, remote).fetched_bytes == 0, "it is as it was"
    assert list(mirror.find_mirrored(None, [remote])) == [remote]
    flip_bit(Path(mirror.path(remote)))
    distrust_copy(mirror.storage, mirror.path(remote))
    assert mirror.fetch(connection, remote).fetched_bytes == len(OLD)
    assert read_mirrored(mirror) == OLD
    assert list(mirror.find_mirrored(None, [remote])) == [remote]


def test_distrusting_a_file_without_a_record_does_nothing(mirror: Mirror) -> None:
    publish_file(Path(mirror.folder) / REMOTE_PATH, OLD)
    distrust_copy(mirror.storage, f"{mirror.folder}/{REMOTE_PATH}")
    assert list_mirror(mirror) == [NAME]


def test_touched_file_is_not_fetched_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    os.utime(mirror.path(listed_file), (1, 1))
    assert mirror.find_mirrored(None, [listed_file]) == {}
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]


def test_find_mirrored_returns_only_the_files_present(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    other_files = []
    for index in range(8, 14):
        path = REMOTE_PATH.replace("0007", f"{index:04d}")
        publish_file(server.root / path, make_gzip_file(index, 500), md5=True)
        other_files.append(replace(listed_file, url=server.url + path, path=path))
    for remote in (listed_file, *other_files[:3]):
        mirror.fetch(connection, remote)
    assert list(mirror.find_mirrored(None, [*other_files, listed_file])) == [*other_files[:3], listed_file]


# Republication.


def test_republished_file_is_detected_by_its_listing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    publish_file(server.root / REMOTE_PATH, NEW, md5=True)
    relisted = replace(listed_file, listing_text="2020-02-02 03:04 196K")
    assert mirror.find_mirrored(connection, [relisted]) == {}
    assert mirror.fetch(connection, relisted).md5 == compute_md5(NEW)
    assert read_mirrored(mirror) == NEW
    assert (Path(mirror.folder) / SIDECAR).read_text() == f"MD5({NAME})= {compute_md5(NEW)}\n"


def test_new_listing_of_the_same_file_fetches_nothing(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    relisted = replace(listed_file, listing_text="2020-02-02 03:04 195K")
    assert mirror.fetch(connection, relisted).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [relisted])) == [relisted]


def test_recent_file_is_compared_by_its_md5_file(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    recent = set_modified_now(listed_file)
    mirror.fetch(connection, recent)
    assert list(mirror.find_mirrored(connection, [recent])) == [recent]
    assert mirror.find_mirrored(None, [recent]) == {}, "nobody can be asked"
    publish_file(server.root / REMOTE_PATH, NEW, md5=True)
    assert mirror.find_mirrored(connection, [recent]) == {}
    mirror.fetch(connection, recent)
    assert read_mirrored(mirror) == NEW


def test_undated_file_is_always_compared_by_its_md5_file(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    undated = replace(listed_file, modified_at=None)
    mirror.fetch(connection, undated)
    assert mirror.find_mirrored(None, [undated]) == {}
    assert list(mirror.find_mirrored(connection, [undated])) == [undated]


@pytest.mark.parametrize("modified_at", [datetime.max, datetime.min])
def test_extreme_dates_are_accepted(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile, modified_at: datetime
) -> None:
    remote = replace(listed_file, modified_at=modified_at)
    mirror.fetch(connection, remote)
    assert list(mirror.find_mirrored(connection, [remote])) == [remote]


def test_republication_between_md5_file_and_data(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(
        REMOTE_PATH, FunctionCall(lambda: publish_file(server.root / REMOTE_PATH, NEW, md5=True))
    )
    assert mirror.fetch(connection, listed_file).md5 == compute_md5(NEW)
    assert read_mirrored(mirror) == NEW
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


@pytest.mark.parametrize("has_md5_file", [True, False])
@pytest.mark.parametrize("sent_before", [1, 50_000, len(OLD) - 9, len(OLD) - 1])
def test_republication_during_the_transfer(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed_file: RemoteFile,
    has_md5_file: bool,
    sent_before: int,
) -> None:
    """The server sends the beginning of the old file and the rest of the new one: neither is kept."""
    server.schedule_fault(REMOTE_PATH, TruncatedBody(sent_before))
    server.schedule_fault(
        REMOTE_PATH, FunctionCall(lambda: publish_file(server.root / REMOTE_PATH, NEW, md5=True))
    )
    fetched = mirror.fetch(connection, replace(listed_file, has_md5_file=has_md5_file))
    assert fetched.md5 == compute_md5(NEW)
    assert read_mirrored(mirror) == NEW
    assert server.requests_for(REMOTE_PATH)[1].range == f"bytes={sent_before}-"


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_partial_of_another_file_under_the_same_name_is_not_kept(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, has_md5_file: bool
) -> None:
    """A killed run left the beginning of a file that was republished since, unseen by the listing."""
    remote = replace(listed_file, has_md5_file=has_md5_file)
    write_partial(mirror, NEW[:100_000], compute_md5(OLD) if has_md5_file else remote.listing_text)
    assert mirror.fetch(connection, remote).md5 == compute_md5(OLD)
    assert read_mirrored(mirror) == OLD


def test_republication_while_the_old_file_is_sent(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    """The old file matches the MD5 that was read; the next run sees the new listing."""
    server.schedule_fault(REMOTE_PATH, Republication(REMOTE_PATH, NEW, md5=True))
    assert mirror.fetch(connection, listed_file).md5 == compute_md5(OLD)
    relisted = replace(listed_file, listing_text="2020-02-02 03:04 195K")
    assert mirror.fetch(connection, relisted).md5 == compute_md5(NEW)


# The checksum.


def test_missing_md5_file_leaves_the_computed_md5(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, NotFound(), times=None)
    fetched = mirror.fetch(connection, listed_file)
    assert (fetched.md5, fetched.is_md5_published) == (compute_md5(OLD), False)
    assert list_mirror(mirror) == [NAME, f"{NAME}.json"]
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0


def test_listed_md5_file_must_be_there(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    listed_file = replace(listed_file, is_md5_listed=True)
    server.schedule_fault(SIDECAR, NotFound(), times=3)
    with pytest.raises(BadFileError, match=r"its \.md5 is listed and is not there") as caught:
        mirror.fetch(connection, listed_file)
    assert caught.value.reason == "no-checksum"
    assert list_mirror(mirror) == []
    server.schedule_fault(SIDECAR, NotFound())
    assert mirror.fetch(connection, listed_file).is_md5_published
    # A copy that was verified needs no other check.
    server.schedule_fault(SIDECAR, NotFound(), times=None)
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0


def test_md5_file_published_later_is_recorded(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, NotFound())
    assert not mirror.fetch(connection, listed_file).is_md5_published
    later = mirror.fetch(connection, listed_file)
    assert (later.is_md5_published, later.fetched_bytes) == (True, 0)
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


def test_md5_file_removed_later_stays_recorded(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    server.schedule_fault(SIDECAR, NotFound())
    assert mirror.fetch(connection, listed_file).is_md5_published
    assert mirror.find_mirrored(None, [listed_file])[listed_file].is_md5_published


@pytest.mark.parametrize(
    "sidecar",
    [
        f"MD5({NAME})= {compute_md5(OLD)}\n",
        f"{compute_md5(OLD)}  {NAME}\n",
        compute_md5(OLD).upper(),
        f"\ufeff\n\n  {compute_md5(OLD)}\n",
    ],
)
def test_md5_file_formats(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, sidecar: str
) -> None:
    server.schedule_fault(SIDECAR, FixedBody(sidecar.encode()))
    assert mirror.fetch(connection, listed_file).is_md5_published


def test_html_page_in_place_of_the_md5_file_is_retried(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(SIDECAR, HtmlPage(PAGE))
    assert mirror.fetch(connection, listed_file).is_md5_published
    assert len(server.requests_for(REMOTE_PATH)) == 1


def test_persistent_html_page_in_place_of_the_md5_file_fails(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    page = f"{PAGE}<p>session {'0' * 32}</p>"
    server.schedule_fault(SIDECAR, HtmlPage(page), times=None)
    with pytest.raises(BadFileError, match=r"no MD5; it begins b'<html>.*read 3 times") as caught:
        mirror.fetch(connection, listed_file)
    assert listed_file.url in caught.value.detail
    assert len(server.requests_for(SIDECAR)) == retry.READ_RETRY_POLICY.max_attempts
    assert server.requests_for(REMOTE_PATH) == []
    assert list_mirror(mirror) == []


@pytest.mark.parametrize("fault", [HtmlPage(PAGE), ServiceUnavailable(status=403)])
def test_find_mirrored_continues_when_the_md5_file_cannot_be_read(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, fault: Fault
) -> None:
    recent = set_modified_now(listed_file)
    mirror.fetch(connection, recent)
    server.schedule_fault(SIDECAR, fault)
    assert mirror.find_mirrored(connection, [recent]) == {}
    assert mirror.fetch(connection, recent).fetched_bytes == 0


# Wrong content.


@pytest.mark.parametrize(
    "fault", [CorruptByte(100_000), CorruptByte(0), HtmlPage(PAGE), FixedBody(OLD[:1000]), FixedBody(b"")]
)
def test_wrong_content_is_fetched_again(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, fault: Fault
) -> None:
    server.schedule_fault(REMOTE_PATH, fault)
    assert mirror.fetch(connection, listed_file).md5 == compute_md5(OLD)
    assert read_mirrored(mirror) == OLD
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)
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
def test_persistently_wrong_content_fails_and_leaves_no_file(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed_file: RemoteFile,
    fault: Fault,
    reason: str,
) -> None:
    server.schedule_fault(REMOTE_PATH, fault, times=None)
    with pytest.raises(BadFileError) as caught:
        mirror.fetch(connection, listed_file)
    error = caught.value
    assert error.reason in (reason, "checksum")
    assert listed_file.url in error.detail
    assert f"read {retry.READ_RETRY_POLICY.max_attempts} times" in error.detail
    assert len(server.requests_for(REMOTE_PATH)) == retry.READ_RETRY_POLICY.max_attempts
    assert list_mirror(mirror) == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(PAGE.encode(), mtime=0), "wrong-root"),
        (OLD[:1000], "truncated-gzip"),
        (b"", "empty-file"),
    ],
)
def test_content_is_verified_without_an_md5_file(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed_file: RemoteFile,
    body: bytes,
    reason: str,
) -> None:
    server.schedule_fault(REMOTE_PATH, FixedBody(body), times=None)
    with pytest.raises(BadFileError) as caught:
        mirror.fetch(connection, replace(listed_file, has_md5_file=False))
    assert caught.value.reason == reason
    assert list_mirror(mirror) == []


def test_persistently_wrong_content_keeps_the_existing_file(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    publish_file(server.root / REMOTE_PATH, NEW)  # the MD5 file is still that of the old file
    relisted = replace(listed_file, listing_text="2020-02-02 03:04 196K")
    Path(mirror.path(listed_file)).write_bytes(make_gzip_file(3))
    with pytest.raises(BadFileError, match="checksum"):
        mirror.fetch(connection, relisted)
    assert read_mirrored(mirror) == make_gzip_file(3)
    assert mirror.find_mirrored(None, [listed_file, relisted]) == {}


def test_missing_file_fails_and_leaves_no_file(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(REMOTE_PATH, NotFound(), times=None)
    with pytest.raises(BadFileError, match="gone") as caught:
        mirror.fetch(connection, listed_file)
    assert listed_file.url in caught.value.detail
    assert len(server.requests_for(REMOTE_PATH)) == 1
    assert list_mirror(mirror) == []


def test_unreachable_server_leaves_a_partial_that_is_resumed(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    server.schedule_fault(REMOTE_PATH, TruncatedBody(100_000))
    server.schedule_fault(REMOTE_PATH, ServiceUnavailable(), times=4)
    with pytest.raises(UnreachableError, match=NAME):
        mirror.fetch(connection, listed_file)
    [partial] = list_mirror(mirror)
    assert partial.startswith(PARTIAL_PREFIX)
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD) - 100_000


# Resuming.


def write_partial(mirror: Mirror, data: bytes, md5: str) -> Path:
    """Write a partial download as a killed process leaves it; ``md5`` is that of the complete file."""
    version = hashlib.md5(md5.encode(), usedforsecurity=False).hexdigest()[:8]
    path = Path(mirror.folder) / "pubmed/baseline" / f"{PARTIAL_PREFIX}{version}-{NAME}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("num_bytes", [1, 1000, 100_000, len(OLD) - 1, len(OLD)])
def test_partial_is_resumed(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, num_bytes: int
) -> None:
    write_partial(mirror, OLD[:num_bytes], compute_md5(OLD))
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD) - num_bytes
    assert read_mirrored(mirror) == OLD
    assert server.requests_for(REMOTE_PATH)[0].range == f"bytes={num_bytes}-"
    assert (
        sum(request.bytes_sent for request in server.requests_for(REMOTE_PATH) if request.status < 400)
        == len(OLD) - num_bytes
    )
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


@pytest.mark.parametrize(
    "damaged",
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
def test_damaged_partial_is_discarded(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile, damaged: bytes
) -> None:
    write_partial(mirror, damaged, compute_md5(OLD))
    mirror.fetch(connection, listed_file)
    assert read_mirrored(mirror) == OLD
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


def test_partial_of_another_version_is_removed(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    write_partial(mirror, NEW[:100_000], compute_md5(NEW))
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD)
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


def test_partial_is_discarded_when_the_server_ignores_ranges(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    write_partial(mirror, OLD[:100_000], compute_md5(OLD))
    server.schedule_fault(REMOTE_PATH, RangeIgnored())
    assert mirror.fetch(connection, listed_file).fetched_bytes == len(OLD)
    assert read_mirrored(mirror) == OLD


def test_full_disk_fails_without_a_final_file(
    server: FakeServer,
    mirror: Mirror,
    connection: Connection,
    listed_file: RemoteFile,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write = storage_protocol.ResumableFile.write

    def write_to_full_disk(self: Any, data: bytes) -> None:
        write(self, data)
        if self.size > 100_000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(storage_protocol.ResumableFile, "write", write_to_full_disk)
        with pytest.raises(OSError, match="No space") as caught:
            mirror.fetch(connection, listed_file)
        assert caught.value.errno == errno.ENOSPC
    assert read_mirrored(mirror) is None
    assert all(name.startswith(PARTIAL_PREFIX) for name in list_mirror(mirror))
    assert mirror.fetch(connection, listed_file).fetched_bytes < len(OLD)
    assert read_mirrored(mirror) == OLD


# Sources without checksums.


def test_listing_detects_changes_without_md5_files(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    without_md5 = replace(listed_file, has_md5_file=False)
    fetched = mirror.fetch(connection, without_md5)
    assert (fetched.md5, fetched.is_md5_published) == (compute_md5(OLD), False)
    assert server.requests_for(SIDECAR) == []
    assert list(mirror.find_mirrored(None, [without_md5])) == [without_md5]
    assert mirror.fetch(connection, without_md5).fetched_bytes == 0
    publish_file(server.root / REMOTE_PATH, NEW)
    relisted = replace(without_md5, listing_text="2020-02-02 03:04 196K")
    assert mirror.find_mirrored(None, [relisted]) == {}
    assert mirror.fetch(connection, relisted).md5 == compute_md5(NEW)


def test_file_without_md5_and_readable_date_is_fetched_once(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    listed = replace(listed_file, has_md5_file=False)
    undated = replace(listed, listing_text="", modified_at=None)
    assert mirror.fetch(connection, listed).fetched_bytes == len(OLD)
    assert list(mirror.find_mirrored(None, [undated])) == [undated]
    assert mirror.fetch(connection, undated).fetched_bytes == 0


def test_file_without_readable_date_is_checked_by_its_md5(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    undated = replace(listed_file, listing_text="", modified_at=None)
    assert list(mirror.find_mirrored(connection, [undated])) == [undated]
    publish_file(server.root / REMOTE_PATH, NEW, md5=True)
    assert mirror.find_mirrored(connection, [undated]) == {}
    assert mirror.fetch(connection, undated).md5 == compute_md5(NEW)


# Records.


@pytest.mark.parametrize("content", [b"", b"{", bytes(300), b"\xff\xfe", b'{"md5": '])
def test_damaged_record_is_ignored(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile, content: bytes
) -> None:
    mirror.fetch(connection, listed_file)
    get_record_path(mirror).write_bytes(content)
    assert mirror.find_mirrored(None, [listed_file]) == {}
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]


@pytest.mark.parametrize(
    "values",
    [
        *({"checked_at": value} for value in ("yesterday", "", None, 7)),
        *({"retrieved_at": value} for value in ("2026-13-01T00:00:00Z", None)),
        *({"md5": None}, {"md5_published": "yes"}, {"stamp": 1}, {"url": []}, {"listing_text": None}),
    ],
)
def test_record_with_an_invalid_value_is_ignored(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile, values: dict[str, object]
) -> None:
    mirror.fetch(connection, listed_file)
    path = get_record_path(mirror)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    assert mirror.find_mirrored(None, [listed_file]) == {}
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]


def test_record_of_an_earlier_version_is_read(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    """It has fields that are no longer written; without it a package without an MD5 is fetched again."""
    mirror.fetch(connection, listed_file)
    path = get_record_path(mirror)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"bytes": 7, "download_seconds": 3.2}))
    assert list(mirror.find_mirrored(None, [listed_file])) == [listed_file]


def test_record_removed_by_another_process_is_ignored(
    mirror: Mirror, connection: Connection, listed_file: RemoteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror.fetch(connection, listed_file)
    get_record_path(mirror).unlink()
    monkeypatch.setattr(LocalStorage, "exists", lambda *_: True)
    assert mirror.find_mirrored(None, [listed_file]) == {}
    assert mirror.fetch(connection, listed_file).fetched_bytes == 0


def test_record_of_another_server_is_ignored(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    mirror.fetch(connection, listed_file)
    elsewhere = replace(listed_file, url=listed_file.url.replace("127.0.0.1", "localhost"))
    assert mirror.find_mirrored(None, [elsewhere]) == {}


def test_folder_name_with_glob_characters(
    tmp_path: Path, connection: Connection, listed_file: RemoteFile
) -> None:
    other_mirror = Mirror(LocalStorage(), str(tmp_path / "mirror1"))
    mirror = Mirror(LocalStorage(), str(tmp_path / "mirror[1]"))
    other_mirror.fetch(connection, listed_file)
    assert mirror.fetch(connection, listed_file).info.path == mirror.path(listed_file)
    assert read_mirrored(mirror) == OLD


# Concurrency and interruption.


@pytest.mark.parametrize("has_md5_file", [True, False])
def test_concurrent_threads_fetch_a_file_once(
    server: FakeServer,
    mirror: Mirror,
    listed_file: RemoteFile,
    monkeypatch: pytest.MonkeyPatch,
    has_md5_file: bool,
) -> None:
    write_record = Mirror._save_record

    def write_record_slowly(self: Mirror, remote: RemoteFile, mirrored: MirroredFile) -> MirroredFile:
        time.sleep(0.2)
        return write_record(self, remote, mirrored)

    def fetch() -> None:
        with open_connection(server.url) as connection:
            results.append(mirror.fetch(connection, remote))

    monkeypatch.setattr(Mirror, "_save_record", write_record_slowly)
    remote = replace(listed_file, has_md5_file=has_md5_file)
    results: list[MirroredFile] = []
    server.bytes_per_second = 1_000_000
    threads = [threading.Thread(target=fetch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(mirrored.fetched_bytes for mirrored in results) == [0, 0, len(OLD)]
    assert {mirrored.md5 for mirrored in results} == {compute_md5(OLD)}
    assert len(server.requests_for(REMOTE_PATH)) == 1


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


def start_fetch(server: FakeServer, mirror: Mirror) -> subprocess.Popen[str]:
    """Start a process that fetches the file."""
    command = [sys.executable, "-c", FETCH_SCRIPT, mirror.folder, server.url, REMOTE_PATH]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_concurrent_processes_fetch_a_file_once(server: FakeServer, mirror: Mirror) -> None:
    server.bytes_per_second = 500_000
    children = [start_fetch(server, mirror) for _ in range(2)]
    fetched = [int(child.communicate(timeout=30)[0]) for child in children]
    assert sorted(fetched) == [0, len(OLD)]
    assert server.bytes_sent_for(REMOTE_PATH) == len(OLD)
    assert read_mirrored(mirror) == OLD
    assert list_mirror(mirror) == sorted(COMPLETE_FILES)


@pytest.mark.thorough
def test_killed_fetch_leaves_only_complete_files(
    server: FakeServer, mirror: Mirror, listed_file: RemoteFile
) -> None:
    """Kill six runs during the transfer and four after it; half of the mirrors hold an older file."""
    publish_file(server.root / REMOTE_PATH, NEW, md5=True)
    rng = random.Random(4)
    for attempt in range(10):
        mirror = Mirror(mirror.storage, f"{mirror.folder}-{attempt}")
        if attempt % 2:
            publish_file(Path(mirror.folder) / REMOTE_PATH, OLD)
        sent_before, kill_after = (
            server.bytes_sent_for(REMOTE_PATH),
            rng.randrange(len(NEW)) if attempt < 6 else len(NEW),
        )
        server.bytes_per_second = 1_000_000
        child = start_fetch(server, mirror)
        while server.bytes_sent_for(REMOTE_PATH) - sent_before < kill_after and child.poll() is None:
            time.sleep(0.002)
        time.sleep(rng.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert read_mirrored(mirror) in ((OLD if attempt % 2 else None), NEW)
        server.bytes_per_second = None
        partials = [path.stat().st_size for path in Path(mirror.folder).rglob(f"{PARTIAL_PREFIX}*")]
        with open_connection(server.url) as connection:
            mirror.find_mirrored(connection, [listed_file])  # removes temporary files of the killed run
            fetched_bytes = mirror.fetch(connection, listed_file).fetched_bytes
        assert read_mirrored(mirror) == NEW
        assert list_mirror(mirror) == sorted(COMPLETE_FILES)
        if partials:
            assert fetched_bytes == len(NEW) - sum(partials), "it is resumed"


def test_any_sequence_of_faults_ends_with_the_file_or_an_error(
    server: FakeServer, mirror: Mirror, connection: Connection, listed_file: RemoteFile
) -> None:
    rng = random.Random(7)
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
        new_mirror = Mirror(mirror.storage, f"{mirror.folder}-{attempt}")
        for fault in rng.sample(data_faults, 4):
            server.schedule_fault(REMOTE_PATH, fault)
        server.schedule_fault(SIDECAR, rng.choice(sidecar_faults))
        with contextlib.suppress(BadFileError, DownloadError):
            new_mirror.fetch(connection, listed_file)
            assert read_mirrored(new_mirror) == OLD
        assert read_mirrored(new_mirror) in (None, OLD)
        while server.pending_faults:
            with contextlib.suppress(DownloadError):
                connection.read(server.url + REMOTE_PATH, 1 << 20)
            with contextlib.suppress(DownloadError):
                connection.read(server.url + SIDECAR, 1 << 20)


# Verifier: MD5, gzip integrity and size.

XML = b'<?xml version="1.0"?>\n<Set><a>' + bytes(range(97, 123)) * 4000 + b"</a></Set>"
GOOD = gzip.compress(XML, mtime=0)


def verify(blocks: Iterable[bytes], md5: str | None = None) -> str:
    """Return the MD5 of a good file, the reason of a bad one."""
    download_verifier = DownloadVerifier("Set")
    try:
        for block in blocks:
            download_verifier.feed(block)
        return download_verifier.finish(md5)
    except BadFileError as error:
        return error.reason


def split_into_bytes(data: bytes) -> list[bytes]:
    return [data[offset : offset + 1] for offset in range(len(data))]


def compress(xml: bytes) -> bytes:
    return gzip.compress(xml, mtime=0)


def test_good_file_returns_its_md5() -> None:
    assert verify([GOOD]) == verify([GOOD], compute_md5(GOOD)) == compute_md5(GOOD)


def test_wrong_md5_is_rejected() -> None:
    assert verify([GOOD], compute_md5(b"another")) == "checksum"


def test_message_has_both_md5s() -> None:
    download_verifier = DownloadVerifier("Set")
    download_verifier.feed(GOOD)
    with pytest.raises(BadFileError, match=f"its MD5 is {compute_md5(GOOD)}, the published one is 0000"):
        download_verifier.finish("0" * 32)


def test_empty_file_is_rejected() -> None:
    assert verify([]) == verify([b""]) == verify([b"", b""]) == "empty-file"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body>Service unavailable</body></html>",
        b'<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>',
        b"ORA-12537: TNS:connection closed",
        b"\x1e\x8b",
        b"\x1f\x8c",
        b"PK\x03\x04",
        XML,
    ],
)
def test_first_bytes_identify_files_other_than_gzip(page: bytes) -> None:
    download_verifier = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="not-gzip"):
        download_verifier.feed(page[:2])
    assert verify(split_into_bytes(page)) == "not-gzip"


def test_message_quotes_the_first_bytes() -> None:
    with pytest.raises(BadFileError, match="it begins b'<html>Too many"):
        DownloadVerifier("Set").feed(b"<html>Too many requests</html>")


@pytest.mark.parametrize("offset", [0.0, 0.1, 0.5, 0.9])
def test_truncated_file_is_rejected(offset: float) -> None:
    assert verify([GOOD[: 1 + int(offset * len(GOOD))]]) == "truncated-gzip"


@pytest.mark.parametrize("missing", [1, 4, 8])
def test_file_without_its_last_bytes_is_rejected(missing: int) -> None:
    assert verify([GOOD[:-missing]]) == "truncated-gzip"


def test_every_wrong_byte_is_detected() -> None:
    """Header bytes 3 to 9, such as time and system, are not checked."""
    compressed = compress(b"<Set>some words of no great length</Set>")
    for offset in [0, 1, 2, *range(10, len(compressed))]:
        damaged = bytearray(compressed)
        damaged[offset] ^= 0x41
        assert verify([bytes(damaged)]) in {"not-gzip", "corrupt-gzip", "truncated-gzip", "wrong-root"}, (
            offset
        )


def test_gzip_members_are_concatenated() -> None:
    members = compress(XML[:1000]) + compress(XML[1000:])
    assert verify([members]) == verify(split_into_bytes(members)) == compute_md5(members)


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
        b"<Set/>",
        b"<Set\n>",
        b"<Set a='>'>",
        b"<p:Set xmlns:p='x'>",
        b"\xef\xbb\xbf<Set>",
        b"\xef\xbb\xbf<?xml version='1.0'?><Set>",
        b" \r\n\t<Set>",
        b"<!-- <Other> --><Set>",
        b"<!-- -- > --><!-- --><?do <Other>?><Set>",
        b"<!DOCTYPE Set><Set>",
        b'<!DOCTYPE Set PUBLIC "-//NLM//DTD" "https://dtd.example.org/set.dtd">\n<Set>',
        b"<!DOCTYPE Set [ <!ENTITY a 'b'> <!ELEMENT Other ANY> ]><Set>",
        b"<!DOCTYPE Set SYSTEM 'x' [ <!ENTITY a 'b'> ] >\n<!-- --><Set>",
        b"<!DOCTYPE Set SYSTEM 'a[>b' [ <!ENTITY a ']>'> <!-- ]> isn't --> <?do ']' ?> ]><Set>",
        b"""<!DOCTYPE Set [ <!ENTITY a "]><Other>'"> ]><Set>""",
        b"<x:Set></x:Set>",
        b"\n<?xml version='1.0'?><Set>",
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
        (b"<Settings>", "Settings"),
        (b"<Other><Set>", "Other"),
        (b"<!-- <Set> -->", None),
        (b"<!-- <Set>", None),
        (b"<!DOCTYPE Set [ <Set>", None),
        (b"text <Set>", None),
        (b"", None),
        (b"<Set", None),
        (b"< Set>", None),
        ("<Set>".encode("utf-16"), None),
    ],
)
def test_wrong_or_missing_root_element_is_rejected(head: bytes, root: str | None) -> None:
    assert parse_root_name(head) == root
    assert verify([compress(head)]) == "wrong-root"


def test_message_names_the_root_element() -> None:
    download_verifier = DownloadVerifier("Set")
    download_verifier.feed(compress(b"<html><body>Sorry</body></html>"))
    with pytest.raises(BadFileError, match="should be <Set>, it is <html>"):
        download_verifier.finish(None)


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
    download_verifier = DownloadVerifier("Set")
    tracemalloc.start()
    download_verifier.feed(data)
    download_verifier.finish(None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20
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
