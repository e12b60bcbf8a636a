"""Asking a server: whatever it does, what arrives is what it has, or an error that says why."""

from __future__ import annotations

import gzip
import itertools
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bioshards.corpus.download.http_client import Connection, NotFoundError, RefusedError, UnreachableError
from bioshards.corpus.storage.retry import RetryPolicy
from tests.support.servers.fake_server import (
    ConnectionReset,
    EndlessBody,
    FakeServer,
    Fault,
    FunctionCall,
    NoResponse,
    RangeIgnored,
    Redirect,
    Republication,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)
from tests.support.servers.http_connections import (
    FAST_RETRY,
    CannedServer,
    http_response,
    make_server,
    open_connection,
)
from tests.support.servers.server_pages import publish_file

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

LETTERS = bytes(range(256)) * 4


def arrived(connection: Connection, url: str, start: int = 0) -> bytes:
    """What has come once the stream has ended; bytes before ``start`` are there already."""
    held = bytearray(LETTERS[:start])
    for offset, block in connection.stream(url, start):
        if offset != len(held):
            assert offset == 0, "only ever on, or from the beginning"
            held.clear()
        held += block
    return bytes(held)


def test_a_server_that_never_sends_more_than_the_same_beginning_is_given_up() -> None:
    """It knows no ranges and always breaks off: that it sends something is no progress."""
    with (
        CannedServer(http_response("200 OK", LETTERS[:100], length=1024)) as server,
        open_connection(server.url) as connection,
    ):
        with pytest.raises(UnreachableError, match="100 bytes read, 924 more expected"):
            arrived(connection, server.url)
        assert len(server.request_heads) == FAST_RETRY.max_attempts


def test_a_server_that_has_no_range_not_even_all_of_it_is_given_up() -> None:
    with (
        CannedServer(http_response("416 Range Not Satisfiable")) as server,
        open_connection(server.url) as connection,
    ):
        with pytest.raises(UnreachableError, match="does not have this range"):
            arrived(connection, server.url, 100)
        assert len(server.request_heads) == FAST_RETRY.max_attempts


def test_what_is_there_whole_already_is_not_sent_again() -> None:
    refusal = http_response("416 Range Not Satisfiable\r\nContent-Range: bytes */1024")
    with (
        CannedServer(refusal, http_response("200 OK", LETTERS)) as server,
        open_connection(server.url) as connection,
    ):
        assert list(connection.stream(server.url, 1024)) == []
        assert len(server.request_heads) == 1


def test_a_range_of_another_version_is_not_appended() -> None:
    """A server that does not know If-Range answers 206, but says by the ETag that the file is another."""
    other = LETTERS[::-1]
    answers = (
        http_response('200 OK\r\nETag: "a"', LETTERS[:100], length=1024),
        http_response('206 Partial Content\r\nETag: "b"\r\nContent-Range: bytes 100-1023/1024', other[100:]),
        http_response('200 OK\r\nETag: "b"', other),
    )
    with CannedServer(*answers) as server, open_connection(server.url) as connection:
        assert arrived(connection, server.url) == other
        assert 'If-Range: "a"' in server.request_heads[1]


@pytest.mark.parametrize("location", ["http://[", "http://[::1", "//[x]/", "http://127.0.0.1:x/"])
def test_a_redirect_to_no_address_is_refused(location: str) -> None:
    with (
        CannedServer(http_response(f"302 Found\r\nLocation: {location}")) as server,
        open_connection(server.url) as connection,
    ):
        with pytest.raises(RefusedError, match="redirected"):
            connection.read(server.url, 100)
        assert len(server.request_heads) == 1


