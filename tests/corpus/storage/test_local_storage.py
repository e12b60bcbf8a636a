"""The local storage: atomic writes, also under failures, and finding files."""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from bioshards.corpus.errors import DiskFullError
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import TEMPORARY_PREFIX, FileInfo

FILES = LocalStorage()


def list_all_files(folder: Path) -> list[str]:
    """Return all files below a folder, hidden ones included."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


# Writing


def test_file_appears_or_is_replaced_when_the_block_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new" / "deep" / "a.bin"
    with FILES.write(str(path)) as file:
        file.write(b"one")
        file.write(b"two")
        file.flush()
        assert not path.exists()
        [hidden] = list_all_files(tmp_path)
        assert Path(hidden).name.startswith(TEMPORARY_PREFIX)
    assert path.read_bytes() == b"onetwo"
    monkeypatch.chdir(path.parent)
    with FILES.write("a.bin") as file:  # a name without a folder
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"onetwo"
    assert path.read_bytes() == b"new"
    assert list_all_files(tmp_path) == ["new/deep/a.bin"]


def test_file_is_flushed_to_disk_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    sizes: list[int] = []
    fsync, replace = os.fsync, os.replace

    def record_fsync(descriptor: int) -> None:
        calls.append("fsync")
        sizes.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    def record_replace(source: str, target: str) -> None:
        calls.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    with FILES.write(str(tmp_path / "a.bin")) as file:
        file.write(b"12345")
    assert calls[:2] == ["fsync", "replace"]
    assert sizes[0] == 5


class FullDisk(io.BufferedWriter):
    """A file on a disk with room for ten bytes."""

    def write(self, data: Any, /) -> int:
        if self.tell() + len(memoryview(data)) > 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


def open_on_full_disk(descriptor: int, mode: str) -> BinaryIO:
    return FullDisk(io.FileIO(descriptor, mode))


def raise_no_space(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def raise_permission_denied(*_: object) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")


def fail_at_write(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fdopen", open_on_full_disk)


def fail_at_flush(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "fsync", raise_no_space)


def fail_at_rename(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(os, "replace", raise_permission_denied)


@pytest.mark.parametrize("fault", [fail_at_write, fail_at_flush, fail_at_rename])
def test_disk_fault_leaves_the_folder_unchanged(
    tmp_path: Path, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        with pytest.raises(OSError, match=r"No space left|Permission denied"), FILES.write(str(path)) as file:
            file.write(b"twelve bytes")
    assert list_all_files(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("fault", [fail_at_write, fail_at_flush])
def test_full_disk_is_named_with_its_free_bytes(
    tmp_path: Path, fault: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """The folder is made before the disk is full."""
    with pytest.MonkeyPatch.context() as patch:
        fault(patch)
        patch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 99, 9, 3, 9, 9, 9, 0, 255)))
        with pytest.raises(DiskFullError) as error_info, FILES.write(f"{tmp_path}/new/a.bin") as file:
            file.write(b"twelve bytes")
    assert str(error_info.value) == (
        f"the disk is full: No space left on device in {tmp_path}/new, where 12,288 bytes are free"
    )
    assert error_info.value.errno == errno.ENOSPC
    assert str(pickle.loads(pickle.dumps(error_info.value))) == str(error_info.value)


def test_disk_without_inodes_or_quota_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EDQUOT, "Disk quota exceeded")

    monkeypatch.setattr(os, "makedirs", refuse)
    monkeypatch.setattr(os, "statvfs", lambda _: os.statvfs_result((4096, 4096, 99, 9, 3, 9, 0, 0, 0, 255)))
    with pytest.raises(DiskFullError) as error_info, FILES.write(f"{tmp_path}/new/a.bin"):
        pass
    assert str(error_info.value) == (
        f"the disk is full: Disk quota exceeded in {tmp_path}, where 12,288 bytes are free and no further "
        "file can be made"
    )


def test_full_disk_of_an_inner_file_keeps_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_both() -> None:
        with FILES.write(f"{tmp_path}/outer/a"), FILES.write(f"{tmp_path}/inner/b"):
            monkeypatch.setattr(os, "fsync", raise_no_space)

    with pytest.raises(DiskFullError, match=f"in {tmp_path}/inner, where"):
        write_both()


def write_and_raise(file: BinaryIO, error: type[BaseException]) -> None:
    file.write(b"half")
    raise error


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_failing_writer_leaves_the_folder_unchanged(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with pytest.raises(error), FILES.write(str(path)) as file:
        write_and_raise(file, error)
    assert list_all_files(tmp_path) == ["a.bin"]
    assert path.read_bytes() == b"old"


def test_first_error_is_raised(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "remove", raise_permission_denied)
        with pytest.raises(ValueError, match="the reason"), FILES.write(str(tmp_path / "a.bin")):
            raise ValueError("the reason")


def test_concurrent_writers_of_one_path_write_separate_files(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with FILES.write(str(path)) as first, FILES.write(str(path)) as second:
        first.write(b"one" * 1000)
        second.write(b"two" * 1000)
    assert path.read_bytes() == b"one" * 1000
    assert list_all_files(tmp_path) == ["a.bin"]


# Reading and removing


def test_file_is_written_opened_and_removed(tmp_path: Path) -> None:
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


def test_json_round_trip(tmp_path: Path) -> None:
    path = str(tmp_path / "a" / "m.json")
    value = {"Größe": [1, None, True, "日本"], "a": {"b": 0.5}}
    FILES.write_json(path, value)
    assert FILES.read_json(path) == value
    text = Path(path).read_text("utf-8")
    assert text.endswith("}\n")
    assert "日本" in text
    assert json.loads(text) == value


def test_json_that_cannot_be_encoded_leaves_the_folder_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    FILES.write_json(str(path), [1])
    with pytest.raises(TypeError):
        FILES.write_json(str(path), [object()])
    assert FILES.read_json(str(path)) == [1]
    path.write_text("\ufeff[2]")
    assert FILES.read_json(str(path)) == [2]
    assert list_all_files(tmp_path) == ["m.json"]


# Finding


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with visible and hidden files and folders."""
    for name in ("b.xml", "a.txt", "B/c.xml", "B/d/e.xml", ".h/f.xml", "B/.g.xml", "B/.i/j.xml", ".k"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    return tmp_path


def get_relative_paths(files: list[FileInfo], folder: Path) -> list[str]:
    """Return the paths of files relative to a folder."""
    return [os.path.relpath(info.path, folder) for info in files]


def test_folders_and_names_in_them(tree: Path) -> None:
    assert [FILES.is_folder(str(tree / name)) for name in ("B", "a.txt", "gone")] == [True, False, False]
    assert FILES.list_names(str(tree)) == [".k", "a.txt", "b.xml"]
    assert FILES.list_names(str(tree / "gone")) == FILES.list_names(str(tree / "a.txt")) == []


def test_temporary_files_of_killed_writers_are_removed(tree: Path) -> None:
    (tree / f"{TEMPORARY_PREFIX}0123").touch()
    FILES.remove_temporaries(str(tree))
    assert FILES.list_names(str(tree)) == [".k", "a.txt", "b.xml"]


def test_walk_returns_sorted_visible_files(tree: Path) -> None:
    assert get_relative_paths(FILES.walk(str(tree)), tree) == ["B/c.xml", "B/d/e.xml", "a.txt", "b.xml"]
    assert get_relative_paths(FILES.walk(str(tree / ".h")), tree) == [".h/f.xml"]
    assert FILES.walk(str(tree / "gone")) == []


@pytest.mark.parametrize("target", ["gone", "broken.xml"])
def test_walk_returns_a_link_to_nothing_or_to_itself(tree: Path, target: str) -> None:
    (tree / "B" / "broken.xml").symlink_to(target)
    names = get_relative_paths(FILES.walk(str(tree)), tree)
    assert names == ["B/broken.xml", "B/c.xml", "B/d/e.xml", "a.txt", "b.xml"]


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
def test_glob_returns_sorted_files(tree: Path, pattern: str, expected: list[str]) -> None:
    assert get_relative_paths(FILES.glob(f"{tree}/{pattern}"), tree) == expected


def test_file_named_like_a_pattern_is_found(tree: Path) -> None:
    (tree / "[ab].xml").write_bytes(b"")
    assert get_relative_paths(FILES.glob(f"{tree}/[ab].xml"), tree) == ["[ab].xml"]


def test_file_info_has_size_and_stamp(tree: Path) -> None:
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


def link_tree(tmp_path: Path) -> Path:
    """Make a folder with links to folders: outside, inside, and to itself."""
    folder, outside = tmp_path / "in", tmp_path / "outside"
    for path in (folder / "real/a.xml", outside / "b.xml", outside / "deep/c.xml"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (folder / "again").symlink_to(folder / "real")
    (folder / "more").symlink_to(outside)
    (folder / "real/loop").symlink_to(folder)
    (outside / "deep/up").symlink_to(outside)
    return folder


def test_walk_follows_links_and_lists_each_folder_once(tmp_path: Path) -> None:
    folder = link_tree(tmp_path)
    repeated: list[tuple[str, str]] = []
    infos = FILES.walk(str(folder), lambda path, first_path: repeated.append((path, first_path)))
    assert get_relative_paths(infos, folder) == ["more/b.xml", "more/deep/c.xml", "real/a.xml"]
    assert [tuple(os.path.relpath(path, folder) for path in pair) for pair in repeated] == [
        ("again", "real"),
        ("more/deep/up", "more"),
        ("real/loop", "."),
    ]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.xml", ["more/b.xml", "more/deep/c.xml", "real/a.xml"]),
        ("*/**", ["more/b.xml", "more/deep/c.xml", "real/a.xml"]),
        ("mo*/**/deep/*", ["more/deep/c.xml"]),
        ("more/*.xml", ["more/b.xml"]),
    ],
)
def test_glob_follows_links_and_ends(pattern: str, expected: list[str], tmp_path: Path) -> None:
    folder = link_tree(tmp_path)
    assert get_relative_paths(FILES.glob(f"{folder}/{pattern}"), folder) == expected


