"""A storage that routes each path to its object store (gs://, s3:// ...) or to the local disk.

A path without a scheme is local, so that one storage serves inputs and outputs on different stores.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, Final, cast

from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.storage.disk_space import get_temporary_folder, locate_full_disk
from bioshards.corpus.storage.glob_pattern import matches_glob
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.resumable_file import ResumableFile
from bioshards.corpus.storage.storage_protocol import FileInfo, OnRepeatedFolder, ignore_repeated_folder

from .object_store import ObjectStore

_SPOOL_BYTES: Final = 8 << 20
"""A file on its way to a store is kept on this machine's disk above this size."""

_stores: dict[str, tuple[Any, ObjectStore]] = {}
_stores_lock = threading.Lock()


def _is_remote(path: str) -> bool:
    return "://" in path


def configure_stores(options: PipelineOptions) -> None:
    """Give this process' stores their options (``--s3_endpoint_url`` ...); Beam gives workers theirs."""
    FileSystems.set_options(options)
    with _stores_lock:
        _stores.clear()  # of another command of this process


def get_store(path: str) -> ObjectStore:
    """Return the store of a path; a process keeps one client for each scheme and set of options.

    Raises:
        ModuleNotFoundError: the client's library is not installed.
        CredentialsError: there are no credentials.
    """
    scheme = path.partition("://")[0]
    options = FileSystems._pipeline_options  # there is no other way to them; sdk_worker_main sets them
    with _stores_lock:
        previous_options, cached_store = _stores.get(scheme, (None, None))
        if cached_store is None or (
            previous_options is not options
            and _options_to_dict(previous_options) != _options_to_dict(options)
        ):
            cached_store = _make_store(scheme, options or PipelineOptions([]))
        _stores[scheme] = (options, cached_store)
        return cached_store


def _options_to_dict(options: PipelineOptions | None) -> dict[str, Any]:
    """Return the options as plain data, to compare copies of them."""
    return {} if options is None else dict(options.get_all_options(drop_default=True))


def _make_store(scheme: str, options: PipelineOptions) -> ObjectStore:
    if scheme == "gs":
        from .gcs import GcsStore

        return GcsStore(options)
    if scheme == "s3":
        from .s3 import S3Store

        return S3Store(options)
    from .beam_filesystem import BeamFileSystemStore

    return BeamFileSystemStore()


@contextlib.contextmanager
def _open_spool_file() -> Iterator[BinaryIO]:
    """Open a temporary file that buffers an object until its upload."""
    with locate_full_disk(get_temporary_folder()), tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
        yield cast(BinaryIO, file)


def _is_hidden(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2].startswith(".")


def _without_folder_markers(files: list[FileInfo]) -> list[FileInfo]:
    """Without the objects by which some tools mark folders: their names end with a slash."""
    return [info for info in files if not info.path.endswith("/")]


class RoutedStorage(LocalStorage):
    """Local files, and those of every store there is a client or a file system of Beam's for."""

    is_remote = True

    def open(self, path: str) -> BinaryIO:
        return get_store(path).open(path) if _is_remote(path) else super().open(path)

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        if not _is_remote(path):
            with super().write(path) as local:
                yield local
            return
        with _open_spool_file() as file:
            yield file
            get_store(path).put(path, file, file.seek(0, os.SEEK_END))

    @contextlib.contextmanager
    def open_resumable(self, path: str, version: str) -> Iterator[ResumableFile]:
        if not _is_remote(path):
            with super().open_resumable(path, version) as local:
                yield local
            return
        with _open_spool_file() as file:
            yield _SpooledFile(file, path)

    def exists(self, path: str) -> bool:
        return get_store(path).get_info(path) is not None if _is_remote(path) else super().exists(path)

    def remove(self, path: str) -> None:
        if _is_remote(path):
            get_store(path).remove(path)
        else:
            super().remove(path)

    def list_names(self, folder: str) -> list[str]:
        if not _is_remote(folder):
            return super().list_names(folder)
        files, _ = get_store(folder).list_folder(folder.rstrip("/"))
        return sorted(info.path.rpartition("/")[2] for info in _without_folder_markers(files))

    def is_folder(self, path: str) -> bool:
        if not _is_remote(path):
            return super().is_folder(path)
        return next(get_store(path).list_prefix(f"{path.rstrip('/')}/"), None) is not None

    def glob(self, pattern: str) -> list[FileInfo]:
        if not _is_remote(pattern):
            return super().glob(pattern)
        object_store = get_store(pattern)
        if info := object_store.get_info(pattern):
            return [info]
        literal_prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        if literal_prefix == pattern:
            return []
        parts = pattern.split("/")
        folder = literal_prefix.rpartition("/")[0]
        is_recursive = "/" in pattern[len(literal_prefix) :] or "**" in pattern
        candidates = (
            list(object_store.list_prefix(literal_prefix))
            if is_recursive
            else object_store.list_folder(folder)[0]
        )
        matches = (
            info for info in _without_folder_markers(candidates) if matches_glob(info.path.split("/"), parts)
        )
        return sorted(matches, key=lambda info: info.path)

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder = ignore_repeated_folder,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        if not _is_remote(folder):
            return super().walk(folder, on_repeated_folder, with_hidden_files)
        object_store = get_store(folder)
        infos: list[FileInfo] = []
        pending_folders = [folder.rstrip("/")]
        while pending_folders:
            files, folders = object_store.list_folder(pending_folders.pop())
            infos += [
                item
                for item in _without_folder_markers(files)
                if with_hidden_files or not _is_hidden(item.path)
            ]
            pending_folders += [subfolder for subfolder in folders if not _is_hidden(subfolder)]
        return sorted(infos, key=lambda item: item.path)

    def remove_temporaries(self, folder: str) -> None:
        if _is_remote(folder):
            get_store(folder).remove_temporaries(folder.rstrip("/"))
        else:
            super().remove_temporaries(folder)


class _SpooledFile:
    """A file on its way to a store, which cannot add to an object: it waits here until it is whole."""

    def __init__(self, file: BinaryIO, path: str) -> None:
        self._file, self._path = file, path
        self.size = 0

    def read_blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while block := self._file.read(1 << 20):
            yield block

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.size = 0

    def commit(self) -> None:
        get_store(self._path).put(self._path, self._file, self.size)

    def discard(self) -> None:
        """Nothing of it is anywhere but here."""
