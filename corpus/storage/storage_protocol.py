"""The storage interface: files of a local disk or an object store, by path or URL."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar, Final, Protocol, TypeAlias

TEMPORARY_PREFIX: Final = ".tmp-"
"""Prefix of the names of files that are being written.  The next run removes what a killed run left."""

PARTIAL_PREFIX: Final = ".part-"
"""Prefix of the names of incomplete downloads, which the next run continues."""

_BLOCK_BYTES: Final = 1 << 20

OnRepeatedFolder: TypeAlias = Callable[[str, str], None]
"""Is called with the path of a folder and the other path under which it is listed already."""


@dataclass(frozen=True, slots=True)
class FileInfo:
    """An existing file.

    Attributes:
        path: local path or URL.
        size: in bytes.
        stamp: changes when the file is written again.
    """

    path: str
    size: int
    stamp: str


class ResumableFile:
    """An incomplete file on a local disk, under another name until it is complete.

    Attributes:
        size: bytes written so far.
    """

    def __init__(self, file: BinaryIO, partial_path: str, path: str, check_locks: Callable[[], None]) -> None:
        self._file, self._partial_path, self._path = file, partial_path, path
        self._check_locks = check_locks
        self.size = file.seek(0, os.SEEK_END)

    def read_blocks(self) -> Iterator[bytes]:
        """Yield the bytes written so far, from the beginning."""
        self._file.seek(0)
        while block := self._file.read(_BLOCK_BYTES):
            yield block
        self._file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        self._file.write(data)
        self.size += len(data)

    def restart(self) -> None:
        """Truncate the file."""
        self._file.seek(0)
        self._file.truncate()
        self.size = 0

    def commit(self) -> None:
        """Flush the complete file to disk and rename it to its final name."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._check_locks()
        os.replace(self._partial_path, self._path)

    def discard(self) -> None:
        """Delete the file: its content is wrong."""
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._partial_path)


class Storage(Protocol):
    """Files by path.

    :class:`~.local_storage.LocalStorage` reads and writes local paths, pipelines/storage/ objects of stores.
    A missing file raises FileNotFoundError, a store that does not answer TransientStorageError.

    Attributes:
        is_remote: True if calls are dominated by network latency and should be issued concurrently.
    """

    is_remote: ClassVar[bool]

    def open(self, path: str) -> BinaryIO:
        """Open a file to read."""

    def write(self, path: str) -> AbstractContextManager[BinaryIO]:
        """Write a file atomically: it appears under ``path`` when the block ends without an exception."""

    def open_resumable(self, path: str, version: str) -> AbstractContextManager[ResumableFile]:
        """Open a large file to be written in several runs, and wait while another process writes it.

        Incomplete files of other versions are removed, unless another process is writing them.

        Args:
            path: final path of the file.
            version: identifies the content, so that a partial file of other content is not continued.
        """

    def exists(self, path: str) -> bool:
        """Return True if there is a file or folder of this path."""

    def remove(self, path: str) -> None:
        """Remove a file, if it exists."""

    def list_names(self, folder: str) -> list[str]:
        """Return the sorted names of the files in a folder; an empty list if there is no folder."""

    def is_folder(self, path: str) -> bool:
        """Return True if there is a folder of this path."""

    def glob(self, pattern: str) -> list[FileInfo]:
        """Return the files that match a path or a glob (``**``: any depth), sorted by path."""

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder | None = None,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        """Return the files of a folder at any depth, without those of hidden folders, sorted by path.

        Links to folders are followed, each folder once.

        Args:
            on_repeated_folder: is told of a folder that is found twice.
            with_hidden_files: return hidden files too.

        Raises:
            OSError: a folder below cannot be listed.
        """

    def remove_temporaries(self, folder: str) -> None:
        """Remove the files that a killed run was writing in a folder, and none of a run that is alive."""

    def lock(self, path: str, folder: str, is_forced: bool = False) -> AbstractContextManager[None]:
        """Hold an exclusive lock: flock() on local disks, an object that is put if it is absent on stores.

        Inside the block this storage, and each copy of it that a worker gets, writes and removes nothing once
        another run has the lock.

        Args:
            path: of the lock; its object on a store is ``path.json``.
            folder: what it locks.
            is_forced: take over a lock on a store that another run holds.

        Raises:
            OutputMismatchError: another run holds it.
        """

    def check_locks(self) -> None:
        """Check that this run still holds its locks.

        Raises:
            RunError: one is gone, or another run has taken it over.
        """

    def read_json(self, path: str) -> Any:
        """Read a JSON file."""
        with self.open(path) as file:
            return json.loads(file.read().removeprefix(codecs.BOM_UTF8))

    def write_json(self, path: str, value: object) -> None:
        """Write a JSON file atomically."""
        with self.write(path) as file:
            text = json.dumps(value, indent=1, ensure_ascii=False)
            # File names may contain bytes that are not UTF-8, as lone surrogates: JSON escapes them.
            file.write(text.encode("utf-8", "backslashreplace") + b"\n")
