"""Machine-wide rate limiter for a server.

The state is in lock files in a folder of the user, so that independent worker processes and jobs share one
budget of connections and requests.  It is the runtime folder of the login (``XDG_RUNTIME_DIR``), or else the
cache folder in the home; schedulers give every job another ``TMPDIR``, so that the temporary folder serves
only where these cannot be written.  The system releases the lock of a process that dies.  On several
machines, the width of the download step keeps the limit (pipelines/transforms/document_shards.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import re
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, NamedTuple

from bioshards.corpus.storage.retry import MAX_RETRY_AFTER_SECONDS

_POLL_SECONDS: Final = 0.05
_MAX_QUEUE_SECONDS: Final = 60.0
"""Longest time ahead of a scheduled request: only processes that hold a slot schedule one."""
_TIMES_STRUCT: Final = struct.Struct("<dd")
_SPACING: Final = 1.15
"""Time between two requests, as a multiple of an even share of a second.  Requests take unequal times to
reach the server: with an even share, the ninth of eight a second arrives within a second of the first."""
_MIN_REPORTED_SECONDS: Final = 3.0
"""A wait for a slot that takes this long is reported."""
_NOTE_INTERVAL_SECONDS: Final = 10.0
"""A wait is noted this often at most."""


class NotedWait(NamedTuple):
    """Why a request waited, and the time at which this was noted."""

    time: float
    text: str


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
        with contextlib.ExitStack() as stack:
            while True:
                first_slot = random.randrange(self.max_connections)
                for offset in range(self.max_connections):
                    file = self._open_lock_file(str((first_slot + offset) % self.max_connections))
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        stack.enter_context(file)
                        break
                    file.close()
                else:
                    pause = _POLL_SECONDS * random.uniform(0.5, 1.5)
                    if report_wait and waited < _MIN_REPORTED_SECONDS <= waited + pause:
                        report_wait(
                            f"the connections to {self.server_name} ({self.max_connections}) are all in use "
                            "by other runs on this machine"
                        )
                    waited += pause
                    time.sleep(pause)
                    continue
                break
            yield

    def wait_for_turn(self) -> None:
        """Wait until the next request may be sent."""
        while True:
            with self._open_times() as times:
                now = time.time()
                next_request_at, paused_until = times
                if paused_until <= now:
                    send_at = max(now, next_request_at)
                    times[:] = [send_at + _SPACING / self.requests_per_second, paused_until]
            if paused_until > now:
                # The schedule above spaces the requests of all waiting processes.
                time.sleep(min(paused_until - now, 1.0))
                continue
            time.sleep(send_at - now)
            with self._open_times() as times:
                if times[1] <= time.time():
                    return

    def pause(self, seconds: float) -> None:
        """Pause all requests of this machine to the server; a longer pause stays in effect."""
        with self._open_times() as times:
            times[1] = max(times[1], time.time() + min(seconds, MAX_RETRY_AFTER_SECONDS))

    def note_wait(self, text: str) -> None:
        """Keep the reason why a request waits for the processes that show the progress.

        Of many requests that wait at the same time one is noted.
        """
        with self._open_lock_file("wait") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            noted = _parse_wait(file.read())
            now = time.time()
            if noted is None or not 0 <= now - noted.time < _NOTE_INTERVAL_SECONDS:
                file.seek(0)
                file.truncate()
                file.write(json.dumps([now, text]).encode())

    def read_wait(self) -> NotedWait | None:
        """Return the last reason why a request of this machine waited, if there is one."""
        with self._open_lock_file("wait") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            return _parse_wait(file.read())

    @contextlib.contextmanager
    def _open_times(self) -> Iterator[list[float]]:
        """Lock, read and write back [time of the next request, end of the pause]."""
        with self._open_lock_file("pace") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            data = file.read(_TIMES_STRUCT.size)
            stored = _TIMES_STRUCT.unpack(data) if len(data) == _TIMES_STRUCT.size else (0.0, 0.0)
            # A time further ahead means that the clock was set back or the file is damaged.
            limits = (
                time.time() + _MAX_QUEUE_SECONDS,
                time.time() + MAX_RETRY_AFTER_SECONDS + _MAX_QUEUE_SECONDS,
            )
            times = [value if value <= limit else 0.0 for value, limit in zip(stored, limits, strict=True)]
            yield times
            if tuple(times) != stored:
                file.seek(0)
                file.write(_TIMES_STRUCT.pack(*times))
                file.flush()

    def _open_lock_file(self, suffix: str) -> BinaryIO:
        name = f"{re.sub(r'[^A-Za-z0-9.-]+', '_', self.server_name)}.{suffix}"
        path = os.path.join(_get_lock_folder(), name)
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


def _parse_wait(data: bytes) -> NotedWait | None:
    try:
        noted_at, text = json.loads(data)
        return NotedWait(float(noted_at), str(text))
    except (TypeError, ValueError):  # empty, or damaged
        return None


def _get_lock_folder() -> str:
    """Return the folder of the lock files: the first of the candidates that can be written.

    Raises:
        PermissionError: the last candidate belongs to another user.
    """
    runtime_folder = os.environ.get("XDG_RUNTIME_DIR", "")
    cache_folder = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for parent in (runtime_folder, cache_folder):
        folder = os.path.join(parent, "bioshards")
        if os.path.isabs(parent) and (parent == cache_folder or os.path.isdir(parent)):
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
