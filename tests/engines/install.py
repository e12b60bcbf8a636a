"""Get the engines: Prism by Go, Flink and Spark of PyPI, Beam's job servers of Maven Central."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

BEAM: Final = importlib.metadata.version("apache-beam")
BEAM_JAVA: Final = "2.62.0"
"""Of the job servers: the newest version of which all modules are in the registries at hand."""
FLINK: Final = "1.19.3"
SPARK: Final = "3.5.6"
FLINK_OPERATOR: Final = "1.10.0"

_POM: Final = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>bioshards</groupId><artifactId>engine</artifactId><version>1</version>
<packaging>pom</packaging><dependencies>{}</dependencies></project>
"""
_DEPENDENCY: Final = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


class EngineMissingError(Exception):
    """An engine cannot be had here; the message says why."""


def get_prism(folder: Path) -> str:
    """Return the path of Prism, of the version of Beam.

    Raises:
        EngineMissingError: Go is missing, or its proxy does not give it.
    """
    program = folder / "bin" / "prism"
    if found := os.environ.get("PRISM") or shutil.which("prism"):
        return found
    if not program.exists():
        module = f"github.com/apache/beam/sdks/v2/go/cmd/prism@v{BEAM}"
        _run(("go", "install", module), {"GOBIN": str(program.parent)})
    return str(program)


def get_distribution(folder: Path, package: str, version: str) -> Path:
    """Return the folder of the jars in a package of PyPI: Flink's or Spark's distribution.

    Raises:
        EngineMissingError: Java is missing, or the index does not give it.
    """
    _require("java")
    home = folder / f"{package}-{version}"
    if not home.exists():
        downloads = folder / "downloads"
        pip = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(downloads))
        _run((*pip, f"{package}=={version}"))
        unpacked = folder / f"{package}.part"
        (unpacked / "jars").mkdir(parents=True, exist_ok=True)
        [archive] = downloads.glob(f"*{version}.tar.gz")
        with tarfile.open(archive) as tar:
            for member in tar:
                path = Path(member.name)
                if path.suffix == ".jar" and path.parent.parts[1:] in (("deps", "lib"), ("deps", "jars")):
                    member.name = path.name
                    tar.extract(member, unpacked / "jars", filter="data")
        archive.unlink()
        unpacked.rename(home)
    return home / "jars"


def get_job_server(folder: Path, runner: str) -> Path:
    """Return the folder of the jars of Beam's job server for a runner.

    Raises:
        EngineMissingError: Java or Maven is missing, or the repository does not give it.
    """
    modules = (runner, "beam-runners-java-job-service")
    artifacts = [("org.apache.beam", module, BEAM_JAVA) for module in modules]
    artifacts.append(("org.slf4j", "slf4j-simple", "1.7.36"))  # for its log, which says that it serves
    return get_jars(folder, f"{runner}-{BEAM_JAVA}", artifacts)


def get_jars(folder: Path, name: str, artifacts: Sequence[tuple[str, str, str]]) -> Path:
    """Return the folder of artifacts of Maven Central, and of all that they depend on.

    Raises:
        EngineMissingError: Java or Maven is missing, or the repository does not give them.
    """
    _require("java")
    jars = folder / name
    if not jars.exists():
        pom = folder / f"{name}.xml"
        pom.write_text(_POM.format("".join(_DEPENDENCY.format(*artifact) for artifact in artifacts)))
        unpacked = folder / f"{name}.part"
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={unpacked}")
        _run(("mvn", "--quiet", "--batch-mode", "--file", str(pom), *goal))
        unpacked.rename(jars)
    return jars


def get_python_packages(folder: Path, name: str, *requirements: str) -> Path:
    """Return a folder of Python packages that are no part of the environment."""
    packages = folder / name
    if not packages.exists():
        unpacked = folder / f"{name}.part"
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--target", str(unpacked))
        _run((*pip, *requirements))
        unpacked.rename(packages)
    return packages


def _require(tool: str) -> None:
    if shutil.which(tool) is None:
        raise EngineMissingError(f"no {tool} on the PATH: install it (Java 17, Maven, Go)")


def _run(command: Sequence[str], environment: dict[str, str] | None = None) -> None:
    _require(command[0])
    print(f"getting: {' '.join(command)}", file=sys.stderr, flush=True)
    completed = subprocess.run(
        command,
        env=os.environ | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if completed.returncode:
        lines = completed.stdout.strip().splitlines() or [f"exit code {completed.returncode}"]
        reason = next((line for line in lines if "ERROR" in line), lines[-1])
        raise EngineMissingError(f"{command[0]} failed: {reason}")
