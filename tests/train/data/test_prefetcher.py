"""The thread that makes batches ahead: in order, no more than asked, and gone when it is to be."""

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


def threads() -> int:
    return sum(thread.name == "prefetch" for thread in threading.enumerate())


@pytest.fixture(autouse=True)
def no_thread_is_left() -> None:
    assert not threads()


def until(true: Callable[[], bool]) -> None:
    """Wait for it, ten seconds at most."""
    for _ in range(1_000):
        if true():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen in ten seconds")


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_steps_come_in_order_from_the_first(ahead: int) -> None:
    with Prefetcher(lambda step: step * step, 5, ahead) as prefetch:
        assert [prefetch.get() for _ in range(50)] == [step * step for step in range(5, 55)]
    assert not threads()


def test_so_many_steps_ahead_and_no_more() -> None:
    made: list[int] = []
    with Prefetcher(made.append, 0, 3) as prefetch:
        until(lambda: len(made) == 3)
        time.sleep(0.05)
        assert made == [0, 1, 2]
        prefetch.get()
        until(lambda: len(made) == 4)
        time.sleep(0.05)
        assert made == [0, 1, 2, 3]


def test_it_is_made_in_another_thread() -> None:
    with Prefetcher(lambda step: threading.get_ident(), 0) as prefetch:
        assert len({prefetch.get() for _ in range(5)} | {threading.get_ident()}) == 2


class Broken(Exception):
    pass


def breaking(at: int) -> Callable[[int], int]:
    def make(step: int) -> int:
        if step == at:
            raise Broken(f"at {step}")
        return step

    return make


@pytest.mark.parametrize("ahead", [1, 2, 10])
def test_an_error_comes_when_its_step_does_and_stays(ahead: int) -> None:
    with Prefetcher(breaking(3), 0, ahead) as prefetch:
        until(lambda: threads() == 0 or ahead < 4)
        assert [prefetch.get() for _ in range(3)] == [0, 1, 2]
        for _ in range(2):
            with pytest.raises(Broken, match="at 3"):
                prefetch.get()
    assert not threads()


def test_an_exit_of_the_thread_is_an_error_too() -> None:
    def leaving(step: int) -> int:
        sys.exit(step)

    with Prefetcher(leaving, 7) as prefetch, pytest.raises(SystemExit):
        prefetch.get()


def test_an_error_of_the_loop_ends_the_thread() -> None:
    def loop() -> None:
        with Prefetcher(lambda step: step, 0) as prefetch:
            prefetch.get()
            raise Broken

    with pytest.raises(Broken):
        loop()
    assert not threads()


def test_closed_while_it_waits_for_room() -> None:
    prefetch = Prefetcher(lambda step: step, 0, 2)
    prefetch.get()
    prefetch.close()
    assert not threads()
    prefetch.close()  # once more does nothing


def test_closed_while_it_works_it_ends_after_that_step() -> None:
    begun, go_on, made = threading.Event(), threading.Event(), []

    def make(step: int) -> None:
        begun.set()
        assert go_on.wait(10)
        made.append(step)

    prefetch = Prefetcher(make, 0, 100)
    assert begun.wait(10)
    closing = threading.Thread(target=prefetch.close)
    closing.start()
    until(lambda: prefetch._closed)
    go_on.set()
    closing.join(10)
    assert not closing.is_alive()
    assert made == [0]


def test_nothing_can_be_asked_for_once_it_is_closed() -> None:
    with Prefetcher(lambda step: step, 0) as prefetch:
        prefetch.get()
    with pytest.raises(RuntimeError, match="the prefetcher is closed"):
        prefetch.get()


def test_who_waits_is_told_when_it_is_closed() -> None:
    go_on, said = threading.Event(), []
    prefetch: Prefetcher[bool] = Prefetcher(lambda step: go_on.wait(10), 0)

    def ask() -> None:
        try:
            prefetch.get()
        except RuntimeError as error:
            said.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    closing = threading.Thread(target=prefetch.close)
    closing.start()
    asking.join(10)
    assert said == ["the prefetcher is closed"]
    go_on.set()
    closing.join(10)


def test_seconds_of_waiting_are_counted() -> None:
    slow, quick = threading.Event(), threading.Event()
    quick.set()
    with Prefetcher(lambda step: (slow if step == 1 else quick).wait(10), 0, 1) as prefetch:
        until(lambda: len(prefetch._ready) == 1)
        prefetch.get()
        before = prefetch.wait_seconds
        threading.Timer(0.2, slow.set).start()
        prefetch.get()
        waited = prefetch.wait_seconds - before
        assert waited >= 0.15
        until(lambda: len(prefetch._ready) == 1)
        prefetch.get()
        assert prefetch.wait_seconds - before - waited < waited


def test_a_process_ends_though_nobody_closes() -> None:
    script = (
        "from bioshards.train.data.prefetcher import Prefetcher\n"
        "prefetch = Prefetcher(lambda step: step, 0)\n"
        "prefetch.get()\n"
        "raise SystemExit(3)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (3, b"")


def test_without_cuda_nothing_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    part = torch.zeros(1)
    found = Batch(part, part, part, part, part, part, part, part, part, None, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert pin_memory(found) is found


def test_with_cuda_every_tensor_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    part = torch.zeros(1)
    found = Batch(part, part, part, part, part, part, part, part, part, None, 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda self: self + 1)
    assert pin_memory(found) == Batch._make([*[part + 1] * 9, None, 1])
