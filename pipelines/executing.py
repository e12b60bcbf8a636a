"""Run a pipeline's graph: on this machine unless a runner is named, with progress, until it ends."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from . import dataflow, remote, shipping
from .dataflow import Task
from .options import UsageError
from .starting import Where

if TYPE_CHECKING:
    import apache_beam as beam

TICK_SECONDS: Final = 0.5
REMOTE_TICK_SECONDS: Final = 20
"""How often progress is looked for; in an object store each look is a listing that costs."""


JOB_SERVICE_SECONDS: Final = 15
"""How long a job service may take to answer: one that was started a moment ago is not ready yet."""


class Watcher(Protocol):
    """Says how far a run is."""

    def tick(self) -> None: ...

    def end(self) -> None: ...


def prepare(place: Where, task: Task) -> None:
    """Make Beam's options those of this run, and see that it can be one, before anything is begun.

    Raises:
        UsageError: workers cannot be given what they need; a job service is not named.
        OutputMismatchError: a job is writing this output elsewhere.
    """
    if place.on_dataflow:
        dataflow.settle(place.beams, task)
        if not shipping.needless(place.beams):
            shipping.pins(task.extras, place.paths, task.tools)
            shipping.reachable(place.beams, place.paths)
        remote.alone(place, task)
    elif place.runner_given:
        _answering(place)


def _answering(place: Where) -> None:
    """See that a portable runner's job service answers, for which Beam would wait for minutes, in silence.

    Raises:
        UsageError: it is not said where it is.
        RunError: it does not answer.
    """
    options = place.beams.get_all_options()
    from apache_beam.runners.portability.job_server import ExternalJobServer

    endpoint = options["job_endpoint"]
    if options["runner"] == "PortableRunner" and not endpoint:
        raise UsageError("--runner=PortableRunner needs --job_endpoint=HOST:PORT of the runner's job service")
    if endpoint and endpoint != "embed":
        try:
            ExternalJobServer(endpoint, JOB_SERVICE_SECONDS).start()
        except Exception as error:
            raise remote.run_error(place, None, error) from error


def execute(
    build: Callable[[beam.Pipeline], None],
    place: Where,
    workers: int,
    task: Task,
    watcher: Callable[[TextIO], Watcher],
) -> str:
    """Run the graph that ``build`` makes to its end.

    Args:
        watcher: makes, of the terminal, what is called to say how far the run is.

    Returns:
        what to say of a job that is only described, for Dataflow to run later; '' if it has run.

    Raises:
        KeyboardInterrupt: Ctrl-C or a termination signal; with what to say if the job goes on elsewhere.
        Exception: what went wrong in a worker or a runner.
    """
    import apache_beam as beam

    from . import local

    beams = place.beams
    if beams is None:
        from apache_beam.options.pipeline_options import PipelineOptions

        beams = PipelineOptions([], **local.options_for(workers))
    runner = None if place.runner_given else local.runner(beams)
    later = remote.not_waited_for(beams) if place.on_dataflow else ""
    results: list[Any] = []

    def look() -> None:
        with contextlib.suppress(OSError):  # a run is not ended because nobody can look at it
            progress.tick()

    def work() -> None:
        with _shipped(place, task):
            root = beam.Pipeline(runner=runner, options=beams)
            build(root)
            result = root.run()
        results.append(result)
        if place.on_dataflow and not later:
            print(remote.handed_over(beams, result), file=terminal, flush=True)
        state = result.wait_until_finish()
        if state in ("FAILED", "CANCELLED"):
            raise RuntimeError(f"the runner says the job {state.lower()}")

    far = "://" in task.output
    log = None if far or workers == 1 else f"{task.output}/.bioshards/error.log"
    with local.errors_to(log) as terminal:
        progress = watcher(terminal)
        try:
            local.run(work, look, REMOTE_TICK_SECONDS if far else TICK_SECONDS)
        except Exception as error:
            if log:
                traceback.print_exc()
            raise remote.run_error(place, results[0] if results else None, error) from error
        except KeyboardInterrupt:
            raise KeyboardInterrupt(remote.left(place, results[0] if results else None, task)) from None
        finally:
            progress.end()
    return later


@contextlib.contextmanager
def _shipped(place: Where, task: Task) -> Iterator[None]:
    """Inside, the options of a job on Dataflow name a wheel of this package for its workers to install."""
    if not place.on_dataflow or shipping.needless(place.beams):
        yield
        return
    from apache_beam.options.pipeline_options import SetupOptions

    logging.getLogger("apache_beam.runners.portability.stager").setLevel(
        logging.ERROR
    )  # it warns of any wheel
    with tempfile.TemporaryDirectory() as folder:
        wheel = shipping.wheel(folder, shipping.pins(task.extras, place.paths, task.tools))
        setup = place.beams.view_as(SetupOptions)
        setup.extra_packages = [*(setup.extra_packages or ()), wheel]
        yield
