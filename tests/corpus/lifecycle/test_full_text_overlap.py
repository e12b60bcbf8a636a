"""The full-text overlap: matching by ids, exclusion, files of directories and export."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import __main__ as command
from bioshards.corpus.document import Document
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.lifecycle.full_text_overlap import MATCH_KEY_SCHEMA, OVERLAP_SCHEMA, OverlapInputError
from bioshards.corpus.manifest import OverlapFile, Shard
from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.identified_documents import (
    SAMPLE_ABSTRACTS,
    SAMPLE_ARTICLES,
    IdRow,
    make_identified_document,
    write_finished_dir,
)
from tests.support.corpus.manifests import put_documents
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()

OverlapRows = list[tuple[str, str, str]]


def make_table(rows: Sequence[IdRow]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(MATCH_KEY_SCHEMA.names, row, strict=True)) for row in rows], MATCH_KEY_SCHEMA
    )


def find_overlap(articles: Sequence[IdRow], abstracts: Sequence[IdRow], size: int = 3) -> OverlapRows:
    """Return the overlap of articles and abstracts, both given in batches of ``size`` rows."""
    keys = make_table(articles).to_batches(size)
    batches = list(full_text_overlap.find_overlap(keys, lambda: make_table(abstracts).to_batches(size)))
    assert all(batch.schema == OVERLAP_SCHEMA for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


# Matches of one article and one abstract

ARTICLE: IdRow = ("pmc:PMC55.1", 7, "PMC55", "10.1000/a.7")


@pytest.mark.parametrize("nonsense", ["", " ", "n/a", "10.", "10.1000", "10.1000/", "doi:", "not/10.1000/a"])
def test_invalid_dois_match_nothing(nonsense: str) -> None:
    assert find_overlap([("pmc:PMC55.1", None, None, nonsense)], [("pubmed:8", 8, None, nonsense)]) == []


@pytest.mark.parametrize(
    "nonsense", ["", "PMC", "55", "PMC55.1", "XPMC55", "PMC55x", "PMC99999999999999999999"]
)
def test_invalid_pmcids_match_nothing(nonsense: str) -> None:
    assert find_overlap([("pmc:PMC55.1", None, nonsense, None)], [("pubmed:8", 8, nonsense, None)]) == []


# Several articles and abstracts


@pytest.mark.parametrize(
    "invalid_id", ["pubmed:1", "pmc:PMC1", "pmc:PMC0.1", "PMC1.1", "pmc:PMC1.1\n", "pmc:PMC1.10000"]
)
def test_invalid_article_id_is_an_error(invalid_id: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(invalid_id)} is not the id of a PMC document"):
        find_overlap([ARTICLE, (invalid_id, 8, None, None)], [("pubmed:7", 7, None, None)])


# Comparison with dictionaries


def normalise_doi(doi: str | None) -> str | None:
    plain = (doi or "").strip().lower()
    for prefix in (
        "https://doi.org/",
        "http://doi.org/",
        "https://dx.doi.org/",
        "http://dx.doi.org/",
        "doi:",
    ):
        plain = plain.removeprefix(prefix)
    plain = plain.strip()
    prefix, _, suffix = plain.partition("/")
    return plain if prefix.startswith("10.") and prefix[3:] and suffix else None


def compute_expected(articles: Sequence[IdRow], abstracts: Sequence[IdRow]) -> OverlapRows:
    """Return the overlap as computed with dictionaries, a row at a time.

    The abstracts of a congress share a DOI; NLM's PMID and PMCID identify the article.
    """

    def parse_version(row: IdRow) -> tuple[int, ...]:
        return tuple(map(int, row[0].removeprefix("pmc:PMC").split(".")))

    pmids = {row[1] for row in abstracts if row[1] is not None}
    pmcids = {row[2] for row in abstracts if row[2] is not None}
    by_pmid: dict[int | None, str] = {}
    by_pmcid: dict[str | None, str] = {}
    by_doi: dict[str | None, str] = {}
    for row in sorted(articles, key=parse_version):
        id_, pmid, pmcid, doi = row
        by_pmid.setdefault(pmid, id_)
        by_pmcid.setdefault(pmcid, id_)
        if pmid not in pmids and pmcid not in pmcids:
            by_doi.setdefault(normalise_doi(doi), id_)
    rows: OverlapRows = []
    for id_, pmid, pmcid, doi in abstracts:
        if pmid is not None and pmid in by_pmid:
            rows.append((id_, by_pmid[pmid], "pmid"))
        elif pmcid is not None and pmcid in by_pmcid:
            rows.append((id_, by_pmcid[pmcid], "pmcid"))
        elif normalise_doi(doi) is not None and normalise_doi(doi) in by_doi:
            rows.append((id_, by_doi[normalise_doi(doi)], "doi"))
    return rows


NUMBERS = st.integers(1, 12)
PMCIDS = st.none() | NUMBERS.map("PMC{}".format)
DOIS = st.none() | st.builds(
    "{}10.{}/{}{}".format,
    st.sampled_from(
        ["", "", "https://doi.org/", "HTTPS://DOI.ORG/", "doi:", "DOI: ", "http://dx.doi.org/", " "]
    ),
    st.sampled_from(["", "1", "1000"]),
    st.sampled_from(["", "a", "A", "b", "B c", "1/2"]),
    st.sampled_from(["", "", " "]),
)
ARTICLE_ROWS = st.lists(
    st.tuples(
        st.builds("pmc:PMC{}.{}".format, NUMBERS, st.integers(1, 11)), st.none() | NUMBERS, PMCIDS, DOIS
    ),
    max_size=12,
    unique_by=lambda row: row[0],
)
ABSTRACT_ROWS = st.lists(
    st.tuples(NUMBERS, PMCIDS, DOIS).map(lambda row: (f"pubmed:{row[0]}", *row)),
    max_size=12,
    unique_by=lambda row: row[0],
)


@settings(max_examples=examples(400))
@given(ARTICLE_ROWS, ABSTRACT_ROWS, st.sampled_from([1, 2, 5, 100]), st.sampled_from([1, 4, 1000]))
def test_overlap_equals_that_of_dictionaries(
    articles: list[IdRow], abstracts: list[IdRow], size: int, rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_text_overlap, "LOOKUP_ROWS", rows)
        expected = compute_expected(articles, abstracts)
        assert find_overlap(articles, abstracts, size) == expected
        assert find_overlap(articles[::-1], abstracts, size) == expected


# Exclusion


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.integers(1, 7), st.integers(1, 7))
def test_listed_ids_are_excluded_for_any_batches(
    marks: list[tuple[bool, bool]], size: int, chunk: int
) -> None:
    """A mark says whether a document is listed, and whether a shard ends after it."""
    ids = [f"pubmed:{index}" for index in range(len(marks))]
    listed = [id_ for id_, (is_listed, _) in zip(ids, marks, strict=True) if is_listed]
    chunks = [pa.array(listed[index : index + chunk], pa.string()) for index in range(0, len(listed), chunk)]
    batches = pa.table({"id": pa.array(ids, pa.string())}).to_batches(size)
    remaining = list(full_text_overlap.exclude_ids(batches, pa.chunked_array(chunks, pa.string())))
    assert [id_ for batch in remaining for id_ in batch["id"].to_pylist()] == [
        id_ for id_, (is_listed, _) in zip(ids, marks, strict=True) if not is_listed
    ]
    assert all(batch.num_rows for batch in remaining)


@pytest.mark.parametrize("ids", [["pubmed:9"], ["pubmed:2", "pubmed:1"], ["pubmed:1", "pubmed:1"]])
def test_exclusion_of_missing_ids_is_an_error(ids: list[str]) -> None:
    batches = pa.table({"id": [f"pubmed:{index}" for index in range(4)]}).to_batches(2)
    with pytest.raises(ValueError, match="is to be excluded, but is missing in the documents"):
        list(full_text_overlap.exclude_ids(batches, pa.chunked_array([ids])))


# Directories


@pytest.fixture
def finished_dirs(tmp_path: Path) -> tuple[str, str]:
    """The directories of abstracts and of articles with three of them, with the overlap file."""
    abstracts = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    articles = write_finished_dir(tmp_path / "full", "pmc_to_shards", SAMPLE_ARTICLES)
    assert write_overlap(articles, abstracts).rows == 3
    return abstracts, articles


def write_overlap(articles_dir: str, abstracts_dir: str) -> OverlapFile:
    """Write the overlap file of the articles, as ``--find-overlap-with`` does."""
    shards = full_text_overlap.list_abstract_shards(FILES, abstracts_dir)
    rows = full_text_overlap.find_overlap(
        document_shards.read_directory(FILES, articles_dir, MATCH_KEY_SCHEMA.names),
        lambda: document_shards.read_shards(FILES, abstracts_dir, shards, MATCH_KEY_SCHEMA.names),
    )
    return full_text_overlap.write(
        FILES,
        f"{articles_dir}/{full_text_overlap.FILE_NAME}",
        abstracts_dir,
        full_text_overlap.digest_abstracts(FILES, abstracts_dir),
        rows,
    )


def test_overlap_file_is_reproducible(finished_dirs: tuple[str, str]) -> None:
    abstracts, articles = finished_dirs
    before = Path(articles, full_text_overlap.FILE_NAME).read_bytes()
    overlap_file = write_overlap(articles, abstracts)
    assert Path(articles, full_text_overlap.FILE_NAME).read_bytes() == before
    assert (overlap_file.file, overlap_file.rows, overlap_file.bytes) == (
        full_text_overlap.FILE_NAME,
        3,
        len(before),
    )
    with (
        pa.memory_map(f"{articles}/{full_text_overlap.FILE_NAME}") as file,
        pa.ipc.open_stream(file) as stream,
    ):
        assert stream.read_all().num_rows == 3


def test_directory_without_abstracts_is_refused(finished_dirs: tuple[str, str]) -> None:
    for function in (full_text_overlap.digest_abstracts, full_text_overlap.list_abstract_shards):
        with pytest.raises(
            OverlapInputError, match=r"made by pmc_to_shards\. Give the --output of beam run pubmed_to"
        ) as error:
            function(FILES, finished_dirs[1])
        assert finished_dirs[1] in str(error.value)


# Export


def export_first_sentences(folder: str, without: str | None = None) -> list[str]:
    """Return the first sentence of each exported document."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        command.export(command.ExportOptions(folder=folder, exclude_overlap_with=without))
    return [block.split("\n")[0] for block in out.getvalue().split("\n\n")]


