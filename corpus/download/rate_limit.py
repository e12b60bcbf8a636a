"""Machine-wide rate limiter for a server.

The state is in a folder of the user, so that independent worker processes and jobs share one budget: a
locked file for each connection, and one with two times for the requests.  It is the runtime folder of the
login (``XDG_RUNTIME_DIR``), or else the cache folder in the home; schedulers give every job another
``TMPDIR``, so that the temporary folder serves only where these cannot be written.  The system releases the
lock of a process that dies.  On several machines, the width of the download step keeps the limit
(pipelines/steps.py).
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

from bioshards.corpus.storage.locks import open_locked
from bioshards.corpus.storage.retry import MAX_RETRY_AFTER_SECONDS

_POLL_SECONDS: Final = 0.05
"""Pause between two looks for a free slot."""
_MAX_QUEUE_SECONDS: Final = 60.0
"""Longest time ahead of a scheduled request: only processes that hold a slot schedule one."""
_SPACING: Final = 1.15
"""Time between two requests, as a multiple of an even share of a second.  Requests take unequal times to
reach the server: with an even share, the ninth of eight a second arrives within a second of the first."""
_MIN_REPORTED_SECONDS: Final = 3.0
"""A wait for a slot that takes this long is reported."""
_STATE: Final = struct.Struct("<dd")


_LOCAL_HOSTS: Final = ("localhost", "127.0.0.1", "::1")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


def name_server(url: str) -> str:
    """Return the name of a URL's server, one for all spellings of it: they share one budget."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
    return f"{'localhost' if host in _LOCAL_HOSTS else host}:{port}"


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """Limit of connections and of requests per second to a server.

    Attributes:
        server_name: identifies the server; limiters of the same name share their state.
        max_connections: concurrent connections.
        requests_per_second: most requests in any second; they are evenly spaced.
    """

    server_name: str
    max_connections: int
    requests_per_second: float

    def divide(self, machines: int) -> RateLimiter:
        """Return the share of one of several machines."""
        return replace(
            self,
            max_connections=max(1, self.max_connections // machines),
            requests_per_second=self.requests_per_second / machines,
        )

    @contextlib.contextmanager
    def acquire_slot(self, report_wait: Callable[[str], None] | None = None) -> Iterator[None]:
        """Hold one of the connection slots; wait until one is free.

        Args:
            report_wait: tells the user why it takes so long.
        """
        waited = 0.0
        while (slot := self._acquire_free_slot()) is None:
            pause = _POLL_SECONDS * random.uniform(0.5, 1.5)
            if report_wait and waited < _MIN_REPORTED_SECONDS <= waited + pause:
                report_wait(
                    f"the connections to {self.server_name} ({self.max_connections}) are all in use "
                    "by other runs on this machine"
                )
            waited += pause
            time.sleep(pause)
        with slot:
            yield

    def _acquire_free_slot(self) -> contextlib.AbstractContextManager[object] | None:
        for number in random.sample(range(self.max_connections), self.max_connections):
            slot = contextlib.ExitStack()
            with contextlib.suppress(BlockingIOError):
                slot.enter_context(open_locked(self._locate(str(number)), waits=False))
                return slot
        return None

    def wait_for_turn(self) -> None:
        """Wait until the next request may be sent."""
        is_scheduled = False
        while True:
            with self._open_state() as state:
                now = time.time()
                if state.paused_until > now:
                    # The schedule below spaces the requests of all waiting processes.
                    is_scheduled, seconds = False, min(state.paused_until - now, 1.0)
                elif is_scheduled:
                    return
                else:
                    is_scheduled, seconds = True, max(0.0, state.next_request_at - now)
                    state.next_request_at = now + seconds + _SPACING / self.requests_per_second
            if not seconds:
                return
            time.sleep(seconds)

    def pause(self, seconds: float) -> None:
        """Pause all requests of this machine to the server; a longer pause stays in effect."""
        with self._open_state() as state:
            paused_until = time.time() + min(seconds, MAX_RETRY_AFTER_SECONDS)
            state.paused_until = max(state.paused_until, paused_until)

    @contextlib.contextmanager
    def _open_state(self) -> Iterator[_State]:
        """Lock and read the shared state, and write it back if it changes."""
        with open_locked(self._locate("times")) as file:
            data = file.read(_STATE.size)
            state = _State(*_STATE.unpack(data)) if len(data) == _STATE.size else _State()
            # A time further ahead means that the clock was set back or the file is damaged.
            max_queued = time.time() + _MAX_QUEUE_SECONDS
            if not state.next_request_at <= max_queued:
                state.next_request_at = 0.0
            if not state.paused_until <= max_queued + MAX_RETRY_AFTER_SECONDS:
                state.paused_until = 0.0
            yield state
            new_data = _STATE.pack(state.next_request_at, state.paused_until)
            if new_data != data:
                file.seek(0)
                file.write(new_data)  # in one write, so that a killed process leaves no half of it

    def _locate(self, suffix: str) -> str:
        name = re.sub(r"[^A-Za-z0-9.-]+", "_", self.server_name)
        return os.path.join(_get_lock_folder(), f"{name}.{suffix}")


@dataclass
class _State:
    """What the processes share: the times of the next request and of the end of a pause."""

    next_request_at: float = 0.0
    paused_until: float = 0.0


def _get_lock_folder() -> str:
    """Return the folder of the lock files: the first of the candidates that can be written.

    Raises:
        PermissionError: the last candidate belongs to another user.
    """
    runtime_folder = os.environ.get("XDG_RUNTIME_DIR", "")
    cache_folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for parent in (runtime_folder if os.path.isdir(runtime_folder) else "", cache_folder):
        if os.path.isabs(parent):
            folder = os.path.join(parent, "bioshards")
            with contextlib.suppress(OSError):  # no home, or one that only can be read
                os.makedirs(folder, mode=0o700, exist_ok=True)
                if _is_own(folder):
                    return folder
    folder = os.path.join(tempfile.gettempdir(), f"bioshards-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if not _is_own(folder):
        raise PermissionError(
            f"{folder} belongs to another user, so the count of open connections cannot be kept there; "
            "set XDG_CACHE_HOME to a folder of your own"
        )
    return folder


def _is_own(folder: str) -> bool:
    """Return True if the folder is this user's, no link of another one's, and can be written."""
    return os.lstat(folder).st_uid == os.getuid() and os.access(folder, os.W_OK | os.X_OK)
