"""A run on Google Cloud Dataflow: what it needs of the command line, and what is set where that says nothing.

Rules and numbers are from Dataflow's documentation (docs.cloud.google.com/dataflow/docs, read in November
2026; pages are named where they are used) and Beam 2.77's client (runners/dataflow/internal/apiclient.py).
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bioshards import __version__
from bioshards.corpus.errors import UsageError
from bioshards.pipelines.context import JobSpec

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


@dataclass(frozen=True, slots=True)
class Defaults:
    """What is set where the command line says nothing; named as the options of Beam that they are.

    Attributes:
        machine_type: 4 vCPUs with 16 GB. The work is bound by the CPU, and Beam has one Python process for
            each vCPU (``use_multiple_sdk_containers``, which its client adds). A process of ours takes 0.6 to
            1.5 GB, what else is on a machine 1 (guides/troubleshoot-oom). E2 is taken to be in every region
            and to count against the quota of CPUs that every project has, as others do not.
        disk_size_gb: text crosses no shuffle, and what waits here is a file for each process on its way to a
            store; so it is what the system and the container need, the service's own size beside Dataflow
            Shuffle (shuffle-for-batch). Said here, as without Shuffle it would be ten times as much.
        number_of_worker_harness_threads: one bundle at a time in a process. What the service chooses is
            several, for work that waits; ours computes, so that they would take the memory of several and
            wait for one interpreter.
        autoscaling_algorithm: as many workers as there is work for; the service's own for batches
            (horizontal-autoscaling).
        save_main_session: off. Beam sends all of ``__main__`` by default; workers have the package instead.
    """

    machine_type: str = "e2-standard-4"
    disk_size_gb: int = 25
    number_of_worker_harness_threads: int = 1
    autoscaling_algorithm: str = "THROUGHPUT_BASED"
    save_main_session: bool = False


DEFAULTS: Final = Defaults()
DEFAULT_VCPUS: Final = 4
"""Of the default machine: so many items are done at a time on one."""
MAX_WORKERS: Final = 25
"""Machines at most if no other number is given, 100 vCPUs; the service's own is 2,000
(horizontal-autoscaling).  A file of PubMed takes a process 3 to 5 seconds, so 1,600 take 100 processes about
a minute.  To start a machine takes longer than that: more of them would be paid for starting."""

_REQUIRED_OPTIONS: Final = {
    "project": "the project that runs the job and pays for it, as --project=my-lab",
    "region": "where the machines are, best where the buckets are, as --region=us-central1",
    "temp_location": "a folder for the job's own files, as --temp_location=gs://my-bucket/tmp",
}
_BUCKET_PATTERN: Final = r"[a-z0-9][-_a-z0-9.]{1,220}[a-z0-9]"
_OPTION_PATTERNS: Final = {
    "project": (r"[a-z][-a-z0-9:.]{4,}[a-z0-9]", "no project's ID; its number or title does not do"),
    "region": (r"[a-z]+-[a-z]+[0-9]+", "no region; they look like us-central1, without a zone's letter"),
    "temp_location": (rf"gs://{_BUCKET_PATTERN}/.*", "no folder like gs://BUCKET/tmp"),
    "staging_location": (rf"gs://{_BUCKET_PATTERN}/.*", "no folder like gs://BUCKET/staging"),
    "job_name": (
        r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
        "no job's name: lower case, digits and hyphens, 63 at most",
    ),
}
"""What Beam's own validator asks for; but for a bucket that it does not like that one looks for another, for
80 seconds where there is no network."""


def is_dataflow_runner(beam_args: Sequence[str]) -> bool:
    """Do these options name Dataflow's runner, in any of the ways that Beam takes?"""
    runner_names = [arg.removeprefix("--runner=") for arg in beam_args if arg.startswith("--runner=")]
    runner_names += [arg for option, arg in itertools.pairwise(beam_args) if option == "--runner"]
    return any(re.fullmatch(r"([\w.]*\.)?dataflow(runner)?", name, re.IGNORECASE) for name in runner_names)


def check_options(beam_options: PipelineOptions) -> None:
    """See that the command line has what a job needs, before anything is asked of a network.

    Raises:
        UsageError: with what is missing or cannot be.
    """
    options = beam_options.get_all_options()
    if missing := [
        f"--{name} ({description})" for name, description in _REQUIRED_OPTIONS.items() if not options[name]
    ]:
        raise UsageError(f"--runner=DataflowRunner needs {'; '.join(missing)}")
    for name, (pattern, problem) in _OPTION_PATTERNS.items():
        if options[name] and not re.fullmatch(pattern, options[name]):
            raise UsageError(f"--{name} {options[name]} is {problem}")
    if options["dry_run"]:
        raise UsageError("--dry_run is Beam's and says nothing: give --dry-run, which makes the job as well")
    if options["template_location"]:
        raise UsageError("--template_location would only write the job: leave it out, and the job is started")
    try:
        import apache_beam.runners.dataflow.internal.apiclient  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--runner=DataflowRunner needs a library that cannot be imported ({error}): "
            "pip install 'bioshards[cloud]'"
        ) from error


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


def choose_max_workers(num_items: int, items_per_worker: int) -> int:
    """How many machines a run has at most: no more than there are items for, so many at a time on each."""
    return max(1, min(MAX_WORKERS, -(-num_items // items_per_worker)))


def vcpus_from_machine_type(machine_type: str) -> int:
    """How many vCPUs a type of machine has, by its name; of one that does not say so, one at least."""
    match = re.match(r"\w+-(?:standard|highmem|highcpu)-(\d+)\b|(?:\w+-)?custom-(\d+)-", machine_type)
    return int(match[1] or match[2]) if match else 1


def set_defaults(beam_options: PipelineOptions, job_spec: JobSpec) -> None:
    """Set what the command line has not: the table's, and what follows from the run."""
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        GoogleCloudOptions,
        SetupOptions,
        WorkerOptions,
    )

    all_options = beam_options.get_all_options()
    max_workers = choose_max_workers(
        job_spec.num_items, vcpus_from_machine_type(all_options["machine_type"] or DEFAULTS.machine_type)
    )
    defaults: dict[Any, dict[str, Any]] = {
        DebugOptions: {"number_of_worker_harness_threads": DEFAULTS.number_of_worker_harness_threads},
        GoogleCloudOptions: {
            "job_name": make_job_name(job_spec),
            "labels": [f"bioshards={__version__.replace('.', '-')}", f"pipeline={job_spec.pipeline}"],
        },
        SetupOptions: {"save_main_session": DEFAULTS.save_main_session},
        WorkerOptions: {
            "machine_type": DEFAULTS.machine_type,
            "disk_size_gb": DEFAULTS.disk_size_gb,
            "autoscaling_algorithm": DEFAULTS.autoscaling_algorithm,
            "max_num_workers": max(max_workers, all_options["num_workers"] or 1),
        },
    }
    for options_class, values in defaults.items():
        for name, value in values.items():
            if all_options[name] is None:
                setattr(beam_options.view_as(options_class), name, value)
