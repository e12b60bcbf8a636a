"""Adapter of requests against servers that are slow, or that send what is no body.

Headers have a time limit, bodies a minimum throughput: the socket's time-out bounds the wait for the next
byte only, and a byte a second would keep a request for days. What surrounds a body has a limit in bytes:
interim responses (100 Continue), trailers and the extensions of chunks have no end of their own.
"""

from __future__ import annotations

import functools
import http.client
import io
import time
from typing import Any, Final

from requests.adapters import HTTPAdapter

from bioshards.corpus.storage.retry import RetryPolicy

MAX_OVERHEAD_BYTES: Final = 1 << 20
"""Bytes around a body: headers have a few thousand."""
_MAX_OVERHEAD_RATIO: Final = 16
"""Bytes that may surround a byte of a body: a chunk of one byte has 5."""


class MinThroughputAdapter(HTTPAdapter):
    """Opens connections whose responses are measured as they arrive.

    A read raises TimeoutError if a header takes longer than the policy's ``read_timeout``, or if a body
    brings less than ``min_bytes_per_second`` over that time.  Only the time spent in waiting counts.  It
    raises ConnectionError if the server sends more than :data:`MAX_OVERHEAD_BYTES` that are no body.
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

    def read1(self, n: int = -1) -> bytes:
        data = super().read1(n)
        self._reader.count_body(len(data))
        return data


class _MeasuredReader(io.RawIOBase):
    def __init__(self, raw: io.RawIOBase, policy: RetryPolicy) -> None:
        self._raw, self._policy = raw, policy
        self._is_header = True
        self._seconds, self._bytes, self._overhead = 0.0, 0, 0

    def count_body(self, size: int) -> None:
        """Count bytes of the body, which what surrounds them may exceed as often as the ratio says."""
        self._overhead = max(0, self._overhead - _MAX_OVERHEAD_RATIO * size)

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
        self._overhead += size or 0
        if self._overhead > MAX_OVERHEAD_BYTES:
            raise ConnectionError(
                f"it sends more than {MAX_OVERHEAD_BYTES:,} bytes that are no part of a file"
            )
        if self._seconds > self._policy.read_timeout:
            if self._is_header:
                raise TimeoutError(f"its header has no end after {self._seconds:.0f} seconds")
            if self._bytes < self._policy.min_bytes_per_second * self._seconds:
                raise TimeoutError(f"it sends only {self._bytes / self._seconds:.0f} bytes a second")
            self._seconds, self._bytes = 0.0, 0
        return size
