"""The HTTP client: retries, ranges, redirects, pauses and malformed responses."""

from __future__ import annotations

import gzip
import random
import re
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

from bioshards.corpus import progress_notes
from bioshards.corpus.download import http_client, min_throughput, rate_limit
from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    NotFoundError,
    OutageError,
    RefusedError,
    UnreachableError,
    resolve_redirect,
)
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.storage.retry import RetryPolicy
from tests.support.hypothesis_profiles import examples
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.http_connections import (
    FAST_RETRY,
    CannedServer,
    Clock,
    http_response,
    make_server,
    open_connection,
)
from tests.support.servers.server_faults import (
    ConnectionReset,
    EndlessBody,
    Fault,
    NoResponse,
    RangeIgnored,
    Redirect,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

LETTERS = bytes(range(256)) * 4
LARGE = random.Random(5).randbytes(300_000)
HERE = http_response("200 OK", b"here")
WHOLE = http_response("200 OK", LETTERS)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    for module in (http_client, min_throughput, rate_limit):
        monkeypatch.setattr(module, "time", fake_clock)
    return fake_clock


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    """A server with a small and a large file."""
    (tmp_path / "small.txt").write_bytes(b"small")
    (tmp_path / "large.gz").write_bytes(LARGE)
    with FakeServer(tmp_path) as server:
        yield server


@pytest.fixture
def connection(server: FakeServer) -> Iterator[Connection]:
    with open_connection(server.url) as connection:
        yield connection


def stream(connection: Connection, url: str, start: int = 0, content: bytes = LARGE) -> bytes:
    """Return the bytes of the file after reading the stream from ``start``."""
    received = bytearray(content[:start])
    for offset, block in connection.stream(url, start):
        if offset != len(received):
            assert offset == 0, "only ever on, or from the beginning"
            received.clear()
        received += block
    return bytes(received)


Answer = bytes | Iterator[bytes] | Callable[[str], bytes]


def read_answers(*answers: Answer, policy: RetryPolicy = FAST_RETRY) -> tuple[bytes, int]:
    """Return the body that a server of these answers gives, and the number of requests."""
    with CannedServer(*answers) as server, open_connection(server.url, policy) as connection:
        return connection.read(server.url, 1 << 20).body, len(server.request_heads)


def stream_answers(*answers: Answer, start: int = 0) -> tuple[bytes, list[str]]:
    """Return the bytes that a server of these answers gives from an offset, and the heads of the requests."""
    with CannedServer(*answers) as server, open_connection(server.url) as connection:
        return stream(connection, server.url, start, LETTERS), server.request_heads


# Ranges.


def send_range(content_range: str, body: bytes, length: int | None = None) -> bytes:
    return http_response(f"206 Partial Content\r\nContent-Range: {content_range}", body, length)


@pytest.mark.parametrize(
    ("answer", "start", "message"),
    [
        # The server ignores ranges, so each attempt repeats the same bytes and makes no progress.
        (http_response("200 OK", LETTERS[:100], length=1024), 0, "100 bytes read, 924 more expected"),
        (http_response("416 Range Not Satisfiable"), 100, "does not have this range"),
    ],
)
def test_answers_without_progress_fail(answer: bytes, start: int, message: str) -> None:
    with CannedServer(answer) as server, open_connection(server.url) as connection:
        with pytest.raises(UnreachableError, match=message):
            stream(connection, server.url, start, LETTERS)
        assert len(server.request_heads) == FAST_RETRY.max_attempts


@pytest.mark.parametrize(
    "wrong_range",
    [
        http_response("416 Range Not Satisfiable"),
        http_response("416 Range Not Satisfiable\r\nContent-Range: bytes */99"),
        send_range("bytes 0-1023/1024", LETTERS),
        send_range("bytes 100-1023/500", LETTERS[100:]),
        send_range("bytes 100-1999/2000", b""),
        send_range("bytes 100-1999/2000", b"", length=1900),
        http_response("206 Partial Content", LETTERS[100:]),
    ],
)
def test_wrong_answers_to_ranges_lead_to_a_plain_request(wrong_range: bytes) -> None:
    """Only a request without a range has the file."""

    def answer(head: str) -> bytes:
        return wrong_range if "Range:" in head else WHOLE

    content, heads = stream_answers(answer, start=100)
    assert content == LETTERS
    assert "Range:" not in heads[-1]


@pytest.mark.parametrize(
    "content_range",
    [
        "bytes 99-1023/1024",
        "bytes 101-1023/1024",
        "bytes */1024",
        "lines 100-200/3",
        "",
        f"bytes {'1' * 5000}-2/3",
    ],
)
def test_response_with_another_range_is_retried(content_range: str) -> None:
    requested_range = send_range("bytes 100-1023/1024", LETTERS[100:])
    answers = send_range(content_range, LETTERS[99:]), requested_range
    assert stream_answers(*answers, start=100)[0] == LETTERS


def test_partial_range_is_continued_and_one_that_is_too_long_begun_again() -> None:
    first, second = LETTERS[100:200], LETTERS[200:]
    answers = send_range("bytes 100-199/1024", first), send_range("bytes 200-1023/1024", second)
    content, heads = stream_answers(*answers, start=100)
    assert content == LETTERS
    assert "Range: bytes=200-" in heads[1]
    longer = send_range("bytes 100-1023/1024", LETTERS[100:] + b"more")
    content, _ = stream_answers(longer, http_response("416 Range Not Satisfiable"), WHOLE, start=100)
    assert content == LETTERS


def test_stream_starts_over_when_the_server_has_no_such_range(
    server: FakeServer, connection: Connection
) -> None:
    url = f"{server.url}large.gz"
    assert next(iter(connection.stream(url, 1000)))[0] == 1000
    server.schedule_fault("large.gz", RangeIgnored())
    for start in (1000, len(LARGE) + 1):
        blocks = list(connection.stream(url, start))
        assert blocks[0][0] == 0
        assert b"".join(block for _, block in blocks) == LARGE
    assert list(connection.stream(url, len(LARGE))) == []
    assert [request.status for request in server.requests][-3:] == [416, 200, 416]


# Requests and connections.


def test_requests_reuse_one_connection(server: FakeServer, connection: Connection) -> None:
    for _ in range(50):
        assert connection.read(f"{server.url}small.txt", 100).body == b"small"
    assert stream(connection, f"{server.url}large.gz") == LARGE
    assert server.connections == 1
    assert len(server.requests) == 51


def test_request_has_user_agent_and_identity_encoding(server: FakeServer) -> None:
    agent = "bioshards/9 (mail@example.org)"
    with replace(make_server(server.url), user_agent=agent).connect() as connection:
        connection.read(f"{server.url}small.txt", 100)
    [request] = server.requests
    assert request.headers["user-agent"] == agent
    assert request.headers["accept-encoding"] == "identity"
    assert request.range == ""


def test_response_has_an_etag(server: FakeServer, connection: Connection) -> None:
    response = connection.read(f"{server.url}small.txt", 100)
    assert response.etag
    assert '"' not in response.etag
    with (
        CannedServer(http_response('200 OK\r\nETag: W/"weak"', b"x")) as canned_server,
        open_connection(canned_server.url) as other_connection,
    ):
        assert other_connection.read(canned_server.url, 100) == (b"x", "weak")


def test_connection_and_slot_are_released(server: FakeServer) -> None:
    single_slot = make_server(server.url, connections=1)
    for _ in range(2):
        with single_slot.connect() as connection:
            connection.read(f"{server.url}small.txt", 100)
    assert server.open_connections == 0
    assert server.connections == 2


def test_proxy_of_environment_is_used_but_for_local_servers(
    server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with CannedServer(http_response("200 OK", b"by proxy")) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        with open_connection("http://files.example.org/") as connection:
            assert connection.read("http://files.example.org/a", 100).body == b"by proxy"
        assert proxy.request_heads[0].startswith("GET http://files.example.org/a HTTP/1.1")
    with open_connection(server.url) as connection:
        assert connection.read(f"{server.url}small.txt", 100).body == b"small"


# Transient faults.

TRANSIENT_FAULTS: list[Fault] = [
    ServiceUnavailable(),
    ServiceUnavailable("0"),
    *(ServiceUnavailable(status=status) for status in (408, 429, 500, 502, 504)),
    ServiceUnavailable(formatdate(0, usegmt=True)),
    ServiceUnavailable("soon"),
    NoResponse(),
    ConnectionReset(0),
    ConnectionReset(3),
    TruncatedBody(0),
    TruncatedBody(3),
    Stall(0, 60),
    Stall(3, 60),
]


@pytest.mark.parametrize("fault", TRANSIENT_FAULTS, ids=repr)
def test_transient_fault_is_retried_up_to_max_attempts(server: FakeServer, fault: Fault) -> None:
    url = f"{server.url}small.txt"
    stalls = isinstance(fault, Stall)
    policy = replace(FAST_RETRY, read_timeout=0.5 if stalls else 60, max_attempts=3)
    with open_connection(server.url, policy) as connection:
        server.schedule_fault("*", fault)
        assert connection.read(url, 100).body == b"small"
        server.schedule_fault("*", fault)
        assert stream(connection, f"{server.url}large.gz") == LARGE
        assert server.pending_faults == []
        # Where the client gives up by time, a busy machine adds attempts or ends one before it is recorded.
        assert len(server.requests) == 4 or stalls
        server.schedule_fault("*", fault, times=None)
        with pytest.raises(UnreachableError, match=f"{url} cannot be read: .*tried 3 times"):
            connection.read(url, 100)
        assert len(server.requests) == 7 or stalls


SIZES = st.integers(0, len(LARGE))
RECOVERABLE = st.one_of(
    SIZES.map(ConnectionReset),
    SIZES.map(TruncatedBody),
    SIZES.map(lambda size: Stall(size, 60)),
    st.sampled_from([ServiceUnavailable(), ServiceUnavailable("0"), NoResponse(), RangeIgnored()]),
)


@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(faults=st.lists(RECOVERABLE, max_size=5), start=st.one_of(st.just(0), SIZES))
def test_download_survives_any_sequence_of_transient_faults(
    server: FakeServer, faults: list[Fault], start: int
) -> None:
    for fault in faults:
        server.schedule_fault("large.gz", fault)
    with open_connection(server.url, replace(FAST_RETRY, read_timeout=0.15, max_attempts=20)) as connection:
        received = stream(connection, f"{server.url}large.gz", start)
    server.clear_faults()
    assert received == LARGE


def test_resets_after_a_few_bytes_are_no_progress(server: FakeServer, connection: Connection) -> None:
    server.schedule_fault("large.gz", ConnectionReset(20), times=40)
    with pytest.raises(UnreachableError, match=f"tried {FAST_RETRY.max_attempts} times in a row"):
        stream(connection, f"{server.url}large.gz")
    assert len(server.requests) == FAST_RETRY.max_attempts


def trickle(head: bytes) -> Iterator[bytes]:
    """Send a beginning, and then a byte now and then for seconds."""
    yield head
    for _ in range(150):
        time.sleep(0.02)
        yield b"0"


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "message"),
    [
        (b"HTTP/1.1 200 O", "header has no end"),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", "header has no end"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", "bytes a second"),
        (CHUNKED, "bytes a second"),
        (CHUNKED + b"1;note=", "bytes a second"),
        (CHUNKED + b"400\r\n", "bytes a second"),
    ],
)
def test_response_that_trickles_is_given_up(beginning: bytes, message: str) -> None:
    """Each byte comes long before the socket's time-out."""
    policy = replace(FAST_RETRY, read_timeout=0.4, max_attempts=2)
    with pytest.raises(UnreachableError, match=rf"{message}.*tried 2 times"):
        read_answers(trickle(beginning), trickle(beginning), policy=policy)


