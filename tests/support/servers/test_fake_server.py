"""The stand-in for the servers: what it serves, the faults it makes, what it measures."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.support.paths import REPOSITORY
from tests.support.servers.fake_server import (
    ConnectionReset,
    CorruptByte,
    EndlessBody,
    FakeServer,
    Fault,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NoResponse,
    NotFound,
    RangeIgnored,
    Redirect,
    Republication,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)
from tests.support.servers.server_pages import (
    S3_NAMESPACE,
    create_europepmc_server,
    create_pubmed_server,
    format_apache_size,
    publish_file,
)

FILE = "pubmed/baseline/pubmed26n0001.xml.gz"
OBJECT = "bucket/PMC1.1/PMC1.1.xml"
DATA = bytes(range(256)) * 400  # 102,400 bytes
SMALL = b"\x1f\x8b" + b"." * 37  # taken for gzip, so that no version of zlib changes its length
MARCH = 1_773_000_060  # 2026-03-08 20:01 UTC


@pytest.fixture
def server(tmp_path: Path) -> Iterator[FakeServer]:
    create_pubmed_server(
        tmp_path,
        {"pubmed26n0001.xml.gz": b"\x1f\x8b" + DATA, "pubmed26n0002.xml.gz": SMALL},
        {"pubmed26n0003.xml.gz": b"<PubmedArticleSet/>"},
    )
    create_europepmc_server(tmp_path, {"PMC1_PMC20.xml.gz": ["<article>1</article>", "<article>2</article>"]})
    publish_file(tmp_path / "europepmc" / "PMC30_PMC40.xml.gz", SMALL)
    for key in ("PMC1.1/PMC1.1.xml", "PMC1.1/PMC1.1.json", "PMC1.2/PMC1.2.xml", "PMC1.10/PMC1.10.xml"):
        publish_file(tmp_path / "bucket" / key, DATA)
    for path in tmp_path.rglob("*"):
        os.utime(path, (MARCH, MARCH))
    with FakeServer(tmp_path) as server:
        yield server


def get(server: FakeServer, path: str, **headers: str) -> requests.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.get(server.url + path, headers=named, timeout=5, allow_redirects=False)


def received(server: FakeServer, path: str) -> tuple[bytes, type[Exception] | None]:
    """What arrives of an answer's body, read to its end or its failure."""
    data = b""
    with requests.get(server.url + path, stream=True, timeout=5) as response:
        try:
            while piece := response.raw.read(1000):
                data += piece
        except Exception as error:
            return data, type(error.args[-1] if len(error.args) > 1 else error)
    return data, None


# What it serves.


def test_a_folder_of_pubmed_is_listed_as_ncbi_does(server: FakeServer) -> None:
    response = get(server, "pubmed/baseline/")
    assert response.headers["Content-Type"].startswith("text/html")
    assert response.text == (
        "<html>\n<head><title>Index of /pubmed/baseline</title></head>\n<body>\n"
        "<h1>Index of /pubmed/baseline</h1>\n"
        '<hr><pre><a href="/pubmed/">Parent Directory</a>                             - \n'
        '<a href="README.txt">README.txt</a>               2026-03-08 20:01  142 \n'
        '<a href="pubmed26n0001.xml.gz">pubmed26n0001.xml.gz</a>     2026-03-08 20:01  100K\n'
        '<a href="pubmed26n0001.xml.gz.md5">pubmed26n0001.xml.gz.md5</a> 2026-03-08 20:01   60 \n'
        '<a href="pubmed26n0002.xml.gz">pubmed26n0002.xml.gz</a>     2026-03-08 20:01   39 \n'
        '<a href="pubmed26n0002.xml.gz.md5">pubmed26n0002.xml.gz.md5</a> 2026-03-08 20:01   60 \n'
        "</pre><hr>\n</body></html>\n"
    )


