"""One run at a time in an output: a lock of the system's on a disk, a note of who is at work on a store.

A store has no lock that ends with its holder.  So a run leaves a note there and renews it; who finds one that
is fresh does not begin.  It keeps people from starting a run twice, and is no more than that: two that begin
within the same moment both find none, and a job that goes on elsewhere when nobody waits for it has none.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.storage_protocol import Storage

from .output_layout import OutputDir

LEASE_RENEWAL_SECONDS: Final = 30
LEASE_EXPIRY_SECONDS: Final = 120
"""How old a note may be and still speak of a run that goes on, as far as the machines' clocks agree."""

RELEASE_TIMEOUT_SECONDS: Final = 5
"""How long a run that ends waits for a store that may be silent to take its note away."""

_leased_outputs: set[str] = set()
"""The outputs on stores that this process is writing now."""


@contextlib.contextmanager
def lock_output(storage: Storage, output_dir: OutputDir) -> Iterator[None]:
    """Inside, this run alone writes the output.

    Raises:
        OutputMismatchError: another run is writing it.
    """
    if "://" in output_dir.path:
        with _hold_lease(storage, output_dir):
            yield
        return
    os.makedirs(output_dir.work_folder, exist_ok=True)
    with open(f"{output_dir.work_folder}/lock", "w") as lock_file:
        try:
            fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputMismatchError(
                f"another run is writing {output_dir.path}; wait for it or stop it"
            ) from error
        yield


@contextlib.contextmanager
def _hold_lease(storage: Storage, output_dir: OutputDir) -> Iterator[None]:
    """Inside, a note in the work folder says that this run goes on."""
    _check_not_running(storage, output_dir)
    stopped = threading.Event()

    def renew() -> None:
        lease = {"host": socket.gethostname(), "pid": os.getpid(), "renewed_at": int(time.time())}
        storage.write_json(output_dir.lock_path, lease)

    def renew_until_stopped() -> None:
        while not stopped.wait(LEASE_RENEWAL_SECONDS):
            with contextlib.suppress(OSError):  # of a store that fails for a moment
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
    """See that no fresh note is there but that of a process of this machine that has ended.

    Raises:
        OutputMismatchError: there is one.
    """
    try:
        lease = storage.read_json(output_dir.lock_path)
    except FileNotFoundError:
        return
    age = int(time.time()) - lease["renewed_at"]
    if abs(age) >= LEASE_EXPIRY_SECONDS or _is_stale(lease, output_dir.path):
        return
    raise OutputMismatchError(
        f"another run is writing {output_dir.path}: process {lease['pid']} of {lease['host']} said so "
        f"{max(0, age)} seconds ago. Wait for it or stop it; if it was killed, run again in "
        f"{LEASE_EXPIRY_SECONDS - max(0, age)} seconds"
    )


def _is_stale(lease: dict[str, Any], output: str) -> bool:
    """Was it a run of this machine, which is there no more?"""
    if lease["host"] != socket.gethostname():
        return False
    if lease["pid"] == os.getpid():  # an earlier run of ours, or of the process that had our number
        return output not in _leased_outputs
    try:
        os.kill(lease["pid"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's
        pass
    return False
