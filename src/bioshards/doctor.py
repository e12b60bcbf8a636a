"""``bioshards doctor``: one line for each thing that a run needs of this machine."""

import http.client
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from importlib import metadata

from bioshards.corpus.errors import quote
from bioshards.corpus.ui.options import OptionParser

_EXTRAS = {"cloud": "obstore google-auth boto3", "vocab": "sentencepiece tokenizers", "search": "optuna"}
_EXTRAS |= {"train": "tokenizers torch transformers", "tensorboard": "tensorboard", "wandb": "wandb"}
_CREDENTIALS = {
    "gs://": ("GOOGLE_APPLICATION_CREDENTIALS", "~/.config/gcloud/application_default_credentials.json"),
    "s3://": ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "~/.aws/credentials", "~/.aws/config"),
    "az://": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING"),
}
_SERVERS = {
    "PubMed": "https://ftp.ncbi.nlm.nih.gov/pubmed/",
    "PMC": "https://pmc-oa-opendata.s3.amazonaws.com/?list-type=2&max-keys=1",
    "Europe PMC": "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/",
}


def main(arguments: Sequence[str]) -> int:
    """Print the checks; return 1 if something that every command needs is missing."""
    description = "Check this machine: a line for each thing that runs need."
    OptionParser(prog="bioshards doctor", description=description).parse_args(arguments)
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 14)
    _report("python", is_supported, f"{sys.version.split()[0]}: 3.11 to 3.14 are supported")
    needs = [need for need in metadata.requires("bioshards") or () if ";" not in need]
    is_complete = _check_libraries("bioshards", [re.split("[<>=[]", need)[0] for need in needs])
    for extra, libraries in _EXTRAS.items():
        _check_libraries(f"bioshards[{extra}]", libraries.split())
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    _report("cores, memory", True, f"{os.cpu_count()} cores, {memory_gb:,.0f} GB")
    for folder in (os.getcwd(), tempfile.gettempdir()):
        free_gb = shutil.disk_usage(folder).free / 1e9
        _report("disk", free_gb >= 10, f"{free_gb:,.0f} GB free in {folder}: all of PubMed needs 120")
    for scheme, places in _CREDENTIALS.items():
        found = [one for one in places if one in os.environ or os.path.exists(os.path.expanduser(one))]
        _report(f"{scheme} access", bool(found), ", ".join(found) or "no credentials found")
    _check_gpu()
    for server, url in _SERVERS.items():
        _check_server(server, url)
    return int(not (is_supported and is_complete))


def _report(name: str, is_ok: bool, detail: str) -> None:
    print(f"{'ok' if is_ok else 'missing':8} {name:22} {detail}", flush=True)


def _check_libraries(package: str, libraries: Sequence[str]) -> bool:
    missing = [name for name in libraries if not any(metadata.distributions(name=name))]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in libraries if name not in missing)
    source = package.replace("bioshards", ".")
    hint = f"missing {', '.join(missing)}: pip install '{source}' in a clone of bioshards"
    _report(package, not missing, hint if missing else versions)
    return not missing


def _check_gpu() -> None:
    if not shutil.which("nvidia-smi"):
        _report("gpu", False, "none: training runs on the CPU")
        return
    code, gpus = subprocess.getstatusoutput("nvidia-smi --list-gpus")
    _report("gpu", code == 0, gpus.replace("\n", "; ") if code == 0 else f"nvidia-smi failed: {quote(gpus)}")


def _check_server(name: str, url: str) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "bioshards doctor"})
    try:
        urllib.request.urlopen(request, timeout=5).close()
        _report(name, True, f"{url} answers")
    except (OSError, http.client.HTTPException) as error:
        _report(name, False, f"{url}: {quote(str(error))}")
