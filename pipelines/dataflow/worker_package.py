"""The package for workers of Dataflow: an image or a built wheel that the options name.

A wheel (``make wheel``) is staged as an extra package, which Beam's boot program installs on each machine
before any of its processes begins (apache/beam, sdks/python/container/piputil.go), after the versions of
libraries that are installed here: another version may write other bytes.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from bioshards import __version__
from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL
from bioshards.pipelines.storage.object_store import AZURE_SCHEMES

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

LIBRARIES: Final = {
    "": (
        "apache-beam",
        "filelock",
        "isal",
        "jinja2",
        "lxml",
        "numpy",
        "pyarrow",
        "requests",
        "tqdm",
        "urllib3",
    ),
    "vocab": ("sentencepiece", "tokenizers"),
    "cloud": ("obstore",),
    "aws": ("boto3",),
}
"""Libraries that the package, or an extra, imports by itself (pyproject.toml; ``aws`` is Beam's, and Beam's
image has what Google's stores need).  What they need in turn, the installer finds."""


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


def check_store_credentials(beam_options: PipelineOptions, paths: Iterable[str]) -> None:
    """See that workers, who have none of this machine's credentials, are given those of S3 and Azure.

    Raises:
        UsageError: they are not.
    """
    options = beam_options.get_all_options()
    option_names: dict[str, tuple[str, ...]] = {"s3": ("s3_access_key_id", "s3_secret_access_key")}
    option_names |= dict.fromkeys(AZURE_SCHEMES, ("azure_connection_string",))
    for path in paths:
        names = option_names.get(path.partition("://")[0], ())
        if not all(options[name] for name in names):
            raise UsageError(
                f"{path} cannot be used by Dataflow's workers without "
                f"{' and '.join(f'--{name}' for name in names)}, as credentials of this machine stay here; "
                "whoever may look at the job sees them, so take some that open this bucket alone. "
                "Or copy what is there to gs:// first"
            )


def pin_versions(
    extras: Iterable[str], paths: Iterable[str], library_versions: Mapping[str, str]
) -> dict[str, str]:
    """Return the libraries that workers need, with the installed versions.

    Args:
        paths: what is read and written; those on object stores need another library.
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
    extra_names = ["", *extras]
    extra_names += [
        name for name, mark in (("cloud", "://"), ("aws", "s3://")) if any(mark in path for path in paths)
    ]
    names = {name for extra in extra_names for name in LIBRARIES[extra]}
    if not importlib.util.find_spec("isal"):  # a platform without its wheels
        names.remove("isal")
    return {**{name: importlib.metadata.version(name) for name in sorted(names)}, **library_versions}