def serve_slowly(clock: Clock, size: int, part: int, seconds: float) -> Iterator[Iterator[bytes]]:
    """Answer with ranges of a file of zeros; each breaks off after a part, and takes its time."""

    def send(start: int) -> Iterator[bytes]:
        clock.now += seconds
        status = f"206 Partial Content\r\nContent-Range: bytes {start}-{size - 1}/{size}"
        yield http_response(status if start else "200 OK", bytes(min(part, size - start)), size - start)

    return map(send, range(0, size, part))


def test_server_that_brings_next_to_nothing_is_given_up(clock: Clock) -> None:
    """Every attempt brings bytes, and few of them for its time."""
    with (
        CannedServer(*serve_slowly(clock, size=1_000_000, part=5000, seconds=50)) as server,
        open_connection(server.url, FAST_RETRY) as connection,
    ):
        with pytest.raises(UnreachableError, match=r"5000 bytes read.*tried 4 times in a row"):
            list(connection.stream(server.url, 0))
        assert len(server.request_heads) == 4


def test_large_file_on_a_slow_line_arrives(clock: Clock) -> None:
    """It takes hours, with a break every half minute."""
    with (
        CannedServer(*serve_slowly(clock, size=6_000_000, part=60_000, seconds=30)) as server,
        open_connection(server.url, FAST_RETRY) as connection,
    ):
        assert sum(len(block) for _, block in connection.stream(server.url, 0)) == 6_000_000
        assert len(server.request_heads) == 100