def test_a_folder_of_europe_pmc_is_listed_as_a_table(server: FakeServer) -> None:
    assert (
        '<td><a href="PMC30_PMC40.xml.gz">PMC30_PMC40.xml.gz</a></td>'
        '<td align="right">2026-03-08 20:01  </td><td align="right"> 39 </td><td>&nbsp;</td></tr>\n'
    ) in get(server, "europepmc/").text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "  0 "),
        (60, " 60 "),
        (972, "972 "),
        (973, "1.0K"),
        (4600, "4.5K"),
        (10_300, " 10K"),
        (1_100_000, "1.0M"),
        (19_683_003, " 19M"),
        (5 << 30, "5.0G"),
    ],
)
def test_sizes_are_rounded_as_apache_does(size: int, text: str) -> None:
    assert format_apache_size(size) == text


def test_the_layouts_hold_what_was_given(server: FakeServer) -> None:
    baseline = server.root / "pubmed" / "baseline"
    data = get(server, "pubmed/updatefiles/pubmed26n0003.xml.gz").content
    assert gzip.decompress(data) == b"<PubmedArticleSet/>"
    assert get(server, "pubmed/updatefiles/pubmed26n0003.xml.gz.md5").text == (
        f"MD5(pubmed26n0003.xml.gz)= {hashlib.md5(data).hexdigest()}\n"
    )
    assert get(server, "pubmed/baseline/pubmed26n0002.xml.gz").content == SMALL
    assert "files pubmed26n0001.xml through pubmed26n0002.xml." in (baseline / "README.txt").read_text()
    package = gzip.decompress(get(server, "europepmc/PMC1_PMC20.xml.gz").content)
    assert package == b"<articles><article>1</article><article>2</article></articles>"


def listed(server: FakeServer, query: str) -> tuple[list[str], list[str], str]:
    """Keys, common prefixes and continuation token of one page of the bucket's listing."""
    root = etree.fromstring(get(server, f"bucket/?list-type=2{query}").content)
    names = {"s3": S3_NAMESPACE}
    token = root.findtext("s3:NextContinuationToken", "", names)
    assert root.findtext("s3:IsTruncated", "", names) == ("true" if token else "false")
    keys = [element.text or "" for element in root.iterfind("s3:Contents/s3:Key", names)]
    return keys, [e.text or "" for e in root.iterfind("s3:CommonPrefixes/s3:Prefix", names)], token


def test_the_bucket_is_listed_by_prefix_and_delimiter(server: FakeServer) -> None:
    assert listed(server, "&prefix=PMC1.&delimiter=/") == ([], ["PMC1.1/", "PMC1.10/", "PMC1.2/"], "")
    assert listed(server, "&prefix=PMC1.1/") == (["PMC1.1/PMC1.1.json", "PMC1.1/PMC1.1.xml"], [], "")
    assert listed(server, "&prefix=PMC1.1/P&delimiter=/")[0] == ["PMC1.1/PMC1.1.json", "PMC1.1/PMC1.1.xml"]
    assert listed(server, "&prefix=none/") == ([], [], "")
    assert listed(server, "&prefix=../pubmed/") == ([], [], "")
    assert f"<ETag>&quot;{hashlib.md5(DATA).hexdigest()}&quot;</ETag><Size>102400</Size>" in (
        get(server, "bucket/?list-type=2&prefix=PMC1.2/").text
    )


@pytest.mark.parametrize("query", ["", "&delimiter=/", "&prefix=PMC1.1"])
def test_pages_of_the_bucket_add_up_to_the_whole(server: FakeServer, query: str) -> None:
    whole = listed(server, query)
    server.page_size = 1
    keys, prefixes, token = listed(server, query)
    while token:
        more_keys, more_prefixes, token = listed(
            server, f"{query}&continuation-token={quote(token, safe='')}"
        )
        keys, prefixes = keys + more_keys, prefixes + more_prefixes
    assert (keys, prefixes, "") == whole


@pytest.mark.parametrize("query", ["", "?list-type=2&max-keys=x", "?list-type=2&continuation-token=%3F"])
def test_a_bad_listing_query_is_refused(server: FakeServer, query: str) -> None:
    assert get(server, f"bucket/{query}").status_code == 400


