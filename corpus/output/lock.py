"""Exclusive lock on an output directory.

On local disks it is a locked file, on object stores a lease: a JSON object that is renewed every 30 seconds
and expires after 120.  The lease is written without a compare-and-swap, so that two runs that start at the
same moment both get it, and it does not cover detached cluster jobs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.folder_lock import lock_folder
from bioshards.corpus.storage.storage_protocol import Storage

from .output_layout import OutputDir

LEASE_RENEWAL_SECONDS: Final = 30
"""Interval between renewals."""
LEASE_EXPIRY_SECONDS: Final = 120
"""Age at which a lease expires, by the clocks of the machines."""

RELEASE_TIMEOUT_SECONDS: Final = 5
"""Time that a run waits at its end for the store to delete the lease."""

_leased_outputs: set[str] = set()
"""Outputs on which this process holds a lease."""


@contextlib.contextmanager
def lock_output(storage: Storage, output_dir: OutputDir) -> Iterator[None]:
    """Hold the exclusive lock on an output directory.

    Raises:
        OutputMismatchError: another run holds it.
    """
    if "://" in output_dir.path:
        with _hold_lease(storage, output_dir):
            yield
        return
    os.makedirs(output_dir.work_folder, exist_ok=True)
    message = f"another run is writing {output_dir.path}; wait for it or stop it"
    with lock_folder(f"{output_dir.work_folder}/lock", message):
        yield


@contextlib.contextmanager
def _hold_lease(storage: Storage, output_dir: OutputDir) -> Iterator[None]:
    """Hold a lease in the work folder and renew it in a thread."""
    _check_not_running(storage, output_dir)
    stopped = threading.Event()

    def renew() -> None:
        lease = {"host": socket.gethostname(), "pid": os.getpid(), "renewed_at": int(time.time())}
        storage.write_json(output_dir.lock_path, lease)

    def renew_until_stopped() -> None:
        while not stopped.wait(LEASE_RENEWAL_SECONDS):
            with contextlib.suppress(OSError):  # a transient error of the store: the next renewal repeats it
                renew()
        with contextlib.suppress(OSError):
            storage.remove(output_dir.lock_path)

    renew()
    _leased_outputs.add(output_dir.path)
    renewal_thread = threading.Thread(target=renew_until_stopped, name="lock", daemon=True)
    renewal_thread.start()
    try:
        yield
    finally:
        _leased_outputs.discard(output_dir.path)
        stopped.set()
        renewal_thread.join(RELEASE_TIMEOUT_SECONDS)


def _check_not_running(storage: Storage, output_dir: OutputDir) -> None:
    """Check that no other run holds a lease.

    A lease of a process of this machine that has ended is ignored.

    Raises:
        OutputMismatchError: another run holds one.
    """
    try:
        lease = storage.read_json(output_dir.lock_path)
    except FileNotFoundError:
        return
    age = int(time.time()) - lease["renewed_at"]
    if abs(age) >= LEASE_EXPIRY_SECONDS or _is_stale(lease, output_dir.path):
        return
    raise OutputMismatchError(
        f"another run is writing {output_dir.path}: process {lease['pid']} of {lease['host']} renewed it "
        f"{max(0, age)} seconds ago. Wait for it or stop it; if it was killed, rerun the command in "
        f"{LEASE_EXPIRY_SECONDS - max(0, age)} seconds"
    )


def _is_stale(lease: dict[str, Any], output: str) -> bool:
    """Return True if the lease is of a process of this machine that has ended."""
    if lease["host"] != socket.gethostname():
        return False
    if lease["pid"] == os.getpid():  # an earlier run of this process, or of another one with its pid
        return output not in _leased_outputs
    try:
        os.kill(lease["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # a process of another user
        pass
    return False