@pytest.fixture
def notes_folder(tmp_path: Path) -> Iterator[None]:
    """Let this process write its note, as a worker does."""
    folder = tmp_path / "notes"
    folder.mkdir(mode=0o700)
    with progress_notes.write_notes(str(folder)):
        yield


@pytest.mark.usefixtures("notes_folder")
def test_long_waits_are_reported_and_noted_with_their_reasons(server: FakeServer, clock: Clock) -> None:
    url = f"{server.url}small.txt"
    server.schedule_fault("*", ServiceUnavailable("30"))
    server.schedule_fault("*", NoResponse(), times=2)
    reports: list[str] = []
    policy = replace(FAST_RETRY, initial_backoff=20, max_backoff=20)
    with replace(make_server(server.url, policy), report_wait=reports.append).connect() as connection:
        connection.read(url, 100)
    first = f"{url}: the server answers 503 Service Unavailable; attempt 2 of 4 in 30 seconds"
    assert reports[0] == first
    assert re.search(r"Remote end closed.*; attempt 4 of 4 in \d+ seconds", reports[2])
    server.schedule_fault("*", ServiceUnavailable("30"))
    with make_server(server.url).connect() as connection:
        connection.read(url, 100)
    assert [note.wait for note in progress_notes.read_notes() or []] == [first]


