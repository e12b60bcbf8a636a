"""Hours and money of a plan: core seconds by measured rates, and of these hours of machines.

    core seconds = megabytes of input / megabytes that a core reads in a second
    seconds      = (core seconds + waiting for the store) / processes, or those of fetching, if they are more
    worker hours = machines x (seconds + start-up) / 3600
    dollars      = worker hours x vCPUs of a machine x price

A process is one item on one vCPU.  tests/bench/tables/cost_table.py measures the rates anew; core hours alone
are what other clouds and clusters sell.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import settings

if TYPE_CHECKING:
    import apache_beam as beam

REFERENCE_RECORDS_PER_SECOND: Final = 7_700
"""Records of PubMed a second that lxml's bare parse read, gunzip included, while the rates were measured: two
cores of an AMD EPYC with no other work, November 2026 (tests/bench/FIGURES.md, "Cost")."""
PUBMED_MB_PER_CORE_SECOND: Final = 6.97
"""Megabytes of .xml.gz; a vCPU is taken for a core."""
ARTICLE_MB_PER_CORE_SECOND: Final = 15.5
"""Megabytes of plain XML."""
PACKED_ARTICLE_MB_PER_CORE_SECOND: Final = 3.7
"""Megabytes of packages and archives, which are a quarter of the size."""
TEXT_MB_PER_CORE_SECOND: Final = 15.0
"""Megabytes of JSON Lines: 2.2 times the rate of PubMed's files in the same minutes."""
PACKED_TEXT_MB_PER_CORE_SECOND: Final = 5.0
"""Megabytes of compressed text files and of Parquet, which are a third of the size."""
WORD_COUNT_MB_PER_CORE_SECOND: Final = 16.6
"""Megabytes of document shards of articles; of abstracts it is 27."""
DOWNLOAD_MB_PER_CORE_SECOND: Final = 17.6
"""Megabytes fetched and verified (24 files, 153 MB: 8.67 s)."""
OBJECT_DOWNLOAD_CORE_SECONDS: Final = 0.0025
"""Seconds of one core for an object of PMC's bucket."""
STORE_CALLS_PER_FILE: Final = 20
"""Consecutive calls for a source file (tests/bench/FIGURES.md, "At scale")."""
STORE_CALLS_PER_SHARD: Final = 8
"""Consecutive calls for a shard that is counted and merged; a shard group has 4."""
MAX_READ_BYTES: Final = 8 << 20
STORE_CALL_SECONDS: Final = 0.04
"""An assumption: 20 to 50 milliseconds are usual in the same region."""
WORKER_STARTUP_SECONDS: Final = 180
"""An assumption: people report 2 to 4 minutes of Dataflow."""
VCPU_HOUR_DOLLARS: Final = 0.0706
"""An assumption: a vCPU with 4 GB of memory and 6 GB of disk on Dataflow, us-central1, November 2026."""
MAX_GRAPH_MB: Final = 10
"""The largest job graph that Dataflow takes (docs.cloud.google.com/dataflow/docs/request-quotas, read in
November 2026)."""


