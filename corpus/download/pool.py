"""Thread pool of connections to one server.

A thread releases its slot of the rate limiter every 30 seconds, so that threads of other processes get one.
They are daemon threads: the end of a process waits for those of concurrent.futures, and so for their retries.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from bioshards.corpus.download.http_client import Connection, Server

Item = TypeVar("Item")
Result = TypeVar("Result")

TURN_SECONDS: Final = 30.0
"""Time for which a thread keeps its connection."""
_BETWEEN_TURNS_SECONDS: Final = 0.2


@dataclass
class DownloadPool:
    """A pool of threads, each with its own connection."""

    server: Server
    threads: int

    def map_unordered(
        self, function: Callable[[Connection, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Yield (item, result) in order of completion.

        Raises:
            Exception: the first one raised by ``function``; pending items are discarded.
        """
        pending = deque(items)
        num_items = len(pending)
        results: queue.SimpleQueue[tuple[Item, Result] | Exception] = queue.SimpleQueue()

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
                            results.put((item, function(connection, item)))
                    time.sleep(_BETWEEN_TURNS_SECONDS if pending else 0)
            except Exception as error:  # raised by the consuming thread
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

    def map(self, function: Callable[[Connection, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Yield the results in the order of the items."""
        numbered_items = list(enumerate(items))
        early_results: dict[int, Result] = {}
        next_number = 0

        def call(connection: Connection, item: tuple[int, Item]) -> Result:
            return function(connection, item[1])

        for (number, _), result in self.map_unordered(call, numbered_items):
            early_results[number] = result
            while next_number in early_results:
                yield early_results.pop(next_number)
                next_number += 1
