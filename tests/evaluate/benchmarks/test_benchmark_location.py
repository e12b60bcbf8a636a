"""Where the files of benchmarks are found: extensions in any case, links, unreadable folders."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from bioshards.corpus.errors import InputUnreadableError
from tests.support.evaluate.benchmark_files import find_files, write_file


def test_extensions_match_in_any_case(tmp_path: Path) -> None:
    write_file(tmp_path, "hallmarks-of-cancer/text/1.txt", "One.\n")
    write_file(tmp_path, "hallmarks-of-cancer/text/2.TXT", "Two.\n")
    write_file(tmp_path, "hallmarks-of-cancer/labels/1.txt", "NULL\n")
    write_file(tmp_path, "a/indexing/HoC/train_pmid.Tsv", "1\n")
    files = find_files(tmp_path, "hoc")
    assert files.paths["text"] == [
        f"{tmp_path}/hallmarks-of-cancer/text/{name}" for name in ("1.txt", "2.TXT")
    ]
    assert files.paths["lists"] == [f"{tmp_path}/a/indexing/HoC/train_pmid.Tsv"]


def test_links_to_folders_are_followed_once(tmp_path: Path) -> None:
    write_file(tmp_path, "elsewhere/indexing/HoC/train_pmid.tsv", "1\n")
    write_file(tmp_path, "in/hallmarks-of-cancer/text/1.txt", "One.\n")
    write_file(tmp_path, "in/hallmarks-of-cancer/labels/1.txt", "NULL\n")
    (tmp_path / "in/more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/loop").symlink_to(tmp_path / "in")
    files = find_files(tmp_path / "in", "hoc")
    assert files.paths["lists"] == [f"{tmp_path}/in/more/indexing/HoC/train_pmid.tsv"]


def test_unreadable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path, "hallmarks-of-cancer/text/1.txt", "One.\n")
    write_file(tmp_path, "a/locked/b.txt", "")
    scandir = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("locked"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(InputUnreadableError) as caught:
        find_files(tmp_path, "hoc")
    assert str(caught.value) == (
        f"{tmp_path}: {tmp_path}/a/locked cannot be read (Permission denied), so that its files would be "
        "missing. Permit this user to read it, or give the folders and files beside it"
    )
