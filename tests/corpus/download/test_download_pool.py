"""The download pool: results, concurrency limits, errors and shutdown."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from bioshards.corpus.download import pool
from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    NotFoundError,
    OutageError,
    RefusedError,
    Server,
    UnreachableError,
)
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.download.rate_limit import RateLimiter
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.http_connections import make_server

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

Item = TypeVar("Item")
UNUSED_SERVER = Server("http://127.0.0.1:9/", "bioshards/test", RateLimiter("nobody", 4, 1000))


def list_download_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "download"]


def wait_until(is_true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not is_true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return is_true()


@pytest.fixture(autouse=True)
def check_threads_end() -> object:
    yield
    assert wait_until(lambda: not list_download_threads())


class RecordingWork:
    """Work that sleeps and records the items, the connections and the peak concurrency."""

    def __init__(self, seconds: float = 0.005, failing_item: object = None) -> None:
        self.seconds, self.failing_item = seconds, failing_item
        self.started: list[object] = []
        self.connections: set[int] = set()
        self.max_concurrent = self._num_running = 0
        self._lock = threading.Lock()

    def __call__(self, connection: Connection, item: Item) -> Item:
        with self._lock:
            self.started.append(item)
            self.connections.add(id(connection))
            self._num_running += 1
            self.max_concurrent = max(self.max_concurrent, self._num_running)
        time.sleep(self.seconds)
        with self._lock:
            self._num_running -= 1
        if item == self.failing_item:
            raise ValueError(f"{item} is wrong")
        return item


def test_every_item_has_one_result() -> None:
    work = RecordingWork()
    results = list(DownloadPool(UNUSED_SERVER, 4).map_unordered(work, range(40)))
    assert sorted(results) == [(item, item) for item in range(40)]
    assert sorted(map(str, work.started)) == sorted(map(str, range(40)))
    assert work.max_concurrent == 4


def test_work_starts_with_the_first_result_requested() -> None:
    work = RecordingWork()
    DownloadPool(UNUSED_SERVER, 4).map_unordered(work, range(4))
    time.sleep(0.05)
    assert work.started == []


def test_unordered_results_are_returned_as_completed() -> None:
    may_finish = {item: threading.Event() for item in "abc"}

    def work(_: Connection, item: str) -> str:
        assert may_finish[item].wait(60)
        return item

    finished = []
    may_finish["c"].set()
    for item, _ in DownloadPool(UNUSED_SERVER, 3).map_unordered(work, "abc"):
        finished.append(item)
        may_finish["b" if item == "c" else "a"].set()
    assert finished == ["c", "b", "a"]


# Errors and early shutdown.


def test_error_stops_the_remaining_work() -> None:
    work = RecordingWork(seconds=0.02, failing_item=5)
    with pytest.raises(ValueError, match="5 is wrong"):
        list(DownloadPool(UNUSED_SERVER, 2).map_unordered(work, range(200)))
    num_started = len(work.started)
    assert num_started < 20
    assert wait_until(lambda: not list_download_threads())
    assert len(work.started) <= num_started + 1


def test_error_does_not_wait_for_other_threads() -> None:
    error_raised, in_time = threading.Event(), list[bool]()

    def work(_: Connection, item: int) -> None:
        if item:
            in_time.append(error_raised.wait(60))
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(DownloadPool(UNUSED_SERVER, 2).map_unordered(work, range(2)))
    error_raised.set()
    assert wait_until(lambda: not list_download_threads())
    assert in_time in ([], [True])  # the other item may not have started


def test_close_stops_the_remaining_work() -> None:
    work = RecordingWork(seconds=0.02)
    results = DownloadPool(UNUSED_SERVER, 2).map_unordered(work, range(200))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert wait_until(lambda: not list_download_threads())
    assert len(work.started) < 10


def test_slot_that_cannot_be_acquired_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XDG_RUNTIME_DIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "nothing"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing" / "here"))
    (tmp_path / "nothing").write_text("a file")
    with pytest.raises(OSError, match="nothing"):
        list(DownloadPool(UNUSED_SERVER, 2).map_unordered(RecordingWork(), range(5)))


def test_process_ends_without_waiting_for_its_downloads() -> None:
    """They may be in the middle of retries, which take minutes."""
    code = """
        import time
        from bioshards.corpus.download.http_client import Server
        from bioshards.corpus.download.pool import DownloadPool
        from bioshards.corpus.download.rate_limit import RateLimiter
        server = Server("http://127.0.0.1:9/", "bioshards/test", RateLimiter("nobody", 4, 1000))
        pool = DownloadPool(server, 2)
        next(pool.map_unordered(lambda _, seconds: time.sleep(seconds), [0, 600]))
        print("first result")
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True, timeout=60
    )
    assert ended.stdout == "first result\n"


