"""Which abstracts PMC holds in full: what is a match, which article is named, and who leaves them out.

An abstract left out by mistake is missed by nobody, so matches are told case by case and the whole is made
a second time by dictionaries; then directories are made, compared and exported, the wrong ones too.
"""

from __future__ import annotations

import io
import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus import __main__ as command
from bioshards.corpus.document import DOCUMENT_SCHEMA
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.lifecycle.full_text_overlap import MATCH_KEY_SCHEMA, OVERLAP_SCHEMA, OverlapInputError
from bioshards.corpus.manifest import OverlapFile
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.identified_documents import (
    SAMPLE_ABSTRACTS,
    SAMPLE_ARTICLES,
    IdRow,
    make_identified_document,
    write_finished_dir,
)
from tests.support.corpus.manifests import put_documents

PROFILE = settings(derandomize=True, deadline=None, database=None)

FILES = LocalStorage()

Found = list[tuple[str, str, str]]


def table(rows: Sequence[IdRow]) -> pa.Table:
    return pa.Table.from_pylist(
        [dict(zip(MATCH_KEY_SCHEMA.names, row, strict=True)) for row in rows], MATCH_KEY_SCHEMA
    )


def found(articles: Sequence[IdRow], abstracts: Sequence[IdRow], size: int = 3) -> Found:
    """What find says, given both in batches of some rows."""
    keys = table(articles).to_batches(size)
    batches = list(full_text_overlap.find_overlap(keys, lambda: table(abstracts).to_batches(size)))
    assert all(batch.schema == OVERLAP_SCHEMA for batch in batches)
    for batch in batches:
        batch.validate(full=True)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


# One article, one abstract

ARTICLE: IdRow = ("pmc:PMC55.1", 7, "PMC55", "10.1000/a.7")


@pytest.mark.parametrize(
    ("abstract", "by"),
    [
        (("pubmed:7", 7, None, None), "pmid"),
        (("pubmed:8", 8, "PMC55", None), "pmcid"),
        (("pubmed:8", 8, None, "10.1000/a.7"), "doi"),
        (("pubmed:7", 7, "PMC55", "10.1000/a.7"), "pmid"),
        (("pubmed:8", 8, "PMC55", "10.1000/a.7"), "pmcid"),
        (("pubmed:7", 7, "PMC56", "10.1000/other"), "pmid"),
        (("pubmed:8", 8, "PMC56", "10.1000/other"), None),
        (("pubmed:8", 8, None, None), None),
        (("pubmed:8", None, None, None), None),
    ],
)
def test_an_abstract_is_found_by_the_first_key_that_matches(abstract: IdRow, by: str | None) -> None:
    assert found([ARTICLE], [abstract]) == ([(abstract[0], "pmc:PMC55.1", by)] if by else [])


@pytest.mark.parametrize(
    "spelling",
    [
        "10.1000/A.7",
        "https://doi.org/10.1000/a.7",
        "http://dx.doi.org/10.1000/a.7",
        "HTTPS://DOI.ORG/10.1000/A.7",
        "doi:10.1000/a.7",
        "DOI: 10.1000/a.7",
        " 10.1000/a.7\n",
    ],
)
def test_a_doi_is_the_same_in_capitals_and_as_an_address(spelling: str) -> None:
    match = [("pubmed:8", "pmc:PMC55.1", "doi")]
    assert found([ARTICLE], [("pubmed:8", 8, None, spelling)]) == match
    article: IdRow = ("pmc:PMC55.1", None, None, spelling)
    assert found([article], [("pubmed:8", 8, None, "10.1000/a.7")]) == match


@pytest.mark.parametrize("nonsense", ["", " ", "n/a", "10.", "10.1000", "10.1000/", "doi:", "not/10.1000/a"])
def test_what_is_no_doi_matches_nothing(nonsense: str) -> None:
    assert found([("pmc:PMC55.1", None, None, nonsense)], [("pubmed:8", 8, None, nonsense)]) == []


@pytest.mark.parametrize(
    "nonsense", ["", "PMC", "55", "PMC55.1", "XPMC55", "PMC55x", "PMC99999999999999999999"]
)
def test_what_is_no_pmcid_matches_nothing(nonsense: str) -> None:
    assert found([("pmc:PMC55.1", None, nonsense, None)], [("pubmed:8", 8, nonsense, None)]) == []


