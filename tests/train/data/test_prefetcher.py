"""The prefetcher: order, prefetch depth, errors and the end of its thread."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable

import pytest
import torch

from bioshards.train.batch import Batch
from bioshards.train.data.prefetcher import Prefetcher, pin_memory


def count_threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def check_no_threads() -> None:
    assert not count_threads()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition, for at most ten seconds."""
    for _ in range(1_000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in ten seconds")


@pytest.mark.parametrize("num_ahead", [1, 2, 7])
def test_steps_are_returned_in_order(num_ahead: int) -> None:
    with Prefetcher(lambda step: step * step, 5, num_ahead) as prefetch:
        assert [prefetch.get() for _ in range(50)] == [step * step for step in range(5, 55)]
    assert not count_threads()


def test_prefetch_depth_is_limited() -> None:
    steps: list[int] = []
    with Prefetcher(steps.append, 0, 3) as prefetch:
        wait_until(lambda: len(steps) == 3)
        time.sleep(0.05)
        assert steps == [0, 1, 2]
        prefetch.get()
        wait_until(lambda: len(steps) == 4)
        time.sleep(0.05)
        assert steps == [0, 1, 2, 3]


def test_steps_are_made_in_another_thread() -> None:
    with Prefetcher(lambda step: threading.get_ident(), 0) as prefetch:
        assert len({prefetch.get() for _ in range(5)} | {threading.get_ident()}) == 2


class StepError(Exception):
    pass


def make_failing_factory(failing_step: int) -> Callable[[int], int]:
    def make_step(step: int) -> int:
        if step == failing_step:
            raise StepError(f"at {step}")
        return step

    return make_step


@pytest.mark.parametrize("num_ahead", [1, 2, 10])
def test_error_is_raised_at_its_step_and_again_afterwards(num_ahead: int) -> None:
    with Prefetcher(make_failing_factory(3), 0, num_ahead) as prefetch:
        wait_until(lambda: count_threads() == 0 or num_ahead < 4)
        assert [prefetch.get() for _ in range(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(StepError, match="at 3"):
                prefetch.get()
    assert not count_threads()


def test_exit_in_the_thread_is_raised() -> None:
    def exit_at_step(step: int) -> int:
        sys.exit(step)

    with Prefetcher(exit_at_step, 7) as prefetch, pytest.raises(SystemExit):
        prefetch.get()


def test_error_in_the_with_block_ends_the_thread() -> None:
    def fail_in_loop() -> None:
        with Prefetcher(lambda step: step, 0) as prefetch:
            prefetch.get()
            raise StepError

    with pytest.raises(StepError):
        fail_in_loop()
    assert not count_threads()


def test_close_while_the_queue_is_full() -> None:
    prefetch = Prefetcher(lambda step: step, 0, 2)
    prefetch.get()
    prefetch.close()
    assert not count_threads()
    prefetch.close()  # once more does nothing


def test_close_during_a_step_waits_for_that_step() -> None:
    started, release, finished_steps = threading.Event(), threading.Event(), []

    def block_on_step(step: int) -> None:
        started.set()
        assert release.wait(10)
        finished_steps.append(step)

    prefetch = Prefetcher(block_on_step, 0, 100)
    assert started.wait(10)
    closing_thread = threading.Thread(target=prefetch.close)
    closing_thread.start()
    wait_until(lambda: prefetch._closed)
    release.set()
    closing_thread.join(10)
    assert not closing_thread.is_alive()
    assert finished_steps == [0]


def test_get_after_close_raises() -> None:
    with Prefetcher(lambda step: step, 0) as prefetch:
        prefetch.get()
    with pytest.raises(RuntimeError, match="the prefetcher is closed"):
        prefetch.get()


def test_close_wakes_a_waiting_get() -> None:
    release, messages = threading.Event(), []
    prefetch: Prefetcher[bool] = Prefetcher(lambda step: release.wait(10), 0)

    def get_and_record_error() -> None:
        try:
            prefetch.get()
        except RuntimeError as error:
            messages.append(str(error))

    waiting_thread = threading.Thread(target=get_and_record_error)
    waiting_thread.start()
    closing_thread = threading.Thread(target=prefetch.close)
    closing_thread.start()
    waiting_thread.join(10)
    assert messages == ["the prefetcher is closed"]
    release.set()
    closing_thread.join(10)


def test_wait_seconds_are_counted() -> None:
    slow_step, released = threading.Event(), threading.Event()
    released.set()
    with Prefetcher(lambda step: (slow_step if step == 1 else released).wait(10), 0, 1) as prefetch:
        wait_until(lambda: len(prefetch._ready) == 1)
        prefetch.get()
        before = prefetch.wait_seconds
        threading.Timer(0.2, slow_step.set).start()
        prefetch.get()
        waited = prefetch.wait_seconds - before
        assert waited >= 0.15
        wait_until(lambda: len(prefetch._ready) == 1)
        prefetch.get()
        assert prefetch.wait_seconds - before - waited < waited


@pytest.mark.thorough
def test_process_exits_without_close() -> None:
    script = (
        "from bioshards.train.data.prefetcher import Prefetcher\n"
        "prefetch = Prefetcher(lambda step: step, 0)\n"
        "prefetch.get()\n"
        "raise SystemExit(3)\n"
    )
    completed = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (completed.returncode, completed.stderr) == (3, b"")


def test_without_cuda_nothing_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    part = torch.zeros(1)
    batch = Batch(part, part, part, part, part, part, part, part, part, None, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pin_memory(batch) is batch


def test_with_cuda_every_tensor_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    part = torch.zeros(1)
    batch = Batch(part, part, part, part, part, part, part, part, part, None, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 1)
    assert pin_memory(batch) == Batch._make([*[part + 1] * 9, None, 1])
