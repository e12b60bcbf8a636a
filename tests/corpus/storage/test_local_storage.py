"""The file system: a file under its final name is whole, and nothing else is left behind.

Restarts, manifests and other people's readers all rest on that, so writing is stopped here at every
point at which it can stop: by the writer, by a full disk, by a failing flush and by a failing rename.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX, FileInfo

FILES = LocalStorage()


def everything(folder: Path) -> list[str]:
    """All files below a folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# Writing


def test_a_file_appears_whole_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "a.bin"
    with FILES.write(str(path)) as file:
        file.write(b"one")
        file.write(b"two")
        file.flush()
        assert not path.exists()
        [hidden] = everything(tmp_path)
        assert Path(hidden).name.startswith(TEMPORARY_PREFIX)
    assert path.read_bytes() == b"onetwo"
    assert everything(tmp_path) == ["new/deep/a.bin"]


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with FILES.write(str(path)) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert everything(tmp_path) == ["a.bin"]


def test_a_file_is_brought_to_disk_before_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    sizes: list[int] = []
    fsync, replace = os.fsync, os.replace

    def seen_fsync(number: int) -> None:
        calls.append("fsync")
        sizes.append(os.fstat(number).st_size)
        fsync(number)

    def seen_replace(source: str, target: str) -> None:
        calls.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    with FILES.write(str(tmp_path / "a.bin")) as file:
        file.write(b"12345")
    assert calls[:2] == ["fsync", "replace"]
    assert sizes[0] == 5


def test_a_file_may_be_written_by_its_bare_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with FILES.write("a.bin") as file:
        file.write(b"x")
    assert everything(tmp_path) == ["a.bin"]


class FullDisk(io.BufferedWriter):
    """A file on a disk with room for ten bytes."""

    def write(self, data: Any, /) -> int:
        if self.tell() + len(memoryview(data)) > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def open_on_full_disk(descriptor: int, mode: str) -> BinaryIO:
    return FullDisk(io.FileIO(descriptor, mode))


def no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def no_right(*_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def full_at_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fdopen", open_on_full_disk)


def full_at_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fsync", no_space)


def refused_at_rename(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "replace", no_right)


@pytest.mark.parametrize("fault", [full_at_write, full_at_flush, refused_at_rename])
@pytest.mark.parametrize("before", [None, b"old"])
def test_a_fault_of_the_disk_leaves_all_as_it_was(
    tmp_path: Path, fault: Callable[[pytest.MonkeyPatch], None], before: bytes | None
) -> None:
    path = tmp_path / "a.bin"
    if before is not None:
        path.write_bytes(before)
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(OSError, match=r"No space left|Permission denied"), FILES.write(str(path)) as file:
            file.write(b"twelve bytes")
    assert everything(tmp_path) == ([] if before is None else ["a.bin"])
    assert before is None or path.read_bytes() == before


def fail(file: BinaryIO, error: type[BaseException]) -> None:
    file.write(b"half")
    raise error


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_writer_that_fails_leaves_all_as_it_was(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), FILES.write(str(path)) as file:
        fail(file, error)
    assert everything(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"


def test_the_first_error_is_the_one_that_is_told(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "remove", no_right)
        with pytest.raises(ValueError, match="the reason"), FILES.write(str(tmp_path / "a.bin")):
            raise ValueError("the reason")


def test_two_writers_of_one_name_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with FILES.write(str(path)) as one, FILES.write(str(path)) as two:
        one.write(b"one" * 1000)
        two.write(b"two" * 1000)
    assert path.read_bytes() == b"one" * 1000
    assert everything(tmp_path) == ["a.bin"]


# Reading and removing


def test_what_is_written_is_opened_read_and_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "a.bin")
    assert not FILES.exists(path)
    with FILES.write(path) as out:
        out.write(b"abc")
    assert FILES.exists(path)
    with FILES.open(path) as file:
        assert (file.read(2), file.read()) == (b"ab", b"c")
    FILES.remove(path)
    assert not FILES.exists(path)
    FILES.remove(path)
    with pytest.raises(FileNotFoundError):
        FILES.open(path)


def test_json_goes_out_and_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "m.json")
    value = {"Größe": [1, None, True, "日本"], "a": {"b": 0.5}}
    FILES.write_json(path, value)
    assert FILES.read_json(path) == value
    text = Path(path).read_text("utf-8")
    assert text.endswith("}\n")
    assert "日本" in text
    assert json.loads(text) == value


