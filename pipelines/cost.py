"""What work costs: seconds of one core by rates that were measured, and of these hours of machines and money.

    core seconds = megabytes of input / megabytes that a core reads in a second
    seconds      = core seconds / what is done at a time, or those of fetching, if they are more
    machines     = what is done at a time / vCPUs of a machine, rounded up
    worker hours = machines x (seconds + starting) / 3600
    money        = worker hours x (vCPUs x price + GB of memory x price + GB of disk x price)
                   + GB shuffled x price

What is done at a time: one item on each vCPU, but no more than there are items, or lanes of what is fetched.
A vCPU is taken to be as fast as a core of the machine that the rates are of, and a store to be as quick as a
disk.  tests/bench/cost_table.py measures the rates anew, beside a yardstick.  Core hours alone are what other
clouds and clusters sell, at their own price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rate:
    """What one core does in a second, start-up taken off: items, and megabytes as they lie in storage."""

    items: float
    megabytes: float

    def seconds(self, size: float) -> float:
        """Seconds of one core, for so many bytes of input."""
        return size / 1e6 / self.megabytes


YARDSTICK: Final = 15_600
"""Records of PubMed a second that lxml's bare parse reads, gunzip included, on the machine that the rates are
of: two cores of an AMD EPYC with no other work (tests/bench/FIGURES.md, which has all figures below too)."""
PUBMED: Final = Rate(items=9_970, megabytes=12.7)
"""Records of PubMed, .xml.gz: a file of 30,000, 38.1 MB, in 3.01 s."""
ARTICLES: Final = Rate(items=190, megabytes=25.0)
"""Articles, plain XML, 131 kB each."""
PACKED: Final = Rate(items=190, megabytes=6.0)
"""The same in packages and archives."""
FETCHED_MEGABYTES: Final = 17.6
"""A second of one core, verified as they are fetched (24 files, 153 MB: 8.67 s; tests/bench/FIGURES.md)."""
OBJECT_SECONDS: Final = 0.0025
"""Of one core, for an object of PMC's bucket (the same)."""
WORDS: Final = Rate(items=11_000, megabytes=21.0)
"""Abstracts of 1,950 bytes whose words are counted, and document shards: 570 MB in 25 to 30 s, 3 to start."""


@dataclass(frozen=True, slots=True)
class Examples:
    """What one core does of an objective: in one pass, and seconds a megabyte of each further one."""

    first: Rate
    further: float

    def seconds(self, size: float, passes: int) -> float:
        """Seconds of one core, for so many bytes of document shards."""
        return self.first.seconds(size) + (passes - 1) * self.further * size / 1e6


EXAMPLES: Final = {
    "electra": Examples(Rate(items=6_500, megabytes=12.7), further=0.008),
    "bert": Examples(Rate(items=7_000, megabytes=13.8), further=0.009),
    "albert": Examples(Rate(items=7_000, megabytes=13.8), further=0.009),
    "plain": Examples(Rate(items=7_000, megabytes=13.8), further=0.009),
}
"""By objective; abstracts of 1,950 bytes, and document shards: 455 MB in 35.7 s (electra, one pass), and by
the shares of the steps in 33 s and 4 s for each further pass (bert).  ALBERT's pairs and plain rows took
0.5 to 1.1 of BERT's time where they were measured together."""

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


def cost(
    core_seconds: float, at_a_time: int, machines: Machines, fetching: float = 0, prices: Prices = Prices()
) -> Cost:
    """What work costs on these machines.

    Args:
        at_a_time: items that there are to be done at the same time.
        fetching: seconds that what is fetched meanwhile takes at least.
    """
    most = max(1, min(at_a_time, machines.most * machines.vcpus))
    used = math.ceil(most / machines.vcpus)
    seconds = max(core_seconds / most, fetching) + START_UP_SECONDS
    hours = used * seconds / 3600
    an_hour = (
        machines.vcpus * prices.vcpu_hour
        + machines.memory_gb * prices.memory_gb_hour
        + machines.disk_gb * prices.disk_gb_hour
    )
    shuffled = at_a_time * REPORT_BYTES / 1e9 * prices.shuffle_gb
    return Cost(core_seconds / 3600, hours, seconds, hours * an_hour + shuffled)
