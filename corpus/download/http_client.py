"""HTTP client with rate limiting, retries with exponential backoff, and resumed transfers.

Every request waits for the rate limiter (``rate_limit.py``), sends a User-Agent, and is retried by the retry
policy (storage/retry.py) or after ``Retry-After``.  A body that ends early is resumed by a range request, or
read from its start if the server answers ranges wrongly.  A redirect to another host is an error.  A server
may send its bytes slowly, or stop inside a header or a body: ``min_throughput.py`` measures them as they
arrive.
"""

from __future__ import annotations

import contextlib
import copy
import email.utils
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import requests
import urllib3.exceptions

from bioshards.corpus.download.min_throughput import MinThroughputAdapter
from bioshards.corpus.download.rate_limit import RateLimiter
from bioshards.corpus.errors import KEPT, RunError, quote
from bioshards.corpus.storage.retry import (
    DEFAULT_RETRY_POLICY,
    INTERACTIVE_RETRY_POLICY,
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
    """A complete response.  Absent headers are ''; the ETag has no quotes."""

    body: bytes
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class Server:
    """URL of a server with its rate limit and retry policy.

    Attributes:
        report_wait: tells the user why a request waits; None: the rate limiter keeps it for the progress
            display, which is in another process.
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

    def with_few_attempts(self) -> Connection:
        """Return this connection with no more attempts than while a person waits."""
        policy = self._server.retry_policy
        max_attempts = min(policy.max_attempts, INTERACTIVE_RETRY_POLICY.max_attempts)
        connection = copy.copy(self)
        connection._server = replace(self._server, retry_policy=replace(policy, max_attempts=max_attempts))
        return connection

    def read(self, url: str, max_bytes: int) -> HttpResponse:
        """Read a small file of up to ``max_bytes`` bytes.

        Raises:
            DownloadError: the request failed.
        """
        for attempt in self._iter_attempts(url):
            with attempt, self._request(url, {}, attempt) as response:
                body = bytearray()
                for block in _check_page(url, self._read_blocks(response, 0, attempt)):
                    body += block
                    if len(body) > max_bytes:
                        raise RefusedError(f"{url} has more than {max_bytes:,} bytes, the limit")
                headers = response.headers
                etag = headers.get("ETag", "").removeprefix("W/").strip('"')
                return HttpResponse(bytes(body), etag, headers.get("Last-Modified", ""))
        raise AssertionError("attempts end with a response or an error")

    def stream(self, url: str, start: int) -> Iterator[tuple[int, bytes]]:
        """Yield the bytes of a file from byte ``start`` to its end as (offset, block).

        An offset of 0 after others means that the transfer restarted: discard the blocks before it.

        Raises:
            DownloadError: the file cannot be read to its end.
        """
        offset = max_offset = start
        validator = ""
        num_empty_ranges = 0
        for attempt in self._iter_attempts(url):
            if num_empty_ranges >= max(2, self._server.retry_policy.max_attempts // 2):
                offset = num_empty_ranges = 0  # the server cannot send ranges: take it from the start
            headers = {"Range": f"bytes={offset}-"} if offset else {}
            if offset and validator:
                headers["If-Range"] = validator
            with attempt:
                with self._request(url, headers, attempt) as response:
                    if response.status_code == 416:
                        if offset and response.headers.get("Content-Range") == f"bytes */{offset}":
                            return  # complete
                        offset = 0  # the file is now shorter
                        raise _RetryableError("the server does not have this range of it")
                    new_validator = _get_validator(response)
                    if response.status_code != 206:
                        offset, validator = 0, new_validator
                    elif validator and new_validator not in ("", validator):  # the server ignores If-Range
                        offset = 0
                        raise _RetryableError("the server sends a range of another version of it")
                    else:
                        num_empty_ranges += 1
                    validator = new_validator or validator
                    blocks = self._read_blocks(response, offset, attempt)
                    for block in blocks if offset else _check_page(url, blocks):
                        yield offset, block
                        offset += len(block)
                        num_empty_ranges = 0
                        if offset > max_offset:  # repeated bytes are not progress
                            attempt.new_bytes += offset - max_offset
                            max_offset = offset
                return

    def _iter_attempts(self, url: str) -> Iterator[_Attempt]:
        """Yield attempts until one ends without a retryable error."""
        policy, num_failures, idle_seconds = self._server.retry_policy, 0, 0.0
        while True:
            attempt = _Attempt()
            yield attempt
            if attempt.failure is None:
                return
            has_progressed = attempt.new_bytes >= MIN_PROGRESS_BYTES
            num_failures = 1 if has_progressed else num_failures + 1
            idle_seconds = max(
                0.0, idle_seconds + attempt.seconds - attempt.num_bytes / policy.min_bytes_per_second
            )
            pause = attempt.failure.pause
            if pause is not None and pause > MAX_RETRY_AFTER_SECONDS:
                raise _make_retry_after_error(url, attempt.failure, pause)
            if num_failures >= policy.max_attempts:
                raise UnreachableError(
                    f"{url} cannot be read: {attempt.failure} (tried {num_failures} times in a row)"
                )
            if idle_seconds > policy.max_idle_seconds:
                raise UnreachableError(
                    f"{url} cannot be read: {attempt.failure} (in {idle_seconds / 60:.0f} minutes it brought "
                    "next to nothing)"
                )
            seconds = max(pause or 0, policy.draw_backoff(num_failures))
            if attempt.seconds + seconds >= _MIN_REPORTED_SECONDS:
                self._report_wait(
                    f"{url}: {attempt.failure}; attempt {num_failures + 1} of {policy.max_attempts} "
                    f"in {seconds:.0f} seconds"
                )
            if pause is not None:
                self._server.rate_limiter.pause(pause)
            time.sleep(seconds)
            idle_seconds += seconds

    def _report_wait(self, text: str) -> None:
        logging.getLogger(__name__).warning("%s", text)  # seen on a cluster
        if self._server.report_wait:
            self._server.report_wait(text)
        else:
            self._server.rate_limiter.note_wait(text)

    @contextlib.contextmanager
    def _request(self, url: str, headers: dict[str, str], attempt: _Attempt) -> Iterator[requests.Response]:
        """Send a request and follow redirects on the same host; the status is one of success, or 416."""
        current_url = url
        for _ in range(_MAX_REDIRECTS + 1):
            self._server.rate_limiter.wait_for_turn()
            with self._send(current_url, headers, attempt) as response:
                if not response.is_redirect:
                    self._raise_for_status(url, response)
                    yield response
                    return
                location = response.headers["Location"]
                target = resolve_redirect(current_url, location)
                if target is None:
                    raise RefusedError(f"{url} is redirected to {explain_redirect(current_url, location)}")
                current_url = target
        raise RefusedError(f"{url} is redirected too often")

    @contextlib.contextmanager
    def _send(self, url: str, headers: dict[str, str], attempt: _Attempt) -> Iterator[requests.Response]:
        policy = self._server.retry_policy
        try:
            with attempt.waiting():
                response = self._session.get(
                    url,
                    headers=headers,
                    stream=True,
                    allow_redirects=False,
                    timeout=(policy.connect_timeout, policy.read_timeout),
                )
            with response:
                yield response
        except requests.exceptions.SSLError as error:
            if "CERTIFICATE_VERIFY_FAILED" in str(error):
                raise RefusedError(
                    f"{url}: the server's certificate cannot be trusted: {_find_innermost_reason(error)}"
                ) from error
            raise _RetryableError(_find_innermost_reason(error)) from error
        except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
            raise _RetryableError(_find_innermost_reason(error)) from error

    def _raise_for_status(self, url: str, response: requests.Response) -> None:
        """Raise an error unless the status is one of success, or 416."""
        status = response.status_code
        if status in (200, 206, 416):
            return
        message = f"the server answers {status} {quote(response.reason or '')}".rstrip()
        if status in (404, 410):
            raise NotFoundError(f"{url} is not there: {message}")
        with contextlib.suppress(OSError, urllib3.exceptions.HTTPError):  # it may have no page
            _raise_if_blocked(url, response.raw.read1(MAX_NOTICE_BYTES, decode_content=False))
        if status in _RETRYABLE_STATUSES:
            pause = _parse_retry_after(response.headers.get("Retry-After", ""))
            if pause is None and status in (429, 503):
                pause = self._server.retry_policy.initial_backoff  # all workers wait while it is overloaded
            raise _RetryableError(message, pause)
        raise RefusedError(f"{url} is refused: {message}")

    def _read_blocks(self, response: requests.Response, offset: int, attempt: _Attempt) -> Iterator[bytes]:
        """Yield the blocks of a body; a range must reach the end of the file."""
        file_size = _parse_file_size(response, offset)
        while True:
            with attempt.waiting():
                block = response.raw.read1(_BLOCK_BYTES, decode_content=False)
            if not block:
                break
            offset += len(block)
            attempt.num_bytes += len(block)
            yield block
        if file_size is not None and offset != file_size:
            raise _RetryableError(f"the connection ended at byte {offset:,} of {file_size:,}")


class _Attempt:
    """An attempt: a context manager that catches a retryable error.

    Attributes:
        failure: the error.
        seconds: time spent in waiting for the server.
        num_bytes: bytes of the body that arrived.
        new_bytes: those of them that no attempt before had brought.
    """

    def __init__(self) -> None:
        self.failure: _RetryableError | None = None
        self.seconds = 0.0
        self.num_bytes = self.new_bytes = 0

    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """Count the time of the block."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.seconds += time.monotonic() - started

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, _RetryableError):
            self.failure = error
            return True
        return False


