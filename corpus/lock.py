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

from .errors import OutputMismatchError
from .files import LocalFiles
from .workspace import Workspace

RENEWED_SECONDS: Final = 30
FRESH_SECONDS: Final = 120
"""How old a note may be and still speak of a run that goes on, as far as the machines' clocks agree."""

LEAVING_SECONDS: Final = 5
"""How long a run that ends waits for a store that may be silent to take its note away."""

_held: set[str] = set()
"""The outputs on stores that this process is writing now."""


@contextlib.contextmanager
def locked(files: LocalFiles, work: Workspace) -> Iterator[None]:
    """Inside, this run alone writes the output.

    Raises:
        OutputMismatchError: another run is writing it.
    """
    if "://" in work.output:
        with _noted(files, work):
            yield
        return
    os.makedirs(work.folder, exist_ok=True)
    with open(f"{work.folder}/lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise OutputMismatchError(
                f"another run is writing {work.output}; wait for it or stop it"
            ) from error
        yield


@contextlib.contextmanager
def _noted(files: LocalFiles, work: Workspace) -> Iterator[None]:
    """Inside, a note in the work folder says that this run goes on."""
    _nobody_else(files, work)
    ended = threading.Event()

    def renew() -> None:
        note = {"host": socket.gethostname(), "process": os.getpid(), "renewed": int(time.time())}
        files.write_json(work.running, note)

    def go_on() -> None:
        while not ended.wait(RENEWED_SECONDS):
            with contextlib.suppress(OSError):  # of a store that fails for a moment
                renew()
        with contextlib.suppress(OSError):
            files.remove(work.running)

    renew()
    _held.add(work.output)
    renewing = threading.Thread(target=go_on, name="lock", daemon=True)
    renewing.start()
    try:
        yield
    finally:
        _held.discard(work.output)
        ended.set()
        renewing.join(LEAVING_SECONDS)


def _nobody_else(files: LocalFiles, work: Workspace) -> None:
    """See that no fresh note is there but that of a process of this machine that has ended.

    Raises:
        OutputMismatchError: there is one.
    """
    try:
        note = files.read_json(work.running)
    except FileNotFoundError:
        return
    age = int(time.time()) - note["renewed"]
    if abs(age) >= FRESH_SECONDS or _ended(note, work.output):
        return
    raise OutputMismatchError(
        f"another run is writing {work.output}: process {note['process']} of {note['host']} said so "
        f"{max(0, age)} seconds ago. Wait for it or stop it; if it was killed, run again in "
        f"{FRESH_SECONDS - max(0, age)} seconds"
    )


def _ended(note: dict[str, Any], output: str) -> bool:
    """Was it a run of this machine, which is there no more?"""
    if note["host"] != socket.gethostname():
        return False
    if note["process"] == os.getpid():  # an earlier run of ours, or of the process that had our number
        return output not in _held
    try:
        os.kill(note["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # somebody else's
        pass
    return False
