"""Fetching ranges of PMC's articles into the mirror."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bioshards.corpus.download.http_client import (
    NotFoundError,
    OutageError,
    RefusedError,
    UnreachableError,
)
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.article_ranges import RangeReport
from bioshards.corpus.download.pmc.metadata_cache import RangeUpdate
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.cloud.memory_store import MEMORY_OBJECTS
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    HTML_RESPONSE,
    TODAY,
    FakeArticle,
    FakeBucket,
    FolderConnection,
    SequentialPool,
    create_bucket,
)

FILES = LocalStorage()
DEFAULT = ArticleFilter()
FIRST = FakeArticle(1, text="An article with &amp; in it.")
SELECTED = ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]


@pytest.fixture
def bucket(tmp_path: Path) -> FakeBucket:
    articles = [
        FIRST,
        FakeArticle(11),
        FakeArticle(2, 9),
        FakeArticle(2, 10, text="The tenth version."),
        FakeArticle(3, licence="CC BY-NC"),
        FakeArticle(4, licence=None),
        FakeArticle(5, has_xml=False),
        FakeArticle(6, ocr=True),
        FakeArticle(7, open_access=False, manuscript=True, licence="TDM"),
        FakeArticle(8, retracted=True, pmid=88, doi="10.1000/8"),
        FakeArticle(12_345),
    ]
    return create_bucket(tmp_path / "bucket", articles, "2026-09-04")


@dataclass
class RangeFetch:
    """Fetches of the inventory and of the articles of a range, from a bucket into a mirror."""

    bucket: FakeBucket
    connection: FolderConnection
    mirror: str

    def __call__(self, articles: ArticleFilter = DEFAULT, number: int = 0) -> RangeReport:
        bucket_inventory.update_inventory(FILES, self.mirror, self.connection, BASE_URL)
        self.connection.requests.clear()
        pool = SequentialPool(self.connection)
        return article_ranges.fetch_range(RangeUpdate(FILES, self.mirror, pool, number, articles, TODAY))

    def read_selected(self, number: int = 0) -> pa.Table:
        return article_ranges.read_selected(FILES, self.mirror, number)

    def list_articles(self, number: int = 0) -> list[str]:
        """Return the names of the articles in a range, after checking their MD5s and the list of them."""
        folder = Path(self.mirror, "pmc", "xml", f"PMC{number:04d}xxxx")
        for path in folder.glob("*"):
            assert hashlib.md5(path.read_bytes()).hexdigest().startswith(path.stem[-8:])
        listed = self.read_selected(number).to_pylist()
        assert {(row["file"], row["bytes"]) for row in listed} == {
            (path.name, path.stat().st_size) for path in folder.glob("*")
        }
        return [row["file"][:-13] for row in listed]

    def publish_bytes(self, body: bytes, scheme: str = "s3://pmc-oa-opendata") -> None:
        """Publish an inventory in which the first article has these bytes."""
        md5 = hashlib.md5(body).hexdigest()
        self.bucket.put_article(FIRST, xml_url=f"{scheme}/PMC1.1/PMC1.1.xml?md5={md5}")
        self.bucket.write("PMC1.1/PMC1.1.xml", body)
        self.bucket.publish_inventory("2026-09-05")


@pytest.fixture
def fetch(tmp_path: Path, bucket: FakeBucket, connection: FolderConnection) -> RangeFetch:
    return RangeFetch(bucket, connection, str(tmp_path / "mirror"))


# Fetching


def test_selected_articles_are_fetched(fetch: RangeFetch) -> None:
    report = fetch()
    assert fetch.list_articles() == SELECTED
    expected = [FIRST, FakeArticle(2, 10, text="The tenth version."), FakeArticle(8), FakeArticle(11)]
    size = sum(len(article.xml) for article in expected)
    assert report == RangeReport(
        range_number=0,
        selected=4,
        mirrored=0,
        fetched=4,
        fetched_bytes=size,
        removed=0,
        withdrawn={},
        failures=(),
        dropped={
            "licence:CC-BY-NC": 1,
            "licence:TDM": 1,
            "licence:unknown": 1,
            "no-xml": 1,
            "not-newest": 1,
            "set:ocr": 1,
        },
    )
    assert len(fetch.connection.requests_containing(".xml")) == 4
    assert not fetch.connection.requests_containing("PMC2.9")


def test_ranges_are_independent(fetch: RangeFetch) -> None:
    assert fetch(number=1).selected == 1
    assert fetch.list_articles(1) == ["PMC12345.1"]
    assert fetch.list_articles() == []
    assert article_ranges.list_ranges(FILES, fetch.mirror) == [0, 1]
    assert fetch(number=1234).selected == 0


def test_interrupted_run_is_resumed(fetch: RangeFetch) -> None:
    fetch.connection.faults["PMC2.10/PMC2.10.xml"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        fetch()
    report = fetch()
    assert (report.mirrored, report.fetched) == (1, 3)
    assert fetch.connection.requests == [f"{name}/{name}.xml" for name in ("PMC2.10", "PMC8.1", "PMC11.1")]


def test_mirror_on_an_object_store(fetch: RangeFetch) -> None:
    storage, mirror = RemoteStorage(StoreOptions()), "mem://bucket/mirror"
    for day, fetched in (("2026-09-05", 4), ("2026-09-06", 1)):
        fetch.bucket.put_article(FakeArticle(11, text=f"Revised on {day}."))
        fetch.bucket.publish_inventory(day)
        bucket_inventory.update_inventory(storage, mirror, fetch.connection, BASE_URL)
        pool = SequentialPool(fetch.connection)
        report = article_ranges.fetch_range(RangeUpdate(storage, mirror, pool, 0, DEFAULT, TODAY))
        assert (report.selected, report.fetched, report.failures) == (4, fetched, ())
    assert report.removed == 1
    listed = article_ranges.read_selected(storage, mirror, 0)["file"].to_pylist()
    assert sorted(listed) == storage.list_names(f"{mirror}/pmc/xml/PMC0000xxxx")
    paths = [path for path in MEMORY_OBJECTS if path.startswith(mirror)]
    assert not [path for path in paths if TEMPORARY_PREFIX in path or path.endswith(".gz")]


# Removal


@pytest.mark.parametrize(
    ("change", "remaining"),
    [
        (lambda bucket: bucket.put_article(FakeArticle(1, 2)), ["PMC1.2", *SELECTED[1:]]),
        (lambda bucket: bucket.put_article(replace(FIRST, text="Revised.")), SELECTED),
        (lambda bucket: bucket.remove(1), SELECTED[1:]),
        (lambda bucket: bucket.put_article(replace(FIRST, licence="CC BY-NC")), SELECTED[1:]),
        (lambda bucket: bucket.remove(2, 10), ["PMC1.1", "PMC2.9", "PMC8.1", "PMC11.1"]),
    ],
)
def test_mirror_follows_changes_of_the_bucket(
    fetch: RangeFetch, change: Callable[[FakeBucket], object], remaining: list[str]
) -> None:
    fetch()
    change(fetch.bucket)
    fetch.bucket.publish_inventory("2026-09-05")
    report = fetch()
    assert fetch.list_articles() == remaining
    assert (report.removed, report.failures) == (1, ())
    assert report.fetched == len(remaining) - 3


def test_mirror_follows_changes_of_the_filter(fetch: RangeFetch) -> None:
    fetch()
    report = fetch(ArticleFilter(licences=frozenset({"CC-BY-NC", "TDM"}), drop_retracted=True))
    assert fetch.list_articles() == ["PMC3.1", "PMC7.1"]
    assert (report.fetched, report.removed) == (2, 4)
    assert fetch(ArticleFilter(versions="all")).selected == 5
    assert fetch.list_articles() == ["PMC1.1", "PMC2.9", "PMC2.10", "PMC8.1", "PMC11.1"]


def test_unrelated_files_are_kept(fetch: RangeFetch) -> None:
    unrelated = Path(fetch.mirror, "pmc/xml/PMC0000xxxx/notes.txt")
    unrelated.parent.mkdir(parents=True)
    unrelated.write_text("ours")
    assert fetch().removed == 0
    assert unrelated.exists()


# Failures


@pytest.mark.parametrize(
    ("faults", "reason", "detail"),
    [
        ([HTML_RESPONSE, lambda answer: answer._replace(body=answer.body[:-9])], "", ""),
        ([HTML_RESPONSE] * 3, "damaged", "PMC1.1.xml: its MD5 should be"),
        ([NotFoundError(f"{BASE_URL}PMC1.1/PMC1.1.xml: 404")], "gone", "PMC1.1.xml"),
        ([RefusedError(f"{BASE_URL}PMC1.1/PMC1.1.xml: 403")], "refused", "PMC1.1.xml"),
        ([UnreachableError(f"{BASE_URL}PMC1.1/PMC1.1.xml: no answer")], "unreachable", "PMC1.1.xml"),
    ],
)
def test_failed_article_is_reported_and_the_others_fetched(
    fetch: RangeFetch, faults: list[Any], reason: str, detail: str
) -> None:
    fetch.connection.faults["PMC1.1/PMC1.1.xml"] = faults
    report = fetch()
    if not reason:
        assert len(fetch.connection.requests_containing("PMC1.1.xml")) == 3
        assert (report.failures, fetch.list_articles()) == ((), SELECTED)
        return
    [failure] = report.failures
    assert (failure.pmcid, failure.version, failure.reason) == (1, 1, reason)
    assert detail in failure.detail
    assert fetch.list_articles() == SELECTED[1:]
    assert (report.selected, report.fetched) == (4, 3)
    assert fetch().failures == ()
    assert fetch.list_articles() == SELECTED


def test_outdated_article_stays_until_its_revision_can_be_fetched(fetch: RangeFetch) -> None:
    fetch()
    fetch.bucket.put_article(replace(FIRST, text="Revised."))
    fetch.bucket.publish_inventory("2026-09-05")
    before = fetch.read_selected()
    fetch.connection.faults["PMC1.1/PMC1.1.xml"] = [HTML_RESPONSE] * 3
    report = fetch()
    assert (len(report.failures), report.removed) == (1, 0)
    assert fetch.list_articles() == SELECTED
    assert fetch.read_selected() == before
    report = fetch()
    assert (report.failures, report.fetched, report.removed) == ((), 1, 1)
    assert fetch.read_selected() != before


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Not found</body></html>",
        b"ORA-12537",
        b"",
        b"<!DOCTYPE article [<!ENTITY a 'x'>]><!-- only a comment -->",
        b"<?xml version='1.0' encoding='none'?><article/>",
        b"<!-- " + b"x" * 100_000 + b" --><article/>",
    ],
)
def test_file_with_another_root_element_is_rejected(fetch: RangeFetch, body: bytes) -> None:
    fetch.publish_bytes(body)
    [failure] = fetch().failures
    assert failure.reason == "damaged"
    assert "root element is not <article>" in failure.detail
    assert fetch.list_articles() == SELECTED[1:]


@pytest.mark.parametrize(
    "body",
    [
        b"<article/>",
        b'\xef\xbb\xbf<article xmlns="https://jats.nlm.nih.gov/ns/archiving/1.4/"/>',
        '<?xml version="1.0" encoding="UTF-16"?><article/>'.encode("utf-16"),
        b'<!DOCTYPE article SYSTEM "http://other.invalid/x.dtd"><!-- c --><?p i?><article>&x;</article>',
        b"<article><p>not closed",
    ],
)
def test_root_element_is_compared_by_local_name(fetch: RangeFetch, body: bytes) -> None:
    fetch.publish_bytes(body, "http://169.254.0.1")  # the host is ignored
    assert fetch().failures == ()
    assert "PMC1.1/PMC1.1.xml" in fetch.connection.requests


UNREADABLE: dict[str, object] = {"is_retracted": None}


def test_unreadable_metadata_of_a_new_version_keeps_the_older_one(fetch: RangeFetch) -> None:
    fetch()
    fetch.bucket.put_article(FakeArticle(1, 2), **UNREADABLE)
    fetch.bucket.publish_inventory("2026-09-05")
    for _ in range(2):
        report = fetch()
        assert (report.removed, [failure.version for failure in report.failures]) == (0, [2])
        assert fetch.list_articles() == SELECTED
    fetch.bucket.put_article(FakeArticle(1, 2))
    fetch.bucket.publish_inventory("2026-09-06")
    assert fetch().removed == 1
    assert fetch.list_articles() == ["PMC1.2", "PMC2.10", "PMC8.1", "PMC11.1"]


def test_unreadable_metadata_removes_nothing_when_the_cache_is_lost(fetch: RangeFetch) -> None:
    fetch()
    Path(fetch.mirror, "pmc/metadata/PMC0000xxxx.parquet").unlink()
    fetch.bucket.put_article(FIRST, **UNREADABLE)
    fetch.bucket.publish_inventory("2026-09-05")
    assert fetch().removed == 0
    assert fetch.list_articles() == SELECTED
    # The filter of this run applies to what stays.
    assert fetch(ArticleFilter(licences=frozenset({"CC0"}))).selected == 0
    assert fetch.read_selected().num_rows == 0
    assert len(FILES.list_names(f"{fetch.mirror}/pmc/xml/PMC0000xxxx")) == 1


def test_unreachable_bucket_ends_the_run_and_removes_nothing(fetch: RangeFetch) -> None:
    fetch()
    fetch.bucket.remove(1)
    for number in range(100, 250):
        fetch.bucket.put_article(FakeArticle(number))
        fetch.connection.faults[f"PMC{number}.1/PMC{number}.1.xml"] = [RefusedError("403")]
    fetch.bucket.publish_inventory("2026-09-05")
    with pytest.raises(OutageError, match="100 downloads failed in a row; the last one: 403"):
        fetch()
    assert len(fetch.connection.requests_containing(".xml")) == 100
    assert fetch.list_articles() == SELECTED
    fetch.connection.faults["PMC100.1/PMC100.1.xml"] = [OutageError("wait for an hour")]
    with pytest.raises(OutageError, match="an hour"):
        fetch()
