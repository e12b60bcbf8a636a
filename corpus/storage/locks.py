"""Advisory locks (flock) on files and folders, which tell a living writer from a killed one."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import BinaryIO, Final

from bioshards.corpus.errors import OutputMismatchError

_TEMPORARY_FOLDER_LOCK: Final = ".lock"
_MIN_AGE_SECONDS: Final = 60
"""A younger temporary folder may not be locked yet."""


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


def lock_folder(lock_path: str, message: str) -> contextlib.AbstractContextManager[object]:
    """Lock the file that stands for a folder, until the context ends.

    Raises:
        OutputMismatchError: another process has it locked; with ``message``.
    """
    from filelock import FileLock, Timeout  # 30 ms, which a worker, who locks no folder, need not wait for

    try:
        return FileLock(lock_path, thread_local=False).acquire(timeout=0)
    except Timeout as error:
        raise OutputMismatchError(message) from error


@contextlib.contextmanager
def make_temporary_folder(purpose: str) -> Iterator[str]:
    """Make a folder ``bioshards-PURPOSE-...`` that exists inside the block, and remove leftovers of its kind.

    The process has a file in it locked, which tells its folder from that of a killed one.
    """
    prefix = f"bioshards-{purpose}-"
    for leftover in glob.glob(f"{glob.escape(tempfile.gettempdir())}/{prefix}*"):
        _remove_if_unlocked(leftover)
    with (
        tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder,
        open_locked(f"{folder}/{_TEMPORARY_FOLDER_LOCK}"),
    ):
        yield folder


def _remove_if_unlocked(folder: str) -> None:
    """Remove a folder of this user whose process has ended; what other users put there is left alone."""
    with contextlib.suppress(OSError):
        info = os.lstat(folder)
        if info.st_uid == os.getuid() and time.time() - info.st_mtime > _MIN_AGE_SECONDS:
            # A pipe in place of the lock would keep a plain open waiting for its writer.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with open(os.open(f"{folder}/{_TEMPORARY_FOLDER_LOCK}", flags), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
