"""Counts what a run asks of its files, by step: on an object store each call takes 20 to 50 milliseconds.

with counted() as calls:
    cli.main(["run", "pubmed_to_shards", ..., "--workers", "1"])
calls.serial("publish")  # calls that wait for each other
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final
from unittest import mock

from bioshards.corpus import finishing, publishing, staging
from bioshards.corpus.files import LocalStorage
from bioshards.pipelines import executing
from bioshards.vocab import counting
from bioshards.vocab.examples import making
from bioshards.vocab.examples import publishing as of_examples

METHODS: Final = ("open", "write", "exists", "remove", "names", "find", "walk", "is_folder")
STEPS: Final = (
    (staging, "stage"),
    (finishing, "decide"),
    (finishing, "decide_duplicates"),
    (finishing, "finish"),
    (publishing, "publish"),
    (counting, "count"),
    (counting, "merge"),
    (counting, "publish"),
    (making, "make"),
    (of_examples, "merge"),
    (of_examples, "publish"),
)
"""What does a step's work, one call an item; everything else is the driver's."""


class Calls:
    """Calls by step, method and whether they are some of many under way at a time (corpus/ahead.py)."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str, bool]] = Counter()
        self._step = "driver"
        self._lock = threading.Lock()

    def _of(self, step: str, at_a_time: bool) -> int:
        return sum(n for (of, _, ahead), n in self.counts.items() if (of, ahead) == (step, at_a_time))

    @property
    def steps(self) -> list[str]:
        """The steps that have asked for anything."""
        return sorted({step for step, _, _ in self.counts})

    def serial(self, step: str) -> int:
        """Calls of a step of which each waits for the one before it."""
        return self._of(step, False)

    def ahead(self, step: str) -> int:
        """Calls of a step of which several are under way."""
        return self._of(step, True)

    def note(self, method: str) -> None:
        thread = threading.current_thread()
        step = "driver" if thread is threading.main_thread() else self._step
        with self._lock:
            self.counts[step, method, thread.name.startswith("ahead")] += 1

    def during(self, step: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(work)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            before, self._step = self._step, step
            try:
                return work(*arguments, **named)
            finally:
                self._step = before

        return wrapped


@contextlib.contextmanager
def counted() -> Iterator[Calls]:
    """Count all calls on this machine's files, as if they were far away; a run is to have one worker."""
    calls = Calls()

    def noting(method: str, work: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(work)
        def wrapped(*arguments: Any, **named: Any) -> Any:
            calls.note(method)
            return work(*arguments, **named)

        return wrapped

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(LocalStorage, "far", True))
        # Progress is looked for once, at the end: what it asks for is the driver's then, and no step's.
        stack.enter_context(mock.patch.object(executing, "TICK_SECONDS", 3600))
        for method in METHODS:
            work = noting(method, getattr(LocalStorage, method))
            stack.enter_context(mock.patch.object(LocalStorage, method, work))
        for module, name in STEPS:
            work = calls.during(name, getattr(module, name))
            stack.enter_context(mock.patch.object(module, name, work))
        yield calls
