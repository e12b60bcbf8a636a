"""What a plan takes: on this machine time, on a runner elsewhere machines, hours and money as well."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import settings

from .cost import STORE_CALL_SECONDS, WORKER_STARTUP_SECONDS, Cost, Prices, WorkerPool, estimate_cost
from .source_plans import DryRunPlan, format_duration

if TYPE_CHECKING:
    import apache_beam as beam

MAX_GRAPH_MB: Final = 10
"""The largest job graph that Dataflow takes (docs.cloud.google.com/dataflow/docs/request-quotas, read in
November 2026)."""
_GB_PER_VCPU: Final = {"highcpu": 1, "standard": 4, "highmem": 8}
"""Memory of the kinds of machine types, as E2 has it; others have a tenth less, or twice highcpu's."""


def format_estimate(
    plan: DryRunPlan,
    notices: Sequence[str],
    context: RunContext,
    job_spec: JobSpec,
    workers: int,
    build: Callable[[beam.Pipeline], None],
) -> str:
    """Format the dry-run report."""
    notice_lines = [f"notice: {notice}" for notice in (*notices, *context.notices)]
    estimate_lines = (
        _format_remote_estimate(plan, context, job_spec, build)
        if context.has_runner
        else _format_local_estimate(plan, workers)
    )
    first, *further_lines = plan.lines
    return "\n".join([first, *notice_lines, *further_lines, *estimate_lines])


def _format_local_estimate(plan: DryRunPlan, workers: int) -> list[str]:
    if not plan.size:
        return []
    megabytes = plan.size / plan.core_seconds / 1e6
    duration = f"{format_duration(plan.core_seconds / workers)} of processing: {workers} workers"
    lines = [f"estimate:    {duration}, {megabytes:.1f} MB/s each ({plan.rate_source})"]
    return [*lines, *([f"             at the same time {plan.fetch_note}"] if plan.fetch_note else [])]


def _format_remote_estimate(
    plan: DryRunPlan, context: RunContext, job_spec: JobSpec, build: Callable[[beam.Pipeline], None]
) -> list[str]:
    num_steps, graph_bytes = measure_graph(build)
    lines = [f"job graph:   {num_steps:,} steps, {graph_bytes / 1e6:.2f} MB"]
    if not context.is_on_dataflow:
        core_hours = plan.core_seconds / 3600
        return [*lines, f"estimate:    {core_hours:.2f} core hours of processing ({plan.rate_source})"]
    lines[0] += f" of the {MAX_GRAPH_MB} that Dataflow takes"
    if graph_bytes > MAX_GRAPH_MB * 1e6:
        lines.append("notice: the job is too large for Dataflow: give fewer files at a time")
    settings.set_defaults(context.beam_options, job_spec)
    options, prices = context.beam_options.get_all_options(), Prices()
    worker_pool = worker_pool_from_options(options)
    job_cost = estimate_cost(
        plan.core_seconds, plan.parallelism, worker_pool, plan.store_wait_seconds, plan.fetch_seconds, prices
    )
    return [
        *lines,
        f"machines:    {worker_pool.max_workers} {options['machine_type']} at most, each of "
        f"{worker_pool.vcpus} vCPUs, "
        f"{worker_pool.memory_gb:g} GB and {worker_pool.disk_gb:g} GB of disk",
        f"estimate:    {_format_cost(job_cost)} ({plan.rate_source}; a vCPU taken for one of its cores)",
        f"             with {format_duration(plan.store_wait_seconds)} of waiting for the store, in all "
        "processes together "
        f"({STORE_CALL_SECONDS * 1000:.0f} ms a call: an assumption)",
        *([f"             with {plan.fetch_note}"] if plan.fetch_note else []),
        f"prices:      ${prices.vcpu_hour:g} a vCPU hour, ${prices.memory_gb_hour:g} a GB hour of memory, "
        f"${prices.disk_gb_hour:f} of disk, ${prices.shuffle_gb:g} a GB shuffled: an assumption "
        f"({prices.source})",
        "not in it:   storage, requests to it, traffic between regions, logs; the last step, on one machine",
    ]


def measure_graph(build: Callable[[beam.Pipeline], None]) -> tuple[int, int]:
    """How many steps a job has, and the bytes of it as a runner is given it."""
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from bioshards.pipelines.execution import local_runner

    options = PipelineOptions([])
    pipeline = beam.Pipeline(runner=local_runner.make_runner(options), options=options)
    build(pipeline)
    graph_proto = pipeline.to_runner_api()
    num_steps = sum(not transform.subtransforms for transform in graph_proto.components.transforms.values())
    return num_steps, graph_proto.ByteSize()


def worker_pool_from_options(options: Mapping[str, Any]) -> WorkerPool:
    """Return the machines that complete options ask for; an unknown type counts as the default."""
    num_vcpus, memory_gb = settings.DEFAULT_VCPUS, float(settings.DEFAULT_MEMORY_GB)
    if known_type := re.fullmatch(r"\w+-(standard|highmem|highcpu)-(\d+)(-\w+)?", options["machine_type"]):
        num_vcpus = int(known_type[2])
        memory_gb = float(num_vcpus * _GB_PER_VCPU[known_type[1]])
    elif custom_type := re.fullmatch(r"(?:\w+-)?custom-(\d+)-(\d+)(?:-ext)?", options["machine_type"]):
        num_vcpus, memory_gb = int(custom_type[1]), int(custom_type[2]) / 1024
    return WorkerPool(options["max_num_workers"], num_vcpus, memory_gb, options["disk_size_gb"])


def _format_cost(job_cost: Cost) -> str:
    startup = format_duration(WORKER_STARTUP_SECONDS)
    return (
        f"{job_cost.core_hours:.2f} core hours, {job_cost.worker_hours:.2f} worker hours, "
        f"${job_cost.dollars:,.2f}, "
        f"in {format_duration(job_cost.seconds)}, {startup} of which machines take to start"
    )
