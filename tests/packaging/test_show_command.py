"""``bioshards show``: which documents, how they look, and their source beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bioshards import show
from bioshards.pipelines import cli
from tests.support.outputs import load_documents
from tests.support.paths import PUBMED_SAMPLE, TEXT_SAMPLE

pytestmark = pytest.mark.thorough  # this file takes minutes

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def abstracts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("show") / "abstracts"
    options = ["--input", str(PUBMED_SAMPLE), "--output", str(output), "--columns", "all", "--workers", "1"]
    assert cli.main(["run", "pubmed_to_shards", *options]) == 0
    return output


def list_shown_ids(capsys: Capture) -> list[str]:
    return re.findall(r"^(pubmed:\d+) · ", capsys.readouterr().out, re.MULTILINE)


def test_first_and_random_documents(abstracts: Path, capsys: Capture) -> None:
    ids = list(load_documents(abstracts))
    capsys.readouterr()
    assert show.main([str(abstracts)]) == 0
    assert list_shown_ids(capsys) == ids[:1]
    assert show.main([str(abstracts), "--first", "3"]) == 0
    assert list_shown_ids(capsys) == ids[:3]
    assert show.main([str(abstracts), "--first", "1000"]) == 0
    assert list_shown_ids(capsys) == ids
    drawn = []
    for seed in ("1", "1", "2"):
        assert show.main([str(abstracts), "--random", "5", "--seed", seed]) == 0
        drawn.append(list_shown_ids(capsys))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 5
    assert set(drawn[0] + drawn[2]) <= set(ids)


def test_document_is_shown_with_its_columns(abstracts: Path, capsys: Capture) -> None:
    capsys.readouterr()
    rows = load_documents(abstracts)
    row = next(row for row in rows.values() if row["mesh"] and row["sections"] and row["doi"])
    assert show.main([str(abstracts), "--id", row["id"]]) == 0
    shown = re.sub(r"\s+", " ", capsys.readouterr().out)
    origin = f"record {row['origin']['position']}"
    for text in (row["title"], row["doi"], row["journal"], *row["sentences"][1:], origin):
        assert re.sub(r"\s+", " ", text) in shown
    assert f"[{row['sections'][0]['heading']}]" in shown
    assert row["mesh"][0]["descriptor"] in shown
    assert "{" not in shown


def test_source_is_beside_the_text(abstracts: Path, capsys: Capture) -> None:
    capsys.readouterr()
    for id_, row in load_documents(abstracts).items():
        assert show.main([str(abstracts), "--id", id_, "--with-source"]) == 0
        left = "".join(line.partition(" | ")[0].strip() for line in capsys.readouterr().out.splitlines())
        assert str(row["pmid"]) in left
        assert "Article" in left


def test_texts_have_a_source_too(tmp_path: Path, capsys: Capture) -> None:
    options = ["--input", str(TEXT_SAMPLE), "--output", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main(["run", "text_to_shards", *options]) == 0
    capsys.readouterr()
    assert show.main([str(tmp_path / "out"), "--id", "text:guidelines.txt#3", "--with-source"]) == 0
    assert capsys.readouterr().out.count("A bladder catheter is removed") == 2


def test_what_cannot_be_shown_is_said_in_a_line(abstracts: Path, tmp_path: Path, capsys: Capture) -> None:
    capsys.readouterr()
    assert show.main([str(abstracts), "--id", "pubmed:1"]) == 2
    assert capsys.readouterr().err == f"show: {abstracts} has no document pubmed:1\n"
    assert show.main([str(tmp_path)]) == 2
    assert "has no manifest.json" in capsys.readouterr().err
    moved = tmp_path / "moved"
    moved.mkdir()
    (moved / "a.xml").write_bytes(min(PUBMED_SAMPLE.glob("*.xml*")).read_bytes())
    options = ["--input", str(moved), "--output", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main(["run", "pubmed_to_shards", *options]) == 0
    (moved / "a.xml").unlink()
    capsys.readouterr()
    assert show.main([str(tmp_path / "out"), "--with-source"]) == 2
    assert "is not at hand, there is no" in capsys.readouterr().err
