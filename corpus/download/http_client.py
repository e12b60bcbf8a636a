"""HTTP client: rate-limited requests, retried with exponential backoff, and resumed transfers.

Every request waits for the rate limiter (``rate_limit.py``), sends a User-Agent, and is retried by the retry
policy (storage/retry.py) or after ``Retry-After``.  A body that ends early is resumed by a range request, or
read from its start if the server answers ranges wrongly.  The file may change between two ranges: whoever
keeps a resumed file checks its MD5 or the CRC of gzip.  A redirect to another host is an error.  A server may
send its bytes slowly, or stop inside a header or a body: ``min_throughput.py`` measures them as they arrive.
"""

from __future__ import annotations

import contextlib
import email.utils
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions

from bioshards.corpus import progress_notes
from bioshards.corpus.download.min_throughput import MinThroughputAdapter
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.errors import KEPT, RunError, quote
from bioshards.corpus.storage.retry import (
    DEFAULT_RETRY_POLICY,
    MAX_RETRY_AFTER_SECONDS,
    MIN_PROGRESS_BYTES,
    RetryPolicy,
)

_BLOCK_BYTES: Final = 1 << 17
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:(\d{1,18})|\*)", re.ASCII)
_MAX_REDIRECTS: Final = 3
_MIN_REPORTED_SECONDS: Final = 5.0
"""A failed attempt that takes this long with the pause after it is reported to the user."""
_MAX_DATED_SECONDS: Final = 1e10
"""Retry-After that is at most believed: three hundred years."""
_MAX_NOTICE_BYTES: Final = 1 << 14
"""Beginning of a page in which the notice of a block is searched."""
_HTML_START = re.compile(rb"\s{0,99}<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]{0,2000}>", re.DOTALL | re.I)
_BLOCKED = re.compile(
    r"\b(?:access|address|ip|network|you)\b[^<>]{0,200}?\bblocked\b|\bpossible (?:misuse|abuse)\b"
    r"|\bblocked diagnostic\b",
    re.IGNORECASE,
)
"""Words of the page with which a server blocks a network."""
_ABUSE_PAGE = re.compile(r"\b(?:abuse|misuse|blocked)\b", re.IGNORECASE)
"""Words of the address of such a page: NCBI's is https://misuse.ncbi.nlm.nih.gov/error/abuse.shtml."""


class DownloadError(RunError):
    """A request failed; the message names the URL and the reason."""


class NotFoundError(DownloadError):
    """The server has no such file (404, 410)."""


class RefusedError(DownloadError):
    """The request is refused, redirected to another host, or has too large a response; not retried."""


class UnreachableError(DownloadError):
    """All attempts failed."""


class OutageError(UnreachableError):
    """The server serves nothing for now, or nothing to us: requests for other files are useless."""


class _RetryableError(Exception):
    """An attempt failed and is retried; ``pause`` is the Retry-After of the response in seconds."""

    def __init__(self, why: str, pause: float | None = None) -> None:
        super().__init__(why)
        self.pause = pause


class HttpResponse(NamedTuple):
    """A complete response.  The ETag has no quotes; '' without one."""

    body: bytes
    etag: str


