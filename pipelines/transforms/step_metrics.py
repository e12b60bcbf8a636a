"""Metrics of the steps, for Beam and for the manifest.

:func:`run_step` measures a step's work on one item, and the metrics travel with its result.  So the manifest
counts each result once: results of a failed bundle are discarded.  :func:`report_metrics` adds the same
figures to Beam's metrics, named ``STEP_COUNTER``.

========================  ================================================================================
STEP_items                files, ranges, buckets, shards or shard groups that passed the step
STEP_skipped              those of them that an earlier run had completed
STEP_bytes_in             read from files, each time; memory-mapped files are not counted
STEP_bytes_out            written to files
STEP_milliseconds         a distribution; the manifest has its sum, and its maximum as max_item_ms
STEP_failed               items that could not be used
STEP_...                  contents of the items, skipped ones included: records, kept, dropped_REASON ...
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
from bioshards.corpus.ui import progress_notes
from bioshards.pipelines.storage.byte_counter import ByteCounter, CountingStorage

NAMESPACE: Final = "bioshards"
"""Of Beam's metrics."""

_MAX_ITEM_MS: Final = "max_item_ms"

StorageT = TypeVar("StorageT", bound=Storage)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """The metrics of one item of a step.

    Attributes:
        counts: contents of the item, by metric name.
    """

    step: str
    skipped: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    milliseconds: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def counters(self) -> dict[str, int]:
        """Return the counters, which are summed over the items."""
        return {
            "items": 1,
            "skipped": int(self.skipped),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            **self.counts,
        }


@dataclass(frozen=True, slots=True)
class StepResult(Generic[T_co]):
    """A result with the metrics of the steps that led to it."""

    result: T_co
    metrics: tuple[StepMetrics, ...]


def run_step(
    step: str,
    storage: StorageT,
    function: Callable[[StorageT], T],
    count_result: Callable[[T], Mapping[str, int]] = lambda _: {},
) -> StepResult[T]:
    """Run a step on one item, with retries on transient storage errors, and measure it.

    Args:
        function: the work; its argument is the storage with counted bytes.
        count_result: returns the contents of a result, by metric name.

    Raises:
        WorkerError: the work failed.
    """
    byte_counter = ByteCounter()
    counting_storage = cast(StorageT, CountingStorage(storage, byte_counter))
    started = time.monotonic()
    with wrap_worker_errors(), progress_notes.note_step(step):
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
    """Add the metrics to Beam's; must be called in Beam's own thread."""
    for metrics in step_result.metrics:
        for name, value in metrics.counters().items():
            beam.metrics.Metrics.counter(NAMESPACE, f"{metrics.step}_{name}").inc(value)
        milliseconds = beam.metrics.Metrics.distribution(NAMESPACE, f"{metrics.step}_milliseconds")
        milliseconds.update(metrics.milliseconds)
    return step_result


def call_once(
    pipeline: beam.Pipeline, label: str, function: Callable[..., T], *collections: beam.PCollection[Any]
) -> beam.PCollection[T]:
    """Call a function once, with the impulse and a list of the elements of each collection."""
    side_inputs = map(beam.pvalue.AsList, collections)
    return pipeline | "Once" >> beam.Impulse() | label >> beam.Map(function, *side_inputs)


def count_failure(problem: str | None) -> dict[str, int]:
    """Return the counts of a publication: 1 failure if there is a problem."""
    return {"failed": int(bool(problem))}


def unwrap_results(step_results: Iterable[StepResult[T | None]]) -> list[T]:
    """Return the results without their metrics and without None."""
    return [step_result.result for step_result in step_results if step_result.result is not None]


def sum_metrics(*step_results: Iterable[StepResult[Any]]) -> dict[str, dict[str, int]]:
    """Sum the metrics of each step, in the order of their first occurrence."""
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
    """Return the metrics of a download; ``bytes_in`` is received from the server."""
    if isinstance(outcome, BadFileError):
        return StepMetrics("fetch", counts={"failed": 1})
    size, milliseconds = (
        outcome.fetched_bytes,
        round(1000 * outcome.download_seconds) if outcome.fetched_bytes else 0,
    )
    return StepMetrics("fetch", not size, size, size, milliseconds)
