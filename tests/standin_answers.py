"""How the stand-in answers: the pages and files of its folder, with the fault of the hour."""

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

if TYPE_CHECKING:
    from tests.standin import StandIn


class Pace:
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
    headers = {"Content-Type": kind, "Transfer-Encoding": "chunked"}
    return _Answer(200, io.BytesIO(framed), len(framed), headers)


class _Again(io.BytesIO):
    """Bytes that begin again at their end."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data * (65536 // len(data) + 1))

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            self.seek(0)
            data = super().read(size)
        return data


_S3_CODES = {400: "InvalidArgument", 404: "NoSuchKey", 416: "InvalidRange", 503: "SlowDown"}
_KINDS = {".gz": "application/x-gzip", ".xml": "text/xml", ".json": "application/json", ".txt": "text/plain"}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: StandIn

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        self.asked = unquote(address.path).lstrip("/")
        self.index, fault = self.server.began(self, self.asked, address.query)
        self.server.wait(self.server.latency)
        if isinstance(fault, Ignore):
            self.close_connection = True
            return
        if isinstance(fault, Call):
            fault.function()
        answer = self._scripted(fault) or self._found(address.query, fault)
        with answer.body:
            if isinstance(fault, Replace):  # already now, so that whoever has this answer finds the new file
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
            case Unavailable(retry_after, status):
                return self._error(status, Retry_After=str(retry_after))
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
        phrase = self.responses.get(status, ("Error", ""))[0]
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
            return self._error(400)
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
        if not path.is_file() or self.asked.endswith("/"):
            return self._error(404)
        return self._file(path, fault)

    def _file(self, path: Path, fault: Fault | None) -> _Answer:
        """The file, or the range of it that is asked for."""
        file = path.open("rb")
        info = os.fstat(file.fileno())
        if self.asked.startswith("bucket/"):
            etag = self.server.md5(file)
        else:  # as Apache makes them
            etag = f"{info.st_size:x}-{info.st_mtime_ns // 1000:x}"
        headers = {
            "Content-Type": _KINDS.get(path.suffix, "application/octet-stream"),
            "ETag": f'"{etag}"',
            "Last-Modified": formatdate(info.st_mtime, usegmt=True),
            "Accept-Ranges": "bytes",
        }
        start, end, status = 0, info.st_size, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        still = self.headers.get("If-Range") in (None, headers["ETag"], headers["Last-Modified"])
        if asked and still and not isinstance(fault, NoRange):
            start, status = int(asked[1]), 206
            end = min(end, int(asked[2]) + 1) if asked[2] else end
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
        pace = Pace(fault.bytes_per_second) if isinstance(fault, Slow) else None
        left = answer.length - self._copy(answer.body, min(stop, answer.length), pace)
        if isinstance(fault, Stall) and stop > 0:
            self.server.wait(fault.seconds)
            left -= self._copy(answer.body, left, pace)
        if isinstance(fault, Reset):
            self._reset()
        if left or isinstance(fault, Reset | Truncate):
            self.close_connection = True

    def _copy(self, body: BinaryIO, size: float, pace: Pace | None) -> int:
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
        for _ in range(1000):
            fcntl.ioctl(self.connection, termios.TIOCOUTQ, unsent)
            if not any(unsent):
                break
            self.server.wait(0.005)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
