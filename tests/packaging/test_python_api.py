"""``import bioshards``: its ten names, on what the commands write."""

from __future__ import annotations

import doctest
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import get_type_hints

import pyarrow.compute as pc
import pytest

import bioshards
from bioshards import api
from bioshards.corpus.document import ArticleColumns
from bioshards.corpus.errors import BadFileError, BadRecordError, InvalidValueError
from bioshards.corpus.manifest import ManifestError
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.pipelines import cli
from bioshards.vocab import __main__ as vocab_command
from tests.support import api_reference
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import load_documents
from tests.support.paths import PMC_SAMPLE, PUBMED_SAMPLE

pytestmark = pytest.mark.thorough  # this file takes minutes

ALL_COLUMNS = ArticleColumns._fields


@pytest.fixture(scope="module")
def abstracts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Output of the first file of the sample, with all columns."""
    output = tmp_path_factory.mktemp("api") / "abstracts"
    options = ["--input", str(first_file()), "--output", str(output), "--columns", "all", "--workers", "1"]
    assert cli.main(["run", "pubmed_to_shards", *options]) == 0
    return output


def first_file() -> Path:
    return min(PUBMED_SAMPLE.glob("*.xml*"))


def test_all_names_are_there() -> None:
    assert len(bioshards.__all__) == 10
    for name in bioshards.__all__:
        assert getattr(bioshards, name).__doc__
        assert name in dir(bioshards)
    with pytest.raises(AttributeError, match="no attribute 'splits'"):
        bioshards.splits  # noqa: B018


def test_examples_of_docstrings() -> None:
    results = doctest.testmod(api)
    assert (results.failed, results.attempted >= 2) == (0, True)


def test_reference_is_made_from_the_docstrings() -> None:
    assert api_reference.PAGE.read_text() == api_reference.format_page(), (
        "run python -m tests.support.api_reference"
    )


def test_documents_of_a_file_are_those_of_a_run(abstracts: Path) -> None:
    found = list(bioshards.read_pubmed(first_file(), ALL_COLUMNS))
    documents = bioshards.open_documents(abstracts)
    assert len(found) >= len(documents) > 20  # of several versions, a run keeps the newest
    for document in documents:
        assert document in found
        assert document.sections or len(document.sentences) == 1
        assert set(document.metadata) == set(ALL_COLUMNS)


def test_document_and_row_are_converted_without_loss(abstracts: Path) -> None:
    rows = load_documents(abstracts)
    for document in bioshards.open_documents(abstracts):
        assert document.to_dict() == rows[document.id]
        assert bioshards.Document.from_dict(document.to_dict()) == document
        assert document.text.split("\n") == list(document.sentences)
        assert document.sentences[-len(document.sections[-1].sentences) :] == document.sections[-1].sentences


def test_document_of_a_title_has_no_sections(tmp_path: Path) -> None:
    document = make_document("pubmed:7", ["A title.", "Of two sentences."], sections=[])
    folder = write_document_dir(tmp_path / "documents", {"one": [document]})
    [read] = bioshards.open_documents(folder)
    assert (read.sections, read.sentences) == ((), ("A title.", "Of two sentences."))
    assert read.to_dict() == load_documents(folder)["pubmed:7"]


def test_document_has_the_columns_of_a_shard() -> None:
    attributes = set(get_type_hints(bioshards.Document)) - {"metadata"} | {"origin"}
    assert attributes - {"file", "position"} == set(DOCUMENT_SCHEMA.names)


def test_filters_and_tables(abstracts: Path) -> None:
    documents = bioshards.open_documents(abstracts)
    years = sorted({document.year for document in documents if document.year})
    recent = documents.filter(pc.field("year") >= years[len(years) // 2])
    expected = [document for document in documents if (document.year or 0) >= years[len(years) // 2]]
    assert list(recent) == expected
    assert len(recent) == len(expected) < len(documents)
    assert len(recent.filter(pc.field("id") == expected[0].id)) == 1
    ids = [document.id for document in expected]
    assert recent.to_arrow(["id"])["id"].to_pylist() == ids
    assert list(recent.to_pandas(["id", "pmid"])["id"]) == ids
    assert [row for batch in recent.iter_batches(["id"]) for row in batch["id"].to_pylist()] == ids


def test_documents_are_taken_by_their_indices(
    abstracts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bioshards.corpus.shards.document_shards.BATCH_ROWS", 7)
    documents = bioshards.open_documents(abstracts)
    every, last = list(documents), len(documents) - 1
    for indices in ([0], [last], [last, 3, 3, 0], range(6, 9), range(len(documents)), []):
        assert list(documents.take(indices)) == [every[index] for index in sorted(set(indices))]
    recent = documents.filter(pc.field("pmid") > every[2].pmid)
    assert list(recent.take([0])) == list(recent)[:1]
    for indices in ([-1], [0, last + 1]):
        with pytest.raises(IndexError, match=f"of {len(documents)}"):
            list(documents.take(indices))
    copy = tmp_path / "copy"
    shutil.copytree(abstracts, copy)
    [shard] = copy.glob("data/*")
    os.truncate(shard, shard.stat().st_size - 1)
    with pytest.raises(OSError, match="is damaged: it has"):
        list(bioshards.open_documents(copy).take([0]))


@pytest.mark.thorough
def test_dataset_of_hugging_face(abstracts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path)
    documents = bioshards.open_documents(abstracts)
    assert documents.to_dataset()["id"] == [document.id for document in documents]


def test_article_is_that_of_a_run(tmp_path: Path) -> None:
    path = min(PMC_SAMPLE.glob("*.xml"))
    options = ["--input", str(path), "--output", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main(["run", "pmc_to_shards", *options, "--columns", "all"]) == 0
    [document] = bioshards.open_documents(tmp_path / "out")
    assert bioshards.read_article(path, ALL_COLUMNS) == document


def test_rows_and_vocabulary(abstracts: Path, tmp_path: Path) -> None:
    vocabulary, output = str(tmp_path / "vocab"), str(tmp_path / "rows")
    assert vocab_command.main(["build", str(abstracts), "--output", vocabulary, "--size", "300"]) == 0
    options = ["--input", str(abstracts), "--vocab", vocabulary, "--output", output, "--workers", "1"]
    assert cli.main(["run", "shards_to_pretraining", *options, "--objective", "bert"]) == 0
    encoder = bioshards.load_vocabulary(vocabulary)
    rows = bioshards.open_rows(output)
    assert len(rows) == json.loads(Path(output, "manifest.json").read_text())["counts"]["train"]["rows"]
    assert list(rows) == [rows[index] for index in range(len(rows))]
    assert rows[-1] == rows[len(rows) - 1]
    assert all(row.input_ids[0] == encoder.special_ids["[CLS]"] for row in rows)
    assert {row.label for row in rows} <= {0, 1, -100}
    with pytest.raises(IndexError, match="of "):
        rows[len(rows)]
    with pytest.raises(ManifestError, match=r"no pretraining set: .* made by pubmed_to_shards"):
        bioshards.open_rows(abstracts)
    with pytest.raises(ManifestError, match="does not hold documents"):
        bioshards.open_documents(output)


def test_missing_files_are_errors_of_missing_files(tmp_path: Path) -> None:
    for read in (
        bioshards.read_pubmed,
        bioshards.read_article,
        bioshards.open_documents,
        bioshards.open_rows,
        bioshards.load_vocabulary,
    ):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing")


def test_other_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<html/>")
    with pytest.raises(BadFileError, match="its root is <html>"):
        list(bioshards.read_pubmed(path))
    with pytest.raises((BadFileError, BadRecordError)):
        bioshards.read_article(path)
    with pytest.raises(InvalidValueError, match=r"no column 'meesh'.*mesh"):
        bioshards.read_pubmed(path, ["meesh"])


def test_record_that_cannot_be_read_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<PubmedArticleSet><PubmedArticle><MedlineCitation/></PubmedArticle></PubmedArticleSet>")
    with pytest.warns(UserWarning, match=r"a\.xml: record 0 is left out \(no-pmid"):
        assert list(bioshards.read_pubmed(path)) == []


def test_clean_text_of_an_abstract() -> None:
    assert bioshards.clean("A\u00a0<b>bold</b> claim.") == "A bold claim."
    labelled = "METHODS: We measured. RESULTS: It grew."
    assert bioshards.clean(labelled) == labelled


def list_imports(code: str) -> set[str]:
    """Return the top-level modules that a program imports."""
    program = f"{code}\nimport sys\nprint(*sorted({{name.partition('.')[0] for name in sys.modules}}))"
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(completed.stdout.splitlines()[-1].split(" "))


def test_nothing_is_imported_before_it_is_used() -> None:
    heavy = {"apache_beam", "torch", "transformers", "requests", "pyarrow", "lxml", "tokenizers", "numpy"}
    assert not heavy & list_imports("import bioshards")
    assert not heavy & list_imports("import bioshards; bioshards.split('It grew. It fell.')")
    used = list_imports(f"import bioshards; list(bioshards.read_pubmed({str(first_file())!r}))")
    assert not {"apache_beam", "torch", "transformers", "requests", "pandas"} & used
