"""Servers with short pauses and prepared responses, for the tests of downloads."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

from bioshards.corpus.download.http_client import Connection, Server
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.storage.retry import RetryPolicy

FAST_RETRY = RetryPolicy(
    connect_timeout=60,
    read_timeout=60,
    min_bytes_per_second=1000,
    max_attempts=4,
    initial_backoff=0.01,
    max_backoff=0.04,
)


def make_server(
    url: str, retry_policy: RetryPolicy = FAST_RETRY, connections: int = 4, per_second: float = 500
) -> Server:
    return Server(
        url, "bioshards/test", RateLimiter(urlsplit(url).netloc, connections, per_second), retry_policy
    )


def open_connection(
    url: str, retry_policy: RetryPolicy = FAST_RETRY
) -> contextlib.AbstractContextManager[Connection]:
    return make_server(url, retry_policy).connect()


class Clock:
    """A clock that advances only while somebody sleeps, or as a test sets it.

    ``slept`` is the total in seconds; ``before_sleep`` is called before each sleep.
    """

    def __init__(self) -> None:
        self.now, self.slept = 2e9, 0.0
        self.before_sleep: Callable[[], None] = lambda: None

    def time(self) -> float:
        return self.now

    monotonic = time

    def sleep(self, seconds: float) -> None:
        assert seconds >= 0
        self.before_sleep()
        self.now += seconds
        self.slept += seconds


class CannedServer:
    """A server that sends each request the next of the given responses, byte for byte, and closes.

    The last response is repeated.  A function makes a response of the request head.  ``request_heads`` has
    the request heads.
    """

    def __init__(self, *answers: bytes | Iterator[bytes] | Callable[[str], bytes]) -> None:
        self._answers = answers
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self.request_heads: list[str] = []

    def __enter__(self) -> CannedServer:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # the end of the test
            while True:
                connection, _ = self._socket.accept()
                with connection, contextlib.suppress(ConnectionError):
                    self.request_heads.append(connection.recv(65536).decode())
                    answer = self._answers[min(len(self.request_heads), len(self._answers)) - 1]
                    if callable(answer):
                        answer = answer(self.request_heads[-1])
                    for chunk in (answer,) if isinstance(answer, bytes) else answer:
                        connection.sendall(chunk)


def http_response(status_and_headers: str, body: bytes = b"", length: int | str | None = None) -> bytes:
    """Format a response with a status line, headers (lines without their ends) and a Content-Length."""
    lines = [f"HTTP/1.1 {status_and_headers}", f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1") + body