def test_export_excludes_the_overlap(finished_dirs: tuple[str, str]) -> None:
    assert export_first_sentences(finished_dirs[0]) == [f"About pubmed:{n}." for n in range(1, 11)]
    assert export_first_sentences(*finished_dirs) == [f"About pubmed:{n}." for n in (1, 3, 4, 6, 7, 8, 10)]


def remove_overlap(_abstracts: str, articles: str) -> None:
    Path(articles, full_text_overlap.FILE_NAME).unlink()


def remove_manifest(_abstracts: str, articles: str) -> None:
    Path(articles, "manifest.json").unlink()


def add_abstract(abstracts: str, _articles: str) -> None:
    write_finished_dir(
        Path(abstracts), "pubmed_to_shards", [*SAMPLE_ABSTRACTS, ("pubmed:11", 11, None, None)]
    )


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            remove_overlap,
            "has no overlap.arrow: it was made without --find-overlap-with.*Run pmc_to_shards with",
        ),
        (remove_manifest, "no manifest.json"),
        (add_abstract, "made for other PubMed shards.*run pmc_to_shards again with the same --find-overlap"),
    ],
)
def test_export_refuses_what_is_no_overlap_of_these_abstracts(
    finished_dirs: tuple[str, str],
    damage: Callable[[str, str], None],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    damage(*finished_dirs)
    assert command.main(["export", finished_dirs[0], "--exclude-overlap-with", finished_dirs[1]]) == 2
    stdout, stderr = capsys.readouterr()
    assert stdout == ""
    assert re.search(message, stderr)


def test_export_refuses_articles_in_place_of_abstracts(
    finished_dirs: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command.main(["export", finished_dirs[1], "--exclude-overlap-with", finished_dirs[1]]) == 2
    assert "does not hold PubMed's abstracts" in capsys.readouterr().err


# Selected columns


class FakeRemoteStorage(LocalStorage):
    """A remote storage with paths such as mem://folder/name."""

    is_remote = True

    def open(self, path: str) -> Any:
        return super().open(path.removeprefix("mem:/"))

    def exists(self, path: str) -> bool:
        return super().exists(path.removeprefix("mem:/"))


@pytest.mark.parametrize(
    "columns", [["pmid"], ["id", "doi"], ["title", "sentences", "origin"], DOCUMENT_SCHEMA.names]
)
def test_columns_are_read_from_local_and_remote_shards(
    finished_dirs: tuple[str, str], columns: list[str]
) -> None:
    local = list(document_shards.read_directory(FILES, finished_dirs[0], columns))
    remote = list(document_shards.read_directory(FakeRemoteStorage(), f"mem:/{finished_dirs[0]}", columns))
    expected = [batch.select(columns) for batch in document_shards.read_directory(FILES, finished_dirs[0])]
    assert local == remote == expected
    assert all(batch.schema.names == columns for batch in local)
    assert (
        full_text_overlap.read(
            FakeRemoteStorage(), f"mem:/{finished_dirs[1]}", f"mem:/{finished_dirs[0]}"
        ).num_rows
        == 3
    )


def write_single_shard(folder: Path, documents: list[Document]) -> list[Shard]:
    batch = document_schema.record_batch_from_documents(documents)
    return document_shards.write_shards(FILES, str(folder), "a", [batch], DOCUMENT_SCHEMA, 1 << 30)


def test_only_the_columns_in_use_are_read(tmp_path: Path) -> None:
    documents = [
        make_identified_document(f"pubmed:{number}", number, None, None)._replace(title="x" * 1_000_000)
        for number in range(10)
    ]
    shards = write_single_shard(tmp_path, documents)
    put_documents(tmp_path, shards)
    allocated_before = pa.total_allocated_bytes()
    batches = list(document_shards.read_directory(FILES, str(tmp_path), ["id", "pmid"]))
    assert [number for batch in batches for number in batch["pmid"].to_pylist()] == list(range(10))
    assert pa.total_allocated_bytes() - allocated_before < 50_000


def test_articles_without_text_have_no_keys(tmp_path: Path) -> None:
    flags = [[], ["manuscript", "no-body"], ["ocr"], []]
    documents = [
        make_identified_document(*row)._replace(flags=flags[index])
        for index, row in enumerate(SAMPLE_ARTICLES)
    ]
    shards = write_single_shard(tmp_path, documents)
    batches = list(full_text_overlap.read_keys(FILES, str(tmp_path), shards))
    assert all(batch.schema == MATCH_KEY_SCHEMA for batch in batches)
    keys = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    assert keys == [SAMPLE_ARTICLES[0], *SAMPLE_ARTICLES[2:]]
