"""Notes of the worker processes of a local run on how far they are, which the driver adds up and shows.

Each process has one small file in a temporary folder of the run and writes it a few times a second at most.
An environment variable names the folder; without it, as on a cluster, nothing is noted.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from typing import BinaryIO, Final

import msgspec

_FOLDER_VARIABLE: Final = "BIOSHARDS_PROGRESS_FOLDER"
_INTERVAL_SECONDS: Final = 0.25


class WorkerNote(msgspec.Struct):
    """How far a process is.

    Attributes:
        counts: items done of each step that it has begun; ``units``, the bytes or documents done of items
            that have a size; and what else is counted.
        wait: why it waited last.
    """

    counts: dict[str, int] = {}
    wait: str = ""


class _Worker:
    """The note of this process, and the item that it is at."""

    def __init__(self) -> None:
        self.counts = Counter[str]()
        self.done_units = self.item_size = self.item_units = self.item_thread = 0
        self.wait = ""
        self.next_write = 0.0
        self.lock = threading.RLock()

    def write(self, is_due: bool = False) -> None:
        """Write the note, at most every :data:`_INTERVAL_SECONDS` if it is not due."""
        folder, now = os.environ.get(_FOLDER_VARIABLE), time.monotonic()
        if folder is None or (now < self.next_write and not is_due):
            return
        self.next_write = now + _INTERVAL_SECONDS
        units = self.done_units + min(self.item_units, self.item_size)  # a file may be read twice
        note = WorkerNote({**self.counts, "units": units}, self.wait)
        path = f"{folder}/{os.getpid()}"
        with contextlib.suppress(OSError):
            with open(f"{path}.new", "wb") as file:
                file.write(msgspec.json.encode(note))
            os.replace(f"{path}.new", path)  # so that nobody reads half of it


_worker = _Worker()


@contextlib.contextmanager
def write_notes(folder: str) -> Iterator[None]:
    """Let this process and those that it starts write notes into a folder inside the block.

    Nothing is noted in a folder that other users can write: a pipe in it would hang whoever opens it.
    """
    global _worker
    if os.stat(folder).st_mode & 0o077:
        yield
        return
    _worker = _Worker()
    os.environ[_FOLDER_VARIABLE] = folder
    try:
        yield
    finally:
        del os.environ[_FOLDER_VARIABLE]


@contextlib.contextmanager
def note_step(step: str) -> Iterator[None]:
    """Note that one item of a step is worked on inside the block, and done at its end."""
    count(step, 0)
    try:
        yield
    finally:
        with _worker.lock:
            if _worker.item_thread == threading.get_ident():
                _worker.done_units += _worker.item_size
                _worker.item_size = _worker.item_units = _worker.item_thread = 0
            _worker.counts[step] += 1
            _worker.write(is_due=True)


def count(name: str, number: int = 1) -> None:
    """Count items of a step, or anything else that has a name."""
    with _worker.lock:
        is_new = name not in _worker.counts
        _worker.counts[name] += number
        _worker.write(is_new)


def begin_item(size: int) -> None:
    """Note what is done of an item of this size from here on; all of it is at the end of its step."""
    with _worker.lock:
        _worker.item_size, _worker.item_units, _worker.item_thread = size, 0, threading.get_ident()


def add_units(number: int) -> None:
    """Add units done of the item that has begun."""
    with _worker.lock:
        _worker.item_units += number
        _worker.write()


def count_reads(file: BinaryIO) -> BinaryIO:
    """Return a file whose bytes are units of the item once they are read."""
    return io.BufferedReader(_CountedFile(file)) if _FOLDER_VARIABLE in os.environ else file


class _CountedFile(io.RawIOBase):
    """A file that is read and whose bytes are counted."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._file.read(len(buffer))
        buffer[: len(data)] = data
        add_units(len(data))
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)


def report_wait(text: str) -> None:
    """Note why this process waits."""
    with _worker.lock:
        _worker.wait = text
        _worker.write(is_due=True)


def read_notes() -> list[WorkerNote] | None:
    """Return the notes of all processes; None where nothing is noted."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return None
    notes = []
    for name in filter(str.isdecimal, os.listdir(folder)):
        with contextlib.suppress(OSError, msgspec.DecodeError), open(f"{folder}/{name}", "rb") as file:
            notes.append(msgspec.json.decode(file.read(), type=WorkerNote))
    return notes
