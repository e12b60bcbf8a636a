"""Storage on object stores, by obstore.

An object appears under its name once its last byte has arrived, so that objects are written under their final
names: stores implement a rename as a copy.  A file is complete in the temporary folder before it is uploaded.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, ClassVar, Final, cast

import obstore
from obstore.exceptions import BaseError, InvalidPathError

from bioshards.corpus.storage.local_storage import (
    LocalStorage,
    get_temporary_folder,
    locate_full_disk,
    matches_glob,
)
from bioshards.corpus.storage.locks import RunLock
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import (
    FileInfo,
    OnRepeatedFolder,
    ResumableFile,
)
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import repeat, translate_errors
from bioshards.pipelines.storage.store_lock import take_lock
from bioshards.pipelines.storage.store_options import ObjectStore, StoreOptions, open_store

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta

FIRST_READ_BYTES: Final = 1 << 20
"""Read when a file is opened: all of a report, of keys or decisions in one request."""
SEEK_READ_BYTES: Final = 128 << 10
"""Read after a jump to another place, where there may be no more than a few rows to read."""
MAX_READ_BYTES: Final = 8 << 20
"""Read at once at most: few requests for large files, and little memory for each that is open."""

UPLOAD_PART_BYTES: Final = 5 << 20
"""A larger object is put in parts: the least that S3 takes, as each must be sent within the time-out."""
UPLOAD_CONCURRENCY: Final = 2
MAX_UPLOAD_PARTS: Final = 10_000
"""Parts of an upload, at most (docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html)."""

_SPOOL_BYTES: Final = 8 << 20
"""A file on its way to a store is kept on this machine's disk above this size."""


