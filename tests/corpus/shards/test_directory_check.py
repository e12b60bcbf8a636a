"""``corpus verify`` names each file that is not as the manifest lists it; ``show`` takes any id."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bioshards import show
from bioshards.corpus import __main__ as corpus_command
from tests.support.corpus.synthetic_documents import make_document, write_document_dir
from tests.support.outputs import load_manifest, save_manifest

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    documents = [
        make_document(f"pubmed:{number}", ["One.", "Two."], doi=f"10.5555/{number}", pmcid=f"PMC{number}0")
        for number in range(7, 11)
    ]
    return write_document_dir(tmp_path / "out", {"a": documents[:3], "b": documents[3:]})


def test_untouched_directory(folder: Path, capsys: Capture) -> None:
    assert corpus_command.main(["verify", str(folder)]) == 0
    assert f"{folder} is as its manifest lists it: 2 files, 4 rows" in capsys.readouterr().out


def test_differences_are_named(folder: Path, capsys: Capture) -> None:
    first, second = sorted(folder.glob("data/*.parquet"))
    shutil.copy(first, folder / "data/data-zzz-00000.parquet")
    data = bytearray(first.read_bytes())
    data[len(data) // 2] ^= 1
    first.write_bytes(data)
    second.unlink()
    assert corpus_command.main(["verify", str(folder)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == f"{first}: its SHA-256 is not the one that its manifest lists"
    assert lines[1] == f"{second}: No such file or directory"
    assert lines[2] == f"{folder / 'data/data-zzz-00000.parquet'}: the manifest does not list it"
    assert lines[3].startswith(f"{folder} differs from its manifest in 3 files")


def test_wrong_number_of_rows(folder: Path, capsys: Capture) -> None:
    manifest = load_manifest(folder)
    manifest["outputs"][0]["rows"] += 1
    save_manifest(folder, manifest)
    assert corpus_command.main(["verify", str(folder)]) == 1
    assert "it has 3 rows, and its manifest lists 4" in capsys.readouterr().err


def test_unfinished_directory(tmp_path: Path, capsys: Capture) -> None:
    assert corpus_command.main(["verify", str(tmp_path)]) == 2
    assert "manifest.json" in capsys.readouterr().err


@pytest.mark.parametrize("document_id", ["pubmed:8", "8", "PMC80", "10.5555/8"])
def test_document_is_shown_by_any_id(folder: Path, capsys: Capture, document_id: str) -> None:
    assert show.main([str(folder), "--id", document_id]) == 0
    assert capsys.readouterr().out.startswith("pubmed:8 · ")
