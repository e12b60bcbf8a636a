"""PMC's metadata: read strictly, kept in the mirror, and read again only where it has changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download.http_client import HttpResponse, RefusedError, UnreachableError
from bioshards.corpus.download.pmc import bucket_inventory, metadata_cache
from bioshards.corpus.download.pmc.metadata_cache import METADATA_SCHEMA, MetadataUpdate, Versions
from bioshards.corpus.download.pmc.metadata_object import (
    ArticleMetadataError,
    normalise_licence,
    parse_metadata,
)
from bioshards.corpus.licences import LICENCES
from bioshards.corpus.storage.local_storage import LocalStorage
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
ARTICLE = FakeArticle(12, 3, pmid=345, doi="10.1000/a(b)")
MD5 = ARTICLE.metadata["xml_url"][-32:]


def parsed(**values: object) -> dict[str, Any]:
    return parse_metadata(json.dumps(ARTICLE.metadata | values).encode(), 12, 3)


# One object


def test_metadata_is_read_into_columns() -> None:
    assert parsed() == {
        "pmid": 345,
        "doi": "10.1000/a(b)",
        "licence": "CC-BY",
        "open_access": True,
        "manuscript": False,
        "ocr": False,
        "retracted": False,
        "md5": MD5,
    }


@pytest.mark.parametrize("name", ["pmid", "doi", "xml_url"])
def test_what_may_be_null_may_be_absent(name: str) -> None:
    column = {"xml_url": "md5"}.get(name, name)
    assert parsed(**{name: None})[column] is None
    metadata = {key: value for key, value in ARTICLE.metadata.items() if key != name}
    assert parse_metadata(json.dumps(metadata).encode(), 12, 3)[column] is None


@pytest.mark.parametrize(
    ("code", "spelt"),
    [
        ("CC0", "CC0"),
        ("CC0 1.0", "CC0"),
        ("CC BY", "CC-BY"),
        ("CC BY 4.0", "CC-BY"),
        ("cc-by", "CC-BY"),
        ("CC_BY-SA 3.0 IGO", "CC-BY-SA"),
        ("CC BY-ND", "CC-BY-ND"),
        ("CC BY-NC", "CC-BY-NC"),
        ("CC BY-NC-SA", "CC-BY-NC-SA"),
        ("CC BY-NC-ND 4.0", "CC-BY-NC-ND"),
        (" TDM ", "TDM"),
        (None, "unknown"),
        ("", "unknown"),
        ("NO-CC CODE", "unknown"),
        ("CC", "unknown"),
        ("CC BY or so", "unknown"),
        ("not CC BY", "unknown"),
        ("CC BY-NC-SA-ND", "unknown"),
    ],
)
def test_a_licence_has_one_spelling(code: str | None, spelt: str) -> None:
    assert normalise_licence(code) == spelt
    assert parsed(license_code=code)["licence"] == spelt


@settings(derandomize=True, database=None)
@given(st.text())
def test_a_licence_is_known_or_unknown(code: str) -> None:
    assert normalise_licence(code) in LICENCES


def test_the_host_of_the_xml_is_not_looked_at() -> None:
    url = f"https://other.invalid:81/PMC12.3/PMC12.3.xml?x=1&md5={MD5.upper()}"
    assert parsed(xml_url=url)["md5"] == MD5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pmcid": "PMC123"}, "it is of 'PMC123', version 3"),
        ({"pmcid": "12"}, "it is of '12'"),
        ({"pmcid": 12}, "it is of 12"),
        ({"pmcid": None}, "it is of None"),
        ({"version": 30}, "version 30"),
        ({"version": "3"}, "version is '3'"),
        ({"version": None}, "version None"),
        ({"version": 3.0}, "version is 3.0"),
        ({"pmid": "345"}, "pmid is '345'"),
        ({"pmid": True}, "pmid is True"),
        ({"pmid": 0}, "pmid is 0"),
        ({"pmid": 1 << 31}, "pmid is 2147483648"),
        ({"doi": 10.1}, "doi is 10.1"),
        ({"doi": ["10.1000/1"]}, "doi is"),
        ({"license_code": 4}, "license_code is 4"),
        ({"is_pmc_openaccess": "true"}, "is_pmc_openaccess is 'true'"),
        ({"is_manuscript": 1}, "is_manuscript is 1"),
        ({"is_historical_ocr": None}, "is_historical_ocr is None"),
        ({"is_retracted": None}, "is_retracted is None"),
        ({"xml_url": {}}, "xml_url is"),
        ({"xml_url": f"s3://pmc-oa-opendata/PMC1.3/PMC1.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://pmc-oa-opendata/PMC12.3/../PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://pmc-oa-opendata/x/PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": "s3://pmc-oa-opendata/PMC12.3/PMC12.3.xml"}, "xml_url is"),
        ({"xml_url": f"s3://b/PMC12.3/PMC12.3.xml?md5={MD5}0"}, "xml_url is"),
        ({"xml_url": f"s3://b/PMC12.3/PMC12.3.xml?md5={MD5}&md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://[b/PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
    ],
)
def test_metadata_of_other_types_is_an_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(ArticleMetadataError, match=message) as raised:
        parsed(**values)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_what_is_not_an_object_of_json_is_an_error(body: bytes) -> None:
    with pytest.raises(ArticleMetadataError, match=r"not (JSON|a JSON object)"):
        parse_metadata(body, 12, 3)


@settings(derandomize=True, database=None)
@given(
    st.sampled_from(sorted(ARTICLE.metadata)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=3,
    ),
)
def test_any_value_gives_columns_or_an_error(name: str, value: object) -> None:
    try:
        columns = parsed(**{name: value})
    except ArticleMetadataError:
        return
    row = {"pmcid": 12, "version": 3, "etag": "", "inventory_etag": "", "retrieved": TODAY, "problem": None}
    [back] = pa.Table.from_pylist([row | columns], METADATA_SCHEMA).to_pylist()
    assert back == row | columns


# A range


@pytest.fixture
def bucket(tmp_path: Path) -> FakeBucket:
    articles = [
        FakeArticle(1),
        FakeArticle(11, licence=None),
        FakeArticle(5, has_xml=False),
        FakeArticle(20_000),
    ]
    return create_bucket(
        tmp_path / "bucket", articles + [FakeArticle(2, n) for n in (2, 9, 10)], "2026-09-04"
    )


@pytest.fixture
def connection(bucket: FakeBucket) -> FolderConnection:
    return FolderConnection(bucket.root)


@pytest.fixture
def update(tmp_path: Path, connection: FolderConnection) -> Callable[..., MetadataUpdate]:
    """Bring the inventory and range 0's metadata up to date."""

    def call(today: date = TODAY, versions: Versions = "newest") -> MetadataUpdate:
        mirror = str(tmp_path / "mirror")
        bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
        connection.requests.clear()
        rows = bucket_inventory.read_range(FILES, mirror, 0)
        pool = SequentialPool(connection)
        done = metadata_cache.update_metadata(FILES, mirror, BASE_URL, pool, 0, rows, today, versions)
        assert metadata_cache.read_metadata(FILES, mirror, 0) == done.table
        return done

    return call


