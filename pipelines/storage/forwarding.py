"""A storage whose calls go to another one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import BinaryIO

from bioshards.corpus.storage.storage_protocol import (
    FileInfo,
    OnRepeatedFolder,
    ResumableFile,
    Storage,
)


class ForwardingStorage(Storage, ABC):
    """Base class: forwards each call to the storage of its path."""

    @abstractmethod
    def _route(self, path: str) -> Storage:
        """Return the storage of a path."""

    def open(self, path: str) -> BinaryIO:
        return self._route(path).open(path)

    def write(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self._route(path).write(path)

    def open_resumable(self, path: str, version: str) -> AbstractContextManager[ResumableFile]:
        return self._route(path).open_resumable(path, version)

    def exists(self, path: str) -> bool:
        return self._route(path).exists(path)

    def remove(self, path: str) -> None:
        self._route(path).remove(path)

    def list_names(self, folder: str) -> list[str]:
        return self._route(folder).list_names(folder)

    def is_folder(self, path: str) -> bool:
        return self._route(path).is_folder(path)

    def glob(self, pattern: str) -> list[FileInfo]:
        return self._route(pattern).glob(pattern)

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder | None = None,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        return self._route(folder).walk(folder, on_repeated_folder, with_hidden_files)

    def remove_temporaries(self, folder: str) -> None:
        self._route(folder).remove_temporaries(folder)

    def lock(self, path: str, folder: str, is_forced: bool = False) -> AbstractContextManager[None]:
        return self._route(path).lock(path, folder, is_forced)

    def check_locks(self) -> None:
        self._route("").check_locks()
