"""Ask for the next few files while one is looked at.

Of a call to an object store some 20 to 50 milliseconds are waiting.  Whoever goes through thousands of small
files one after the other does little else, so there a few of them are asked for at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from .storage_protocol import Storage

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_CONCURRENT_CALLS: Final = 16
"""Calls under way at a time, and results that wait at most: what a store answers without a thought."""


def prefetch_map(
    storage: Storage, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """The results of ``function`` on files, in the order of the items, some :data:`WIDTH` of them made ahead.

    Raises:
        Exception: what ``function`` has raised, when it is that item's turn; no other item is begun then.
    """
    if not storage.is_remote:
        yield from map(function, items)
        return
    pending: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(MAX_CONCURRENT_CALLS, "prefetch") as executor:
        try:
            for item in items:
                pending.append(executor.submit(function, item))
                if len(pending) == MAX_CONCURRENT_CALLS:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def parallel_for_each(storage: Storage, function: Callable[[Item], object], items: Iterable[Item]) -> None:
    """Do ``function`` on files for every item, some :data:`WIDTH` at a time."""
    for _ in prefetch_map(storage, function, items):
        pass
