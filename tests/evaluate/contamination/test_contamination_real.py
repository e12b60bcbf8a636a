"""Contamination checks of real benchmarks against real abstracts."""

from __future__ import annotations

from pathlib import Path

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import record_texts
from tests.support.evaluate.contaminated_corpora import (
    read_excluded_ids,
    read_tsv,
    run_contamination_check,
    write_corpus,
)
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data


def locate_files(name: str) -> BenchmarkFiles:
    files = locate_benchmark(f"{DATA}/benchmarks", BENCHMARKS[name])
    assert files
    return files


def test_bc5cdr_is_found_in_its_abstracts_in_any_tokenization(tmp_path: Path) -> None:
    """Check the 500 test abstracts as running text against three distributions of benchmarks."""
    abstracts = load_records(locate_files("bc5cdr-pubtator"))["test"]
    texts = {f"pubmed:{record.document_id}": [" ".join(record_texts(record))] for record in abstracts}
    names = ("bc5cdr-pubtator", "bc5-chem", "ncbi-disease")
    folder = write_corpus(tmp_path / "pubmed", texts)
    output = run_contamination_check(
        Path(f"{DATA}/benchmarks"), [folder], tmp_path / "out", *(BENCHMARKS[name] for name in names)
    )
    table = {row.split()[0]: " ".join(row.split()[2:]) for row in output.splitlines()[1:4]}
    assert table == {
        "bc5cdr-pubtator": "500 500 500 500 of 500 500 500 100.0 % 0",
        "bc5-chem": "4,797 3,835 - - 3,835 3,835 100.0 % 962",
        "ncbi-disease": "940 0 - - 0 0 0.0 % 156",
    }
    assert read_excluded_ids(tmp_path / "out") == sorted(texts)


def test_bc2gm_abstracts_are_found_by_their_sentences(real_abstracts: Path, tmp_path: Path) -> None:
    """BC2GM names no documents: these two matched by their sentences and were confirmed by reading."""
    data, splits = Path(f"{DATA}/benchmarks"), ["train", "test"]
    run_contamination_check(data, [real_abstracts], tmp_path / "out", BENCHMARKS["bc2gm"], splits=splits)
    assert read_excluded_ids(tmp_path / "out") == ["pubmed:10022921", "pubmed:10075415"]
    rows = read_tsv(tmp_path / "out/examples.tsv")
    assert [row["13-grams"] for row in rows] == [row["in corpus"] for row in rows]
    assert len(rows) == 5
