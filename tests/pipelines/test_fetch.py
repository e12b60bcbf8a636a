"""Tests of ``beam run fetch``: files, packages and articles of all sources, from a fake server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import run_beam
from tests.support.servers.fake_pmc_bucket import ARTICLES, FakeArticle, FakeBucket, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import (
    ConnectionReset,
    CorruptByte,
    FixedBody,
    NotFound,
    ServiceUnavailable,
    TruncatedBody,
)
from tests.support.servers.server_pages import (
    apache_listing,
    create_europepmc_server,
    create_pubmed_server,
    ncbi_listing,
)

Fetch = Callable[..., int]
DAY, NEXT_DAY = "2026-11-01", "2026-11-02"
SELECTED = ("PMC1200001.1", "PMC1200002.1", "PMC1200007.1", "PMC12900001.10")
"""The articles of the bucket whose licences permit reuse."""

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("shorten_retries")]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FakeServer]:
    root = tmp_path / "servers"
    create_pubmed_server(
        root,
        {"pubmed26n0001.xml.gz": pubmed_set_xml(citation_xml(1))},
        {"pubmed26n0002.xml.gz": pubmed_set_xml(citation_xml(2))},
    )
    create_europepmc_server(
        root,
        {
            "PMC1_PMC20.xml.gz": ["<article><body><p>One.</p></body></article>"],
            "PMC21_PMC40.xml.gz": ["<article><body><p>Two.</p></body></article>"],
        },
    )
    create_bucket(root / "bucket", ARTICLES, DAY)
    with FakeServer(root) as server:
        yield server


@pytest.fixture
def fetch(servers: FakeServer, tmp_path: Path) -> Fetch:
    """``beam run fetch`` on inputs from the fake server into ``tmp_path/mirror``, in this process."""

    def call(*inputs: str, options: tuple[object, ...] = ()) -> int:
        return cli.main(
            ["run", "fetch", *map(str, make_arguments(servers, tmp_path, inputs)), *map(str, options)]
        )

    return call


def make_arguments(servers: FakeServer, folder: Path, inputs: tuple[str, ...]) -> list[object]:
    paths = {"pubmed": "pubmed/", "europepmc": "europepmc/", "pmc": "bucket/"}
    return [
        *(word for name in inputs for word in ("--input", name)),
        *(word for name, path in paths.items() for word in (f"--{name}-url", f"{servers.url}{path}")),
        *("--mirror", folder / "mirror", "--workers", 1, "--connections", 8),
    ]


def load_mirror_manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "mirror/manifest.json").read_text())
    return manifest


def list_mirrored_articles(folder: Path) -> set[str]:
    """Return the article versions in the mirror; assert that they are those of the selection lists."""
    article_versions = {path.name.split("-")[0] for path in (folder / "mirror/pmc/xml").rglob("*.xml")}
    storage, mirror = LocalStorage(), str(folder / "mirror")
    selected_rows = [
        row
        for number in article_ranges.list_ranges(storage, mirror)
        for row in article_ranges.read_selected(storage, mirror, number).to_pylist()
    ]
    assert {f"PMC{row['pmcid']}.{row['version']}" for row in selected_rows} == article_versions
    return article_versions


def test_all_sources_at_once(servers: FakeServer, fetch: Fetch, tmp_path: Path) -> None:
    assert fetch("pubmed:", "europepmc:", "pmc:") == 0
    manifest = load_mirror_manifest(tmp_path)
    assert [file["file"] for file in manifest["files"]] == [
        "europepmc/PMC1_PMC20.xml.gz",
        "europepmc/PMC21_PMC40.xml.gz",
        "pubmed/baseline/pubmed26n0001.xml.gz",
        "pubmed/updatefiles/pubmed26n0002.xml.gz",
    ]
    assert [file["md5_published"] for file in manifest["files"]] == [False, False, True, True]
    assert manifest["newest_file"] == "pubmed26n0002.xml.gz"
    assert "National Library of Medicine" in manifest["notice"]
    assert manifest["config"]["inventory"]["date"].startswith(DAY)
    for file in manifest["files"]:
        content = (tmp_path / "mirror" / file["file"]).read_bytes()
        assert content == (servers.root / file["file"]).read_bytes()
    assert list_mirrored_articles(tmp_path) == set(SELECTED)
    requested_paths = {request.path for request in servers.requests_for("bucket/*.xml")}
    assert requested_paths == {f"bucket/{name}/{name}.xml" for name in SELECTED}
    assert manifest["articles"]["not_selected"] == {
        "licence:CC-BY-NC": 1,
        "licence:TDM": 1,
        "licence:unknown": 1,
        "not-newest": 1,
        "set:ocr": 1,
    }


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        (("--licences", "TDM"), {"PMC1200005.1"}),
        (
            ("--licences", "CC-BY", "--sets", "all", "--drop-retracted"),
            {"PMC1200001.1", "PMC1200006.1", "PMC12900001.10"},
        ),
        (
            ("--versions", "all", "--drop-retracted"),
            {"PMC1200001.1", "PMC1200002.1", "PMC12900001.2", "PMC12900001.10"},
        ),
    ],
)
def test_options_select_other_articles(
    fetch: Fetch, tmp_path: Path, options: tuple[str, ...], selected: set[str]
) -> None:
    assert fetch("pmc:", options=options) == 0
    assert list_mirrored_articles(tmp_path) == selected


def test_second_run_fetches_only_listings(servers: FakeServer, fetch: Fetch, tmp_path: Path) -> None:
    assert fetch("pubmed:", "europepmc:", "pmc:") == 0
    before, mirrored = len(servers.requests), list_mirrored_articles(tmp_path)
    assert fetch("pubmed:", "europepmc:", "pmc:") == 0
    paths = [request.path for request in servers.requests[before:]]
    assert not [path for path in paths if path.endswith((".xml", ".json.gz", "csv.gz"))]
    assert not [path for path in paths if path.startswith("bucket/metadata/")]
    assert not [path for path in paths if path.endswith(".xml.gz") and path.startswith("pubmed/")]
    assert list_mirrored_articles(tmp_path) == mirrored


def test_update_fetches_changed_and_removes_withdrawn_articles(
    servers: FakeServer, fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch("pmc:") == 0
    bucket = FakeBucket(servers.root / "bucket")
    bucket.put_article(FakeArticle(1200001, text="Said otherwise now."))
    bucket.put_article(FakeArticle(1200002, licence="CC BY-NC-ND"))
    bucket.put_article(FakeArticle(1200008))
    bucket.put_article(FakeArticle(12900001, version=11))
    bucket.remove(1200007)
    bucket.publish_inventory(NEXT_DAY)
    assert fetch("pmc:") == 0
    output = capsys.readouterr().out
    assert "1  withdrawn: licence:CC-BY-NC-ND\n" in output
    assert "1  withdrawn: not in the bucket\n" in output
    assert list_mirrored_articles(tmp_path) == {"PMC1200001.1", "PMC1200008.1", "PMC12900001.11"}


def test_replacement_of_many_files_by_small_ones_needs_a_word(
    servers: FakeServer, fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(str(number) for number in range(1000))
    names = [f"PMC{number}01_PMC{number}99.xml.gz" for number in range(1, 8)]
    create_europepmc_server(
        servers.root, {name: [f"<article><body><p>{text}</p></body></article>"] for name in names}
    )
    assert fetch("europepmc:") == 0
    before = {path: path.read_bytes() for path in (tmp_path / "mirror/europepmc").glob("*.gz")}
    assert len(before) == 9
    create_europepmc_server(servers.root, {name: ["<article/>"] for name in names[:6]})
    assert fetch("europepmc:") == 1
    assert "6 files of " in (stderr := capsys.readouterr().err)
    assert "--allow-removals" in stderr
    assert {path: path.read_bytes() for path in (tmp_path / "mirror/europepmc").glob("*.gz")} == before
    assert fetch("europepmc:", options=("--allow-removals",)) == 0
    assert (tmp_path / "mirror/europepmc" / names[0]).stat().st_size < 100


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"run": {"manifest_sha256": "0"}}'])
def test_damaged_manifest_of_the_mirror_is_named(
    fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    path = tmp_path / "mirror/manifest.json"
    path.parent.mkdir()
    path.write_bytes(content)
    assert fetch("europepmc:") == 2
    assert f"{path} is damaged" in capsys.readouterr().err
    path.unlink()
    assert fetch("europepmc:") == 0


def test_listing_without_readable_dates_fetches_nothing_again(
    servers: FakeServer, fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fetch("pubmed:", "europepmc:") == 0
    pages = {
        "europepmc/": apache_listing(servers.root / "europepmc", "/europepmc/"),
        **{
            f"pubmed/{name}/": ncbi_listing(servers.root / "pubmed" / name, f"/pubmed/{name}/")
            for name in ("baseline", "updatefiles")
        },
    }
    for path, page in pages.items():
        page = re.sub(rb"(\d{4})-(\d\d)-(\d\d) \d\d:\d\d", rb"\3.\2.\1", page)
        servers.schedule_fault(path, FixedBody(page), times=None)
    before = len(servers.requests)
    for _ in range(2):
        capsys.readouterr()
        assert fetch("pubmed:", "europepmc:") == 0
        assert "no date that can be read for PMC1_PMC20.xml.gz and 1 other" in capsys.readouterr().err
    assert not [request for request in servers.requests[before:] if request.path.endswith(".gz")]


def test_temporary_files_of_a_killed_run_are_removed(fetch: Fetch, tmp_path: Path) -> None:
    assert fetch("pmc:") == 0
    temporary_files = [
        tmp_path / f"mirror/pmc/{folder}/.tmp-0123"
        for folder in ("xml/PMC0120xxxx", "metadata", "selected", ".", "inventory")
    ]
    for path in temporary_files:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"half")
    assert fetch("pmc:") == 0
    assert not [path for path in temporary_files if path.exists()]


def test_broken_transfer_of_an_inventory_is_resumed(
    servers: FakeServer, fetch: Fetch, tmp_path: Path
) -> None:
    pattern = "bucket/inventory-reports/*-0.csv.gz"
    servers.schedule_fault(pattern, TruncatedBody(20), times=1)
    assert fetch("pmc:") == 0
    assert [request.range for request in servers.requests_for(pattern)] == ["", "bytes=20-"]
    FakeBucket(servers.root / "bucket").publish_inventory(NEXT_DAY)
    servers.schedule_fault(pattern, TruncatedBody(30), times=1)
    servers.schedule_fault(pattern, ServiceUnavailable(), times=4)
    assert fetch("pmc:") == 1
    servers.clear_faults()
    assert fetch("pmc:") == 0
    assert [request.range for request in servers.requests_for(pattern)][-1] == "bytes=30-"
    assert not list((tmp_path / "mirror/pmc/inventory").iterdir())


def test_transient_faults_are_retried(servers: FakeServer, fetch: Fetch, tmp_path: Path) -> None:
    servers.schedule_fault("bucket/", ServiceUnavailable())
    servers.schedule_fault("bucket/inventory-reports/*manifest.json", ConnectionReset(20))
    servers.schedule_fault("bucket/inventory-reports/*.csv.gz", CorruptByte(30))
    servers.schedule_fault("bucket/metadata/*", ServiceUnavailable("0"), times=3)
    servers.schedule_fault("bucket/*.xml", CorruptByte(10), times=2)
    servers.schedule_fault("bucket/*.xml", ConnectionReset(10))
    servers.schedule_fault("europepmc/PMC1_PMC20.xml.gz", CorruptByte(20))
    assert fetch("pmc:", "europepmc:") == 0
    assert servers.pending_faults == []
    assert list_mirrored_articles(tmp_path) == set(SELECTED)


def test_article_that_cannot_be_fetched_is_reported_and_the_rest_is_fetched(
    servers: FakeServer, fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    servers.schedule_fault("bucket/PMC1200002.1/*.xml", NotFound(), times=None)
    assert fetch("pmc:", options=("--max-rejected", 0)) == 3
    assert "PMC1200002.1.xml is not there" in capsys.readouterr().err
    assert not (tmp_path / "mirror/manifest.json").exists()
    assert list_mirrored_articles(tmp_path) == {"PMC1200001.1", "PMC1200007.1", "PMC12900001.10"}
    assert fetch("pmc:") == 0
    assert "PMC1200002.1.xml is not there" in capsys.readouterr().err
    assert load_mirror_manifest(tmp_path)["articles"]["failed"] == 1
    servers.clear_faults()
    assert fetch("pmc:") == 0
    assert "PMC1200002.1" in list_mirrored_articles(tmp_path)


def test_connection_limit_is_respected(servers: FakeServer, fetch: Fetch, tmp_path: Path) -> None:
    bucket = FakeBucket(servers.root / "bucket")
    for pmcid in range(1210000, 1210100):
        bucket.put_article(FakeArticle(pmcid))
    bucket.publish_inventory(NEXT_DAY)
    servers.latency = 0.01
    completed = run_beam(
        "run", "fetch", *make_arguments(servers, tmp_path, ("pmc:",)), "--workers", 2, "--connections", 5
    )
    assert completed.returncode == 0, completed.stderr
    assert servers.max_open_connections <= 5
    assert len(list_mirrored_articles(tmp_path)) == 104


def test_a_dry_run_writes_nothing(
    servers: FakeServer, fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inputs = ("pubmed:", "europepmc:", "pmc:")
    assert fetch(*inputs, options=("--dry-run",)) == 0
    assert not (tmp_path / "mirror").exists()
    stdout = capsys.readouterr().out
    assert stdout.count("to fetch:  2 files") == 2
    assert "newest inventory 2026-11-01" in stdout
    assert fetch(*inputs) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "mirror").rglob("*")}
    assert fetch(*inputs, options=("--dry-run",)) == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "mirror").rglob("*")} == before
    stdout = capsys.readouterr().out
    assert "mirrored:  4\n" in stdout
    assert "unknown:   0," in stdout


def test_default_mirror_is_in_the_working_directory(
    servers: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"{servers.url}pubmed/"
    assert cli.main(["run", "fetch", "--input", "pubmed:", "--pubmed-url", url, "--workers", "1"]) == 0
    assert (tmp_path / "mirror/manifest.json").exists()


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        ((), (), "--input is missing"),
        (("folder/",), (), "is no source that can be fetched"),
        (("pmc:",), ("--licences", "none"), "none selects nothing"),
    ],
)
def test_a_wrong_command_line_is_explained(
    fetch: Fetch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    inputs: tuple[str, ...],
    options: tuple[str, ...],
    message: str,
) -> None:
    assert fetch(*inputs, options=options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "mirror").exists()


@pytest.mark.parametrize("file", ["manifest.json", ".bioshards/config.json"])
def test_mirror_into_an_output_directory_is_refused(
    fetch: Fetch, tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str
) -> None:
    """The output would lose its manifest and could not be resumed."""
    existing_file = tmp_path / "mirror" / file
    existing_file.parent.mkdir(parents=True)
    existing_file.write_text('{"pipeline": "pubmed_to_shards"}')
    assert fetch("pubmed:") == 2
    assert "is an output of pubmed_to_shards. Choose another folder" in capsys.readouterr().err
    assert existing_file.read_text() == '{"pipeline": "pubmed_to_shards"}'
    assert not (tmp_path / "mirror" / "pubmed").exists()
