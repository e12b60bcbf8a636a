"""The steps of a graph: a plain function, called for each item, for slots of items, or once; their metrics.

A function of a step takes the job first.  Items and earlier results are collections of the graph; a function
gets a whole collection as a sequence of its results.  To the type checker a collection *is* that sequence, so
that what passes between steps is checked against the parameters of the functions.

:func:`run_step` measures a function's work on one item, and the metrics travel with its result.  So the
manifest counts each result once: results of a failed bundle are discarded.  The same figures are added to
Beam's metrics, named ``STEP_COUNTER``.

========================  ================================================================================
STEP_items                files, ranges, bands, shards or shard groups that passed the step
STEP_skipped              those of them that an earlier run had completed
STEP_milliseconds         a distribution; the manifest has its sum, and its maximum as max_item_ms
STEP_failed               items that could not be used
STEP_...                  contents of the items, skipped ones included: records, kept, dropped_REASON ...
========================  ================================================================================
"""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Concatenate, Final, Generic, ParamSpec, Protocol, TypeVar

import apache_beam as beam
import msgspec
from apache_beam.pvalue import AsList
from apache_beam.typehints.decorators import no_annotations

from bioshards import __version__
from bioshards.corpus import progress_notes
from bioshards.corpus.errors import RunError, WorkerError
from bioshards.corpus.manifest import utc_now
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.output.work_files import write_report
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import Storage

NAMESPACE: Final = "bioshards"
"""Of Beam's metrics."""
_MAX_ITEM_MS: Final = "max_item_ms"


class Job(Protocol):
    """What every job has: a frozen value that can be pickled, and that does not grow with the input."""

    @property
    def storage(self) -> Storage:
        """Return the storage of inputs and output."""
        ...

    @property
    def output(self) -> OutputDir:
        """Return the output directory."""
        ...

    @property
    def config(self) -> Any:
        """Return the options that fix the bytes of the output; reruns must have the same."""
        ...

    @property
    def run(self) -> Any:
        """Return the facts about the run, for its manifest."""
        ...


P = ParamSpec("P")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
ItemT = TypeVar("ItemT")
JobT = TypeVar("JobT", bound=Job)


@dataclass(frozen=True, slots=True)
class Done(Generic[T_co]):
    """A result with the metrics of its item; what travels between steps.

    Attributes:
        counts: ``items``, ``skipped``, and the contents of the item, by metric name.
    """

    step: str
    result: T_co
    milliseconds: int
    counts: Mapping[str, int]


# Building the graph


def create(root: beam.Pipeline, name: str, items: Iterable[T]) -> Sequence[T]:
    """Return a collection of items, in this order."""
    collection: Sequence[T] = root | name >> beam.Create(list(items), reshuffle=False)
    return collection


def merge(name: str, collections: Sequence[Sequence[T]]) -> Sequence[T]:
    """Return one collection of the results of several."""
    if len(collections) == 1:
        return collections[0]
    collection: Sequence[T] = collections | name >> beam.Flatten()
    return collection


def each(
    name: str,
    function: Callable[Concatenate[JobT, ItemT, P], T],
    job: JobT,
    items: Sequence[ItemT],
    *others: P.args,
    **_: P.kwargs,
) -> Sequence[T]:
    """Call ``function(job, item, *others)`` for each item, on any worker.

    Args:
        name: name of the step, in the graph, in metrics and in the notes of workers.
        others: collections, or values that are passed as they are.
    """
    spread = items | f"Spread {name}" >> beam.Reshuffle()
    results: Sequence[T] = spread | name >> beam.Map(_call, name, function, job, *_side_inputs(others))
    return results


def slots(
    name: str,
    function: Callable[Concatenate[JobT, list[ItemT], P], Iterator[Done[T | None]]],
    job: JobT,
    items: Sequence[list[ItemT]],
    *others: P.args,
    **_: P.kwargs,
) -> Sequence[T]:
    """Call ``function(job, items, *others)`` for each slot; it yields the results of one item after another.

    A slot has a share of the connections to a server.  Runners do not split it, so that the number of slots
    bounds the load on the server.
    """
    spread = items | f"Spread {name}" >> beam.Reshuffle()
    results: Sequence[T] = spread | name >> beam.FlatMap(_call_slot, function, job, *_side_inputs(others))
    return results


def once(
    name: str,
    function: Callable[Concatenate[JobT, P], T],
    job: JobT,
    *others: P.args,
    **_: P.kwargs,
) -> Sequence[T]:
    """Call ``function(job, *others)`` once; the result is a collection of one."""
    call = beam.Map(_call_once, name, function, job, *_side_inputs(others))
    results: Sequence[T] = _impulse(name, others) | name >> call
    return results


def listed(
    name: str,
    function: Callable[Concatenate[JobT, P], Iterable[ItemT]],
    job: JobT,
    *others: P.args,
    **_: P.kwargs,
) -> Sequence[ItemT]:
    """Return the items that ``function(job, *others)`` lists once the other collections are complete."""
    call = beam.FlatMap(_call_list, function, job, *_side_inputs(others))
    items: Sequence[ItemT] = _impulse(name, others) | name >> call
    return items


