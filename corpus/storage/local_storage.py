"""The file system as the rest of corpus/ sees it: a handful of calls, each all or nothing.

A file under its final name is whole: it is written under another name, brought to disk and then
renamed.  :class:`LocalFiles` does so for local paths; pipelines/ adds object stores by the same calls.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Final

from . import resumable_file
from .resumable_file import ResumableFile

TEMPORARY_PREFIX: Final = ".tmp-"
"""Prefix of files being written; what a killed run leaves of them is swept by the next."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file that is there: ``stamp`` changes when it is written anew (size and time of change)."""

    path: str
    size: int
    stamp: str


def _get_info(path: str) -> FileInfo:
    try:
        status = os.stat(path)
    except FileNotFoundError:  # a link to nowhere: it is there, and reading it will say what is wrong
        status = os.lstat(path)
    return FileInfo(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


class LocalStorage:
    """Files on this machine.

    Attributes:
        far: is a call mostly waiting, so that several are better made at a time (parallel.py)?
    """

    is_remote: ClassVar[bool] = False

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        """A file that appears under ``path``, whole, when the block ends without an exception."""
        folder = os.path.dirname(path) or "."
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        try:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise

    def open_resumable(self, path: str, version: str) -> contextlib.AbstractContextManager[ResumableFile]:
        """A large file that is kept while it arrives; ``version`` tells versions of it apart."""
        return resumable_file.open_local_resumable(path, version)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def remove(self, path: str) -> None:
        """Remove a file, or do nothing where there is none."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def list_names(self, folder: str) -> list[str]:
        """Sorted names of the files in a folder; none where there is no folder."""
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def glob(self, pattern: str) -> list[FileInfo]:
        """The files that a path or a glob (``**`` for any depth) names, sorted by path."""
        paths = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        return [_get_info(path) for path in sorted(paths) if not os.path.isdir(path)]

    def walk(self, folder: str) -> list[FileInfo]:
        """The files in a folder at any depth, hidden ones left out, sorted by path."""
        infos = []
        for root, folders, file_names in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            infos += [_get_info(os.path.join(root, name)) for name in file_names if not name.startswith(".")]
        return sorted(infos, key=lambda item: item.path)

    def remove_temporaries(self, folder: str) -> None:
        """Remove what a killed run was just writing in a folder."""
        for name in self.list_names(folder):
            if name.startswith(TEMPORARY_PREFIX):
                self.remove(f"{folder}/{name}")

    # What follows is made of the calls above, the same for every kind of storage.

    def read_json(self, path: str) -> Any:
        with self.open(path) as file:
            return json.loads(file.read())

    def write_json(self, path: str, value: object) -> None:
        with self.write(path) as file:
            text = json.dumps(value, indent=1, ensure_ascii=False)
            # A path may hold bytes that are no UTF-8, as lone surrogates: JSON has escapes for those.
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")
