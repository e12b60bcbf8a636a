"""Documents that two inputs have by the same id."""

from __future__ import annotations

from pathlib import Path

from bioshards.corpus.shards.input_dirs import load_document_inputs
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.vocab.counting.repeated_ids import describe_repeated_ids
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.vocab.synthetic_corpora import write_abstracts, write_articles

FILES = LocalStorage()


def describe(*folders: Path) -> list[str]:
    return describe_repeated_ids(FILES, load_document_inputs(FILES, list(map(str, folders))))


def test_each_two_inputs_with_the_same_ids_are_named_with_their_number(tmp_path: Path) -> None:
    first = write_abstracts(tmp_path / "a", one=range(1, 90), two=range(200, 230))
    second = write_abstracts(tmp_path / "b", one=range(80, 100), two=range(229, 260))
    third = write_abstracts(tmp_path / "c", one=range(300, 310))
    fourth = write_abstracts(tmp_path / "d", one=range(309, 311))
    articles = write_articles(tmp_path / "articles", PMC1=range(1, 3))  # PMIDs of abstracts, other ids
    notices = describe(first, second, third, fourth, articles)
    assert sorted(notice.partition(" of the same ids")[0] for notice in notices) == sorted(
        [
            f"{' and '.join(sorted_by_digest(first, second))} both have 11 documents",
            f"{' and '.join(sorted_by_digest(third, fourth))} both have 1 document",
        ]
    )
    assert describe(first, third, articles) == []


def sorted_by_digest(*folders: Path) -> list[str]:
    """Return the folders in the order in which inputs are read."""
    return [documents.folder for documents in load_document_inputs(FILES, list(map(str, folders)))]


def test_versions_of_an_article_are_one_document(tmp_path: Path) -> None:
    folders = [
        write_document_dir(
            tmp_path / str(version),
            {"PMC1": [make_document(f"pmc:PMC7.{version}", [f"Version {version}."], pmid=7)]},
            "pmc_to_shards",
        )
        for version in (1, 2)
    ]
    [notice] = describe(*folders)
    assert "both have 1 document of the same ids" in notice


def test_a_run_says_how_many_ids_were_read_twice(tmp_path: Path, capsys: object) -> None:
    inputs = [
        write_abstracts(tmp_path / "a", one=range(9)),
        write_abstracts(tmp_path / "b", one=range(5, 20)),
    ]
    options = [word for folder in inputs for word in ("--input", str(folder))]
    command = ["run", "shards_to_words", "--workers", "1", *options, "--output", str(tmp_path / "words")]
    assert cli.main(command) == 0
    assert "both have 4 documents of the same ids" in capsys.readouterr().err  # type: ignore[attr-defined]