def names(update: MetadataUpdate) -> list[str]:
    return [f"{row['pmcid']}.{row['version']}" for row in update.table.to_pylist()]


def counts(update: MetadataUpdate) -> tuple[int, int, int, int]:
    return update.fetched, update.changed, update.removed, len(update.failures)


def test_the_newest_version_of_each_article_is_looked_at(
    update: Callable[..., MetadataUpdate], connection: FolderConnection
) -> None:
    done = update()
    assert names(done) == ["1.1", "2.10", "5.1", "11.1"]
    assert sorted(connection.requests) == [
        f"metadata/PMC{name}.json" for name in ("1.1", "11.1", "2.10", "5.1")
    ]
    assert (counts(done), done.older_versions) == ((4, 0, 0, 0), 2)
    assert [row["licence"] for row in done.table.to_pylist()] == ["CC-BY", "CC-BY", "CC-BY", "unknown"]
    assert [row["md5"] is None for row in done.table.to_pylist()] == [False, False, True, False]


def test_all_versions_are_looked_at_if_asked_for(update: Callable[..., MetadataUpdate]) -> None:
    done = update(versions="all")
    assert names(done) == ["1.1", "2.2", "2.9", "2.10", "5.1", "11.1"]
    assert done.older_versions == 0


def test_what_is_known_is_not_read_again(
    update: Callable[..., MetadataUpdate], connection: FolderConnection
) -> None:
    first = update()
    again = update(today=date(2026, 10, 1))
    assert connection.requests == []
    assert again.table == first.table
    assert again.table["retrieved"].to_pylist() == [TODAY] * 4


