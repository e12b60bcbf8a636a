"""Storage on local disks.

Files are written under a temporary name, flushed to disk and renamed, so that a file under its final name is
complete.  A temporary file is locked while its writer lives.
"""

from __future__ import annotations

import contextlib
import glob
import os
import uuid
from collections.abc import Iterator
from typing import BinaryIO, ClassVar

from . import resumable_file
from .file_lock import open_locked, remove_unlocked
from .resumable_file import ResumableFile
from .storage_protocol import TEMPORARY_PREFIX, FileInfo, Storage


def _get_info(path: str) -> FileInfo:
    try:
        status = os.stat(path)
    except FileNotFoundError:  # a dangling link: listed here, reported when it is read
        status = os.lstat(path)
    return FileInfo(path, status.st_size, f"{status.st_size}-{status.st_mtime_ns}")


class LocalStorage(Storage):
    """Files on this machine; the stamp is size and modification time."""

    is_remote: ClassVar[bool] = False

    def open(self, path: str) -> BinaryIO:
        return open(path, "rb")

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        folder = os.path.dirname(path) or "."
        os.makedirs(folder, exist_ok=True)
        temporary = os.path.join(folder, f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}")
        try:
            with open_locked(temporary) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.remove(temporary)
            raise

    def open_resumable(self, path: str, version: str) -> contextlib.AbstractContextManager[ResumableFile]:
        return resumable_file.open_local_resumable(path, version)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(path)

    def list_names(self, folder: str) -> list[str]:
        try:
            with os.scandir(folder) as entries:
                return sorted(entry.name for entry in entries if entry.is_file())
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove_temporaries(self, folder: str) -> None:
        for name in self.list_names(folder):
            if name.startswith(TEMPORARY_PREFIX):
                remove_unlocked(os.path.join(folder, name))

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(path)

    def glob(self, pattern: str) -> list[FileInfo]:
        paths = [pattern] if os.path.isfile(pattern) else glob.glob(pattern, recursive=True)
        return [_get_info(path) for path in sorted(paths) if not os.path.isdir(path)]

    def walk(self, folder: str) -> list[FileInfo]:
        infos = []
        for root, folders, file_names in os.walk(folder):
            folders[:] = [name for name in folders if not name.startswith(".")]
            infos += [_get_info(os.path.join(root, name)) for name in file_names if not name.startswith(".")]
        return sorted(infos, key=lambda item: item.path)
