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
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from bioshards.corpus.errors import OutputMismatchError, RunError, TransientStorageError
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import repeat, translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore

if TYPE_CHECKING:
    from obstore import PutMode


class _Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who holds a lock: the content of its object.

    Attributes:
        since: UTC time at which it was taken.
        token: differs in every run.
    """

    host: str = "an unknown host"
    pid: int = 0
    since: str = "an unknown time"
    token: str = ""

    def __str__(self) -> str:
        return f"process {self.pid} of {self.host}, since {self.since}"


_HOLDER_DECODER: Final = msgspec.json.Decoder(_Holder)


@dataclass(frozen=True, slots=True)
class StoreLock:
    """The lock of this run on a folder; workers get it with their copy of the storage.

    Attributes:
        path: URL of the lock's object.
        folder: what it locks, for messages.
    """

    path: str
    folder: str
    token: str = field(default_factory=lambda: uuid.uuid4().hex)

    def take(self, store: ObjectStore, is_forced: bool) -> None:
        """Create the lock, or see that an attempt of this run has created it whose answer was lost.

        Args:
            is_forced: take over the lock of another run.

        Raises:
            OutputMismatchError: another run holds it.
            TransientStorageError: the store fails, or another run has released it in this moment.
        """
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        body = _Holder(host=socket.gethostname(), pid=os.getpid(), since=now, token=self.token)
        mode: PutMode = "overwrite" if is_forced else "create"
        with translate_errors(self.path), contextlib.suppress(AlreadyExistsError, PreconditionError):
            obstore.put(store, split_path(self.path)[1], msgspec.json.encode(body), mode=mode)
            return
        holder = self._read_holder(store)
        if holder is None:
            raise TransientStorageError(f"the lock on {self.folder} was released while it was read")
        if holder.token != self.token:
            raise OutputMismatchError(
                f"another run is writing {self.folder}: {holder}. Wait for it or stop it; if it has ended "
                "without releasing its lock, as when it was killed, run the same command with --force"
            )

    def check(self, store: ObjectStore) -> None:
        """Check that this run still holds the lock.

        Raises:
            RunError: it is gone, or another run has taken it over.
            TransientStorageError: the store fails.
        """
        holder = self._read_holder(store)
        if holder is None:
            raise RunError(
                f"nothing is published, as the lock of this run on {self.folder} is gone: {self.path} was "
                "removed while it ran. Completed work is kept; see that no other run writes there, and run "
                "the command again"
            )
        if holder.token != self.token:
            raise RunError(
                f"nothing is published, as another run has taken over the lock on {self.folder}: {holder}. "
                "Completed work is kept; when that run has ended, run the same command again"
            )

    def release(self, store: ObjectStore) -> None:
        """Remove the lock, unless another run has taken it over.

        Raises:
            OSError: the store fails.
        """
        holder = self._read_holder(store)
        if holder and holder.token == self.token:
            with translate_errors(self.path):
                repeat(lambda: obstore.delete(store, split_path(self.path)[1]))

    def _read_holder(self, store: ObjectStore) -> _Holder | None:
        try:
            with translate_errors(self.path):
                body = bytes(obstore.get(store, split_path(self.path)[1]).bytes())
        except FileNotFoundError:
            return None
        try:
            return _HOLDER_DECODER.decode(body)
        except msgspec.MsgspecError:  # written by something else
            return _Holder()
