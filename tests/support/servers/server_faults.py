"""Faults of the fake server, of its connections and of its files.

Bytes of a body are counted in the response: ``ConnectionReset(100)`` on a request for the range from 500 ends
at byte 600.  Only the position of :class:`CorruptByte` is one in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceUnavailable:
    """Status 503 (or ``status``), with the header Retry-After (seconds or a date) if given."""

    retry_after: str | None = None
    status: int = 503


@dataclass(frozen=True)
class NotFound:
    """Status 404."""


@dataclass(frozen=True)
class NoResponse:
    """The connection is closed without a response."""


@dataclass(frozen=True)
class ConnectionReset:
    """The connection is reset after a number of bytes of the body; the client can read all of these."""

    after_bytes: int


@dataclass(frozen=True)
class TruncatedBody:
    """The connection is closed after a number of bytes of the body, less than the Content-Length."""

    after_bytes: int


@dataclass(frozen=True)
class Stall:
    """A pause after a number of bytes of the body; after 0 bytes, before the status line."""

    after_bytes: int
    seconds: float


@dataclass(frozen=True)
class SlowBody:
    """The body is sent at this rate."""

    bytes_per_second: float


@dataclass(frozen=True)
class CorruptByte:
    """The byte at this position of the file is changed; the length is correct."""

    at_byte: int


@dataclass(frozen=True)
class RangeIgnored:
    """The Range header is ignored: status 200 and the whole file."""


@dataclass(frozen=True)
class HtmlPage:
    """An HTML page, with status 200."""

    text: str


@dataclass(frozen=True)
class FixedBody:
    """Given bytes, with status 200, such as a hostile listing or a wrong checksum file."""

    data: bytes


@dataclass(frozen=True)
class EndlessBody:
    """Given bytes repeated until the client closes, with status 200 and without a length."""

    data: bytes


@dataclass(frozen=True)
class Redirect:
    """Status 302 to another address."""

    location: str


@dataclass(frozen=True)
class FunctionCall:
    """A function that is called before the response is made from the folder."""

    function: Callable[[], object]


Fault = (
    ServiceUnavailable
    | NotFound
    | NoResponse
    | ConnectionReset
    | TruncatedBody
    | Stall
    | SlowBody
    | CorruptByte
    | RangeIgnored
    | HtmlPage
    | FixedBody
    | EndlessBody
    | Redirect
    | FunctionCall
)
