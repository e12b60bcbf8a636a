"""The rate limiter: connection slots, request rate and pauses across threads and processes."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import select
import signal
import struct
import subprocess
import sys
import textwrap
import threading
import time
from bisect import bisect_left
from pathlib import Path

import pytest

from bioshards.corpus.download import rate_limit
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.storage.retry import MAX_RETRY_AFTER_SECONDS
from tests.support.servers.http_connections import Clock

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

FOUR_SLOTS = RateLimiter("files.example.org:443", max_connections=4, requests_per_second=1000)


def start_python(
    code: str, *arguments: object, environment: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """Start Python with the imports that the snippets need."""
    imports = "import sys, threading, time\nfrom bioshards.corpus.download.rate_limit import RateLimiter\n"
    return subprocess.Popen(
        [sys.executable, "-c", imports + textwrap.dedent(code), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def read_line(child: subprocess.Popen[str]) -> str:
    assert child.stdout
    return child.stdout.readline().strip()


def is_readable(child: subprocess.Popen[str], seconds: float = 0.05) -> bool:
    """Return True if the child writes a line within some seconds."""
    assert child.stdout
    return bool(select.select([child.stdout], [], [], seconds)[0])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake_clock = Clock()
    monkeypatch.setattr(rate_limit, "time", fake_clock)
    return fake_clock


# Slots.


def test_slots_are_limited_across_threads_and_processes(tmp_path: Path) -> None:
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
    for child in [start_python(code, log) for _ in range(3)]:
        assert child.wait(60) == 0
    num_held, max_held = 0, 0
    for mark in log.read_text():
        num_held += 1 if mark == "+" else -1
        max_held = max(max_held, num_held)
    assert log.read_text().count("+") == 36
    assert num_held == 0
    assert max_held == 2


def test_killed_process_releases_its_slot() -> None:
    child = start_python(
        """
        with RateLimiter("server", 1, 1000).acquire_slot():
            print("held", flush=True), time.sleep(60)
        """
    )
    assert read_line(child) == "held"
    started = time.monotonic()
    killer = threading.Timer(0.3, child.send_signal, [signal.SIGKILL])
    killer.start()
    with RateLimiter("server", 1, 1000).acquire_slot():
        assert time.monotonic() - started > 0.25
        assert child.wait() == -signal.SIGKILL


def test_long_wait_for_a_slot_is_reported_once(clock: Clock) -> None:
    limiter, reports = RateLimiter("server", 1, 1000), list[str]()
    with contextlib.ExitStack() as holder:
        holder.enter_context(limiter.acquire_slot(reports.append))
        clock.before_sleep = lambda: holder.close() if clock.slept > 20 else None
        with limiter.acquire_slot(reports.append):
            pass
    assert reports == ["the connections to server (1) are all in use by other runs on this machine"]


def test_error_releases_the_slot() -> None:
    limiter = RateLimiter("server", 1, 1000)
    with pytest.raises(ZeroDivisionError), limiter.acquire_slot():
        raise ZeroDivisionError
    with limiter.acquire_slot():
        pass


def test_each_server_has_its_own_slots_inside_the_folder(own_temporary_folder: Path) -> None:
    with RateLimiter("one", 1, 1000).acquire_slot(), RateLimiter("../../other", 1, 1000).acquire_slot():
        [folder] = own_temporary_folder.iterdir()
        assert sorted(path.name for path in folder.iterdir()) == [".._.._other.0", "one.0"]
    assert list(own_temporary_folder.parent.glob("*other*")) == []


def test_file_descriptors_are_closed() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with FOUR_SLOTS.acquire_slot():
            FOUR_SLOTS.wait_for_turn()
            FOUR_SLOTS.pause(0)
    assert len(os.listdir("/proc/self/fd")) == before


def test_divide_splits_connections_and_rate_among_machines() -> None:
    assert FOUR_SLOTS.divide(2) == RateLimiter(FOUR_SLOTS.server_name, 2, 500)
    assert FOUR_SLOTS.divide(4).max_connections == FOUR_SLOTS.divide(9).max_connections == 1
    assert FOUR_SLOTS.divide(8).requests_per_second == 125


# Request rate.


@pytest.mark.thorough
def test_request_rate_is_limited_across_processes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    code = """
        log = open(sys.argv[1], "ab", buffering=0)
        for _ in range(8):
            RateLimiter("server", 4, 10).wait_for_turn()
            log.write(b"%r\\n" % time.monotonic())
    """
    for child in [start_python(code, log) for _ in range(3)]:
        assert child.wait(60) == 0
    times = sorted(map(float, log.read_text().split()))
    assert len(times) == 24
    assert max(bisect_left(times, sent_at + 1) - index for index, sent_at in enumerate(times)) <= 11
    assert times[-1] - times[0] < 4, "and no fewer than need be"


@pytest.mark.parametrize("requests_per_second", [1, 2, 8, 20])
def test_no_second_has_more_requests_than_promised(clock: Clock, requests_per_second: int) -> None:
    """Each request reaches the server up to a tenth of a second late."""
    limiter, rng = RateLimiter("server", 4, requests_per_second), random.Random(6)
    received_at = []
    for _ in range(200):
        limiter.wait_for_turn()
        received_at.append(clock.now + rng.uniform(0, 0.1))
    received_at.sort()
    for first, later in zip(received_at, received_at[requests_per_second:], strict=False):
        assert later - first > 1
    assert received_at[-1] - received_at[0] < 1.2 * 200 / requests_per_second, "and no fewer than need be"


def test_idle_time_does_not_allow_a_burst(clock: Clock) -> None:
    limiter = RateLimiter("server", 4, 8)
    limiter.wait_for_turn()
    clock.now += 100
    limiter.wait_for_turn()
    limiter.wait_for_turn()
    assert clock.slept == pytest.approx(0.14375)


# Pauses.


def test_pause_of_one_process_holds_back_the_others() -> None:
    child = start_python('print(time.time(), flush=True); RateLimiter("server", 4, 1000).pause(1.5)')
    paused_at = float(read_line(child))
    assert child.wait(60) == 0
    started = time.time()
    RateLimiter("server", 4, 1000).wait_for_turn()
    assert time.time() - paused_at >= 1.5
    assert time.time() - started < 20


def test_pause_that_begins_during_a_wait_extends_it(clock: Clock) -> None:
    limiter = RateLimiter("server", 4, 0.5)
    limiter.wait_for_turn()
    clock.before_sleep = lambda: limiter.pause(10) if not clock.slept else None
    limiter.wait_for_turn()
    assert clock.slept >= 10


@pytest.mark.parametrize(
    ("server", "pauses", "slept"),
    [
        (FOUR_SLOTS, [100, 1], 100),  # a shorter one does not replace a longer one
        (FOUR_SLOTS, [10 * MAX_RETRY_AFTER_SECONDS], MAX_RETRY_AFTER_SECONDS),
        (RateLimiter("other", 4, 1000), [100], 0),
    ],
)
def test_pauses_of_a_server(clock: Clock, server: RateLimiter, pauses: list[float], slept: float) -> None:
    for seconds in pauses:
        server.pause(seconds)
    FOUR_SLOTS.wait_for_turn()
    assert clock.slept == pytest.approx(slept)


# Damaged state and foreign folders.

DAMAGED_STATES = [b"", b"short", b"\0" * 16, b"\xff" * 16, b'{"paused_until": 1}' * 3]
DAMAGED_STATES += [
    struct.pack("<dd", time, time) for time in (float("nan"), float("inf"), -float("inf"), 1e308, -1)
]


@pytest.mark.parametrize("content", DAMAGED_STATES)
def test_damaged_state_file_is_ignored(content: bytes, clock: Clock, own_temporary_folder: Path) -> None:
    FOUR_SLOTS.wait_for_turn()
    [state_file] = own_temporary_folder.glob("*/*.times")
    state_file.write_bytes(content)
    FOUR_SLOTS.pause(5)
    FOUR_SLOTS.wait_for_turn()
    assert clock.slept == pytest.approx(5)
    FOUR_SLOTS.wait_for_turn()
    assert clock.slept == pytest.approx(5.00115)


@pytest.mark.parametrize("seconds", [10, 1800, 86_400, 1e9])
def test_clock_set_back_does_not_block_requests(clock: Clock, seconds: float) -> None:
    FOUR_SLOTS.wait_for_turn()
    clock.now -= seconds
    FOUR_SLOTS.wait_for_turn()
    assert clock.slept < 60


def test_clock_set_back_during_a_pause_keeps_it_bounded(clock: Clock) -> None:
    FOUR_SLOTS.pause(MAX_RETRY_AFTER_SECONDS)
    clock.now -= 86_400
    FOUR_SLOTS.pause(7)
    FOUR_SLOTS.wait_for_turn()
    assert clock.slept == pytest.approx(7)


# The folder.


@pytest.fixture
def homeless(tmp_path: Path, own_temporary_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No runtime folder, and a cache folder that cannot be made."""
    (tmp_path / "file").write_text("no folder")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file/cache"))


