"""Clients of object stores by obstore, with the options and credentials of Beam's own clients."""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast
from urllib.parse import urlsplit

import requests
from obstore.store import AzureStore, GCSStore, S3Store

from bioshards.corpus.errors import CredentialsError, quote
from bioshards.pipelines.storage.object_store import CREDENTIALS_HINTS

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.auth.google import GoogleCredentialProvider
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, RetryConfig, S3Config

STORE_CONNECT_TIMEOUT_SECONDS: Final = 10
"""Seconds that the client of an object store waits for a connection."""

STORE_READ_TIMEOUT_SECONDS: Final = 60
"""Seconds that the client of an object store waits for the next byte."""

STORE_UPLOAD_TIMEOUT_SECONDS: Final = 300
"""Seconds in which 5 MB must be sent, by each of the files that a slow line uploads at the same time."""

STORE_REQUEST_TIMEOUT_SECONDS: Final = 600
"""Seconds for a request of an object store as a whole, which reads or writes a few megabytes."""

STORE_MAX_RETRIES: Final = 4
"""Retries of the client of an object store, with exponential backoff, before ``retry`` sees the error."""

STORE_INITIAL_BACKOFF_SECONDS: Final = 0.1
"""Seconds before the first of them; it is doubled for every further one."""

STORE_RETRY_SECONDS: Final = 240
"""Seconds after which no further retry begins: the client does not renew credentials between retries."""

ObjectStore: TypeAlias = GCSStore | S3Store | AzureStore
Use: TypeAlias = Literal["probe", "read", "upload"]

_ENDPOINT: Final = re.compile(
    r"https?://(?:[\w.-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?(?:/[!-?A-~]*)?", re.ASCII | re.I
)
_GOOGLE_ENDPOINT: Final = "https://storage.googleapis.com"
_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Beam's options of object stores, under their names; what is not given, the environment says."""

    no_auth: bool = False
    impersonate_service_account: str | None = None
    s3_access_key_id: str | None = None
    s3_secret_access_key: str | None = field(default=None, repr=False)
    s3_session_token: str | None = field(default=None, repr=False)
    s3_endpoint_url: str | None = None
    s3_region_name: str | None = None
    s3_verify: str | None = None
    s3_disable_ssl: bool = False
    azure_connection_string: str | None = field(default=None, repr=False)
    blob_service_endpoint: str | None = None
    azure_managed_identity_client_id: str | None = None

    @classmethod
    def from_beam(cls, options: PipelineOptions) -> StoreOptions:
        values = options.get_all_options()
        return cls(**{option.name: values[option.name] for option in fields(cls)})


@functools.cache
def open_store(root: str, options: StoreOptions, use: Use = "read") -> ObjectStore:
    """Return the client of a bucket; a process has one for each bucket, set of options and use.

    Args:
        root: URL of the bucket or container.
        use: ``probe`` gives up at the first failure, within seconds; ``upload`` waits for slow lines, as the
            read time-out covers the sending of a request.

    Raises:
        CredentialsError: there are no credentials.
        ValueError: an option has no meaning.
    """
    scheme, _, bucket = root.partition("://")
    read_timeouts = {
        "probe": STORE_CONNECT_TIMEOUT_SECONDS,
        "read": STORE_READ_TIMEOUT_SECONDS,
        "upload": STORE_UPLOAD_TIMEOUT_SECONDS,
    }
    client: ClientConfig = {
        "allow_http": True,  # of endpoints that are given as http://
        "connect_timeout": timedelta(seconds=STORE_CONNECT_TIMEOUT_SECONDS),
        "read_timeout": timedelta(seconds=read_timeouts[use]),
        "timeout": timedelta(seconds=STORE_REQUEST_TIMEOUT_SECONDS),
    }
    retries: RetryConfig = {
        "max_retries": 0 if use == "probe" else STORE_MAX_RETRIES,
        "retry_timeout": timedelta(seconds=STORE_RETRY_SECONDS),
        "backoff": {"init_backoff": timedelta(seconds=STORE_INITIAL_BACKOFF_SECONDS)},
    }
    if scheme == "gs":
        config, google = _configure_gcs(options)
        return GCSStore(
            bucket, config=config, credential_provider=google, client_options=client, retry_config=retries
        )
    if scheme == "s3":
        s3_config, aws = _configure_s3(bucket, options)
        client.update(_configure_tls(options))
        return S3Store(
            bucket, config=s3_config, credential_provider=aws, client_options=client, retry_config=retries
        )
    return AzureStore(config=_configure_azure(root, options), client_options=client, retry_config=retries)


