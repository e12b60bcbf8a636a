"""Storages and limits that act as a full disk."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.outputs import published_digests


class FullDiskStorage(LocalStorage):
    """A storage that is full after a number of bytes are written to paths with ``path_part`` in them."""

    def __init__(self, path_part: str, free_bytes: int = 0) -> None:
        super().__init__()
        self._path_part, self._free_bytes = path_part, free_bytes

    @contextmanager
    def write(self, path: str) -> Iterator[BinaryIO]:
        with super().write(path) as file:
            yield cast(BinaryIO, _FullDiskFile(self, file)) if self._path_part in path else file

    def use_bytes(self, size: int) -> None:
        self._free_bytes -= size
        if self._free_bytes < 0:
            raise OSError(28, "No space left on device")


class _FullDiskFile:
    def __init__(self, disk: FullDiskStorage, file: BinaryIO) -> None:
        self._disk, self._file = disk, file
        self.closed = False

    def write(self, data: bytes) -> int:
        self._disk.use_bytes(len(memoryview(data).cast("B")))
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


@contextlib.contextmanager
def limit_file_size(size: int) -> Iterator[None]:
    """Limit the size of files that this process writes; writers see a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def check_resumption(
    run: Callable[[Path], int],
    folder: Path,
    allowed_writes: Sequence[int],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Check that runs whose disk is full after some writes continue one another, to the bytes of one run.

    Args:
        run: runs a pipeline into an output directory.
        folder: folder of the outputs.
        allowed_writes: number of files that each run may write; that of the last one may be the manifest.
    """
    for count in allowed_writes:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(LocalStorage, "write", _limit_writes(count))
            assert run(folder / "out") in (1, 2, 3)
        stderr = capsys.readouterr().err
        assert "No space left" in stderr or "the disk is full" in stderr
        assert not (folder / "out" / "manifest.json").exists() or count == allowed_writes[-1]
    assert run(folder / "out") == 0
    assert run(folder / "fresh") == 0
    assert published_digests(folder / "out") == published_digests(folder / "fresh")
    assert list((folder / "out").rglob(".tmp-*")) == []


def _limit_writes(count: int) -> Callable[[LocalStorage, str], contextlib.AbstractContextManager[BinaryIO]]:
    original_write, remaining_writes = LocalStorage.write, [count]

    @contextmanager
    def write_until_full(self: LocalStorage, path: str) -> Iterator[BinaryIO]:
        with original_write(self, path) as file:
            remaining_writes[0] -= 1
            if remaining_writes[0] < 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            yield file

    return write_until_full
