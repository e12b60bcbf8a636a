"""Advisory locks (flock) on files and folders, which tell a living writer from a killed one.

The kernel keeps a lock as long as its process lives, in whatever container that is.  The file of a folder's
lock says who holds it, with a token that no other run has.  By the token a run finds out that it has lost its
lock: somebody removed the file, or the machines of a shared folder do not see each other's locks.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import BinaryIO, Final

import msgspec

from bioshards.corpus.errors import OutputMismatchError, RunError, quote

_TEMPORARY_FOLDER_LOCK: Final = ".lock"
_MIN_AGE_SECONDS: Final = 60
"""A younger temporary folder may not be locked yet."""
_MAX_HOLDER_BYTES: Final = 1 << 16
_NO_LOCKS_ERRORS: Final = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK)
"""Numbers of the errors of a disk without locks."""


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lock on a folder: the content of the lock's file or object.

    Attributes:
        since: UTC time at which it was taken.
        token: differs in every run.
    """

    host: str = "an unknown host"
    pid: int = 0
    since: str = "an unknown time"
    token: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} of {quote(self.host)}, since {quote(self.since)}"


_HOLDER_DECODER: Final = msgspec.json.Decoder(LockHolder)


@dataclass(frozen=True, slots=True)
class RunLock:
    """The lock of this run on a folder; workers get it with their copy of the storage.

    Attributes:
        path: of the lock's file or object.
        folder: what it locks, for messages.
    """

    path: str
    folder: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def encode_holder(self) -> bytes:
        """Return the content that says that this process holds the lock, from now on."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        return msgspec.json.encode(
            LockHolder(host=socket.gethostname(), pid=os.getpid(), since=now, token=self.token)
        )

    def read_holder(self, open_file: Callable[[str], BinaryIO]) -> LockHolder | None:
        """Return who holds the lock; None if nobody does."""
        try:
            with open_file(self.path) as file:
                return _HOLDER_DECODER.decode(file.read(_MAX_HOLDER_BYTES))
        except FileNotFoundError:
            return None
        except (msgspec.MsgspecError, ValueError, RecursionError):  # written by something else
            return LockHolder()

    def check(self, open_file: Callable[[str], BinaryIO]) -> None:
        """Check that this run still holds the lock.

        Raises:
            RunError: it is gone, or another run has taken it over.
            TransientStorageError: the store fails.
        """
        holder = self.read_holder(open_file)
        if holder is None:
            raise RunError(
                f"nothing more is written, as the lock of this run on {self.folder} is gone: {self.path} was "
                "removed while it ran. Completed work is kept; see that no other run writes there, and run "
                "the command again"
            )
        if holder.token != self.token:
            raise RunError(
                f"nothing more is written, as another run has taken over the lock on {self.folder}: "
                f"{holder}. Completed work is kept; when that run has ended, run the same command again"
            )


@contextlib.contextmanager
def open_locked(path: str, waits: bool = True) -> Iterator[BinaryIO]:
    """Open or create a file to read and write, locked, and wait while another process has it locked.

    filelock does not serve here: on a disk without locks it takes numbers of processes for one, which mean
    something else in another container; and it takes ten times as long.

    Raises:
        BlockingIOError: another process has it locked, and this does not wait.
    """
    while True:
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
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


@contextlib.contextmanager
def lock_folder(path: str, folder: str) -> Iterator[RunLock]:
    """Lock the file that stands for a folder, until the block ends.

    Raises:
        OutputMismatchError: another process has it locked, or its disk has no locks.
    """
    lock = RunLock(path, folder)
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open_locked(path, waits=False))
        except BlockingIOError as error:
            holder = lock.read_holder(lambda path: open(path, "rb")) or LockHolder()  # noqa: SIM115
            raise OutputMismatchError(
                f"another run is writing {folder}: {holder}. Wait for it or stop it"
            ) from error
        except OSError as error:
            if error.errno not in _NO_LOCKS_ERRORS:
                raise
            raise OutputMismatchError(
                f"{folder} is on a disk without file locks ({error.strerror}), so that two runs could write "
                "it at once: choose a folder on another disk, or mount it with locks (Lustre: -o flock)"
            ) from error
        file.truncate()
        file.write(lock.encode_holder())
        file.flush()
        try:
            yield lock
        finally:
            file.truncate(0)


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