def test_a_missing_key_is_s3s_error(server: FakeServer) -> None:
    response = get(server, "bucket/PMC1.1/none.xml")
    assert response.status_code == 404
    assert etree.fromstring(response.content).findtext("Code") == "NoSuchKey"
    assert get(server, "bucket/PMC1.1/").status_code == 404


def test_an_object_says_what_it_is(server: FakeServer) -> None:
    headers = get(server, OBJECT).headers
    assert headers["ETag"] == f'"{hashlib.md5(DATA).hexdigest()}"'
    assert headers["Last-Modified"] == "Sun, 08 Mar 2026 20:01:00 GMT"
    assert (headers["Content-Length"], headers["Accept-Ranges"]) == ("102400", "bytes")


def test_head_is_get_without_the_body(server: FakeServer) -> None:
    asked = requests.head(server.url + OBJECT, timeout=5)
    answer = get(server, OBJECT)
    assert asked.content == b""
    assert {**asked.headers, "Date": ""} == {**answer.headers, "Date": ""}
    assert [request.bytes_sent for request in server.requests] == [0, len(DATA)]


@given(start=st.integers(0, 300), end=st.none() | st.integers(0, 300), size=st.integers(0, 200))
def test_a_range_is_that_part_of_the_file(
    start: int, end: int | None, size: int, ranges: tuple[FakeServer, requests.Session]
) -> None:
    server, session = ranges
    (server.root / "file").write_bytes(DATA[:size])
    value = f"bytes={start}-{'' if end is None else end}"
    response = session.get(server.url + "file", headers={"Range": value}, timeout=5)
    expected = DATA[start : size if end is None else min(size, end + 1)]
    if expected:
        assert (response.status_code, response.content) == (206, expected)
        assert response.headers["Content-Range"] == f"bytes {start}-{start + len(expected) - 1}/{size}"
    else:
        assert (response.status_code, response.headers["Content-Range"]) == (416, f"bytes */{size}")


@pytest.fixture(scope="module")
def ranges(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServer, requests.Session]]:
    with FakeServer(tmp_path_factory.mktemp("ranges")) as server, requests.Session() as session:
        yield server, session


def test_if_range_gives_the_whole_file_once_it_has_changed(server: FakeServer) -> None:
    before = get(server, FILE).headers
    part = {"Range": "bytes=100000-"}
    assert get(server, FILE, **part, If_Range=before["ETag"]).status_code == 206
    assert get(server, FILE, **part, If_Range=before["Last-Modified"]).status_code == 206
    publish_file(server.root / FILE, b"<PubmedArticleSet/>")
    response = get(server, FILE, **part, If_Range=before["ETag"])
    assert (response.status_code, gzip.decompress(response.content)) == (200, b"<PubmedArticleSet/>")


@pytest.mark.parametrize(
    "path", ["/../secret", "/pubmed/../../secret", "/%2e%2e/secret", "//etc/passwd", "/a%00b"]
)
def test_nothing_outside_the_root_is_served(server: FakeServer, path: str) -> None:
    (server.root.parent / "secret").write_text("secret")
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.split()[1] in (b"400", b"404")


def test_a_folder_without_its_slash_is_sent_to_the_one_with(server: FakeServer) -> None:
    response = get(server, "pubmed/baseline")
    assert (response.status_code, response.headers["Location"]) == (301, server.url + "pubmed/baseline/")


# The faults.


def test_unavailable_says_when_to_come_back_if_told_to(server: FakeServer) -> None:
    server.schedule_fault("pubmed/*", ServiceUnavailable())
    server.schedule_fault("pubmed/*", ServiceUnavailable("7", status=429))
    first, second, third = (get(server, FILE) for _ in range(3))
    assert (first.status_code, "Retry-After" in first.headers) == (503, False)
    assert (second.status_code, second.headers["Retry-After"]) == (429, "7")
    assert third.status_code == 200