def test_a_pmcid_is_compared_whole() -> None:
    articles: list[IdRow] = [("pmc:PMC5.1", None, "PMC5", None), ("pmc:PMC555.1", None, "PMC555", None)]
    assert found(articles, [("pubmed:8", 8, "PMC55", None)]) == []


# Several


def test_a_doi_is_asked_only_of_articles_whose_ids_no_abstract_has() -> None:
    """A congress' abstracts share a DOI; the article is the one that NLM says it is."""
    congress = "10.1000/congress"
    abstracts: list[IdRow] = [("pubmed:6", 6, None, congress), ("pubmed:7", 7, None, congress)]
    assert found([("pmc:PMC55.1", 7, "PMC55", congress)], abstracts) == [("pubmed:7", "pmc:PMC55.1", "pmid")]
    assert found([("pmc:PMC55.1", None, None, congress)], abstracts) == [
        ("pubmed:6", "pmc:PMC55.1", "doi"),
        ("pubmed:7", "pmc:PMC55.1", "doi"),
    ]
    # The PMID of an article whose abstract is not in the directory says nothing of those that are.
    assert len(found([("pmc:PMC55.1", 99, "PMC55", congress)], abstracts)) == 2


def test_a_pmid_comes_before_the_pmcid_of_another_article() -> None:
    articles: list[IdRow] = [("pmc:PMC1.1", None, "PMC1", None), ("pmc:PMC2.1", 7, "PMC2", None)]
    assert found(articles, [("pubmed:7", 7, "PMC1", None)]) == [("pubmed:7", "pmc:PMC2.1", "pmid")]


def test_of_articles_that_claim_one_abstract_the_lowest_is_named_by_number_and_then_version() -> None:
    ids = ["pmc:PMC9.10", "pmc:PMC9.2", "pmc:PMC10.1", "pmc:PMC100.1", "pmc:PMC123456789.9999"]
    for keys in [(7, None, None), (None, "PMC3", None), (None, None, "10.1/a")]:
        for seed in range(20):
            shuffled = random.Random(seed).sample(ids, len(ids))
            [(_, full_text_id, _)] = found(
                [(id_, *keys) for id_ in shuffled], [("pubmed:7", 7, "PMC3", "10.1/a")], 2
            )
            assert full_text_id == "pmc:PMC9.2"


def test_rows_are_in_the_order_of_the_abstracts_each_once() -> None:
    articles: list[IdRow] = [(f"pmc:PMC{n}.1", n, f"PMC{n}", f"10.1/{n}") for n in range(1, 21)]
    abstracts: list[IdRow] = [(f"pubmed:{n}", n, f"PMC{n}", f"10.1/{n}") for n in (9, 3, 40, 12, 1, 20)]
    assert [row[0] for row in found(articles, abstracts)] == [f"pubmed:{n}" for n in (9, 3, 12, 1, 20)]


@pytest.mark.parametrize("articles", [[], [pa.RecordBatch.from_pylist([], MATCH_KEY_SCHEMA)]])
def test_without_articles_nothing_is_found(articles: list[pa.Table]) -> None:
    assert (
        list(
            full_text_overlap.find_overlap(
                articles, lambda: table([("pubmed:7", 7, None, None)]).to_batches()
            )
        )
        == []
    )


def test_without_abstracts_nothing_is_found() -> None:
    assert found([ARTICLE], []) == []


@pytest.mark.parametrize(
    "wrong", ["pubmed:1", "pmc:PMC1", "pmc:PMC0.1", "PMC1.1", "pmc:PMC1.1\n", "pmc:PMC1.10000"]
)
def test_an_id_that_is_no_article_s_is_an_error_that_names_it(wrong: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(wrong)} is not the id of a PMC document"):
        found([ARTICLE, (wrong, 8, None, None)], [("pubmed:7", 7, None, None)])


# Against dictionaries


