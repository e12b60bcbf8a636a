"""Responses of the fake server: listings and files of its folder, changed by scheduled faults."""

from __future__ import annotations

import fcntl
import io
import math
import os
import re
import socket
import struct
import termios
import threading
import time
from dataclasses import dataclass
from email.utils import formatdate
from html import escape
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.servers.server_faults import (
    ConnectionReset,
    CorruptByte,
    EndlessBody,
    Fault,
    FixedBody,
    FunctionCall,
    HtmlPage,
    NoResponse,
    NotFound,
    RangeIgnored,
    Redirect,
    ServiceUnavailable,
    SlowBody,
    Stall,
    TruncatedBody,
)
from tests.support.servers.server_pages import apache_listing, ncbi_listing, s3_listing

if TYPE_CHECKING:
    from tests.support.servers.fake_server import FakeServer


class Throttle:
    """A rate in bytes a second, shared by connections."""

    def __init__(self, bytes_per_second: float) -> None:
        self.rate = bytes_per_second
        self._lock = threading.Lock()
        self._free_at = time.monotonic()
        self.chunk_size = max(1, min(65536, int(bytes_per_second / 20)))

    def delay(self, size: int) -> float:
        """Return the seconds to wait before ``size`` more bytes may be sent."""
        with self._lock:
            self._free_at = max(self._free_at, time.monotonic()) + size / self.rate
            return self._free_at - time.monotonic()


@dataclass
class _Response:
    status: int
    body: BinaryIO
    length: float
    headers: dict[str, str]


def _make_response(
    status: int, data: bytes, content_type: str = "text/html;charset=UTF-8", **headers: str
) -> _Response:
    header_fields = {name.replace("_", "-"): value for name, value in headers.items()}
    header_fields |= {"Content-Type": content_type, "Content-Length": str(len(data))}
    return _Response(status, io.BytesIO(data), len(data), header_fields)


def _make_chunked_response(page: bytes, content_type: str) -> _Response:
    """Make a chunked response, without a Content-Length."""
    chunked_body = f"{len(page):x}\r\n".encode() + page + b"\r\n0\r\n\r\n"
    headers = {"Content-Type": content_type, "Transfer-Encoding": "chunked"}
    return _Response(200, io.BytesIO(chunked_body), len(chunked_body), headers)


