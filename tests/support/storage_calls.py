"""Count a run's storage calls by step: on an object store each call takes 20 to 50 milliseconds.

with count_storage_calls() as calls:
    cli.main(["run", "pubmed_to_shards", ..., "--workers", "1"])
calls.sequential("publish")  # calls that wait for each other
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import steps
from bioshards.pipelines.execution import executor

COUNTED_METHODS: Final = ("open", "write", "exists", "remove", "list_names", "glob", "walk", "is_folder")


class StorageCalls:
    """Counts of calls by step, method, and whether they run concurrently (corpus/storage/parallel.py)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, bool]] = Counter()
        self._step = "driver"
        self._lock = threading.Lock()

    def _count(self, step: str, concurrent: bool) -> int:
        return sum(n for (of, _, at_once), n in self.counts.items() if (of, at_once) == (step, concurrent))

    @property
    def steps(self) -> list[str]:
        """The steps with calls."""
        return sorted({step for step, _, _ in self.counts})

    def sequential(self, step: str) -> int:
        """Return the number of a step's calls that each wait for the previous one."""
        return self._count(step, False)

    def concurrent(self, step: str) -> int:
        """Return the number of a step's concurrent calls."""
        return self._count(step, True)

    def record(self, method: str) -> None:
        thread = threading.current_thread()
        step = "driver" if thread is threading.main_thread() else self._step
        with self._lock:
            self.counts[step, method, thread.name.startswith("prefetch")] += 1

    def attribute_to_steps(self, run_step: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap the function by which steps are run; all other calls count for the driver."""

        @functools.wraps(run_step)
        def wrapped(step: str, *arguments: Any) -> Any:
            previous_step, self._step = self._step, step
            try:
                return run_step(step, *arguments)
            finally:
                self._step = previous_step

        return wrapped


@contextlib.contextmanager
def count_storage_calls() -> Iterator[StorageCalls]:
    """Count all calls of the local storage as if it were remote; runs must have one worker."""
    calls = StorageCalls()

    def count_calls(method: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*arguments: Any, **kwargs: Any) -> Any:
            calls.record(method)
            return function(*arguments, **kwargs)

        return wrapped

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(LocalStorage, "is_remote", True))
        # Poll progress once, at the end, so that its calls count for the driver and for no step.
        stack.enter_context(mock.patch.object(executor, "POLL_SECONDS", 3600))
        for method in COUNTED_METHODS:
            wrapper = count_calls(method, getattr(LocalStorage, method))
            stack.enter_context(mock.patch.object(LocalStorage, method, wrapper))
        stack.enter_context(mock.patch.object(steps, "run_step", calls.attribute_to_steps(steps.run_step)))
        yield calls
