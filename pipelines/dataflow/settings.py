"""Beam's options of a run on Google Cloud Dataflow: what must be given, and what is set by default.

Numbers are from Dataflow's documentation (docs.cloud.google.com/dataflow/docs, read in November 2026).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from bioshards import __version__
from bioshards.corpus.errors import UsageError, describe_install
from bioshards.pipelines.context import JobSpec

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions

MACHINE_TYPE: Final = "e2-standard-4"
"""4 vCPUs with 16 GB: Beam runs one Python process for each vCPU, and one of ours takes 0.6 to 1.5 GB."""
DISK_SIZE_GB: Final = 25
"""The service's own size beside Dataflow Shuffle; without that it would be 250, and nothing spills."""
MAX_WORKERS: Final = 25
"""Machines at most, where the service takes 2,000.  A file of PubMed takes a process 3 to 5 seconds, so 1,600
take the 100 processes about a minute: more machines would be paid for starting."""
_REQUIRED_OPTIONS: Final = {
    "project": "the project that runs the job and pays for it, as --project=my-lab",
    "region": "where the machines are, best where the buckets are, as --region=us-central1",
    "temp_location": "a folder for the job's own files, as --temp_location=gs://my-bucket/tmp",
}


def is_dataflow_runner(beam_args: Sequence[str]) -> bool:
    """Do these options name Dataflow's runner, in any of the ways that Beam takes?"""
    runner_names = [arg.removeprefix("--runner=") for arg in beam_args if arg.startswith("--runner=")]
    runner_names += [arg for option, arg in itertools.pairwise(beam_args) if option == "--runner"]
    return any(re.fullmatch(r"([\w.]*\.)?dataflow(runner)?", name, re.IGNORECASE) for name in runner_names)


def check_options(beam_options: PipelineOptions) -> None:
    """See that the command line has what a job needs, before anything is asked of a network.

    Beam validates what is given, option by option: of all together, with a wrong folder, it would look for
    another bucket, for 80 seconds where there is no network.

    Raises:
        UsageError: with what is missing or cannot be.
    """
    try:
        import apache_beam.runners.dataflow.internal.apiclient  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--runner=DataflowRunner needs a library that cannot be imported ({error}): "
            f"{describe_install('cloud')}"
        ) from error
    from apache_beam.options.pipeline_options import GoogleCloudOptions
    from apache_beam.options.pipeline_options_validator import PipelineOptionsValidator
    from apache_beam.runners.dataflow.dataflow_runner import DataflowRunner

    options = beam_options.get_all_options()
    missing = [f"--{name} ({meaning})" for name, meaning in _REQUIRED_OPTIONS.items() if not options[name]]
    if missing:
        raise UsageError(f"--runner=DataflowRunner needs {'; '.join(missing)}")
    if options["dry_run"]:
        raise UsageError("--dry_run is Beam's and says nothing: give --dry-run")
    if options["template_location"]:
        raise UsageError("--template_location would only write the job: leave it out, and the job is started")
    cloud_options = beam_options.view_as(GoogleCloudOptions)
    validator = PipelineOptionsValidator(beam_options, DataflowRunner())
    problems = validator.validate_cloud_options(cloud_options) if validator.is_service_runner() else []
    for name in ("temp_location", "staging_location"):
        if options[name]:
            problems += validator.validate_gcs_path(cloud_options, name)
    if problems:
        raise UsageError(" ".join(problems).rstrip("."))


def list_job_folders(beam_options: PipelineOptions) -> list[str]:
    """Where the job's own files go, on gs://."""
    options = beam_options.get_all_options()
    return [options[name] for name in ("temp_location", "staging_location") if options[name]]


def make_job_name(job_spec: JobSpec) -> str:
    """Return the job's name, which is the same for every run into this output.

    Dataflow rejects a second active job of the same name, so the name serves as the output's lock.
    """
    digest = hashlib.sha256(job_spec.output.encode()).hexdigest()[:8]
    return f"bioshards-{job_spec.pipeline.replace('_', '-')}-{digest}"


def choose_max_workers(num_items: int, machine_type: str) -> int:
    """Return the number of machines of a run at most: a vCPU for each item, and no more than MAX_WORKERS."""
    match = re.match(r"\w+-(?:standard|highmem|highcpu)-(\d+)\b|(?:\w+-)?custom-(\d+)-", machine_type)
    vcpus = int(match[1] or match[2]) if match else 1  # at least, of a type whose name does not say it
    return max(1, min(MAX_WORKERS, -(-num_items // vcpus)))


def set_defaults(beam_options: PipelineOptions, job_spec: JobSpec) -> None:
    """Set what the command line has not."""
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        GoogleCloudOptions,
        SetupOptions,
        WorkerOptions,
    )

    given = beam_options.get_all_options()
    max_workers = choose_max_workers(job_spec.num_items, given["machine_type"] or MACHINE_TYPE)
    defaults: list[tuple[Any, str, object]] = [
        # One bundle at a time in a process: several would share an interpreter, and take more memory.
        (DebugOptions, "number_of_worker_harness_threads", 1),
        (GoogleCloudOptions, "job_name", make_job_name(job_spec)),
        (
            GoogleCloudOptions,
            "labels",
            [f"bioshards={__version__.replace('.', '-')}", f"pipeline={job_spec.pipeline}"],
        ),
        (SetupOptions, "save_main_session", False),  # workers have the package instead of __main__
        (WorkerOptions, "machine_type", MACHINE_TYPE),
        (WorkerOptions, "disk_size_gb", DISK_SIZE_GB),
        (WorkerOptions, "max_num_workers", max(max_workers, given["num_workers"] or 1)),
    ]
    for options_class, name, value in defaults:
        if given[name] is None:
            setattr(beam_options.view_as(options_class), name, value)