def test_json_that_cannot_be_written_leaves_all_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    FILES.write_json(str(path), [1])
    with pytest.raises(TypeError):
        FILES.write_json(str(path), [object()])
    assert FILES.read_json(str(path)) == [1]
    assert everything(tmp_path) == ["m.json"]


# Finding


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("b.xml", "a.txt", "B/c.xml", "B/d/e.xml", ".h/f.xml", "B/.g.xml", "B/.i/j.xml", ".k"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def relative(found: list[FileInfo], folder: Path) -> list[str]:
    return [os.path.relpath(item.path, folder) for item in found]


def test_names_are_the_files_of_a_folder_sorted(tree: Path) -> None:
    assert FILES.list_names(str(tree)) == [".k", "a.txt", "b.xml"]
    assert FILES.list_names(str(tree / "B" / "d")) == ["e.xml"]


def test_where_there_is_no_folder_there_are_no_names(tree: Path) -> None:
    assert FILES.list_names(str(tree / "gone")) == []
    assert FILES.list_names(str(tree / "a.txt")) == []


def test_a_walk_gives_all_files_but_hidden_ones_sorted_by_path(tree: Path) -> None:
    assert relative(FILES.walk(str(tree)), tree) == ["B/c.xml", "B/d/e.xml", "a.txt", "b.xml"]
    assert relative(FILES.walk(str(tree / ".h")), tree) == [".h/f.xml"]
    assert FILES.walk(str(tree / "gone")) == []


def test_a_walk_lists_a_link_that_leads_nowhere(tree: Path) -> None:
    (tree / "B" / "broken.xml").symlink_to(tree / "gone")
    assert relative(FILES.walk(str(tree)), tree) == ["B/broken.xml", "B/c.xml", "B/d/e.xml", "a.txt", "b.xml"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a.txt", ["a.txt"]),
        ("*", ["a.txt", "b.xml"]),
        ("*/*.xml", ["B/c.xml"]),
        ("**/*.xml", ["B/c.xml", "B/d/e.xml", "b.xml"]),
        ("**", ["B/c.xml", "B/d/e.xml", "a.txt", "b.xml"]),
        ("[ab].*", ["a.txt", "b.xml"]),
        (".h/*", [".h/f.xml"]),
        ("B", []),
        ("gone", []),
    ],
)
def test_a_pattern_finds_files_only_sorted_by_path(tree: Path, pattern: str, expected: list[str]) -> None:
    assert relative(FILES.glob(f"{tree}/{pattern}"), tree) == expected


def test_a_file_with_the_name_of_a_pattern_is_found_by_its_name(tree: Path) -> None:
    (tree / "[ab].xml").write_bytes(b"")
    assert relative(FILES.glob(f"{tree}/[ab].xml"), tree) == ["[ab].xml"]


def test_a_found_file_tells_its_size_and_when_it_was_written(tree: Path) -> None:
    [before] = FILES.glob(f"{tree}/a.txt")
    assert before.size == len("a.txt")
    assert FILES.glob(f"{tree}/a.txt") == [before]
    assert before in FILES.walk(str(tree))
    os.utime(tree / "a.txt", ns=(5, 5))
    [touched] = FILES.glob(f"{tree}/a.txt")
    assert touched.stamp != before.stamp
    (tree / "a.txt").write_bytes(b"longer than before")
    os.utime(tree / "a.txt", ns=(5, 5))
    [longer] = FILES.glob(f"{tree}/a.txt")
    assert longer.size == 18
    assert longer.stamp not in (before.stamp, touched.stamp)


def test_a_folder_is_told_from_a_file(tree: Path) -> None:
    assert FILES.is_folder(str(tree / "B"))
    assert not FILES.is_folder(str(tree / "a.txt"))
    assert not FILES.is_folder(str(tree / "gone"))


# Checksums


def test_size_and_checksum_are_those_of_what_was_written() -> None:
    out = io.BytesIO()
    checked = HashingWriter(out)
    pieces: list[Any] = [b"abc", bytearray(b"defg"), memoryview(b"hij"), b""]
    assert [checked.write(piece) for piece in pieces] == [3, 4, 3, 0]
    checked.flush()
    assert out.getvalue() == b"abcdefghij"
    assert checked.size == 10
    assert checked.sha256 == hashlib.sha256(b"abcdefghij").hexdigest()


def test_a_checksum_counts_bytes_and_not_items() -> None:
    out = io.BytesIO()
    checked = HashingWriter(out)
    wide: Any = memoryview(b"12345678").cast("I")
    assert checked.write(wide) == 8
    assert checked.size == 8
    assert checked.sha256 == hashlib.sha256(b"12345678").hexdigest()
