"""Concurrent calls to an object store.

Each call has a latency of 20 to 50 ms, so that up to :data:`MAX_CONCURRENT_CALLS` run at a time.  On local
disks the calls run one after the other.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from bioshards.corpus.storage.storage_protocol import Storage

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_CONCURRENT_CALLS: Final = 16
"""Upper bound of concurrent calls, and of results that are waiting to be consumed."""


def prefetch_map(
    storage: Storage, function: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Result]:
    """Apply a function to items and yield the results in order, prefetching the next ones.

    Raises:
        Exception: raised by ``function``, when the result of its item is due; further items are cancelled.
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
    """Call a function for every item, concurrently on an object store."""
    for _ in prefetch_map(storage, function, items):
        pass
