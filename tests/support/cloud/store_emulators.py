"""Object stores on this machine: an emulator of Google Cloud Storage and an S3 server, each a process.

with run_gcs() as store:
    run_beam("run", ..., "--output", f"{store.url}/out", *store.options)
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.network import find_free_port

BUCKET = "bioshards-test"
"""At least three characters: Beam does not recognise shorter bucket names."""


@dataclass(frozen=True)
class EmulatedStore:
    """A running store.

    Attributes:
        url: its bucket, ``gs://BUCKET`` or ``s3://BUCKET``; ``endpoint``: where it listens.
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
    module_argv = ("gcp_storage_emulator", "start", "--port", str(port), "-H", "127.0.0.1", "-M")
    with _run_module([*module_argv, "--default-bucket", BUCKET], port):
        endpoint = f"http://127.0.0.1:{port}"
        yield EmulatedStore(f"gs://{BUCKET}", endpoint, ["--no_auth"], {"STORAGE_EMULATOR_HOST": endpoint})


@contextlib.contextmanager
def run_s3() -> Iterator[EmulatedStore]:
    """Run S3 in memory, with an empty bucket."""
    port = find_free_port()
    with _run_module(["moto.server", "-H", "127.0.0.1", "-p", str(port)], port):
        endpoint = f"http://127.0.0.1:{port}"
        urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        options = ["--s3_access_key_id=x", "--s3_secret_access_key=y", "--s3_region_name=us-east-1"]
        yield EmulatedStore(f"s3://{BUCKET}", endpoint, [f"--s3_endpoint_url={endpoint}", *options])


def upload_object(store: EmulatedStore, name: str, data: bytes) -> None:
    """Upload an object to Google Cloud Storage over plain HTTP."""
    name = urllib.parse.quote(name, safe="")
    url = f"{store.endpoint}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}"
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="POST")).close()


def download_object(store: EmulatedStore, name: str) -> bytes:
    """Download an object from Google Cloud Storage over plain HTTP."""
    name = urllib.parse.quote(name, safe="")
    with urllib.request.urlopen(
        f"{store.endpoint}/download/storage/v1/b/{BUCKET}/o/{name}?alt=media"
    ) as response:
        data: bytes = response.read()
        return data


@contextlib.contextmanager
def _run_module(module_argv: list[str], port: int) -> Iterator[None]:
    """Run ``python -m`` with these arguments inside a ``with`` block."""
    process = subprocess.Popen(
        [sys.executable, "-m", *module_argv],
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while socket.socket().connect_ex(("127.0.0.1", port)):
            assert process.poll() is None, f"{module_argv[0]} has ended with {process.returncode}"
            assert time.monotonic() < deadline, f"nothing listens on {port}"
            time.sleep(0.05)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
