"""ByteCounter: to be described."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, TypeVar, cast

from bioshards.corpus.storage.storage_protocol import Storage

StorageT = TypeVar("StorageT", bound=Storage)


class ByteCounter:
    """Counts the bytes that go through files, in whatever thread."""

    def __init__(self) -> None:
        self.read = self.written = 0
        self._lock = threading.Lock()

    def wrap_storage(self, storage: StorageT) -> StorageT:
        """The same storage, counted."""

        @contextmanager
        def write(path: str) -> Iterator[BinaryIO]:
            with storage.write(path) as file:
                yield cast(BinaryIO, _CountingFile(file, self))

        def open_counted(path: str) -> BinaryIO:
            return cast(BinaryIO, _CountingFile(storage.open(path), self))

        counting_files = copy.copy(storage)
        vars(counting_files).update(open=open_counted, write=write)
        return counting_files

    def add(self, read: int = 0, written: int = 0) -> None:
        with self._lock:
            self.read += read
            self.written += written


class _CountingFile:
    """A file that tells a meter what is read and written; in all else it is the file itself."""

    def __init__(self, file: BinaryIO, byte_counter: ByteCounter) -> None:
        self._file, self._byte_counter = file, byte_counter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._byte_counter.add(read=len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:
        size: int = cast(Any, self._file).readinto(buffer)
        self._byte_counter.add(read=size)
        return size

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for line in self._file:
                size += len(line)
                yield line
        finally:
            self._byte_counter.add(read=size)

    def write(self, data: bytes) -> int:
        self._byte_counter.add(written=memoryview(data).nbytes)
        return self._file.write(data)

    def __enter__(self) -> _CountingFile:
        self._file.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._file.__exit__(*exc_info)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
