"""Exclusive lock on a local folder, which the system releases when its process ends or is killed."""

from __future__ import annotations

import contextlib

from filelock import FileLock, Timeout

from bioshards.corpus.errors import OutputMismatchError


def lock_folder(lock_path: str, message: str) -> contextlib.AbstractContextManager[object]:
    """Lock the file that stands for a folder, until the context ends.

    Raises:
        OutputMismatchError: another process has it locked; with ``message``.
    """
    try:
        return FileLock(lock_path, thread_local=False).acquire(timeout=0)
    except Timeout as error:
        raise OutputMismatchError(message) from error
