"""The package for workers of Dataflow: an image or a built wheel that the options name.

A wheel (``make wheel``) is staged as an extra package, which Beam's boot program installs on each machine
before any of its processes begins (apache/beam, sdks/python/container/piputil.go), after the versions of
libraries that are installed here: another version may write other bytes.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import TYPE_CHECKING, Any

from bioshards import __version__
from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences.splitters import SCISPACY_MODEL
from bioshards.pipelines.context import JobSpec, RunContext

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


def provide_package(context: RunContext, job_spec: JobSpec) -> None:
    """Let workers have this package and the versions of libraries that are installed here.

    Raises:
        UsageError: the options do not say how, or not all that workers need can be given to them.
    """
    options = context.get_all_beam_options()
    if options["sdk_container_image"] or options["worker_harness_container_image"]:
        return
    packages = [os.path.basename(path) for path in options["extra_packages"] or ()]
    if not options["setup_file"] and not any(name.startswith("bioshards-") for name in packages):
        raise UsageError(
            "Dataflow's workers need this package: give an image with --sdk_container_image "
            "(docker/README.md), or a wheel, built by make wheel, with "
            f"--extra_package=dist/bioshards-{__version__}-py3-none-any.whl"
        )
    check_store_credentials(options, context.paths)
    versions = pin_versions(job_spec.extras, context.paths, job_spec.library_versions)
    if not options["requirements_file"]:
        write_requirements(context.beam_options, versions)
    # It warns of any wheel.
    logging.getLogger("apache_beam.runners.portability.stager").setLevel(logging.ERROR)


def check_store_credentials(options: Mapping[str, Any], paths: Iterable[str]) -> None:
    """See that workers, who have none of this machine's credentials, are given those of S3 and Azure.

    Raises:
        UsageError: they are not.
    """
    for path in paths:
        scheme, separator, _ = path.partition("://")
        if not separator or scheme == "gs":
            continue
        is_s3 = scheme == "s3"
        names = ("s3_access_key_id", "s3_secret_access_key") if is_s3 else ("azure_connection_string",)
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

    They are the requirements of the package. What these need in turn, the installer finds.

    Args:
        extras: extras of the package that the workers need.
        paths: what is read and written; those on object stores need another library.
        library_versions: further libraries, with the versions that are the run's configuration.

    Raises:
        UsageError: one of them cannot be had by its name and version.
    """
    if SCISPACY_MODEL in library_versions:
        raise UsageError(
            f"--splitter scispacy would use {SCISPACY_MODEL}, which no package index has, so that workers "
            "cannot install it: give an image that holds it with --sdk_container_image, or uninstall it here"
        )
    schemes = {path.partition("://")[0] for path in paths if "://" in path}
    needed_extras = {"", *extras, *(["cloud"] if schemes else [])}
    names = {"boto3"} if "s3" in schemes else set()  # Beam's image has what Google's stores need
    for requirement in metadata.requires("bioshards") or ():
        extra = re.search(r'extra == "(\w+)"', requirement)
        if (extra[1] if extra else "") in needed_extras:
            names.add(re.split(r"[\[<>=; ]", requirement)[0])
    if not any(metadata.distributions(name="isal")):  # a platform without its wheels
        names.discard("isal")
    return {**{name: metadata.version(name) for name in sorted(names)}, **library_versions}


def write_requirements(beam_options: PipelineOptions, versions: Mapping[str, str]) -> None:
    """Let workers install these versions, from a file that is removed when this process ends."""
    from apache_beam.options.pipeline_options import SetupOptions

    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = os.path.join(folder, "requirements.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"{name}=={versions[name]}\n" for name in sorted(versions))
    setup_options = beam_options.view_as(SetupOptions)
    setup_options.requirements_file = path
    setup_options.requirements_cache = "skip"  # workers download them; this machine has them
