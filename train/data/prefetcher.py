"""Prefetch batches in a background thread.

One thread suffices: numpy releases the GIL while it copies, and a batch takes a fraction of a step.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Self, TypeVar

import torch

from bioshards.train.batch import Batch

T = TypeVar("T")


class Prefetcher(Generic[T]):
    """Results of a function of the step, computed ahead; a context manager that ends the thread.

    Args:
        make_item: function of the step; called in the thread, in the order of steps.
        first_step: first step.
        depth: maximum number of results that are kept ready.

    Attributes:
        wait_seconds: total time that :meth:`get` has waited.
    """

    def __init__(self, make_item: Callable[[int], T], first_step: int, depth: int = 4) -> None:
        self.wait_seconds = 0.0
        self._make_item, self._first_step, self._depth = make_item, first_step, depth
        self._ready: deque[T] = deque()
        self._error: BaseException | None = None
        self._closed = False
        self._condition = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def get(self) -> T:
        """Return the result for the next step.

        Raises:
            RuntimeError: the prefetcher is closed.
            BaseException: the error of the function for this step; repeated calls raise it again.
        """
        started = time.perf_counter()
        with self._condition:
            self._condition.wait_for(lambda: self._ready or self._error or self._closed)
            self.wait_seconds += time.perf_counter() - started
            if self._closed:
                raise RuntimeError("the prefetcher is closed")
            if self._ready:
                self._condition.notify_all()
                return self._ready.popleft()
            assert self._error is not None
            raise self._error

    def close(self) -> None:
        """End the thread after its current step and drop the results."""
        with self._condition:
            self._closed = True
            self._ready.clear()
            self._condition.notify_all()
        self._thread.join()

    def _run(self) -> None:
        step = self._first_step
        try:
            while self._wait_for_room():
                item = self._make_item(step)
                with self._condition:
                    self._ready.append(item)
                    self._condition.notify_all()
                step += 1
        except BaseException as error:
            with self._condition:
                self._error = error
                self._condition.notify_all()

    def _wait_for_room(self) -> bool:
        """Wait until fewer than ``depth`` results are ready; False if the prefetcher is closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or len(self._ready) < self._depth)
            return not self._closed

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def pin_memory(batch: Batch) -> Batch:
    """Return the batch in page-locked memory for asynchronous copies; unchanged without CUDA."""
    if not torch.cuda.is_available():
        return batch
    return Batch._make(field.pin_memory() if isinstance(field, torch.Tensor) else field for field in batch)