def _make_retry_after_error(url: str, failure: Exception, pause: float) -> OutageError:
    """Return the error that ends a run whose server asks for a long pause."""
    until = datetime.fromtimestamp(time.time() + pause, UTC)
    error = OutageError(
        f"{url} cannot be read: {failure}; the server asks to wait {pause:,.0f} seconds, "
        f"until {until:%Y-%m-%d %H:%M} UTC"
    )
    error.hint = f"Run the same command again after that. {KEPT}"
    return error


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


def _check_page(url: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks of a body from its start.

    Raises:
        OutageError: it is the page with which a server blocks a network.
    """
    first = next(blocks, b"")
    if is_html(first):
        while len(first) < MAX_NOTICE_BYTES and (block := next(blocks, b"")):
            first += block
        _raise_if_blocked(url, first)
    if first:
        yield first
    yield from blocks


def _raise_if_blocked(url: str, page: bytes) -> None:
    if notice := find_block_notice(page):
        error = OutageError(f"{url}: the server blocks this network. Its page says: {quote(notice)!r}")
        error.hint = (
            "Start no other download: it would prolong the block. Wait, or write to the address on the page "
            "(NCBI: info@ncbi.nlm.nih.gov); --contact tells a server whom to ask"
        )
        raise error


def _get_validator(response: requests.Response) -> str:
    """Return the validator for ``If-Range``: a strong ETag, else Last-Modified."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _parse_retry_after(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date (RFC 9110, 10.2.3)."""
    if re.fullmatch(r"\s*\d+\s*", retry_after, re.ASCII):
        return min(float(retry_after), _MAX_DATED_SECONDS)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _find_innermost_reason(error: Exception) -> str:
    """Return the message of the innermost cause of an error."""
    while (inner := error.__cause__ or error.__context__) and isinstance(inner, Exception):
        error = inner
    return quote(str(error)) or type(error).__name__


def resolve_redirect(url: str, location: str) -> str | None:
    """Return the target of a redirect; None if it is on another host or malformed."""
    try:
        target = urljoin(url, location)
        return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None
    except ValueError:
        return None


def explain_redirect(url: str, location: str) -> str:
    """Say where a redirect leads that is not followed, and what to do."""
    options = "--pubmed-url, --pmc-url or --europepmc-url"
    quoted = quote(location)
    try:
        old, new = urlsplit(url), urlsplit(urljoin(url, location))
    except ValueError:
        return f"another host ({quoted})"
    if old.hostname == new.hostname and old.scheme != new.scheme:
        if new.scheme == "https":
            return f"{quoted}: the server wants https. Write the address with https:// in {options}"
        return f"an address without encryption ({quoted})"
    return (
        f"another host ({quoted}). If the files have moved there, name it in {options}; if it is a login "
        "page of your network, log in with a browser first"
    )


MAX_NOTICE_BYTES: Final = 1 << 14
"""Beginning of a page in which the notice of a block is searched."""
_HTML_START = re.compile(rb"\s{0,99}<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]{0,2000}>", re.DOTALL | re.I)
_BLOCKED = re.compile(
    r"\b(?:access|address|ip|network|you)\b[^<>]{0,200}?\bblocked\b|\bpossible (?:misuse|abuse)\b"
    r"|\bblocked diagnostic\b",
    re.IGNORECASE,
)


def is_html(page: bytes) -> bool:
    """Return True if a page begins like HTML."""
    return _HTML_START.match(page) is not None


def find_block_notice(page: bytes) -> str | None:
    """Return the words of a page with which a server blocks a network; None for any other page."""
    if not is_html(page):
        return None
    text = " ".join(_MARKUP.sub(" ", page[:MAX_NOTICE_BYTES].decode("utf-8", "replace")).split())
    match = _BLOCKED.search(text)
    return text[max(0, match.start() - 20) :] if match else None


@dataclass
class OutageDetector:
    """Watches the downloads from one server, in several threads.

    An unreachable file, or a number of refused ones in a row, may be the server's end or only that of these
    files.  The page that :attr:`read_page` reads was there when the run began: if it can be read, the others
    are processed.  It is read again each time that the failures in a row have doubled.

    Attributes:
        read_page: reads a page that the server has.
        max_refused: refused files in a row before the page is read.
    """

    read_page: Callable[[Connection], object]
    max_refused: int
    _failures: int = 0
    _next_reading: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def record(self, connection: Connection, error: DownloadError | None) -> None:
        """Record the end of a download, None without an error; ``connection`` is free to read the page.

        Raises:
            OutageError: the server serves nothing.
        """
        with self._lock:
            if not isinstance(error, RefusedError | UnreachableError):
                self._failures = self._next_reading = 0
                return
            # One unreachable file has taken minutes of retries.
            self._failures += 1 if isinstance(error, RefusedError) else self.max_refused
            if self._failures < max(self.max_refused, self._next_reading):
                return
            self._next_reading = 2 * self._failures
            try:
                self.read_page(connection.with_few_attempts())
            except NotFoundError:
                pass  # it answers
            except DownloadError as page_error:
                raise OutageError(f"{error}; and {page_error}") from page_error