@pytest.mark.parametrize(
    ("fault", "status", "content"),
    [
        (HtmlPage("<html>Sorry</html>"), 200, b"<html>Sorry</html>"),
        (FixedBody(b"no checksum"), 200, b"no checksum"),
        (Redirect("http://elsewhere.invalid/"), 302, b""),
        (CorruptByte(2), 200, b"\x1f\x8b\xff" + DATA[1:]),
        (Stall(50, 0.1), 200, b"\x1f\x8b" + DATA),
    ],
)
def test_a_fault_changes_the_answer(server: FakeServer, fault: Fault, status: int, content: bytes) -> None:
    server.schedule_fault(FILE, fault)
    response = get(server, FILE)
    assert (response.status_code, response.content) == (status, content)
    assert int(response.headers["Content-Length"]) == len(content)
    assert get(server, FILE).content == b"\x1f\x8b" + DATA


def test_missing_is_missing_for_ever(server: FakeServer) -> None:
    server.schedule_fault("*n0001*", NotFound(), times=None)
    assert [get(server, FILE).status_code for _ in range(3)] == [404, 404, 404]
    assert get(server, FILE.replace("1", "2")).status_code == 200


def test_ignore_closes_without_an_answer(server: FakeServer) -> None:
    server.schedule_fault(FILE, NoResponse())
    with pytest.raises(requests.ConnectionError):
        get(server, FILE)
    assert server.requests[0].status == 0


def test_reset_gives_exactly_so_many_bytes_and_then_an_error(server: FakeServer) -> None:
    server.schedule_fault(FILE, ConnectionReset(after_bytes=70_000))
    data, error = received(server, FILE)
    assert (len(data), error) == (70_000, ConnectionResetError)
    assert server.bytes_sent_for(FILE) == 70_000


def test_truncate_ends_early_under_the_right_length(server: FakeServer) -> None:
    server.schedule_fault(FILE, TruncatedBody(after_bytes=70_000))
    data, error = received(server, FILE)
    assert len(data) == 70_000
    assert error is not None
    assert error is not ConnectionResetError


@pytest.mark.parametrize("listing", ["pubmed/baseline/", "europepmc/", "bucket/?list-type=2"])
def test_a_listing_can_be_cut_short_too(server: FakeServer, listing: str) -> None:
    server.schedule_fault(listing.partition("?")[0], TruncatedBody(after_bytes=100))
    assert received(server, listing)[1] is not None
    assert received(server, listing)[1] is None


def test_corrupt_speaks_of_a_place_in_the_file_whatever_the_range(server: FakeServer) -> None:
    server.schedule_fault(OBJECT, CorruptByte(at_byte=500), times=2)
    assert get(server, OBJECT, Range="bytes=499-501").content == bytes(
        [DATA[499], DATA[500] ^ 255, DATA[501]]
    )
    assert get(server, OBJECT, Range="bytes=600-").content == DATA[600:]


def test_a_stall_can_come_before_the_first_byte_and_within_the_body(server: FakeServer) -> None:
    server.schedule_fault(FILE, Stall(after_bytes=0, seconds=30))
    server.schedule_fault(FILE, Stall(after_bytes=10, seconds=30))
    with pytest.raises(requests.ReadTimeout):
        requests.get(server.url + FILE, timeout=0.3)
    with requests.get(server.url + FILE, timeout=0.3, stream=True) as response:
        assert response.raw.read(10) == (b"\x1f\x8b" + DATA)[:10]
        with pytest.raises(Exception, match="timed out"):
            response.raw.read(1)


def test_slow_keeps_to_its_rate(server: FakeServer) -> None:
    server.schedule_fault(FILE, SlowBody(bytes_per_second=200_000))
    started = time.monotonic()
    assert get(server, FILE).content == b"\x1f\x8b" + DATA
    assert 0.5 <= time.monotonic() - started < 3


