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
from bioshards.corpus.storage.retry import (
    GCS_RETRY_SECONDS,
    STORE_CONNECT_TIMEOUT_SECONDS,
    STORE_READ_TIMEOUT_SECONDS,
)
from bioshards.corpus.storage.storage_protocol import FileInfo

from .object_store import (
    MAX_CONNECTIONS,
    UPLOAD_PART_BYTES,
    error_from_status,
    open_ranged,
    prefix_from_folder,
    split_path,
)

CREDENTIALS_HINT: Final = (
    "gcloud auth application-default login, or GOOGLE_APPLICATION_CREDENTIALS=FILE, "
    "or for public buckets --no_auth"
)
_CLIENT_ERRORS = (
    GoogleAPIError,
    GoogleAuthError,
    DataCorruption,
    InvalidResponse,
    requests.RequestException,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)


class GcsStore:
    """The buckets of Google Cloud Storage, or of an emulator at STORAGE_EMULATOR_HOST."""

    def __init__(self, options: PipelineOptions) -> None:
        # The client would otherwise request the bucket's metadata, for traces, whenever an object is missing.
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        self._client = _make_client(options)
        for scheme in ("https://", "http://"):  # requests keeps ten, and warns of each that it throws away
            self._client._http.mount(scheme, HTTPAdapter(pool_maxsize=MAX_CONNECTIONS))
        self._request_options: dict[str, Any] = {
            "retry": DEFAULT_RETRY.with_timeout(GCS_RETRY_SECONDS),
            "timeout": (STORE_CONNECT_TIMEOUT_SECONDS, STORE_READ_TIMEOUT_SECONDS),
        }

    def open(self, path: str) -> BinaryIO:
        blob = self._get_blob(path)

        def read_range(start: int, count: int) -> bytes:
            """Read a range; the first response pins the generation for the next ones."""
            with _translate_errors(path, was_seen=blob.generation is not None):
                try:
                    data: bytes = blob.download_as_bytes(
                        start=start,
                        end=start + count - 1,
                        raw_download=True,
                        checksum=None,
                        **self._request_options,
                    )
                except RequestRangeNotSatisfiable:  # it ends where we are
                    return b""
            return data

        def get_size() -> int:
            with _translate_errors(path, was_seen=blob.generation is not None):
                blob.reload(**self._request_options)
            return int(blob.size)

        return open_ranged(read_range, get_size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        with _translate_errors(path, was_seen=True):
            blob = self._get_blob(path)
            blob.chunk_size = UPLOAD_PART_BYTES
            blob.upload_from_file(file, size=size, rewind=True, checksum="crc32c", **self._request_options)

    def remove(self, path: str) -> None:
        bucket, name = split_path(path)
        with _translate_errors(path), contextlib.suppress(NotFound):
            self._client.bucket(bucket).delete_blob(name, **self._request_options)

    def get_info(self, path: str) -> FileInfo | None:
        bucket, name = split_path(path)
        with _translate_errors(path):
            blob = self._client.bucket(bucket).get_blob(name, **self._request_options) if name else None
        return blob and _info_from_blob(path, blob)

    def list_prefix(self, prefix: str) -> Iterator[FileInfo]:
        bucket, name_prefix = split_path(prefix)
        with _translate_errors(prefix):
            for blob in self._client.list_blobs(bucket, prefix=name_prefix, **self._request_options):
                yield _info_from_blob(f"gs://{bucket}/{blob.name}", blob)

    def list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        bucket = split_path(folder)[0]
        with _translate_errors(folder):
            blobs = self._client.list_blobs(
                bucket, prefix=prefix_from_folder(folder), delimiter="/", **self._request_options
            )
            files = [_info_from_blob(f"gs://{bucket}/{blob.name}", blob) for blob in blobs]
        return files, [f"gs://{bucket}/{name}" for name in sorted(blobs.prefixes)]

    def remove_temporaries(self, folder: str) -> None:
        """Nothing: an upload that was not ended is no object, and ends by itself after a week."""

    def probe(self, path: str) -> None:
        with _translate_errors(path):
            blobs = self._client.list_blobs(
                split_path(path)[0],
                max_results=1,
                retry=None,
                timeout=(STORE_CONNECT_TIMEOUT_SECONDS, STORE_CONNECT_TIMEOUT_SECONDS),
            )
            next(iter(blobs), None)

    def _get_blob(self, path: str) -> Blob:
        bucket, name = split_path(path)
        return self._client.bucket(bucket).blob(name)


def _make_client(options: PipelineOptions) -> Client:
    """Return a client with the credentials of Beam's options; an anonymous one for --no_auth and emulators.

    Raises:
        CredentialsError: there are none.
    """
    if options.view_as(GoogleCloudOptions).no_auth or "STORAGE_EMULATOR_HOST" in os.environ:
        return Client.create_anonymous_client()
    try:
        google.auth.default()  # Beam would look five times, and then go on as nobody
    except DefaultCredentialsError as error:
        raise CredentialsError(f"gs:// needs credentials: {CREDENTIALS_HINT}") from error
    return create_storage_client(options)


def _info_from_blob(path: str, blob: Blob) -> FileInfo:
    return FileInfo(path, int(blob.size), str(blob.generation))


@contextlib.contextmanager
def _translate_errors(path: str, was_seen: bool = False) -> Iterator[None]:
    """Raise the client's errors as OSErrors; with ``was_seen``, a missing object is a transient error."""
    try:
        yield
    except _CLIENT_ERRORS as error:
        status = _find_status(error)
        is_network_error = isinstance(error, TransportError)
        if isinstance(error, GoogleAuthError) and not error.retryable and not is_network_error:
            raise CredentialsError(
                f"the credentials for {path} are not taken: {error}. Renew them: {CREDENTIALS_HINT}"
            ) from error
        if status == 404 and was_seen:
            raise TransientStorageError(f"{path} was replaced or lost on its way: {error}") from error
        raise error_from_status(path, status, error) from error


def _find_status(error: BaseException) -> int | None:
    """Return the HTTP status of a client's error, if it has one."""
    if isinstance(error, RetryError):
        return _find_status(error.cause) if error.cause else None
    if isinstance(error, InvalidResponse):
        return int(error.response.status_code)
    code = getattr(error, "code", None)
    return int(code) if code else None
