"""What a plan takes: on this machine time, on a runner elsewhere machines, hours and money as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from . import dataflow
from .cost import CALL_SECONDS, START_UP_SECONDS, Cost, Machines, Prices, cost
from .dataflow import Task
from .plan import Plan, as_time
from .starting import Where

if TYPE_CHECKING:
    import apache_beam as beam

GRAPH_MB: Final = 10
"""The largest job graph that Dataflow takes (docs.cloud.google.com/dataflow/docs/request-quotas, read in
November 2026)."""
_GB_A_VCPU: Final = {"highcpu": 1, "standard": 4, "highmem": 8}
"""Memory of the kinds of machine types, as E2 has it; others have a tenth less, or twice highcpu's."""


def said(
    plan: Plan,
    notices: Sequence[str],
    place: Where,
    task: Task,
    workers: int,
    build: Callable[[beam.Pipeline], None],
) -> str:
    """The plan and what it takes, in lines for a person."""
    noticed = [f"notice: {notice}" for notice in (*notices, *place.notices)]
    takes = _elsewhere(plan, place, task, build) if place.runner_given else _here(plan, workers)
    first, *others = plan.lines
    return "\n".join([first, *noticed, *others, *takes])


def _here(plan: Plan, workers: int) -> list[str]:
    if not plan.size:
        return []
    megabytes = plan.size / plan.core_seconds / 1e6
    takes = f"{as_time(plan.core_seconds / workers)} of processing: {workers} workers"
    lines = [f"estimate:    {takes}, {megabytes:.1f} MB/s each ({plan.whence})"]
    return [*lines, *([f"             at the same time {plan.meanwhile}"] if plan.meanwhile else [])]


def _elsewhere(plan: Plan, place: Where, task: Task, build: Callable[[beam.Pipeline], None]) -> list[str]:
    steps, size = graph(build)
    lines = [f"job graph:   {steps:,} steps, {size / 1e6:.2f} MB"]
    if not place.on_dataflow:
        hours = plan.core_seconds / 3600
        return [*lines, f"estimate:    {hours:.2f} core hours of processing ({plan.whence})"]
    lines[0] += f" of the {GRAPH_MB} that Dataflow takes"
    if size > GRAPH_MB * 1e6:
        lines.append("notice: the job is too large for Dataflow: give fewer files at a time")
    dataflow.settle(place.beams, task)
    options, prices = place.beams.get_all_options(), Prices()
    machines = machines_of(options)
    takes = cost(plan.core_seconds, plan.at_a_time, machines, plan.waiting, plan.fetching, prices)
    return [
        *lines,
        f"machines:    {machines.most} {options['machine_type']} at most, each of {machines.vcpus} vCPUs, "
        f"{machines.memory_gb:g} GB and {machines.disk_gb:g} GB of disk",
        f"estimate:    {_shown(takes)} ({plan.whence}; a vCPU taken for one of its cores)",
        f"             with {as_time(plan.waiting)} of waiting for the store, in all processes together "
        f"({CALL_SECONDS * 1000:.0f} ms a call: an assumption)",
        *([f"             with {plan.meanwhile}"] if plan.meanwhile else []),
        f"prices:      ${prices.vcpu_hour:g} a vCPU hour, ${prices.memory_gb_hour:g} a GB hour of memory, "
        f"${prices.disk_gb_hour:f} of disk, ${prices.shuffle_gb:g} a GB shuffled: an assumption "
        f"({prices.source})",
        "not in it:   storage, requests to it, traffic between regions, logs; the last step, on one machine",
    ]


def graph(build: Callable[[beam.Pipeline], None]) -> tuple[int, int]:
    """How many steps a job has, and the bytes of it as a runner is given it."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from . import local

    options = PipelineOptions([])
    root = beam.Pipeline(runner=local.runner(options), options=options)
    build(root)
    job = root.to_runner_api()
    steps = sum(not transform.subtransforms for transform in job.components.transforms.values())
    return steps, job.ByteSize()


def machines_of(options: Mapping[str, Any]) -> Machines:
    """The machines that settled options ask for; a type that is not known is taken for the default."""
    vcpus, memory = dataflow.VCPUS, float(dataflow.MEMORY_GB)
    if known := re.fullmatch(r"\w+-(standard|highmem|highcpu)-(\d+)(-\w+)?", options["machine_type"]):
        vcpus = int(known[2])
        memory = float(vcpus * _GB_A_VCPU[known[1]])
    elif custom := re.fullmatch(r"(?:\w+-)?custom-(\d+)-(\d+)(?:-ext)?", options["machine_type"]):
        vcpus, memory = int(custom[1]), int(custom[2]) / 1024
    return Machines(options["max_num_workers"], vcpus, memory, options["disk_size_gb"])


def _shown(takes: Cost) -> str:
    start = as_time(START_UP_SECONDS)
    return (
        f"{takes.core_hours:.2f} core hours, {takes.worker_hours:.2f} worker hours, ${takes.dollars:,.2f}, "
        f"in {as_time(takes.seconds)}, {start} of which machines take to start"
    )
