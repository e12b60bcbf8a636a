"""PMC's metadata: parsing, the cache in the mirror and its updates."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download.http_client import HttpResponse, OutageError, RefusedError, UnreachableError
from bioshards.corpus.download.pmc import bucket_inventory, metadata_cache
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import (
    METADATA_SCHEMA,
    ArticleMetadata,
    ListedVersion,
    MetadataUpdate,
    RangeUpdate,
    normalise_licence,
    parse_metadata,
)
from bioshards.corpus.download.pmc.s3_bucket import ArticleMetadataError
from bioshards.corpus.download.sources import Versions
from bioshards.corpus.licences import LICENCES
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.hypothesis_profiles import examples
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


PARSED = ArticleMetadata(
    pmcid=12,
    version=3,
    etag="read",
    inventory_etag="listed",
    pmid=345,
    doi="10.1000/a(b)",
    licence="CC-BY",
    open_access=True,
    manuscript=False,
    ocr=False,
    retracted=False,
    md5=MD5,
    retrieved=TODAY,
)


def parse(body: bytes) -> ArticleMetadata:
    return parse_metadata(body, ListedVersion(12, 3, "listed"), "read", TODAY)


def parse_with(**values: object) -> ArticleMetadata:
    """Parse the article's metadata with some values replaced."""
    return parse(json.dumps(ARTICLE.metadata | values).encode())


# Parsing


@pytest.mark.parametrize("name", ["pmid", "doi", "xml_url"])
def test_nullable_fields_may_be_absent(name: str) -> None:
    absent: dict[str, Any] = {{"xml_url": "md5"}.get(name, name): None}
    expected = replace(PARSED, **absent)
    assert parse_with(**{name: None}) == expected
    metadata = {key: value for key, value in ARTICLE.metadata.items() if key != name}
    assert parse(json.dumps(metadata).encode()) == expected


@pytest.mark.parametrize(
    ("code", "normalised"),
    [
        ("CC BY 4.0", "CC-BY"),
        ("CC_BY-SA 3.0 IGO", "CC-BY-SA"),
        (" TDM ", "TDM"),
        (None, "unknown"),
        ("", "unknown"),
        ("NO-CC CODE", "unknown"),
        ("not CC BY", "unknown"),
    ],
)
def test_licence_is_normalised(code: str | None, normalised: str) -> None:
    assert normalise_licence(code) == normalised
    assert parse_with(license_code=code).licence == normalised


@given(st.text())
def test_any_licence_text_gives_a_known_code(code: str) -> None:
    assert normalise_licence(code) in LICENCES


