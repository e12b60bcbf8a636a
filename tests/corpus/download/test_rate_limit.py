"""Places and pace: what a server is promised holds over threads and processes, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.corpus.download import rate_limit
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.storage.retry import MAX_RETRY_AFTER_SECONDS

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

FOUR = RateLimiter("files.example.org:443", max_connections=4, requests_per_second=1000)


def process(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that has imported what the tests use."""
    imports = "import sys, threading, time\nfrom bioshards.corpus.download.rate_limit import RateLimiter\n"
    return subprocess.Popen(
        [sys.executable, "-c", imports + textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
    )


def said(running: subprocess.Popen[str]) -> str:
    assert running.stdout
    return running.stdout.readline().strip()


class Clock:
    """A clock that stands still but when somebody sleeps; ``slept`` is for how long."""

    def __init__(self) -> None:
        self.now, self.slept = 2e9, 0.0
        self.meanwhile: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.meanwhile()
        self.now += seconds
        self.slept += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(rate_limit, "time", fake)
    return fake


# Places.


def test_never_more_hold_a_place_than_there_are_over_threads_and_processes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = """
        def hold():
            for _ in range(4):
                with RateLimiter("server", 2, 1000).acquire_slot():
                    log.write(b"+"), time.sleep(0.01), log.write(b"-")
        log = open(sys.argv[1], "ab", buffering=0)
        threads = [threading.Thread(target=hold) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    """
    for running in [process(code, log) for _ in range(3)]:
        assert running.wait(20) == 0
    held, most = 0, 0
    for mark in log.read_text():
        held += 1 if mark == "+" else -1
        most = max(most, held)
    assert log.read_text().count("+") == 36
    assert held == 0
    assert most == 2


def test_a_killed_process_gives_its_place_back() -> None:
    running = process(
        """
        with RateLimiter("server", 1, 1000).acquire_slot():
            print("held", flush=True), time.sleep(60)
        """
    )
    assert said(running) == "held"
    began = time.monotonic()
    killer = threading.Timer(0.3, running.send_signal, [signal.SIGKILL])
    killer.start()
    with RateLimiter("server", 1, 1000).acquire_slot():
        assert time.monotonic() - began > 0.25
        assert running.wait() == -signal.SIGKILL


def test_an_error_gives_the_place_back() -> None:
    one = RateLimiter("server", 1, 1000)
    with pytest.raises(ZeroDivisionError), one.acquire_slot():
        raise ZeroDivisionError
    with one.acquire_slot():
        pass


def test_servers_have_their_own_places_and_their_names_stay_in_the_folder(own_temporary_folder: Path) -> None:
    with RateLimiter("one", 1, 1000).acquire_slot(), RateLimiter("../../other", 1, 1000).acquire_slot():
        [folder] = own_temporary_folder.iterdir()
        assert sorted(path.name for path in folder.iterdir()) == [".._.._other.0", "one.0"]
    assert list(own_temporary_folder.parent.glob("*other*")) == []


def test_no_handle_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with FOUR.acquire_slot():
            FOUR.wait_for_turn()
            FOUR.pause(0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_machines_that_cannot_see_each_other_share_what_there_is() -> None:
    assert FOUR.divide(2) == RateLimiter(FOUR.server_name, 2, 500)
    assert FOUR.divide(4).max_connections == FOUR.divide(9).max_connections == 1
    assert FOUR.divide(8).requests_per_second == 125


# Pace.


def test_no_second_has_more_requests_than_allowed_over_several_processes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = """
        log = open(sys.argv[1], "ab", buffering=0)
        for _ in range(8):
            RateLimiter("server", 4, 10).wait_for_turn()
            log.write(b"%r\\n" % time.monotonic())
    """
    for running in [process(code, log) for _ in range(3)]:
        assert running.wait(30) == 0
    times = sorted(map(float, log.read_text().split()))
    assert len(times) == 24
    assert max(bisect_left(times, at + 1) - number for number, at in enumerate(times)) <= 11
    assert times[-1] - times[0] < 4, "and no fewer than need be"


def test_requests_are_evenly_spaced(clock: Clock) -> None:
    sent = []
    for _ in range(4):
        RateLimiter("server", 4, 8).wait_for_turn()
        sent.append(clock.slept)
    assert sent == pytest.approx([0, 0.125, 0.25, 0.375])


def test_time_in_which_nobody_asked_is_not_saved_up(clock: Clock) -> None:
    eight = RateLimiter("server", 4, 8)
    eight.wait_for_turn()
    clock.now += 100
    eight.wait_for_turn()
    eight.wait_for_turn()
    assert clock.slept == pytest.approx(0.125)


# Pauses.


def test_a_pause_that_one_process_is_told_of_holds_the_others_back() -> None:
    running = process('print(time.time(), flush=True); RateLimiter("server", 4, 1000).pause(1.5)')
    told = float(said(running))
    assert running.wait(20) == 0
    began = time.time()
    RateLimiter("server", 4, 1000).wait_for_turn()
    assert time.time() - told >= 1.5
    assert time.time() - began < 2


def test_a_pause_that_begins_while_somebody_waits_for_its_turn(clock: Clock) -> None:
    slow = RateLimiter("server", 4, 0.5)
    slow.wait_for_turn()
    clock.meanwhile = lambda: slow.pause(10) if not clock.slept else None
    slow.wait_for_turn()
    assert clock.slept >= 10


def test_a_longer_pause_is_not_shortened(clock: Clock) -> None:
    FOUR.pause(100)
    FOUR.pause(1)
    FOUR.wait_for_turn()
    assert clock.slept == pytest.approx(100)


def test_no_pause_is_longer_than_the_longest(clock: Clock) -> None:
    FOUR.pause(10 * MAX_RETRY_AFTER_SECONDS)
    FOUR.wait_for_turn()
    assert clock.slept == pytest.approx(MAX_RETRY_AFTER_SECONDS)


def test_another_servers_pause_is_none_of_ours(clock: Clock) -> None:
    RateLimiter("other", 4, 1000).pause(100)
    FOUR.wait_for_turn()
    assert clock.slept == 0


# What is in the folder may be anything.


DAMAGED = [b"", b"short", b"\0" * 16, b"\xff" * 16, b"longer than sixteen bytes, and text"]
DAMAGED += [struct.pack("<dd", time, time) for time in (float("nan"), float("inf"), -float("inf"), 1e308, -1)]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_of_times_is_as_none(content: bytes, clock: Clock, own_temporary_folder: Path) -> None:
    FOUR.wait_for_turn()
    [pace] = own_temporary_folder.glob("*/*.pace")
    pace.write_bytes(content)
    FOUR.pause(5)
    FOUR.wait_for_turn()
    assert clock.slept == pytest.approx(5)
    FOUR.wait_for_turn()
    assert clock.slept == pytest.approx(5.001)


@pytest.mark.parametrize("seconds", [10, 1800, 86_400, 1e9])
def test_a_clock_set_back_does_not_keep_anybody_waiting(clock: Clock, seconds: float) -> None:
    FOUR.wait_for_turn()
    clock.now -= seconds
    FOUR.wait_for_turn()
    assert clock.slept < 60


def test_a_clock_set_back_in_a_pause_ends_it_within_the_longest(clock: Clock) -> None:
    FOUR.pause(MAX_RETRY_AFTER_SECONDS)
    clock.now -= 86_400
    FOUR.pause(7)
    FOUR.wait_for_turn()
    assert clock.slept == pytest.approx(7)


def test_a_folder_that_somebody_else_has_made_is_refused(
    monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    other = os.getuid() + 1
    (own_temporary_folder / f"bioshards-{other}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(PermissionError, match="belongs to another user"), FOUR.acquire_slot():
        pass


def test_a_link_that_somebody_else_has_made_is_refused(
    monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    """Else others choose in which of our folders files are made."""
    ours, link = own_temporary_folder / "ours", own_temporary_folder / f"bioshards-{os.getuid()}"
    ours.mkdir()
    link.symlink_to(ours)
    lstat = os.lstat

    def of_somebody_else(path: str) -> os.stat_result:
        info = lstat(path)
        return os.stat_result((*info[:4], info.st_uid + 1, *info[5:10]))

    monkeypatch.setattr(os, "lstat", of_somebody_else)  # only root could make such a link
    with pytest.raises(PermissionError, match="belongs to another user"), FOUR.acquire_slot():
        pass
    assert list(ours.iterdir()) == []
