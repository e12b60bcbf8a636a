"""Every command says in one line what a file or a folder is that it cannot use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bioshards.__main__ import main
from bioshards.corpus.manifest import Manifest, write_manifest
from tests.support.corpus import manifests
from tests.support.corpus.manifests import FILES

pytestmark = pytest.mark.thorough  # this file takes minutes

KINDS = ("nowhere", "empty", "file.xml.gz", "folder", "broken", "words", "documents", "vocabulary", "rows")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each of the kinds; finished outputs have nothing but a manifest."""
    folder = tmp_path_factory.mktemp("kinds")
    for name in KINDS[1:]:
        (folder / name).mkdir()
    (folder / "file.xml.gz").rmdir()
    (folder / "file.xml.gz").write_text("garbage")
    for name in ("pubmed26n0001.xml.gz", "articles.tar.gz", "notes.jsonl.gz", "result.json"):
        (folder / "folder" / name).write_text("garbage")
    (folder / "broken/manifest.json").write_text("{")
    outputs: dict[str, Manifest] = {
        "words": manifests.of_words([]),
        "documents": manifests.of_documents([]),
        "vocabulary": manifests.of_vocabulary([], {}, []),
        "rows": manifests.of_pretraining([]),
    }
    for name, manifest in outputs.items():
        write_manifest(FILES, f"{folder}/{name}/manifest.json", manifest)
    return folder


@pytest.mark.parametrize(
    ("words", "usable"),
    [
        ("show {}", "documents"),
        ("corpus export {} --output out", "documents"),
        ("corpus verify {}", "documents vocabulary rows words"),
        ("corpus stats {}", "documents rows words"),
        ("vocab build {} --output out --size 600", "documents words"),
        ("vocab adopt {} --output out", ""),
        ("vocab report {}", "vocabulary"),
        ("run shards_to_words --input {} --output out --workers 1", "documents"),
        ("run shards_to_pretraining --input {} --vocab vocabulary --output out --workers 1", "documents"),
        ("run pmc_to_shards --find-overlap-with {} --output out --workers 1", "documents"),
        ("train {} --output out", "rows"),
        ("evaluate run {} --benchmarks empty --tasks blurb --output out", ""),
        ("evaluate verify {}", "empty folder broken words documents vocabulary rows"),
        ("evaluate report {} --output out", ""),
    ],
)
def test_commands_name_what_they_cannot_use(
    words: str, usable: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    for kind in KINDS:
        if kind not in usable.split():
            code = main(words.format(kind).split())
            errors = capsys.readouterr().err
            assert (kind, code) == (kind, code if code in (1, 2) else "1 or 2")
            assert (kind, errors.count("\n")) == (kind, 1), errors
            assert kind in errors, errors
            assert "BIOSHARDS_TRACEBACK" not in errors, errors
    assert not os.path.exists("out")
