"""Resumable download: a file that is written in several runs, under another name until it is complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import BinaryIO, Final, Protocol

from bioshards.corpus.storage.disk_space import locate_full_disk
from bioshards.corpus.storage.file_lock import open_locked, remove_unlocked

PARTIAL_PREFIX: Final = ".part-"
"""Prefix of the names of incomplete files."""

_BLOCK_BYTES: Final = 1 << 20


class ResumableFile(Protocol):
    """An incomplete file.

    Attributes:
        size: bytes written so far.
    """

    size: int

    def read_blocks(self) -> Iterator[bytes]:
        """Yield the bytes written so far, from the beginning."""

    def write(self, data: bytes) -> None:
        """Append bytes."""

    def restart(self) -> None:
        """Truncate the file."""

    def commit(self) -> None:
        """Flush the complete file to disk and rename it to its final name."""

    def discard(self) -> None:
        """Delete the file: its content is wrong."""


@contextlib.contextmanager
def open_local_resumable(path: str, version: str) -> Iterator[ResumableFile]:
    """Open the incomplete file of a local path, and wait while another process writes it.

    Incomplete files of other versions are removed unless another process is writing them.

    Args:
        path: final path.
        version: identifies the content.
    """
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    partial_path = os.path.join(folder, f"{PARTIAL_PREFIX}{version}-{name}")
    for sibling in os.listdir(folder):
        if (
            sibling.startswith(PARTIAL_PREFIX)
            and sibling.endswith(f"-{name}")
            and sibling != os.path.basename(partial_path)
        ):
            remove_unlocked(os.path.join(folder, sibling))
    with locate_full_disk(folder), open_locked(partial_path) as file:
        yield LocalResumableFile(file, partial_path, path)


class LocalResumableFile:
    """An incomplete file on a local disk."""

    def __init__(self, file: BinaryIO, partial_path: str, path: str) -> None:
        self._file, self._partial_path, self._path = file, partial_path, path
        self.size = file.seek(0, os.SEEK_END)

    def read_blocks(self) -> Iterator[bytes]:
        self._file.seek(0)
        while block := self._file.read(_BLOCK_BYTES):
            yield block
        self._file.seek(0, os.SEEK_END)

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self.size += len(data)

    def restart(self) -> None:
        self._file.seek(0)
        self._file.truncate()
        self.size = 0

    def commit(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        os.replace(self._partial_path, self._path)

    def discard(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._partial_path)