def test_host_of_the_xml_url_is_ignored() -> None:
    url = f"https://other.invalid:81/PMC12.3/PMC12.3.xml?x=1&md5={MD5.upper()}"
    assert parse_with(xml_url=url).md5 == MD5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"pmcid": "PMC123"}, "it is of 'PMC123', version 3"),
        ({"pmcid": 13}, "it is of 13"),
        ({"pmcid": "PMC12.3"}, "it is of 'PMC12.3'"),
        ({"pmcid": 12.5}, r"\$\.pmcid"),
        ({"pmcid": None}, r"\$\.pmcid"),
        ({"version": 30}, "version 30"),
        *(({"version": value}, r"\$\.version") for value in ("3rd", None, 3.5)),
        *(
            ({"pmid": value}, r"\$\.pmid")
            for value in ("PMID 345", "-345", "0", [345], 1e300, float("nan"), True, 0, 1 << 31)
        ),
        *(({"pmid": value}, r"\$\.pmid") for value in ("null", "1e3", "1.0", "+345", "3_4", " ")),
        ({"doi": 10.1}, r"\$\.doi"),
        ({"license_code": 4}, r"\$\.license_code"),
        *(
            ({name: value}, f"{name} is .*, not a line of text")
            for name in ("license_code", "xml_url")
            for value in ("a\x07b", "CC BY\n", "\u200b", "\ud800", "a" * 2001)
        ),
        ({"is_pmc_openaccess": "yes"}, r"\$\.is_pmc_openaccess"),
        *(({"is_manuscript": value}, r"\$\.is_manuscript") for value in (2, 0.0, [True])),
        ({"is_historical_ocr": None}, r"\$\.is_historical_ocr"),
        ({"xml_url": {}}, r"\$\.xml_url"),
        ({"xml_url": f"s3://pmc-oa-opendata/PMC1.3/PMC1.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://pmc-oa-opendata/PMC12.3/../PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://pmc-oa-opendata/x/PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://b/PMC12.3/PMC12.3.xml?md5={MD5}0"}, "xml_url is"),
        ({"xml_url": f"s3://b/PMC12.3/PMC12.3.xml?md5={MD5}&md5={MD5}"}, "xml_url is"),
        ({"xml_url": f"s3://[b/PMC12.3/PMC12.3.xml?md5={MD5}"}, "xml_url is"),
    ],
)
def test_values_that_are_none_of_their_field_are_an_error(values: dict[str, object], message: str) -> None:
    with pytest.raises(ArticleMetadataError, match=message) as raised:
        parse_with(**values)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize(
    ("values", "column", "expected"),
    [
        ({"pmcid": 12}, "pmid", 345),
        ({"pmcid": "pmc12"}, "pmid", 345),
        ({"pmcid": " PMC12 "}, "pmid", 345),
        ({"version": "3"}, "pmid", 345),
        ({"pmid": "345"}, "pmid", 345),
        ({"pmid": "00001"}, "pmid", 1),
        ({"pmid": 345.0}, "pmid", 345),
        ({"pmid": ""}, "pmid", None),
        ({"is_pmc_openaccess": "true"}, "open_access", True),
        ({"is_manuscript": 1}, "manuscript", True),
        ({"is_retracted": 0}, "retracted", False),
        ({"is_retracted": "1"}, "retracted", True),
        ({"doi": " 10.1000/1 "}, "doi", "10.1000/1"),
        ({"license_code": "null"}, "licence", "unknown"),
        ({"license_code": "true"}, "licence", "unknown"),
        ({"license_code": "a" * 2000}, "licence", "unknown"),
    ],
)
def test_other_notations_of_a_value_are_read(values: dict[str, object], column: str, expected: Any) -> None:
    assert parse_with(**values) == replace(PARSED, **{column: expected})


def test_missing_licence_or_flag_is_an_error() -> None:
    for name in ("license_code", "is_pmc_openaccess", "is_manuscript", "is_historical_ocr", "is_retracted"):
        metadata = {key: value for key, value in ARTICLE.metadata.items() if key != name}
        with pytest.raises(ArticleMetadataError, match=name):
            parse(json.dumps(metadata).encode())


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"\xff", b"[" * 100_000, b"1" * 10_000])
def test_body_other_than_a_json_object_is_an_error(body: bytes) -> None:
    with pytest.raises(ArticleMetadataError, match=r"not JSON|Expected `object`"):
        parse(body)


@given(
    st.sampled_from(sorted(ARTICLE.metadata)),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=3,
    ),
)
def test_any_value_gives_a_row_or_an_error(name: str, value: object) -> None:
    try:
        article = parse_with(**{name: value})
    except ArticleMetadataError:
        return
    assert metadata_cache.list_articles(pa.Table.from_pylist([asdict(article)], METADATA_SCHEMA)) == [article]


# Updates of a range


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


@dataclass
class RangeUpdates:
    """Updates of the inventory and of the metadata of range 0, from a bucket into a mirror."""

    bucket: FakeBucket
    connection: FolderConnection
    mirror: str

    def __call__(self, today: date = TODAY, versions: Versions = "newest") -> MetadataUpdate:
        bucket_inventory.update_inventory(FILES, self.mirror, self.connection, BASE_URL)
        self.connection.requests.clear()
        pool, articles = SequentialPool(self.connection), ArticleFilter(versions=versions)
        result = metadata_cache.update_metadata(RangeUpdate(FILES, self.mirror, pool, 0, articles, today))
        assert metadata_cache.read_metadata(FILES, self.mirror, 0) == result.table
        return result

    def list_requests(self) -> list[str]:
        """Return the versions whose metadata objects were requested."""
        names = [key.removeprefix("metadata/PMC").removesuffix(".json") for key in self.connection.requests]
        return sorted(names)


@pytest.fixture
def update(tmp_path: Path, bucket: FakeBucket, connection: FolderConnection) -> RangeUpdates:
    return RangeUpdates(bucket, connection, str(tmp_path / "mirror"))