@pytest.mark.usefixtures("notes_folder")
def test_short_waits_are_not_reported(server: FakeServer, connection: Connection) -> None:
    server.schedule_fault("*", NoResponse(), times=3)
    connection.read(f"{server.url}small.txt", 100)
    assert progress_notes.read_notes() == []


def test_slow_body_is_aborted_and_resumed(server: FakeServer) -> None:
    policy = replace(FAST_RETRY, read_timeout=0.3, min_bytes_per_second=50_000)
    with open_connection(server.url, policy) as connection:
        server.schedule_fault("large.gz", SlowBody(5000))
        assert stream(connection, f"{server.url}large.gz") == LARGE
        first, second, *_ = server.requests
        assert first.bytes_sent < 100_000
        assert second.range.startswith("bytes=")
        server.schedule_fault("large.gz", SlowBody(5000), times=None)
        with pytest.raises(UnreachableError, match="bytes a second"):
            connection.read(f"{server.url}large.gz", 1 << 20)


def test_slow_body_above_the_minimum_rate_is_accepted(server: FakeServer) -> None:
    server.schedule_fault("large.gz", SlowBody(200_000))
    policy = replace(FAST_RETRY, read_timeout=1)
    with open_connection(server.url, policy) as connection:
        assert connection.read(f"{server.url}large.gz", 1 << 20).body == LARGE
    assert len(server.requests) == 1


# Pauses requested by the server.


