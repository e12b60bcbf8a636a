"""Advisory locks (flock) on files that are being written, which tell a killed writer from a live one."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import BinaryIO


@contextlib.contextmanager
def open_locked(path: str) -> Iterator[BinaryIO]:
    """Open or create a file to read and write, and wait while another process has it locked.

    filelock does not serve here: its lock files stay in their places, and one lock of it takes ten times as
    long, which counts for a lock that each request takes.
    """
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # The process that held the lock may have renamed or removed the file.
            if _is_same_file(file, path):
                yield file
                return


def remove_unlocked(path: str) -> None:
    """Remove a file unless another process has it locked."""
    with contextlib.suppress(FileNotFoundError, BlockingIOError), open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.remove(path)


def _is_same_file(file: BinaryIO, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except FileNotFoundError:
        return False