def list_versions(update: MetadataUpdate) -> list[str]:
    return [f"{row['pmcid']}.{row['version']}" for row in update.table.to_pylist()]


def test_only_newest_versions_are_fetched(update: RangeUpdates) -> None:
    result = update()
    assert list_versions(result) == ["1.1", "2.10", "5.1", "11.1"]
    assert sorted(update.connection.requests) == [
        f"metadata/PMC{name}.json" for name in ("1.1", "11.1", "2.10", "5.1")
    ]
    assert (result.older_versions, result.failures) == (2, ())
    assert [row["licence"] for row in result.table.to_pylist()] == ["CC-BY", "CC-BY", "CC-BY", "unknown"]
    assert [row["md5"] is None for row in result.table.to_pylist()] == [False, False, True, False]


def test_known_metadata_is_not_fetched_again(update: RangeUpdates) -> None:
    first = update()
    second = update(today=date(2026, 10, 1))
    assert update.connection.requests == []
    assert second.table == first.table
    assert second.table["retrieved"].to_pylist() == [TODAY] * 4


def test_object_newer_than_the_inventory_is_accepted_once(update: RangeUpdates) -> None:
    update.bucket.put_article(FakeArticle(1, retracted=True))
    result = update()
    [row] = [row for row in result.table.to_pylist() if row["pmcid"] == 1]
    assert row["retracted"]
    assert row["etag"] != row["inventory_etag"]
    update()
    assert update.connection.requests == []
    update.bucket.publish_inventory("2026-09-05")
    update()
    assert update.connection.requests == []
    update.bucket.put_article(FakeArticle(1))
    update.bucket.publish_inventory("2026-09-06")
    assert update().failures == ()
    assert update.list_requests() == ["1.1"]


def test_etags_other_than_md5s_are_compared_as_text(update: RangeUpdates) -> None:
    key = "metadata/PMC1.1.json"
    update.bucket.publish_inventory("2026-09-05", etags={key: "0123-2"})
    update.connection.faults[key] = [lambda response: response._replace(etag="0123-2")]
    assert update().failures == ()
    assert update.list_requests() == ["1.1", "11.1", "2.10", "5.1"]
    assert update().table["etag"].to_pylist()[0] == "0123-2"
    assert update.connection.requests == []
    update.bucket.publish_inventory("2026-09-06", etags={key: "4567-2"})
    assert update().failures == ()
    assert update.list_requests() == ["1.1"]


def test_valid_response_without_etag_is_accepted(update: RangeUpdates) -> None:
    update.bucket.put_article(FakeArticle(1, retracted=True))
    update.connection.faults["metadata/PMC1.1.json"] = [
        HTML_RESPONSE,
        lambda response: response._replace(etag=""),
    ]
    result = update()
    assert (result.table.num_rows, result.failures) == (4, ())
    assert result.table["retracted"].to_pylist()[0]


def test_damaged_response_is_retried(update: RangeUpdates) -> None:
    def change_licence(response: HttpResponse) -> HttpResponse:
        return response._replace(body=response.body.replace(b"CC BY", b"CC0  "))

    update.connection.faults["metadata/PMC1.1.json"] = [change_licence, HTML_RESPONSE]
    result = update()
    assert result.table["licence"].to_pylist()[0] == "CC-BY"
    assert len(update.connection.requests_containing("PMC1.1")) == 3


@pytest.mark.parametrize("doi", ["10.1000/\ud800", "10.1000/1\u00a02", "1" * 10_000])
def test_invalid_doi_is_dropped_and_the_article_kept(doi: str) -> None:
    assert parse_with(doi=doi) == replace(PARSED, doi=None)


def test_cache_with_other_columns_is_read_again(update: RangeUpdates, tmp_path: Path) -> None:
    first = update()
    path = tmp_path / "mirror/pmc/metadata/PMC0000xxxx.parquet"
    pq.write_table(first.table.drop_columns("retracted"), path)
    assert update().table == first.table