class _EndlessBytes(io.BytesIO):
    """A stream that repeats the same bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data * (65536 // len(data) + 1))

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            self.seek(0)
            data = super().read(size)
        return data


_S3_CODES = {404: "NoSuchKey", 416: "InvalidRange", 503: "SlowDown"}
_CONTENT_TYPES = {
    ".gz": "application/x-gzip",
    ".xml": "text/xml",
    ".json": "application/json",
    ".txt": "text/plain",
}


class FakeServerHandler(BaseHTTPRequestHandler):
    """The handler of one connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FakeServer

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        self.requested_path = unquote(address.path).lstrip("/")
        self.request_number, fault = self.server.record_request(self, self.requested_path, address.query)
        self.server.wait(self.server.latency)
        if isinstance(fault, NoResponse):
            self.close_connection = True
            return
        if isinstance(fault, FunctionCall):
            fault.function()
        answer = self._fault_response(fault) or self._resource_response(address.query, fault)
        with answer.body:
            self._send(answer, fault)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    # Choose the response

    def _fault_response(self, fault: Fault | None) -> _Response | None:
        match fault:
            case ServiceUnavailable(None, status):
                return self._error_response(status)
            case ServiceUnavailable(retry_after, status):
                return self._error_response(status, Retry_After=str(retry_after))
            case NotFound():
                return self._error_response(404)
            case HtmlPage(text):
                return _make_response(200, text.encode())
            case FixedBody(data):
                return _make_response(200, data, "application/octet-stream")
            case EndlessBody(data):
                return _Response(200, _EndlessBytes(data), math.inf, {"Connection": "close"})
            case Redirect(location):
                return _make_response(302, b"", Location=location)
        return None

    def _error_response(self, status: int, **headers: str) -> _Response:
        phrase = self.responses.get(status, ("Error", ""))[0]
        if self.requested_path.startswith("bucket/"):
            code = _S3_CODES.get(status, phrase.replace(" ", ""))
            key = escape(self.requested_path.removeprefix("bucket/"))
            xml = f"<Error><Code>{code}</Code><Message>{phrase}</Message><Key>{key}</Key></Error>"
            xml = f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}'
            return _make_response(status, xml.encode(), "application/xml", **headers)
        page = f"<html><head><title>{status} {phrase}</title></head><body><h1>{phrase}</h1></body></html>\n"
        return _make_response(status, page.encode(), **headers)

    def _resource_response(self, query: str, fault: Fault | None) -> _Response:
        path = self.server.root / self.requested_path
        if self.requested_path == "bucket/":
            page = s3_listing(path, dict(parse_qsl(query)), self.server.page_size, self.server.md5)
            return _make_chunked_response(page, "application/xml")
        if path.is_dir() and not self.requested_path.startswith("bucket/"):
            if self.requested_path and not self.requested_path.endswith("/"):
                return _make_response(301, b"", Location=f"{self.server.url}{self.requested_path}/")
            page_of = apache_listing if self.requested_path.startswith("europepmc/") else ncbi_listing
            return _make_chunked_response(page_of(path, f"/{self.requested_path}"), "text/html;charset=UTF-8")
        if not path.is_file() or self.requested_path.endswith("/"):
            return self._error_response(404)
        return self._file_response(path, fault)

    def _file_response(self, path: Path, fault: Fault | None) -> _Response:
        """Make the response of a file or of a range of it."""
        file = path.open("rb")
        info = os.fstat(file.fileno())
        if self.requested_path.startswith("bucket/"):
            etag = self.server.md5(file)
        else:  # as Apache makes them
            etag = f"{info.st_size:x}-{info.st_mtime_ns // 1000:x}"
        headers = {
            "Content-Type": _CONTENT_TYPES.get(path.suffix, "application/octet-stream"),
            "ETag": f'"{etag}"',
            "Last-Modified": formatdate(info.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        start, end, status = 0, info.st_size, 200
        byte_range = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        is_unchanged = self.headers.get("If-Range") in (None, headers["ETag"], headers["Last-Modified"])
        if byte_range and is_unchanged and not isinstance(fault, RangeIgnored):
            start, status = int(byte_range[1]), 206
            end = min(end, int(byte_range[2]) + 1) if byte_range[2] else end
            if start >= end:
                file.close()
                return self._error_response(416, Content_Range=f"bytes */{info.st_size}")
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{info.st_size}"
        headers["Content-Length"] = str(end - start)
        file.seek(start)
        if isinstance(fault, CorruptByte) and start <= fault.at_byte < end:
            with file:
                data = bytearray(file.read(end - start))
            data[fault.at_byte - start] ^= 0xFF
            return _Response(status, io.BytesIO(data), end - start, headers)
        return _Response(status, file, end - start, headers)

    # Send the response

    def _send(self, answer: _Response, fault: Fault | None) -> None:
        byte_limit = (
            fault.after_bytes if isinstance(fault, ConnectionReset | TruncatedBody | Stall) else math.inf
        )
        if isinstance(fault, Stall) and byte_limit == 0:
            self.server.wait(fault.seconds)
        self.server.update_request(self.request_number, answer.status)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        throttle = Throttle(fault.bytes_per_second) if isinstance(fault, SlowBody) else None
        remaining = answer.length - self._copy(answer.body, min(byte_limit, answer.length), throttle)
        if isinstance(fault, Stall) and byte_limit > 0:
            self.server.wait(fault.seconds)
            remaining -= self._copy(answer.body, remaining, throttle)
        if isinstance(fault, ConnectionReset):
            self._reset()
        if remaining or isinstance(fault, ConnectionReset | TruncatedBody):
            self.close_connection = True

    def _copy(self, body: BinaryIO, size: float, throttle: Throttle | None) -> int:
        """Send at most ``size`` bytes of the body, and return their number."""
        throttles = [
            active_throttle for active_throttle in (throttle, self.server.throttle) if active_throttle
        ]
        sent = 0
        while data := body.read(
            int(min(size - sent, 65536, *(active_throttle.chunk_size for active_throttle in throttles)))
        ):
            for active_throttle in throttles:
                self.server.wait(active_throttle.delay(len(data)))
            self.server.update_request(self.request_number, sent=len(data))
            self.wfile.write(data)
            sent += len(data)
        return sent

    def _reset(self) -> None:
        """Wait until the client's machine has received the data, then reset the connection."""
        unsent = bytearray(4)
        for _ in range(1000):
            fcntl.ioctl(self.connection, termios.TIOCOUTQ, unsent)
            if not any(unsent):
                break
            self.server.wait(0.005)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
