"""Prefetching: order, depth, errors and the end of its thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

import pytest

from bioshards.train.data.loader import PREFETCH_STEPS, prefetch


def count_threads() -> int:
    return sum(thread.name.startswith("prefetch") for thread in threading.enumerate())


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for at most ten seconds."""
    for _ in range(1_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in ten seconds")


def test_steps_are_yielded_in_order_by_another_thread() -> None:
    steps = list(prefetch(lambda step: (step, threading.get_ident()), range(5, 55)))
    assert [step for step, _ in steps] == list(range(5, 55))
    assert len({thread for _, thread in steps} | {threading.get_ident()}) == 2
    assert not count_threads()


def test_depth_is_limited() -> None:
    steps: list[int] = []
    with contextlib.closing(prefetch(steps.append, range(100))) as batches:
        for number in range(3):
            next(batches)
            wait_until(lambda number=number: len(steps) == number + 1 + PREFETCH_STEPS)  # type: ignore[misc]
            time.sleep(0.02)
            assert len(steps) == number + 1 + PREFETCH_STEPS
    assert not count_threads()


def test_error_is_raised_at_its_step() -> None:
    def fail_at_three(step: int) -> int:
        if step == 3:
            raise ValueError("at 3")
        return step

    batches = prefetch(fail_at_three, range(10))
    assert [next(batches) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(ValueError, match="at 3"):
        next(batches)
    assert not count_threads()


def test_close_during_a_step_waits_for_that_step_alone() -> None:
    started, release, finished_steps = threading.Event(), threading.Event(), []

    def block_after_the_first(step: int) -> None:
        if step:
            started.set()
            assert release.wait(10)
        finished_steps.append(step)

    batches = prefetch(block_after_the_first, range(100))
    next(batches)
    assert started.wait(10), "a step that has not begun would be cancelled"
    threading.Timer(0.1, release.set).start()
    batches.close()
    assert finished_steps == [0, 1]
    assert not count_threads()
