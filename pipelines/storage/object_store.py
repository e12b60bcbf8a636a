"""The interface of an object store, ranged reads, and the exceptions for its errors.

Uploads are atomic: an object appears under its name once its last byte has arrived.  So objects are written
under their final names; stores implement a rename as a copy.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol, cast

from bioshards.corpus.errors import CredentialsError, TransientStorageError
from bioshards.corpus.storage.storage_protocol import FileInfo

FIRST_READ_BYTES: Final = 1 << 20
"""Read when a file is opened: all of a report, of keys or verdicts in one request."""
SEEK_READ_BYTES: Final = 128 << 10
"""Read after a jump to another place, where there may be no more than a few rows to read."""
MAX_READ_BYTES: Final = 8 << 20
"""Read at once at most: few requests for large files, and little memory for each that is open."""

UPLOAD_PART_BYTES: Final = 16 << 20
"""A larger object is put in parts, which are in memory while they are sent; one that fails is sent again."""

MAX_CONNECTIONS: Final = 64
"""Kept open at a time: several threads of a worker may each have ahead.WIDTH calls under way."""


class ObjectStore(Protocol):
    """Objects by their whole names, ``gs://BUCKET/...``.

    Every call raises FileNotFoundError for what is not there, PermissionError for what is not allowed,
    TransientStorageError for what may go well later, CredentialsError among them, and another OSError for
    the rest.
    """

    def open(self, path: str) -> BinaryIO: ...

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        """Make an object, or replace one, of a file's first ``size`` bytes."""

    def remove(self, path: str) -> None:
        """Remove an object, or do nothing where there is none."""

    def get_info(self, path: str) -> FileInfo | None:
        """Return an object's size and stamp; None if it does not exist."""

    def list_prefix(self, prefix: str) -> Iterator[FileInfo]:
        """All objects whose names begin so."""

    def list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        """Return the objects and the subfolders of a folder."""

    def remove_temporaries(self, folder: str) -> None:
        """Remove what a killed writer has left in a folder under no name of ours."""

    def probe(self, path: str) -> None:
        """Ask once, without trying again, whether a path's bucket can be used."""


def split_path(path: str) -> tuple[str, str]:
    """Split a path into the bucket and the object's name; the name is '' for a bucket."""
    bucket, _, name = path.partition("://")[2].partition("/")
    return bucket, name


def prefix_from_folder(folder: str) -> str:
    """Return the common prefix of a folder's objects; '' for a bucket.

    ``a//`` is another folder than ``a/``: that in it whose name is empty.
    """
    name = split_path(folder)[1]
    return name if not name or name.endswith("/") else f"{name}/"


class _RangedReader(io.RawIOBase):
    """An object, read in ranges; the first is read at once, so that one that is not there is not opened."""

    def __init__(self, read_range: Callable[[int, int], bytes], get_size: Callable[[], int]) -> None:
        self._read_range, self._get_size = read_range, get_size
        self._position = self._start = 0
        self._block, self._read_size = b"", FIRST_READ_BYTES
        self._end: int | None = None
        self._read_block()

    def _read_block(self) -> None:
        """Read the block that begins where we are; one that comes short is the last."""
        is_sequential = self._position == self._start + len(self._block)
        is_end_known = not self._position or bool(self._block and is_sequential)
        if self._block:
            self._read_size = min(8 * self._read_size, MAX_READ_BYTES) if is_sequential else SEEK_READ_BYTES
        self._start, self._block = self._position, self._read_range(self._position, self._read_size)
        if (
            len(self._block) > self._read_size
        ):  # the whole object each time, which would be read as one long one
            raise TransientStorageError(
                "the store, or what is between, answers with more than the range asked for"
            )
        if len(self._block) < self._read_size and (self._block or is_end_known):
            self._end = self._start + len(self._block)  # else we may be far behind it

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        is_buffered = 0 <= self._position - self._start < len(self._block)
        if not is_buffered and (self._end is None or self._position < self._end):
            self._read_block()
        offset = self._position - self._start
        data = self._block[offset : offset + len(buffer)] if offset >= 0 else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            if self._end is None:
                self._end = self._get_size()
            offset += self._end
        elif whence == io.SEEK_CUR:
            offset += self._position
        self._position = max(0, offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def open_ranged(read_range: Callable[[int, int], bytes], get_size: Callable[[], int]) -> BinaryIO:
    """Return an object as an open file.

    Args:
        read_range: the bytes from an offset, so many or, at the object's end, fewer; of one version of the
            object.
        get_size: the object's size, asked for where the end is looked for before it was read.
    """
    return cast(BinaryIO, io.BufferedReader(_RangedReader(read_range, get_size), 1 << 16))


def error_from_status(path: str, status: int | None, error: BaseException) -> OSError:
    """Return the exception for an HTTP status; None is a failure without a response."""
    bucket = path.partition("://")[0] + "://" + split_path(path)[0]
    message = str(error).strip().partition("\n")[0][:300] or type(error).__name__
    if status == 404:
        return FileNotFoundError(f"{path} is not there: {message}")
    if status == 401:
        return CredentialsError(f"{bucket} does not take the credentials for {path}: {message}")
    if status == 403:
        return PermissionError(f"{bucket} does not allow what is needed of {path}: {message}")
    if status is None or status in (408, 409, 410, 412, 429) or (status >= 500 and status != 501):
        return TransientStorageError(f"the store failed at {path}: {message}")
    return OSError(f"the store refuses {path}: {message}")
