"""Real benchmarks in real text: a set's tokenised words are found in its running text, and few elsewhere."""

from __future__ import annotations

from pathlib import Path

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.definition import BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.record_types import record_text
from tests.support.evaluate.contaminated_corpora import (
    read_excluded_ids,
    read_tsv,
    run_contamination_check,
    write_corpus,
)
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data


def located(name: str) -> BenchmarkFiles:
    found = locate_benchmark(f"{DATA}/benchmarks", BENCHMARKS[name])
    assert found
    return found


def test_bc5cdr_is_found_in_its_abstracts_however_it_is_tokenised(tmp_path: Path) -> None:
    """Its 500 test abstracts as running text, against the sentences and tokens of other distributions."""
    abstracts = load_records(located("bc5cdr-pubtator"))["test"]
    texts = {f"pubmed:{one.document_id}": [record_text(one)] for one in abstracts}
    names = ("bc5cdr-pubtator", "bc5-chem", "ncbi-disease")
    folder = write_corpus(tmp_path / "pubmed", texts)
    said = run_contamination_check(
        Path(f"{DATA}/benchmarks"), [folder], tmp_path / "out", *(BENCHMARKS[name] for name in names)
    )
    table = {row.split()[0]: " ".join(row.split()[2:]) for row in said.splitlines()[1:4]}
    assert table == {
        "bc5cdr-pubtator": "500 500 500 500 of 500 500 500 100.0 % 0",
        "bc5-chem": "4,797 3,835 - - 3,835 3,835 100.0 % 962",
        "ncbi-disease": "940 0 - - 0 0 0.0 % 156",
    }
    assert read_excluded_ids(tmp_path / "out") == sorted(texts)


def test_abstracts_of_bc2gm_are_among_the_real_ones(real_abstracts: Path, tmp_path: Path) -> None:
    """It names no documents; these two were found by its sentences, and read to see that they are theirs."""
    data, parts = Path(f"{DATA}/benchmarks"), ["train", "test"]
    run_contamination_check(data, [real_abstracts], tmp_path / "out", BENCHMARKS["bc2gm"], splits=parts)
    assert read_excluded_ids(tmp_path / "out") == ["pubmed:10022921", "pubmed:10075415"]
    found = read_tsv(tmp_path / "out/examples.tsv")
    assert [row["13-grams"] for row in found] == [row["in corpus"] for row in found]
    assert len(found) == 5
