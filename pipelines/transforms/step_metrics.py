"""What every step of every pipeline counts: one measure, for Beam's metrics and for the manifest.

A step's work goes through :func:`measure`, and its result travels on with what it took.  So the manifest
counts each result once, whatever a runner has tried twice: results of a try that failed go nowhere.
Beam's metrics are the same figures, told to the runner as they come (:func:`tell`), by names
``STEP_FIGURE``; what a runner makes of those of failed tries is its own affair.

========================  ================================================================================
STEP_items                files, ranges, buckets, shards or portions that came through
STEP_skipped              those of them that were done before, so that nothing was written for them
STEP_bytes_in             read from files, each time it is; what is mapped into memory is not counted
STEP_bytes_out            written to files
STEP_milliseconds         a distribution; the manifest has its sum, and the most as max_item_ms
STEP_failed               items that could not be used
STEP_...                  what is counted in items, skipped ones too: records, kept, dropped_REASON ...
========================  ================================================================================
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast

import apache_beam as beam

from bioshards.corpus.download.mirror import MirroredFile
from bioshards.corpus.errors import BadFileError, WorkerError
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.storage.byte_counter import ByteCounter, CountingStorage

NAMESPACE: Final = "bioshards"
"""Of Beam's metrics."""

_MAX_ITEM_MS: Final = "max_item_ms"

StorageT = TypeVar("StorageT", bound=Storage)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """What one item of a step took.

    Attributes:
        counts: what was counted in it, by names that a metric may have.
    """

    step: str
    skipped: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    milliseconds: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def counters(self) -> dict[str, int]:
        """All that is added up over the items."""
        return {
            "items": 1,
            "skipped": int(self.skipped),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            **self.counts,
        }


@dataclass(frozen=True, slots=True)
class StepResult(Generic[T_co]):
    """A result with the figures of the steps that led to it."""

    result: T_co
    metrics: tuple[StepMetrics, ...]


def run_step(
    step: str,
    storage: StorageT,
    function: Callable[[StorageT], T],
    count_result: Callable[[T], Mapping[str, int]],
) -> StepResult[T]:
    """Do a step's work on one item, once more if an object store fails, and see what it takes.

    Args:
        function: given the storage, ``storage``, whose bytes are counted.
        count_result: what is in the result, by name.

    Raises:
        WorkerError: the work failed.
    """
    byte_counter = ByteCounter()
    counting_storage = cast(StorageT, CountingStorage(storage, byte_counter))
    started = time.monotonic()
    with wrap_worker_errors():
        result = retry(lambda: function(counting_storage))
    milliseconds = round(1000 * (time.monotonic() - started))
    item_counts = count_result(result)
    skipped = not byte_counter.written and not item_counts.get("failed")
    return StepResult(
        result,
        (StepMetrics(step, skipped, byte_counter.read, byte_counter.written, milliseconds, item_counts),),
    )


@contextmanager
def wrap_worker_errors() -> Iterator[None]:
    """Raise any exception of the block as a :class:`WorkerError`, which the driver can read."""
    try:
        yield
    except Exception as error:
        raise WorkerError.wrap(error) from error


def report_metrics(step_result: StepResult[T]) -> StepResult[T]:
    """Add what was done to Beam's metrics; only in the thread in which Beam calls."""
    for metrics in step_result.metrics:
        for name, value in metrics.counters().items():
            beam.metrics.Metrics.counter(NAMESPACE, f"{metrics.step}_{name}").inc(value)
        milliseconds = beam.metrics.Metrics.distribution(NAMESPACE, f"{metrics.step}_milliseconds")
        milliseconds.update(metrics.milliseconds)
    return step_result


def unwrap_results(step_results: Iterable[StepResult[T | None]]) -> list[T]:
    """The results alone, less those where work came to none."""
    return [step_result.result for step_result in step_results if step_result.result is not None]


def sum_metrics(*step_results: Iterable[StepResult[Any]]) -> dict[str, dict[str, int]]:
    """What each step took in all, for a manifest's ``run``: the steps in the order in which they are met."""
    totals: dict[str, Counter[str]] = {}
    for metrics in (
        metrics
        for collection in step_results
        for step_result in collection
        for metrics in step_result.metrics
    ):
        total = totals.setdefault(metrics.step, Counter())
        total.update(metrics.counters())
        total["milliseconds"] += metrics.milliseconds
        total[_MAX_ITEM_MS] = max(total[_MAX_ITEM_MS], metrics.milliseconds)
    standard_names = ("items", "skipped", "bytes_in", "bytes_out", "milliseconds", _MAX_ITEM_MS)
    return {
        step: {name: total[name] for name in (*standard_names, *sorted(total.keys() - set(standard_names)))}
        for step, total in totals.items()
    }


def metrics_from_download(outcome: MirroredFile | BadFileError) -> StepMetrics:
    """What fetching a file took, or trying to; ``bytes_in`` are the server's."""
    if isinstance(outcome, BadFileError):
        return StepMetrics("fetch", counts={"failed": 1})
    size, milliseconds = (
        outcome.fetched_bytes,
        round(1000 * outcome.download_seconds) if outcome.fetched_bytes else 0,
    )
    return StepMetrics("fetch", not size, size, size, milliseconds)
