"""Object stores on this machine: a fake of Google Cloud Storage, moto's S3 and Azurite, each a process.

with run_gcs() as store:
    run_beam("run", ..., "--output", f"{store.url}/out", *store.options)
"""

from __future__ import annotations

import base64
import contextlib
import email.utils
import hashlib
import hmac
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.support.network import find_free_port
from tests.support.paths import REPOSITORY

BUCKET = "bioshards-test"
"""At least three characters: Beam does not recognise shorter bucket names."""

_AZURE_ACCOUNT = "devstoreaccount1"
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Azurite's account and its public key (learn.microsoft.com/azure/storage/common/storage-connect-azurite)."""

_ANY_SIGNATURE = (
    "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=y"
)
"""moto takes any, and removes nothing without one."""

AZURITE_HINT = "needs Azurite: npm install -g azurite, or AZURITE=.../azurite-blob"


@dataclass(frozen=True)
class EmulatedStore:
    """A running store.

    Attributes:
        url: its bucket, ``gs://BUCKET``, ``s3://BUCKET`` or ``az://CONTAINER``.
        endpoint: where it listens.
        options: options of ``beam`` for this store.
        environment: additional environment variables of a process that uses it.
    """

    url: str
    endpoint: str
    options: list[str]
    environment: dict[str, str] = field(default_factory=dict)


@contextlib.contextmanager
def run_gcs() -> Iterator[EmulatedStore]:
    """Run Google Cloud Storage in memory, with an empty bucket."""
    port = find_free_port()
    with _run([sys.executable, "-m", "tests.support.cloud.fake_gcs", str(port), BUCKET], port):
        endpoint = f"http://127.0.0.1:{port}"
        yield EmulatedStore(f"gs://{BUCKET}", endpoint, ["--no_auth"], {"STORAGE_EMULATOR_HOST": endpoint})


@contextlib.contextmanager
def run_s3() -> Iterator[EmulatedStore]:
    """Run S3 in memory, with an empty bucket."""
    port = find_free_port()
    with _run([sys.executable, "-m", "tests.support.cloud.moto_server", str(port)], port):
        endpoint = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        options = ["--s3_access_key_id=x", "--s3_secret_access_key=y", "--s3_region_name=us-east-1"]
        yield EmulatedStore(f"s3://{BUCKET}", endpoint, [f"--s3_endpoint_url={endpoint}", *options])


def find_azurite() -> str | None:
    """Return the program of Azure's emulator."""
    return os.environ.get("AZURITE") or shutil.which("azurite-blob")


@contextlib.contextmanager
def run_azure() -> Iterator[EmulatedStore]:
    """Run Azure's emulator, Azurite, in memory, with an empty container.

    Without it the test is skipped.
    """
    program = find_azurite()
    if not program:
        pytest.skip(AZURITE_HINT)
    port = find_free_port()
    flags = ["--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--disableTelemetry"]
    with _run([program, "--blobHost", "127.0.0.1", "--blobPort", str(port), *flags], port):
        endpoint = f"http://127.0.0.1:{port}"
        _send_to_azure(endpoint, "PUT", f"/{_AZURE_ACCOUNT}/{BUCKET}", {}, "restype=container")
        connection = (
            f"AccountName={_AZURE_ACCOUNT};AccountKey={_AZURE_KEY};BlobEndpoint={endpoint}/{_AZURE_ACCOUNT}"
        )
        yield EmulatedStore(f"az://{BUCKET}", endpoint, [f"--azure_connection_string={connection}"])


def request_object(store: EmulatedStore, method: str, name: str) -> None:
    """Create an empty object (PUT), or DELETE it, by plain HTTP, under a name that obstore may not take."""
    path = f"/{BUCKET}/{urllib.parse.quote(name)}"
    if store.url.startswith("az:"):
        headers = {"x-ms-blob-type": "BlockBlob"} if method == "PUT" else {}
        _send_to_azure(store.endpoint, method, f"/{_AZURE_ACCOUNT}{path}", headers)
    else:
        headers = {"Authorization": _ANY_SIGNATURE} if store.url.startswith("s3:") else {}
        request = urllib.request.Request(f"{store.endpoint}{path}", b"", headers, method=method)
        urllib.request.urlopen(request).close()


def _send_to_azure(endpoint: str, method: str, path: str, headers: dict[str, str], query: str = "") -> None:
    """Send a request without a body, signed with a shared key.

    https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    """
    headers |= {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    lines = [method, *[""] * 11, *(f"{key}:{value}" for key, value in headers.items())]
    text = "\n".join([*lines, f"/{_AZURE_ACCOUNT}{path}", *([query.replace("=", ":")] if query else [])])
    signature = hmac.new(base64.b64decode(_AZURE_KEY), text.encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {_AZURE_ACCOUNT}:{base64.b64encode(signature).decode()}"
    headers["Content-Length"] = "0"
    url = f"{endpoint}{path}?{query}"
    urllib.request.urlopen(urllib.request.Request(url, method=method, headers=headers)).close()


@contextlib.contextmanager
def _run(argv: list[str], port: int) -> Iterator[None]:
    """Run a program inside a ``with`` block, once it listens."""
    process = subprocess.Popen(
        argv, cwd=REPOSITORY, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, f"{argv} has ended with {process.returncode}"
            assert time.monotonic() < deadline, f"nothing listens on {port}"
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
