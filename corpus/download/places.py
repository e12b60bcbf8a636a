"""How often a server may be asked, by all processes of this machine together.

Workers are processes that know nothing of each other, and a second job may run beside the first; what
they share is the machine, so the count is kept in lock files in its temporary folder: the system
drops the lock of a process that dies.  Runners on several machines are held to the same limits by the
width of the step that downloads (pipelines/transforms.py).
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

LONGEST_PAUSE: Final = 3600.0
"""Seconds: no pause that a server asks for is taken for longer."""

_POLL_SECONDS: Final = 0.05
_LONGEST_QUEUE: Final = 60.0
"""Seconds: nobody plans a request further ahead, as only those few who hold a place plan one."""
_TIMES: Final = struct.Struct("<dd")


@dataclass(frozen=True, slots=True)
class Places:
    """The few places that a server has for us, and the pace at which it may be asked.

    Attributes:
        server: names the server, for whom the places are counted.
        connections: open at the same time at most.
        per_second: requests in any second at most, evenly spaced.
    """

    server: str
    connections: int
    per_second: float

    def share(self, parts: int) -> Places:
        """One part of the places, for each of several machines that cannot see each other."""
        return replace(
            self, connections=max(1, self.connections // parts), per_second=self.per_second / parts
        )

    @contextlib.contextmanager
    def take(self) -> Iterator[None]:
        """Hold one of the places; waits until one is free."""
        with contextlib.ExitStack() as held:
            while True:
                first = random.randrange(self.connections)
                for number in range(self.connections):
                    file = self._open(str((first + number) % self.connections))
                    with contextlib.suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        held.enter_context(file)
                        break
                    file.close()
                else:
                    time.sleep(_POLL_SECONDS * random.uniform(0.5, 1.5))
                    continue
                break
            yield

    def wait(self) -> None:
        """Wait for the moment at which the next request may be sent."""
        while True:
            with self._times() as times:
                now = time.time()
                begins, pause_ends = times
                if pause_ends <= now:
                    mine = max(now, begins)
                    times[:] = [mine + 1 / self.per_second, pause_ends]
            if pause_ends > now:
                # Those who waited do not all come at once: the pace above spaces them.
                time.sleep(min(pause_ends - now, 1.0))
                continue
            time.sleep(mine - now)
            with self._times() as times:
                if times[1] <= time.time():
                    return

    def pause(self, seconds: float) -> None:
        """Let nobody on this machine ask the server for so long; a longer pause stays."""
        with self._times() as times:
            times[1] = max(times[1], time.time() + min(seconds, LONGEST_PAUSE))

    @contextlib.contextmanager
    def _times(self) -> Iterator[list[float]]:
        """[when the next request may be sent, when the pause ends], to read and to change."""
        with self._open("pace") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            data = file.read(_TIMES.size)
            before = _TIMES.unpack(data) if len(data) == _TIMES.size else (0.0, 0.0)
            # A time further ahead is no plan of ours: the clock has been set back, or the file is damaged.
            furthest = time.time() + _LONGEST_QUEUE, time.time() + LONGEST_PAUSE + _LONGEST_QUEUE
            times = [at if at <= limit else 0.0 for at, limit in zip(before, furthest, strict=True)]
            yield times
            if tuple(times) != before:
                file.seek(0)
                file.write(_TIMES.pack(*times))
                file.flush()

    def _open(self, what: str) -> BinaryIO:
        name = f"{re.sub(r'[^A-Za-z0-9.-]+', '_', self.server)}.{what}"
        path = os.path.join(_folder(), name)
        return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b", buffering=0)


def _folder() -> str:
    """Our own folder in the temporary one.

    Raises:
        PermissionError: somebody else has made it.
    """
    folder = os.path.join(tempfile.gettempdir(), f"bioshards-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if os.lstat(folder).st_uid != os.getuid():
        raise PermissionError(
            f"{folder} belongs to another user, so the count of open connections cannot be kept there; "
            "set TMPDIR to a folder of your own"
        )
    return folder
