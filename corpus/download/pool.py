"""Thread pool of connections to one server.

A thread releases its slot of the rate limiter every 30 seconds, so that threads of other processes get one:
a run may have more workers than the server may have connections, and all of them process what they fetch.
They are daemon threads: the end of a process waits for those of concurrent.futures, and so for their retries.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    OutageError,
    RefusedError,
    Server,
    UnreachableError,
)
from bioshards.corpus.errors import RESUME
from bioshards.corpus.storage.retry import MAX_FAILED_OBJECTS

Item = TypeVar("Item")
Result = TypeVar("Result")

TURN_SECONDS: Final = 30.0
"""Time for which a thread keeps its connection."""
_BETWEEN_TURNS_SECONDS: Final = 0.2


@dataclass
class DownloadPool:
    """A pool of threads, each with its own connection.

    Attributes:
        max_failures: downloads that fail in a row before the server is taken to serve nothing.
    """

    server: Server
    threads: int
    max_failures: int = MAX_FAILED_OBJECTS
    _num_failures: int = field(default=0, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def map_unordered(
        self, function: Callable[[Connection, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result | DownloadError]]:
        """Yield each item with the result of ``function`` or its DownloadError, in order of completion.

        Raises:
            OutageError: the server serves nothing, or nothing to us.
            Exception: the first other one raised by ``function``; pending items are discarded.
        """
        pending = deque(items)
        num_items = len(pending)
        results: queue.SimpleQueue[tuple[Item, Result | DownloadError] | Exception] = queue.SimpleQueue()

        def process_items() -> None:
            try:
                while pending:
                    with self.server.connect() as connection:
                        deadline = time.monotonic() + TURN_SECONDS
                        while time.monotonic() < deadline:
                            try:
                                item = pending.popleft()
                            except IndexError:  # another thread has taken the last one
                                return
                            results.put((item, self._download(function, connection, item)))
                    time.sleep(_BETWEEN_TURNS_SECONDS if pending else 0)
            except Exception as error:  # raised by the consuming thread
                pending.clear()
                results.put(error)

        for _ in range(min(self.threads, num_items)):
            threading.Thread(target=process_items, name="download", daemon=True).start()
        try:
            for _ in range(num_items):
                outcome = results.get()
                if isinstance(outcome, Exception):
                    raise outcome
                yield outcome
        finally:
            pending.clear()

    def _download(
        self, function: Callable[[Connection, Item], Result], connection: Connection, item: Item
    ) -> Result | DownloadError:
        """Return the result of ``function`` or its DownloadError.

        Raises:
            OutageError: it is one of too many in a row that were refused or could not be reached.
        """
        outcome: Result | DownloadError
        try:
            outcome = function(connection, item)
        except OutageError:
            raise
        except DownloadError as error:
            outcome = error
        with self._lock:
            is_failure = isinstance(outcome, RefusedError | UnreachableError)
            self._num_failures = self._num_failures + 1 if is_failure else 0
            if self._num_failures < self.max_failures:
                return outcome
        outage = OutageError(f"{self._num_failures} downloads failed in a row; the last one: {outcome}")
        outage.hint = (
            f"The server is down or refuses this network: open {self.server.base_url} in a browser. "
            f"{RESUME}. If it refuses these files alone, select others"
        )
        raise outage