@pytest.mark.parametrize("retry_after", ["1", lambda: formatdate(time.time() + 2, usegmt=True)])
def test_retry_after_holds_back_all_connections(
    server: FakeServer, retry_after: str | Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    header = retry_after if isinstance(retry_after, str) else retry_after()
    server.schedule_fault("small.txt", ServiceUnavailable(header))
    pause, paused = RateLimiter.pause, threading.Event()

    def pause_and_note(limiter: RateLimiter, seconds: float) -> None:
        pause(limiter, seconds)
        paused.set()

    monkeypatch.setattr(RateLimiter, "pause", pause_and_note)

    def read(path: str) -> None:
        with open_connection(server.url) as connection:
            assert connection.read(f"{server.url}{path}", 1 << 20)

    threads = [threading.Thread(target=read, args=(path,)) for path in ("small.txt", "large.gz")]
    threads[0].start()
    assert paused.wait(60)
    threads[1].start()
    for thread in threads:
        thread.join()
    refused, *others = (request.received_at for request in server.requests)
    assert len(others) == 2
    assert min(others) - refused > 0.5


def test_overload_without_retry_after_waits_the_initial_backoff(server: FakeServer) -> None:
    server.schedule_fault("small.txt", ServiceUnavailable(status=429))
    http_server = make_server(server.url, replace(FAST_RETRY, initial_backoff=0.4, max_backoff=0.4))
    with http_server.connect() as connection:
        connection.read(f"{server.url}small.txt", 100)
    first, second = server.requests
    assert second.received_at - first.received_at > 0.39


@pytest.mark.parametrize(
    ("retry_after", "until"),
    [
        ("301", "2033-05-18 03:38"),
        ("1000000000", "2065-01-24 05:20"),
        ("9" * 400, "2350-04-07 21:20"),
        (formatdate(2_000_086_400, usegmt=True), "2033-05-19 03:33"),
    ],
    ids=["five minutes", "years", "ages", "date"],
)
def test_retry_after_of_more_than_minutes_ends_with_the_time_to_come_back(
    server: FakeServer, connection: Connection, clock: Clock, retry_after: str, until: str
) -> None:
    server.schedule_fault("*", ServiceUnavailable(retry_after))
    with pytest.raises(OutageError) as caught:
        connection.read(f"{server.url}small.txt", 100)
    assert re.search(rf"503.*asks to wait [\d,]+ seconds, until {until} UTC", str(caught.value))
    assert "Run the same command again after that" in caught.value.hint
    assert len(server.requests) == 1
    assert clock.slept == 0


def test_retry_after_of_minutes_is_obeyed(server: FakeServer, connection: Connection, clock: Clock) -> None:
    server.schedule_fault("*", ServiceUnavailable("300"))
    assert connection.read(f"{server.url}small.txt", 100).body == b"small"
    assert clock.slept >= 300


# Permanent errors.


def test_not_found_is_not_retried(server: FakeServer, connection: Connection) -> None:
    message = r"nothing\.txt is not there: the server answers 404 Not Found"
    with pytest.raises(NotFoundError, match=message):
        connection.read(f"{server.url}nothing.txt", 100)
    with pytest.raises(NotFoundError):
        list(connection.stream(f"{server.url}nothing.txt", 0))
    server.schedule_fault("*", ServiceUnavailable(status=410))
    with pytest.raises(NotFoundError):
        connection.read(f"{server.url}small.txt", 100)
    assert len(server.requests) == 3


@pytest.mark.parametrize("status", [400, 401, 403, 405, 451, 501])
def test_refusal_is_not_retried(server: FakeServer, connection: Connection, status: int) -> None:
    server.schedule_fault("*", ServiceUnavailable(status=status), times=None)
    with pytest.raises(RefusedError, match=f"is refused: the server answers {status}"):
        connection.read(f"{server.url}small.txt", 100)
    assert len(server.requests) == 1


HOSTILE = "\x1b]0;mine\x07\x1b[2J\x9b31m"


@pytest.mark.parametrize(
    "hostile_answer",
    [
        f"403 {HOSTILE}",
        f"404 {HOSTILE}",
        f"503 {HOSTILE}",
        f"503 Busy\r\nRetry-After: 9999{HOSTILE}",
        f"302 Found\r\nLocation: https://example.org/{HOSTILE}",
        f"206 Partial Content\r\nContent-Range: bytes {HOSTILE}",
        f"200{HOSTILE} OK",
        f"200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{HOSTILE}",
    ],
)
def test_words_of_a_server_reach_no_terminal_raw(hostile_answer: str) -> None:
    reports: list[str] = []
    with CannedServer(http_response(hostile_answer, b"x", length=5)) as server:
        http_server = replace(make_server(server.url), report_wait=reports.append)
        with http_server.connect() as connection, pytest.raises(DownloadError) as caught:
            connection.read(server.url, 100)
    for text in (str(caught.value), *reports):
        assert text.isprintable()


def test_body_over_the_size_limit_is_refused(server: FakeServer, connection: Connection) -> None:
    assert connection.read(f"{server.url}large.gz", len(LARGE)).body == LARGE
    with pytest.raises(RefusedError, match="has more than 299,999 bytes"):
        connection.read(f"{server.url}large.gz", len(LARGE) - 1)
    server.schedule_fault("small.txt", EndlessBody(b"again and again "))
    with pytest.raises(RefusedError, match="more than 1,000"):
        connection.read(f"{server.url}small.txt", 1000)


# Redirects.


def test_redirect_to_the_same_host_is_followed(server: FakeServer, connection: Connection) -> None:
    for location in ("/large.gz", f"{server.url}large.gz"):
        server.schedule_fault("small.txt", Redirect(location))
        assert connection.read(f"{server.url}small.txt", 1 << 20).body == LARGE


def test_body_of_redirect_is_not_read() -> None:
    def send_endless_body() -> Iterator[bytes]:
        yield b"HTTP/1.1 302 Found\r\nLocation: /there\r\nConnection: close\r\n\r\n"
        for _ in range(300):
            yield bytes(1 << 20)
            sent_blocks.append(1)

    sent_blocks: list[int] = []
    assert read_answers(send_endless_body(), HERE)[0] == b"here"
    assert len(sent_blocks) < 100


@pytest.mark.parametrize(
    "location",
    [
        "http://files.example.org/large.gz",
        "//files.example.org/large.gz",
        "http://127.0.0.1:1PORT/large.gz",
        "http://127.0.0.1/large.gz",
        "http://localhost:PORT/large.gz",
        "http://127.0.0.1:PORT@example.org/large.gz",
        "http://someone@127.0.0.1:PORT/large.gz",
        "file:///etc/hosts",
        "http://[",
        "http://127.0.0.1:x/",
    ],
)
def test_redirect_to_another_host_is_refused(
    server: FakeServer, connection: Connection, location: str
) -> None:
    server.schedule_fault("small.txt", Redirect(location.replace("PORT", str(server.server_address[1]))))
    with pytest.raises(RefusedError, match="redirected"):
        connection.read(f"{server.url}small.txt", 1 << 20)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("url", "location", "message"),
    [
        ("http://a.org/x", "https://a.org/x", "redirected to https://a.org/x: the server wants https. Write"),
        ("http://a.org:8080/x", "https://a.org/y", "redirected to https://a.org/y: the server wants https"),
        ("http://a.org/x", "//login.b.org/", r"redirected to another host \(//login.b.org/\).* login page"),
        ("http://a.org/x", "https://b.org/x", r"another host \(https://b.org/x\). If the files have moved"),
        ("https://a.org/x", "http://a.org/x", r"an address without encryption \(http://a.org/x\)"),
    ],
)
def test_redirect_that_is_not_followed_is_explained(url: str, location: str, message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        resolve_redirect(url, location)


@pytest.mark.parametrize("location", ["https://misuse.example.org/error/abuse.shtml", "/blocked.html"])
def test_redirect_to_the_page_of_a_block_ends_the_run(location: str) -> None:
    with pytest.raises(OutageError, match=r"blocks this network\. It redirects to ") as caught:
        resolve_redirect("https://ftp.example.org/pubmed/", location)
    assert "Start no other download" in caught.value.hint


@pytest.mark.parametrize("location", ["/small.txt", ""])
def test_endless_redirect_is_refused(server: FakeServer, connection: Connection, location: str) -> None:
    server.schedule_fault("small.txt", Redirect(location), times=None)
    with pytest.raises(RefusedError, match="redirected too often"):
        connection.read(f"{server.url}small.txt", 100)
    assert len(server.requests) == 4


# Pages that block a network.

BLOCK_PAGES = [
    "<html><head><title>NCBI - WWW Error Blocked Diagnostic</title></head><body></body></html>",
    "<!DOCTYPE html>\n<html><style>p {}</style><body><h1>Access Denied</h1><p>Your access to the files has "
    "been <b>temporarily blocked</b> due to a possible misuse situation.</p></body></html>",
    "<HTML><BODY>Your IP address is blocked. Write to us.</BODY></HTML>",
]


@pytest.mark.parametrize("page", BLOCK_PAGES)
@pytest.mark.parametrize("status", ["200 OK", "403 Forbidden", "429 Too Many Requests", "503 Busy"])
def test_page_that_blocks_a_network_ends_the_run(page: str, status: str) -> None:
    answer = http_response(status, page.encode())
    with CannedServer(answer) as server, open_connection(server.url) as connection:
        with pytest.raises(OutageError, match=r"blocks this network\. Its page says: .*[Bb]locked") as caught:
            connection.read(server.url, 1 << 20)
        assert "Start no other download" in caught.value.hint
        with pytest.raises(OutageError, match="blocks this network"):
            list(connection.stream(server.url, 0))
        assert len(server.request_heads) == 2, "it is not asked again"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body>Index of /pubmed/baseline <a href='blocked.txt'>x</a></body></html>",
        b"Your access has been blocked",
        b"<html>" + b"<" * 100_000,
        b"<html><script>" * 5000,
        b"<html>you " * 20_000,
    ],
)
def test_other_pages_are_read(page: bytes) -> None:
    assert read_answers(http_response("200 OK", page))[0] == page
    assert stream_answers(http_response("200 OK", page))[0] == page