def finish(
    name: str,
    measured: Sequence[Sequence[Any]],
    function: Callable[Concatenate[JobT, P], Any],
    job: JobT,
    *others: P.args,
    **_: P.kwargs,
) -> None:
    """Call the last step once, with the finishing time and the metrics in ``job.run``.

    Its result, a dataclass, is written to the work folder, for the process that started the run.

    Args:
        measured: the collections of all steps, in the order of the manifest.
    """
    lists = [AsList(collection) for collection in measured]
    call = beam.Map(_call_last, name, function, job, len(lists), *lists, *_side_inputs(others))
    _impulse(name, measured) | name >> call


def _impulse(name: str, collections: Iterable[Any]) -> Any:
    root = next(value.pipeline for value in collections if isinstance(value, beam.PCollection))
    return root | f"Once {name}" >> beam.Impulse()


def _side_inputs(values: Iterable[Any]) -> list[Any]:
    return [AsList(value) if isinstance(value, beam.PCollection) else value for value in values]


# On workers


def _call(item: Any, name: str, function: Callable[..., Any], job: Any, *others: Any) -> Any:
    _check_version(job)
    return _report(run_step(name, function, job, item, *map(_plain, others)))


def _call_slot(items: Any, function: Callable[..., Any], job: Any, *others: Any) -> Any:
    _check_version(job)
    with worker_errors():
        for done in function(job, items, *map(_plain, others)):
            yield _report(done)


def _call_once(_impulse: Any, name: str, function: Callable[..., Any], job: Any, *others: Any) -> Any:
    _check_version(job)
    return _report(run_step(name, function, job, *map(_plain, others)))


def _call_list(_impulse: Any, function: Callable[..., Any], job: Any, *others: Any) -> Any:
    with worker_errors():
        return list(retry(lambda: function(job, *map(_plain, others))))


def _call_last(
    _impulse: Any, name: str, function: Callable[..., Any], job: Any, num_measured: int, *lists: Any
) -> Any:
    steps = sum_metrics(*lists[:num_measured])
    run = msgspec.structs.replace(job.run, finished_at=utc_now(), steps=steps)
    job = dataclasses.replace(job, run=run)
    return _report(run_step(name, _finish, function, job, *map(_plain, lists[num_measured:])))


for _function in (_call, _call_slot, _call_once, _call_list, _call_last):
    no_annotations(_function)  # Beam would take them for types of elements, and check these


def _finish(function: Callable[..., Any], job: Any, *others: Any) -> Any:
    result = function(job, *others)
    write_report(job.storage, job.output.result_path, msgspec.to_builtins(result))
    return result


def _plain(value: Any) -> Any:
    """Return the results of a collection without their metrics and without None; other values as they are."""
    if not isinstance(value, list):
        return value
    results = [item.result if isinstance(item, Done) else item for item in value]
    return [result for result in results if result is not None]


def run_step(step: str, function: Callable[..., T], *arguments: Any) -> Done[T]:
    """Call a function on one item, with retries on transient storage errors, and measure it.

    The contents of the item are the ``counters()`` of the result, if it has them.

    Raises:
        WorkerError: the work failed.
    """
    started = time.monotonic()
    with worker_errors(), progress_notes.note_step(step):
        result = retry(lambda: function(*arguments))
    milliseconds = round(1000 * (time.monotonic() - started))
    counts = result.counters() if hasattr(result, "counters") else {}
    return Done(step, result, milliseconds, {"items": 1, "skipped": 0, **counts})


def _check_version(job: Job) -> None:
    """Check that this worker has the version of the command that started the job.

    Raises:
        WorkerError: it has another one, which may write other bytes.
    """
    version: str = job.run.bioshards
    with worker_errors():
        if version != __version__:
            raise RunError(
                f"a worker has bioshards {__version__}, and the command that started the job has {version}: "
                "install the same version where the workers run"
            )


@contextmanager
def worker_errors() -> Iterator[None]:
    """Raise any exception of the block as a :class:`WorkerError`, which the driver can read."""
    try:
        yield
    except Exception as error:
        raise WorkerError.wrap(error) from error


def _report(done: Done[T]) -> Done[T]:
    """Add the metrics to Beam's; must be called in Beam's own thread."""
    for name, value in done.counts.items():
        beam.metrics.Metrics.counter(NAMESPACE, f"{done.step}_{name}").inc(value)
    distribution = beam.metrics.Metrics.distribution(NAMESPACE, f"{done.step}_milliseconds")
    distribution.update(done.milliseconds)
    return done


def sum_metrics(*collections: Iterable[Done[Any]]) -> dict[str, dict[str, int]]:
    """Sum the metrics of each step, in the order of their first occurrence."""
    totals: dict[str, Counter[str]] = {}
    for done in (done for collection in collections for done in collection):
        total = totals.setdefault(done.step, Counter())
        total.update(done.counts)
        total["milliseconds"] += done.milliseconds
        total[_MAX_ITEM_MS] = max(total[_MAX_ITEM_MS], done.milliseconds)
    first_names = ("items", "skipped", "milliseconds", _MAX_ITEM_MS)
    return {
        step: {name: total[name] for name in (*first_names, *sorted(total.keys() - set(first_names)))}
        for step, total in totals.items()
    }
