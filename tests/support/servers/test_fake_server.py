"""The fake file server: listings, objects, ranges, faults, and the requests that it records."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import (
    create_europepmc_server,
    create_pubmed_server,
    publish_file,
)

FILE = "pubmed/baseline/pubmed26n0001.xml.gz"
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
    return requests.get(server.url + path, headers=header_fields, timeout=60, allow_redirects=False)


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


# Faults


# Recorded requests


def test_open_connections_exclude_those_closed_by_the_client(server: FakeServer) -> None:
    sessions = [requests.Session() for _ in range(5)]
    for session in sessions:
        session.get(server.url + FILE)
    assert (server.open_connections, server.max_open_connections) == (5, 5)
    for session in sessions[1:]:
        session.close()
    assert server.open_connections == 1
    sessions[0].close()


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