@dataclass(frozen=True, slots=True)
class DryRunPlan:
    """What a run would do.

    Attributes:
        lines: the inputs and the work to do, for a person.
        core_seconds: seconds of processing on one core; ``size``: bytes that it reads.
        parallelism: number of items that can be processed at the same time.
        store_wait_seconds: seconds of waiting for a store, in all processes together.
        fetch_seconds: seconds of the download that goes on meanwhile; ``fetch_note``: a line about it.
        rate_source: where the rate is from.
    """

    lines: list[str]
    core_seconds: float
    size: float
    parallelism: int
    store_wait_seconds: float = 0
    fetch_seconds: float = 0
    fetch_note: str = ""
    rate_source: str = "as measured on one machine"


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of a job on Dataflow."""

    worker_hours: float
    seconds: float
    dollars: float


def estimate_store_wait(num_calls: float, size: float) -> float:
    """Return the seconds of these calls and of reading ``size`` bytes twice, in all processes together."""
    return STORE_CALL_SECONDS * (num_calls + 2 * size / MAX_READ_BYTES)


def estimate_source_wait(num_sources: int, size: float, num_single_articles: float = 0) -> float:
    """Return the seconds of waiting for source files; single articles are read concurrently."""
    num_calls = STORE_CALLS_PER_FILE * num_sources + num_single_articles / MAX_CONCURRENT_CALLS
    return estimate_store_wait(num_calls, size)


def estimate_cost(plan: DryRunPlan, max_workers: int, vcpus: int) -> Cost:
    """Return the cost of a plan on at most ``max_workers`` machines of ``vcpus`` each."""
    num_processes = max(1, min(plan.parallelism, max_workers * vcpus))
    work_seconds = (plan.core_seconds + plan.store_wait_seconds) / num_processes
    seconds = max(work_seconds, plan.fetch_seconds) + WORKER_STARTUP_SECONDS
    worker_hours = math.ceil(num_processes / vcpus) * seconds / 3600
    return Cost(worker_hours, seconds, worker_hours * vcpus * VCPU_HOUR_DOLLARS)


def count_vcpus(machine_type: str) -> int:
    """Return the vCPUs of ``e2-standard-4`` or ``custom-6-20480``; an unknown type counts as the default."""
    match = re.search(r"-(\d+)", machine_type)
    return int(match[1]) if match else settings.DEFAULT_VCPUS


def format_plan(
    plan: DryRunPlan,
    notices: Sequence[str],
    context: RunContext,
    job_spec: JobSpec,
    workers: int,
    build: Callable[[beam.Pipeline], None],
) -> str:
    """Format the dry-run report."""
    first, *further_lines = plan.lines
    lines = [first, *(f"notice: {notice}" for notice in (*notices, *context.notices)), *further_lines]
    fetch_lines = [f"             at the same time {plan.fetch_note}"] if plan.fetch_note else []
    if context.has_runner:
        return "\n".join([*lines, *_format_remote_estimate(plan, context, job_spec, build), *fetch_lines])
    if plan.size:
        duration = f"{format_duration(plan.core_seconds / workers)} of processing: {workers} workers"
        megabytes = plan.size / plan.core_seconds / 1e6
        lines += [f"estimate:    {duration}, {megabytes:.1f} MB/s each ({plan.rate_source})", *fetch_lines]
    return "\n".join(lines)


def _format_remote_estimate(
    plan: DryRunPlan, context: RunContext, job_spec: JobSpec, build: Callable[[beam.Pipeline], None]
) -> list[str]:
    num_steps, graph_bytes = measure_graph(build)
    lines = [f"job graph:   {num_steps:,} steps, {graph_bytes / 1e6:.2f} MB"]
    core_hours = f"{plan.core_seconds / 3600:.2f} core hours"
    if not context.is_on_dataflow:
        return [*lines, f"estimate:    {core_hours} of processing ({plan.rate_source})"]
    lines[0] += f" of the {MAX_GRAPH_MB} that Dataflow takes"
    if graph_bytes > MAX_GRAPH_MB * 1e6:
        lines.append("notice: the job is too large for Dataflow: give fewer files at a time")
    settings.set_defaults(context.beam_options, job_spec)
    options = context.get_all_beam_options()
    vcpus = count_vcpus(options["machine_type"])
    cost = estimate_cost(plan, options["max_num_workers"], vcpus)
    return [
        *lines,
        f"machines:    {options['max_num_workers']} {options['machine_type']} at most, each of {vcpus} vCPUs",
        f"estimate:    {core_hours}, {cost.worker_hours:.2f} worker hours, ${cost.dollars:,.2f}, in "
        f"{format_duration(cost.seconds)}, {format_duration(WORKER_STARTUP_SECONDS)} of which machines take "
        f"to start ({plan.rate_source}; a vCPU taken for one of its cores)",
        f"             with {format_duration(plan.store_wait_seconds)} of waiting for the store, in all "
        f"processes together ({STORE_CALL_SECONDS * 1000:.0f} ms a call: an assumption)",
        f"prices:      ${VCPU_HOUR_DOLLARS:g} a vCPU hour with its memory and disk: an assumption, to be "
        "checked at cloud.google.com/dataflow/pricing",
        "not in it:   storage, requests to it, traffic between regions, logs; the last step, on one machine",
    ]


def measure_graph(build: Callable[[beam.Pipeline], None]) -> tuple[int, int]:
    """Return the number of steps of a job, and its bytes as a runner is given it."""
    from apache_beam.options.pipeline_options import PipelineOptions

    from bioshards.pipelines.execution import executor, local_runner

    options = PipelineOptions([])
    pipeline = executor.make_pipeline(local_runner.make_runner(options), options)
    build(pipeline)
    graph_proto = pipeline.to_runner_api()
    num_steps = sum(not transform.subtransforms for transform in graph_proto.components.transforms.values())
    return num_steps, graph_proto.ByteSize()


def format_duration(seconds: float) -> str:
    """Format seconds for a person: ``1 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
