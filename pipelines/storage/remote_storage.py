"""Storage on object stores, by obstore.

An object appears under its name once its last byte has arrived, so that objects are written under their final
names: stores implement a rename as a copy.  A file is complete in the temporary folder before it is uploaded.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Final, cast

import obstore
from obstore.exceptions import InvalidPathError
from obstore.store import GCSStore, S3Store

from bioshards.corpus.storage.disk_space import get_temporary_folder, locate_full_disk
from bioshards.corpus.storage.glob_pattern import matches_glob
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.resumable_file import LocalResumableFile, ResumableFile
from bioshards.corpus.storage.storage_protocol import (
    FileInfo,
    OnRepeatedFolder,
    Storage,
    ignore_repeated_folder,
)
from bioshards.pipelines.storage import object_store, xml_api
from bioshards.pipelines.storage.forwarding import ForwardingStorage
from bioshards.pipelines.storage.lease import hold_lease
from bioshards.pipelines.storage.object_reader import open_object
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import repeat, translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore, StoreOptions, open_store

if TYPE_CHECKING:
    from obstore import ObjectMeta

_SPOOL_BYTES: Final = 8 << 20
"""A file on its way to a store is kept on this machine's disk above this size."""


class RemoteStorage(Storage):
    """Objects by URL: gs://, s3://, and Azure's az://, abfs:// and azfs://."""

    is_remote: ClassVar[bool] = True

    def __init__(self, options: StoreOptions) -> None:
        self._options = options

    def _locate(self, path: str) -> tuple[ObjectStore, str, str]:
        """Return the client of a path's bucket, the bucket's URL and the object's name."""
        root, name = split_path(path)
        return open_store(root, self._options), root, name

    def probe(self, path: str) -> None:
        """Send one request to a path's bucket, to see whether it can be used.

        Raises:
            OSError: as of :func:`~.store_errors.translate_errors`.
            ValueError: an option has no meaning.
        """
        root = split_path(path)[0]
        with translate_errors(root), contextlib.suppress(InvalidPathError):
            next(iter(obstore.list(open_store(root, self._options, "probe"), chunk_size=1)), None)

    def open(self, path: str) -> BinaryIO:
        store, _, name = self._locate(path)
        return open_object(store, path, name)

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        with _open_spool_file() as file:
            yield file
            self.put(path, file)

    def put(self, path: str, file: BinaryIO) -> None:
        """Create or replace an object."""
        root, name = split_path(path)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        with translate_errors(path):
            obstore.put(
                open_store(root, self._options, "upload"),
                name,
                file,
                use_multipart=size > object_store.UPLOAD_PART_BYTES,
                chunk_size=max(object_store.UPLOAD_PART_BYTES, -(-size // object_store.MAX_UPLOAD_PARTS)),
                max_concurrency=object_store.UPLOAD_CONCURRENCY,
            )

    @contextlib.contextmanager
    def open_resumable(self, path: str, version: str) -> Iterator[ResumableFile]:
        with _open_spool_file() as file:
            yield _SpooledFile(file, path, self)

    def exists(self, path: str) -> bool:
        return self._get_info(path) is not None

    def _get_info(self, path: str) -> FileInfo | None:
        store, root, name = self._locate(path)
        if not name:
            return None
        try:
            with translate_errors(path):
                meta = obstore.head(store, name)
        except FileNotFoundError:
            return None
        return _info_from_meta(root, meta)

    def remove(self, path: str) -> None:
        store, _, name = self._locate(path)
        with contextlib.suppress(FileNotFoundError), translate_errors(path):
            repeat(lambda: obstore.delete(store, name))

    def list_names(self, folder: str) -> list[str]:
        return sorted(info.path.rpartition("/")[2] for info in self._list_folder(f"{folder.rstrip('/')}/")[0])

    def is_folder(self, path: str) -> bool:
        store, _, name = self._locate(path.rstrip("/"))
        with translate_errors(path):
            try:
                return repeat(lambda: any(obstore.list(store, name or None, chunk_size=1)))
            except InvalidPathError:  # of an object that is in it
                return True

    def glob(self, pattern: str) -> list[FileInfo]:
        if info := self._get_info(pattern):
            return [info]
        literal_prefix = re.split(r"[*?\[]", pattern, maxsplit=1)[0]
        if literal_prefix == pattern:
            return []
        folder = f"{literal_prefix.rpartition('/')[0]}/"
        is_recursive = "/" in pattern[len(literal_prefix) :] or "**" in pattern
        candidates = self._list_tree(folder) if is_recursive else self._list_folder(folder)[0]
        matches = (info for info in candidates if matches_glob(info.path.split("/"), pattern.split("/")))
        return sorted(matches, key=lambda info: info.path)

    def walk(
        self,
        folder: str,
        on_repeated_folder: OnRepeatedFolder = ignore_repeated_folder,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        files = self._walk_folders(f"{folder.rstrip('/')}/", with_hidden_files)
        return sorted(files, key=lambda info: info.path)

    def remove_temporaries(self, folder: str) -> None:
        """Abort the uploads into a folder that a killed process has left: their parts are billed for ever.

        Who may not do so, or whose store cannot, leaves that to a rule of the bucket.  On Azure parts expire
        after a week (learn.microsoft.com/rest/api/storageservices/put-block).
        """
        store, root, name = self._locate(f"{folder.rstrip('/')}/")
        if isinstance(store, GCSStore | S3Store):
            with contextlib.suppress(OSError):
                xml_api.abort_uploads(store, root, name)

    def lease(self, path: str, folder: str) -> AbstractContextManager[None]:
        return hold_lease(self._locate(path)[0], path, folder)

    def _list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        """Return the objects and the subfolders of a folder; URLs of folders end with a slash.

        Objects by which some tools mark folders have the folder's name and are left out.
        """
        store, root, name = self._locate(folder)
        with translate_errors(folder):
            try:
                result = repeat(lambda: obstore.list_with_delimiter(store, name or None))
            except (InvalidPathError, ValueError):  # of a name like a//b
                if not isinstance(store, GCSStore | S3Store):
                    raise
            else:
                files = [_info_from_meta(root, meta) for meta in result["objects"]]
                folders = [f"{root}/{subfolder}/" for subfolder in result["common_prefixes"]]
                return [info for info in files if f"{info.path}/" != folder], folders
        files, folders = xml_api.list_folder(store, root, name)
        return [info for info in files if not info.path.endswith("/")], folders

    def _list_tree(self, folder: str) -> Iterator[FileInfo]:
        """Yield all objects below a folder, with one request for a thousand of them."""
        store, root, name = self._locate(folder)
        infos: list[FileInfo] | None = None
        with translate_errors(folder), contextlib.suppress(InvalidPathError):
            infos = repeat(
                lambda: [
                    _info_from_meta(root, meta)
                    for page in obstore.list(store, name or None, chunk_size=1000)
                    for meta in page
                ]
            )
        if infos is None:  # there is a name like a//b
            return self._walk_folders(folder, with_hidden_files=True, with_hidden_folders=True)
        folders = {info.path.rpartition("/")[0] for info in infos}
        return (info for info in infos if info.size or info.path not in folders)

    def _walk_folders(
        self, folder: str, with_hidden_files: bool, with_hidden_folders: bool = False
    ) -> Iterator[FileInfo]:
        pending_folders = [folder]
        while pending_folders:
            files, folders = self._list_folder(pending_folders.pop())
            yield from (info for info in files if with_hidden_files or not _is_hidden(info.path))
            pending_folders += [path for path in folders if with_hidden_folders or not _is_hidden(path)]


class RoutedStorage(ForwardingStorage):
    """Local files, and objects of every store, so that inputs and outputs may be on different ones."""

    is_remote: ClassVar[bool] = True

    def __init__(self, options: StoreOptions) -> None:
        self._local, self._remote = LocalStorage(), RemoteStorage(options)

    def _route(self, path: str) -> Storage:
        return self._remote if "://" in path else self._local


def _info_from_meta(root: str, meta: ObjectMeta) -> FileInfo:
    return FileInfo(f"{root}/{meta['path']}", meta["size"], (meta["e_tag"] or "").strip('"'))


def _is_hidden(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2].startswith(".")


@contextlib.contextmanager
def _open_spool_file() -> Iterator[BinaryIO]:
    """Open a temporary file that buffers an object until its upload."""
    with locate_full_disk(get_temporary_folder()), tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
        yield cast(BinaryIO, file)


class _SpooledFile(LocalResumableFile):
    """A file on its way to a store, which cannot append to an object."""

    def __init__(self, file: BinaryIO, path: str, storage: RemoteStorage) -> None:
        super().__init__(file, "", path)
        self._storage = storage

    def commit(self) -> None:
        self._storage.put(self._path, self._file)

    def discard(self) -> None:
        """Do nothing: the bytes are nowhere else."""
