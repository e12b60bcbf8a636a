"""Batches made in a thread while the model works on those before: they are functions of the step alone.

One thread is enough: numpy lets the others run while it copies, and a batch is made in a fraction of a step.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch

from .batch import Batch

T = TypeVar("T")


class Prefetch(Generic[T]):
    """What a function makes of one step after another, some steps ahead.

    A context manager, at whose end the thread ends.

    Args:
        make: from a step to what is made for it; called in the thread, in the order of steps.
        first: the first step.
        ahead: so many are made before they are asked for.

    Attributes:
        waited: seconds for which :meth:`get` had to wait so far.
    """

    def __init__(self, make: Callable[[int], T], first: int, ahead: int = 4) -> None:
        self.waited = 0.0
        self._make, self._first, self._ahead = make, first, ahead
        self._made: deque[T] = deque()
        self._failed: BaseException | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="prefetch", daemon=True)
        self._thread.start()

    def get(self) -> T:
        """What is made for the next step.

        Raises:
            RuntimeError: it is closed.
            BaseException: whatever the function raised for this step; and again, if asked again.
        """
        started = time.perf_counter()
        with self._changed:
            self._changed.wait_for(lambda: self._made or self._failed or self._closed)
            self.waited += time.perf_counter() - started
            if self._closed:
                raise RuntimeError("batches are asked for after their thread was ended")
            if self._made:
                self._changed.notify_all()
                return self._made.popleft()
            assert self._failed is not None
            raise self._failed

    def close(self) -> None:
        """End the thread, after the step that it is at; what it has made is dropped."""
        with self._changed:
            self._closed = True
            self._made.clear()
            self._changed.notify_all()
        self._thread.join()

    def _work(self) -> None:
        step = self._first
        try:
            while self._room():
                made = self._make(step)
                with self._changed:
                    self._made.append(made)
                    self._changed.notify_all()
                step += 1
        except BaseException as error:
            with self._changed:
                self._failed = error
                self._changed.notify_all()

    def _room(self) -> bool:
        """Wait until another one is wanted; false: none ever will be."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._made) < self._ahead)
            return not self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def pinned(batch: Batch) -> Batch:
    """The batch in page-locked memory, from which a GPU copies while it computes; as it is without CUDA."""
    if not torch.cuda.is_available():
        return batch
    return Batch._make(part.pin_memory() if isinstance(part, torch.Tensor) else part for part in batch)
