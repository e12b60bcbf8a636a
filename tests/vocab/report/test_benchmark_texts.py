"""Texts of the benchmarks, as ``evaluate texts`` writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bioshards.vocab.report.vocabulary_report import load_benchmark_texts


def test_texts_are_read_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "[a]*"
    folder.mkdir()
    (folder / "gad.jsonl").write_text('["@GENE$ and β."]\n["Two", "texts."]\n')
    (folder / "biosses.jsonl").write_text('["A"]\n')
    (folder / "notes.txt").write_text("")
    assert load_benchmark_texts(str(folder)) == {
        "biosses": [("A",)],
        "gad": [("@GENE$ and β.",), ("Two", "texts.")],
    }


def test_folder_without_texts_is_an_error(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(FileNotFoundError, match=rf"{folder} has no texts: .*bioshards evaluate texts"):
            load_benchmark_texts(str(folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ('["A"]\n[', "line 2 is no list of texts"),
        ('["A"]\n"B"\n', "line 2 is no list of texts"),
        ("[]\n", "line 1 is no list of texts"),
        ("[1]\n", "line 1 is no list of texts"),
    ],
)
def test_damaged_file_is_named(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "gad.jsonl"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        load_benchmark_texts(str(tmp_path))
    assert str(path) in str(caught.value)
