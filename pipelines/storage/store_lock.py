"""The lock of an output directory on an object store.

It is a small object that says who writes the directory and since when. A conditional put creates it if there
is none, so that of any number of runs that start at the same moment one gets it. It has no end: the lock of
a run that was killed is taken over with ``--force``, and a run whose lock is gone publishes nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from bioshards.corpus.errors import OutputMismatchError, RunError, TransientStorageError
from bioshards.corpus.storage.retry import retry
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import repeat, translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore

if TYPE_CHECKING:
    from obstore import PutMode


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """Who writes an output directory: the content of ``lock.json``.

    Attributes:
        since: UTC time at which the lock was taken.
        token: differs in every run.
    """

    host: str = "an unknown host"
    pid: int = 0
    since: str = "an unknown time"
    token: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host}, since {self.since}"


def take_lock(store: ObjectStore, path: str, folder: str, is_forced: bool) -> str:
    """Take a lock and return its token.

    Args:
        path: URL of the lock's object.
        folder: what it locks, for the message.
        is_forced: take over the lock of another run.

    Raises:
        OutputMismatchError: another run holds it.
        TransientStorageError: the store fails, or other runs take and release it again and again.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    taken = LockHolder(host=socket.gethostname(), pid=os.getpid(), since=now, token=uuid.uuid4().hex)
    retry(lambda: _put_lock(store, path, folder, taken, is_forced))
    return taken.token


def _put_lock(store: ObjectStore, path: str, folder: str, taken: LockHolder, is_forced: bool) -> None:
    with translate_errors(path), contextlib.suppress(AlreadyExistsError, PreconditionError):
        mode: PutMode = "overwrite" if is_forced else "create"
        obstore.put(store, split_path(path)[1], msgspec.json.encode(taken), mode=mode)
        return
    holder = read_holder(store, path)
    if holder is None:
        raise TransientStorageError(f"the lock on {folder} was released while it was read")
    if holder.token != taken.token:  # else the answer to this run's first attempt was lost
        raise OutputMismatchError(
            f"another run is writing {folder}: {holder}. Wait for it or stop it; if it has ended without "
            "releasing its lock, as when it was killed, run the same command with --force"
        )


def release_lock(store: ObjectStore, path: str, token: str) -> None:
    """Remove a lock, unless another run has taken it over.

    Raises:
        OSError: the store fails.
    """
    holder = read_holder(store, path)
    if holder and holder.token == token:
        with translate_errors(path):
            repeat(lambda: obstore.delete(store, split_path(path)[1]))


def check_lock(store: ObjectStore, path: str, folder: str, token: str) -> None:
    """Check that this run still holds a lock.

    Raises:
        RunError: it is gone, or another run has taken it over.
        TransientStorageError: the store fails.
    """
    holder = read_holder(store, path)
    if holder is None:
        raise RunError(
            f"nothing is published, as the lock of this run on {folder} is gone: {path} was removed while "
            "it ran. Completed work is kept; see that no other run writes there, and run the command again"
        )
    if holder.token != token:
        raise RunError(
            f"nothing is published, as another run has taken over the lock on {folder}: {holder}. Completed "
            "work is kept; when that run has ended, run the same command again"
        )


def read_holder(store: ObjectStore, path: str) -> LockHolder | None:
    """Return who holds a lock; None if nobody does.

    Raises:
        OSError: the store fails.
    """
    try:
        with translate_errors(path):
            body = bytes(obstore.get(store, split_path(path)[1]).bytes())
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(body, type=LockHolder)
    except msgspec.MsgspecError:  # written by something else
        return LockHolder()
