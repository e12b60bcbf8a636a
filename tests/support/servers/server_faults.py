"""The faults that the stand-in makes: of the server, of the way to it, and of what it holds.

Bytes of a body are counted in the answer: ``Reset(100)`` on a request for the range from 500 ends at 600.
Only :class:`Corrupt` speaks of a place in the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class ServiceUnavailable:
    """The server is too busy, for as long as ``retry_after`` says (seconds or a date), if it says so."""

    retry_after: str | None = None
    status: int = 503


@dataclass(frozen=True)
class NotFound:
    """404."""


@dataclass(frozen=True)
class NoResponse:
    """The connection is closed without any answer."""


@dataclass(frozen=True)
class ConnectionReset:
    """The connection is reset after so many bytes of the body, all of which the client can still read."""

    after_bytes: int


@dataclass(frozen=True)
class TruncatedBody:
    """The connection is closed after so many bytes of the body, though the header announces all."""

    after_bytes: int


@dataclass(frozen=True)
class Stall:
    """A pause after so many bytes of the body; after 0 bytes, before the status line."""

    after_bytes: int
    seconds: float


@dataclass(frozen=True)
class SlowBody:
    """This answer's body comes at so many bytes a second."""

    bytes_per_second: float


@dataclass(frozen=True)
class CorruptByte:
    """The file's byte at this place is another one (if it is in the range asked for); its length is right."""

    at_byte: int


@dataclass(frozen=True)
class RangeIgnored:
    """The Range header is ignored: 200 and the whole file."""


@dataclass(frozen=True)
class HtmlPage:
    """A page for people, with status 200."""

    text: str


@dataclass(frozen=True)
class FixedBody:
    """These bytes, with status 200: a hostile listing, a wrong checksum file."""

    data: bytes


@dataclass(frozen=True)
class EndlessBody:
    """These bytes again and again, with status 200 and no length, until the client has had enough."""

    data: bytes


@dataclass(frozen=True)
class Redirect:
    """302 to another address."""

    location: str


@dataclass(frozen=True)
class Republication:
    """Republication: this answer is the old file, every later one the new (:func:`standin_pages.publish`).

    With ``md5`` the checksum beside it is the new file's too.
    """

    path: str
    data: bytes
    md5: bool = False


@dataclass(frozen=True)
class FunctionCall:
    """This function is called first; the answer is what the folder then holds."""

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
    | Republication
    | FunctionCall
)