def _configure_gcs(options: StoreOptions) -> tuple[GCSConfig, GoogleCredentialProvider | None]:
    if emulator := os.environ.get("STORAGE_EMULATOR_HOST"):  # as Google's own client has it
        base_url = _check_endpoint("STORAGE_EMULATOR_HOST", emulator)
        return {"base_url": base_url, "bearer_token": "none"}, None
    base_url = _check_endpoint("GOOGLE_BASE_URL", os.environ.get("GOOGLE_BASE_URL") or _GOOGLE_ENDPOINT)
    if options.no_auth:
        return {"base_url": base_url, "skip_signature": True}, None
    import google.auth
    from google.auth import impersonated_credentials
    from google.auth.exceptions import DefaultCredentialsError
    from obstore.auth.google import GoogleCredentialProvider

    try:
        credentials, _ = google.auth.default(scopes=[_GOOGLE_SCOPE])
    except DefaultCredentialsError as error:
        raise CredentialsError(f"gs:// needs credentials: {CREDENTIALS_HINTS['gs']}") from error
    if options.impersonate_service_account:
        *delegates, principal = options.impersonate_service_account.split(",")
        credentials = impersonated_credentials.Credentials(  # type: ignore[no-untyped-call]
            credentials, principal, [_GOOGLE_SCOPE], delegates
        )
    return {"base_url": base_url}, GoogleCredentialProvider(credentials)


def _configure_s3(bucket: str, options: StoreOptions) -> tuple[S3Config, Boto3CredentialProvider]:
    import botocore.session
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    sources = {
        "--s3_endpoint_url": options.s3_endpoint_url,
        "AWS_ENDPOINT_URL_S3": os.environ.get("AWS_ENDPOINT_URL_S3"),
        "AWS_ENDPOINT_URL": os.environ.get("AWS_ENDPOINT_URL"),
    }
    endpoint = next((_check_endpoint(name, url) for name, url in sources.items() if url), None)
    session = botocore.session.get_session()
    if options.s3_access_key_id:
        session.set_credentials(
            options.s3_access_key_id, options.s3_secret_access_key, options.s3_session_token
        )
    try:
        provider = Boto3CredentialProvider(session, ttl=timedelta(minutes=5))
        region = options.s3_region_name or (not endpoint and _find_region(bucket))
        region = region or session.get_config_variable("region") or "us-east-1"
    except (BotoCoreError, ValueError) as error:
        raise CredentialsError(f"s3:// needs credentials ({error}): {CREDENTIALS_HINTS['s3']}") from error
    scheme = "http" if options.s3_disable_ssl else "https"
    endpoint = endpoint or f"{scheme}://s3.{region}.amazonaws.com"
    config: S3Config = {
        "region": region,
        "aws_endpoint_url_s3": endpoint,  # which obstore would read in the environment, before "endpoint"
        "disable_bulk_delete": True,  # other servers of the protocol may lack it
    }
    return config, provider


def _check_endpoint(name: str, url: str) -> str:
    """Return the address of a store, with which obstore would panic if it is none.

    Raises:
        ValueError: it is no address, or has a user's name or password in it.
    """
    match = _ENDPOINT.fullmatch(url)
    if not match or int(match[1] or 0) > 65535:
        shown = quote(re.sub(r"//.*@", "//***@", url))
        raise ValueError(f"{name} {shown} is no address like https://HOST or http://HOST:PORT")
    return url


@functools.cache
def _find_region(bucket: str) -> str | None:
    """Return the region of a bucket of Amazon's, which says it to everybody; None if it does not answer."""
    try:
        response = requests.head(f"https://s3.amazonaws.com/{bucket}", timeout=STORE_CONNECT_TIMEOUT_SECONDS)
    except requests.RequestException:
        return None
    return response.headers.get("x-amz-bucket-region")


def _configure_tls(options: StoreOptions) -> ClientConfig:
    """Return what ``--s3_verify`` means: true, false, or a file of certificates."""
    verify = options.s3_verify or os.environ.get("AWS_CA_BUNDLE", "true")
    if verify.lower() in ("true", "false"):
        return {"allow_invalid_certificates": verify.lower() == "false"}
    try:
        return {"root_certificate": Path(verify).read_bytes()}
    except OSError as error:
        raise ValueError(f"--s3_verify {verify} cannot be read: {error.strerror}") from error


def _configure_azure(root: str, options: StoreOptions) -> AzureConfig:
    """Return the account, container and credentials of az://, abfs:// and azfs:// URLs.

    Keys of connection strings: learn.microsoft.com/azure/storage/common/storage-configure-connection-string.
    """
    scheme, _, container = root.partition("://")
    connection = options.azure_connection_string or os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    values = dict(part.partition("=")[::2] for part in connection.split(";") if part)
    endpoint = options.blob_service_endpoint or values.get("BlobEndpoint")
    if endpoint:
        _check_endpoint("--blob_service_endpoint", endpoint)
    account = values.get("AccountName") or (urlsplit(endpoint or "").hostname or "").partition(".")[0]
    if scheme == "azfs":
        account, _, container = container.partition("/")
    elif "@" in container:
        container, _, host = container.partition("@")
        account = host.partition(".")[0]
    config = {
        "container_name": container,
        "account_name": account,
        "account_key": values.get("AccountKey"),
        "sas_key": values.get("SharedAccessSignature"),
        "endpoint": endpoint,
        "client_id": options.azure_managed_identity_client_id,
    }
    return cast("AzureConfig", {key: value for key, value in config.items() if value})
