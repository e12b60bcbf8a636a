"""Beam's options and URLs of object stores as the settings of their clients."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import requests
from apache_beam.options.pipeline_options import PipelineOptions
from obstore.store import AzureStore, S3Store

from bioshards.corpus.errors import CredentialsError
from bioshards.pipelines.storage import store_options
from bioshards.pipelines.storage.object_store import split_path
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions, open_store

pytestmark = pytest.mark.thorough  # this file takes minutes

KEYS = ("--s3_access_key_id=id", "--s3_secret_access_key=hunter2", "--s3_session_token=token")


def options_from(*arguments: str) -> StoreOptions:
    return StoreOptions.from_beam(PipelineOptions(arguments))


@pytest.fixture(autouse=True)
def clear_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_ENDPOINT_URL",
        "AWS_ENDPOINT_URL_S3",
        "AWS_CA_BUNDLE",
        "AWS_DEFAULT_REGION",
        "AWS_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    open_store.cache_clear()
    store_options._find_region.cache_clear()


def open_s3(*arguments: str) -> S3Store:
    store = open_store("s3://bucket", options_from(*arguments))
    assert isinstance(store, S3Store)
    return store


def read_keys(store: S3Store) -> tuple[str, str, str | None]:
    provider: Any = store.credential_provider
    keys = provider()
    return keys["access_key_id"], keys["secret_access_key"], keys["token"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("gs://bucket/a/b", ("gs://bucket", "a/b")),
        ("s3://bucket", ("s3://bucket", "")),
        ("s3://bucket/", ("s3://bucket", "")),
        ("azfs://account/container/a/b", ("azfs://account/container", "a/b")),
        (
            "abfs://container@account.dfs.core.windows.net/a",
            ("abfs://container@account.dfs.core.windows.net", "a"),
        ),
    ],
)
def test_buckets_of_urls(path: str, expected: tuple[str, str]) -> None:
    assert split_path(path) == expected


def test_s3_options_are_those_of_beam(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options take precedence over the environment, of which a token alone would be taken."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "of the environment")
    store = open_s3(*KEYS[:2], "--s3_region_name=eu-west-3", "--s3_endpoint_url=http://host:9000")
    assert dict(store.config)["endpoint_url_s3"] == "http://host:9000"
    assert store.config["region"] == "eu-west-3"
    assert read_keys(store) == ("id", "hunter2", None)
    assert read_keys(open_s3(*KEYS, "--s3_region_name=eu-west-3"))[2] == "token"
    assert read_keys(open_s3("--s3_region_name=eu-west-3")) == ("of the environment",) * 3


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"])
def test_endpoint_of_the_environment_comes_after_the_option(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """obstore reads the first of them itself, before what it is given; an empty one is none."""
    monkeypatch.setattr(store_options, "_find_region", lambda bucket: None)
    for value, expected in (
        ("", "https://s3.eu-west-3.amazonaws.com"),
        ("http://host:9000", "http://host:9000"),
    ):
        monkeypatch.setenv(variable, value)
        open_store.cache_clear()
        store = open_s3(*KEYS, "--s3_region_name=eu-west-3")
        assert dict(store.config)["endpoint_url_s3"] == expected
        store = open_s3(*KEYS, "--s3_region_name=eu-west-3", "--s3_endpoint_url=http://[::1]:80/s3")
        assert dict(store.config)["endpoint_url_s3"] == "http://[::1]:80/s3"


@pytest.mark.parametrize("variable", ["AWS_ENDPOINT_URL_S3", "STORAGE_EMULATOR_HOST", "GOOGLE_BASE_URL"])
@pytest.mark.parametrize(
    "value",
    [
        " ",
        "nonsense",
        "127.0.0.1:1",
        "ftp://host",
        "file:///etc",
        "http://",
        "http://a b",
        "http://h:99999",
        "http://h\n",
        "http://\u00e9",
        "http://[::1",
        "https://me:hunter2@host",
    ],
)
def test_endpoint_that_is_no_address_is_refused(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    """obstore panics."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST", raising=False)
    monkeypatch.setenv(variable, value)
    open_store.cache_clear()
    root = "s3://bucket" if "AWS" in variable else "gs://bucket"
    with pytest.raises(ValueError, match=f"^{variable} .*is no address like") as raised:
        open_store(root, StoreOptions(no_auth=True, s3_access_key_id="a", s3_secret_access_key="b"))
    assert str(raised.value).isprintable()
    assert "hunter2" not in str(raised.value)