def plain_doi(doi: str | None) -> str | None:
    bare = (doi or "").strip().lower()
    for prefix in (
        "https://doi.org/",
        "http://doi.org/",
        "https://dx.doi.org/",
        "http://dx.doi.org/",
        "doi:",
    ):
        bare = bare.removeprefix(prefix)
    bare = bare.strip()
    prefix, _, suffix = bare.partition("/")
    return bare if prefix.startswith("10.") and prefix[3:] and suffix else None


def plainly(articles: Sequence[IdRow], abstracts: Sequence[IdRow]) -> Found:
    """The same by dictionaries, a row at a time."""

    def number(row: IdRow) -> tuple[int, ...]:
        return tuple(map(int, row[0].removeprefix("pmc:PMC").split(".")))

    pmids = {row[1] for row in abstracts if row[1] is not None}
    pmcids = {row[2] for row in abstracts if row[2] is not None}
    by_pmid: dict[int | None, str] = {}
    by_pmcid: dict[str | None, str] = {}
    by_doi: dict[str | None, str] = {}
    for row in sorted(articles, key=number):
        id_, pmid, pmcid, doi = row
        by_pmid.setdefault(pmid, id_)
        by_pmcid.setdefault(pmcid, id_)
        if pmid not in pmids and pmcid not in pmcids:
            by_doi.setdefault(plain_doi(doi), id_)
    rows: Found = []
    for id_, pmid, pmcid, doi in abstracts:
        if pmid is not None and pmid in by_pmid:
            rows.append((id_, by_pmid[pmid], "pmid"))
        elif pmcid is not None and pmcid in by_pmcid:
            rows.append((id_, by_pmcid[pmcid], "pmcid"))
        elif plain_doi(doi) is not None and plain_doi(doi) in by_doi:
            rows.append((id_, by_doi[plain_doi(doi)], "doi"))
    return rows


NUMBERS = st.integers(1, 12)
PMCIDS = st.none() | NUMBERS.map("PMC{}".format)
DOIS = st.none() | st.builds(
    "{}10.{}/{}{}".format,
    st.sampled_from(["", "", "https://doi.org/", "doi:", "DOI: ", "http://dx.doi.org/", " "]),
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


@settings(PROFILE, max_examples=400)
@given(ARTICLE_ROWS, ABSTRACT_ROWS, st.sampled_from([1, 2, 5, 100]), st.sampled_from([1, 4, 1000]))
def test_what_is_found_is_what_dictionaries_find(
    articles: list[IdRow], abstracts: list[IdRow], size: int, rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(full_text_overlap, "LOOKUP_ROWS", rows)
        expected = plainly(articles, abstracts)
        assert found(articles, abstracts, size) == expected
        assert found(articles[::-1], abstracts, size) == expected


# Leaving out


@settings(PROFILE, max_examples=200)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30), st.integers(1, 7), st.integers(1, 7))
def test_what_is_listed_is_left_out_whatever_the_batches(
    marks: list[tuple[bool, bool]], size: int, chunk: int
) -> None:
    """The first mark says that a document is listed; the second that a shard ends after it."""
    ids = [f"pubmed:{at}" for at in range(len(marks))]
    listed = [id_ for id_, (is_listed, _) in zip(ids, marks, strict=True) if is_listed]
    chunks = [pa.array(listed[at : at + chunk], pa.string()) for at in range(0, len(listed), chunk)]
    batches = pa.table({"id": pa.array(ids, pa.string())}).to_batches(size)
    left = list(full_text_overlap.exclude_ids(batches, pa.chunked_array(chunks, pa.string())))
    assert [id_ for batch in left for id_ in batch["id"].to_pylist()] == [
        id_ for id_, (is_listed, _) in zip(ids, marks, strict=True) if not is_listed
    ]
    assert all(batch.num_rows for batch in left)


@pytest.mark.parametrize("ids", [["pubmed:9"], ["pubmed:2", "pubmed:1"], ["pubmed:1", "pubmed:1"]])
def test_a_list_of_other_documents_is_not_taken_for_one_of_these(ids: list[str]) -> None:
    batches = pa.table({"id": [f"pubmed:{at}" for at in range(4)]}).to_batches(2)
    with pytest.raises(ValueError, match="is to be excluded, but is missing in the documents"):
        list(full_text_overlap.exclude_ids(batches, pa.chunked_array([ids])))


