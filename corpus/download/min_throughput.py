"""Adapter of requests against slow servers: a time limit for headers, a minimum throughput for bodies.

The socket's time-out bounds the wait for the next byte only; a byte a second would keep a request for days.
"""

from __future__ import annotations

import functools
import http.client
import io
import time
from typing import Any

from requests.adapters import HTTPAdapter

from bioshards.corpus.storage.retry import RetryPolicy


class MinThroughputAdapter(HTTPAdapter):
    """Opens connections whose responses are measured as they arrive.

    A read raises TimeoutError if a header takes longer than the policy's ``read_timeout``, or if a body
    brings less than ``min_bytes_per_second`` over that time.  Only the time spent in waiting counts.
    """

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        super().__init__()

    def get_connection_with_tls_context(self, *args: Any, **kwargs: Any) -> Any:
        pool: Any = super().get_connection_with_tls_context(*args, **kwargs)
        pool.ConnectionCls = functools.partial(_make_connection, type(pool).ConnectionCls, self._policy)
        return pool


def _make_connection(connection_class: Any, policy: RetryPolicy, *args: Any, **kwargs: Any) -> Any:
    connection = connection_class(*args, **kwargs)
    connection.response_class = functools.partial(_MeasuredResponse, policy)
    return connection


class _MeasuredResponse(http.client.HTTPResponse):
    def __init__(self, policy: RetryPolicy, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._reader = _MeasuredReader(self.fp.detach(), policy)
        self.fp = io.BufferedReader(self._reader)

    def begin(self) -> None:
        super().begin()
        self._reader.begin_body()


class _MeasuredReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, policy: RetryPolicy) -> None:
        self._raw, self._policy = raw, policy
        self._is_header = True
        self._seconds, self._bytes = 0.0, 0

    def begin_body(self) -> None:
        """End the header: what follows is measured by its throughput."""
        self._is_header = False
        self._seconds, self._bytes = 0.0, 0

    def readable(self) -> bool:
        return True

    def close(self) -> None:
        self._raw.close()
        super().close()

    def readinto(self, buffer: Any) -> int | None:
        started = time.monotonic()
        size = self._raw.readinto(buffer)
        self._seconds += time.monotonic() - started
        self._bytes += size or 0
        if self._seconds > self._policy.read_timeout:
            if self._is_header:
                raise TimeoutError(f"its header has no end after {self._seconds:.0f} seconds")
            if self._bytes < self._policy.min_bytes_per_second * self._seconds:
                raise TimeoutError(f"it sends only {self._bytes / self._seconds:.0f} bytes a second")
            self._seconds, self._bytes = 0.0, 0
        return size
