"""Full text from stand-ins of its servers: ``--input pmc:`` and ``europepmc:`` fetched and processed at once.

What a run publishes must depend on the articles alone, not on where they came from or what went wrong.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bioshards.corpus.download import http_client
from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines.dry_run import cost
from bioshards.pipelines.inputs import downloads
from tests.support.corpus.jats_articles import article_xml
from tests.support.outputs import load_documents, load_manifest, published_digests
from tests.support.servers.fake_pmc_bucket import FakeArticle, FakeBucket, create_bucket
from tests.support.servers.fake_server import CorruptByte, FakeServer, NotFound, ServiceUnavailable
from tests.support.servers.server_pages import create_europepmc_server

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
DAY, NEXT_DAY = "2026-11-01", "2026-11-02"
ARTICLES = [
    FakeArticle(1200001, pmid=41, doi="10.5555/41"),
    FakeArticle(1200002, licence="CC0"),
    FakeArticle(1200003, licence="CC BY-NC"),
    FakeArticle(1200004, licence=None),
    FakeArticle(1200005, licence="TDM", open_access=False, manuscript=True),
    FakeArticle(1200006, ocr=True),
    FakeArticle(1200007, retracted=True),
    FakeArticle(12900001, version=2),
    FakeArticle(12900001, version=10, text="The tenth version is the newest."),
]
KEPT = [*(f"pmc:PMC120000{n}.1" for n in (1, 2, 7)), "pmc:PMC12900001.10"]
PACKAGES = {
    "PMC1_PMC20.xml.gz": [article_xml(1, "One. Two."), article_xml(2, licence=None)],
    "PMC21_PMC40.xml.gz": [article_xml(21), article_xml(22)],
}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[FakeServer]:
    root = tmp_path / "servers"
    create_bucket(root / "bucket", ARTICLES, DAY)
    create_europepmc_server(root, PACKAGES)
    with FakeServer(root) as server:
        yield server


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    patience = RetryPolicy(read_timeout=1, initial_backoff=0.05, max_backoff=0.2, max_attempts=4)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (patience,))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", patience)


@pytest.fixture
def bring(servers: FakeServer, tmp_path: Path, run_pmc: Run) -> Run:
    """``beam run pmc_to_shards`` of these inputs from the stand-ins into ``tmp_path/out``."""

    def call(*inputs: str, more: tuple[object, ...] = (), output: str = "out") -> int:
        names = (word for name in inputs for word in ("--input", name))
        urls = ("--pmc-url", f"{servers.url}bucket/", "--europepmc-url", f"{servers.url}europepmc/")
        return run_pmc(*names, *urls, "--connections", 8, "--output", tmp_path / output, *more)

    return call


def bucket(tmp_path: Path) -> FakeBucket:
    return FakeBucket(tmp_path / "servers/bucket")


def published(output: Path) -> dict[str, str]:
    """What a run publishes, but for the manifest, which says where the files came from."""
    return {name: digest for name, digest in published_digests(output).items() if name != "manifest.json"}


def test_pmcs_articles_are_fetched_and_processed(servers: FakeServer, tmp_path: Path, bring: Run) -> None:
    assert bring("pmc:") == 0
    found = load_documents(tmp_path / "out")
    assert list(found) == KEPT
    # The XML says nothing of these, PMC's metadata do.
    first = found["pmc:PMC1200001.1"]
    assert (first["pmid"], first["doi"], first["licence"]) == (41, "10.5555/41", "CC-BY")
    assert found["pmc:PMC1200002.1"]["licence"] == "CC0"
    assert [id_ for id_, row in found.items() if row["retracted"]] == ["pmc:PMC1200007.1"]
    assert first["origin"]["file"].startswith("PMC1200001.1-")
    assert load_manifest(tmp_path / "out")["funnel"] == {"records": 4, "kept": 4}
    # What is not selected is not fetched either.
    assert len(servers.requests_for("bucket/PMC*.xml")) == 4


def test_the_mirror_gives_the_same_shards_without_a_network(
    servers: FakeServer, tmp_path: Path, bring: Run, run_pmc: Run
) -> None:
    assert bring("pmc:", "europepmc:") == 0
    before = len(servers.requests)
    both = [word for name in ("pmc", "europepmc") for word in ("--input", tmp_path / "mirror" / name)]
    assert run_pmc(*both, "--output", tmp_path / "again") == 0
    assert published(tmp_path / "again") == published(tmp_path / "out")
    assert len(servers.requests) == before
    shutil.rmtree(tmp_path / "again")
    assert run_pmc("--input", tmp_path / "mirror", "--output", tmp_path / "again") == 0
    assert published(tmp_path / "again") == published(tmp_path / "out")


def test_europe_pmcs_packages_are_fetched_and_processed(
    servers: FakeServer, tmp_path: Path, bring: Run, run_pmc: Run
) -> None:
    assert bring("europepmc:") == 0
    assert list(load_documents(tmp_path / "out")) == ["pmc:PMC1.1", "pmc:PMC21.1", "pmc:PMC22.1"]
    facts = load_manifest(tmp_path / "out")
    assert [item["file"] for item in facts["inputs"]] == list(PACKAGES)
    assert set(facts["run"]["retrieved_at"]["files"]) == set(PACKAGES)
    assert run_pmc("--input", servers.root / "europepmc", "--output", tmp_path / "local") == 0
    assert published(tmp_path / "out") == published(tmp_path / "local")


def test_nothing_new_is_nothing_to_do(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    assert bring("europepmc:") == 0
    capsys.readouterr()
    assert bring("europepmc:") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert bring("pmc:", output="pmc") == 0
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "pmc").glob("data-*")}
    before, mirror = published_digests(tmp_path / "pmc"), len(servers.requests_for("bucket/*.xml"))
    assert bring("pmc:", output="pmc") == 0
    assert published_digests(tmp_path / "pmc") == before
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "pmc").glob("data-*")} == written
    assert len(servers.requests_for("bucket/*.xml")) == mirror


def test_what_has_changed_in_the_bucket_is_taken_over(
    servers: FakeServer, tmp_path: Path, bring: Run
) -> None:
    assert bring("pmc:") == 0
    [untouched] = (tmp_path / "out").glob("data-PMC1290xxxx*")
    when = untouched.stat().st_mtime_ns
    there = bucket(tmp_path)
    there.put_article(FakeArticle(1200001, text="It was mended. Yes."))
    there.put_article(FakeArticle(1200002, version=2, text="A newer one. Yes."))
    there.put_article(FakeArticle(1200007, retracted=False))
    there.put_article(FakeArticle(1200003, licence="CC BY"))
    there.publish_inventory(NEXT_DAY)
    assert bring("pmc:") == 0
    found = load_documents(tmp_path / "out")
    assert list(found) == [
        *("pmc:PMC1200001.1", "pmc:PMC1200002.2", "pmc:PMC1200003.1", "pmc:PMC1200007.1"),
        "pmc:PMC12900001.10",
    ]
    assert "It was mended." in found["pmc:PMC1200001.1"]["sentences"]
    assert not found["pmc:PMC1200007.1"]["retracted"]
    assert untouched.stat().st_mtime_ns == when
    assert bring("pmc:", output="whole") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "whole")


def test_a_withdrawn_article_goes(servers: FakeServer, tmp_path: Path, bring: Run) -> None:
    bucket(tmp_path).put_article(FakeArticle(1200020))
    for number in range(1200030, 1200050):  # a tenth of the inventory may go, more is taken for a mistake
        bucket(tmp_path).put_article(FakeArticle(number, licence="CC BY-ND"))
    bucket(tmp_path).publish_inventory(DAY)
    assert bring("pmc:") == 0
    bucket(tmp_path).remove(1200020)
    bucket(tmp_path).publish_inventory(NEXT_DAY)
    assert bring("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--licences", "CC0"), ["pmc:PMC1200002.1"]),
        (("--licences", "CC-BY,CC-BY-NC"), [KEPT[0], "pmc:PMC1200003.1", *KEPT[2:]]),
        (("--licences", "TDM"), ["pmc:PMC1200005.1"]),
        (("--drop-retracted",), [*KEPT[:2], KEPT[3]]),
        (("--keep-ocr",), [*KEPT[:2], "pmc:PMC1200006.1", *KEPT[2:]]),
        (("--preset", "bio-electra-pp"), [*(f"pmc:PMC120000{n}.1" for n in (1, 2, 3, 4, 5, 7)), KEPT[3]]),
    ],
)
def test_only_what_the_rules_keep_is_fetched(
    servers: FakeServer, tmp_path: Path, bring: Run, options: tuple[str, ...], expected: list[str]
) -> None:
    assert bring("pmc:", more=options) == 0
    assert list(load_documents(tmp_path / "out")) == expected
    assert len(servers.requests_for("bucket/PMC*.xml")) == len(expected)


def test_a_selection_of_ids_is_fetched_in_whole_ranges(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    assert bring("pmc:[12900000-12900009]") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT[3:]
    assert bring("pmc:[5-9]", output="none") == 2
    assert "selects no article; there are PMC0120xxxx to PMC1290xxxx" in capsys.readouterr().err


def test_an_article_that_cannot_be_fetched_is_tried_again_by_the_next_run(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    servers.schedule_fault("bucket/PMC1200001.1/*.xml", CorruptByte(20), times=None)
    assert bring("pmc:") == 3
    said = capsys.readouterr().err
    assert "1 articles of 4 could not be fetched: more than --max-rejected 0.001 allows" in said
    assert not (tmp_path / "out/manifest.json").exists()
    assert bring("pmc:", more=("--max-rejected", 0.5)) == 0
    assert "rerun the command to retry them" in capsys.readouterr().err
    assert list(load_documents(tmp_path / "out")) == KEPT[1:]
    servers.clear_faults()
    assert bring("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT
    assert bring("pmc:", output="whole") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "whole")


def test_a_range_of_which_nothing_can_be_fetched_is_not_forgotten(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    servers.schedule_fault("bucket/metadata/PMC12900001*", CorruptByte(20), times=None)
    assert bring("pmc:") == 3
    assert "1 articles of 4 could not be fetched" in capsys.readouterr().err
    servers.clear_faults()
    assert bring("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT


def test_an_article_that_the_bucket_has_no_longer_is_no_fault(
    servers: FakeServer, tmp_path: Path, bring: Run
) -> None:
    servers.schedule_fault("bucket/metadata/PMC12900001*", NotFound(), times=None)
    assert bring("pmc:") == 0
    assert list(load_documents(tmp_path / "out")) == KEPT[:3]


def test_a_package_that_cannot_be_fetched_stops_publication(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    servers.schedule_fault("europepmc/PMC21_PMC40.xml.gz", CorruptByte(20), times=None)
    assert bring("europepmc:", "pmc:") == 3
    said = capsys.readouterr().err
    assert "1 of 4 files could not be fetched" in said
    assert "PMC21_PMC40.xml.gz" in said
    servers.clear_faults()
    assert bring("europepmc:", "pmc:") == 0
    assert len(load_documents(tmp_path / "out")) == 7


def test_an_article_whose_xml_is_wrong_is_rejected_alone(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    bucket(tmp_path).put_article(FakeArticle(1200001, text="One of many words. " * 4000 + "An <i>odd one."))
    bucket(tmp_path).publish_inventory(DAY)
    assert bring("pmc:") == 3
    assert "1 of 4 records were rejected (malformed-xml: 1)" in capsys.readouterr().err
    assert bring("pmc:", more=("--max-rejected", 0.5)) == 0
    assert list(load_documents(tmp_path / "out")) == KEPT[1:]


def test_a_network_that_goes_in_the_middle_leaves_a_run_to_continue(
    servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture
) -> None:
    servers.schedule_fault("bucket/PMC12900001*.xml", ServiceUnavailable(), times=None)
    servers.schedule_fault("bucket/PMC*.xml", ServiceUnavailable(), times=None)
    assert bring("pmc:") != 0
    said = capsys.readouterr().err
    assert "503" in said or "could not be fetched" in said
    servers.clear_faults()
    assert bring("pmc:") == 0
    assert bring("pmc:", output="whole") == 0
    assert published_digests(tmp_path / "out") == published_digests(tmp_path / "whole")


def test_no_network_is_said_soon_and_begins_nothing(tmp_path: Path, run_pmc: Run, capsys: Capture) -> None:
    for name in ("pmc", "europepmc"):
        url = (f"--{name}-url", "http://127.0.0.1:9/")
        assert run_pmc("--input", f"{name}:", *url, "--output", tmp_path / "out") == 1
        said = capsys.readouterr().err
        assert "http://127.0.0.1:9/" in said
        assert "--input MIRROR/pmc" in said
        assert not (tmp_path / "out").exists()


def test_a_dry_run_writes_nothing(servers: FakeServer, tmp_path: Path, bring: Run, capsys: Capture) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert bring("pmc:", "europepmc:", more=("--dry-run",)) == 0
    assert sorted(tmp_path.rglob("*")) == before
    said = capsys.readouterr().out
    assert "to fetch:  2 files" in said
    assert "newest inventory 2026-11-01" in said
    assert bring("pmc:", "europepmc:") == 0
    capsys.readouterr()
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    assert bring("pmc:", "europepmc:", more=("--dry-run",)) == 0
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == after
    said = capsys.readouterr().out
    assert "mirrored:  2 files" in said
    assert "mirrored:  4 of these" in said
    assert "2 sources before, 0 sources to do" in said


def test_a_dry_run_on_a_mirror_knows_the_articles_behind_its_lists(
    tmp_path: Path, bring: Run, run_pmc: Run, capsys: Capture
) -> None:
    assert bring("pmc:") == 0
    capsys.readouterr()
    size = sum(path.stat().st_size for path in (tmp_path / "mirror/pmc/xml").rglob("*.xml"))
    lists = str(tmp_path / "mirror/pmc/selected/*")
    storage = LocalStorage()
    assert (
        sum(article_ranges.sum_selected_bytes(storage, found.path) for found in storage.glob(lists)) == size
    )
    assert run_pmc("--input", tmp_path / "mirror/pmc", "--output", tmp_path / "x", "--dry-run") == 0
    assert f"{cost.ARTICLE_RATE.megabytes_per_second:.1f} MB/s each" in capsys.readouterr().out
    assert not (tmp_path / "x").exists()


def test_beside_local_files_each_article_is_there_once(
    servers: FakeServer, tmp_path: Path, bring: Run, run_pmc: Run
) -> None:
    assert bring("pmc:") == 0
    assert bring("pmc:", str(tmp_path / "mirror/pmc"), output="twice") == 0
    assert published(tmp_path / "out") == published(tmp_path / "twice")
    folder = LocalStorage().list_names(str(tmp_path / "mirror/pmc/selected"))
    assert folder == ["PMC0120xxxx.parquet", "PMC1290xxxx.parquet"]
