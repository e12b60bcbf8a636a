"""Ask for the next few files while one is looked at.

Of a call to an object store some 20 to 50 milliseconds are waiting.  Whoever goes through thousands of small
files one after the other does little else, so there a few of them are asked for at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from .files import LocalFiles

Item = TypeVar("Item")
Result = TypeVar("Result")

WIDTH: Final = 16
"""Calls under way at a time, and results that wait at most: what a store answers without a thought."""


def ahead(files: LocalFiles, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of ``work`` on files, in the order of the items, some :data:`WIDTH` of them made ahead.

    Raises:
        Exception: what ``work`` has raised, when it is that item's turn; no other item is begun then.
    """
    if not files.far:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(WIDTH, "ahead") as threads:
        try:
            for item in items:
                waiting.append(threads.submit(work, item))
                if len(waiting) == WIDTH:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def for_each(files: LocalFiles, work: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Do ``work`` on files for every item, some :data:`WIDTH` at a time."""
    for _ in ahead(files, work, items):
        pass