# Directories


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    """PubMed's abstracts, and articles that hold three of them, as a run with --find-overlap-with leaves them."""
    abstracts = write_finished_dir(tmp_path / "abstracts", "pubmed_to_shards", SAMPLE_ABSTRACTS)
    full = write_finished_dir(tmp_path / "full", "pmc_to_shards", SAMPLE_ARTICLES)
    drop_in(full, abstracts)
    return abstracts, full


def drop_in(full: str, abstracts: str) -> OverlapFile:
    listed = full_text_overlap.list_abstract_shards(FILES, abstracts)
    rows = full_text_overlap.find_overlap(
        arrow_io.read_directory(FILES, full, MATCH_KEY_SCHEMA.names),
        lambda: arrow_io.read_shards(FILES, abstracts, listed, MATCH_KEY_SCHEMA.names),
    )
    return full_text_overlap.write(
        FILES,
        f"{full}/{full_text_overlap.FILE_NAME}",
        abstracts,
        full_text_overlap.digest_abstracts(FILES, abstracts),
        rows,
    )


def test_a_list_is_written_and_read_again(pair: tuple[str, str]) -> None:
    abstracts, full = pair
    read = full_text_overlap.read(FILES, full, abstracts)
    assert read.schema == OVERLAP_SCHEMA
    assert [tuple(row.values()) for row in read.to_pylist()] == [
        ("pubmed:2", "pmc:PMC900.1", "pmid"),
        ("pubmed:5", "pmc:PMC105.1", "pmcid"),
        ("pubmed:9", "pmc:PMC901.1", "doi"),
    ]


def test_a_list_is_told_as_it_is_on_disk_and_is_the_same_bytes_each_time(pair: tuple[str, str]) -> None:
    abstracts, full = pair
    before = Path(full, full_text_overlap.FILE_NAME).read_bytes()
    shard = drop_in(full, abstracts)
    assert Path(full, full_text_overlap.FILE_NAME).read_bytes() == before
    assert (shard.file, shard.rows, shard.bytes) == (full_text_overlap.FILE_NAME, 3, len(before))
    with pa.memory_map(f"{full}/{full_text_overlap.FILE_NAME}") as file, pa.ipc.open_stream(file) as stream:
        assert stream.read_all().num_rows == 3


def test_the_identity_of_abstracts_is_that_of_their_shards(tmp_path: Path) -> None:
    one, two = (
        write_finished_dir(tmp_path / name, "pubmed_to_shards", SAMPLE_ABSTRACTS) for name in ("one", "two")
    )
    other = write_finished_dir(tmp_path / "other", "pubmed_to_shards", SAMPLE_ABSTRACTS[:-1])
    assert full_text_overlap.digest_abstracts(FILES, one) == full_text_overlap.digest_abstracts(FILES, two)
    assert full_text_overlap.digest_abstracts(FILES, one) != full_text_overlap.digest_abstracts(FILES, other)


def test_a_directory_that_is_not_of_abstracts_is_refused(pair: tuple[str, str]) -> None:
    for ask in (full_text_overlap.digest_abstracts, full_text_overlap.list_abstract_shards):
        with pytest.raises(
            OverlapInputError, match=r"made by pmc_to_shards\. Give the --output of beam run pubmed_to"
        ) as error:
            ask(FILES, pair[1])
        assert pair[1] in str(error.value)


def test_an_unfinished_directory_is_refused(pair: tuple[str, str]) -> None:
    for folder in pair:
        Path(folder, "manifest.json").rename(f"{folder}/manifest")
        with pytest.raises(FileNotFoundError, match=r"no manifest\.json"):
            full_text_overlap.read(FILES, pair[1], pair[0])
        Path(folder, "manifest").rename(f"{folder}/manifest.json")
    full_text_overlap.read(FILES, pair[1], pair[0])


# Export


def exported(folder: str, without: str | None = None) -> list[str]:
    """The first sentence of each document exported."""
    out = io.StringIO()
    command.export(folder, out, without)
    return [block.split("\n")[0] for block in out.getvalue().split("\n\n")]


