"""Name the disk that is full."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator
from typing import Final

from bioshards.corpus.errors import DiskFullError

DISK_FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)
"""Numbers of the errors of a full disk and of a used-up quota."""


def make_disk_full_error(path: str, number: int) -> DiskFullError:
    """Return the error for a path that cannot be written, with the room that its disk has left."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    status = os.statvfs(folder)
    free = f"{status.f_bavail * status.f_frsize:,} bytes are free"
    if status.f_files and not status.f_favail:
        free += " and no further file can be made"
    return DiskFullError(f"the disk is full: {os.strerror(number)} in {folder}, where {free}", number)


def get_temporary_folder() -> str:
    """Return the folder of temporary files, without writing to it as :mod:`tempfile` does."""
    return str(tempfile.tempdir or os.environ.get("TMPDIR") or "/tmp")


@contextlib.contextmanager
def locate_full_disk(path: str) -> Iterator[None]:
    """Inside, a full disk is that of this path, unless the error says another.

    Raises:
        DiskFullError: the disk is full.
    """
    try:
        yield
    except DiskFullError:
        raise
    except OSError as error:
        if error.errno in DISK_FULL_ERRORS:
            raise make_disk_full_error(path, error.errno) from error
        raise
