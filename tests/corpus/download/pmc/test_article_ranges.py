"""Fetching ranges of PMC's articles into the mirror."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.download.http_client import (
    DownloadError,
    HttpResponse,
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
FIRST = FakeArticle(1, text="An article with & in it.".replace("&", "&amp;"))


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


@pytest.fixture
def mirror(tmp_path: Path) -> str:
    return str(tmp_path / "mirror")


@pytest.fixture
def fetch_range(mirror: str, connection: FolderConnection) -> Callable[..., RangeReport]:
    """Return a function that fetches the inventory and the articles of a range."""

    def call(articles: ArticleFilter = DEFAULT, number: int = 0) -> RangeReport:
        bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
        connection.requests.clear()
        return article_ranges.fetch_range(
            RangeUpdate(FILES, mirror, SequentialPool(connection), number, articles, TODAY)
        )

    return call


def list_articles(mirror: str, number: int = 0) -> list[str]:
    """Return the names of the articles in a range, after checking their MD5s and the list of articles."""
    folder = Path(mirror, "pmc", "xml", f"PMC{number:04d}xxxx")
    for path in folder.glob("*"):
        assert hashlib.md5(path.read_bytes()).hexdigest().startswith(path.stem[-8:])
    listed = article_ranges.read_selected(FILES, mirror, number).to_pylist()
    assert {(row["file"], row["bytes"]) for row in listed} == {
        (path.name, path.stat().st_size) for path in folder.glob("*")
    }
    return [row["file"][:-13] for row in listed]


# Fetching


def test_selected_articles_are_fetched(
    mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    report = fetch_range()
    assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]
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
    assert len(connection.requests_containing(".xml")) == 4
    assert not connection.requests_containing("PMC2.9")


def test_article_list_has_the_metadata(mirror: str, fetch_range: Callable[..., RangeReport]) -> None:
    fetch_range()
    table = article_ranges.read_selected(FILES, mirror, 0)
    assert table.schema == article_ranges.ARTICLE_SCHEMA
    row = table.to_pylist()[2]
    assert (row["pmcid"], row["version"], row["pmid"], row["doi"]) == (8, 1, 88, "10.1000/8")
    assert (row["licence"], row["retracted"], row["retrieved"]) == ("CC-BY", True, TODAY)
    assert row["file"] == f"PMC8.1-{row['md5'][:8]}.xml"
    assert Path(mirror, "pmc/xml/PMC0000xxxx", row["file"]).read_bytes() == FakeArticle(8).xml


def test_ranges_are_independent(mirror: str, fetch_range: Callable[..., RangeReport]) -> None:
    assert fetch_range(number=1).selected == 1
    assert list_articles(mirror, 1) == ["PMC12345.1"]
    assert list_articles(mirror) == []
    assert article_ranges.list_ranges(FILES, mirror) == [0, 1]
    assert fetch_range(number=1234).selected == 0


def test_second_run_fetches_and_writes_nothing(
    mirror: str,
    fetch_range: Callable[..., RangeReport],
    connection: FolderConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = fetch_range()
    monkeypatch.setattr(LocalStorage, "write", None)
    second = fetch_range()
    assert connection.requests == []
    assert second == replace(first, mirrored=4, fetched=0, fetched_bytes=0)


def test_interrupted_run_is_resumed(
    mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    connection.faults["PMC2.10/PMC2.10.xml"] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        fetch_range()
    report = fetch_range()
    assert (report.mirrored, report.fetched) == (1, 3)
    assert connection.requests == [f"{name}/{name}.xml" for name in ("PMC2.10", "PMC8.1", "PMC11.1")]


def test_mirror_on_an_object_store(bucket: FakeBucket, connection: FolderConnection) -> None:
    storage, mirror = RemoteStorage(StoreOptions()), "mem://bucket/mirror"
    for day, fetched in (("2026-09-05", 4), ("2026-09-06", 1)):
        bucket.put_article(FakeArticle(11, text=f"Revised on {day}."))
        bucket.publish_inventory(day)
        bucket_inventory.update_inventory(storage, mirror, connection, BASE_URL)
        report = article_ranges.fetch_range(
            RangeUpdate(storage, mirror, SequentialPool(connection), 0, DEFAULT, TODAY)
        )
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
        (lambda bucket: bucket.put_article(FakeArticle(1, 2)), ["PMC1.2", "PMC2.10", "PMC8.1", "PMC11.1"]),
        (
            lambda bucket: bucket.put_article(replace(FIRST, text="Revised.")),
            ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"],
        ),
        (lambda bucket: bucket.remove(1), ["PMC2.10", "PMC8.1", "PMC11.1"]),
        (
            lambda bucket: bucket.put_article(replace(FIRST, licence="CC BY-NC")),
            ["PMC2.10", "PMC8.1", "PMC11.1"],
        ),
        (lambda bucket: bucket.remove(2, 10), ["PMC1.1", "PMC2.9", "PMC8.1", "PMC11.1"]),
    ],
)
def test_mirror_follows_changes_of_the_bucket(
    bucket: FakeBucket,
    mirror: str,
    fetch_range: Callable[..., RangeReport],
    change: Callable[[FakeBucket], object],
    remaining: list[str],
) -> None:
    fetch_range()
    change(bucket)
    bucket.publish_inventory("2026-09-05")
    report = fetch_range()
    assert list_articles(mirror) == remaining
    assert (report.removed, report.failures) == (1, ())
    assert report.fetched == len(remaining) - 3


def test_mirror_follows_changes_of_the_filter(mirror: str, fetch_range: Callable[..., RangeReport]) -> None:
    fetch_range()
    report = fetch_range(ArticleFilter(licences=frozenset({"CC-BY-NC", "TDM"}), drop_retracted=True))
    assert list_articles(mirror) == ["PMC3.1", "PMC7.1"]
    assert (report.fetched, report.removed) == (2, 4)
    assert fetch_range(ArticleFilter(versions="all")).selected == 5
    assert list_articles(mirror) == ["PMC1.1", "PMC2.9", "PMC2.10", "PMC8.1", "PMC11.1"]


def test_range_without_remaining_articles_is_emptied(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport]
) -> None:
    fetch_range(number=1)
    bucket.remove(12_345)
    bucket.publish_inventory("2026-09-05")
    bucket_inventory.update_inventory(FILES, mirror, FolderConnection(bucket.root), BASE_URL)
    assert bucket_inventory.list_ranges(FILES, mirror) == [0]
    assert article_ranges.list_ranges(FILES, mirror) == [0, 1]
    assert fetch_range(number=1).removed == 1
    assert list_articles(mirror, 1) == []


def test_unrelated_files_are_kept(mirror: str, fetch_range: Callable[..., RangeReport]) -> None:
    unrelated = Path(mirror, "pmc/xml/PMC0000xxxx/notes.txt")
    unrelated.parent.mkdir(parents=True)
    unrelated.write_text("ours")
    assert fetch_range().removed == 0
    assert unrelated.exists()


# Failures


def test_damaged_article_is_fetched_again(
    mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    connection.faults["PMC1.1/PMC1.1.xml"] = [
        HTML_RESPONSE,
        lambda answer: answer._replace(body=answer.body[:-9]),
    ]
    assert fetch_range().failures == ()
    assert len(connection.requests_containing("PMC1.1.xml")) == 3
    assert len(list_articles(mirror)) == 4


@pytest.mark.parametrize(
    ("faults", "reason", "detail"),
    [
        ([HTML_RESPONSE] * 3, "damaged", "PMC1.1.xml: its MD5 should be"),
        ([NotFoundError(f"{BASE_URL}PMC1.1/PMC1.1.xml: 404")], "gone", "PMC1.1.xml"),
        ([RefusedError(f"{BASE_URL}PMC1.1/PMC1.1.xml: 403")], "refused", "PMC1.1.xml"),
        ([UnreachableError(f"{BASE_URL}PMC1.1/PMC1.1.xml: no answer")], "unreachable", "PMC1.1.xml"),
    ],
)
def test_failed_article_is_reported_and_the_others_fetched(
    mirror: str,
    fetch_range: Callable[..., RangeReport],
    connection: FolderConnection,
    faults: list[Any],
    reason: str,
    detail: str,
) -> None:
    connection.faults["PMC1.1/PMC1.1.xml"] = faults
    report = fetch_range()
    [failure] = report.failures
    assert (failure.pmcid, failure.version, failure.reason) == (1, 1, reason)
    assert detail in failure.detail
    assert list_articles(mirror) == ["PMC2.10", "PMC8.1", "PMC11.1"]
    assert (report.selected, report.fetched) == (4, 3)
    assert fetch_range().failures == ()
    assert len(list_articles(mirror)) == 4


def test_outdated_article_stays_until_its_revision_can_be_fetched(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    fetch_range()
    bucket.put_article(replace(FIRST, text="Revised."))
    bucket.publish_inventory("2026-09-05")
    before = article_ranges.read_selected(FILES, mirror, 0)
    connection.faults["PMC1.1/PMC1.1.xml"] = [HTML_RESPONSE] * 3
    report = fetch_range()
    assert (len(report.failures), report.removed) == (1, 0)
    assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]
    assert article_ranges.read_selected(FILES, mirror, 0) == before
    report = fetch_range()
    assert (report.failures, report.fetched, report.removed) == ((), 1, 1)
    assert article_ranges.read_selected(FILES, mirror, 0) != before


@pytest.mark.parametrize(
    "body",
    [
        b"<html><body>Not found</body></html>",
        b"<Error><Code>NoSuchKey</Code></Error>",
        b"ORA-12537",
        b"",
        b"<!DOCTYPE article [<!ENTITY a 'x'>]><!-- only a comment -->",
        b"<?xml version='1.0' encoding='none'?><article/>",
        b"<!-- " + b"x" * 100_000 + b" --><article/>",
    ],
)
def test_file_with_another_root_element_is_rejected(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport], body: bytes
) -> None:
    md5 = hashlib.md5(body).hexdigest()
    bucket.put_article(FIRST, xml_url=f"s3://pmc-oa-opendata/PMC1.1/PMC1.1.xml?md5={md5}")
    bucket.write("PMC1.1/PMC1.1.xml", body)
    bucket.publish_inventory("2026-09-05")
    [failure] = fetch_range().failures
    assert failure.reason == "damaged"
    assert "root element is not <article>" in failure.detail
    assert "PMC1.1" not in list_articles(mirror)


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
def test_root_element_is_compared_by_local_name(
    bucket: FakeBucket, fetch_range: Callable[..., RangeReport], body: bytes
) -> None:
    md5 = hashlib.md5(body).hexdigest()
    bucket.put_article(FIRST, xml_url=f"s3://pmc-oa-opendata/PMC1.1/PMC1.1.xml?md5={md5}")
    bucket.write("PMC1.1/PMC1.1.xml", body)
    bucket.publish_inventory("2026-09-05")
    assert fetch_range().failures == ()


def test_host_of_the_xml_url_is_ignored(
    bucket: FakeBucket, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    md5 = hashlib.md5(FIRST.xml).hexdigest()
    bucket.put_article(FIRST, xml_url=f"http://169.254.0.1/PMC1.1/PMC1.1.xml?md5={md5}")
    bucket.publish_inventory("2026-09-05")
    assert fetch_range().failures == ()
    assert "PMC1.1/PMC1.1.xml" in connection.requests


def test_failed_metadata_is_reported(
    mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    connection.faults["metadata/PMC1.1.json"] = [RefusedError("metadata/PMC1.1.json: 403")]
    connection.faults["PMC11.1/PMC11.1.xml"] = [NotFoundError("PMC11.1.xml: 404")]
    report = fetch_range()
    assert [(failure.pmcid, failure.reason) for failure in report.failures] == [(1, "refused"), (11, "gone")]
    assert list_articles(mirror) == ["PMC2.10", "PMC8.1"]


UNREADABLE: dict[str, object] = {"is_retracted": None}


def test_articles_with_unreadable_metadata_stay_in_the_mirror(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    fetch_range()
    before = article_ranges.read_selected(FILES, mirror, 0)
    for article in (FIRST, FakeArticle(11), FakeArticle(2, 10, text="The tenth version.")):
        bucket.put_article(article, **UNREADABLE)
    bucket.publish_inventory("2026-09-05")
    for _ in range(2):
        report = fetch_range()
        assert report.removed == 0
        assert [(failure.pmcid, failure.reason) for failure in report.failures] == [
            (1, "bad-metadata"),
            (2, "bad-metadata"),
            (11, "bad-metadata"),
        ]
        assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]
        assert article_ranges.read_selected(FILES, mirror, 0) == before
    bucket.put_article(FIRST)
    bucket.publish_inventory("2026-09-06")
    assert [failure.pmcid for failure in fetch_range().failures] == [2, 11]


def test_unreadable_metadata_of_a_new_version_keeps_the_older_one(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport]
) -> None:
    fetch_range()
    bucket.put_article(FakeArticle(1, 2), **UNREADABLE)
    bucket.publish_inventory("2026-09-05")
    for _ in range(2):
        report = fetch_range()
        assert (report.removed, [failure.version for failure in report.failures]) == (0, [2])
        assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]
    bucket.put_article(FakeArticle(1, 2))
    bucket.publish_inventory("2026-09-06")
    assert fetch_range().removed == 1
    assert list_articles(mirror) == ["PMC1.2", "PMC2.10", "PMC8.1", "PMC11.1"]


def test_unreadable_metadata_removes_nothing_when_the_cache_is_lost(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport]
) -> None:
    fetch_range()
    Path(mirror, "pmc/metadata/PMC0000xxxx.parquet").unlink()
    bucket.put_article(FIRST, **UNREADABLE)
    bucket.publish_inventory("2026-09-05")
    assert fetch_range().removed == 0
    assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]
    # The filter of this run applies to what stays.
    assert fetch_range(ArticleFilter(licences=frozenset({"CC0"}))).selected == 0
    assert article_ranges.read_selected(FILES, mirror, 0).num_rows == 0
    assert len(FILES.list_names(f"{mirror}/pmc/xml/PMC0000xxxx")) == 1


def test_unreachable_bucket_ends_the_run_and_removes_nothing(
    bucket: FakeBucket, mirror: str, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    fetch_range()
    bucket.remove(1)
    for number in range(100, 250):
        bucket.put_article(FakeArticle(number))
        connection.faults[f"PMC{number}.1/PMC{number}.1.xml"] = [RefusedError("403")]
    bucket.publish_inventory("2026-09-05")
    with pytest.raises(OutageError, match="100 downloads failed in a row; the last one: 403"):
        fetch_range()
    assert len(connection.requests_containing(".xml")) == 100
    assert list_articles(mirror) == ["PMC1.1", "PMC2.10", "PMC8.1", "PMC11.1"]


@pytest.mark.parametrize("error", [RefusedError("403"), UnreachableError("500")])
def test_objects_that_the_bucket_refuses_do_not_hold_up_the_others(
    bucket: FakeBucket,
    mirror: str,
    fetch_range: Callable[..., RangeReport],
    connection: FolderConnection,
    error: DownloadError,
) -> None:
    """21 of 60, one after the other: again in the second run, where nothing else is left to fetch."""
    fetch_range()
    refused = range(110, 131)
    for number in range(100, 160):
        bucket.put_article(FakeArticle(number))
    for number in refused:
        connection.faults[f"PMC{number}.1/PMC{number}.1.xml"] = [error] * 2
    bucket.publish_inventory("2026-09-05")
    for fetched in (39, 0):
        report = fetch_range()
        assert report.fetched == fetched
        assert [failure.pmcid for failure in report.failures] == list(refused)
        assert {failure.detail for failure in report.failures} == {str(error)}
    assert fetch_range().fetched == 21, "they are tried again"
    assert len(list_articles(mirror)) == 64


def test_pause_that_the_bucket_asks_for_ends_the_run(
    bucket: FakeBucket, fetch_range: Callable[..., RangeReport], connection: FolderConnection
) -> None:
    connection.faults["PMC1.1/PMC1.1.xml"] = [OutageError("wait for an hour")]
    with pytest.raises(OutageError, match="an hour"):
        fetch_range()


def test_full_disk_leaves_only_complete_files(
    mirror: str,
    fetch_range: Callable[..., RangeReport],
    connection: FolderConnection,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill_disk(answer: HttpResponse) -> HttpResponse:
        monkeypatch.setattr("os.fsync", raise_no_space)
        return answer

    connection.faults["PMC2.10/PMC2.10.xml"] = [fill_disk]
    with pytest.raises(OSError, match="No space left"):
        fetch_range()
    names = FILES.list_names(f"{mirror}/pmc/xml/PMC0000xxxx")
    assert [name[:-13] for name in names] == ["PMC1.1"]


def raise_no_space(_: int) -> None:
    raise OSError(28, "No space left on device")
