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
    "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, "
    "or --s3_access_key_id and --s3_secret_access_key"
)
_TRIES: Final = 5
"""How often the client asks, with growing pauses, before a step is done again (again.py)."""
_PARTS_AT_ONCE: Final = 4

_MOMENTARY: Final = {
    "BadDigest",
    "IncompleteBody",
    "InvalidPart",
    "NoSuchUpload",  # its parts were removed meanwhile: by a rule of the bucket, or by another run
    "RequestTimeout",
    "SlowDown",
}
"""Codes of errors that the status of the answer would have us take for lasting ones."""

_NOT_TAKEN: Final = {
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",  # this machine's clock is wrong
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
}
"""Codes of errors that are about credentials; the statuses of their answers are 400 and 403."""

_ERRORS = (
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
        with _failures("s3://"):
            self._client = _client(options, _TRIES, SILENT_SECONDS)

    def open(self, path: str) -> BinaryIO:
        bucket, name = split(path)
        version: dict[str, str] = {}  # the first answer says which this is, and we ask for that from then on

        def fetch(start: int, count: int) -> bytes:
            span = f"bytes={start}-{start + count - 1}"
            with _failures(path):
                for left in reversed(range(_TRIES)):
                    try:
                        answer = self._client.get_object(Bucket=bucket, Key=name, Range=span, **version)
                    except ClientError as error:
                        if _code(error) == "InvalidRange":  # it ends where we are
                            return b""
                        raise
                    version["IfMatch"] = answer["ETag"]
                    try:
                        return bytes(answer["Body"].read())
                    except _ERRORS:  # of an answer that breaks off the client says so, and no more
                        if not left:
                            raise
            raise AssertionError("the last try returns or raises")

        def size() -> int:
            with _failures(path):
                return int(self._client.head_object(Bucket=bucket, Key=name, **version)["ContentLength"])

        return opened(fetch, size)

    def put(self, path: str, file: BinaryIO, size: int) -> None:
        bucket, name = split(path)
        parts = TransferConfig(
            multipart_threshold=PART_BYTES, multipart_chunksize=PART_BYTES, max_concurrency=_PARTS_AT_ONCE
        )
        file.seek(0)
        with _failures(path):  # the client takes back the parts of an upload that fails
            self._client.upload_fileobj(file, bucket, name, Config=parts)

    def remove(self, path: str) -> None:
        bucket, name = split(path)
        with _failures(path):
            self._client.delete_object(Bucket=bucket, Key=name)

    def look(self, path: str) -> Found | None:
        bucket, name = split(path)
        if not name:
            return None
        try:
            with _failures(path):
                answer = self._client.head_object(Bucket=bucket, Key=name)
        except FileNotFoundError:
            return None
        return Found(path, answer["ContentLength"], answer["ETag"].strip('"'))

    def below(self, prefix: str) -> Iterator[Found]:
        bucket, begin = split(prefix)
        with _failures(prefix):
            for page in self._pages(bucket, begin):
                yield from _files(bucket, page)

    def folder(self, folder: str) -> tuple[list[Found], list[str]]:
        bucket = split(folder)[0]
        files: list[Found] = []
        folders: list[str] = []
        with _failures(folder):
            for page in self._pages(bucket, inside(folder), Delimiter="/"):
                files += _files(bucket, page)
                folders += [f"s3://{bucket}/{item['Prefix']}" for item in page.get("CommonPrefixes", ())]
        return files, folders

    def sweep(self, folder: str) -> None:
        """Abort the uploads into a folder that a killed process has left: their parts are billed for ever.

        Who may not do so, or whose store cannot, leaves that to a rule of the bucket.
        """
        bucket = split(folder)[0]
        begun = self._client.get_paginator("list_multipart_uploads")
        with contextlib.suppress(OSError), _failures(folder):
            for page in begun.paginate(Bucket=bucket, Prefix=inside(folder)):
                for upload in page.get("Uploads", ()):
                    if "/" in upload["Key"].removeprefix(inside(folder)):
                        continue
                    with contextlib.suppress(self._client.exceptions.NoSuchUpload):
                        self._client.abort_multipart_upload(
                            Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"]
                        )

    def probe(self, path: str) -> None:
        with _failures(path):
            once = _client(self._options, 1, CONNECT_SECONDS)
            once.list_objects_v2(Bucket=split(path)[0], MaxKeys=1)

    def _pages(self, bucket: str, prefix: str, **how: str) -> Iterator[dict[str, Any]]:
        return iter(
            self._client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, **how)
        )


def _client(options: PipelineOptions, tries: int, seconds: float) -> Any:
    given = options.view_as(S3Options)
    return boto3.client(
        "s3",
        region_name=given.s3_region_name,
        api_version=given.s3_api_version,
        use_ssl=not given.s3_disable_ssl,
        verify=given.s3_verify,
        endpoint_url=given.s3_endpoint_url,
        aws_access_key_id=given.s3_access_key_id,
        aws_secret_access_key=given.s3_secret_access_key,
        aws_session_token=given.s3_session_token,
        config=Config(
            connect_timeout=CONNECT_SECONDS,
            read_timeout=seconds,
            retries={"mode": "standard", "total_max_attempts": tries},
            max_pool_connections=CONNECTIONS,
        ),
    )


def _files(bucket: str, page: dict[str, Any]) -> list[Found]:
    return [
        Found(f"s3://{bucket}/{item['Key']}", item["Size"], item["ETag"].strip('"'))
        for item in page.get("Contents", ())
    ]


@contextlib.contextmanager
def _failures(path: str) -> Iterator[None]:
    """The client's errors are OSErrors outside of this."""
    try:
        yield
    except (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError, ProfileNotFound) as error:
        raise CredentialsError(f"s3:// needs credentials ({error}): {CREDENTIALS}") from error
    except ClientError as error:
        code = _code(error)
        if code in _MOMENTARY:
            raise TransientStorageError(f"the store failed at {path}: {error}") from error
        status = 401 if code in _NOT_TAKEN else int(error.response["ResponseMetadata"]["HTTPStatusCode"])
        raise failure(path, status, error) from error
    except _ERRORS as error:
        raise failure(path, None, error) from error


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
