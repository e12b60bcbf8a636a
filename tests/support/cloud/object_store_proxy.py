"""A proxy between a run and an object store of store_emulators.py: it injects faults and counts requests.

with run_s3() as store, ObjectStoreProxy(store) as proxy:
    proxy.schedule_fault("PUT", "*/staged/*", ServiceUnavailable(), times=2)
    run_beam("run", ..., "--output", f"{proxy.store.url}/out", *proxy.store.options)
    assert proxy.count_requests()["PUT"] <= 10
"""

from __future__ import annotations

import collections
import http.client
import socket
import struct
import threading
import time
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import unquote, urlsplit

from tests.support.cloud.store_emulators import EmulatedStore
from tests.support.servers.server_faults import ConnectionReset, ServiceUnavailable, Stall, TruncatedBody


@dataclass(frozen=True)
class UploadReset:
    """The connection is reset after this number of bytes of the request body."""

    after_bytes: int


@dataclass(frozen=True)
class MissingUpload:
    """S3's response for an upload whose parts are gone."""


@dataclass(frozen=True)
class LostResponse:
    """The store executes the request, and the connection is reset in place of the response."""


@dataclass(frozen=True)
class ErrorCode:
    """A response with a status and one of the codes of S3."""

    status: int
    code: str


@dataclass(frozen=True)
class ChecksumsUnsupported:
    """The response of a server that does not know the checksums that Amazon's client sends since 2025."""


@dataclass(frozen=True)
class RangesIgnored:
    """The response of a server, or of what is between, that sends the whole object for each range."""


StoreFault = (
    ServiceUnavailable
    | Stall
    | ConnectionReset
    | TruncatedBody
    | UploadReset
    | MissingUpload
    | LostResponse
    | ErrorCode
    | ChecksumsUnsupported
    | RangesIgnored
)

_CHECKSUMS = ("x-amz-checksum-", "x-amz-sdk-checksum-", "x-amz-trailer")
_NOT_IMPLEMENTED = (
    b"<Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not "
    b"implemented</Message></Error>"
)
_NO_SUCH_UPLOAD = b"<Error><Code>NoSuchUpload</Code><Message>There is no such upload.</Message></Error>"


@dataclass
class _ScheduledFault:
    method: str
    pattern: str
    fault: StoreFault
    remaining: int | None


class ObjectStoreProxy(ThreadingHTTPServer):
    """A proxy of an object store; it runs inside ``with``.

    Attributes:
        store: the store at the proxy's address.
        requests: (method, decoded path with query) of all requests.
        bytes_read: bytes of response bodies.
        num_connections: connections that were opened.
    """

    request_queue_size = 128
    daemon_threads = True

    def __init__(self, upstream: EmulatedStore) -> None:
        super().__init__(("127.0.0.1", 0), _ProxyHandler)
        endpoint = f"http://127.0.0.1:{self.server_address[1]}"
        self.store = replace(
            upstream,
            endpoint=endpoint,
            options=[word.replace(upstream.endpoint, endpoint) for word in upstream.options],
            environment=dict.fromkeys(upstream.environment, endpoint),
        )
        self.upstream = upstream
        self.requests: list[tuple[str, str]] = []
        self.bytes_read = self.num_connections = 0
        self._scheduled_faults: list[_ScheduledFault] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count the connection."""
        self.num_connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections that a fault closed."""

    def schedule_fault(self, method: str, pattern: str, fault: StoreFault, times: int | None = 1) -> None:
        """Inject a fault into the next requests of a kind; None: into all."""
        self._scheduled_faults.append(_ScheduledFault(method, pattern, fault, times))

    def pending_fault_count(self) -> int:
        """Number of scheduled faults that have not happened."""
        return sum(script.remaining or 0 for script in self._scheduled_faults)

    def reset(self) -> None:
        """Remove all faults and reset the request counts."""
        self._scheduled_faults.clear()
        self.requests.clear()
        self.bytes_read = self.num_connections = 0

    def next_fault(self, method: str, path: str) -> StoreFault | None:
        with self._lock:
            self.requests.append((method, path))
            for script in self._scheduled_faults:
                if script.remaining != 0 and method == script.method and fnmatchcase(path, script.pattern):
                    script.remaining = None if script.remaining is None else script.remaining - 1
                    return script.fault
        return None

    def count_requests(self) -> collections.Counter[str]:
        """Count requests of each kind: GET (of bytes), HEAD, LIST, PUT, DELETE, other."""
        return collections.Counter(_request_kind(method, path) for method, path in self.requests)


