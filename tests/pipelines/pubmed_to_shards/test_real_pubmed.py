"""Tests of ``pubmed_to_shards`` on real records: documents, words and metadata equal the oracle's."""

from __future__ import annotations

import glob
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.corpus.pubmed_oracle import PubMedOracle, as_tuples, without_power_marks
from tests.support.outputs import load_documents, load_manifest
from tests.support.real_data import DATA, needs_data

Run = Callable[..., int]
pytestmark = needs_data
CITED_WORDS = {("31840268", "workplace.1"): "workplace."}
"""By PMID, words with the number of a citation, which is left out."""


def _list_pubmed_files() -> list[Path]:
    return [Path(path) for path in glob.glob(f"{DATA}/pubmed/**/*", recursive=True) if Path(path).is_file()]


def _assert_equals_oracle(output: Path, oracle: PubMedOracle) -> None:
    """Assert that documents, words and metadata of a run with --keep-title-only equal the oracle's."""
    rows = {str(row["pmid"]): row for row in load_documents(output).values()}
    expected = {pmid: text for pmid, text in oracle.live.items() if text[0] or text[1]}
    assert rows.keys() == expected.keys()
    for pmid, (title, abstract) in expected.items():
        row, metadata = rows[pmid], oracle.facts[pmid]
        if pmid not in oracle.with_formulas:
            read_words = [CITED_WORDS.get((pmid, word), word) for word in title + abstract]
            words = without_power_marks(" ".join(read_words)).split()
            assert without_power_marks(" ".join(row["sentences"])).split() == words, pmid
            assert without_power_marks(row["title"]) == without_power_marks(" ".join(title)), pmid
        for name in ("doi", "year", "language", "retracted"):
            assert row[name] == metadata[name], (pmid, name)
        for name, value in metadata["columns"].items():  # type: ignore[attr-defined]
            found = as_tuples(row.get(name, value))  # unless --columns all
            if name in ("keywords", "other_abstracts"):
                found, value = without_power_marks(str(found)), without_power_marks(str(value))
                assert found == value or pmid in oracle.with_formulas, (pmid, name)
            else:
                assert found == value, (pmid, name)
        # A few ids name a version of the article too (PMC6883395.3); the column does not.
        assert row["pmcid"] == (str(metadata["pmcid"]).partition(".")[0] if metadata["pmcid"] else None), pmid
        headings = [section["heading"] for section in row["sections"]]
        labels = [" ".join(label.split()) for label in metadata["labels"] if label.strip() != "UNLABELLED"]  # type: ignore[attr-defined]
        assert [
            heading.removeprefix("Abstract > ") for heading in headings if heading != "Abstract"
        ] == labels, pmid


@pytest.fixture(scope="module")
def all_documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.support.fork_server import run_beam

    output = tmp_path_factory.mktemp("real") / "out"
    completed = run_beam(
        *("run", "pubmed_to_shards", "--workers", 1, "--output", output, "--keep-title-only"),
        *("--disable-cleaning", "all", "--columns", "all"),
        *("--max-rejected", 0.01, "--input", f"{DATA}/pubmed", "--input", f"{DATA}/pubmed/**/*.@*"),
    )
    assert completed.returncode == 0, completed.stderr
    return output


def test_all_files_in_one_run_equal_the_oracle(all_documents: Path) -> None:
    files = _list_pubmed_files()
    assert len(files) == 130
    oracle = PubMedOracle(files)
    _assert_equals_oracle(all_documents, oracle)
    funnel = dict(load_manifest(all_documents)["funnel"])
    records = funnel.pop("records")
    assert records == sum(funnel.values()) == oracle.records
    assert funnel["kept"] + funnel["dropped: no-text"] == len(oracle.live)
    # Ten records of one project's test files have a letter in the PMID (11119751-a).
    assert {name: count for name, count in funnel.items() if name.startswith("rejected")} == {
        "rejected: bad-pmid": 10
    }


def test_duplicates_equal_the_oracle(tmp_path: Path, run: Run) -> None:
    assert (
        run(
            *("--input", f"{DATA}/pubmed", "--input", f"{DATA}/pubmed/**/*.@*", "--output", tmp_path),
            *("--max-rejected", 0.01, "--keep-title-only", "--dedup", "exact"),
        )
        == 0
    )
    lowest: dict[str, str] = {}
    expected: dict[str, str] = {}
    for pmid, text in sorted(PubMedOracle(_list_pubmed_files()).live.items(), key=lambda item: int(item[0])):
        title, abstract = ("".join(filter(str.isalnum, "".join(words).lower())) for words in text)
        original = lowest.setdefault(f"{title} {abstract}", pmid)
        if abstract and original != pmid:
            expected[f"pubmed:{pmid}"] = f"pubmed:{original}"
    pairs = [line.split("\t") for line in (tmp_path / "duplicates.tsv").read_text().splitlines()[1:]]
    assert dict(pairs) == expected
