"""Machine-wide rate limiter for a server.

The state is in lock files in the temporary folder, so that independent worker processes and jobs share one
budget of connections and requests.  The system releases the lock of a process that dies.  On several
machines, the width of the download step keeps the limit (pipelines/transforms/document_shards.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import random
import re
import struct
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from bioshards.corpus.storage.retry import MAX_RETRY_AFTER_SECONDS

_POLL_SECONDS: Final = 0.05
_MAX_QUEUE_SECONDS: Final = 60.0
"""Longest time ahead of a scheduled request: only processes that hold a slot schedule one."""
_TIMES_STRUCT: Final = struct.Struct("<dd")


@dataclass(frozen=True, slots=True)
class RateLimiter:
    """Limit of connections and of requests per second to a server.

    Attributes:
        server_name: identifies the server; limiters of the same name share their state.
        max_connections: concurrent connections.
        requests_per_second: requests in any second, evenly spaced.
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
    def acquire_slot(self) -> Iterator[None]:
        """Hold one of the connection slots; wait until one is free."""
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
                    time.sleep(_POLL_SECONDS * random.uniform(0.5, 1.5))
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
                    times[:] = [send_at + 1 / self.requests_per_second, paused_until]
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


def _get_lock_folder() -> str:
    """Return the folder of the lock files, in the temporary folder.

    Raises:
        PermissionError: it belongs to another user.
    """
    folder = os.path.join(tempfile.gettempdir(), f"bioshards-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to another user, so the count of open connections cannot be kept there; "
            "set TMPDIR to a folder of your own"
        )
    return folder