def _request_kind(method: str, path: str) -> str:
    query = path.partition("?")[2]
    if method == "GET" and any(word in query for word in ("list-type=2", "comp=list", "uploads")):
        return "LIST"
    if method == "POST" and "comp=batch" in query:  # Azure's
        return "DELETE"
    return method if method in ("GET", "HEAD", "PUT", "DELETE") else "other"


class _ProxyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: ObjectStoreProxy

    def _handle(self) -> None:
        fault = self.server.next_fault(self.command, unquote(self.path))
        if isinstance(fault, UploadReset):
            self.rfile.read(min(fault.after_bytes, int(self.headers.get("Content-Length", 0))))
            return self._reset_connection()
        if self.headers.get("Expect", "").lower() == "100-continue":
            self.wfile.flush()
        body = self._read_body()
        if isinstance(fault, ServiceUnavailable):
            return self._send(fault.status, [], b"<Error><Code>ServiceUnavailable</Code></Error>")
        if isinstance(fault, ErrorCode):
            return self._send(fault.status, [], f"<Error><Code>{fault.code}</Code></Error>".encode())
        if isinstance(fault, ChecksumsUnsupported) and any(
            name.lower().startswith(_CHECKSUMS) for name in self.headers
        ):
            return self._send(501, [("Content-Type", "application/xml")], _NOT_IMPLEMENTED)
        if isinstance(fault, RangesIgnored):
            del self.headers["Range"]
        if isinstance(fault, MissingUpload):
            return self._send(404, [("Content-Type", "application/xml")], _NO_SUCH_UPLOAD)
        if isinstance(fault, Stall) and not fault.after_bytes:
            time.sleep(fault.seconds)
        status, headers, data = self._forward(body)
        if isinstance(fault, LostResponse):
            return self._reset_connection()
        self._send(status, headers, data, fault)
        return None

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        upstream_connection = http.client.HTTPConnection(urlsplit(self.server.upstream.endpoint).netloc)
        headers = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("transfer-encoding", "content-length", "expect", "connection")
        }
        try:
            upstream_connection.request(
                self.command, self.path, body or None, {**headers, "Content-Length": str(len(body))}
            )
            response = upstream_connection.getresponse()
            response_headers = [
                (name, value.replace(self.server.upstream.endpoint, self.server.store.endpoint))
                for name, value in response.getheaders()
                if name.lower() not in ("transfer-encoding", "connection", "date", "server")
            ]
            return response.status, response_headers, response.read()
        finally:
            upstream_connection.close()

    def _send(
        self, status: int, headers: list[tuple[str, str]], data: bytes, fault: StoreFault | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers:
            if name.lower() != "content-length" or self.command == "HEAD":
                self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.server.bytes_read += len(data)
        if isinstance(fault, Stall) and fault.after_bytes:
            self.wfile.write(data[: fault.after_bytes])
            time.sleep(fault.seconds)
            data = data[fault.after_bytes :]
        if isinstance(fault, ConnectionReset | TruncatedBody):
            self.wfile.write(data[: fault.after_bytes])
            self.close_connection = True
            if isinstance(fault, ConnectionReset):
                self._reset_connection()
            return
        self.wfile.write(data)

    def _reset_connection(self) -> None:
        """Reset the connection; the client sees the reset after reading the data sent before."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: object) -> None:
        """Log nothing."""
