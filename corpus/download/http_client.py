"""Ask a server for files, politely and until it answers.

Every request waits for its turn (``rate_limit.py``), says who asks, and is tried again after a pause that
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
from bioshards.corpus.storage.retry import DEFAULT_RETRY_POLICY, MAX_RETRY_AFTER_SECONDS, RetryPolicy

from .rate_limit import RateLimiter

_BLOCK_BYTES: Final = 1 << 17
_RETRYABLE_STATUSES: Final = frozenset({408, 425, 429, *range(500, 600)} - {501, 505})
_REDIRECT_STATUSES: Final = frozenset({301, 302, 303, 307, 308})
_CONTENT_RANGE = re.compile(r"bytes (\d{1,18})-\d{1,18}/(?:(\d{1,18})|\*)", re.ASCII)
_CONTENT_LENGTH = re.compile(r"\d{1,18}", re.ASCII)
_MAX_REDIRECTS: Final = 3


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


class HttpResponse(NamedTuple):
    """A small body, whole.  Headers that are absent are ''; the ETag is without its quotes."""

    body: bytes
    etag: str
    last_modified: str


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address and how it may be asked."""

    base_url: str
    user_agent: str
    rate_limiter: RateLimiter
    retry_policy: RetryPolicy = DEFAULT_RETRY_POLICY

    @contextlib.contextmanager
    def connect(self) -> Iterator[Connection]:
        """A connection, in one of the server's places, which is given back at the end."""
        with self.rate_limiter.acquire_slot(), contextlib.closing(Connection(self)) as connection:
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
        self._session.headers.update({"User-Agent": server.user_agent, "Accept-Encoding": "identity"})
        # Proxies and certificates of the environment, looked up once: else it is a fifth of a request's time.
        for name, value in self._session.merge_environment_settings(
            server.base_url, {}, None, None, None
        ).items():
            setattr(self._session, name, value)
        self._session.trust_env = False

    def close(self) -> None:
        self._session.close()

    def read(self, url: str, max_bytes: int) -> HttpResponse:
        """The whole body of a small file, of ``max_bytes`` bytes.

        Raises:
            DownloadError: it cannot be had.
        """
        for attempt in self._iter_attempts(url):
            with attempt, self._request(url, {}) as response:
                body = bytearray()
                for block in self._read_blocks(response, 0):
                    body += block
                    if len(body) > max_bytes:
                        raise RefusedError(
                            f"{url} has more than {max_bytes:,} bytes, which nothing here should"
                        )
                headers = response.headers
                etag = headers.get("ETag", "").removeprefix("W/").strip('"')
                return HttpResponse(bytes(body), etag, headers.get("Last-Modified", ""))
        raise AssertionError("tries end with an answer or an error")

    def stream(self, url: str, start: int) -> Iterator[tuple[int, bytes]]:
        """A file's bytes as (offset, block), from byte ``start`` on, to its end.

        An offset of 0 after others means that the server has begun again from the beginning: what
        came before is to be thrown away.

        Raises:
            DownloadError: it cannot be had to its end.
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
                            return  # all of it is there
                        offset = 0  # it is shorter than what is there
                        raise _RetryableError("the server has no such range of it")
                    new_validator = _get_validator(response)
                    if response.status_code != 206:
                        offset, validator = 0, new_validator
                    elif validator and new_validator not in ("", validator):  # it does not know If-Range
                        offset = 0
                        raise _RetryableError("the server sends a range of another version of it")
                    validator = new_validator or validator
                    for block in self._read_blocks(response, offset):
                        yield offset, block
                        offset += len(block)
                        if offset > max_offset:  # what was sent before, sent again, is no progress
                            max_offset = offset
                            attempt.mark_progress()
                return

    def _iter_attempts(self, url: str) -> Iterator[_Attempt]:
        """Tries until one ends without an error that another may mend."""
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
                    f"{url} cannot be had: {attempt.failure} (tried {num_failures} times in a row)"
                    if num_failures >= policy.max_attempts
                    else f"{url} cannot be had: {attempt.failure}; the server asks to come back in "
                    f"{pause:.0f} seconds"
                )
            if pause is not None:
                self._server.rate_limiter.pause(pause)
            backoff = min(policy.initial_backoff * 2 ** (num_failures - 1), policy.max_backoff)
            time.sleep(max(pause or 0, backoff * random.uniform(0.5, 1.5)))

    @contextlib.contextmanager
    def _request(self, url: str, headers: dict[str, str]) -> Iterator[requests.Response]:
        """Send one request; the answer's head, with a status of success (or 416), its body to be read."""
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
                    raise RefusedError(
                        f"{url} is redirected to another host ({location[:200]}), which is not followed"
                    )
                current_url = target
        raise RefusedError(f"{url} is redirected again and again")

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
        """Raise unless the answer's status is one of success."""
        status = response.status_code
        if status in (200, 206, 416):
            return
        message = f"the server answers {status} {response.reason}"
        if status in (404, 410):
            raise NotFoundError(f"{url} is not there: {message}")
        if status in _RETRYABLE_STATUSES:
            pause = _parse_retry_after(response.headers.get("Retry-After", ""))
            if pause is None and status in (429, 503):
                pause = self._server.retry_policy.initial_backoff  # nobody asks while it is overloaded
            raise _RetryableError(message, pause)
        raise RefusedError(f"{url} is refused: {message}")

    def _read_blocks(self, response: requests.Response, offset: int) -> Iterator[bytes]:
        """The body as it comes, to the end that its headers announce."""
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
    """One try, as a context that keeps an error which another try may mend."""

    def __init__(self) -> None:
        self.failure: _RetryableError | None = None
        self.has_progressed = False

    def mark_progress(self) -> None:
        self.has_progressed = True

    def __enter__(self) -> _Attempt:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if isinstance(error, _RetryableError):
            self.failure = error
            return True
        return False


def _resolve_redirect(url: str, location: str) -> str | None:
    """Where a redirect leads to; None where that is on another host, or no address."""
    try:
        target = urljoin(url, location)
        return target if urlsplit(target)[:2] == urlsplit(url)[:2] else None
    except ValueError:
        return None


def _find_body_end(response: requests.Response, offset: int) -> int | None:
    """The offset at which the body ends; None where the headers do not say."""
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
    """What ``If-Range`` may name: a strong ETag, else the date of the last change."""
    etag = response.headers.get("ETag", "")
    return etag if etag.startswith('"') else response.headers.get("Last-Modified", "")


def _parse_retry_after(retry_after: str) -> float | None:
    """Seconds of a Retry-After header, which is a number or a date (RFC 9110, 10.2.3)."""
    if re.fullmatch(r"\s*\d{1,9}\s*", retry_after):
        return float(retry_after)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(retry_after).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _find_innermost_reason(error: Exception) -> str:
    """The innermost reason of an error that wraps others, in a few words."""
    while (inner := error.__cause__ or error.__context__) and isinstance(inner, Exception):
        error = inner
    return str(error) or type(error).__name__