def find_state_files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.0"))


def test_jobs_with_their_own_temporary_folders_share_the_slots(tmp_path: Path) -> None:
    """As schedulers start them: the second waits for the slot of the first."""
    code = """
        with RateLimiter("server", 1, 1000).acquire_slot():
            print("held", flush=True), sys.stdin.read()
    """
    children = []
    for number in range(2):
        (tmp_path / f"job{number}").mkdir()
        environment = {**os.environ, "TMPDIR": str(tmp_path / f"job{number}")}
        children.append(start_python(code, environment=environment))
    first = next(child for child in itertools.cycle(children) if is_readable(child))
    [second] = [child for child in children if child is not first]
    assert read_line(first) == "held"
    assert not is_readable(second, seconds=0.3)
    first.communicate("")
    assert read_line(second) == "held"
    second.communicate("")


def test_cache_folder_is_used_without_a_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "of another machine"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with FOUR_SLOTS.divide(4).acquire_slot():
        assert find_state_files(tmp_path) == ["home/.cache/bioshards/files.example.org_443.0"]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with FOUR_SLOTS.divide(4).acquire_slot():
        assert "cache/bioshards/files.example.org_443.0" in find_state_files(tmp_path)


@pytest.mark.usefixtures("homeless")
def test_temporary_folder_is_used_without_a_home(own_temporary_folder: Path) -> None:
    with FOUR_SLOTS.divide(4).acquire_slot():
        assert find_state_files(own_temporary_folder) == [f"bioshards-{os.getuid()}/files.example.org_443.0"]