@pytest.mark.parametrize(
    ("faults", "reason"),
    [
        ([HTML_RESPONSE] * 3, "damaged"),
        ([RefusedError("metadata/PMC1.1.json: 403")], "refused"),
        ([UnreachableError("metadata/PMC1.1.json: no answer")], "unreachable"),
    ],
)
def test_failure_is_reported_and_retried_by_the_next_update(
    update: RangeUpdates, faults: list[Any], reason: str
) -> None:
    update.connection.faults["metadata/PMC1.1.json"] = faults
    result = update()
    assert len(result.failures) == 1
    assert (result.failures[0].pmcid, result.failures[0].version, result.failures[0].reason) == (1, 1, reason)
    assert "metadata/PMC1.1.json" in result.failures[0].detail
    assert list_versions(result) == ["2.10", "5.1", "11.1"]
    second = update()
    assert update.connection.requests == ["metadata/PMC1.1.json"]
    assert (second.table.num_rows, second.failures) == (4, ())


def test_object_over_the_size_limit_is_refused(update: RangeUpdates) -> None:
    update.bucket.put_article(FakeArticle(1), title="x" * (1 << 20))
    assert update().failures[0].reason == "refused"


def test_unreachable_bucket_ends_the_update_and_what_was_read_is_saved(update: RangeUpdates) -> None:
    create_bucket(update.bucket.root, [FakeArticle(number) for number in range(100, 300)], "2026-09-05")
    for number in range(150, 300):
        update.connection.faults[f"metadata/PMC{number}.1.json"] = [UnreachableError("no answer")]
    with pytest.raises(OutageError, match="100 downloads failed in a row; the last one: no answer"):
        update()
    assert metadata_cache.read_metadata(FILES, update.mirror, 0).num_rows == 54


def test_killed_update_resumes_from_the_last_save(
    update: RangeUpdates, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the rows saved along the way are present after a kill."""
    create_bucket(update.bucket.root, [FakeArticle(number) for number in range(100, 110)], "2026-09-05")
    calls: list[Any] = []
    save = metadata_cache._write_metadata

    def save_twice(*arguments: Any) -> None:
        calls.append(arguments)
        if len(calls) > 2:
            raise KeyboardInterrupt
        save(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(metadata_cache, "_SAVE_INTERVAL", 4)
        patched.setattr(metadata_cache, "_write_metadata", save_twice)
        with pytest.raises(KeyboardInterrupt):
            update()
    assert metadata_cache.read_metadata(FILES, update.mirror, 0).num_rows == 8
    result = update()
    assert (len(update.connection.requests), result.table.num_rows) == (6, 14)


@settings(max_examples=examples(50))
@given(
    st.dictionaries(st.tuples(st.integers(1, 6), st.integers(8, 12)), st.sampled_from("ab")),
    st.dictionaries(st.tuples(st.integers(1, 6), st.integers(8, 12)), st.sampled_from("ab")),
)
def test_comparison_with_inventory_equals_that_of_dictionaries(
    listed: dict[tuple[int, int], str], known: dict[tuple[int, int], str]
) -> None:
    moment = pa.scalar(0, bucket_inventory.INVENTORY_SCHEMA.field("modified").type).as_py()
    rows = [
        {"pmcid": pmcid, "version": version, "etag": etag, "modified": moment}
        for (pmcid, version), etag in sorted(listed.items())
    ]
    known_rows = [
        {"pmcid": pmcid, "version": version, "etag": etag, "inventory_etag": etag, "retrieved": TODAY}
        for (pmcid, version), etag in sorted(known.items())
    ]
    difference = metadata_cache.compare_with_inventory(
        pa.Table.from_pylist(rows, bucket_inventory.INVENTORY_SCHEMA),
        pa.Table.from_pylist(known_rows, METADATA_SCHEMA),
    )
    newest_keys = {key for key in listed if key[1] == max(v for p, v in listed if p == key[0])}

    def get_keys(table: Any) -> set[tuple[int, int]]:
        return {(row["pmcid"], row["version"]) for row in table.to_pylist()}

    assert get_keys(difference.current) == {key for key in newest_keys if known.get(key) == listed[key]}
    assert get_keys(difference.missing) == {key for key in newest_keys if known.get(key) != listed[key]}
    assert get_keys(difference.outdated) == {
        key for key in newest_keys if key in known and known[key] != listed[key]
    }
    assert difference.older_versions == len(listed) - len(newest_keys)