def test_the_whole_server_can_be_slow_and_late(server: FakeServer) -> None:
    server.bytes_per_second, server.latency = 400_000, 0.1
    started = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(lambda _: get(server, OBJECT).content == DATA, range(2)))
    assert 0.6 <= time.monotonic() - started < 3


def test_no_range_gives_the_whole_file(server: FakeServer) -> None:
    server.schedule_fault(OBJECT, RangeIgnored())
    response = get(server, OBJECT, Range="bytes=100-")
    assert (response.status_code, response.content) == (200, DATA)
    assert (server.requests[0].range, server.requests[0].status) == ("bytes=100-", 200)


def test_endless_goes_on_until_the_client_has_had_enough(server: FakeServer) -> None:
    server.schedule_fault("pubmed/baseline/", EndlessBody(b"<a href='x'>"), times=None)
    with requests.get(server.url + "pubmed/baseline/", stream=True, timeout=5) as response:
        assert len(response.raw.read(1_000_000)) == 1_000_000
    assert "Content-Length" not in response.headers


def test_replace_is_seen_from_the_next_request_on(server: FakeServer) -> None:
    server.schedule_fault(FILE, Republication(FILE, b"<New/>", md5=True))
    old, after = get(server, FILE), get(server, FILE)
    assert old.content == b"\x1f\x8b" + DATA
    assert gzip.decompress(after.content) == b"<New/>"
    assert hashlib.md5(after.content).hexdigest() in get(server, FILE + ".md5").text
    assert old.headers["ETag"] != after.headers["ETag"]


def test_a_replaced_file_can_keep_its_old_checksum(server: FakeServer) -> None:
    server.schedule_fault(FILE, Republication(FILE, b"<New/>"))
    get(server, FILE)
    assert hashlib.md5(b"\x1f\x8b" + DATA).hexdigest() in get(server, FILE + ".md5").text


def test_call_changes_the_folder_before_the_answer(server: FakeServer) -> None:
    new = server.root / "pubmed" / "updatefiles" / "pubmed26n0004.xml.gz"
    server.schedule_fault(
        "pubmed/updatefiles/", FunctionCall(lambda: publish_file(new, b"<PubmedArticleSet/>", md5=True))
    )
    assert "pubmed26n0004.xml.gz.md5" in get(server, "pubmed/updatefiles/").text


def test_what_a_call_raises_is_raised_at_the_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = FakeServer(tmp_path)
    server.schedule_fault("*", FunctionCall(lambda: 1 // 0))
    with pytest.raises(ZeroDivisionError), server, pytest.raises(requests.ConnectionError):
        get(server, "")
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_faults_are_used_up_in_the_order_given(server: FakeServer) -> None:
    server.schedule_fault("pubmed/*", ServiceUnavailable(), times=2)
    server.schedule_fault("*", NotFound(), times=2)
    server.schedule_fault("pubmed/*", HtmlPage("x"), times=None)
    assert [get(server, path).status_code for path in (FILE, OBJECT, FILE, FILE)] == [503, 404, 503, 404]
    assert server.pending_faults == []
    assert [get(server, path).text[:1] for path in (FILE, FILE)] == ["x", "x"]


def test_many_at_once_use_a_fault_exactly_as_often_as_asked(server: FakeServer) -> None:
    server.schedule_fault(OBJECT, ServiceUnavailable(), times=37)
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: get(server, OBJECT).status_code, range(100)))
    assert (statuses.count(503), statuses.count(200)) == (37, 63)
    assert server.pending_faults == []


# What it measures.


def test_requests_are_noted_with_all_that_is_known_of_them(server: FakeServer) -> None:
    with requests.Session() as session:
        session.headers["User-Agent"] = "bioshards"
        for _ in range(3):
            session.get(server.url + FILE)
        session.get(server.url + "bucket/?list-type=2&prefix=x")
    assert (server.connections, server.max_open_connections) == (1, 1)
    first, *_, last = server.requests
    assert (first.method, first.path, first.status, first.bytes_sent) == ("GET", FILE, 200, len(DATA) + 2)
    assert (first.connection, first.headers["user-agent"]) == (1, "bioshards")
    assert (last.path, last.query) == ("bucket/", "list-type=2&prefix=x")
    assert server.bytes_sent_for("pubmed/*") == 3 * (len(DATA) + 2)
    assert len(server.requests_for("bucket/*")) == 1