class RemoteStorage(LocalStorage):
    """Objects by URL: gs://, s3://, and Azure's az://, abfs:// and azfs://; and the files of this machine.

    Inputs and outputs may so be in different places.

    Args:
        checks_locks: as of :class:`LocalStorage`.
    """

    is_remote: ClassVar[bool] = True

    def __init__(self, options: StoreOptions, checks_locks: bool = True) -> None:
        super().__init__(checks_locks)
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
        if "://" not in path:
            return super().open(path)
        store, _, name = self._locate(path)
        return cast(BinaryIO, io.BufferedReader(_ObjectReader(store, path, name), 1 << 16))

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        if "://" not in path:
            with super().write(path) as file:
                yield file
            return
        with _open_spool_file() as file:
            yield file
            self.put(path, file)

    def put(self, path: str, file: BinaryIO) -> None:
        """Create or replace an object."""
        root, name = split_path(path)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        self.check_locks()
        with translate_errors(path):
            obstore.put(
                open_store(root, self._options, "upload"),
                name,
                file,
                use_multipart=size > UPLOAD_PART_BYTES,
                chunk_size=max(UPLOAD_PART_BYTES, -(-size // MAX_UPLOAD_PARTS)),
                max_concurrency=UPLOAD_CONCURRENCY,
            )

    @contextlib.contextmanager
    def open_resumable(self, path: str, version: str) -> Iterator[ResumableFile]:
        if "://" not in path:
            with super().open_resumable(path, version) as resumable_file:
                yield resumable_file
            return
        with _open_spool_file() as file:
            yield _SpooledFile(file, path, self)

    def exists(self, path: str) -> bool:
        return self._get_info(path) is not None if "://" in path else super().exists(path)

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
        if "://" not in path:
            super().remove(path)
            return
        self.check_locks()
        store, _, name = self._locate(path)
        with contextlib.suppress(FileNotFoundError), translate_errors(path):
            repeat(lambda: obstore.delete(store, name))

    def list_names(self, folder: str) -> list[str]:
        if "://" not in folder:
            return super().list_names(folder)
        return sorted(info.path.rpartition("/")[2] for info in self._list_folder(f"{folder.rstrip('/')}/")[0])

    def is_folder(self, path: str) -> bool:
        if "://" not in path:
            return super().is_folder(path)
        store, _, name = self._locate(path.rstrip("/"))
        with translate_errors(path):
            try:
                return repeat(lambda: any(obstore.list(store, name or None, chunk_size=1)))
            except InvalidPathError:  # of an object that is in it
                return True

    def glob(self, pattern: str) -> list[FileInfo]:
        if "://" not in pattern:
            return super().glob(pattern)
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
        on_repeated_folder: OnRepeatedFolder | None = None,
        with_hidden_files: bool = False,
    ) -> list[FileInfo]:
        if "://" not in folder:
            return super().walk(folder, on_repeated_folder, with_hidden_files)
        infos: list[FileInfo] = []
        pending_folders = [f"{folder.rstrip('/')}/"]
        while pending_folders:
            files, folders = self._list_folder(pending_folders.pop())
            infos += [info for info in files if with_hidden_files or not _is_hidden(info.path)]
            pending_folders += [path for path in folders if not _is_hidden(path)]
        return sorted(infos, key=lambda info: info.path)

    def remove_temporaries(self, folder: str) -> None:
        """Remove the temporary files of a local folder; a store shows no object that is not complete."""
        if "://" not in folder:
            super().remove_temporaries(folder)

    @contextlib.contextmanager
    def lock(self, path: str, folder: str, is_forced: bool = False) -> Iterator[None]:
        if "://" not in path:
            with super().lock(path, folder, is_forced):
                yield
            return
        lock, store = RunLock(f"{path}.json", folder), self._locate(path)[0]
        retry(lambda: take_lock(lock, store, self.open, is_forced))
        try:
            with self._held(lock):
                yield
        finally:
            with contextlib.suppress(OSError):  # the next run says how to go on
                holder = lock.read_holder(self.open)
                if holder and holder.token == lock.token:
                    self.remove(lock.path)

    def _list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        """Return the objects and the subfolders of a folder; URLs of folders end with a slash.

        Objects by which some tools mark folders have the folder's name and are left out.
        """
        store, root, name = self._locate(folder)
        with translate_errors(folder):
            result = repeat(lambda: obstore.list_with_delimiter(store, name or None))
        files = [_info_from_meta(root, meta) for meta in result["objects"]]
        folders = [f"{root}/{subfolder}/" for subfolder in result["common_prefixes"]]
        return [info for info in files if f"{info.path}/" != folder], folders

    def _list_tree(self, folder: str) -> Iterator[FileInfo]:
        """Return all objects below a folder, with one request for a thousand of them."""
        store, root, name = self._locate(folder)
        with translate_errors(folder):
            infos = repeat(
                lambda: [
                    _info_from_meta(root, meta)
                    for page in obstore.list(store, name or None, chunk_size=1000)
                    for meta in page
                ]
            )
        folders = {info.path.rpartition("/")[0] for info in infos}
        return (info for info in infos if info.size or info.path not in folders)


def _info_from_meta(root: str, meta: ObjectMeta) -> FileInfo:
    return FileInfo(f"{root}/{meta['path']}", meta["size"], (meta["e_tag"] or "").strip('"'))


def _is_hidden(path: str) -> bool:
    return path.rstrip("/").rpartition("/")[2].startswith(".")


class _ObjectReader(io.RawIOBase):
    """Reads an object in ranges of one version; the first at once, so that a missing one cannot be opened.

    obstore's own reader asks for the size first, and reads a replaced object as if it were the same.
    """

    def __init__(self, store: ObjectStore, path: str, name: str) -> None:
        self._store, self._path, self._name = store, path, name
        self._e_tag: str | None = None
        self._position = self._start = self._size = 0
        self._block, self._read_size = memoryview(b""), FIRST_READ_BYTES
        self._read_block()

    def _read_block(self) -> None:
        """Read the block that begins at the position."""
        if self._block:
            is_sequential = self._position == self._start + len(self._block)
            self._read_size = min(8 * self._read_size, MAX_READ_BYTES) if is_sequential else SEEK_READ_BYTES
        options: GetOptions = {"range": (self._position, self._position + self._read_size)}
        if self._e_tag:
            options["if_match"] = self._e_tag
        with translate_errors(self._path, was_seen=self._e_tag is not None):
            try:
                result = obstore.get(self._store, self._name, options=options)
                self._block = memoryview(result.bytes())
            except BaseError as error:
                if "status code: 416" in str(error):  # an empty object has no range
                    return
                raise
        self._start, self._size, self._e_tag = self._position, result.meta["size"], result.meta["e_tag"]

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        if self._position >= self._size:
            return 0
        if not 0 <= self._position - self._start < len(self._block):
            self._read_block()
        offset = self._position - self._start
        data = self._block[offset : offset + len(buffer)]
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


@contextlib.contextmanager
def _open_spool_file() -> Iterator[BinaryIO]:
    """Open a temporary file that buffers an object until its upload."""
    with locate_full_disk(get_temporary_folder()), tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as file:
        yield cast(BinaryIO, file)


class _SpooledFile(ResumableFile):
    """A file on its way to a store, which cannot append to an object."""

    def __init__(self, file: BinaryIO, path: str, storage: RemoteStorage) -> None:
        super().__init__(file, "", path, storage.check_locks)
        self._storage = storage

    def commit(self) -> None:
        self._storage.put(self._path, self._file)

    def discard(self) -> None:
        """Do nothing: the bytes are nowhere else."""
