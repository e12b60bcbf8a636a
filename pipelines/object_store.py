"""What AnyFiles asks of a kind of object store, and what all kinds share: ranged reads, names of failures.

A store puts an object whole or not at all: it is seen under its name once its last byte is there.  So an
object needs no temporary name, and nobody has to rename it, which stores do by copying.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final, Protocol, cast

from bioshards.corpus.errors import CredentialsError, TransientStorageError
from bioshards.corpus.files import Found

FIRST_BYTES: Final = 1 << 20
"""Read when a file is opened: all of a report, of keys or verdicts in one request."""
JUMP_BYTES: Final = 128 << 10
"""Read after a jump to another place, where there may be no more than a few rows to read."""
BLOCK_BYTES: Final = 8 << 20
"""Read at once at most: few requests for large files, and little memory for each that is open."""

PART_BYTES: Final = 16 << 20
"""A larger object is put in parts, which are in memory while they are sent; one that fails is sent again."""

CONNECT_SECONDS: Final = 10
SILENT_SECONDS: Final = 60
"""How long a store may keep silent within an answer before it has failed."""

CONNECTIONS: Final = 64
"""Kept open at a time: several threads of a worker may each have ahead.WIDTH calls under way."""


class Store(Protocol):
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

    def look(self, path: str) -> Found | None:
        """What is known of an object; None where there is none."""

    def below(self, prefix: str) -> Iterator[Found]:
        """All objects whose names begin so."""

    def folder(self, folder: str) -> tuple[list[Found], list[str]]:
        """The objects in a folder, and the folders in it."""

    def sweep(self, folder: str) -> None:
        """Remove what a killed writer has left in a folder under no name of ours."""

    def probe(self, path: str) -> None:
        """Ask once, without trying again, whether a path's bucket can be used."""


def split(path: str) -> tuple[str, str]:
    """A path's bucket and the object's name in it, which is empty for the bucket itself."""
    bucket, _, name = path.partition("://")[2].partition("/")
    return bucket, name


def inside(folder: str) -> str:
    """What the names of the objects in a folder begin with; nothing in a bucket itself.

    ``a//`` is another folder than ``a/``: that in it whose name is empty.
    """
    name = split(folder)[1]
    return name if not name or name.endswith("/") else f"{name}/"


class _Ranges(io.RawIOBase):
    """An object, read in ranges; the first is read at once, so that one that is not there is not opened."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: Callable[[], int]) -> None:
        self._fetch, self._size = fetch, size
        self._position = self._start = 0
        self._block, self._step = b"", FIRST_BYTES
        self._end: int | None = None
        self._fill()

    def _fill(self) -> None:
        """Read the block that begins where we are; one that comes short is the last."""
        follows = self._position == self._start + len(self._block)
        at_most_the_end = not self._position or bool(self._block and follows)
        if self._block:
            self._step = min(8 * self._step, BLOCK_BYTES) if follows else JUMP_BYTES
        self._start, self._block = self._position, self._fetch(self._position, self._step)
        if len(self._block) > self._step:  # the whole object each time, which would be read as one long one
            raise TransientStorageError(
                "the store, or what is between, answers with more than the range asked for"
            )
        if len(self._block) < self._step and (self._block or at_most_the_end):
            self._end = self._start + len(self._block)  # else we may be far behind it

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        held = 0 <= self._position - self._start < len(self._block)
        if not held and (self._end is None or self._position < self._end):
            self._fill()
        at = self._position - self._start
        data = self._block[at : at + len(buffer)] if at >= 0 else b""
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        if whence == io.SEEK_END:
            if self._end is None:
                self._end = self._size()
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


def opened(fetch: Callable[[int, int], bytes], size: Callable[[], int]) -> BinaryIO:
    """An object as an open file.

    Args:
        fetch: the bytes from an offset, so many or, at the object's end, fewer; of one version of the object.
        size: the object's size, asked for where the end is looked for before it was read.
    """
    return cast(BinaryIO, io.BufferedReader(_Ranges(fetch, size), 1 << 16))


def failure(path: str, status: int | None, error: BaseException) -> OSError:
    """What is raised for a store's error, by the status of its answer; None: there was no answer."""
    bucket = path.partition("://")[0] + "://" + split(path)[0]
    said = str(error).strip().partition("\n")[0][:300] or type(error).__name__
    if status == 404:
        return FileNotFoundError(f"{path} is not there: {said}")
    if status == 401:
        return CredentialsError(f"{bucket} does not take the credentials for {path}: {said}")
    if status == 403:
        return PermissionError(f"{bucket} does not allow what is needed of {path}: {said}")
    if status is None or status in (408, 409, 410, 412, 429) or (status >= 500 and status != 501):
        return TransientStorageError(f"the store failed at {path}: {said}")
    return OSError(f"the store refuses {path}: {said}")
