"""Notes of the worker processes of a local run on how far they are, which the driver shows.

Each process has one small file in a temporary folder of the run and writes it a few times a second at most.
An environment variable names the folder; without it, as on a cluster, nothing is noted.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

from bioshards.corpus.storage.locks import make_temporary_folder

_FOLDER_VARIABLE: Final = "BIOSHARDS_PROGRESS_FOLDER"
_INTERVAL_SECONDS: Final = 0.25


@dataclass(slots=True)
class WorkerNote:
    """How far a process is.

    Attributes:
        step: the step that it is at.
        num_done: items of this step that it has done.
        item: name of the item that it is at; '' if its inside is not noted.
        num_bytes: bytes of the item read.
        num_units: records or documents of the item done.
    """

    step: str
    num_done: int = 0
    item: str = ""
    num_bytes: int = 0
    num_units: int = 0


class _NoteWriter:
    """The note of this process."""

    def __init__(self) -> None:
        self.note = WorkerNote("")
        self.done_by_step = Counter[str]()
        self._next_write = 0.0

    def write(self, is_due: bool = False) -> None:
        """Write the note, at most every :data:`_INTERVAL_SECONDS` if it is not due."""
        now = time.monotonic()
        if now < self._next_write and not is_due:
            return
        self._next_write = now + _INTERVAL_SECONDS
        folder = os.environ.get(_FOLDER_VARIABLE)
        if folder is None:
            return
        with contextlib.suppress(OSError), open(f"{folder}/{os.getpid()}", "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(self.note)))


_writer = _NoteWriter()


@contextlib.contextmanager
def make_folder() -> Iterator[None]:
    """Let this process and those that it starts write notes inside the block."""
    global _writer
    _writer = _NoteWriter()
    with make_temporary_folder("progress") as folder:
        os.environ[_FOLDER_VARIABLE] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER_VARIABLE]


@contextlib.contextmanager
def note_step(step: str) -> Iterator[None]:
    """Note that one item of a step is worked on inside the block."""
    if _FOLDER_VARIABLE not in os.environ:
        yield
        return
    is_new_step = step != _writer.note.step
    _writer.note = WorkerNote(step, _writer.done_by_step[step])
    _writer.write(is_new_step)
    try:
        yield
    finally:
        _writer.done_by_step[step] += 1
        _writer.note = WorkerNote(step, _writer.done_by_step[step])
        _writer.write()


def begin_item(name: str) -> None:
    """Note bytes and units from here to the end of the item.

    Args:
        name: of the item, as in the name of its report.
    """
    if _FOLDER_VARIABLE in os.environ:
        _writer.note.item, _writer.note.num_bytes, _writer.note.num_units = name, 0, 0


def add_bytes(count: int) -> None:
    """Add bytes read of the item."""
    if _writer.note.item:
        _writer.note.num_bytes += count
        _writer.write()


def add_units(count: int = 1) -> None:
    """Add records or documents of the item done."""
    if _writer.note.item:
        _writer.note.num_units += count
        _writer.write()


def read_notes() -> list[WorkerNote] | None:
    """Return the notes of all processes, without one that is being written; None where nothing is noted."""
    folder = os.environ.get(_FOLDER_VARIABLE)
    if folder is None:
        return None
    notes = []
    for name in os.listdir(folder):
        with contextlib.suppress(OSError, ValueError), open(f"{folder}/{name}", encoding="utf-8") as file:
            notes.append(WorkerNote(**json.load(file)))
    return notes