def test_open_connections_are_those_the_client_has_open(server: FakeServer) -> None:
    sessions = [requests.Session() for _ in range(5)]
    for session in sessions:
        session.get(server.url + FILE)
    assert (server.open_connections, server.max_open_connections) == (5, 5)
    for session in sessions[1:]:
        session.close()
    assert server.open_connections == 1
    sessions[0].close()


def test_a_connection_opened_after_another_was_closed_is_not_a_second_one(server: FakeServer) -> None:
    for _ in range(100):
        with requests.get(server.url + OBJECT, stream=True, timeout=5) as response:
            response.raw.read(100)  # closed in mid-body, while the server still sends
    assert (server.connections, server.max_open_connections) == (100, 1)


def test_a_connection_that_the_server_ends_is_not_counted_beside_the_next(server: FakeServer) -> None:
    for fault in (ConnectionReset(100), TruncatedBody(100)):
        server.schedule_fault(OBJECT, fault, times=25)
    for _ in range(50):
        received(server, OBJECT)
    assert (server.connections, server.max_open_connections) == (50, 1)


def test_the_busiest_second_slides(server: FakeServer) -> None:
    came = (0.0, 0.6, 0.6, 1.2)
    with requests.Session() as session:
        for _ in came:
            session.get(server.url + "europepmc/")
        session.get(server.url + FILE)
    asked = zip(server._requests, (*came, 0.0), strict=True)
    server._requests[:] = [dataclasses.replace(request, received_at=at) for request, at in asked]
    assert server.max_requests_per_second("europepmc/*") == 3
    assert server.max_requests_per_second("none") == 0


def test_an_unchanged_files_md5_is_computed_once(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    digest = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: calls.append(a) or digest(*a))  # type: ignore[func-returns-value]
    for _ in range(3):
        get(server, OBJECT)
        get(server, "bucket/?list-type=2&prefix=PMC1.1/PMC1.1.xml")
    assert len(calls) == 1
    publish_file(server.root / OBJECT, b"<article/>")
    assert get(server, OBJECT).headers["ETag"] == f'"{hashlib.md5(b"<article/>").hexdigest()}"'


# Its end.


@pytest.mark.parametrize("fault", [Stall(0, 60), Stall(10, 60), SlowBody(100), EndlessBody(b"x")])
def test_the_end_does_not_wait_for_what_is_under_way(tmp_path: Path, fault: Fault) -> None:
    publish_file(tmp_path / "file", DATA)
    before = threading.active_count()
    with FakeServer(tmp_path) as server:
        server.schedule_fault("file", fault)
        connection = socket.create_connection(("127.0.0.1", server.server_port))
        connection.sendall(b"GET /file HTTP/1.1\r\nHost: x\r\n\r\n")
        while not server.requests:
            time.sleep(0.01)
        idle = socket.create_connection(("127.0.0.1", server.server_port))
        started = time.monotonic()
    assert time.monotonic() - started < 1
    connection.close()
    idle.close()
    deadline = time.monotonic() + 2
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() == before


def test_it_can_be_run_by_hand(tmp_path: Path) -> None:
    create_europepmc_server(tmp_path, {"PMC1_PMC20.xml.gz": []})
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.servers.fake_server", str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=REPOSITORY,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.SIG_DFL
        ),  # a shell's background job ignores it
    ) as process:
        try:
            assert process.stdout
            url = process.stdout.readline().strip()
            assert "PMC1_PMC20.xml.gz" in requests.get(url + "europepmc/", timeout=5).text
            process.send_signal(signal.SIGINT)
            assert process.wait(5) == 0
        finally:
            process.kill()
