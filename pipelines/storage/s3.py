"""Amazon's S3 and what speaks its protocol, s3://, by boto3's client: one for a process.

Beam's file system makes a client for each call (a third of a second), tries for ten minutes, and makes an
object even of half a file when its writer is thrown away.  Its options are read here as Beam reads them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import boto3
import urllib3
from apache_beam.options.pipeline_options import PipelineOptions, S3Options
from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
)

from bioshards.corpus.errors import CredentialsError, TransientStorageError
from bioshards.corpus.storage.retry import (
    S3_MAX_ATTEMPTS,
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
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
    "or --s3_access_key_id and --s3_secret_access_key"
)
_UPLOAD_CONCURRENCY: Final = 4

_TRANSIENT_CODES: Final = {
    "BadDigest",
    "IncompleteBody",
    "InvalidPart",
    "NoSuchUpload",  # its parts were removed meanwhile: by a rule of the bucket, or by another run
    "RequestTimeout",
    "SlowDown",
}
"""Codes of errors that the status of the answer would have us take for lasting ones."""

_CREDENTIALS_CODES: Final = {
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",  # this machine's clock is wrong
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
"""Codes of errors that are about credentials; the statuses of their answers are 400 and 403."""

_CLIENT_ERRORS = (
    BotoCoreError,
    ClientError,
    Boto3Error,
    urllib3.exceptions.HTTPError,
    ConnectionError,
    TimeoutError,
)


class S3Store:
    """The buckets of S3, or of what listens at ``--s3_endpoint_url``."""

    def __init__(self, options: PipelineOptions) -> None:
        self._options = options
        with _translate_errors("s3://"):
            self._client = _make_client(options, S3_MAX_ATTEMPTS, STORE_READ_TIMEOUT_SECONDS)

    def open(self, path: str) -> BinaryIO:
        bucket, name = split_path(path)
        version: dict[str, str] = {}  # the first answer says which this is, and we ask for that from then on

        def read_range(start: int, count: int) -> bytes:
            byte_range = f"bytes={start}-{start + count - 1}"
            with _translate_errors(path):
                for attempts_left in reversed(range(S3_MAX_ATTEMPTS)):
                    try:
                        response = self._client.get_object(
                            Bucket=bucket, Key=name, Range=byte_range, **version
                        )
                    except ClientError as error:
                        if _error_code(error) == "InvalidRange":  # it ends where we are
                            return b""
                        raise
                    version["IfMatch"] = response["ETag"]
                    try:
                        return bytes(response["Body"].read())
                    except _CLIENT_ERRORS:  # of an answer that breaks off the client says so, and no more
                        if not attempts_left:
                            raise
            raise AssertionError("the last try returns or raises")

        def get_size() -> int:
            with _translate_errors(path):
                return int(self._client.head_object(Bucket=bucket, Key=name, **version)["ContentLength"])

        return open_ranged(read_range, get_size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        bucket, name = split_path(path)
        transfer_config = TransferConfig(
            multipart_threshold=UPLOAD_PART_BYTES,
            multipart_chunksize=UPLOAD_PART_BYTES,
            max_concurrency=_UPLOAD_CONCURRENCY,
        )
        file.seek(0)
        with _translate_errors(path):  # the client takes back the parts of an upload that fails
            self._client.upload_fileobj(file, bucket, name, Config=transfer_config)

    def remove(self, path: str) -> None:
        bucket, name = split_path(path)
        with _translate_errors(path):
            self._client.delete_object(Bucket=bucket, Key=name)

    def get_info(self, path: str) -> FileInfo | None:
        bucket, name = split_path(path)
        if not name:
            return None
        try:
            with _translate_errors(path):
                response = self._client.head_object(Bucket=bucket, Key=name)
        except FileNotFoundError:
            return None
        return FileInfo(path, response["ContentLength"], response["ETag"].strip('"'))

    def list_prefix(self, prefix: str) -> Iterator[FileInfo]:
        bucket, name_prefix = split_path(prefix)
        with _translate_errors(prefix):
            for page in self._list_pages(bucket, name_prefix):
                yield from _infos_from_page(bucket, page)

    def list_folder(self, folder: str) -> tuple[list[FileInfo], list[str]]:
        bucket = split_path(folder)[0]
        files: list[FileInfo] = []
        folders: list[str] = []
        with _translate_errors(folder):
            for page in self._list_pages(bucket, prefix_from_folder(folder), Delimiter="/"):
                files += _infos_from_page(bucket, page)
                folders += [f"s3://{bucket}/{item['Prefix']}" for item in page.get("CommonPrefixes", ())]
        return files, folders

    def remove_temporaries(self, folder: str) -> None:
        """Abort the uploads into a folder that a killed process has left: their parts are billed for ever.

        Who may not do so, or whose store cannot, leaves that to a rule of the bucket.
        """
        bucket = split_path(folder)[0]
        paginator = self._client.get_paginator("list_multipart_uploads")
        with contextlib.suppress(OSError), _translate_errors(folder):
            for page in paginator.paginate(Bucket=bucket, Prefix=prefix_from_folder(folder)):
                for upload in page.get("Uploads", ()):
                    if "/" in upload["Key"].removeprefix(prefix_from_folder(folder)):
                        continue
                    with contextlib.suppress(self._client.exceptions.NoSuchUpload):
                        self._client.abort_multipart_upload(
                            Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )

    def probe(self, path: str) -> None:
        with _translate_errors(path):
            probe_client = _make_client(self._options, 1, STORE_CONNECT_TIMEOUT_SECONDS)
            probe_client.list_objects_v2(Bucket=split_path(path)[0], MaxKeys=1)

    def _list_pages(self, bucket: str, prefix: str, **request_options: str) -> Iterator[dict[str, Any]]:
        return iter(
            self._client.get_paginator("list_objects_v2").paginate(
                Bucket=bucket, Prefix=prefix, **request_options
            )
        )


def _make_client(options: PipelineOptions, max_attempts: int, read_timeout: float) -> Any:
    s3_options = options.view_as(S3Options)
    return boto3.client(
        "s3",
        region_name=s3_options.s3_region_name,
        api_version=s3_options.s3_api_version,
        use_ssl=not s3_options.s3_disable_ssl,
        verify=s3_options.s3_verify,
        endpoint_url=s3_options.s3_endpoint_url,
        aws_access_key_id=s3_options.s3_access_key_id,
        aws_secret_access_key=s3_options.s3_secret_access_key,
        aws_session_token=s3_options.s3_session_token,
        config=Config(
            connect_timeout=STORE_CONNECT_TIMEOUT_SECONDS,
            read_timeout=read_timeout,
            retries={"mode": "standard", "total_max_attempts": max_attempts},
            max_pool_connections=MAX_CONNECTIONS,
        ),
    )


def _infos_from_page(bucket: str, page: dict[str, Any]) -> list[FileInfo]:
    return [
        FileInfo(f"s3://{bucket}/{item['Key']}", item["Size"], item["ETag"].strip('"'))
        for item in page.get("Contents", ())
    ]


@contextlib.contextmanager
def _translate_errors(path: str) -> Iterator[None]:
    """Raise the client's errors as OSErrors."""
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, ProfileNotFound) as error:
        raise CredentialsError(f"s3:// needs credentials ({error}): {CREDENTIALS_HINT}") from error
    except ClientError as error:
        code = _error_code(error)
        if code in _TRANSIENT_CODES:
            raise TransientStorageError(f"the store failed at {path}: {error}") from error
        status = (
            401 if code in _CREDENTIALS_CODES else int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        )
        raise error_from_status(path, status, error) from error
    except _CLIENT_ERRORS as error:
        raise error_from_status(path, None, error) from error


def _error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