# Malformed and unusual responses.


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\n" + LETTERS, LETTERS),  # it ends with the connection
        (CHUNKED + b"3\r\nabc\r\n2;note=1\r\nde\r\n0\r\n\r\n", b"abcde"),
        (http_response("200 OK\r\nContent-Encoding: x-gzip", gzip.compress(b"words", mtime=0)), None),
        *((http_response("200 OK", b"here", length), b"here") for length in ("\xb2", "9" * 5000, "-1", "")),
    ],
)
def test_body_is_read_as_it_was_sent(answer: bytes, body: bytes | None) -> None:
    expected = gzip.compress(b"words", mtime=0) if body is None else body
    assert read_answers(answer) == (expected, 1)
    assert stream_answers(answer)[0] == expected


CLOSED_CHUNKED = CHUNKED.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")


@pytest.mark.parametrize(
    "malformed",
    [
        b"\0" * 100,
        b"HTTP/1.1\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"SSH-2.0-x\r\n",
        *(
            CLOSED_CHUNKED + chunks
            for chunks in (b"3\r\nab", b"3\r\nabc\r\n", b"3\r\nabc", b"x\r\nabc\r\n0\r\n\r\n", b"-3\r\nabc")
        ),
        *(
            http_response(f"503 Busy\r\nRetry-After: {after}")
            for after in (
                "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
                f"Mon, 01 Jan {'9' * 5000} 00:00:00 GMT",
                "Mon, 01 Jan 0001 00:00:00 -0000",
                "Mon, 01 Jan 2020 00:00:00 +9999999999999999999",
                "\xb2",
            )
        ),
    ],
)
def test_malformed_response_is_retried(malformed: bytes) -> None:
    assert read_answers(malformed, HERE) == (b"here", 2)


