"""Temporary folders of one process; those that killed processes left are removed by the next."""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from typing import Final

from bioshards.corpus.storage.file_lock import open_locked

_LOCK: Final = ".lock"
_MIN_AGE_SECONDS: Final = 60
"""A younger folder may not be locked yet."""


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
        open_locked(f"{folder}/{_LOCK}"),
    ):
        yield folder


def _remove_if_unlocked(folder: str) -> None:
    with contextlib.suppress(OSError):
        if time.time() - os.stat(folder).st_mtime > _MIN_AGE_SECONDS:
            with open(f"{folder}/{_LOCK}", "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
