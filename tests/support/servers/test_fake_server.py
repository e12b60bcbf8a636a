"""The fake file server: listings, objects, ranges, faults, and the requests that it records."""

from __future__ import annotations

import dataclasses
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import (
    ConnectionReset,
    CorruptByte,
    HtmlPage,
    NotFound,
    ServiceUnavailable,
    TruncatedBody,
)
from tests.support.servers.server_pages import (
    S3_NAMESPACE,
    create_europepmc_server,
    create_pubmed_server,
    publish_file,
)

FILE = "pubmed/baseline/pubmed26n0001.xml.gz"
OBJECT = "bucket/PMC1.1/PMC1.1.xml"
DATA = bytes(range(256)) * 400  # 102,400 bytes
SMALL = b"\x1f\x8b" + b"." * 37  # begins as gzip does, so it is published unchanged
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


def send_get(server: FakeServer, path: str, **headers: str) -> requests.Response:
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return requests.get(server.url + path, headers=header_fields, timeout=5, allow_redirects=False)


def read_body(server: FakeServer, path: str) -> tuple[bytes, type[Exception] | None]:
    """Read a response body to its end or an error; return the bytes and the type of the error."""
    data = b""
    with requests.get(server.url + path, stream=True, timeout=5) as response:
        try:
            while piece := response.raw.read(1000):
                data += piece
        except Exception as error:
            return data, type(error.args[-1] if len(error.args) > 1 else error)
    return data, None


# Content


def test_pubmed_listing_has_ncbis_format(server: FakeServer) -> None:
    response = send_get(server, "pubmed/baseline/")
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


def test_europepmc_listing_is_a_table(server: FakeServer) -> None:
    assert (
        '<td><a href="PMC30_PMC40.xml.gz">PMC30_PMC40.xml.gz</a></td>'
        '<td align="right">2026-03-08 20:01  </td><td align="right"> 39 </td><td>&nbsp;</td></tr>\n'
    ) in send_get(server, "europepmc/").text


def get_listing_page(server: FakeServer, query: str) -> tuple[list[str], list[str], str]:
    """Get one page of the bucket's listing: keys, common prefixes and continuation token."""
    root = etree.fromstring(send_get(server, f"bucket/?list-type=2{query}").content)
    namespaces = {"s3": S3_NAMESPACE}
    token = root.findtext("s3:NextContinuationToken", "", namespaces)
    assert root.findtext("s3:IsTruncated", "", namespaces) == ("true" if token else "false")
    keys = [element.text or "" for element in root.iterfind("s3:Contents/s3:Key", namespaces)]
    return (
        keys,
        [element.text or "" for element in root.iterfind("s3:CommonPrefixes/s3:Prefix", namespaces)],
        token,
    )


@pytest.mark.parametrize("query", ["", "&delimiter=/", "&prefix=PMC1.1"])
def test_bucket_pages_join_to_the_single_page(server: FakeServer, query: str) -> None:
    single_page = get_listing_page(server, query)
    server.page_size = 1
    keys, prefixes, token = get_listing_page(server, query)
    while token:
        more_keys, more_prefixes, token = get_listing_page(
            server, f"{query}&continuation-token={quote(token, safe='')}"
        )
        keys, prefixes = keys + more_keys, prefixes + more_prefixes
    assert (keys, prefixes, "") == single_page


@given(start=st.integers(0, 300), end=st.none() | st.integers(0, 300), size=st.integers(0, 200))
def test_range_request_gives_the_range(
    start: int, end: int | None, size: int, range_server: tuple[FakeServer, requests.Session]
) -> None:
    server, session = range_server
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
def range_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[FakeServer, requests.Session]]:
    with FakeServer(tmp_path_factory.mktemp("ranges")) as server, requests.Session() as session:
        yield server, session


def test_if_range_gives_the_whole_file_after_a_change(server: FakeServer) -> None:
    headers = send_get(server, FILE).headers
    range_header = {"Range": "bytes=100000-"}
    assert send_get(server, FILE, **range_header, If_Range=headers["ETag"]).status_code == 206
    assert send_get(server, FILE, **range_header, If_Range=headers["Last-Modified"]).status_code == 206
    publish_file(server.root / FILE, b"<PubmedArticleSet/>")
    response = send_get(server, FILE, **range_header, If_Range=headers["ETag"])
    assert (response.status_code, gzip.decompress(response.content)) == (200, b"<PubmedArticleSet/>")


# Faults


def test_connection_reset_follows_the_given_number_of_bytes(server: FakeServer) -> None:
    server.schedule_fault(FILE, ConnectionReset(after_bytes=70_000))
    data, error = read_body(server, FILE)
    assert (len(data), error) == (70_000, ConnectionResetError)
    assert server.bytes_sent_for(FILE) == 70_000


def test_truncated_body_has_the_full_content_length(server: FakeServer) -> None:
    server.schedule_fault(FILE, TruncatedBody(after_bytes=70_000))
    data, error = read_body(server, FILE)
    assert len(data) == 70_000
    assert error is not None
    assert error is not ConnectionResetError


def test_corrupt_byte_is_a_position_in_the_file(server: FakeServer) -> None:
    server.schedule_fault(OBJECT, CorruptByte(at_byte=500), times=2)
    assert send_get(server, OBJECT, Range="bytes=499-501").content == bytes(
        [DATA[499], DATA[500] ^ 255, DATA[501]]
    )
    assert send_get(server, OBJECT, Range="bytes=600-").content == DATA[600:]


def test_faults_are_used_in_order(server: FakeServer) -> None:
    server.schedule_fault("pubmed/*", ServiceUnavailable(), times=2)
    server.schedule_fault("*", NotFound(), times=2)
    server.schedule_fault("pubmed/*", HtmlPage("x"), times=None)
    assert [send_get(server, path).status_code for path in (FILE, OBJECT, FILE, FILE)] == [503, 404, 503, 404]
    assert server.pending_faults == []
    assert [send_get(server, path).text[:1] for path in (FILE, FILE)] == ["x", "x"]


# Recorded requests


def test_requests_are_recorded(server: FakeServer) -> None:
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


def test_open_connections_exclude_those_closed_by_the_client(server: FakeServer) -> None:
    sessions = [requests.Session() for _ in range(5)]
    for session in sessions:
        session.get(server.url + FILE)
    assert (server.open_connections, server.max_open_connections) == (5, 5)
    for session in sessions[1:]:
        session.close()
    assert server.open_connections == 1
    sessions[0].close()


def test_connection_ended_by_the_server_is_not_counted_as_open(server: FakeServer) -> None:
    for fault in (ConnectionReset(100), TruncatedBody(100)):
        server.schedule_fault(OBJECT, fault, times=25)
    for _ in range(50):
        read_body(server, OBJECT)
    assert (server.connections, server.max_open_connections) == (50, 1)


def test_max_requests_per_second_uses_a_sliding_window(server: FakeServer) -> None:
    arrival_times = (0.0, 0.6, 0.6, 1.2)
    with requests.Session() as session:
        for _ in arrival_times:
            session.get(server.url + "europepmc/")
        session.get(server.url + FILE)
    requests_with_times = zip(server._requests, (*arrival_times, 0.0), strict=True)
    server._requests[:] = [
        dataclasses.replace(request, received_at=received_at) for request, received_at in requests_with_times
    ]
    assert server.max_requests_per_second("europepmc/*") == 3
    assert server.max_requests_per_second("none") == 0


# Shutdown
