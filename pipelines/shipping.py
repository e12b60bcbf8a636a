"""The package for workers elsewhere: a wheel of what is installed here, made without a build tool.

Beam's worker image holds Python and Beam.  What a job stages as extra packages, the image's boot program
installs on each machine before any of its processes begins (apache/beam, sdks/python/container/piputil.go):
first ``pip install --upgrade --force-reinstall --no-deps`` of the file, which replaces whatever has its name,
then ``pip install`` of it, which brings what its METADATA asks for and the image has not, or has in another
version.  It goes into an environment of its own over the image's.  So the METADATA asks for the very versions
that are here: another version of a library may write other bytes.  For Beam too, which is the image's.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import importlib.util
import os
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from bioshards import __version__
from bioshards.corpus.splitters import MODEL

from .options import UsageError

PACKAGES: Final = ("corpus", "vocab", "pipelines")
"""What workers import, with ``bioshards`` itself: of the trainer and of evaluation they need nothing."""
LIBRARIES: Final = {
    "": ("apache-beam", "lxml", "pyarrow", "requests", "urllib3"),
    "vocab": ("numpy", "sentencepiece", "tokenizers"),
    "aws": ("boto3",),
}
"""Libraries that the package, or an extra, imports by itself (pyproject.toml; ``aws`` is Beam's).  What they
need in turn, the installer finds."""
_ENDINGS: Final = (".py", ".typed", ".tsv")
_LONG_AGO: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the wheel: the earliest that a zip file can say."""


def needless(beams: Any) -> bool:
    """Do the options say themselves how workers get the package?  Other packages are added to it."""
    options = beams.get_all_options()
    ways = ("sdk_container_image", "worker_harness_container_image", "setup_file")
    names = [os.path.basename(path) for path in options["extra_packages"] or ()]
    return any(options[way] for way in ways) or any(name.startswith("bioshards-") for name in names)


def reachable(beams: Any, paths: Iterable[str]) -> None:
    """See that workers, who have none of this machine's credentials, are given those of S3 if they need them.

    Raises:
        UsageError: they are not.
    """
    s3 = [path for path in paths if path.startswith("s3://")]
    if s3 and not beams.get_all_options()["s3_access_key_id"]:
        raise UsageError(
            f"{s3[0]} cannot be used by Dataflow's workers without --s3_access_key_id and "
            "--s3_secret_access_key, as credentials of this machine stay here; whoever may look at the job "
            "sees them, so take some that open this bucket alone. Or copy what is there to gs:// (beam copy)"
        )


def pins(extras: Iterable[str], paths: Iterable[str], tools: Mapping[str, str]) -> dict[str, str]:
    """The libraries that workers need, with the versions that are installed here.

    Args:
        paths: what is read and written; those on S3 need another library.
        tools: further libraries, with the versions that are the run's configuration.

    Raises:
        UsageError: one of them cannot be had by its name and version.
    """
    if MODEL in tools:
        raise UsageError(
            f"--splitter scispacy would use {MODEL}, which no package index has, so that workers cannot "
            "install it: give an image that holds it with --sdk_container_image, or uninstall it here"
        )
    wanted = ["", *extras, *(["aws"] if any(path.startswith("s3://") for path in paths) else [])]
    names = [name for extra in wanted for name in LIBRARIES[extra]]
    return {**{name: importlib.metadata.version(name) for name in names}, **tools}


def wheel(folder: str, libraries: Mapping[str, str]) -> str:
    """Write the wheel into a folder; the same files and libraries give the same bytes.

    Returns:
        the path of the wheel.
    """
    about = f"bioshards-{__version__}.dist-info"
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    needs = "".join(f"Requires-Dist: {name}=={libraries[name]}\n" for name in sorted(libraries))
    files = {
        **{name: _read(path) for name, path in _sources()},
        f"{about}/METADATA": (
            f"Metadata-Version: 2.1\nName: bioshards\nVersion: {__version__}\n"
            f"Requires-Python: =={python}.*\n{needs}"
        ).encode(),
        f"{about}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: bioshards\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in files.items())
    files[f"{about}/RECORD"] = f"{record}{about}/RECORD,,\n".encode()
    path = os.path.join(folder, f"bioshards-{__version__}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _LONG_AGO), data)
    return path


def _sources() -> Iterator[tuple[str, str]]:
    """The files of the package that workers need: their names in it, and where they are; sorted.

    Folders that are no packages, the sample's, stay here.
    """
    [root] = _folders("bioshards")
    for name in sorted(os.listdir(root)):
        if name.endswith(_ENDINGS):
            yield f"bioshards/{name}", os.path.join(root, name)
    for package in sorted(PACKAGES):
        [top] = _folders(f"bioshards.{package}")
        for folder, folders, names in os.walk(top):
            folders[:] = sorted(
                name
                for name in folders
                if name != "_root" and os.path.exists(os.path.join(folder, name, "__init__.py"))
            )
            inside = os.path.relpath(folder, top).replace(os.sep, "/")
            where = f"bioshards/{package}" if inside == "." else f"bioshards/{package}/{inside}"
            for name in sorted(names):
                if name.endswith(_ENDINGS):
                    yield f"{where}/{name}", os.path.join(folder, name)


def _folders(package: str) -> list[str]:
    """Where a package lies, in a checkout or an environment."""
    found = importlib.util.find_spec(package)
    assert found is not None, package
    return list(found.submodule_search_locations or [])


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
