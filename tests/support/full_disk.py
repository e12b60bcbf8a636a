"""Storages and limits that act as a full disk."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, cast

from bioshards.corpus.storage.local_storage import LocalStorage


class FullDiskStorage(LocalStorage):
    """A storage that is full after a number of bytes are written to paths with ``path_part`` in them."""

    def __init__(self, path_part: str, free_bytes: int = 0) -> None:
        self._path_part, self._free_bytes = path_part, free_bytes

    @contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        with super().write(path) as file:
            yield cast(BinaryIO, _FullDiskFile(self, file)) if self._path_part in path else file

    def use_bytes(self, size: int) -> None:
        self._free_bytes -= size
        if self._free_bytes < 0:
            raise OSError(28, "No space left on device")


class _FullDiskFile:
    def __init__(self, disk: FullDiskStorage, file: BinaryIO) -> None:
        self._disk, self._file = disk, file
        self.closed = False

    def write(self, data: bytes) -> int:
        self._disk.use_bytes(len(memoryview(data).cast("B")))
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


@contextlib.contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes; writers see a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