def test_what_has_changed_is_read_and_what_has_gone_is_forgotten(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket, connection: FolderConnection
) -> None:
    update()
    bucket.put_article(FakeArticle(1, licence="CC BY-NC"))
    bucket.put_article(FakeArticle(2, 11))
    bucket.put_article(FakeArticle(3))
    bucket.remove(11)
    bucket.publish_inventory("2026-09-05")
    done = update(today=date(2026, 9, 6))
    assert sorted(connection.requests) == [f"metadata/PMC{name}.json" for name in ("1.1", "2.11", "3.1")]
    assert names(done) == ["1.1", "2.11", "3.1", "5.1"]
    assert counts(done) == (3, 1, 1, 0)
    assert done.table["licence"].to_pylist()[0] == "CC-BY-NC"
    assert done.table["retrieved"].to_pylist() == [date(2026, 9, 6)] * 3 + [TODAY]


def test_an_object_that_has_changed_since_the_inventory_is_believed_and_read_once(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket, connection: FolderConnection
) -> None:
    bucket.put_article(FakeArticle(1, retracted=True))
    done = update()
    [row] = [row for row in done.table.to_pylist() if row["pmcid"] == 1]
    assert row["retracted"]
    assert row["etag"] != row["inventory_etag"]
    update()
    assert connection.requests == []
    bucket.publish_inventory("2026-09-05")
    update()
    assert connection.requests == []
    bucket.put_article(FakeArticle(1))
    bucket.publish_inventory("2026-09-06")
    assert counts(update()) == (1, 1, 0, 0)


def test_an_object_that_has_gone_since_the_inventory_is_left_out(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket
) -> None:
    bucket.remove(1)
    done = update()
    assert names(done) == ["2.10", "5.1", "11.1"]
    assert counts(done) == (3, 0, 1, 0)


def test_etags_that_are_no_checksums_are_compared_as_they_are(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket, connection: FolderConnection
) -> None:
    key = "metadata/PMC1.1.json"
    bucket.publish_inventory("2026-09-05", etags={key: "0123-2"})
    connection.faults[key] = [lambda answer: answer._replace(etag="0123-2")]
    assert counts(update()) == (4, 0, 0, 0)
    assert update().table["etag"].to_pylist()[0] == "0123-2"
    assert connection.requests == []
    bucket.publish_inventory("2026-09-06", etags={key: "4567-2"})
    assert counts(update()) == (1, 1, 0, 0)


def test_an_answer_without_an_etag_is_believed_if_it_makes_sense(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket, connection: FolderConnection
) -> None:
    bucket.put_article(FakeArticle(1, retracted=True))
    connection.faults["metadata/PMC1.1.json"] = [HTML_RESPONSE, lambda answer: answer._replace(etag="")]
    done = update()
    assert counts(done) == (4, 0, 0, 0)
    assert done.table["retracted"].to_pylist()[0]


