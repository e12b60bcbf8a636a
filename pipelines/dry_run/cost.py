"""What work costs: seconds of one core by rates that were measured, and of these hours of machines and money.

    core seconds = megabytes of input / megabytes that a core reads in a second
    waiting      = calls of a store x seconds of a call
    seconds      = (core seconds + waiting) / what is done at a time, or those of fetching, if they are more
    machines     = what is done at a time / vCPUs of a machine, rounded up
    worker hours = machines x (seconds + starting) / 3600
    money        = worker hours x (vCPUs x price + GB of memory x price + GB of disk x price)
                   + GB shuffled x price

What is done at a time: one item on each vCPU, but no more than there are items, or lanes of what is fetched.
A vCPU is taken to be as fast as a core of the machine that the rates are of.
tests/bench/tables/cost_table.py measures the rates anew, beside a yardstick.  Core hours alone are what
other clouds and clusters sell, at their own price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS
from bioshards.pipelines.storage.object_store import MAX_READ_BYTES


@dataclass(frozen=True, slots=True)
class Rate:
    """What one core does in a second, start-up taken off: items, and megabytes as they lie in storage."""

    items_per_second: float
    megabytes_per_second: float

    def estimate_core_seconds(self, size: float) -> float:
        """Seconds of one core, for so many bytes of input."""
        return size / 1e6 / self.megabytes_per_second


REFERENCE_RECORDS_PER_SECOND: Final = 7_700
"""Records of PubMed a second that lxml's bare parse read, gunzip included, while the rates were measured: two
cores of an AMD EPYC with no other work, November 2026 (tests/bench/FIGURES.md has all figures below).  On
another day such a machine read 15,600, and did some of this twice as fast."""
PUBMED_RATE: Final = Rate(items_per_second=5_490, megabytes_per_second=6.97)
"""Records of PubMed, .xml.gz: two files of 30,000."""
ARTICLE_RATE: Final = Rate(items_per_second=125, megabytes_per_second=15.5)
"""Articles, plain XML, 124 kB each."""
PACKED_ARTICLE_RATE: Final = Rate(items_per_second=125, megabytes_per_second=3.7)
"""The same in packages and archives, which are a quarter of their size."""
DOWNLOAD_MEGABYTES_PER_CORE_SECOND: Final = 17.6
"""A second of one core, verified as they are fetched (24 files, 153 MB: 8.67 s)."""
OBJECT_DOWNLOAD_CORE_SECONDS: Final = 0.0025
"""Of one core, for an object of PMC's bucket."""
WORD_COUNT_RATE: Final = Rate(items_per_second=398, megabytes_per_second=16.6)
"""Articles of 41.6 kB whose words are counted, in document shards; of abstracts it is 27 MB."""

STORE_CALLS_PER_FILE: Final = 20
"""Of a store, for a source file, each waiting for the one before it (tests/bench/FIGURES.md, "At scale")."""
STORE_CALLS_PER_SHARD: Final = 8
"""The same for a shard whose words are counted and merged; a portion to make examples of has 4."""
STORE_CALL_SECONDS: Final = 0.04
"""An assumption: 20 to 50 milliseconds are usual in the same region."""
WORKER_STARTUP_SECONDS: Final = 180
"""From asking for a machine to its first item: an assumption.  People report 2 to 4 minutes of Dataflow."""
SHUFFLE_BYTES_PER_ITEM: Final = 2_000
"""What an item's names and reports take in shuffles, which text never crosses: an assumption."""


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars; an assumption, to be looked at before it is trusted.

    Attributes:
        shuffle_gb: a gigabyte of data that Dataflow Shuffle processes.
    """

    vcpu_hour: float = 0.056
    memory_gb_hour: float = 0.003557
    disk_gb_hour: float = 0.000054
    shuffle_gb: float = 0.011
    source: str = (
        "Dataflow batch in us-central1 as a public cost script has it, November 2026: to be checked at "
        "cloud.google.com/dataflow/pricing"
    )


@dataclass(frozen=True, slots=True)
class WorkerPool:
    """Workers of a runner: how many at most, and what each has."""

    max_workers: int
    vcpus: int
    memory_gb: float
    disk_gb: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a job takes: hours of cores as they work, hours of machines, seconds on the clock, US dollars."""

    core_hours: float
    worker_hours: float
    seconds: float
    dollars: float


def estimate_store_wait(num_calls: float, size: float) -> float:
    """Seconds that processes wait for a store, all of them together.

    Args:
        size: bytes that are read, and read again: shards as they are verified first, sources as documents.
    """
    return STORE_CALL_SECONDS * (num_calls + 2 * size / MAX_READ_BYTES)


def estimate_source_wait(num_sources: int, size: float, num_single_articles: float = 0) -> float:
    """Estimate the seconds that processes wait for a store, for source files.

    Args:
        num_single_articles: articles that are one object each; several are read concurrently.
    """
    return estimate_store_wait(
        STORE_CALLS_PER_FILE * num_sources + num_single_articles / MAX_CONCURRENT_CALLS, size
    )


def estimate_cost(
    core_seconds: float,
    parallelism: int,
    worker_pool: WorkerPool,
    store_wait_seconds: float = 0,
    fetch_seconds: float = 0,
    prices: Prices = Prices(),
) -> Cost:
    """Estimate the cost of work on these machines.

    Args:
        parallelism: items that there are to be done at the same time.
        waiting: seconds that storage is waited for, in all processes together.
        fetching: seconds that what is fetched meanwhile takes at least.
    """
    num_processes = max(1, min(parallelism, worker_pool.max_workers * worker_pool.vcpus))
    num_workers = math.ceil(num_processes / worker_pool.vcpus)
    seconds = max((core_seconds + store_wait_seconds) / num_processes, fetch_seconds) + WORKER_STARTUP_SECONDS
    worker_hours = num_workers * seconds / 3600
    worker_hour_price = (
        worker_pool.vcpus * prices.vcpu_hour
        + worker_pool.memory_gb * prices.memory_gb_hour
        + worker_pool.disk_gb * prices.disk_gb_hour
    )
    shuffle_price = parallelism * SHUFFLE_BYTES_PER_ITEM / 1e9 * prices.shuffle_gb
    return Cost(core_seconds / 3600, worker_hours, seconds, worker_hours * worker_hour_price + shuffle_price)
