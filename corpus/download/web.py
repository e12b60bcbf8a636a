"""Ask a server for files, politely and until it answers.

Every request waits for its turn (``places.py``), says who asks, and is tried again after a pause that
grows, or that the server names.  A body that ends early goes on where it ended.  A redirect to
another host is refused: what is asked for is on known hosts.
"""

from __future__ import annotations

import contextlib
import email.utils
import random
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions

from bioshards.corpus.errors import RunError

from .places import LONGEST_PAUSE, Places

_BLOCK_BYTES: Final = 1 << 17
_TRY_AGAIN: Final = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
_MOVED: Final = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:(\d{1,18})|\*)", re.ASCII)
_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_REDIRECTS: Final = 3


class DownloadError(RunError):
    """A server did not give what it was asked for; the message says what, where and why."""


class NotFoundError(DownloadError):
    """It says that there is no such file (404, 410)."""


class RefusedError(DownloadError):
    """It refuses, sends elsewhere, or sends more than is taken: asking again does not help."""


class UnreachableError(DownloadError):
    """It gave no answer, or none that could be used, however often it was asked."""


class _RetryableError(Exception):
    """This try failed, the next may not; ``pause`` is what the server asks for, in seconds."""

    def __init__(self, why: str, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


class Answer(NamedTuple):
    """A small body, whole.  Headers that are absent are ''; the ETag is without its quotes."""

    body: bytes
    etag: str
    modified: str


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a server.

    Attributes:
        connect, stall: seconds to wait for a connection, and for the next byte of an answer.
        slowest: bytes a second; a body that comes more slowly than that for ``stall`` seconds is broken off.
        tries: without a byte of progress, before giving up.
        first_pause, longest_pause: seconds between tries: the first, doubled each time up to the longest.
    """

    connect: float = 20
    stall: float = 60
    slowest: float = 1000
    tries: int = 10
    first_pause: float = 1
    longest_pause: float = 120


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address and how it may be asked."""

    base: str
    agent: str
    places: Places
    patience: Patience = Patience()

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection, in one of the server's places, which is given back at the end."""
        with self.places.take(), contextlib.closing(Connection(self)) as connection:
            yield connection


class _Session(requests.Session):
    """Without a look at redirects: requests reads their bodies and addresses even if it is not to follow."""

    def get_redirect_target(self, _response: object) -> None:
        return None


class Connection:
    """One kept-alive connection to a server; for one thread at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = _Session()
        self._session.headers.update({"User-Agent": server.agent, "Accept-Encoding": "identity"})
        # Proxies and certificates of the environment, looked up once: else it is a fifth of a request's time.
        for name, value in self._session.merge_environment_settings(
            server.base, {}, None, None, None
        ).items():
            setattr(self._session, name, value)
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()

    def read(self, url: str, at_most: int) -> Answer:
        """The whole body of a small file, of ``at_most`` bytes.

        Raises:
            DownloadError: it cannot be had.
        """
        for tries in self._tries(url):
            with tries, self._ask(url, {}) as response:
                body = bytearray()
                for block in self._blocks(response, 0):
                    body += block
                    if len(body) > at_most:
                        raise RefusedError(
                            f"{url} has more than {at_most:,} bytes, which nothing here should"
                        )
                headers = response.headers
                etag = headers.get("ETag", "").removeprefix("W/").strip('"')
                return Answer(bytes(body), etag, headers.get("Last-Modified", ""))
        raise AssertionError("tries end with an answer or an error")

    def stream(self, url: str, start: int) -> Iterator[tuple[int, bytes]]:
        """A file's bytes as (offset, block), from byte ``start`` on, to its end.

        An offset of 0 after others means that the server has begun again from the beginning: what
        came before is to be thrown away.

        Raises:
            DownloadError: it cannot be had to its end.
        """
        at = furthest = start
        validator = ""
        for tries in self._tries(url):
            headers = {"Range": f"bytes={at}-"} if at else {}
            if at and validator:
                headers["If-Range"] = validator
            with tries:
                with self._ask(url, headers) as response:
                    if response.status_code == 416:
                        if response.headers.get("Content-Range") == f"bytes */{at}":
                            return  # all of it is there
                        at = 0  # it is shorter than what is there
                        raise _RetryableError("the server has no such range of it")
                    said = _validator(response)
                    if response.status_code != 206:
                        at, validator = 0, said
                    elif validator and said not in ("", validator):  # it does not know If-Range
                        at = 0
                        raise _RetryableError("the server sends a range of another version of it")
                    validator = said or validator
                    for block in self._blocks(response, at):
                        yield at, block
                        at += len(block)
                        if at > furthest:  # what was sent before, sent again, is no progress
                            furthest = at
                            tries.progress()
                return

    def _tries(self, url: str) -> Iterator[_Try]:
        """Tries until one ends without an error that another may mend."""
        patience, failed = self._server.patience, 0
        while True:
            attempt = _Try()
            yield attempt
            if attempt.failure is None:
                return
            failed = 1 if attempt.progressed else failed + 1
            pause = attempt.failure.pause
            if failed >= patience.tries or (pause or 0) > LONGEST_PAUSE:
                raise UnreachableError(
                    f"{url} cannot be had: {attempt.failure} (tried {failed} times in a row)"
                    if failed >= patience.tries
                    else f"{url} cannot be had: {attempt.failure}; the server asks to come back in "
                    f"{pause:.0f} seconds"
                )
            if pause is not None:
                self._server.places.pause(pause)
            grown = min(patience.first_pause * 2 ** (failed - 1), patience.longest_pause)
            time.sleep(max(pause or 0, grown * random.uniform(0.5, 1.5)))

    @contextlib.contextmanager
    def _ask(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        """Send one request; the answer's head, with a status of success (or 416), its body to be read."""
        asked = url
        for _ in range(_REDIRECTS + 1):
            self._server.places.wait()
            with self._one(asked, headers) as response:
                status = response.status_code
                if status not in _MOVED:
                    self._judge(url, response)
                    yield response
                    return
                location = response.headers.get("Location", "")
                target = _on_same_host(asked, location)
                if target is None:
                    raise RefusedError(
                        f"{url} is redirected to another host ({location[:200]}), which is not followed"
                    )
                asked = target
        raise RefusedError(f"{url} is redirected again and again")

    @contextlib.contextmanager
    def _one(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        patience = self._server.patience
        try:
            with self._session.get(
                url,
                headers=headers,
                stream=True,
                allow_redirects=False,
                timeout=(patience.connect, patience.stall),
            ) as response:
                yield response
        except requests.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RefusedError(
                    f"{url}: the server's certificate cannot be trusted: {_reason(error)}"
                ) from error
            raise _RetryableError(_reason(error)) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _RetryableError(_reason(error)) from error

    def _judge(self, url: str, response: requests.Response) -> None:
        """Raise unless the answer's status is one of success."""
        status = response.status_code
        if status in (200, 206, 416):
            return
        said = f"the server answers {status} {response.reason}"
        if status in (404, 410):
            raise NotFoundError(f"{url} is not there: {said}")
        if status in _TRY_AGAIN:
            pause = _pause_asked_for(response.headers.get("Retry-After", ""))
            if pause is None and status in (429, 503):
                pause = self._server.patience.first_pause  # nobody asks while it is overloaded
            raise _RetryableError(said, pause)
        raise RefusedError(f"{url} is refused: {said}")

    def _blocks(self, response: requests.Response, at: int) -> Iterator[bytes]:
        """The body as it comes, to the end that its headers announce."""
        end = _end_of_body(response, at)
        patience = self._server.patience
        window_began, window_bytes = time.monotonic(), 0
        while block := response.raw.read1(_BLOCK_BYTES, decode_content=False):
            at += len(block)
            window_bytes += len(block)
            yield block
            seconds = time.monotonic() - window_began
            if seconds > patience.stall:
                if window_bytes < patience.slowest * seconds:
                    raise _RetryableError(f"it sends only {window_bytes / seconds:.0f} bytes a second")
                window_began, window_bytes = time.monotonic(), 0
        if end is not None and at != end:
            raise _RetryableError(f"the connection ended at byte {at:,} of {end:,}")


class _Try:
    """One try, as a context that keeps an error which another try may mend."""

    def __init__(self) -> None:
        self.failure: _RetryableError | None = None
        self.progressed = False

    def progress(self) -> None:
        self.progressed = True

    def __enter__(self) -> _Try:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, _RetryableError):
            self.failure = error
            return True
        return False


def _on_same_host(asked: str, location: str) -> str | None:
    """Where a redirect leads to; None where that is on another host, or no address."""
    try:
        target = urljoin(asked, location)
        return target if urlsplit(target)[:2] == urlsplit(asked)[:2] else None
    except ValueError:
        return None


def _end_of_body(response: requests.Response, at: int) -> int | None:
    """The offset at which the body ends; None where the headers do not say."""
    if response.status_code == 206:
        given = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        if not given or int(given[1]) != at:
            raise _RetryableError(
                f"the server answers with another range: {response.headers.get('Content-Range')}"
            )
        if given[2]:
            return int(given[2])
    length = response.headers.get("Content-Length", "")
    return at + int(length) if _LENGTH.fullmatch(length) else None


def _validator(response: requests.Response) -> str:
    """What ``If-Range`` may name: a strong ETag, else the date of the last change."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _pause_asked_for(retry_after: str) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date (RFC 9110, 10.2.3)."""
    if re.fullmatch(r"\s*\d{1,9}\s*", retry_after):
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _reason(error: Exception) -> str:
    """The innermost reason of an error that wraps others, in a few words."""
    while (inner := error.__cause__ or error.__context__) and isinstance(inner, Exception):
        error = inner
    return str(error) or type(error).__name__