def test_a_damaged_answer_is_read_again(
    update: Callable[..., MetadataUpdate], connection: FolderConnection
) -> None:
    def flipped(answer: HttpResponse) -> HttpResponse:
        return answer._replace(body=answer.body.replace(b"CC BY", b"CC0  "))

    connection.faults["metadata/PMC1.1.json"] = [flipped, HTML_RESPONSE]
    done = update()
    assert done.table["licence"].to_pylist()[0] == "CC-BY"
    assert len(connection.requests_containing("PMC1.1")) == 3


@pytest.mark.parametrize("doi", ["10.1000/\ud800", "10.1000/1\u00a02", "1" * 10_000])
def test_an_odd_doi_is_left_out_and_the_article_is_not(doi: str) -> None:
    assert (
        parse_metadata(json.dumps(FakeArticle(12, 3).metadata | {"doi": doi}).encode(), 12, 3)["doi"] is None
    )


@pytest.mark.parametrize("values", [{"version": "1"}, {"doi": 10.1}, {"license_code": []}])
def test_metadata_that_cannot_be_read_is_kept_with_its_problem_until_it_changes(
    update: Callable[..., MetadataUpdate],
    bucket: FakeBucket,
    connection: FolderConnection,
    values: dict[str, object],
) -> None:
    bucket.put_article(FakeArticle(1), **values)
    bucket.publish_inventory("2026-09-05")
    row = update().table.to_pylist()[0]
    assert next(iter(values)) in row["problem"]
    assert row["licence"] is None
    update()
    assert connection.requests == []
    bucket.put_article(FakeArticle(1))
    bucket.publish_inventory("2026-09-06")
    assert update().table.to_pylist()[0]["problem"] is None


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ([HTML_RESPONSE] * 3, "damaged"),
        ([RefusedError("metadata/PMC1.1.json: 403")], "refused"),
        ([UnreachableError("metadata/PMC1.1.json: no answer")], "unreachable"),
    ],
)
def test_what_cannot_be_had_is_reported_and_tried_again(
    update: Callable[..., MetadataUpdate], connection: FolderConnection, faults: list[Any], reason: str
) -> None:
    connection.faults["metadata/PMC1.1.json"] = faults
    done = update()
    assert counts(done) == (3, 0, 0, 1)
    assert (done.failures[0].pmcid, done.failures[0].version, done.failures[0].reason) == (1, 1, reason)
    assert "metadata/PMC1.1.json" in done.failures[0].detail
    assert "metadata/PMC1.1.json" in done.table.to_pylist()[0]["problem"]
    again = update()
    assert connection.requests == ["metadata/PMC1.1.json"]
    assert counts(again) == (1, 0, 0, 0)


def test_an_object_that_is_too_large_is_refused(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket
) -> None:
    bucket.put_article(FakeArticle(1), title="x" * (1 << 20))
    assert update().failures[0].reason == "refused"


def test_what_was_known_of_an_article_stays_while_its_change_cannot_be_had(
    update: Callable[..., MetadataUpdate], bucket: FakeBucket, connection: FolderConnection
) -> None:
    first = update()
    bucket.put_article(FakeArticle(1, licence="CC BY-NC"))
    bucket.publish_inventory("2026-09-05")
    connection.faults["metadata/PMC1.1.json"] = [RefusedError("403")]
    assert update().table == first.table
    assert update().table["licence"].to_pylist()[0] == "CC-BY-NC"