def test_the_body_of_a_redirect_is_not_read() -> None:
    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 302 Found\r\nLocation: /there\r\nConnection: close\r\n\r\n"
        for _ in range(300):
            yield bytes(1 << 20)
            sent.append(1)

    sent: list[int] = []
    with (
        CannedServer(endless(), http_response("200 OK", b"here")) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"here"
        assert len(sent) < 100


@pytest.mark.parametrize(
    "headers",
    [
        "Retry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        f"Retry-After: Mon, 01 Jan {'9' * 5000} 00:00:00 GMT",
        "Retry-After: Mon, 01 Jan 0001 00:00:00 -0000",
        "Retry-After: Mon, 01 Jan 2020 00:00:00 +9999999999999999999",
        "Retry-After: \xb2",
    ],
)
def test_an_absurd_pause_is_no_pause(headers: str) -> None:
    with (
        CannedServer(http_response(f"503 Busy\r\n{headers}"), http_response("200 OK", b"here")) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"here"


@pytest.mark.parametrize("length", ["\xb2", "9" * 5000, "-1", "many", ""])
def test_an_absurd_length_is_no_length(length: str) -> None:
    with (
        CannedServer(http_response("200 OK", b"here", length)) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"here"


def test_an_absurd_range_is_another_range() -> None:
    absurd = http_response(f"206 Partial Content\r\nContent-Range: bytes {'1' * 5000}-2/3", b"x")
    with (
        CannedServer(absurd, http_response("200 OK", LETTERS)) as server,
        open_connection(server.url) as connection,
    ):
        assert arrived(connection, server.url, 100) == LETTERS


# What is asked, and over what.


@pytest.fixture
def served(tmp_path: Path) -> Iterator[FakeServer]:
    """A server with a small and a large file."""
    (tmp_path / "small.txt").write_bytes(b"small")
    (tmp_path / "large.gz").write_bytes(LARGE)
    with FakeServer(tmp_path) as server:
        yield server


LARGE = random.Random(5).randbytes(300_000)


def test_many_small_files_come_over_one_connection(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        for _ in range(50):
            assert connection.read(f"{served.url}small.txt", 100).body == b"small"
        assert b"".join(block for _, block in connection.stream(f"{served.url}large.gz", 0)) == LARGE
    assert served.connections == 1
    assert len(served.requests) == 51


def test_who_asks_is_said_and_files_are_asked_for_as_they_are(served: FakeServer) -> None:
    with replace(
        make_server(served.url), user_agent="bioshards/9 (mail@example.org)"
    ).connect() as connection:
        connection.read(f"{served.url}small.txt", 100)
    [request] = served.requests
    assert request.headers["user-agent"] == "bioshards/9 (mail@example.org)"
    assert request.headers["accept-encoding"] == "identity"
    assert request.range == ""


def test_headers_come_with_the_body(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        said = connection.read(f"{served.url}small.txt", 100)
    assert said.etag
    assert '"' not in said.etag
    assert said.last_modified.endswith("GMT")
    with (
        CannedServer(http_response('200 OK\r\nETag: W/"weak"', b"x")) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100) == (b"x", "weak", "")


def test_the_connection_and_the_place_are_given_back(served: FakeServer) -> None:
    one = make_server(served.url, connections=1)
    for _ in range(2):
        with one.connect() as connection:
            connection.read(f"{served.url}small.txt", 100)
    assert served.open_connections == 0
    assert served.connections == 2


def test_a_proxy_in_the_environment_does_not_stand_between_tests_and_their_servers(
    served: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with open_connection(served.url) as connection:
        assert connection.read(f"{served.url}small.txt", 100).body == b"small"


def test_a_users_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with CannedServer(http_response("200 OK", b"by proxy")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with open_connection("http://files.example.org/") as connection:
            assert connection.read("http://files.example.org/a", 100).body == b"by proxy"
        assert proxy.request_heads[0].startswith("GET http://files.example.org/a HTTP/1.1")


# Faults that pass.

PASSING: list[Fault] = [
    ServiceUnavailable(),
    ServiceUnavailable("0"),
    ServiceUnavailable(status=429),
    ServiceUnavailable(status=500),
    ServiceUnavailable(status=502),
    ServiceUnavailable(status=504),
    ServiceUnavailable(status=408),
    ServiceUnavailable(formatdate(0, usegmt=True)),
    ServiceUnavailable("soon"),
    NoResponse(),
    ConnectionReset(0),
    ConnectionReset(3),
    TruncatedBody(0),
    TruncatedBody(3),
    Stall(0, 2),
    Stall(3, 2),
]


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_what_passes_is_waited_out(served: FakeServer, fault: Fault) -> None:
    served.schedule_fault("*", fault)
    with open_connection(served.url) as connection:
        assert connection.read(f"{served.url}small.txt", 100).body == b"small"
        served.schedule_fault("*", fault)
        assert b"".join(block for _, block in connection.stream(f"{served.url}large.gz", 0)) == LARGE
    assert served.pending_faults == []
    assert len(served.requests) == 4


@pytest.mark.parametrize("fault", PASSING, ids=repr)
def test_what_does_not_pass_is_given_up(served: FakeServer, fault: Fault) -> None:
    served.schedule_fault("*", fault, times=None)
    with open_connection(served.url, replace(FAST_RETRY, read_timeout=0.1, max_attempts=3)) as connection:
        url = f"{served.url}small.txt"
        with pytest.raises(UnreachableError, match=f"{url} cannot be read: .*tried 3 times"):
            connection.read(url, 100)
        assert len(served.requests) == 3


SIZES = st.integers(0, len(LARGE))
RECOVERABLE = st.one_of(
    SIZES.map(ConnectionReset),
    SIZES.map(TruncatedBody),
    SIZES.map(lambda size: Stall(size, 1)),
    st.sampled_from([ServiceUnavailable(), ServiceUnavailable("0"), NoResponse(), RangeIgnored()]),
)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults=st.lists(RECOVERABLE, max_size=5), start=st.one_of(st.just(0), SIZES), new=st.booleans())
def test_whatever_passes_the_bytes_are_the_files(
    served: FakeServer, faults: list[Fault], start: int, new: bool
) -> None:
    """If it is published anew meanwhile, they are the old one's or the new one's, never a mixture."""
    path = f"{len(served.requests)}.gz"
    publish_file(served.root / path, b"\x1f\x8b" + LARGE)
    other = b"\x1f\x8b" + LARGE[::-1]
    for number, fault in enumerate(faults):
        served.schedule_fault(path, fault)
        if new and number == 1 and not start:  # of bytes from before only their writer knows the version
            served.schedule_fault(path, Republication(path, other, md5=False))
    start = min(start, len(LARGE))
    held = bytearray((b"\x1f\x8b" + LARGE)[:start])
    with open_connection(served.url, replace(FAST_RETRY, read_timeout=0.15, max_attempts=8)) as connection:
        for offset, block in connection.stream(served.url + path, start):
            if offset != len(held):
                assert offset == 0
                held.clear()
            held += block
    assert bytes(held) in ((b"\x1f\x8b" + LARGE), other)
    assert new or bytes(held) != other


def test_it_goes_on_as_long_as_there_is_progress(served: FakeServer) -> None:
    """More faults than tries, each after some bytes; and no byte is sent twice."""
    served.schedule_fault("large.gz", TruncatedBody(20_000), times=12)
    with open_connection(served.url) as connection:
        blocks = list(connection.stream(f"{served.url}large.gz", 0))
    assert b"".join(block for _, block in blocks) == LARGE
    assert [at for at, _ in blocks] == sorted(at for at, _ in blocks)
    assert served.bytes_sent_for("large.gz") == len(LARGE)
    assert len(served.requests) == 13


def test_a_body_that_comes_too_slowly_is_broken_off_and_gone_on_with(served: FakeServer) -> None:
    served.schedule_fault("large.gz", SlowBody(5000))
    with open_connection(
        served.url, replace(FAST_RETRY, read_timeout=0.3, min_bytes_per_second=50_000)
    ) as connection:
        assert b"".join(block for _, block in connection.stream(f"{served.url}large.gz", 0)) == LARGE
    first, second = served.requests
    assert first.bytes_sent < 10_000
    assert second.range.startswith("bytes=")


def test_a_small_file_that_comes_too_slowly_is_given_up(served: FakeServer) -> None:
    served.schedule_fault("large.gz", SlowBody(5000), times=None)
    with (
        open_connection(
            served.url, replace(FAST_RETRY, read_timeout=0.2, min_bytes_per_second=50_000, max_attempts=2)
        ) as connection,
        pytest.raises(UnreachableError, match="bytes a second"),
    ):
        connection.read(f"{served.url}large.gz", 1 << 20)


def test_a_slow_body_that_is_fast_enough_is_waited_for(served: FakeServer) -> None:
    served.schedule_fault("large.gz", SlowBody(500_000))
    with open_connection(
        served.url, replace(FAST_RETRY, read_timeout=0.1, min_bytes_per_second=1000)
    ) as connection:
        assert connection.read(f"{served.url}large.gz", 1 << 20).body == LARGE
    assert len(served.requests) == 1


# Pauses that a server asks for.


@pytest.mark.parametrize("retry_after", ["1", lambda: formatdate(time.time() + 2, usegmt=True)])
def test_a_pause_is_kept_by_everybody(served: FakeServer, retry_after: str | Callable[[], str]) -> None:
    said = retry_after if isinstance(retry_after, str) else retry_after()
    served.schedule_fault("small.txt", ServiceUnavailable(said))
    times = []

    def read(path: str) -> None:
        with open_connection(served.url) as connection:
            assert connection.read(f"{served.url}{path}", 1 << 20)
            times.append(time.monotonic())

    threads = [threading.Thread(target=read, args=(path,)) for path in ("small.txt", "large.gz")]
    threads[0].start()
    while not served.requests or served.requests[0].status != 503:
        time.sleep(0.005)
    began = time.monotonic()
    threads[1].start()
    for thread in threads:
        thread.join()
    assert all(at - began < 4 for at in times)
    refused, *others = (request.received_at for request in served.requests)
    assert len(others) == 2
    assert min(others) - refused > 0.5


def test_an_overload_without_a_pause_holds_everybody_back_as_long_as_the_first(served: FakeServer) -> None:
    served.schedule_fault("small.txt", ServiceUnavailable(status=429))
    server = make_server(served.url, replace(FAST_RETRY, initial_backoff=0.4, max_backoff=0.4))
    with server.connect() as connection:
        connection.read(f"{served.url}small.txt", 100)
    first, second = served.requests
    assert second.received_at - first.received_at > 0.39


@pytest.mark.parametrize(
    "retry_after",
    ["3601", "999999999", formatdate(4_000_000_000, usegmt=True)],
    ids=["hour", "years", "date"],
)
def test_a_pause_of_more_than_an_hour_is_not_waited_for(served: FakeServer, retry_after: str) -> None:
    served.schedule_fault("*", ServiceUnavailable(retry_after))
    with (
        open_connection(served.url) as connection,
        pytest.raises(UnreachableError, match=r"503.*asks to retry after \d+ seconds"),
    ):
        connection.read(f"{served.url}small.txt", 100)
    assert len(served.requests) == 1


# What does not pass.


def test_a_file_that_is_not_there_is_not_asked_for_again(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        with pytest.raises(
            NotFoundError, match=r"nothing\.txt is not there: the server answers 404 Not Found"
        ):
            connection.read(f"{served.url}nothing.txt", 100)
        with pytest.raises(NotFoundError):
            list(connection.stream(f"{served.url}nothing.txt", 0))
        served.schedule_fault("*", ServiceUnavailable(status=410))
        with pytest.raises(NotFoundError):
            connection.read(f"{served.url}small.txt", 100)
    assert len(served.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 405, 451, 501])
def test_a_refusal_is_not_asked_again(served: FakeServer, status: int) -> None:
    served.schedule_fault("*", ServiceUnavailable(status=status), times=None)
    with (
        open_connection(served.url) as connection,
        pytest.raises(RefusedError, match=f"is refused: the server answers {status}"),
    ):
        connection.read(f"{served.url}small.txt", 100)
    assert len(served.requests) == 1


def test_a_body_that_is_larger_than_it_may_be_is_not_read_to_its_end(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        assert connection.read(f"{served.url}large.gz", len(LARGE)).body == LARGE
        with pytest.raises(RefusedError, match="has more than 299,999 bytes"):
            connection.read(f"{served.url}large.gz", len(LARGE) - 1)
        served.schedule_fault("small.txt", EndlessBody(b"again and again "))
        with pytest.raises(RefusedError, match="more than 1,000"):
            connection.read(f"{served.url}small.txt", 1000)


# Redirects.


def test_a_redirect_on_the_same_host_is_followed(served: FakeServer) -> None:
    served.schedule_fault("small.txt", Redirect("/large.gz"))
    served.schedule_fault("small.txt", Redirect(f"{served.url}large.gz"))
    with open_connection(served.url) as connection:
        for _ in range(2):
            assert connection.read(f"{served.url}small.txt", 1 << 20).body == LARGE


@pytest.mark.parametrize(
    "location",
    [
        "http://files.example.org/large.gz",
        "//files.example.org/large.gz",
        "https://127.0.0.1:PORT/large.gz",
        "http://127.0.0.1:1PORT/large.gz",
        "http://127.0.0.1/large.gz",
        "http://localhost:PORT/large.gz",
        "http://127.0.0.1:PORT@example.org/large.gz",
        "http://someone@127.0.0.1:PORT/large.gz",
        "file:///etc/hosts",
        "data:text/plain,here",
    ],
)
def test_a_redirect_to_another_host_is_refused(served: FakeServer, location: str) -> None:
    served.schedule_fault("small.txt", Redirect(location.replace("PORT", str(served.server_address[1]))))
    with (
        open_connection(served.url) as connection,
        pytest.raises(RefusedError, match="redirected to another host"),
    ):
        connection.read(f"{served.url}small.txt", 1 << 20)
    assert len(served.requests) == 1


@pytest.mark.parametrize("location", ["/small.txt", ""])
def test_a_redirect_without_end_is_refused(served: FakeServer, location: str) -> None:
    served.schedule_fault("small.txt", Redirect(location), times=None)
    with open_connection(served.url) as connection, pytest.raises(RefusedError, match="redirected too often"):
        connection.read(f"{served.url}small.txt", 100)
    assert len(served.requests) == 4


# Ranges.


def test_a_range_is_asked_for_and_a_server_that_knows_none_begins_again(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        offsets = [at for at, _ in connection.stream(f"{served.url}large.gz", 1000)]
        assert offsets[0] == 1000
        served.schedule_fault("large.gz", RangeIgnored())
        blocks = list(connection.stream(f"{served.url}large.gz", 1000))
        assert blocks[0][0] == 0
        assert b"".join(block for _, block in blocks) == LARGE
    assert [request.range for request in served.requests] == ["bytes=1000-"] * 2


def test_a_file_that_changes_between_two_ranges_is_begun_again(served: FakeServer) -> None:
    other = b"\x1f\x8b" + LARGE[::-1]
    served.schedule_fault("large.gz", TruncatedBody(100_000))
    served.schedule_fault("large.gz", FunctionCall(lambda: publish_file(served.root / "large.gz", other)))
    with open_connection(served.url) as connection:
        blocks = list(connection.stream(f"{served.url}large.gz", 0))
    begun = [number for number, (at, _) in enumerate(blocks) if at == 0][-1]
    assert begun > 0
    assert b"".join(block for _, block in blocks[begun:]) == other
    assert [request.status for request in served.requests] == [200, 200]
    assert "if-range" in served.requests[1].headers


def test_more_than_there_is_is_begun_again(served: FakeServer) -> None:
    with open_connection(served.url) as connection:
        blocks = list(connection.stream(f"{served.url}large.gz", len(LARGE) + 1))
        assert blocks[0][0] == 0
        assert b"".join(block for _, block in blocks) == LARGE
        assert list(connection.stream(f"{served.url}large.gz", len(LARGE))) == []
    assert [request.status for request in served.requests] == [416, 200, 416]


@pytest.mark.parametrize(
    "given", ["bytes 99-1023/1024", "bytes 101-1023/1024", "bytes */1024", "lines 100-200/3", ""]
)
def test_another_range_than_was_asked_for_is_asked_for_again(given: str) -> None:
    wrong = http_response(f"206 Partial Content\r\nContent-Range: {given}", LETTERS[99:])
    right = http_response("206 Partial Content\r\nContent-Range: bytes 100-1023/1024", LETTERS[100:])
    with CannedServer(wrong, right) as server, open_connection(server.url) as connection:
        assert arrived(connection, server.url, 100) == LETTERS


def test_a_range_that_ends_early_is_gone_on_with() -> None:
    """A server may give less than was asked for."""
    some = http_response("206 Partial Content\r\nContent-Range: bytes 100-199/1024", LETTERS[100:200])
    rest = http_response("206 Partial Content\r\nContent-Range: bytes 200-1023/1024", LETTERS[200:])
    with CannedServer(some, rest) as server, open_connection(server.url) as connection:
        assert arrived(connection, server.url, 100) == LETTERS
        assert "Range: bytes=200-" in server.request_heads[1]


def test_a_range_that_is_longer_than_it_says_is_begun_again() -> None:
    longer = http_response(
        "206 Partial Content\r\nContent-Range: bytes 100-1023/1024", LETTERS[100:] + b"more"
    )
    answers = (longer, http_response("416 Range Not Satisfiable"), http_response("200 OK", LETTERS))
    with CannedServer(*answers) as server, open_connection(server.url) as connection:
        assert arrived(connection, server.url, 100) == LETTERS


# Bodies without a length.


def test_a_body_in_chunks() -> None:
    chunks = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;note=1\r\nde\r\n0\r\n\r\n"
    with CannedServer(chunks) as server, open_connection(server.url) as connection:
        assert connection.read(server.url, 100).body == b"abcde"
        assert b"".join(block for _, block in connection.stream(server.url, 0)) == b"abcde"


@pytest.mark.parametrize(
    "cut", [b"3\r\nab", b"3\r\nabc\r\n", b"3\r\nabc", b"x\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc"]
)
def test_a_body_in_chunks_that_is_cut_short_or_damaged_is_asked_for_again(cut: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    with (
        CannedServer(head + cut, head + b"3\r\nabc\r\n0\r\n\r\n") as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"abc"
        assert len(server.request_heads) == 2


def test_a_body_that_ends_with_its_connection() -> None:
    with (
        CannedServer(b"HTTP/1.0 200 OK\r\n\r\n" + LETTERS) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 2000).body == LETTERS


def test_a_body_is_not_unpacked() -> None:
    packed = gzip.compress(b"words")
    head = "200 OK\r\nContent-Encoding: x-gzip"
    with CannedServer(http_response(head, packed)) as server, open_connection(server.url) as connection:
        assert connection.read(server.url, 100).body == packed


@pytest.mark.parametrize(
    "noise", [b"\0" * 100, b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 abc OK\r\n\r\n", b"SSH-2.0-x\r\n"]
)
def test_an_answer_that_is_no_http_is_asked_for_again(noise: bytes) -> None:
    with (
        CannedServer(noise, http_response("200 OK", b"here")) as server,
        open_connection(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"here"


# No network.


def test_nobody_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/"
    began = time.monotonic()
    with open_connection(url) as connection, pytest.raises(UnreachableError, match=r"refused.*tried 4 times"):
        connection.read(url, 100)
    assert time.monotonic() - began < 2


def test_nobody_has_that_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    url = "http://files.example.org/"
    with (
        open_connection(url) as connection,
        pytest.raises(UnreachableError, match="Name or service not known"),
    ):
        connection.read(url, 100)


def test_pauses_grow_to_the_longest(served: FakeServer) -> None:
    served.schedule_fault("*", NoResponse(), times=None)
    with (
        open_connection(
            served.url, RetryPolicy(1, 1, max_attempts=6, initial_backoff=0.04, max_backoff=0.1)
        ) as connection,
        pytest.raises(UnreachableError),
    ):
        connection.read(f"{served.url}small.txt", 100)
    at = [request.received_at for request in served.requests]
    pauses = [after - before for before, after in itertools.pairwise(at)]
    for pause, planned in zip(pauses, [0.04, 0.08, 0.1, 0.1, 0.1], strict=True):
        assert planned * 0.5 <= pause < planned * 1.5 + 0.1
