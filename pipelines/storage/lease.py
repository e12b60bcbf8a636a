"""A lease: the lock of an output directory on an object store.

It is a small object with a token, which a conditional put creates if there is none, and replaces only in the
version that was read.  So of two runs that start at the same moment one gets it.  It is renewed every 30
seconds and expires after 120.  It does not cover detached cluster jobs.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, cast

import obstore
from obstore.exceptions import AlreadyExistsError, PreconditionError

from bioshards.corpus.errors import OutputMismatchError, TransientStorageError
from bioshards.corpus.storage.retry import retry
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.store_errors import translate_errors
from bioshards.pipelines.storage.store_options import ObjectStore

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode, PutResult

LEASE_RENEWAL_SECONDS: Final = 30
"""Interval between renewals."""
LEASE_EXPIRY_SECONDS: Final = 120
"""Age at which a lease expires, by the clocks of the machines."""
RELEASE_TIMEOUT_SECONDS: Final = 5
"""Time that a run waits at its end for the store to delete the lease."""

_MAX_CONFLICTS: Final = 5
"""Conditional puts that may fail one after the other."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds an output directory.

    Attributes:
        renewed_at: seconds since 1970.
        token: differs in every run.
    """

    host: str
    pid: int
    renewed_at: int
    token: str = ""

    def is_held(self) -> bool:
        """Return True unless the lease has expired, or is of a process of this machine that has ended."""
        if abs(int(time.time()) - self.renewed_at) >= LEASE_EXPIRY_SECONDS:
            return False
        if self.host != socket.gethostname():
            return True
        if self.pid == os.getpid():  # of this process, or of an earlier one with its pid
            return any(thread.name == _thread_name(self.token) for thread in threading.enumerate())
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # a process of another user
            pass
        return True


def _thread_name(token: str) -> str:
    """Return the name of the thread that renews a lease: a live one means that this process holds it."""
    return f"lease {token}"


class _LeaseObject:
    """The object of a lease, and the version of it that this run may replace."""

    def __init__(self, store: ObjectStore, path: str, folder: str) -> None:
        self._store, self._path, self._folder = store, path, folder
        self._name = split_path(path)[1]
        self._mode: PutMode = "create"
        self.token = uuid.uuid4().hex

    def write(self) -> None:
        """Create the lease, or renew it.

        Raises:
            OutputMismatchError: another run holds it.
            TransientStorageError: the store fails.
        """
        with translate_errors(self._path):
            for _ in range(_MAX_CONFLICTS):
                lease = Lease(socket.gethostname(), os.getpid(), int(time.time()), self.token)
                body = json.dumps(asdict(lease)).encode()
                with contextlib.suppress(AlreadyExistsError, PreconditionError):
                    self._mode = _replace(obstore.put(self._store, self._name, body, mode=self._mode))
                    return
                try:  # it was written by another run, or by this one, which has lost the answer
                    written, self._mode = self._read()
                except FileNotFoundError:  # released meanwhile
                    self._mode = "create"
                    continue
                if written.token != self.token and written.is_held():
                    age = max(0, int(time.time()) - written.renewed_at)
                    raise OutputMismatchError(
                        f"another run is writing {self._folder}: process {written.pid} of {written.host} "
                        f"renewed it {age} seconds ago. Wait for it or stop it; if it was killed, rerun the "
                        f"command in {LEASE_EXPIRY_SECONDS - age} seconds"
                    )
        raise TransientStorageError(f"the store failed at {self._path}: other runs write it again and again")

    def remove(self) -> None:
        """Remove the lease, unless another run has taken it over since it expired."""
        with translate_errors(self._path):
            if self._read()[0].token == self.token:
                obstore.delete(self._store, self._name)

    def _read(self) -> tuple[Lease, PutMode]:
        """Return the lease, and the mode of a put that replaces what was read."""
        result = obstore.get(self._store, self._name)
        return Lease(**json.loads(bytes(result.bytes()))), _replace(result.meta)


def _replace(written: PutResult | ObjectMeta) -> PutMode:
    """Return the mode of a put that replaces this version and no other."""
    return cast("PutMode", {key: written[key] for key in ("e_tag", "version") if written[key]})


@contextlib.contextmanager
def hold_lease(store: ObjectStore, path: str, folder: str) -> Iterator[None]:
    """Hold a lease and renew it in a thread.

    Args:
        path: URL of its object.
        folder: what it locks, for messages.

    Raises:
        OutputMismatchError: another run holds it, or has taken it over while this one could not renew it.
        TransientStorageError: the store fails.
    """
    lease = _LeaseObject(store, path, folder)
    stopped = threading.Event()
    lost: list[OutputMismatchError] = []

    def renew_until_stopped() -> None:
        while not lost and not stopped.wait(LEASE_RENEWAL_SECONDS):
            try:
                lease.write()
            except OutputMismatchError as error:
                lost.append(error)
            except OSError:  # the next renewal repeats it
                pass
        with contextlib.suppress(OSError):
            lease.remove()

    thread = threading.Thread(target=renew_until_stopped, name=_thread_name(lease.token), daemon=True)
    thread.start()  # before the lease can be seen, as it says that this process holds it
    try:
        retry(lease.write)
        yield
    finally:
        stopped.set()
        thread.join(RELEASE_TIMEOUT_SECONDS)
    if lost:
        raise lost[0]
