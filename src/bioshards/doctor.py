"""``bioshards doctor``: one line for each thing that a run needs of this machine."""

from __future__ import annotations

import os
import platform
import shutil
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

MIN_FREE_GB: Final = 10
"""A worker needs the temporary folder for a shard, and Beam and torch for their installation."""
_TIMEOUT_SECONDS: Final = 5
_SERVERS: Final = {
    "PubMed": "https://ftp.ncbi.nlm.nih.gov/pubmed/",
    "PMC": "https://pmc-oa-opendata.s3.amazonaws.com/?list-type=2&max-keys=1",
    "Europe PMC": "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/",
}
_EXTRAS: Final = {
    "cloud": ("obstore", "google-auth", "boto3"),
    "vocab": ("numpy", "sentencepiece", "tokenizers"),
    "train, evaluate": ("numpy", "tokenizers", "torch", "transformers"),
    "search": ("optuna",),
    "tensorboard": ("tensorboard",),
    "wandb": ("wandb",),
}
_CREDENTIALS: Final = {
    "gs://": ("GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
    "s3://": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "~/.aws/credentials", "~/.aws/config"),
    "az://": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"),
}


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check.

    Attributes:
        state: ``ok``; ``missing`` if some commands need it; ``failed`` if all do.
    """

    name: str
    state: str
    detail: str


def main(arguments: Sequence[str]) -> int:
    """Print the checks; return 1 if something that every command needs is missing."""
    if arguments:
        print("usage: bioshards doctor\n\nCheck this machine: a line for each thing that runs need.")
        return 0 if arguments[0] in ("-h", "--help") else 2
    checks = list(run_checks())
    for check in checks:
        print(f"{check.state:8} {check.name:16} {check.detail}", flush=True)
    return int(any(check.state == "failed" for check in checks))


def run_checks() -> Iterator[Check]:
    """Yield the checks, the fast ones first."""
    version = platform.python_version()
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 14)
    yield Check(
        "python",
        "ok" if is_supported else "failed",
        version if is_supported else f"{version}: use 3.11 to 3.14",
    )
    yield _check_core()
    for extra, libraries in _EXTRAS.items():
        yield _check_extra(extra, libraries)
    yield Check("cores, memory", "ok", f"{os.cpu_count()} cores, {_read_memory_gb():.0f} GB")
    yield _check_disk()
    yield _check_gpu()
    for scheme, sources in _CREDENTIALS.items():
        found = [source for source in sources if _is_set(source)]
        yield Check(
            f"{scheme} access", "ok" if found else "missing", found[0] if found else "no credentials found"
        )
    with ThreadPoolExecutor() as pool:
        yield from pool.map(_check_server, _SERVERS, _SERVERS.values())


def _check_core() -> Check:
    missing = []
    for requirement in metadata.requires("bioshards") or []:
        name = requirement.split(";")[0].split(">")[0].split("<")[0].split("=")[0].split("[")[0].strip()
        if "extra ==" not in requirement and not _get_version(name):
            missing.append(name)
    if missing:
        return Check("bioshards", "failed", f"missing {', '.join(missing)}: pip install bioshards")
    return Check(
        "bioshards", "ok", f"{_get_version('bioshards')} with apache-beam {_get_version('apache-beam')}"
    )


def _check_extra(extra: str, libraries: Sequence[str]) -> Check:
    missing = [name for name in libraries if not _get_version(name)]
    if missing:
        return Check(
            extra, "missing", f"{', '.join(missing)}: pip install 'bioshards[{extra.split(',')[0]}]'"
        )
    return Check(extra, "ok", ", ".join(f"{name} {_get_version(name)}" for name in libraries))


def _check_disk() -> Check:
    folders = {"here": Path.cwd(), "temporary folder": Path(tempfile.gettempdir())}
    free = {name: shutil.disk_usage(folder).free / 1e9 for name, folder in folders.items()}
    text = ", ".join(f"{gigabytes:,.0f} GB free {name}" for name, gigabytes in free.items())
    if min(free.values()) < MIN_FREE_GB:
        return Check("disk", "missing", f"{text}: all of PubMed needs 65 GB for files and 55 GB for shards")
    return Check("disk", "ok", text)


def _check_gpu() -> Check:
    if not shutil.which("nvidia-smi"):
        return Check("gpu", "missing", "none found: training runs on the CPU")
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    names = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    if result.returncode or not names:
        return Check("gpu", "missing", f"nvidia-smi failed: {(result.stderr or result.stdout).strip()[:100]}")
    return Check("gpu", "ok", "; ".join(names))


def _check_server(name: str, url: str) -> Check:
    request = urllib.request.Request(url, headers={"User-Agent": "bioshards doctor"}, method="GET")
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:
            return Check(name, "ok", f"{url} answers {answer.status}")
    except urllib.error.HTTPError as error:
        return Check(name, "missing", f"{url} answers {error.code}")
    except (OSError, ssl.SSLError) as error:
        return Check(name, "missing", f"{url}: {error}")


def _get_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_set(source: str) -> bool:
    return Path(source).expanduser().exists() if source.startswith("~") else bool(os.environ.get(source))


def _read_memory_gb() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
