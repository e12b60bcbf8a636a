"""What work costs: seconds of one core by rates that were measured, and of these hours of machines and money.

    core seconds = megabytes of input / megabytes that a core reads in a second
    waiting      = calls of a store x seconds of a call
    seconds      = (core seconds + waiting) / what is done at a time, or those of fetching, if they are more
    machines     = what is done at a time / vCPUs of a machine, rounded up
    worker hours = machines x (seconds + starting) / 3600
    money        = worker hours x (vCPUs x price + GB of memory x price + GB of disk x price)
                   + GB shuffled x price

What is done at a time: one item on each vCPU, but no more than there are items, or lanes of what is fetched.
A vCPU is taken to be as fast as a core of the machine that the rates are of.  tests/bench/cost_table.py
measures the rates anew, beside a yardstick.  Core hours alone are what other clouds and clusters sell, at
their own price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.ahead import WIDTH

from .object_store import BLOCK_BYTES


@dataclass(frozen=True, slots=True)
class Rate:
    """What one core does in a second, start-up taken off: items, and megabytes as they lie in storage."""

    items: float
    megabytes: float

    def seconds(self, size: float) -> float:
        """Seconds of one core, for so many bytes of input."""
        return size / 1e6 / self.megabytes


YARDSTICK: Final = 7_700
"""Records of PubMed a second that lxml's bare parse read, gunzip included, while the rates were measured: two
cores of an AMD EPYC with no other work, November 2026 (tests/bench/FIGURES.md has all figures below).  On
another day such a machine read 15,600, and did some of this twice as fast."""
PUBMED: Final = Rate(items=5_490, megabytes=6.97)
"""Records of PubMed, .xml.gz: two files of 30,000."""
ARTICLES: Final = Rate(items=125, megabytes=15.5)
"""Articles, plain XML, 124 kB each."""
PACKED: Final = Rate(items=125, megabytes=3.7)
"""The same in packages and archives, which are a quarter of their size."""
FETCHED_MEGABYTES: Final = 17.6
"""A second of one core, verified as they are fetched (24 files, 153 MB: 8.67 s)."""
OBJECT_SECONDS: Final = 0.0025
"""Of one core, for an object of PMC's bucket."""
WORDS: Final = Rate(items=398, megabytes=16.6)
"""Articles of 41.6 kB whose words are counted, in document shards; of abstracts it is 27 MB."""


@dataclass(frozen=True, slots=True)
class Examples:
    """What one core does of an objective: in one pass, and seconds a megabyte of each further one."""

    first: Rate
    further: float

    def seconds(self, size: float, passes: int) -> float:
        """Seconds of one core, for so many bytes of document shards."""
        return self.first.seconds(size) + (passes - 1) * self.further * size / 1e6


EXAMPLES: Final = {
    "electra": Examples(Rate(items=6_430, megabytes=12.3), further=0.0181),
    "bert": Examples(Rate(items=6_740, megabytes=12.9), further=0.0212),
    "albert": Examples(Rate(items=6_990, megabytes=13.4), further=0.0138),
    "plain": Examples(Rate(items=6_580, megabytes=12.6), further=0.0039),
}
"""By objective; abstracts of 1,920 bytes, in document shards.  Of articles electra's are 11.1 MB."""

FILE_CALLS: Final = 20
"""Of a store, for a source file, each waiting for the one before it (tests/bench/FIGURES.md, "At scale")."""
SHARD_CALLS: Final = 8
"""The same for a shard whose words are counted and merged; a portion to make examples of has 4."""
CALL_SECONDS: Final = 0.04
"""An assumption: 20 to 50 milliseconds are usual in the same region."""
START_UP_SECONDS: Final = 180
"""From asking for a machine to its first item: an assumption.  People report 2 to 4 minutes of Dataflow."""
REPORT_BYTES: Final = 2_000
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
class Machines:
    """Workers of a runner: how many at most, and what each has."""

    most: int
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


def waiting(calls: float, size: float) -> float:
    """Seconds that processes wait for a store, all of them together.

    Args:
        size: bytes that are read, and read again: shards as they are verified first, sources as documents.
    """
    return CALL_SECONDS * (calls + 2 * size / BLOCK_BYTES)


def of_sources(count: int, size: float, single: float = 0) -> float:
    """The same for source files; ``single``: articles that are an object each, some at a time."""
    return waiting(FILE_CALLS * count + single / WIDTH, size)


def cost(
    core_seconds: float,
    at_a_time: int,
    machines: Machines,
    waiting: float = 0,
    fetching: float = 0,
    prices: Prices = Prices(),
) -> Cost:
    """What work costs on these machines.

    Args:
        at_a_time: items that there are to be done at the same time.
        waiting: seconds that storage is waited for, in all processes together.
        fetching: seconds that what is fetched meanwhile takes at least.
    """
    most = max(1, min(at_a_time, machines.most * machines.vcpus))
    used = math.ceil(most / machines.vcpus)
    seconds = max((core_seconds + waiting) / most, fetching) + START_UP_SECONDS
    hours = used * seconds / 3600
    an_hour = (
        machines.vcpus * prices.vcpu_hour
        + machines.memory_gb * prices.memory_gb_hour
        + machines.disk_gb * prices.disk_gb_hour
    )
    shuffled = at_a_time * REPORT_BYTES / 1e9 * prices.shuffle_gb
    return Cost(core_seconds / 3600, hours, seconds, hours * an_hour + shuffled)
