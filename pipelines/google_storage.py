"""Google Cloud Storage, gs://, by Google's own client: one for a process.

Beam's file system makes a client for each call, looks for credentials in vain for 18 seconds where there
are none, and renames by copying.  Which credentials Beam's options mean is Beam's to say.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import google.auth
import requests
import urllib3
from apache_beam.io.gcp.gcsio import create_storage_client
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions
from google.api_core.exceptions import GoogleAPIError, NotFound, RequestRangeNotSatisfiable, RetryError
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError, TransportError
from google.cloud.storage import Blob, Client
from google.cloud.storage.exceptions import DataCorruption, InvalidResponse
from google.cloud.storage.retry import DEFAULT_RETRY
from requests.adapters import HTTPAdapter

from bioshards.corpus.errors import CredentialsError, TransientStorageError
from bioshards.corpus.files import Found

from .object_store import (
    CONNECT_SECONDS,
    CONNECTIONS,
    PART_BYTES,
    SILENT_SECONDS,
    failure,
    inside,
    opened,
    split,
)

CREDENTIALS: Final = (
    "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=FILE, "
    "or for public buckets --no_auth"
)
_RETRY_SECONDS: Final = 1.5 * SILENT_SECONDS
"""How long the client tries again, with growing pauses: after one silence there is time to ask once more."""

os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
"""For traces that nobody takes, the client would ask for the bucket whenever an object is not there."""

_ERRORS = (
    GoogleAPIError,
    GoogleAuthError,
    DataCorruption,
    InvalidResponse,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)


class GoogleStore:
    """The buckets of Google Cloud Storage, or of an emulator at STORAGE_EMULATOR_HOST."""

    def __init__(self, options: PipelineOptions) -> None:
        self._client = _client(options)
        for scheme in ("https://", "http://"):  # requests keeps ten, and warns of each that it throws away
            self._client._http.mount(scheme, HTTPAdapter(pool_maxsize=CONNECTIONS))
        self._asking: dict[str, Any] = {
            "retry": DEFAULT_RETRY.with_timeout(_RETRY_SECONDS),
            "timeout": (CONNECT_SECONDS, SILENT_SECONDS),
        }

    def open(self, path: str) -> BinaryIO:
        blob = self._blob(path)

        def fetch(start: int, count: int) -> bytes:
            """The first answer says which generation this is, and the client asks for that from then on."""
            with _failures(path, lost=blob.generation is not None):
                try:
                    found: bytes = blob.download_as_bytes(
                        start=start, end=start + count - 1, raw_download=True, checksum=None, **self._asking
                    )
                except RequestRangeNotSatisfiable:  # it ends where we are
                    return b""
            return found

        def size() -> int:
            with _failures(path, lost=blob.generation is not None):
                blob.reload(**self._asking)
            return int(blob.size)

        return opened(fetch, size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        with _failures(path, lost=True):
            whole = self._blob(path)
            whole.chunk_size = PART_BYTES
            whole.upload_from_file(file, size=size, rewind=True, checksum="crc32c", **self._asking)

    def remove(self, path: str) -> None:
        bucket, name = split(path)
        with _failures(path), contextlib.suppress(NotFound):
            self._client.bucket(bucket).delete_blob(name, **self._asking)

    def look(self, path: str) -> Found | None:
        bucket, name = split(path)
        with _failures(path):
            blob = self._client.bucket(bucket).get_blob(name, **self._asking) if name else None
        return blob and _found(path, blob)

    def below(self, prefix: str) -> Iterator[Found]:
        bucket, begin = split(prefix)
        with _failures(prefix):
            for blob in self._client.list_blobs(bucket, prefix=begin, **self._asking):
                yield _found(f"gs://{bucket}/{blob.name}", blob)

    def folder(self, folder: str) -> tuple[list[Found], list[str]]:
        bucket = split(folder)[0]
        with _failures(folder):
            listed = self._client.list_blobs(bucket, prefix=inside(folder), delimiter="/", **self._asking)
            files = [_found(f"gs://{bucket}/{blob.name}", blob) for blob in listed]
        return files, [f"gs://{bucket}/{name}" for name in sorted(listed.prefixes)]

    def sweep(self, folder: str) -> None:
        """Nothing: an upload that was not ended is no object, and ends by itself after a week."""

    def probe(self, path: str) -> None:
        with _failures(path):
            listed = self._client.list_blobs(
                split(path)[0], max_results=1, retry=None, timeout=(CONNECT_SECONDS, CONNECT_SECONDS)
            )
            next(iter(listed), None)

    def _blob(self, path: str) -> Blob:
        bucket, name = split(path)
        return self._client.bucket(bucket).blob(name)


def _client(options: PipelineOptions) -> Client:
    """A client with the credentials of Beam's options; of nobody if they or an emulator ask for none.

    Raises:
        CredentialsError: there are none.
    """
    if options.view_as(GoogleCloudOptions).no_auth or "STORAGE_EMULATOR_HOST" in os.environ:
        return Client.create_anonymous_client()
    try:
        google.auth.default()  # Beam would look five times, and then go on as nobody
    except DefaultCredentialsError as error:
        raise CredentialsError(f"gs:// needs credentials: {CREDENTIALS}") from error
    return create_storage_client(options)


def _found(path: str, blob: Blob) -> Found:
    return Found(path, int(blob.size), str(blob.generation))


@contextlib.contextmanager
def _failures(path: str, lost: bool = False) -> Iterator[None]:
    """The client's errors are OSErrors outside of this; ``lost``: what is not there was there before."""
    try:
        yield
    except _ERRORS as error:
        status = _status(error)
        of_network = isinstance(error, TransportError)
        if isinstance(error, GoogleAuthError) and not error.retryable and not of_network:
            raise CredentialsError(
                f"the credentials for {path} are not taken: {error}. Renew them: {CREDENTIALS}"
            ) from error
        if status == 404 and lost:
            raise TransientStorageError(f"{path} was replaced or lost on its way: {error}") from error
        raise failure(path, status, error) from error


def _status(error: BaseException) -> int | None:
    """The status of the answer that an error is about."""
    if isinstance(error, RetryError):
        return _status(error.cause) if error.cause else None
    if isinstance(error, InvalidResponse):
        return int(error.response.status_code)
    code = getattr(error, "code", None)
    return int(code) if code else None
