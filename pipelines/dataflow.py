"""A run on Google Cloud Dataflow: what it needs of the command line, and what is set where that says nothing.

Rules and numbers are from Dataflow's documentation (docs.cloud.google.com/dataflow/docs, read in November
2026; pages are named where they are used) and Beam 2.77's client (runners/dataflow/internal/apiclient.py).
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from bioshards import __version__

from .options import UsageError


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
            (horizontal-autoscaling), said so that a template says it.
        save_main_session: off. Beam sends all of ``__main__`` by default; workers have the package instead.
    """

    machine_type: str = "e2-standard-4"
    disk_size_gb: int = 25
    number_of_worker_harness_threads: int = 1
    autoscaling_algorithm: str = "THROUGHPUT_BASED"
    save_main_session: bool = False


DEFAULTS: Final = Defaults()
VCPUS: Final = 4
"""Of the default machine: so many items are done at a time on one."""
MEMORY_GB: Final = 16
"""Of the default machine."""
MOST_WORKERS: Final = 25
"""Machines at most if no other number is given, 100 vCPUs; the service's own is 2,000
(horizontal-autoscaling).  A file of PubMed takes a process 3 to 5 seconds, so 1,600 take 100 processes about
a minute.  To start a machine takes longer than that: more of them would be paid for starting."""

_NEEDED: Final = {
    "project": "the project that runs the job and pays for it, as --project=my-lab",
    "region": "where the machines are, best where the buckets are, as --region=us-central1",
    "temp_location": "a folder for the job's own files, as --temp_location=gs://my-bucket/tmp",
}
_BUCKET: Final = r"[a-z0-9][-_a-z0-9.]{1,220}[a-z0-9]"
_PATTERNS: Final = {
    "project": (r"[a-z][-a-z0-9:.]{4,}[a-z0-9]", "no project's ID; its number or title does not do"),
    "region": (r"[a-z]+-[a-z]+[0-9]+", "no region; they look like us-central1, without a zone's letter"),
    "temp_location": (rf"gs://{_BUCKET}/.*", "no folder like gs://BUCKET/tmp"),
    "staging_location": (rf"gs://{_BUCKET}/.*", "no folder like gs://BUCKET/staging"),
    "job_name": (
        r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?",
        "no job's name: lower case, digits and hyphens, 63 at most",
    ),
}
"""What Beam's own validator asks for; but for a bucket that it does not like that one looks for another, for
80 seconds where there is no network."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a runner elsewhere has to know of a run.

    Attributes:
        items: how many there are of what a worker does at a time, in the widest step.
        extras: those of the package whose libraries the workers need.
        tools: further libraries, with the versions that are the run's configuration.
    """

    pipeline: str
    output: str
    items: int
    extras: tuple[str, ...] = ()
    tools: Mapping[str, str] = field(default_factory=dict)


def chosen(rest: Sequence[str]) -> bool:
    """Do these options name Dataflow's runner, in any of the ways that Beam takes?"""
    given = [word.removeprefix("--runner=") for word in rest if word.startswith("--runner=")]
    given += [word for option, word in itertools.pairwise(rest) if option == "--runner"]
    return any(re.fullmatch(r"([\w.]*\.)?dataflow(runner)?", name, re.IGNORECASE) for name in given)


def check(beams: Any) -> None:
    """See that the command line has what a job needs, before anything is asked of a network.

    Raises:
        UsageError: with what is missing or cannot be.
    """
    options = beams.get_all_options()
    if missing := [f"--{name} ({what})" for name, what in _NEEDED.items() if not options[name]]:
        raise UsageError(f"--runner=DataflowRunner needs {'; '.join(missing)}")
    for name, (pattern, otherwise) in _PATTERNS.items():
        if options[name] and not re.fullmatch(pattern, options[name]):
            raise UsageError(f"--{name} {options[name]} is {otherwise}")
    if options["dry_run"]:
        raise UsageError("--dry_run is Beam's and says nothing: give --dry-run, which makes the job as well")
    template = options["template_location"]
    if template and "://" not in template and not os.path.isdir(os.path.dirname(template) or "."):
        raise UsageError(f"--template_location {template}: there is no folder {os.path.dirname(template)}")
    try:
        import apache_beam.runners.dataflow.internal.apiclient  # noqa: F401
    except ImportError as error:
        raise UsageError(
            f"--runner=DataflowRunner needs a library that cannot be imported ({error}): "
            "pip install 'bioshards[cloud]'"
        ) from error


def folders(beams: Any) -> list[str]:
    """Where the job's own files go, on gs://."""
    options = beams.get_all_options()
    return [options[name] for name in ("temp_location", "staging_location") if options[name]]


def job_name(task: Task) -> str:
    """The job's name, the same for every run into this output.

    Dataflow takes no second job of a name while the first one runs.
    """
    digest = hashlib.sha256(task.output.encode()).hexdigest()[:8]
    return f"bioshards-{task.pipeline.replace('_', '-')}-{digest}"


def most_workers(items: int, at_a_time: int) -> int:
    """How many machines a run has at most: no more than there are items for, so many at a time on each."""
    return max(1, min(MOST_WORKERS, -(-items // at_a_time)))


def vcpus_of(machine_type: str) -> int:
    """How many vCPUs a type of machine has, by its name; of one that does not say so, one at least."""
    said = re.match(r"\w+-(?:standard|highmem|highcpu)-(\d+)\b|(?:\w+-)?custom-(\d+)-", machine_type)
    return int(said[1] or said[2]) if said else 1


def settle(beams: Any, task: Task) -> None:
    """Set what the command line has not: the table's, and what follows from the run."""
    from apache_beam.options.pipeline_options import (
        DebugOptions,
        GoogleCloudOptions,
        SetupOptions,
        WorkerOptions,
    )

    given = beams.get_all_options()
    workers = most_workers(task.items, vcpus_of(given["machine_type"] or DEFAULTS.machine_type))
    settings: dict[Any, dict[str, Any]] = {
        DebugOptions: {"number_of_worker_harness_threads": DEFAULTS.number_of_worker_harness_threads},
        GoogleCloudOptions: {
            "job_name": job_name(task),
            "labels": [f"bioshards={__version__.replace('.', '-')}", f"pipeline={task.pipeline}"],
        },
        SetupOptions: {"save_main_session": DEFAULTS.save_main_session},
        WorkerOptions: {
            "machine_type": DEFAULTS.machine_type,
            "disk_size_gb": DEFAULTS.disk_size_gb,
            "autoscaling_algorithm": DEFAULTS.autoscaling_algorithm,
            "max_num_workers": max(workers, given["num_workers"] or 1),
        },
    }
    for kind, wanted in settings.items():
        for name, value in wanted.items():
            if given[name] is None:
                setattr(beams.view_as(kind), name, value)
