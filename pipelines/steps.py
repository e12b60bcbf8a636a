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

import copy
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, Generic, TypeVar, cast

import apache_beam as beam

from bioshards.corpus.errors import WorkerError
from bioshards.corpus.files import LocalFiles

from .again import again

NAMESPACE: Final = "bioshards"
"""Of Beam's metrics."""

_MAX_ITEM_MS: Final = "max_item_ms"

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one item of a step took.

    Attributes:
        counts: what was counted in it, by names that a metric may have.
    """

    step: str
    stood: bool = False
    bytes_in: int = 0
    bytes_out: int = 0
    milliseconds: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)

    def counters(self) -> dict[str, int]:
        """All that is added up over the items."""
        return {
            "items": 1,
            "skipped": int(self.stood),
            "bytes_in": self.bytes_in,
            "bytes_out": self.bytes_out,
            **self.counts,
        }


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """A result with the figures of the steps that led to it."""

    result: T_co
    figures: tuple[Figures, ...]


def measure(
    step: str,
    files: LocalFiles,
    work: Callable[[LocalFiles], T],
    counts: Callable[[T], Mapping[str, int]],
) -> Done[T]:
    """Do a step's work on one item, once more if an object store fails, and see what it takes.

    Args:
        work: given the storage, ``files``, whose bytes are counted.
        counts: what is in the result, by name.

    Raises:
        WorkerError: the work failed.
    """
    meter = _Meter()
    counted = meter.of(files)
    started = time.monotonic()
    with wrap_worker_errors():
        result = again(lambda: work(counted))
    milliseconds = round(1000 * (time.monotonic() - started))
    found = counts(result)
    stood = not meter.written and not found.get("failed")
    return Done(result, (Figures(step, stood, meter.read, meter.written, milliseconds, found),))


@contextmanager
def wrap_worker_errors() -> Iterator[None]:
    """Raise any exception of the block as a :class:`WorkerError`, which the driver can read."""
    try:
        yield
    except Exception as error:
        raise WorkerError.wrap(error) from error


def tell(done: Done[T]) -> Done[T]:
    """Add what was done to Beam's metrics; only in the thread in which Beam calls."""
    for figures in done.figures:
        for name, value in figures.counters().items():
            beam.metrics.Metrics.counter(NAMESPACE, f"{figures.step}_{name}").inc(value)
        milliseconds = beam.metrics.Metrics.distribution(NAMESPACE, f"{figures.step}_milliseconds")
        milliseconds.update(figures.milliseconds)
    return done


def results(done: Iterable[Done[T | None]]) -> list[T]:
    """The results alone, less those where work came to none."""
    return [one.result for one in done if one.result is not None]


def summed(*done: Iterable[Done[Any]]) -> dict[str, dict[str, int]]:
    """What each step took in all, for a manifest's ``run``: the steps in the order in which they are met."""
    totals: dict[str, Counter[str]] = {}
    for figures in (figures for part in done for one in part for figures in one.figures):
        total = totals.setdefault(figures.step, Counter())
        total.update(figures.counters())
        total["milliseconds"] += figures.milliseconds
        total[_MAX_ITEM_MS] = max(total[_MAX_ITEM_MS], figures.milliseconds)
    first = ("items", "skipped", "bytes_in", "bytes_out", "milliseconds", _MAX_ITEM_MS)
    return {
        step: {name: total[name] for name in (*first, *sorted(total.keys() - set(first)))}
        for step, total in totals.items()
    }


class _Meter:
    """Counts the bytes that go through files, in whatever thread."""

    def __init__(self) -> None:
        self.read = self.written = 0
        self._lock = threading.Lock()

    def of(self, files: LocalFiles) -> LocalFiles:
        """The same storage, counted."""

        @contextmanager
        def write(path: str) -> Iterator[BinaryIO]:
            with files.write(path) as file:
                yield cast(BinaryIO, _Counted(file, self))

        def opened(path: str) -> BinaryIO:
            return cast(BinaryIO, _Counted(files.open(path), self))

        counted = copy.copy(files)
        vars(counted).update(open=opened, write=write)
        return counted

    def add(self, read: int = 0, written: int = 0) -> None:
        with self._lock:
            self.read += read
            self.written += written


class _Counted:
    """A file that tells a meter what is read and written; in all else it is the file itself."""

    def __init__(self, file: BinaryIO, meter: _Meter) -> None:
        self._file, self._meter = file, meter

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self._meter.add(read=len(data))
        return data

    def readinto(self, buffer: memoryview) -> int:
        size: int = cast(Any, self._file).readinto(buffer)
        self._meter.add(read=size)
        return size

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        try:
            for line in self._file:
                size += len(line)
                yield line
        finally:
            self._meter.add(read=size)

    def write(self, data: bytes) -> int:
        self._meter.add(written=memoryview(data).nbytes)
        return self._file.write(data)

    def __enter__(self) -> _Counted:
        self._file.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._file.__exit__(*raised)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
