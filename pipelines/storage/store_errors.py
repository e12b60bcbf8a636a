"""The exceptions for the errors of obstore, which tell the status of a response in their text alone."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from obstore.exceptions import BaseError, UnauthenticatedError

from bioshards.corpus.errors import CredentialsError, TransientStorageError

from bioshards.corpus.storage.retry import STORE_INITIAL_BACKOFF_SECONDS, STORE_MAX_RETRIES

from .object_store import CREDENTIALS_HINTS, split_path

Result = TypeVar("Result")

_TRANSIENT_CODES: Final = {
    "BadDigest",
    "IncompleteBody",
    "InvalidPart",
    "NoSuchUpload",  # its parts were removed meanwhile: by a rule of the bucket, or by another run
    "RequestTimeout",
    "SlowDown",
}
"""Codes of transient errors whose status is that of a lasting one."""

_CREDENTIALS_CODES: Final = {
    "AuthenticationFailed",  # Azure's
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",  # this machine's clock is wrong
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
"""Codes of errors that are about credentials; the statuses of their answers are 400 and 403."""


@contextlib.contextmanager
def translate_errors(path: str, was_seen: bool = False) -> Iterator[None]:
    """Raise obstore's errors as OSErrors.

    Args:
        was_seen: the object was there, so that it is a transient error if it is missing.

    Raises:
        FileNotFoundError: there is no such object, or no such bucket.
        CredentialsError: the store does not take the credentials.
        PermissionError: they do not suffice.
        TransientStorageError: the same call may succeed later.
        OSError: the store refuses the call, or obstore the name.
    """
    try:
        yield
    except (BaseError, FileNotFoundError, ValueError) as error:
        if isinstance(error, ValueError) and "parse path" not in str(error):
            raise
        text, _, details = str(error).partition("\n\nDebug source")
        status = re.search(r"status code: (\d+)", text)
        raise make_error(path, int(status[1]) if status else None, error, text, details, was_seen) from error


def make_error(
    path: str, status: int | None, error: Exception, text: str, details: str = "", was_seen: bool = False
) -> OSError:
    """Return the exception for a failed call.

    Args:
        status: HTTP status; None without a response.
        text: the error in words; it may hold the body of the response.
        details: obstore's description of the causes.
    """
    bucket = split_path(path)[0]
    code, message = (re.search(rf"<{tag}>([^<\n]*)", text) for tag in ("Code", "Message"))
    cause = re.search(r'message: "([^"]*)"|source: (TimedOut)', details)
    # Neither the URL of a request nor its signature.
    reason = text.partition("\n")[0].rpartition(" - ")[2][:300] + (
        f": {cause[1] or cause[2]}" if cause else ""
    )
    if code:
        reason = f"{status} {code[1]}" + (f": {message[1][:300]}" if message else "")
    name = code[1] if code else ""
    if isinstance(error, UnauthenticatedError) or status == 401 or name in _CREDENTIALS_CODES:
        hint = CREDENTIALS_HINTS.get(bucket.partition("://")[0], "")
        return CredentialsError(
            f"{bucket} does not take the credentials for {path} ({reason}). Renew them: {hint}"
        )
    if "token request" in text or "Account must be" in text:
        return CredentialsError(
            f"{bucket} needs credentials: {CREDENTIALS_HINTS[bucket.partition('://')[0]]}"
        )
    if name in _TRANSIENT_CODES:
        return TransientStorageError(f"the store failed at {path}: {reason}")
    if was_seen and status in (404, 412):
        return TransientStorageError(f"{path} was replaced or lost on its way: {reason}")
    if status == 404 or isinstance(error, FileNotFoundError):
        return FileNotFoundError(f"{path} is not there: {reason}")
    if status == 403:
        return PermissionError(f"{bucket} does not allow what is needed of {path}: {reason}")
    if isinstance(error, ValueError) or "invalid path" in text:
        return OSError(f"{path} cannot be used, as no client takes its name: {reason}. Rename what is there")
    if status is None or status in (408, 409, 410, 412, 429) or (status >= 500 and status != 501):
        return TransientStorageError(f"the store failed at {path}: {reason}")
    return OSError(f"the store refuses {path}: {reason}")


def repeat(call: Callable[[], Result]) -> Result:
    """Repeat a listing or a removal whose connection breaks: obstore repeats them for statuses alone."""
    for attempt in range(STORE_MAX_RETRIES):
        try:
            return call()
        except BaseError as error:
            if not re.search(r"response body|performing (?:DELETE|POST).* HTTP error", str(error)):
                raise
            time.sleep(STORE_INITIAL_BACKOFF_SECONDS * 2**attempt)
    return call()
