"""Many files at once: every result, no more connections than there are places, and an end when it should."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import pytest

from bioshards.corpus.download import pool
from bioshards.corpus.download.http_client import Connection, NotFoundError, Server
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.download.rate_limit import RateLimiter
from tests.support.servers.fake_server import FakeServer, NotFound
from tests.support.servers.http_connections import make_server

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

Item = TypeVar("Item")
NOBODY = Server("http://127.0.0.1:9/", "bioshards/test", RateLimiter("nobody", 4, 1000))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "download"]


def soon(happens: Callable[[], bool]) -> bool:
    ends = time.monotonic() + 5
    while not happens() and time.monotonic() < ends:
        time.sleep(0.01)
    return happens()


@pytest.fixture(autouse=True)
def no_thread_is_left() -> object:
    yield
    assert soon(lambda: not threads())


class Work:
    """Work of so many seconds that notes what was begun and how many were at it at once."""

    def __init__(self, seconds: float = 0.005, wrong: object = None) -> None:
        self.seconds, self.wrong = seconds, wrong
        self.begun: list[object] = []
        self.connections: set[int] = set()
        self.most = self._now = 0
        self._lock = threading.Lock()

    def __call__(self, connection: Connection, item: Item) -> Item:
        with self._lock:
            self.begun.append(item)
            self.connections.add(id(connection))
            self._now += 1
            self.most = max(self.most, self._now)
        time.sleep(self.seconds)
        with self._lock:
            self._now -= 1
        if item == self.wrong:
            raise ValueError(f"{item} is wrong")
        return item


def test_every_item_has_its_result_once() -> None:
    work = Work()
    results = list(DownloadPool(NOBODY, 4).map_unordered(work, range(40)))
    assert sorted(results) == [(item, item) for item in range(40)]
    assert sorted(map(str, work.begun)) == sorted(map(str, range(40)))
    assert work.most == 4


def test_without_items_nothing_is_begun() -> None:
    assert list(DownloadPool(NOBODY, 4).map_unordered(Work(), [])) == []
    assert list(DownloadPool(NOBODY, 4).map(Work(), [])) == []


def test_nothing_is_begun_before_somebody_wants_a_result() -> None:
    work = Work()
    DownloadPool(NOBODY, 4).map_unordered(work, range(4))
    time.sleep(0.05)
    assert work.begun == []


def test_results_come_as_they_are_done() -> None:
    may = {item: threading.Event() for item in "abc"}

    def work(_: Connection, item: str) -> str:
        assert may[item].wait(10)
        return item

    came = []
    may["c"].set()
    for item, _ in DownloadPool(NOBODY, 3).map_unordered(work, "abc"):
        came.append(item)
        may["b" if item == "c" else "a"].set()
    assert came == ["c", "b", "a"]

    done = {item: threading.Event() for item in "abcd"}

    def after_the_next(_: Connection, item: str) -> str:
        assert done[chr(ord(item) + 1)].wait(10)
        done[item].set()
        return item

    done["d"].set()
    assert list(DownloadPool(NOBODY, 3).map(after_the_next, "abc")) == ["a", "b", "c"]


def test_mapped_results_come_as_soon_as_their_turn_has() -> None:
    first_is_here = threading.Event()

    def work(_: Connection, item: int) -> int:
        assert not item or first_is_here.wait(10)
        return item

    results = DownloadPool(NOBODY, 2).map(work, range(2))
    assert next(results) == 0
    first_is_here.set()
    assert list(results) == [1]


def test_items_that_are_equal_are_several() -> None:
    assert list(DownloadPool(NOBODY, 2).map(Work(), ["a", "a", "b", "a"])) == ["a", "a", "b", "a"]


def test_a_result_may_be_an_error() -> None:
    """Only what is raised ends it."""

    def work(_: Connection, item: int) -> Exception:
        return ValueError(item)

    assert [str(error) for error in DownloadPool(NOBODY, 2).map(work, range(3))] == ["0", "1", "2"]


# The end before all is done.


def test_an_error_ends_it_and_nothing_more_is_begun() -> None:
    work = Work(seconds=0.02, wrong=5)
    with pytest.raises(ValueError, match="5 is wrong"):
        list(DownloadPool(NOBODY, 2).map_unordered(work, range(200)))
    begun = len(work.begun)
    assert begun < 20
    assert soon(lambda: not threads())
    assert len(work.begun) <= begun + 1


def test_an_error_ends_a_map_as_well() -> None:
    with pytest.raises(ValueError, match="0 is wrong"):
        list(DownloadPool(NOBODY, 2).map(Work(wrong=0), range(200)))


def test_an_error_does_not_wait_for_the_others() -> None:
    told, in_time = threading.Event(), list[bool]()

    def work(_: Connection, item: int) -> None:
        if item:
            in_time.append(told.wait(10))
        raise ValueError(item)

    with pytest.raises(ValueError, match="0"):
        list(DownloadPool(NOBODY, 2).map_unordered(work, range(2)))
    told.set()
    assert soon(lambda: not threads())
    assert in_time in ([], [True])  # the other one may not have begun


def test_closing_it_early_stops_the_rest() -> None:
    work = Work(seconds=0.02)
    results = DownloadPool(NOBODY, 2).map_unordered(work, range(200))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert soon(lambda: not threads())
    assert len(work.begun) < 10


def test_a_place_that_cannot_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nothing" / "here"))
    (tmp_path / "nothing").write_text("a file")
    with pytest.raises(OSError, match="nothing"):
        list(DownloadPool(NOBODY, 2).map_unordered(Work(), range(5)))


# Places and turns.


@pytest.fixture
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "TURN_SECONDS", 0.05)


def test_more_threads_than_places_wait_for_each_other() -> None:
    two = Server(NOBODY.base_url, NOBODY.user_agent, RateLimiter("nobody", 2, 1000))
    work = Work()
    assert len(list(DownloadPool(two, 6).map_unordered(work, range(40)))) == 40
    assert work.most == 2


@pytest.mark.usefixtures("short_turns")
def test_with_turns_each_thread_has_one() -> None:
    one = Server(NOBODY.base_url, NOBODY.user_agent, RateLimiter("nobody", 1, 1000))
    work = Work(seconds=0.02)
    assert len(list(DownloadPool(one, 3).map_unordered(work, range(40)))) == 40
    assert work.most == 1
    assert len(work.connections) > 1


@pytest.mark.usefixtures("short_turns")
def test_somebody_else_has_a_turn_before_all_is_done() -> None:
    one = Server(NOBODY.base_url, NOBODY.user_agent, RateLimiter("nobody", 1, 1000))
    work = Work(seconds=0.02)

    def other() -> int:
        with one.rate_limiter.acquire_slot():
            return len(work.begun)

    results = DownloadPool(one, 1).map_unordered(work, range(20))
    next(results)
    with ThreadPoolExecutor(1) as thread:
        waits = thread.submit(other)
        list(results)
        assert waits.result() < 15


# With a server.


def test_threads_keep_their_connections(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number}.txt").write_text(str(number))
    with FakeServer(tmp_path) as server:
        asked = DownloadPool(make_server(server.url), 3)
        urls = [f"{server.url}{number}.txt" for number in range(30)]
        bodies = [answer.body for answer in asked.map(lambda each, url: each.read(url, 10), urls)]
        assert bodies == [str(number).encode() for number in range(30)]
        assert server.connections <= 3
        assert len(server.requests) == 30


def test_what_a_server_refuses_ends_it(tmp_path: Path) -> None:
    with FakeServer(tmp_path) as server:
        server.schedule_fault("*", NotFound(), times=None)
        with pytest.raises(NotFoundError, match="404"):
            list(
                DownloadPool(make_server(server.url), 2).map(
                    lambda each, url: each.read(url, 10), [server.url] * 50
                )
            )
        assert len(server.requests) < 10
