"""A stand-in for NCBI's file server, Europe PMC's and the PMC bucket: a folder, served on loopback.

    ROOT/pubmed/baseline/, ROOT/pubmed/updatefiles/    listed as NCBI does
    ROOT/europepmc/                                    listed as Apache does for Europe PMC
    ROOT/bucket/KEY                                    an object; /bucket/?list-type=2&prefix=... S3's listing

It makes the faults that it is told to make, and measures what is asked of it:

    with StandIn(root) as server:
        server.fault("pubmed/baseline/*2.xml.gz", Reset(after_bytes=10_000), times=2)
        ... server.url ...
        assert server.most_connections <= 4

By hand, until Ctrl-C: ``python -m tests.standin FOLDER --port 8080``.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import hashlib
import io
import math
import re
import socket
import struct
import sys
import termios
import threading
import time
from bisect import bisect_left
from dataclasses import dataclass, replace
from email.utils import formatdate
from fnmatch import fnmatchcase
from html import escape
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.standin_faults import (
    Body,
    Call,
    Corrupt,
    Endless,
    Fault,
    Html,
    Ignore,
    Missing,
    NoRange,
    Redirect,
    Replace,
    Reset,
    Slow,
    Stall,
    Truncate,
    Unavailable,
)
from tests.standin_pages import BadQuery, apache_page, ncbi_page, publish, s3_page

__all__ = [
    "Body",
    "Call",
    "Corrupt",
    "Endless",
    "Fault",
    "Html",
    "Ignore",
    "Missing",
    "NoRange",
    "Redirect",
    "Replace",
    "Request",
    "Reset",
    "Slow",
    "Stall",
    "StandIn",
    "Truncate",
    "Unavailable",
]


@dataclass(frozen=True)
class Request:
    """What was asked and what was answered.

    Attributes:
        path: without the leading slash, percent signs decoded.
        query: as it came.
        range: the Range header, '' without one.
        at: seconds from the server's start.
        connection: its number, from 1.
        headers: the request's, by lower-case name.
        status: of the answer; 0 if there was none (yet).
        sent: bytes of the body given to the connection (of a listing with the marks of its chunks).
    """

    method: str
    path: str
    query: str
    range: str
    at: float
    connection: int
    headers: dict[str, str]
    status: int = 0
    sent: int = 0


@dataclass
class _Script:
    pattern: str
    fault: Fault
    left: int | None


class _Pace:
    """So many bytes a second, over all who share it."""

    def __init__(self, bytes_per_second: float) -> None:
        self.rate = bytes_per_second
        self._lock = threading.Lock()
        self._free = time.monotonic()
        self.piece = max(1, min(65536, int(bytes_per_second / 20)))

    def delay(self, size: int) -> float:
        """Seconds to wait before ``size`` more bytes may be sent."""
        with self._lock:
            self._free = max(self._free, time.monotonic()) + size / self.rate
            return self._free - time.monotonic()


class StandIn(ThreadingHTTPServer):
    """The server; it runs inside ``with``.

    Attributes:
        url: its address, ``http://127.0.0.1:PORT/``.
        latency: seconds before each answer.
        page_size: entries on a page of the bucket's listing at most.
        connections, most_connections: opened in all; open at the same time, at most.
    """

    request_queue_size = 128

    def __init__(self, root: Path | str, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.root = Path(root)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/"
        self.latency = 0.0
        self.page_size = 1000
        self.connections = self.most_connections = 0
        self.pace: _Pace | None = None
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._started = time.monotonic()
        self._requests: list[Request] = []
        self._scripts: list[_Script] = []
        self._open: dict[socket.socket, int] = {}
        self._errors: list[BaseException] = []
        self._md5 = functools.lru_cache(maxsize=None)(_md5)

    # The test's side.

    def fault(self, pattern: str, fault: Fault, times: int | None = 1) -> None:
        """Make a fault the next ``times`` times (None: always) that a path (``pubmed/*.gz``) is asked for.

        A request takes the first fault in the order given that matches and is not used up.
        """
        with self._changed:
            self._scripts.append(_Script(pattern, fault, times))

    @property
    def unused(self) -> list[Fault]:
        """Faults that have not been made as often as they were asked for."""
        with self._changed:
            return [script.fault for script in self._scripts if script.left]

    @property
    def bytes_per_second(self) -> float | None:
        """What all connections together get; None: as fast as it goes."""
        return self.pace.rate if self.pace else None

    @bytes_per_second.setter
    def bytes_per_second(self, rate: float | None) -> None:
        self.pace = _Pace(rate) if rate else None

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order in which they came."""
        with self._changed:
            return list(self._requests)

    def asked(self, pattern: str = "*") -> list[Request]:
        """The requests for paths that match."""
        return [request for request in self.requests if fnmatchcase(request.path, pattern)]

    def sent(self, pattern: str = "*") -> int:
        """Bytes of bodies sent for paths that match."""
        return sum(request.sent for request in self.asked(pattern))

    def busiest_second(self, pattern: str = "*") -> int:
        """The most requests for matching paths that came within any one second."""
        times = sorted(request.at for request in self.asked(pattern))
        return max((bisect_left(times, at + 1) - i for i, at in enumerate(times)), default=0)

    @property
    def open_connections(self) -> int:
        """Connections open now: those that the client has closed do not count, even if we have yet to."""
        with self._changed:
            return sum(not _closed_by_client(connection) for connection in self._open)

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind: Any, *_: object) -> None:
        """Stop at once, and raise what a :class:`Call` has raised, or a mistake of ours."""
        self._ending.set()
        self.shutdown()
        self.server_close()
        with self._changed:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self._changed.wait_for(lambda: not self._open, timeout=1)
        if self._errors and kind is None:
            raise self._errors[0]

    # The connections' side.

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._changed:
            self.connections += 1
            self._open[request] = self.connections
        self.most_connections = max(self.most_connections, self.open_connections)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Close a connection; it is out of the count before the client can notice."""
        with self._changed:
            self._open.pop(request, None)
            self._changed.notify_all()
        if any(request.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)[:4]):
            self.close_request(request)  # a reset: without the polite FIN before it
        else:
            super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if error and not isinstance(error, ConnectionError):
            self._errors.append(error)

    def began(self, connection: socket.socket, request: Request) -> tuple[int, Fault | None]:
        """Note a request; gives its index and the fault to make."""
        with self._changed:
            at, number = time.monotonic() - self._started, self._open[connection]
            self._requests.append(replace(request, at=at, connection=number))
            for script in self._scripts:
                if script.left != 0 and fnmatchcase(request.path, script.pattern):
                    if script.left:
                        script.left -= 1
                    return len(self._requests) - 1, script.fault
            return len(self._requests) - 1, None

    def note(self, index: int, status: int | None = None, sent: int = 0) -> None:
        """Note a request's status, and bytes before they are sent: who has them finds them counted."""
        with self._changed:
            known = self._requests[index]
            self._requests[index] = replace(known, status=status or known.status, sent=known.sent + sent)

    def wait(self, seconds: float) -> None:
        """Sleep, unless the server is ending."""
        if seconds > 0 and self._ending.wait(seconds):
            raise ConnectionAbortedError("the stand-in is ending")

    def md5(self, path: Path) -> str:
        """A file's MD5, computed once as long as it does not change."""
        info = path.stat()
        return self._md5(path, info.st_ino, info.st_size, info.st_mtime_ns)


def _md5(path: Path, *_stamp: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _closed_by_client(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return False
    except OSError:
        return True


@dataclass
class _Answer:
    status: int
    body: BinaryIO
    length: float
    headers: dict[str, str]


def _said(status: int, data: bytes, kind: str = "text/html;charset=UTF-8", **headers: str) -> _Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    named |= {"Content-Type": kind, "Content-Length": str(len(data))}
    return _Answer(status, io.BytesIO(data), len(data), named)


def _chunked(page: bytes, kind: str) -> _Answer:
    """A page that the server makes as it goes, so that it cannot say its length beforehand."""
    framed = f"{len(page):x}\r\n".encode() + page + b"\r\n0\r\n\r\n"
    return _Answer(
        200, io.BytesIO(framed), len(framed), {"Content-Type": kind, "Transfer-Encoding": "chunked"}
    )


class _Again(io.BytesIO):
    """Bytes that begin again at their end."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            self.seek(0)
            data = super().read(size)
        return data


_S3_CODES = {400: "InvalidArgument", 404: "NoSuchKey", 416: "InvalidRange", 503: "SlowDown"}
_KINDS = {".gz": "application/x-gzip", ".xml": "text/xml", ".json": "application/json", ".txt": "text/plain"}


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        self.asked = unquote(address.path).lstrip("/")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.asked, address.query, headers.get("range", ""), 0.0, 0, headers)
        self.index, fault = self.server.began(self.connection, request)
        self.server.wait(self.server.latency)
        if isinstance(fault, Ignore):
            self.close_connection = True
            return
        if isinstance(fault, Call):
            fault.function()
        answer = self._scripted(fault) or self._found(address.query, fault)
        with answer.body:
            if isinstance(
                fault, Replace
            ):  # before the answer, which is already open: no later one is too early
                publish(self.server.root / fault.path, fault.data, fault.md5)
            self._send(answer, fault)

    do_HEAD = do_GET

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    # What to answer.

    def _scripted(self, fault: Fault | None) -> _Answer | None:
        match fault:
            case Unavailable(None, status):
                return self._error(status)
            case Unavailable(str(seconds), status):
                return self._error(status, Retry_After=seconds)
            case Missing():
                return self._error(404)
            case Html(text):
                return _said(200, text.encode())
            case Body(data):
                return _said(200, data, "application/octet-stream")
            case Endless(data):
                return _Answer(200, _Again(data), math.inf, {"Connection": "close"})
            case Redirect(location):
                return _said(302, b"", Location=location)
        return None

    def _error(self, status: int, **headers: str) -> _Answer:
        phrase = HTTPStatus(status).phrase
        if self.asked.startswith("bucket/"):
            code = _S3_CODES.get(status, phrase.replace(" ", ""))
            key = escape(self.asked.removeprefix("bucket/"))
            xml = f"<Error><Code>{code}</Code><Message>{phrase}</Message><Key>{key}</Key></Error>"
            xml = f'<?xml version="1.0" encoding="UTF-8"?>\n{xml}'
            return _said(status, xml.encode(), "application/xml", **headers)
        page = f"<html><head><title>{status} {phrase}</title></head><body><h1>{phrase}</h1></body></html>\n"
        return _said(status, page.encode(), **headers)

    def _found(self, query: str, fault: Fault | None) -> _Answer:
        path = self.server.root / self.asked
        if ".." in self.asked.split("/") or "\0" in self.asked:
            return self._error(404)
        if self.asked == "bucket/":
            try:
                page = s3_page(path, dict(parse_qsl(query)), self.server.page_size, self.server.md5)
            except BadQuery:
                return self._error(400)
            return _chunked(page, "application/xml")
        if path.is_dir() and not self.asked.startswith("bucket/"):
            if self.asked and not self.asked.endswith("/"):
                return _said(301, b"", Location=f"{self.server.url}{self.asked}/")
            page_of = apache_page if self.asked.startswith("europepmc/") else ncbi_page
            return _chunked(page_of(path, f"/{self.asked}"), "text/html;charset=UTF-8")
        try:
            return self._file(path, fault)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return self._error(404)

    def _file(self, path: Path, fault: Fault | None) -> _Answer:
        """The file, or the range of it that is asked for."""
        in_bucket = self.asked.startswith("bucket/")
        file = path.open("rb")
        info = path.stat()
        etag = self.server.md5(path) if in_bucket else f"{info.st_size:x}-{info.st_mtime_ns // 1000:x}"
        headers = {
            "Content-Type": _KINDS.get(path.suffix, "application/octet-stream"),
            "ETag": f'"{etag}"',
            "Last-Modified": formatdate(info.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        known = self.headers.get("If-Range")
        start, end, status = 0, info.st_size, 200
        if (
            asked
            and not isinstance(fault, NoRange)
            and known in (None, headers["ETag"], headers["Last-Modified"])
        ):
            start, end = int(asked[1]), min(int(asked[2] or end) + bool(asked[2]), end)
            status = 206
            if start >= end:
                file.close()
                return self._error(416, Content_Range=f"bytes */{info.st_size}")
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{info.st_size}"
        headers["Content-Length"] = str(end - start)
        file.seek(start)
        if isinstance(fault, Corrupt) and start <= fault.at_byte < end:
            with file:
                data = bytearray(file.read(end - start))
            data[fault.at_byte - start] ^= 0xFF
            return _Answer(status, io.BytesIO(data), end - start, headers)
        return _Answer(status, file, end - start, headers)

    # Sending it.

    def _send(self, answer: _Answer, fault: Fault | None) -> None:
        stop = fault.after_bytes if isinstance(fault, Reset | Truncate | Stall) else math.inf
        if isinstance(fault, Stall) and stop == 0:
            self.server.wait(fault.seconds)
        self.server.note(self.index, answer.status)
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        pace = _Pace(fault.bytes_per_second) if isinstance(fault, Slow) else None
        left = answer.length - self._copy(answer.body, min(stop, answer.length), pace)
        if isinstance(fault, Stall) and stop > 0:
            self.server.wait(fault.seconds)
            left -= self._copy(answer.body, left, pace)
        if isinstance(fault, Reset):
            self._reset()
        if left or isinstance(fault, Reset | Truncate):
            self.close_connection = True

    def _copy(self, body: BinaryIO, size: float, pace: _Pace | None) -> int:
        """Send ``size`` bytes of the body, or what there is, and give their number."""
        paces = [each for each in (pace, self.server.pace) if each]
        sent = 0
        while data := body.read(int(min(size - sent, 65536, *(each.piece for each in paces)))):
            for each in paces:
                self.server.wait(each.delay(len(data)))
            self.server.note(self.index, sent=len(data))
            self.wfile.write(data)
            sent += len(data)
        return sent

    def _reset(self) -> None:
        """Let the client's machine have what was sent, then make the connection's end a reset."""
        unsent = bytearray(4)
        for _ in range(100):
            fcntl.ioctl(self.connection, termios.TIOCOUTQ, unsent)
            if not any(unsent):
                break
            self.server.wait(0.005)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.standin", description="Serve a folder until Ctrl-C."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=0, help="default: a free one")
    arguments = parser.parse_args()
    with StandIn(arguments.folder, arguments.port) as server, contextlib.suppress(KeyboardInterrupt):
        print(server.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