def test_profiles_of_the_aws_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").write_text("[lab]\naws_access_key_id = id\naws_secret_access_key = hunter2\n")
    (tmp_path / "config").write_text("[profile lab]\nregion = eu-west-3\n")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setattr(store_options, "_find_region", lambda bucket: None)
    monkeypatch.setenv("AWS_PROFILE", "lab")
    store = open_s3()
    assert read_keys(store) == ("id", "hunter2", None)
    assert store.config["region"] == "eu-west-3"
    monkeypatch.setenv("AWS_PROFILE", "none")
    open_store.cache_clear()
    with pytest.raises(CredentialsError, match=r"none.*AWS_PROFILE"):
        open_s3()


def test_region_of_a_bucket_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = []

    def head(url: str, timeout: float) -> requests.Response:
        urls.append(url)
        response = requests.Response()
        response.headers["x-amz-bucket-region"] = "ap-south-1"
        return response

    monkeypatch.setattr(requests, "head", head)
    store = open_s3(*KEYS)
    open_store("s3://bucket", options_from(*KEYS), "upload")
    assert store.config["region"] == "ap-south-1"
    assert dict(store.config)["endpoint_url_s3"] == "https://s3.ap-south-1.amazonaws.com"
    assert urls == ["https://s3.amazonaws.com/bucket"]
    plain = open_s3(*KEYS, "--s3_disable_ssl", "--s3_region_name=eu-west-3")
    assert dict(plain.config)["endpoint_url_s3"] == "http://s3.eu-west-3.amazonaws.com"


def test_certificates_are_verified_unless_an_option_says_otherwise(tmp_path: Path) -> None:
    def read_client_options(*arguments: str) -> dict[str, Any]:
        return dict(open_s3(*KEYS, "--s3_region_name=eu-west-3", *arguments).client_options or {})

    assert str(read_client_options()["allow_invalid_certificates"]).lower() == "false"
    assert str(read_client_options("--s3_verify=False")["allow_invalid_certificates"]).lower() == "true"
    with pytest.raises(ValueError, match=r"--s3_verify .*none\.pem cannot be read"):
        read_client_options(f"--s3_verify={tmp_path}/none.pem")


@pytest.mark.parametrize(
    ("root", "arguments", "expected"),
    [
        (
            "az://c",
            ["--azure_connection_string=AccountName=a;AccountKey=a2V5Cg==;"],
            {"account_name": "a", "account_key": "a2V5Cg=="},
        ),
        ("azfs://a/c", ["--azure_connection_string=SharedAccessSignature=sv=1&sig=x"], {"account_name": "a"}),
        ("abfs://c@a.dfs.core.windows.net", [], {"account_name": "a"}),
        (
            "az://c",
            ["--blob_service_endpoint=https://a.blob.core.windows.net"],
            {"account_name": "a", "endpoint": "https://a.blob.core.windows.net"},
        ),
    ],
)
def test_azure_urls_and_options(root: str, arguments: list[str], expected: dict[str, str]) -> None:
    store = open_store(root, options_from(*arguments))
    assert isinstance(store, AzureStore)
    assert store.config["container_name"] == "c"
    assert {key: value for key, value in store.config.items() if key in expected} == expected


def test_secrets_are_not_shown_and_reach_workers() -> None:
    options = options_from(*KEYS, "--azure_connection_string=hunter2")
    assert "hunter2" not in repr(options)
    storage: RemoteStorage = pickle.loads(pickle.dumps(RemoteStorage(options)))
    assert vars(storage)["_options"] == options
