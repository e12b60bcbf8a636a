"""The exceptions for the errors of obstore, which tell the status of a response in their text alone."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from obstore.exceptions import BaseError

from bioshards.corpus.errors import CredentialsError, TransientStorageError
from bioshards.pipelines.storage.object_store import CREDENTIALS_HINTS, split_path
from bioshards.pipelines.storage.store_options import STORE_INITIAL_BACKOFF_SECONDS, STORE_MAX_RETRIES

Result = TypeVar("Result")

_TRANSIENT_STATUSES: Final = {408, 409, 410, 412, 429, *range(500, 600)} - {501}
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
        text, _, causes = str(error).partition("\n\nDebug source")
        match = re.search(r"status code: (\d+)", text)
        status = int(match[1]) if match else 404 if isinstance(error, FileNotFoundError) else None
        cause = re.search(r'message: "([^"]*)"|source: (TimedOut)', causes)
        if cause and not match:
            text += f" ({cause[1] or cause[2]})"
        raise _make_error(path, status, text, was_seen) from error


def _make_error(path: str, status: int | None, text: str, was_seen: bool) -> OSError:
    """Return the exception for a failed call.

    Args:
        status: HTTP status; None without a response.
        text: the error in words, with the body of the response.
    """
    bucket = split_path(path)[0]
    code, message = (re.search(rf"<{tag}>([^<\n]*)", text) for tag in ("Code", "Message"))
    name = code[1] if code else ""
    # What precedes the dash has the URL of the request, and with it a signature.
    reason = " ".join(text.rpartition(" - ")[2].split())[:300]
    if name:
        reason = f"{status} {name}" + (f": {message[1][:300]}" if message else "")
    hint = CREDENTIALS_HINTS.get(bucket.partition("://")[0], "")
    if status == 401 or name in _CREDENTIALS_CODES or "credential provider" in text:
        return CredentialsError(
            f"{bucket} does not take the credentials for {path} ({reason}). Renew them: {hint}"
        )
    if "token request" in text or "Account must be" in text:
        return CredentialsError(f"{bucket} needs credentials: {hint}")
    if was_seen and status in (404, 412):
        return TransientStorageError(f"{path} was replaced or lost on its way: {reason}")
    if status == 404 and name not in _TRANSIENT_CODES:
        return FileNotFoundError(f"{path} is not there: {reason}")
    if status == 403:
        return PermissionError(f"{bucket} does not allow what is needed of {path}: {reason}")
    if "invalid path" in text or "parse path" in text:
        return OSError(
            f"{path} cannot be used: it has a name with an empty part (a//b), or another that no client "
            f"takes ({reason}). Rename what is there"
        )
    if status is None or name in _TRANSIENT_CODES or status in _TRANSIENT_STATUSES:
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