def test_export_leaves_out_what_is_held_in_full(pair: tuple[str, str]) -> None:
    assert exported(pair[0]) == [f"About pubmed:{n}." for n in range(1, 11)]
    assert exported(*pair) == [f"About pubmed:{n}." for n in (1, 3, 4, 6, 7, 8, 10)]


def test_export_without_a_directory_that_holds_none_is_all(pair: tuple[str, str], tmp_path: Path) -> None:
    strangers = write_finished_dir(
        tmp_path / "strangers", "pmc_to_shards", [("pmc:PMC1.1", 999, "PMC1", None)]
    )
    drop_in(strangers, pair[0])
    assert exported(pair[0], strangers) == exported(pair[0])


def refused(*arguments: str) -> str:
    """What the command says where it refuses; nothing is exported."""
    done = subprocess.run(
        [sys.executable, "-m", "bioshards.corpus", "export", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_export_refuses_a_directory_made_without_drop_in(pair: tuple[str, str]) -> None:
    abstracts, full = pair
    Path(full, full_text_overlap.FILE_NAME).unlink()
    said = refused(abstracts, "--exclude-overlap-with", full)
    assert f"{full} has no overlap.arrow: it was made without --find-overlap-with" in said
    assert f"Run pmc_to_shards with --find-overlap-with {abstracts}" in said


def test_export_refuses_a_list_made_before_the_abstracts_were_updated(pair: tuple[str, str]) -> None:
    abstracts, full = pair
    write_finished_dir(
        Path(abstracts), "pubmed_to_shards", [*SAMPLE_ABSTRACTS, ("pubmed:11", 11, None, None)]
    )
    said = refused(abstracts, "--exclude-overlap-with", full)
    assert "made for other PubMed shards" in said
    assert "run pmc_to_shards again with the same --find-overlap-with" in said


def test_export_refuses_articles_in_the_place_of_abstracts(pair: tuple[str, str]) -> None:
    assert "does not hold PubMed's abstracts" in refused(pair[1], "--exclude-overlap-with", pair[1])


def test_export_refuses_an_unfinished_directory(pair: tuple[str, str]) -> None:
    Path(pair[1], "manifest.json").unlink()
    assert "no manifest.json" in refused(pair[0], "--exclude-overlap-with", pair[1])


# Reading some columns


class Elsewhere(LocalStorage):
    """A store that is not on this machine: names like mem://folder/name."""

    is_remote = True

    def open(self, path: str) -> Any:
        return super().open(path.removeprefix("mem:/"))

    def exists(self, path: str) -> bool:
        return super().exists(path.removeprefix("mem:/"))


@pytest.mark.parametrize(
    "columns", [["pmid"], ["id", "doi"], ["title", "sentences", "origin"], DOCUMENT_SCHEMA.names]
)
def test_columns_are_read_here_and_elsewhere(pair: tuple[str, str], columns: list[str]) -> None:
    here = list(arrow_io.read_directory(FILES, pair[0], columns))
    elsewhere = list(arrow_io.read_directory(Elsewhere(), f"mem:/{pair[0]}", columns))
    whole = [batch.select(columns) for batch in arrow_io.read_directory(FILES, pair[0])]
    assert here == elsewhere == whole
    assert full_text_overlap.read(Elsewhere(), f"mem:/{pair[1]}", f"mem:/{pair[0]}").num_rows == 3


def test_local_shards_are_mapped_and_not_read_into_memory(tmp_path: Path) -> None:
    def big() -> Iterator[pa.RecordBatch]:
        for n in range(10):
            yield arrow_io.record_batch_from_documents(
                [make_identified_document(f"pubmed:{n}", n, None, None)._replace(title="x" * 1_000_000)]
            )

    written = arrow_io.write_shards(FILES, str(tmp_path), "a", big(), DOCUMENT_SCHEMA, 1 << 30)
    put_documents(tmp_path, written)
    before = pa.total_allocated_bytes()
    batches = list(arrow_io.read_directory(FILES, str(tmp_path), ["id", "pmid"]))
    assert [batch["pmid"][0].as_py() for batch in batches] == list(range(10))
    assert pa.total_allocated_bytes() - before < 50_000
