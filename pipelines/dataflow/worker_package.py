"""The package for workers of Dataflow: an image or a built wheel that the options name.

A wheel (``make wheel``) is staged as an extra package, which Beam's boot program installs on each machine
before any of its processes begins (apache/beam, sdks/python/container/piputil.go), after the versions of
libraries that are installed here: another version may write other bytes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from bioshards import __version__
from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

LIBRARIES: Final = {
    "": ("apache-beam", "filelock", "jinja2", "lxml", "pyarrow", "requests", "urllib3"),
    "vocab": ("numpy", "sentencepiece", "tokenizers"),
    "aws": ("boto3",),
}
"""Libraries that the package, or an extra, imports by itself (pyproject.toml; ``aws`` is Beam's).  What they
need in turn, the installer finds."""
_SUFFIXES: Final = (".py", ".typed", ".tsv")
_ZIP_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The time of every file in the wheel: the earliest that a zip file can say."""


def has_image(beam_options: PipelineOptions) -> bool:
    """Return True if the options name an image for workers."""
    options = beam_options.get_all_options()
    return bool(options["sdk_container_image"] or options["worker_harness_container_image"])


def check_worker_package(beam_options: PipelineOptions) -> None:
    """Check that the options say how workers get this package.

    Raises:
        UsageError: they do not.
    """
    options = beam_options.get_all_options()
    package_names = [os.path.basename(path) for path in options["extra_packages"] or ()]
    if (
        has_image(beam_options)
        or options["setup_file"]
        or any(name.startswith("bioshards-") for name in package_names)
    ):
        return
    raise UsageError(
        "Dataflow's workers need this package: give an image with --sdk_container_image (docker/README.md), "
        f"or a wheel with --extra_package=dist/bioshards-{__version__}-py3-none-any.whl, built by make wheel"
    )


@contextlib.contextmanager
def pin_libraries(beam_options: PipelineOptions, pinned_versions: Mapping[str, str]) -> Iterator[None]:
    """Inside, the options name these versions as the requirements of workers, unless they name others."""
    from apache_beam.options.pipeline_options import SetupOptions

    setup_options = beam_options.view_as(SetupOptions)
    if setup_options.requirements_file:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        setup_options.requirements_file = os.path.join(folder, "requirements.txt")
        setup_options.requirements_cache = "skip"  # workers download them; this machine has them
        with open(setup_options.requirements_file, "w", encoding="utf-8") as file:
            file.writelines(f"{name}=={pinned_versions[name]}\n" for name in sorted(pinned_versions))
        yield


def check_s3_credentials(beam_options: PipelineOptions, paths: Iterable[str]) -> None:
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
