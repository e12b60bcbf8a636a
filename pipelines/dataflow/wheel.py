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
from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL

PACKAGES: Final = ("corpus", "vocab", "pipelines")
"""What workers import, with ``bioshards`` itself: of the trainer and of evaluation they need nothing."""
LIBRARIES: Final = {
    "": ("apache-beam", "lxml", "pyarrow", "requests", "urllib3"),
    "vocab": ("numpy", "sentencepiece", "tokenizers"),
    "aws": ("boto3",),
}
"""Libraries that the package, or an extra, imports by itself (pyproject.toml; ``aws`` is Beam's).  What they
need in turn, the installer finds."""
_SUFFIXES: Final = (".py", ".typed", ".tsv")
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the wheel: the earliest that a zip file can say."""


def has_worker_package(beam_options: Any) -> bool:
    """Do the options say themselves how workers get the package?  Other packages are added to it."""
    options = beam_options.get_all_options()
    option_names = ("sdk_container_image", "worker_harness_container_image", "setup_file")
    package_names = [os.path.basename(path) for path in options["extra_packages"] or ()]
    return any(options[option_name] for option_name in option_names) or any(
        name.startswith("bioshards-") for name in package_names
    )


def check_s3_credentials(beam_options: Any, paths: Iterable[str]) -> None:
    """See that workers, who have none of this machine's credentials, are given those of S3 if they need them.

    Raises:
        UsageError: they are not.
    """
    s3_paths = [path for path in paths if path.startswith("s3://")]
    if s3_paths and not beam_options.get_all_options()["s3_access_key_id"]:
        raise UsageError(
            f"{s3_paths[0]} cannot be used by Dataflow's workers without --s3_access_key_id and "
            "--s3_secret_access_key, as credentials of this machine stay here; whoever may look at the job "
            "sees them, so take some that open this bucket alone. Or copy what is there to gs:// (beam copy)"
        )


def pin_versions(
    extras: Iterable[str], paths: Iterable[str], library_versions: Mapping[str, str]
) -> dict[str, str]:
    """Return the libraries that workers need, with the installed versions.

    Args:
        paths: what is read and written; those on S3 need another library.
        library_versions: further libraries, with the versions that are the run's configuration.

    Raises:
        UsageError: one of them cannot be had by its name and version.
    """
    if SCISPACY_MODEL in library_versions:
        raise UsageError(
            f"--splitter scispacy would use {SCISPACY_MODEL}, which no package index has, so that workers "
            "cannot "
            "install it: give an image that holds it with --sdk_container_image, or uninstall it here"
        )
    extra_names = ["", *extras, *(["aws"] if any(path.startswith("s3://") for path in paths) else [])]
    names = [name for extra in extra_names for name in LIBRARIES[extra]]
    return {**{name: importlib.metadata.version(name) for name in names}, **library_versions}


def build_wheel(folder: str, pinned_versions: Mapping[str, str]) -> str:
    """Write the wheel into a folder; the same files and libraries give the same bytes.

    Returns:
        the path of the wheel.
    """
    dist_info = f"bioshards-{__version__}.dist-info"
    python_version = f"{sys.version_info.major}.{sys.version_info.minor}"
    requirements = "".join(
        f"Requires-Dist: {name}=={pinned_versions[name]}\n" for name in sorted(pinned_versions)
    )
    files = {
        **{name: _read(path) for name, path in _iter_source_files()},
        f"{dist_info}/METADATA": (
            f"Metadata-Version: 2.1\nName: bioshards\nVersion: {__version__}\n"
            f"Requires-Python: =={python_version}.*\n{requirements}"
        ).encode(),
        f"{dist_info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: bioshards\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(
        f"{name},sha256={_format_record_digest(data)},{len(data)}\n" for name, data in files.items()
    )
    files[f"{dist_info}/RECORD"] = f"{record}{dist_info}/RECORD,,\n".encode()
    path = os.path.join(folder, f"bioshards-{__version__}-py3-none-any.whl")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, _ZIP_EPOCH), data)
    return path


def _iter_source_files() -> Iterator[tuple[str, str]]:
    """Yield the name in the wheel and the path of every file that workers need, sorted.

    Folders that are no packages, the sample's, stay here.
    """
    [root] = _find_package_folders("bioshards")
    for name in sorted(os.listdir(root)):
        if name.endswith(_SUFFIXES):
            yield f"bioshards/{name}", os.path.join(root, name)
    for package in sorted(PACKAGES):
        [package_folder] = _find_package_folders(f"bioshards.{package}")
        for folder, folders, names in os.walk(package_folder):
            folders[:] = sorted(
                name
                for name in folders
                if name != "_root" and os.path.exists(os.path.join(folder, name, "__init__.py"))
            )
            subfolder = os.path.relpath(folder, package_folder).replace(os.sep, "/")
            package_path = f"bioshards/{package}" if subfolder == "." else f"bioshards/{package}/{subfolder}"
            for name in sorted(names):
                if name.endswith(_SUFFIXES):
                    yield f"{package_path}/{name}", os.path.join(folder, name)


def _find_package_folders(package: str) -> list[str]:
    """Where a package lies, in a checkout or an environment."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    return list(spec.submodule_search_locations or [])


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _format_record_digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