@pytest.mark.usefixtures("homeless")
def test_folder_of_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    other = os.getuid() + 1
    (own_temporary_folder / f"bioshards-{other}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: other)
    with pytest.raises(PermissionError, match="belongs to another user"), FOUR_SLOTS.acquire_slot():
        pass


@pytest.mark.usefixtures("homeless")
def test_symbolic_link_of_another_user_is_refused(
    monkeypatch: pytest.MonkeyPatch, own_temporary_folder: Path
) -> None:
    """Such a link would let another user choose the folder that is written to."""
    own_folder, link = own_temporary_folder / "ours", own_temporary_folder / f"bioshards-{os.getuid()}"
    own_folder.mkdir()
    link.symlink_to(own_folder)
    lstat = os.lstat

    def lstat_with_other_owner(path: str) -> os.stat_result:
        info = lstat(path)
        return os.stat_result((*info[:4], info.st_uid + 1, *info[5:10]))

    monkeypatch.setattr(os, "lstat", lstat_with_other_owner)  # only root can create such a link
    with pytest.raises(PermissionError, match="belongs to another user"), FOUR_SLOTS.acquire_slot():
        pass
    assert list(own_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("urls", "name"),
    [
        (["https://FTP.example.org/a/", "https://ftp.example.org.:443/"], "ftp.example.org:443"),
        (["http://127.0.0.1:8080/", "http://LOCALHOST:8080/", "http://[::1]:8080/"], "localhost:8080"),
    ],
)
def test_a_server_has_one_budget_however_it_is_written(urls: list[str], name: str) -> None:
    assert {rate_limit.name_server(url) for url in urls} == {name}
