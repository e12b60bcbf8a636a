"""Reading of full-text sources: each article becomes a document, a drop or a rejection.

A bad article does not affect the others of its file; an archive with a damaged one in it is not used.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import jats
from bioshards.corpus.document import Document
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import RangeUpdate
from bioshards.corpus.download.sources import SETS
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.jats.elements import TREATMENTS
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.inputs import discover
from bioshards.corpus.jats.reader import ArticleReader
from bioshards.corpus.licences import LICENCES
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS
from bioshards.corpus.storage.source_file import SourceFile
from tests.support.corpus.archive_bytes import pack_tar_gz, pack_zip
from tests.support.corpus.jats_articles import write_files
from tests.support.corpus.jats_oracle import BLOCK_TAGS, NON_PROSE_TAGS
from tests.support.corpus.small_articles import (
    KEEP_EVERYTHING,
    pack_articles,
    small_article,
)
from tests.support.hypothesis_profiles import examples
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    TODAY,
    FakeArticle,
    FolderConnection,
    SequentialPool,
    create_bucket,
)

FILES = LocalStorage()


def read_records(
    folder: Path, config: PmcConfig = KEEP_EVERYTHING, keep_dropped: bool = False
) -> list[SourceRecord]:
    """Return the records of all sources in a folder, in order."""
    reader = ArticleReader(config, keep_dropped)
    return [
        record for source in discover(FILES, [str(folder)]) for record in reader.read_records(FILES, source)
    ]


def summarize_records(records: list[SourceRecord]) -> list[tuple[str, int, str]]:
    """Return (file, position, document id or rejection or drop reason) of each record."""
    summaries = []
    for record in records:
        if record.error:
            assert not record.keys
            assert record.document is None
            outcome = record.error.reason
        else:
            [key] = record.keys
            assert not key.is_deletion
            outcome = record.document.id if record.document else key.drop_reason or "?"
        summaries.append((record.file, record.position, outcome))
    return summaries


def list_outcomes(folder: Path) -> list[str]:
    return [outcome for _, _, outcome in summarize_records(read_records(folder))]


def get_document(record: SourceRecord) -> Document:
    assert record.document
    return record.document


# Single files


FILES_AND_OUTCOMES: dict[str, tuple[bytes, str]] = {
    "PMC1.xml": (small_article(1), "pmc:PMC1.1"),
    "PMC2.xml": (small_article(2).replace(b"</sec>", b""), "malformed-xml"),
    "PMC3.xml": (b"", "empty-file"),
    "PMC4.xml": (small_article(4)[:-20], "truncated-xml"),
    "PMC5.xml": (small_article(5, "caf\xe9").decode().encode("latin-1"), "invalid-utf-8"),
    "PMC6.xml.gz": (gzip.compress(small_article(6)), "pmc:PMC6.1"),
    "PMC7.xml.gz": (gzip.compress(small_article(7))[:-9], "truncated-gzip"),
    "PMC8.xml": (b"<html>503</html>", "wrong-root"),
    "PMC9.xml": (b'<!DOCTYPE article [<!ENTITY a SYSTEM "b">]>' + small_article(9), "dtd-declarations"),
    "PMC10.xml": (small_article(10, "&nonesuch;"), "unknown-entity"),
    "PMC11.xml": (small_article(11).replace(b"PMC11", b"PMCx"), "no-id"),
    "PMC12.nxml": (
        b'<?xml version="1.0" encoding="latin-1"?>' + small_article(12, "é").decode().encode("latin-1"),
        "pmc:PMC12.1",
    ),
    "PMC13.xml": (b"<pmc-articleset><error>none</error></pmc-articleset>", "not-available"),
}


def test_bad_file_does_not_affect_the_others(tmp_path: Path) -> None:
    files = {name: data for name, (data, _) in FILES_AND_OUTCOMES.items()}
    two = pack_articles(small_article(14), small_article(15))
    folder = write_files(tmp_path / "in", {**files, "PMC14.xml": two})
    assert summarize_records(read_records(folder)) == [
        *((name, at, outcome) for at, (name, (_, outcome)) in enumerate(FILES_AND_OUTCOMES.items())),
        ("PMC14.xml", 13, "pmc:PMC14.1"),
        ("PMC14.xml", 14, "pmc:PMC15.1"),
    ]


def test_rejection_names_the_cause_and_no_local_path(tmp_path: Path) -> None:
    folder = write_files(
        tmp_path / "in", {"PMC1.xml": small_article(1)[:-20], "PMC2.xml": small_article(2, "&x;")}
    )
    truncated, malformed = read_records(folder)
    assert truncated.error
    assert malformed.error
    assert "ends before </article>" in truncated.error.detail
    assert "&x;" in malformed.error.detail
    assert malformed.raw == small_article(2, "&x;")
    assert str(tmp_path) not in truncated.error.detail + malformed.error.detail


def test_article_list_decides_which_articles_of_a_mirror_are_read(tmp_path: Path) -> None:
    """One that it lists and is missing is rejected, and one that it does not list is not read."""
    inner = tmp_path / "pmc" / "selected"
    inner.mkdir(parents=True)
    folder = create_mirror(inner, *map(FakeArticle, (1, 2, 3)))
    [missing] = folder.rglob("PMC2.1-*.xml")
    missing.unlink()
    write_files(folder / "pmc" / "xml" / "PMC0000xxxx", {"PMC9.1-01234567.xml": small_article(9)})
    assert list_outcomes(folder) == ["pmc:PMC1.1", "unreadable", "pmc:PMC3.1"]
    assert read_records(folder)[1].file == missing.name


# Packages and archives


def test_malformed_article_of_a_package_does_not_affect_the_others(tmp_path: Path) -> None:
    bad = small_article(2).replace(b"<sec>", b"<sec><x>")
    data = pack_articles(
        small_article(1), bad, b"<book>no article</book>", small_article(3, "&nonesuch;"), small_article(4)
    )
    folder = write_files(tmp_path, {"PMC1_PMC9.xml.gz": gzip.compress(data)})
    records = read_records(folder)
    assert summarize_records(records) == [
        ("PMC1_PMC9.xml.gz", position, outcome)
        for position, outcome in enumerate(
            ["pmc:PMC1.1", "malformed-xml", "unexpected-element", "unknown-entity", "pmc:PMC4.1"]
        )
    ]
    assert records[1].raw == bad


# Mirrors


def create_mirror(tmp_path: Path, *articles: FakeArticle, number: int = 0) -> Path:
    """Create a mirror as ``beam run fetch`` does."""
    folder = tmp_path / "mirror"
    connection = FolderConnection(create_bucket(tmp_path / "bucket", articles, "2026-09-04").root)
    bucket_inventory.update_inventory(FILES, str(folder), connection, BASE_URL)
    article_filter = ArticleFilter(frozenset(LICENCES), frozenset(SETS), versions="all")
    report = article_ranges.fetch_range(
        RangeUpdate(FILES, str(folder), SequentialPool(connection), number, article_filter, TODAY)
    )
    assert not report.failures
    return folder


def test_article_list_of_a_mirror_overrides_the_xml(tmp_path: Path) -> None:
    folder = create_mirror(
        tmp_path,
        FakeArticle(1, 2, licence="CC BY-NC", retracted=True, pmid=11, doi="10.5555/One"),
        FakeArticle(2, licence=None, manuscript=True),
        FakeArticle(3, ocr=True),
    )
    one, two, three = map(get_document, read_records(folder))
    assert one.id == "pmc:PMC1.2"
    assert (one.licence, one.retracted, one.pmid, one.doi) == ("CC-BY-NC", True, 11, "10.5555/One")
    assert one.file == f"PMC1.2-{hashlib.md5(FakeArticle(1, 2).xml).hexdigest()[:8]}.xml"
    assert (two.licence, two.pmid, two.flags) == (None, None, ["manuscript"])
    assert (three.licence, three.flags) == ("CC-BY", ["ocr"])
    assert [record.keys[0] for record in read_records(folder, PmcConfig())] == [
        VersionKey(1, 2, False, "licence"),
        VersionKey(2, 1, False, "licence"),
        VersionKey(3, 1, False, "ocr"),
    ]


def test_metadata_that_only_the_xml_has_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    xml = small_article(5, extra_front='<related-article related-article-type="retraction-forward"/>')
    monkeypatch.setattr(FakeArticle, "xml", xml)
    document = get_document(read_records(create_mirror(tmp_path, FakeArticle(5, licence=None)))[0])
    assert (document.licence, document.retracted) == ("CC-BY", True)


@pytest.mark.parametrize("length", [100, 5_000_000], ids=["small", "larger than what is prefetched"])
def test_listed_article_with_another_md5_is_rejected(tmp_path: Path, length: int) -> None:
    """A bit has flipped on the disk: the article is still well-formed, and says something else."""
    articles = [FakeArticle(number, text="A " * (length // 2)) for number in (1, 2)]
    folder = create_mirror(tmp_path, *articles)
    [damaged] = folder.rglob("PMC2.1-*.xml")
    damaged.write_bytes(damaged.read_bytes().replace(b"A A", b"A C", 1))
    records = read_records(folder)
    assert [outcome for _, _, outcome in summarize_records(records)] == ["pmc:PMC1.1", "damaged-copy"]
    assert records[1].file == damaged.name


def edit_article_list(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    [path] = folder.rglob("selected/*.parquet")
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        change(row)
    pq.write_table(pa.Table.from_pylist(rows, article_ranges.ARTICLE_SCHEMA), path)


@pytest.mark.parametrize(
    "name",
    ["../../../../secret.xml", "/etc/passwd", "PMC1.xml", "PMC1.1-0123456.xml", "PMC1.1-01234567.xml\n", ""],
)
def test_article_list_cannot_name_files_outside_its_folder(tmp_path: Path, name: str) -> None:
    write_files(tmp_path, {"secret.xml": small_article(1)})
    folder = create_mirror(tmp_path, FakeArticle(1), FakeArticle(2))
    edit_article_list(folder, lambda row: row["pmcid"] == 1 and row.update(file=name))
    assert list_outcomes(folder) == ["hostile-name", "pmc:PMC2.1"]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1" + b"\0" * 100 + b"PAR1", b"<articles/>"])
def test_invalid_article_list_raises(tmp_path: Path, data: bytes) -> None:
    folder = create_mirror(tmp_path, FakeArticle(1))
    [path] = folder.rglob("selected/*.parquet")
    whole = path.read_bytes()
    for bad in (data, whole[:-20], whole[: len(whole) // 2]):
        path.write_bytes(bad)
        with pytest.raises(BadFileError):
            read_records(folder)
    pq.write_table(pa.table({"pmcid": [1]}), path)
    with pytest.raises(BadFileError):
        read_records(folder)


# Hostile and generated articles


@pytest.mark.parametrize(
    "content",
    [
        "<sec>" * 240 + "<p>a</p>" + "</sec>" * 240,
        "<p>" + "<sup>" * 240 + "a" + "</sup>" * 240 + "</p>",
        "<p>" + "<list><list-item>" * 115 + "<p>a</p>" + "</list-item></list>" * 115 + "</p>",
        "<p><math>" + "<mrow>" * 235 + "<mi>a</mi>" + "</mrow>" * 235 + "</math></p>",
        "<p><math>" + "<msup>" * 235 + "<mi>a</mi>" + "<mi>b</mi></msup>" * 235 + "</math></p>",
        "<sec>" * 300 + "</sec>" * 300,
    ],
    ids=["sections", "superscripts", "lists", "rows", "powers", "beyond"],
)
def test_deeply_nested_article_is_read_or_rejected(tmp_path: Path, content: str) -> None:
    folder = write_files(
        tmp_path, {"PMC1.xml": small_article(1, body=f"<body>{content}</body>"), "PMC2.xml": small_article(2)}
    )
    before = sys.getrecursionlimit()
    first, second = list_outcomes(folder)
    assert first in {"pmc:PMC1.1", "too-deep", "malformed-xml"}
    assert second == "pmc:PMC2.1"
    assert sys.getrecursionlimit() == before


def test_article_is_too_deep_when_the_stack_is_deep(tmp_path: Path) -> None:
    """Runners call the reader from a deep stack, and the recursion limit is not raised."""
    body = f"<body>{'<sec>' * 240}<p>a</p>{'</sec>' * 240}</body>"
    folder = write_files(tmp_path, {"PMC1.xml": small_article(1, body=body), "PMC2.xml": small_article(2)})

    def read_at_depth(frames: int) -> list[SourceRecord]:
        return read_at_depth(frames - 1) if frames else read_records(folder)

    first, second = read_at_depth(600)
    assert first.error
    assert first.error.reason == "too-deep"
    assert first.raw == small_article(1, body=body)
    assert get_document(second).id == "pmc:PMC2.1"


MATHML = {"mrow", "mi", "mo", "mn", "mfrac", "msup", "msubsup", "mtable", "mtr", "mtd", "mfenced"}
NAMES_WITHOUT_PREFIX = [name for name in TREATMENTS if ":" not in name]
ELEMENTS = st.sampled_from(sorted(BLOCK_TAGS | NON_PROSE_TAGS | MATHML)) | st.sampled_from(
    [*NAMES_WITHOUT_PREFIX, "x"]
)
ATTRIBUTES = st.dictionaries(
    st.sampled_from(
        ["ref-type", "sec-type", "fn-type", "abstract-type", "pub-id-type", "id", "pub-type", "open"]
    ),
    st.sampled_from(["bibr", "fn", "con", "pmcid", "pmid", "doi", "graphical", "", "(", "ppub", "٣"]),
    max_size=2,
)
TEXTS = st.sampled_from(
    ["", " ", "One. ", "1", "[", "], ", "(2)", "β", "PMC٣", "10.5555/x", "\n  ", "2019", "CC BY"]
)
XML = st.recursive(
    TEXTS,
    lambda inner: st.builds(
        lambda name, attributes, content: (
            f"<{name}{''.join(f' {key}={chr(34)}{value}{chr(34)}' for key, value in attributes.items())}>"
            f"{''.join(content)}</{name}>"
        ),
        ELEMENTS,
        ATTRIBUTES,
        st.lists(inner, max_size=4),
    ),
    max_leaves=15,
)


@settings(max_examples=examples(500))
@given(
    st.lists(XML, max_size=5).map("".join), st.sampled_from(["body", "back", "front", "floats-group", "x"])
)
def test_generated_well_formed_article_is_a_valid_document(content: str, element: str) -> None:
    data = small_article(1, body=f"<body><p>a</p></body><{element}>{content}</{element}>")
    document = jats.document(data, KEEP_EVERYTHING)
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in document.sentences)
    assert document.num_words == sum(len(sentence.split()) for sentence in document.sentences)
    starts = [first for _, first in document.sections]
    assert starts == sorted(set(starts))
    assert all(first < len(document.sentences) for first in starts)
    assert all(heading == " ".join(heading.split()) for heading, _ in document.sections)


def test_articles_are_opened_lazily(tmp_path: Path) -> None:
    """A local article is opened when it is read; a remote storage is read a few articles ahead."""
    folder = write_files(
        tmp_path, {f"PMC{number}.xml": small_article(number) for number in range(1, 3 * MAX_CONCURRENT_CALLS)}
    )
    [source] = discover(FILES, [str(folder)])
    opened: list[str] = []

    class RecordingStorage(LocalStorage):
        def open(self, path: str) -> Any:
            opened.append(path)
            return super().open(path)

    class RemoteStorage(RecordingStorage):
        is_remote = True

    records = ArticleReader(KEEP_EVERYTHING, False).read_records(RecordingStorage(), source)
    assert [len(opened) for _ in records] == list(range(1, 3 * MAX_CONCURRENT_CALLS))
    opened.clear()
    records = ArticleReader(KEEP_EVERYTHING, False).read_records(RemoteStorage(), source)
    assert all(len(opened) < count + MAX_CONCURRENT_CALLS for count, _ in enumerate(records, 1))
    assert len(opened) == 3 * MAX_CONCURRENT_CALLS - 1
    assert isinstance(source, SourceFile)


def test_xml_that_is_no_article_is_another_file_of_a_package(tmp_path: Path) -> None:
    members = [("PMC1/a.nxml", small_article(1)), ("PMC1/table.xml", b"<Workbook><Row/></Workbook>")]
    write_files(tmp_path / "both", {"PMC1.tar.gz": pack_tar_gz(members)})
    write_files(tmp_path / "none", {"PMC2.tar.gz": pack_tar_gz([("table.xml", b"<Workbook/>")])})
    assert list_outcomes(tmp_path / "both") == ["pmc:PMC1.1"]
    assert list_outcomes(tmp_path / "none") == ["wrong-root"]


def test_archives_in_an_archive_are_read_one_level_deep(tmp_path: Path) -> None:
    package = pack_tar_gz([("PMC1/a.nxml", small_article(1))])
    outer = [
        ("PMC1.tar.gz", package),
        ("deep.tar.gz", pack_tar_gz([("PMC2.tar.gz", package)])),
        ("damaged.tar.gz", b"any"),
        ("b.zip", pack_zip([("b.xml", small_article(2))])),
        ("c.xml", small_article(3)),
    ]
    for name, pack in (("a.tar.gz", pack_tar_gz), ("a.zip", pack_zip)):
        write_files(tmp_path / name, {name: pack(outer)})
        assert summarize_records(read_records(tmp_path / name)) == [
            (f"{name}/PMC1.tar.gz/PMC1/a.nxml", 0, "pmc:PMC1.1"),
            (f"{name}/deep.tar.gz/PMC2.tar.gz", 1, "nested-archive"),
            (f"{name}/damaged.tar.gz", 2, "not-an-archive"),
            (f"{name}/b.zip", 3, "nested-archive"),
            (f"{name}/c.xml", 4, "pmc:PMC3.1"),
        ]


def test_an_archive_is_not_used_if_one_in_it_is_damaged_after_an_article(tmp_path: Path) -> None:
    package = pack_tar_gz([("a.nxml", small_article(1)), ("b.nxml", small_article(2))])
    folder = write_files(tmp_path / "in", {"a.tar.gz": pack_tar_gz([("PMC1.tar.gz", package[:-20])])})
    with pytest.raises(BadFileError, match="truncated"):
        read_records(folder)
