"""An object as an open file, read in ranges of one version."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, cast

import obstore
from obstore.exceptions import BaseError

from bioshards.pipelines.storage import object_store
from bioshards.pipelines.storage.store_errors import translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore

if TYPE_CHECKING:
    from obstore import GetOptions


class _ObjectReader(io.RawIOBase):
    """Reads the first range at once, so that a missing object cannot be opened."""

    def __init__(self, store: ObjectStore, path: str, name: str) -> None:
        self._store, self._path, self._name = store, path, name
        self._e_tag: str | None = None
        self._position = self._start = self._size = 0
        self._block, self._read_size = memoryview(b""), object_store.FIRST_READ_BYTES
        self._read_block()

    def _read_block(self) -> None:
        """Read the block that begins at the position."""
        if self._block:
            is_sequential = self._position == self._start + len(self._block)
            self._read_size = (
                min(8 * self._read_size, object_store.MAX_READ_BYTES)
                if is_sequential
                else object_store.SEEK_READ_BYTES
            )
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


def open_object(store: ObjectStore, path: str, name: str) -> BinaryIO:
    """Open an object to read; all reads are of the version that the first one found."""
    return cast(BinaryIO, io.BufferedReader(_ObjectReader(store, path, name), 1 << 16))
