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
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Annotated, Literal

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.errors import describe_install, quote
from bioshards.corpus.ui.options import Argument, OptionParser
from bioshards.corpus.ui.terminal import escape_output

_Command = Literal["beam", "run", "vocab", "train", "evaluate"]
_EXTRA_BY_COMMAND = {"vocab": "vocab", "train": "train", "evaluate": "train"}
_EXTRAS = {"vocab": "sentencepiece tokenizers", "train": "tokenizers torch transformers"}
_OPTIONAL_EXTRAS = {"cloud": "obstore google-auth boto3", "search": "optuna"}
_OPTIONAL_EXTRAS |= {"tensorboard": "tensorboard", "wandb": "wandb"}
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


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    """The options of ``bioshards doctor``."""

    commands: Annotated[
        tuple[_Command, ...],
        Argument("commands that the exit status is about (default: all of them)"),
    ] = ()


@escape_output()
def main(arguments: Sequence[str]) -> int:
    """Print the checks; return 1 if one of the commands does not run."""
    description = "Check this machine: a line for each thing that runs need."
    parser = OptionParser(prog="bioshards doctor", description=description)
    commands = parser.parse_options(DoctorOptions, arguments).commands
    is_supported = (3, 11) <= sys.version_info[:2] <= (3, 14)
    _report("python", is_supported, f"{sys.version.split()[0]}: 3.11 to 3.14 are supported")
    needs = [need for need in metadata.requires("bioshards") or () if ";" not in need]
    has_core = _check_libraries("", [re.split("[<>=[]", need)[0] for need in needs]) and is_supported
    has_extra = {extra: _check_libraries(extra, libraries.split()) for extra, libraries in _EXTRAS.items()}
    for extra, libraries in _OPTIONAL_EXTRAS.items():
        _check_libraries(extra, libraries.split())
    runs = {"beam": _check_beam() and has_core, "run": has_core}
    for command, extra in _EXTRA_BY_COMMAND.items():
        runs[command] = has_core and has_extra[extra]
    for command in ("run", *_EXTRA_BY_COMMAND):
        _report(f"bioshards {command}", runs[command], "runs" if runs[command] else "does not run")
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    _report("cores, memory", True, f"{count_cpus()} cores, {memory_gb:,.0f} GB")
    for folder in (os.getcwd(), tempfile.gettempdir()):
        free_gb = shutil.disk_usage(folder).free / 1e9
        _report("disk", free_gb >= 10, f"{free_gb:,.0f} GB free in {folder}: all of PubMed needs 120")
    for scheme, places in _CREDENTIALS.items():
        found = [one for one in places if one in os.environ or os.path.exists(os.path.expanduser(one))]
        _report(f"{scheme} access", bool(found), ", ".join(found) or "no credentials found")
    _check_gpu()
    for server, url in _SERVERS.items():
        _check_server(server, url)
    return int(not all(runs[command] for command in commands or runs))


def _report(name: str, is_ok: bool, detail: str) -> None:
    print(f"{'ok' if is_ok else 'missing':8} {name:22} {detail}", flush=True)


def _check_libraries(extra: str, libraries: Sequence[str]) -> bool:
    missing = [name for name in libraries if not any(metadata.distributions(name=name))]
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in libraries if name not in missing)
    hint = f"missing {', '.join(missing)}: {describe_install(extra)}"
    _report(f"extra {extra}" if extra else "core", not missing, hint if missing else versions)
    return not missing


def _check_beam() -> bool:
    """Report whether the program beam on the path is the one of bioshards."""
    path = shutil.which("beam")
    is_ours = bool(path) and b"bioshards.pipelines.cli" in Path(str(path)).read_bytes()
    found = f"{path} is of another package, such as beam-client" if path else "there is none on the path"
    _report("beam run", is_ours, str(path) if is_ours else f"{found}: type bioshards run NAME instead")
    return is_ours


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
