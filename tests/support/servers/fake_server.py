"""A fake of the file servers of NCBI and Europe PMC and of the PMC bucket: a folder, served on loopback.

    ROOT/pubmed/baseline/, ROOT/pubmed/updatefiles/    listed as by NCBI
    ROOT/europepmc/                                    listed as by Europe PMC's Apache
    ROOT/bucket/KEY                                    an object; /bucket/?list-type=2&prefix=... S3's listing

It injects scheduled faults, and records requests:

    with FakeServer(root) as server:
        server.schedule_fault("pubmed/baseline/*2.xml.gz", ConnectionReset(after_bytes=10_000), times=2)
        ... server.url ...
        assert server.max_open_connections <= 4
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import sys
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from http.server import ThreadingHTTPServer
from io import BufferedReader
from pathlib import Path
from typing import Any, Self

from tests.support.servers.fake_server_responses import FakeServerHandler, Throttle
from tests.support.servers.server_faults import Fault


@dataclass(frozen=True)
class RecordedRequest:
    """A request and its response.

    Attributes:
        path: decoded, without the leading slash.
        query: undecoded.
        headers: request headers by lower-case name.
        received_at: seconds since the start of the server.
        connection: number of the connection, from 1.
        status: status of the response; 0 if none was sent.
        bytes_sent: bytes of the body written to the connection, with chunk headers of a listing.
    """

    method: str
    path: str
    query: str
    headers: dict[str, str]
    received_at: float
    connection: int
    status: int = 0
    bytes_sent: int = 0

    @property
    def range(self) -> str:
        """The Range header, '' without one."""
        return self.headers.get("range", "")


@dataclass
class _ScheduledFault:
    pattern: str
    fault: Fault
    remaining: int | None


class FakeServer(ThreadingHTTPServer):
    """The fake server; it runs inside ``with``.

    Attributes:
        url: its address, ``http://127.0.0.1:PORT/``.
        latency: seconds before each response.
        page_size: maximum of entries on a page of the bucket's listing.
        connections: number of connections opened so far.
        max_open_connections: largest number of connections open at the same time.
    """

    request_queue_size = 128

    def __init__(self, root: Path) -> None:
        super().__init__(("127.0.0.1", 0), FakeServerHandler)
        self.root = root
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.latency = 0.0
        self.page_size = 1000
        self.connections = self.max_open_connections = 0
        self.throttle: Throttle | None = None
        self._condition = threading.Condition()
        self._stopping = threading.Event()
        self._started = time.monotonic()
        self._requests: list[RecordedRequest] = []
        self._scheduled_faults: list[_ScheduledFault] = []
        self._open: dict[socket.socket, int] = {}
        self._errors: list[BaseException] = []
        self._md5_cache: dict[tuple[int, int, int], str] = {}

    # For tests

    def schedule_fault(self, pattern: str, fault: Fault, times: int | None = 1) -> None:
        """Inject a fault into the next ``times`` requests (None: all) for a path pattern (``pubmed/*.gz``).

        A request gets the first matching fault, in scheduled order, that has uses remaining.
        """
        with self._condition:
            self._scheduled_faults.append(_ScheduledFault(pattern, fault, times))

    def clear_faults(self) -> None:
        """Remove all scheduled faults."""
        with self._condition:
            self._scheduled_faults.clear()

    @property
    def pending_faults(self) -> list[Fault]:
        """Scheduled faults with uses remaining."""
        with self._condition:
            return [scheduled.fault for scheduled in self._scheduled_faults if scheduled.remaining]

    @property
    def bytes_per_second(self) -> float | None:
        """Rate of all connections together; None: unlimited."""
        return self.throttle.rate if self.throttle else None

    @bytes_per_second.setter
    def bytes_per_second(self, rate: float | None) -> None:
        self.throttle = Throttle(rate) if rate else None

    @property
    def requests(self) -> list[RecordedRequest]:
        """All requests so far, in order of arrival."""
        with self._condition:
            return list(self._requests)

    def requests_for(self, pattern: str = "*") -> list[RecordedRequest]:
        """Requests for matching paths."""
        return [request for request in self.requests if fnmatchcase(request.path, pattern)]

    def bytes_sent_for(self, pattern: str = "*") -> int:
        """Bytes of bodies sent for matching paths."""
        return sum(request.bytes_sent for request in self.requests_for(pattern))

    def max_requests_per_second(self, pattern: str = "*") -> int:
        """The largest number of requests for matching paths within one second."""
        times = sorted(request.received_at for request in self.requests_for(pattern))
        return max((bisect_left(times, start + 1) - index for index, start in enumerate(times)), default=0)

    @property
    def open_connections(self) -> int:
        """Number of connections that are open at the client's end."""
        with self._condition:
            return sum(not _is_closed_by_client(connection) for connection in self._open)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Stop at once, and raise the first error of a :class:`FunctionCall` or of the server."""
        self._stopping.set()
        self.shutdown()
        self.server_close()
        with self._condition:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._condition.wait_for(lambda: not self._open, timeout=1)
        if self._errors and kind is None:
            raise self._errors[0]

    # For request handlers

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._condition:
            self.connections += 1
            self._open[request] = self.connections
        self.max_open_connections = max(self.max_open_connections, self.open_connections)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; it leaves the count before the client can see the end."""
        with self._condition:
            self._open.pop(request, None)
            self._condition.notify_all()
        if any(request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[:4]):
            self.close_request(request)  # a reset, without a FIN before it
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if error and not isinstance(error, ConnectionError):
            self._errors.append(error)
            super().handle_error(request, client_address)  # prints to the stderr of the test

    def record_request(self, handler: FakeServerHandler, path: str, query: str) -> tuple[int, Fault | None]:
        """Record a request; return its index and the fault to inject."""
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self._condition:
            received_at, connection = time.monotonic() - self._started, self._open[handler.connection]
            self._requests.append(
                RecordedRequest(handler.command, path, query, headers, received_at, connection)
            )
            for scheduled in self._scheduled_faults:
                if scheduled.remaining != 0 and fnmatchcase(path, scheduled.pattern):
                    if scheduled.remaining:
                        scheduled.remaining -= 1
                    return len(self._requests) - 1, scheduled.fault
            return len(self._requests) - 1, None

    def update_request(self, index: int, status: int | None = None, sent: int = 0) -> None:
        """Record a status, and bytes before they are sent: a client never has more than are counted."""
        with self._condition:
            recorded = self._requests[index]
            self._requests[index] = replace(
                recorded, status=status or recorded.status, bytes_sent=recorded.bytes_sent + sent
            )

    def wait(self, seconds: float) -> None:
        """Sleep; raise ConnectionAbortedError when the server stops."""
        if seconds > 0 and self._stopping.wait(seconds):
            raise ConnectionAbortedError("the stand-in is ending")

    def md5(self, file: BufferedReader) -> str:
        """Return the MD5 of a file that is open at its beginning, cached until the file changes."""
        info = os.fstat(file.fileno())
        file_identity = info.st_ino, info.st_size, info.st_mtime_ns
        if file_identity not in self._md5_cache:
            self._md5_cache[file_identity] = hashlib.file_digest(file, "md5").hexdigest()
        return self._md5_cache[file_identity]


def _is_closed_by_client(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True