@dataclass(frozen=True, slots=True)
class Server:
    """URL of a server with its rate limit and retry policy.

    Attributes:
        report_wait: tells the user why a request waits; None: the note of this process does.
    """

    base_url: str
    user_agent: str
    rate_limiter: RateLimiter
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY
    report_wait: Callable[[str], None] | None = None

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a connection, which takes one of the slots of the rate limiter."""
        with (
            self.rate_limiter.acquire_slot(self.report_wait),
            contextlib.closing(Connection(self)) as connection,
        ):
            yield connection


class _Session(requests.Session):
    """A session that ignores redirects: requests reads their bodies even if it must not follow them."""

    def get_redirect_target(self, _response: object) -> None:
        return None


class Connection:
    """A keep-alive connection to a server, for one thread at a time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._session = _Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, MinThroughputAdapter(server.retry_policy))
        self._session.headers.update({"User-Agent": server.user_agent, "Accept-Encoding": "identity"})
        # Read proxies and certificates of the environment once: per request they take a fifth of its time.
        for name, value in self._session.merge_environment_settings(
            server.base_url, {}, None, None, None
        ).items():
            setattr(self._session, name, value)
        self._session.trust_env = False

    def close(self) -> None:
        """Close the connection."""
        self._session.close()

    def read(self, url: str, max_bytes: int) -> HttpResponse:
        """Read a small file of up to ``max_bytes`` bytes.

        Raises:
            DownloadError: the request failed.
        """
        attempts = _Attempts(self._server, url)
        while True:
            try:
                with self._request(attempts, 0) as response:
                    body = bytearray()
                    for block in _check_page(url, self._read_blocks(attempts, response, 0)):
                        body += block
                        if len(body) > max_bytes:
                            raise RefusedError(f"{url} has more than {max_bytes:,} bytes, the limit")
                    etag = response.headers.get("ETag", "").removeprefix("W/").strip('"')
                    return HttpResponse(bytes(body), etag)
            except _RetryableError as error:
                attempts.pause_after(error)

    def stream(self, url: str, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes of a file from byte ``start`` to its end as (offset, block).

        An offset of 0 after others means that the transfer restarted: discard the blocks before it.

        Raises:
            DownloadError: the file cannot be read to its end.
        """
        attempts = _Attempts(self._server, url)
        offset = attempts.max_offset = start
        num_empty_ranges, max_empty_ranges = 0, max(2, self._server.retry_policy.max_attempts // 2)
        while True:
            try:
                with self._request(attempts, offset) as response:
                    if response.status_code == 416:
                        if offset and response.headers.get("Content-Range") == f"bytes */{offset}":
                            return  # complete
                        offset = 0  # the file is now shorter
                        raise _RetryableError("the server does not have this range of it")
                    if response.status_code != 206:
                        offset = 0
                    else:
                        num_empty_ranges += 1
                    blocks = self._read_blocks(attempts, response, offset)
                    for block in blocks if offset else _check_page(url, blocks):
                        yield offset, block
                        offset += len(block)
                        num_empty_ranges = 0
                        attempts.reach(offset)
                    return
            except _RetryableError as error:
                attempts.pause_after(error)
                if num_empty_ranges >= max_empty_ranges:
                    offset = num_empty_ranges = 0  # the server cannot send ranges: take it from the start

    @contextlib.contextmanager
    def _request(self, attempts: _Attempts, offset: int) -> Iterator[requests.Response]:
        """Begin an attempt and follow redirects on the same host; the status is one of success, or 416.

        Every error of the network inside the block is a retryable one.
        """
        attempts.begin()
        url = attempts.url
        policy = self._server.retry_policy
        try:
            for _ in range(_MAX_REDIRECTS + 1):
                self._server.rate_limiter.wait_for_turn()
                with attempts.waiting():
                    response = self._session.get(
                        url,
                        headers={"Range": f"bytes={offset}-"} if offset else {},
                        stream=True,
                        allow_redirects=False,
                        timeout=(policy.connect_timeout, policy.read_timeout),
                    )
                with response:
                    if not response.is_redirect:
                        self._raise_for_status(attempts.url, response)
                        yield response
                        return
                    url = resolve_redirect(url, response.headers["Location"])
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            reason = _find_innermost_reason(error)
            if isinstance(error, requests.exceptions.SSLError) and "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RefusedError(f"{url}: the server's certificate cannot be trusted: {reason}") from error
            raise _RetryableError(reason) from error
        raise RefusedError(f"{attempts.url} is redirected too often")

    def _raise_for_status(self, url: str, response: requests.Response) -> None:
        """Raise an error unless the status is one of success, or 416."""
        status = response.status_code
        if status in (200, 206, 416):
            return
        message = f"the server answers {status} {quote(response.reason or '')}".rstrip()
        if status in (404, 410):
            raise NotFoundError(f"{url} is not there: {message}")
        with contextlib.suppress(OSError, urllib3.exceptions.HTTPError):  # it may have no page
            _raise_if_blocked(url, response.raw.read1(_MAX_NOTICE_BYTES, decode_content=False))
        if status in _RETRYABLE_STATUSES:
            pause = _parse_retry_after(response.headers.get("Retry-After", ""))
            if pause is None and status in (429, 503):
                pause = self._server.retry_policy.initial_backoff  # all workers wait while it is overloaded
            raise _RetryableError(message, pause)
        raise RefusedError(f"{url} is refused: {message}")

    def _read_blocks(self, attempts: _Attempts, response: requests.Response, offset: int) -> Iterator[bytes]:
        """Yield the blocks of a body that begins at ``offset`` and must reach the end of the file."""
        file_size = _parse_file_size(response, offset)
        while True:
            with attempts.waiting():
                block = response.raw.read1(_BLOCK_BYTES, decode_content=False)
            if not block:
                break
            yield block
            offset += len(block)
        if file_size is not None and offset != file_size:
            raise _RetryableError(f"the connection ended at byte {offset:,} of {file_size:,}")


class _Attempts:
    """The attempts of one request: what the current one has brought, and the failures in a row.

    Attributes:
        max_offset: end of the bytes that an attempt has brought so far.
        seconds: time in which the current attempt waited for the server.
    """

    def __init__(self, server: Server, url: str) -> None:
        self.url = url
        self.max_offset = 0
        self.seconds = 0.0
        self._server = server
        self._new_bytes = self._num_failures = 0

    def begin(self) -> None:
        """Begin an attempt."""
        self.seconds = 0.0
        self._new_bytes = 0

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block as a wait for the server."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started

    def reach(self, offset: int) -> None:
        """Count the bytes up to an offset as progress; repeated bytes are none."""
        self._new_bytes += max(0, offset - self.max_offset)
        self.max_offset = max(self.max_offset, offset)

    def pause_after(self, error: _RetryableError) -> None:
        """Wait until the next attempt may begin.

        Raises:
            OutageError: the server asks for a long pause.
            UnreachableError: it was the last attempt.
        """
        policy = self._server.retry_policy
        min_progress = max(MIN_PROGRESS_BYTES, policy.min_bytes_per_second * self.seconds)
        self._num_failures = 1 if self._new_bytes >= min_progress else self._num_failures + 1
        if error.pause is not None and error.pause > MAX_RETRY_AFTER_SECONDS:
            until = datetime.fromtimestamp(time.time() + error.pause, UTC)
            outage = OutageError(
                f"{self.url} cannot be read: {error}; the server asks to wait {error.pause:,.0f} seconds, "
                f"until {until:%Y-%m-%d %H:%M} UTC"
            )
            outage.hint = f"Run the same command again after that. {KEPT}"
            raise outage
        if self._num_failures >= policy.max_attempts:
            raise UnreachableError(
                f"{self.url} cannot be read: {error} (tried {self._num_failures} times in a row)"
            )
        seconds = max(error.pause or 0, policy.draw_backoff(self._num_failures))
        if self.seconds + seconds >= _MIN_REPORTED_SECONDS:
            text = (
                f"{self.url}: {error}; attempt {self._num_failures + 1} of {policy.max_attempts} "
                f"in {seconds:.0f} seconds"
            )
            logging.getLogger(__name__).warning("%s", text)  # seen on a cluster
            (self._server.report_wait or progress_notes.report_wait)(text)
        if error.pause is not None:
            self._server.rate_limiter.pause(error.pause)
        time.sleep(seconds)


def resolve_redirect(url: str, location: str) -> str:
    """Return the target of a redirect on the same host.

    Raises:
        RefusedError: it leads to another host or is malformed; the message says what to do.
        OutageError: it leads to the page of a server that blocks this network.
    """
    quoted = quote(location)
    if _ABUSE_PAGE.search(location):
        raise _make_block_error(url, f"It redirects to {quoted}")
    options = "--pubmed-url, --pmc-url or --europepmc-url"
    try:
        target = urljoin(url, location)
        old, new = urlsplit(url), urlsplit(target)
    except ValueError:
        raise RefusedError(f"{url} is redirected to another host ({quoted})") from None
    if new[:2] == old[:2]:
        return target
    if old.hostname != new.hostname or old.scheme == new.scheme:
        problem = (
            f"another host ({quoted}). If the files have moved there, name it in {options}; if it is a login "
            "page of your network, log in with a browser first"
        )
    elif new.scheme == "https":
        problem = f"{quoted}: the server wants https. Write the address with https:// in {options}"
    else:
        problem = f"an address without encryption ({quoted})"
    raise RefusedError(f"{url} is redirected to {problem}")


def _parse_file_size(response: requests.Response, offset: int) -> int | None:
    """Return the size of a file of which a range was requested; None if the headers do not tell.

    urllib3 checks the length of the response itself.
    """
    if response.status_code != 206:
        return None
    content_range = response.headers.get("Content-Range", "").strip()
    match = _CONTENT_RANGE.fullmatch(content_range)
    if not match or int(match[1]) != offset:
        raise _RetryableError(f"the server answers with another range: {quote(content_range)}")
    return int(match[2]) if match[2] else None


def _parse_retry_after(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date (RFC 9110, 10.2.3)."""
    if re.fullmatch(r"\s*\d+\s*", retry_after, re.ASCII):
        return min(float(retry_after), _MAX_DATED_SECONDS)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _check_page(url: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a body from its start.

    Raises:
        OutageError: it is the page with which a server blocks a network.
    """
    first = next(blocks, b"")
    if _HTML_START.match(first):
        while len(first) < _MAX_NOTICE_BYTES and (block := next(blocks, b"")):
            first += block
        _raise_if_blocked(url, first)
    if first:
        yield first
    yield from blocks


def _raise_if_blocked(url: str, page: bytes) -> None:
    """Raise an error for the page with which a server blocks a network; any other page passes."""
    if not _HTML_START.match(page):
        return
    text = " ".join(_MARKUP.sub(" ", page[:_MAX_NOTICE_BYTES].decode("utf-8", "replace")).split())
    if match := _BLOCKED.search(text):
        notice = quote(text[max(0, match.start() - 20) :])
        raise _make_block_error(url, f"Its page says: {notice!r}")


def _make_block_error(url: str, notice: str) -> OutageError:
    error = OutageError(f"{url}: the server blocks this network. {notice}")
    error.hint = (
        "Start no other download: it would prolong the block. Wait, or write to the address on the page "
        "(NCBI: info@ncbi.nlm.nih.gov); --contact tells a server whom to ask"
    )
    return error


def _find_innermost_reason(error: Exception) -> str:
    """Return the message of the innermost cause of an error."""
    while (inner := error.__cause__ or error.__context__) and isinstance(inner, Exception):
        error = inner
    return quote(str(error)) or type(error).__name__
