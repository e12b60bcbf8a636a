"""Clients of object stores by obstore, with the options and credentials of Beam's own clients."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass, field, fields
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

import requests
from obstore.store import AzureStore, GCSStore, S3Store

from bioshards.corpus.errors import CredentialsError
from bioshards.corpus.storage.retry import (
    STORE_CONNECT_TIMEOUT_SECONDS,
    STORE_INITIAL_BACKOFF_SECONDS,
    STORE_MAX_RETRIES,
    STORE_READ_TIMEOUT_SECONDS,
    STORE_REQUEST_TIMEOUT_SECONDS,
    STORE_RETRY_SECONDS,
)

from .object_store import CREDENTIALS_HINTS

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions
    from obstore.auth.google import GoogleCredentialProvider
    from obstore.store import AzureConfig, ClientConfig, GCSConfig, RetryConfig, S3Config

ObjectStore: TypeAlias = GCSStore | S3Store | AzureStore

_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """Beam's options that concern object stores, under their names; what is not given, the environment says."""

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
def open_store(root: str, options: StoreOptions, is_probe: bool = False) -> ObjectStore:
    """Return the client of a bucket; a process has one for each bucket and set of options.

    Args:
        root: URL of the bucket or container.
        is_probe: give up at the first failure, within seconds.

    Raises:
        CredentialsError: there are no credentials.
        ValueError: an option has no meaning.
    """
    scheme, _, bucket = root.partition("://")
    read_timeout = STORE_CONNECT_TIMEOUT_SECONDS if is_probe else STORE_READ_TIMEOUT_SECONDS
    client: ClientConfig = {
        "allow_http": True,  # of endpoints that are given as http://
        "connect_timeout": timedelta(seconds=STORE_CONNECT_TIMEOUT_SECONDS),
        "read_timeout": timedelta(seconds=read_timeout),
        "timeout": timedelta(seconds=STORE_REQUEST_TIMEOUT_SECONDS),
    }
    retries: RetryConfig = {
        "max_retries": 0 if is_probe else STORE_MAX_RETRIES,
        "retry_timeout": timedelta(seconds=STORE_RETRY_SECONDS),
        "backoff": {"init_backoff": timedelta(seconds=STORE_INITIAL_BACKOFF_SECONDS)},
    }
    if scheme == "gs":
        config = _make_gcs_config(options)
        provider = None if config else _make_google_provider(options)
        return GCSStore(
            bucket,
            config=config,
            credential_provider=provider,
            client_options=client,
            retry_config=retries,
        )
    if scheme == "s3":
        return _open_s3(bucket, options, client, retries)
    return AzureStore(config=_make_azure_config(root, options), client_options=client, retry_config=retries)


def _make_gcs_config(options: StoreOptions) -> GCSConfig:
    if emulator := os.environ.get("STORAGE_EMULATOR_HOST"):  # as Google's own client has it
        return {"base_url": emulator, "bearer_token": "none"}
    return {"skip_signature": True} if options.no_auth else {}


def _make_google_provider(options: StoreOptions) -> GoogleCredentialProvider:
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
        credentials = impersonated_credentials.Credentials(credentials, principal, [_GOOGLE_SCOPE], delegates)
    return GoogleCredentialProvider(credentials)


def _open_s3(bucket: str, options: StoreOptions, client: ClientConfig, retries: RetryConfig) -> S3Store:
    import botocore.session
    from botocore.exceptions import BotoCoreError
    from obstore.auth.boto3 import Boto3CredentialProvider

    endpoint = options.s3_endpoint_url
    if endpoint and not urlsplit(endpoint).netloc:
        raise ValueError(f"--s3_endpoint_url {endpoint} is no URL like https://HOST")
    verify = options.s3_verify or os.environ.get("AWS_CA_BUNDLE") or "true"
    if verify.lower() == "false":
        client["allow_invalid_certificates"] = True
    elif verify.lower() != "true":
        client["root_certificate"] = Path(verify).read_bytes()
    session = botocore.session.get_session()
    try:
        region = options.s3_region_name or (not endpoint and _find_region(bucket))
        config: S3Config = {
            "disable_bulk_delete": True,  # other servers of the protocol may lack it
            "region": region or session.get_config_variable("region") or "us-east-1",
        }
        if options.s3_access_key_id and options.s3_secret_access_key:
            provider = None
            config["access_key_id"] = options.s3_access_key_id
            config["secret_access_key"] = options.s3_secret_access_key
            if options.s3_session_token:
                config["session_token"] = options.s3_session_token
        else:
            provider = Boto3CredentialProvider(session, ttl=timedelta(minutes=5))
    except (BotoCoreError, ValueError) as error:
        raise CredentialsError(f"s3:// needs credentials ({error}): {CREDENTIALS_HINTS['s3']}") from error
    if endpoint or options.s3_disable_ssl:
        config["endpoint"] = endpoint or f"http://s3.{config['region']}.amazonaws.com"
    return S3Store(
        bucket, config=config, credential_provider=provider, client_options=client, retry_config=retries
    )


def _find_region(bucket: str) -> str | None:
    """Return the region of a bucket of Amazon's, which says it to everybody; None if it does not answer."""
    try:
        response = requests.head(f"https://s3.amazonaws.com/{bucket}", timeout=STORE_CONNECT_TIMEOUT_SECONDS)
    except requests.RequestException:
        return None
    return response.headers.get("x-amz-bucket-region")


def _make_azure_config(root: str, options: StoreOptions) -> AzureConfig:
    """Return the account, container and credentials of az://, abfs:// and azfs:// URLs.

    Keys of connection strings are those of Microsoft's documentation
    (learn.microsoft.com/azure/storage/common/storage-configure-connection-string).
    """
    scheme, _, container = root.partition("://")
    config: AzureConfig = {}
    connection = options.azure_connection_string or os.environ.get("AZURE_STORAGE_CONNECTION_STRING", "")
    values = dict(part.partition("=")[::2] for part in connection.split(";") if part)
    if value := values.get("AccountName"):
        config["account_name"] = value
    if value := values.get("AccountKey"):
        config["account_key"] = value
    if value := values.get("SharedAccessSignature"):
        config["sas_key"] = value
    if value := options.blob_service_endpoint or values.get("BlobEndpoint"):
        config["endpoint"] = value
        config.setdefault("account_name", (urlsplit(value).hostname or "").partition(".")[0])
    if options.azure_managed_identity_client_id:
        config["client_id"] = options.azure_managed_identity_client_id
    if scheme == "azfs":
        config["account_name"], _, container = container.partition("/")
    elif "@" in container:
        container, _, host = container.partition("@")
        config["account_name"] = host.partition(".")[0]
    config["container_name"] = container
    return config