def test_a_bucket_that_does_not_answer_any_more_ends_the_update(
    tmp_path: Path, connection: FolderConnection
) -> None:
    bucket = create_bucket(connection.root, [FakeArticle(number) for number in range(100, 200)], "2026-09-05")
    mirror = str(tmp_path / "mirror")
    bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
    rows = bucket_inventory.read_range(FILES, mirror, 0)
    for number in range(150, 200):
        connection.faults[f"metadata/PMC{number}.1.json"] = [UnreachableError("no answer")]
    with pytest.raises(UnreachableError):
        metadata_cache.update_metadata(FILES, mirror, BASE_URL, SequentialPool(connection), 0, rows, TODAY)
    assert len(connection.requests_containing("metadata/PMC1")) < 80
    readable = [
        row for row in metadata_cache.read_metadata(FILES, mirror, 0).to_pylist() if row["problem"] is None
    ]
    assert len(readable) == 54
    assert bucket.root == connection.root


def test_a_killed_update_goes_on_where_it_was_saved(
    tmp_path: Path, connection: FolderConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed means that nothing is written after: only what was saved along the way is there."""
    create_bucket(connection.root, [FakeArticle(number) for number in range(100, 110)], "2026-09-05")
    mirror = str(tmp_path / "mirror")
    bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
    rows = bucket_inventory.read_range(FILES, mirror, 0)
    monkeypatch.setattr(metadata_cache, "_SAVE_INTERVAL", 4)
    saved: list[Any] = []
    save = metadata_cache._write_metadata

    def killed_after_two(*arguments: Any) -> None:
        saved.append(arguments)
        if len(saved) <= 2:
            save(*arguments)

    monkeypatch.setattr(metadata_cache, "_write_metadata", killed_after_two)
    metadata_cache.update_metadata(FILES, mirror, BASE_URL, SequentialPool(connection), 0, rows, TODAY)
    assert metadata_cache.read_metadata(FILES, mirror, 0).num_rows == 8
    monkeypatch.setattr(metadata_cache, "_write_metadata", save)
    connection.requests.clear()
    done = metadata_cache.update_metadata(FILES, mirror, BASE_URL, SequentialPool(connection), 0, rows, TODAY)
    assert (len(connection.requests), done.table.num_rows) == (6, 14)


def test_an_article_without_a_change_does_not_write(
    update: Callable[..., MetadataUpdate], monkeypatch: pytest.MonkeyPatch
) -> None:
    update()
    monkeypatch.setattr(LocalStorage, "write", None)
    update()


@settings(deadline=None, derandomize=True, database=None, max_examples=50)
@given(
    st.dictionaries(st.tuples(st.integers(1, 6), st.integers(8, 12)), st.sampled_from("ab")),
    st.dictionaries(st.tuples(st.integers(1, 6), st.integers(8, 12)), st.sampled_from("ab")),
)
def test_a_difference_is_what_two_dictionaries_differ_in(
    listed: dict[tuple[int, int], str], known: dict[tuple[int, int], str]
) -> None:
    moment = pa.scalar(0, bucket_inventory.INVENTORY_SCHEMA.field("modified").type).as_py()
    rows = [
        {"pmcid": pmcid, "version": version, "etag": etag, "modified": moment}
        for (pmcid, version), etag in sorted(listed.items())
    ]
    before = [
        {"pmcid": pmcid, "version": version, "etag": etag, "inventory_etag": etag, "retrieved": TODAY}
        for (pmcid, version), etag in sorted(known.items())
    ]
    found = metadata_cache.compare_with_inventory(
        pa.Table.from_pylist(rows, bucket_inventory.INVENTORY_SCHEMA),
        pa.Table.from_pylist(before, METADATA_SCHEMA),
    )
    newest = {key for key in listed if key[1] == max(v for p, v in listed if p == key[0])}

    def keys(table: Any) -> set[tuple[int, int]]:
        return {(row["pmcid"], row["version"]) for row in table.to_pylist()}

    assert keys(found.current) == {key for key in newest if known.get(key) == listed[key]}
    assert keys(found.missing) == {key for key in newest if known.get(key) != listed[key]}
    assert keys(found.outdated) == {key for key in newest if key in known and known[key] != listed[key]}
    assert (found.older_versions, found.removed) == (
        len(listed) - len(newest),
        len(known.keys() - listed.keys()),
    )