# Slots and turns.


@pytest.fixture
def shorten_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TURN_SECONDS", 0.05)


def test_more_threads_than_slots_take_turns() -> None:
    two_slots = Server(UNUSED_SERVER.base_url, UNUSED_SERVER.user_agent, RateLimiter("nobody", 2, 1000))
    work = RecordingWork()
    assert len(list(DownloadPool(two_slots, 6).map_unordered(work, range(40)))) == 40
    assert work.max_concurrent == 2


@pytest.mark.usefixtures("shorten_turns")
def test_other_processes_get_a_turn() -> None:
    one_slot = Server(UNUSED_SERVER.base_url, UNUSED_SERVER.user_agent, RateLimiter("nobody", 1, 1000))
    work = RecordingWork(seconds=0.02)

    def count_started() -> int:
        with one_slot.rate_limiter.acquire_slot():
            return len(work.started)

    results = DownloadPool(one_slot, 1).map_unordered(work, range(20))
    next(results)
    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(count_started)
        list(results)
        assert waiting.result() < 15


# With a server.


def test_threads_reuse_their_connections(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(str(number))

    def read(connection: Connection, url: str) -> bytes:
        return connection.read(url, 10).body

    with FakeServer(tmp_path) as server:
        urls = [f"{server.url}{number}.txt" for number in range(30)]
        bodies = [body for _, body in DownloadPool(make_server(server.url), 3).map_unordered(read, urls)]
        assert sorted(map(str, bodies)) == sorted(str(str(number).encode()) for number in range(30))
        assert server.connections <= 3
        assert len(server.requests) == 30


# Failures in a row.

REFUSED, UNREACHABLE = RefusedError("403"), UnreachableError("no answer")


def download_all(outcomes: list[DownloadError | None], max_failures: int = 3) -> list[object]:
    """Download items in order, with these errors; return the results."""

    def work(_: Connection, item: int) -> str:
        if error := outcomes[item]:
            raise error
        return "done"

    pool = DownloadPool(UNUSED_SERVER, 1, max_failures)
    return [result for _, result in pool.map_unordered(work, range(len(outcomes)))]


@pytest.mark.parametrize(
    "outcomes",
    [
        [None] * 9,
        [REFUSED] * 2,
        [UNREACHABLE] * 2,
        [REFUSED, UNREACHABLE, None] * 9,
        [NotFoundError("404")] * 9,
        [REFUSED, REFUSED, NotFoundError("404")] * 9,
        [DownloadError("a wrong checksum")] * 9,
    ],
)
def test_failures_of_single_items_are_their_results(outcomes: list[DownloadError | None]) -> None:
    assert download_all(outcomes) == [error or "done" for error in outcomes]


@pytest.mark.parametrize(
    "outcomes", [[REFUSED] * 9, [UNREACHABLE] * 9, [None, REFUSED, REFUSED, UNREACHABLE]]
)
def test_failures_in_a_row_are_an_outage(outcomes: list[DownloadError | None]) -> None:
    with pytest.raises(OutageError, match=r"3 downloads failed in a row; the last one: [4n]") as caught:
        download_all(outcomes)
    assert "refuses this network: open http://127.0.0.1:9/ in a browser" in caught.value.hint


def test_failures_are_counted_over_several_calls() -> None:
    """Each range of articles may have a few missing objects only."""

    def refuse(_: Connection, _item: int) -> None:
        raise REFUSED

    pool = DownloadPool(UNUSED_SERVER, 1, max_failures=3)
    assert len(list(pool.map_unordered(refuse, range(2)))) == 2
    with pytest.raises(OutageError):
        list(pool.map_unordered(refuse, range(2)))


def test_outage_ends_the_run_at_once() -> None:
    with pytest.raises(OutageError, match="wait for an hour"):
        download_all([OutageError("wait for an hour"), None])
