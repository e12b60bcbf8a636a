"""A storage that routes each path to its object store or to the local disk.

A path without a scheme is local, so that one storage serves inputs and outputs on different stores.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import BinaryIO, ClassVar

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.resumable_file import ResumableFile
from bioshards.corpus.storage.storage_protocol import (
    FileInfo,
    OnRepeatedFolder,
    Storage,
    ignore_repeated_folder,
)

from .remote_storage import RemoteStorage
from .store_options import StoreOptions


class RoutedStorage(Storage):
    """Local files, and objects of every store."""

    is_remote: ClassVar[bool] = True

    def __init__(self, options: StoreOptions) -> None:
        self._local, self._remote = LocalStorage(), RemoteStorage(options)

    def _route(self, path: str) -> Storage:
        return self._remote if "://" in path else self._local

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
        on_repeated_folder: OnRepeatedFolder = ignore_repeated_folder,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        return self._route(folder).walk(folder, on_repeated_folder, with_hidden_files)

    def remove_temporaries(self, folder: str) -> None:
        self._route(folder).remove_temporaries(folder)

    def lease(self, path: str, folder: str) -> AbstractContextManager[None]:
        return self._route(path).lease(path, folder)
