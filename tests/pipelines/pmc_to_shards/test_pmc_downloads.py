"""Tests of ``pmc_to_shards --input pmc:`` and ``europepmc:`` with fake servers.

The output must equal that of local files, whatever faults occur.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bioshards import show
from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines.inputs.downloads import format_size
from tests.support.corpus.jats_articles import article_xml
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.servers.fake_pmc_bucket import ARTICLES, FakeArticle, FakeBucket, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import CorruptByte, NotFound
from tests.support.servers.server_pages import create_europepmc_server

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
DAY, NEXT_DAY = "2026-11-01", "2026-11-02"
KEPT_IDS = [*(f"pmc:PMC120000{n}.1" for n in (1, 2, 7)), "pmc:PMC12900001.10"]
PACKAGES = {
    "PMC1_PMC20.xml.gz": [article_xml(1, "One. Two."), article_xml(2, licence=None)],
    "PMC21_PMC40.xml.gz": [article_xml(21), article_xml(22)],
}

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("shorten_retries")]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FakeServer]:
    root = tmp_path / "servers"
    create_bucket(root / "bucket", ARTICLES, DAY)
    create_europepmc_server(root, PACKAGES)
    with FakeServer(root) as server:
        yield server


@pytest.fixture
def run_pipeline(servers: FakeServer, tmp_path: Path, run_pmc: Run) -> Run:
    """``beam run pmc_to_shards`` on inputs from the fake servers, into ``tmp_path/out`` by default."""

    def call(*inputs: str, options: tuple[object, ...] = (), output: str = "out") -> int:
        names = (word for name in inputs for word in ("--input", name))
        urls = ("--pmc-url", f"{servers.url}bucket/", "--europepmc-url", f"{servers.url}europepmc/")
        return run_pmc(*names, *urls, "--connections", 8, "--output", tmp_path / output, *options)

    return call


def open_bucket(tmp_path: Path) -> FakeBucket:
    return FakeBucket(tmp_path / "servers/bucket")


def digest_without_manifest(output: Path) -> dict[str, str]:
    """Return the digests of published files except the manifest, which records where inputs came from."""
    return {name: digest for name, digest in published_digests(output).items() if name != "manifest.json"}


def test_pmcs_articles_are_fetched_and_processed(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run
) -> None:
    assert run_pipeline("pmc:") == 0
    documents = load_documents(tmp_path / "out")
    assert list(documents) == KEPT_IDS
    # These come from PMC's metadata; the XML has none of them.
    first = documents["pmc:PMC1200001.1"]
    assert (first["pmid"], first["doi"], first["licence"]) == (41, "10.5555/41", "CC-BY")
    assert documents["pmc:PMC1200002.1"]["licence"] == "CC0"
    assert [id_ for id_, row in documents.items() if row["retracted"]] == ["pmc:PMC1200007.1"]
    assert first["origin"]["file"].startswith("PMC1200001.1-")
    assert load_manifest(tmp_path / "out")["funnel"] == {"records": 4, "kept": 4}
    # Articles that are not selected are not fetched.
    assert len(servers.requests_for("bucket/PMC*.xml")) == 4


def test_the_mirror_gives_the_same_shards_without_a_network(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, run_pmc: Run
) -> None:
    assert run_pipeline("pmc:", "europepmc:") == 0
    before = len(servers.requests)
    mirror_inputs = [
        word for name in ("pmc", "europepmc") for word in ("--input", tmp_path / "mirror" / name)
    ]
    assert run_pmc(*mirror_inputs, "--output", tmp_path / "again") == 0
    assert digest_without_manifest(tmp_path / "again") == digest_without_manifest(tmp_path / "out")
    assert len(servers.requests) == before
    shutil.rmtree(tmp_path / "again")
    assert run_pmc("--input", tmp_path / "mirror", "--output", tmp_path / "again") == 0
    assert digest_without_manifest(tmp_path / "again") == digest_without_manifest(tmp_path / "out")


def test_europe_pmcs_packages_are_fetched_and_processed(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, run_pmc: Run
) -> None:
    assert run_pipeline("europepmc:") == 0
    assert list(load_documents(tmp_path / "out")) == ["pmc:PMC1.1", "pmc:PMC21.1", "pmc:PMC22.1"]
    manifest = load_manifest(tmp_path / "out")
    assert [item["file"] for item in manifest["inputs"]] == list(PACKAGES)
    assert set(manifest["run"]["retrieved_at"]["files"]) == set(PACKAGES)
    assert run_pmc("--input", servers.root / "europepmc", "--output", tmp_path / "local") == 0
    assert digest_without_manifest(tmp_path / "out") == digest_without_manifest(tmp_path / "local")


def test_rerun_without_changes_does_nothing(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    assert run_pipeline("europepmc:") == 0
    capsys.readouterr()
    assert run_pipeline("europepmc:") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert run_pipeline("europepmc:", options=("--dry-run",)) == 0
    assert "2 sources before, 0 sources to do" in capsys.readouterr().out
    assert run_pipeline("pmc:", output="pmc") == 0
    modified = {path: path.stat().st_mtime_ns for path in (tmp_path / "pmc").glob("data/*")}
    before, request_count = published_digests(tmp_path / "pmc"), len(servers.requests_for("bucket/*.xml"))
    assert run_pipeline("pmc:", output="pmc") == 0
    assert published_digests(tmp_path / "pmc") == before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "pmc").glob("data/*")} == modified
    assert len(servers.requests_for("bucket/*.xml")) == request_count


def test_changes_in_the_bucket_are_applied(servers: FakeServer, tmp_path: Path, run_pipeline: Run) -> None:
    assert run_pipeline("pmc:") == 0
    [unchanged] = (tmp_path / "out").glob("data/data-PMC1290xxxx*")
    modified = unchanged.stat().st_mtime_ns
    bucket = open_bucket(tmp_path)
    bucket.put_article(FakeArticle(1200001, text="It was mended. Yes."))
    bucket.put_article(FakeArticle(1200002, version=2, text="A newer one. Yes."))
    bucket.put_article(FakeArticle(1200007, retracted=False))
    bucket.put_article(FakeArticle(1200003, licence="CC BY"))
    bucket.publish_inventory(NEXT_DAY)
    assert run_pipeline("pmc:") == 0
    documents = load_documents(tmp_path / "out")
    assert list(documents) == [
        *("pmc:PMC1200001.1", "pmc:PMC1200002.2", "pmc:PMC1200003.1", "pmc:PMC1200007.1"),
        "pmc:PMC12900001.10",
    ]
    assert "It was mended." in documents["pmc:PMC1200001.1"]["sentences"]
    assert not documents["pmc:PMC1200007.1"]["retracted"]
    assert unchanged.stat().st_mtime_ns == modified
    assert run_pipeline("pmc:", output="whole") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "whole")


def test_removal_of_many_articles_needs_a_word(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    bucket, articles = open_bucket(tmp_path), [FakeArticle(number) for number in range(1200020, 1200027)]
    for article in articles:
        bucket.put_article(article)
    bucket.publish_inventory(DAY)
    assert run_pipeline("pmc:") == 0
    mirrored = sorted((tmp_path / "mirror/pmc/xml").rglob("*.xml"))
    published = published_digests(tmp_path / "out")
    for article in articles:
        bucket.put_article(article, xml_url=None)
    bucket.put_article(FakeArticle(12900002))
    bucket.publish_inventory(NEXT_DAY)
    capsys.readouterr()
    for options, is_said in (((), True), (("--allow-removals",), False)):
        assert run_pipeline("pmc:", options=("--licences", "CC0", "--dry-run", *options), output="dry") == 0
        stdout = capsys.readouterr().out
        assert ("notice: a run would stop: 10 of the 11 articles" in stdout) is is_said
        assert ("--allow-removals" in stdout) is is_said
    assert not (tmp_path / "dry").exists()
    assert run_pipeline("pmc:") == 1
    stderr = capsys.readouterr().err
    assert published_digests(tmp_path / "out") == published, "the finished output is complete"
    assert len(load_documents(tmp_path / "out")) == 11
    assert "7 of the 11 articles" in stderr
    assert "PMC1200020.1: no-xml" in stderr
    assert "--allow-removals" in stderr
    assert sorted((tmp_path / "mirror/pmc/xml").rglob("*.xml")) == mirrored
    assert run_pipeline("pmc:", options=("--allow-removals",)) == 0
    assert "             7  withdrawn from the mirror: no-xml\n" in capsys.readouterr().out
    assert list(load_documents(tmp_path / "out")) == [*KEPT_IDS, "pmc:PMC12900002.1"]


def test_inventory_without_a_checksum_is_named(tmp_path: Path, run_pipeline: Run, capsys: Capture) -> None:
    for path in (tmp_path / "servers/bucket").rglob("manifest.checksum"):
        path.unlink()
    assert run_pipeline("pmc:", options=("--dry-run",)) == 0
    assert "notice: PMC's inventory of 2026-11-01T01-00Z has no manifest.checksum" in capsys.readouterr().out
    assert run_pipeline("pmc:") == 0
    assert "notice: PMC's inventory of 2026-11-01T01-00Z has no manifest.checksum" in capsys.readouterr().err
    [notice] = load_manifest(tmp_path / "out")["run"]["notices"]
    assert "has no manifest.checksum" in notice


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--licences", "CC-BY,CC-BY-NC"), [KEPT_IDS[0], "pmc:PMC1200003.1", *KEPT_IDS[2:]]),
        (("--keep-ocr",), [*KEPT_IDS[:2], "pmc:PMC1200006.1", *KEPT_IDS[2:]]),
        (("--preset", "bio-electra-pp"), [*(f"pmc:PMC120000{n}.1" for n in (1, 2, 3, 4, 5, 7)), KEPT_IDS[3]]),
    ],
)
def test_only_articles_that_the_options_keep_are_fetched(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, options: tuple[str, ...], expected: list[str]
) -> None:
    assert run_pipeline("pmc:", options=options) == 0
    assert list(load_documents(tmp_path / "out")) == expected
    assert len(servers.requests_for("bucket/PMC*.xml")) == len(expected)


def test_a_selection_of_ids_is_fetched_in_whole_ranges(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    assert run_pipeline("pmc:[12900000-12900009]") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS[3:]
    assert run_pipeline("pmc:[5-9]", output="none") == 2
    assert "selects no article; there are PMC0120xxxx to PMC1290xxxx" in capsys.readouterr().err


def test_an_article_that_cannot_be_fetched_is_tried_again_by_the_next_run(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    servers.schedule_fault("bucket/PMC1200001.1/*.xml", CorruptByte(20), times=None)
    assert run_pipeline("pmc:", options=("--max-rejected", 0)) == 3
    stderr = capsys.readouterr().err
    assert "1 articles of 4 could not be fetched: more than --max-rejected 0 allows" in stderr
    assert not (tmp_path / "out/manifest.json").exists()
    assert run_pipeline("pmc:", options=("--max-rejected", 0.5)) == 0
    assert "rerun the command to retry them" in capsys.readouterr().err
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS[1:]
    servers.clear_faults()
    assert run_pipeline("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS

    assert run_pipeline("pmc:", output="whole") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "whole")


def test_articles_whose_metadata_cannot_be_read_stay_and_are_named(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    assert run_pipeline("pmc:") == 0
    mirrored = sorted((tmp_path / "mirror/pmc/xml").rglob("*.xml"))
    for article in (ARTICLES[0], ARTICLES[1], ARTICLES[-1]):
        open_bucket(tmp_path).put_article(article, is_retracted=None)
    open_bucket(tmp_path).publish_inventory(NEXT_DAY)
    for options, exit_code in ((("--max-rejected", 0), 3), (("--max-rejected", 0.9), 0)):
        capsys.readouterr()
        assert run_pipeline("pmc:", options=options) == exit_code
        stderr = capsys.readouterr().err
        assert "3 articles" in stderr
        assert "metadata/PMC1200001.1.json: Expected `bool`, got `null` - at `$.is_retracted`" in stderr
        assert sorted((tmp_path / "mirror/pmc/xml").rglob("*.xml")) == mirrored
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS


def test_damaged_article_of_the_mirror_is_fetched_again(tmp_path: Path, run_pipeline: Run) -> None:
    """A bit has flipped on the disk; the first reader finds it, and the next run mends it."""
    assert run_pipeline("pmc:", output="before") == 0
    [path] = (tmp_path / "mirror").rglob("PMC1200001.1-*.xml")
    info, data = path.stat(), path.read_bytes()
    path.write_bytes(data.replace(b"Nothing", b"nothing", 1))
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
    assert run_pipeline("pmc:", options=("--max-rejected", 0.5)) == 0
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS[1:]
    assert run_pipeline("pmc:") == 0
    assert path.read_bytes() == data
    assert digest_without_manifest(tmp_path / "out") == digest_without_manifest(tmp_path / "before")


def test_mended_article_of_an_offline_mirror_is_read(tmp_path: Path, run_pipeline: Run, run_pmc: Run) -> None:
    """The list of the articles is as before."""
    assert run_pipeline("pmc:", output="before") == 0
    [path] = (tmp_path / "mirror").rglob("PMC1200001.1-*.xml")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"Nothing", b"nothing", 1))
    arguments = ("--input", tmp_path / "mirror/pmc", "--output", tmp_path / "out", "--max-rejected", 0.5)
    assert run_pmc(*arguments) == 0
    path.write_bytes(data)
    assert run_pmc(*arguments) == 0
    assert digest_without_manifest(tmp_path / "out") == digest_without_manifest(tmp_path / "before")


def test_article_missing_from_the_bucket_is_no_error(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run
) -> None:
    servers.schedule_fault("bucket/metadata/PMC12900001*", NotFound(), times=None)
    assert run_pipeline("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT_IDS[:3]


def test_a_package_that_cannot_be_fetched_stops_publication(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    servers.schedule_fault("europepmc/PMC21_PMC40.xml.gz", CorruptByte(20), times=None)
    assert run_pipeline("europepmc:", "pmc:") == 3
    stderr = capsys.readouterr().err
    assert "1 of 4 files could not be fetched" in stderr
    assert "PMC21_PMC40.xml.gz" in stderr
    servers.clear_faults()
    assert run_pipeline("europepmc:", "pmc:") == 0
    assert len(load_documents(tmp_path / "out")) == 7


def test_missing_network_stops_the_run_before_writing(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    for name in ("pmc", "europepmc"):
        url = (f"--{name}-url", "http://127.0.0.1:9/")
        assert run_pmc("--input", f"{name}:", *url, "--output", tmp_path / "out") == 1
        stderr = capsys.readouterr().err
        assert "http://127.0.0.1:9/" in stderr
        assert "--input MIRROR/pmc" in stderr
        assert not (tmp_path / "out").exists()


def test_article_of_a_mirror_is_shown_beside_its_source(
    tmp_path: Path, run_pipeline: Run, capsys: Capture
) -> None:
    assert run_pipeline("pmc:") == 0
    capsys.readouterr()
    for id_ in load_documents(tmp_path / "out"):
        assert show.main([str(tmp_path / "out"), "--id", id_, "--with-source"]) == 0
        assert "<article" in capsys.readouterr().out


def test_dry_run_on_a_mirror_sums_the_sizes_of_listed_articles(
    tmp_path: Path, run_pipeline: Run, run_pmc: Run, capsys: Capture
) -> None:
    assert run_pipeline("pmc:") == 0
    capsys.readouterr()
    size = sum(path.stat().st_size for path in (tmp_path / "mirror/pmc/xml").rglob("*.xml"))
    lists = str(tmp_path / "mirror/pmc/selected/*")
    storage = LocalStorage()
    assert sum(article_ranges.sum_selected_bytes(storage, info.path) for info in storage.glob(lists)) == size
    assert run_pmc("--input", tmp_path / "mirror/pmc", "--output", tmp_path / "x", "--dry-run") == 0
    assert f"2 sources to do, {format_size(size)}\n" in capsys.readouterr().out
    assert not (tmp_path / "x").exists()


def test_articles_from_mirror_and_server_are_read_once(
    servers: FakeServer, tmp_path: Path, run_pipeline: Run, run_pmc: Run
) -> None:
    assert run_pipeline("pmc:") == 0
    assert run_pipeline("pmc:", str(tmp_path / "mirror/pmc"), output="twice") == 0
    assert digest_without_manifest(tmp_path / "out") == digest_without_manifest(tmp_path / "twice")
    names = LocalStorage().list_names(str(tmp_path / "mirror/pmc/selected"))
    assert names == ["PMC0120xxxx.parquet", "PMC1290xxxx.parquet"]
