"""Do something with many files of a server at once, over a few connections.

A thread holds one of the server's places for half a minute and then lets others have a turn, because
more threads may want one than there are.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from .web import Connection, Server

Item = TypeVar("Item")
Result = TypeVar("Result")

TURN_SECONDS: Final = 30.0
_BETWEEN_TURNS_SECONDS: Final = 0.2


@dataclass
class Pool:
    """At most so many threads, each with a connection of its own."""

    server: Server
    threads: int

    def completed(
        self, work: Callable[[Connection, Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """(item, result) of each item, as they are done.

        Raises:
            Exception: what ``work`` raised first; nothing more is begun then.
        """
        crew = _Crew(self.server, work, deque(items))
        awaited = len(crew.waiting)
        for _ in range(min(self.threads, awaited)):
            threading.Thread(target=crew.run, name="download", daemon=True).start()
        try:
            for _ in range(awaited):
                done = crew.done.get()
                if isinstance(done, Exception):
                    raise done
                yield done
        finally:
            crew.waiting.clear()

    def map(self, work: Callable[[Connection, Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The results, in the order of the items."""
        numbered = list(enumerate(items))
        early: dict[int, Result] = {}
        following = 0

        def counted(connection: Connection, item: tuple[int, Item]) -> Result:
            return work(connection, item[1])

        for (number, _), result in self.completed(counted, numbered):
            early[number] = result
            while following in early:
                yield early.pop(following)
                following += 1


@dataclass
class _Crew(Generic[Item, Result]):
    """What the threads share: the items nobody has begun, and what is done."""

    server: Server
    work: Callable[[Connection, Item], Result]
    waiting: deque[Item]
    done: queue.SimpleQueue[tuple[Item, Result] | Exception] = field(default_factory=queue.SimpleQueue)

    def run(self) -> None:
        try:
            while self.waiting:
                with self.server.connect() as connection:
                    self._turn(connection)
                time.sleep(_BETWEEN_TURNS_SECONDS if self.waiting else 0)
        except Exception as error:  # handed to the thread that waits for results
            self.done.put(error)

    def _turn(self, connection: Connection) -> None:
        ends = time.monotonic() + TURN_SECONDS
        while time.monotonic() < ends:
            try:
                item = self.waiting.popleft()
            except IndexError:
                return
            self.done.put((item, self.work(connection, item)))