OVERHEADS: dict[str, tuple[bytes, bytes]] = {
    "interim responses": (b"", b"HTTP/1.1 100 Continue\r\nNote: x\r\n\r\n" * 1000),
    "trailers": (CHUNKED + b"3\r\nabc\r\n0\r\n", b"Note: x\r\n" * 4000),
    "extensions": (CHUNKED, (b"1;" + b"x" * 60_000 + b"\r\na\r\n")),
}


@pytest.mark.parametrize("overhead", OVERHEADS)
def test_bytes_that_are_no_body_are_bounded(overhead: str) -> None:
    start, endless = OVERHEADS[overhead]
    sent_bytes: list[int] = []

    def send_without_end() -> Iterator[bytes]:
        yield start
        while sum(sent_bytes) < 50 << 20:
            yield endless
            sent_bytes.append(len(endless))

    assert read_answers(send_without_end(), HERE) == (b"here", 2), "the next attempt is answered"
    assert sum(sent_bytes) < 25 << 20, "what the sockets hold, and no more"
    policy = replace(FAST_RETRY, max_attempts=2)
    with pytest.raises(UnreachableError, match="1,048,576 bytes that are no part of a file"):
        read_answers(*(send_without_end() for _ in range(9)), policy=policy)


def test_chunks_of_one_byte_are_a_body(monkeypatch: pytest.MonkeyPatch) -> None:
    """More surrounds them than may surround the body of one byte."""
    monkeypatch.setattr(min_throughput, "MAX_OVERHEAD_BYTES", 1 << 16)
    answer = CHUNKED + b"1\r\na\r\n" * 20_000 + b"0\r\n\r\n"
    assert read_answers(answer) == (b"a" * 20_000, 1)


# Connection failures and backoff.


def test_refused_connection_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused_port:
        url = f"http://127.0.0.1:{unused_port.getsockname()[1]}/"
    started = time.monotonic()
    with open_connection(url) as connection, pytest.raises(UnreachableError, match=r"refused.*tried 4 times"):
        connection.read(url, 100)
    assert time.monotonic() - started < 20
