"""HTTP client with rate limiting, retries with exponential backoff, and resumed transfers.

Every request waits for the rate limiter (``rate_limit.py``), sends a User-Agent, and is retried by the retry
policy (storage/retry.py) or after ``Retry-After``.  A body that ends early is resumed by a range request.  A
redirect to another host is an error.
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
from bioshards.corpus.storage.retry import DEFAULT_RETRY_POLICY, MAX_RETRY_AFTER_SECONDS, RetryPolicy

from .rate_limit import RateLimiter

_BLOCK_BYTES: Final = 1 << 17
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:(\d{1,18})|\*)", re.ASCII)
_CONTENT_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_MAX_REDIRECTS: Final = 3


class DownloadError(RunError):
    """A request failed; the message names the URL and the reason."""


class NotFoundError(DownloadError):
    """The server has no such file (404, 410)."""


class RefusedError(DownloadError):
    """The request is refused, redirected to another host, or has too large a response; not retried."""


class UnreachableError(DownloadError):
    """All attempts failed."""


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
    """URL of a server with its rate limit and retry policy."""

    base_url: str
    user_agent: str
    rate_limiter: RateLimiter
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        """Open a connection, which takes one of the slots of the rate limiter."""
        with self.rate_limiter.acquire_slot(), contextlib.closing(Connection(self)) as connection:
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
        for attempt in self._iter_attempts(url):
            with attempt, self._request(url, {}) as response:
                body = bytearray()
                for block in self._read_blocks(response, 0):
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
        for attempt in self._iter_attempts(url):
            headers = {"Range": f"bytes={offset}-"} if offset else {}
            if offset and validator:
                headers["If-Range"] = validator
            with attempt:
                with self._request(url, headers) as response:
                    if response.status_code == 416:
                        if response.headers.get("Content-Range") == f"bytes */{offset}":
                            return  # complete
                        offset = 0  # the file is now shorter
                        raise _RetryableError("the server does not have this range of it")
                    new_validator = _get_validator(response)
                    if response.status_code != 206:
                        offset, validator = 0, new_validator
                    elif validator and new_validator not in ("", validator):  # the server ignores If-Range
                        offset = 0
                        raise _RetryableError("the server sends a range of another version of it")
                    validator = new_validator or validator
                    for block in self._read_blocks(response, offset):
                        yield offset, block
                        offset += len(block)
                        if offset > max_offset:  # repeated bytes are not progress
                            max_offset = offset
                            attempt.mark_progress()
                return

    def _iter_attempts(self, url: str) -> Iterator[_Attempt]:
        """Yield attempts until one ends without a retryable error."""
        policy, num_failures = self._server.retry_policy, 0
        while True:
            attempt = _Attempt()
            yield attempt
            if attempt.failure is None:
                return
            num_failures = 1 if attempt.has_progressed else num_failures + 1
            pause = attempt.failure.pause
            if num_failures >= policy.max_attempts or (pause or 0) > MAX_RETRY_AFTER_SECONDS:
                raise UnreachableError(
                    f"{url} cannot be read: {attempt.failure} (tried {num_failures} times in a row)"
                    if num_failures >= policy.max_attempts
                    else f"{url} cannot be read: {attempt.failure}; the server asks to retry after "
                    f"{pause:.0f} seconds"
                )
            if pause is not None:
                self._server.rate_limiter.pause(pause)
            backoff = min(policy.initial_backoff * 2 ** (num_failures - 1), policy.max_backoff)
            time.sleep(max(pause or 0, backoff * random.uniform(0.5, 1.5)))

    @contextlib.contextmanager
    def _request(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        """Send a request and follow redirects on the same host; the status is one of success, or 416."""
        current_url = url
        for _ in range(_MAX_REDIRECTS + 1):
            self._server.rate_limiter.wait_for_turn()
            with self._send(current_url, headers) as response:
                status = response.status_code
                if status not in _REDIRECT_STATUSES:
                    self._raise_for_status(url, response)
                    yield response
                    return
                location = response.headers.get("Location", "")
                target = _resolve_redirect(current_url, location)
                if target is None:
                    raise RefusedError(f"{url} is redirected to another host ({location[:200]})")
                current_url = target
        raise RefusedError(f"{url} is redirected too often")

    @contextlib.contextmanager
    def _send(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        policy = self._server.retry_policy
        try:
            with self._session.get(
                url,
                headers=headers,
                stream=True,
                allow_redirects=False,
                timeout=(policy.connect_timeout, policy.read_timeout),
            ) as response:
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
        message = f"the server answers {status} {response.reason}"
        if status in (404, 410):
            raise NotFoundError(f"{url} is not there: {message}")
        if status in _RETRYABLE_STATUSES:
            pause = _parse_retry_after(response.headers.get("Retry-After", ""))
            if pause is None and status in (429, 503):
                pause = self._server.retry_policy.initial_backoff  # all workers wait while it is overloaded
            raise _RetryableError(message, pause)
        raise RefusedError(f"{url} is refused: {message}")

    def _read_blocks(self, response: requests.Response, offset: int) -> Iterator[bytes]:
        """Yield the blocks of a body, and check its length against the headers."""
        end = _find_body_end(response, offset)
        policy = self._server.retry_policy
        window_start, window_bytes = time.monotonic(), 0
        while block := response.raw.read1(_BLOCK_BYTES, decode_content=False):
            offset += len(block)
            window_bytes += len(block)
            yield block
            seconds = time.monotonic() - window_start
            if seconds > policy.read_timeout:
                if window_bytes < policy.min_bytes_per_second * seconds:
                    raise _RetryableError(f"it sends only {window_bytes / seconds:.0f} bytes a second")
                window_start, window_bytes = time.monotonic(), 0
        if end is not None and offset != end:
            raise _RetryableError(f"the connection ended at byte {offset:,} of {end:,}")


class _Attempt:
    """An attempt: a context manager that catches a retryable error."""

    def __init__(self) -> None:
        self.failure: _RetryableError | None = None
        self.has_progressed = False

    def mark_progress(self) -> None:
        """Record that new bytes arrived: the next failure counts as the first."""
        self.has_progressed = True

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, _RetryableError):
            self.failure = error
            return True
        return False


def _resolve_redirect(url: str, location: str) -> str | None:
    """Return the target of a redirect; None if it is on another host or malformed."""
    try:
        target = urljoin(url, location)
        return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None
    except ValueError:
        return None


def _find_body_end(response: requests.Response, offset: int) -> int | None:
    """Return the offset at which the body ends; None if the headers do not tell."""
    if response.status_code == 206:
        match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
        if not match or int(match[1]) != offset:
            raise _RetryableError(
                f"the server answers with another range: {response.headers.get('Content-Range')}"
            )
        if match[2]:
            return int(match[2])
    length = response.headers.get("Content-Length", "")
    return offset + int(length) if _CONTENT_LENGTH.fullmatch(length) else None


def _get_validator(response: requests.Response) -> str:
    """Return the validator for ``If-Range``: a strong ETag, else Last-Modified."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _parse_retry_after(retry_after: str) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date (RFC 9110, 10.2.3)."""
    if re.fullmatch(r"\s*\d{1,9}\s*", retry_after):
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _find_innermost_reason(error: Exception) -> str:
    """Return the message of the innermost cause of an error."""
    while (inner := error.__cause__ or error.__context__) and isinstance(inner, Exception):
        error = inner
    return str(error) or type(error).__name__
