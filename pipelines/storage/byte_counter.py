"""Count the bytes that are read and written through a storage."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any, BinaryIO, cast

from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui import progress_notes
from bioshards.pipelines.storage.forwarding import ForwardingStorage


class ByteCounter:
    """Thread-safe counts of bytes read and written, the former noted as progress."""

    def __init__(self) -> None:
        self.read = self.written = 0
        self._lock = threading.Lock()

    def add(self, read: int = 0, written: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.read += read
            self.written += written
        progress_notes.add_bytes(read)


class CountingStorage(ForwardingStorage):
    """A storage that counts the bytes of the files that are opened through it.

    Memory-mapped files and resumable downloads are not counted.
    """

    def __init__(self, inner: Storage, counter: ByteCounter) -> None:
        self._inner, self._counter = inner, counter

    def _route(self, path: str) -> Storage:
        return self._inner

    @property
    def is_remote(self) -> bool:  # type: ignore[override]
        """Return True if calls of the inner storage are dominated by latency."""
        return self._inner.is_remote

    def open(self, path: str) -> BinaryIO:
        """Open a file; what is read of it is counted."""
        return cast(BinaryIO, _CountingFile(self._inner.open(path), self._counter))

    @contextlib.contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        """Write a file; what is written to it is counted."""
        with self._inner.write(path) as file:
            yield cast(BinaryIO, _CountingFile(file, self._counter))


class _CountingFile:
    """An open file that counts; everything else is passed to the file, as pyarrow needs it."""

    def __init__(self, file: BinaryIO, counter: ByteCounter) -> None:
        self._file, self._counter = file, counter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._counter.add(read=len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:
        size: int = cast(Any, self._file).readinto(buffer)
        self._counter.add(read=size)
        return size

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for line in self._file:
                size += len(line)
                yield line
        finally:
            self._counter.add(read=size)

    def write(self, data: bytes) -> int:
        self._counter.add(written=memoryview(data).nbytes)
        return self._file.write(data)

    def __enter__(self) -> _CountingFile:
        self._file.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        self._file.__exit__(*exc_info)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