def test_glob_at_any_depth_of_the_working_directory(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree)
    for pattern in ("**/*.xml", "./**/*.xml", "B/**", "**/.h/*", "**/.*", "*/**/?.xml", "**/d/**"):
        expected = [path for path in sorted(glob.glob(pattern, recursive=True)) if os.path.isfile(path)]
        assert [info.path for info in FILES.glob(pattern)] == expected, pattern


@pytest.mark.parametrize("pattern", ["", "/**/*.xml", "/*/*.xml", "/B/*.xml", "/?/**"])
def test_unreadable_folder_is_an_error(pattern: str, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests may run as root, who may read everything."""
    refuse_folder(monkeypatch, tree / "B")
    with pytest.raises(PermissionError, match="Permission denied") as error_info:
        FILES.glob(f"{tree}{pattern}") if pattern else FILES.walk(str(tree))
    assert error_info.value.filename == str(tree / "B")


def refuse_folder(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make a folder one that this user may not list."""
    list_folder = os.scandir

    def scandir(path: Any = ".") -> Any:
        if isinstance(path, str) and os.path.abspath(path) == str(folder):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))
        return list_folder(path)

    monkeypatch.setattr(os, "scandir", scandir)


# Checksums


def test_hashing_writer_counts_and_hashes_bytes() -> None:
    out = io.BytesIO()
    writer = HashingWriter(out)
    blocks: list[Any] = [b"abc", bytearray(b"defg"), memoryview(b"12345678").cast("I"), b""]
    assert [writer.write(block) for block in blocks] == [3, 4, 8, 0]
    writer.flush()
    assert out.getvalue() == b"abcdefg12345678"
    assert writer.size == 15
    assert writer.sha256 == hashlib.sha256(b"abcdefg12345678").hexdigest()
