"""Run a pipeline's graph: on this machine unless a runner is named, with progress, until it ends."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

if TYPE_CHECKING:
    import apache_beam as beam

TICK_SECONDS: Final = 0.5
REMOTE_TICK_SECONDS: Final = 20
"""How often progress is looked for; in an object store each look is a listing that costs."""


class Watcher(Protocol):
    """Says how far a run is."""

    def tick(self) -> None: ...

    def end(self) -> None: ...


def execute(
    build: Callable[[beam.Pipeline], None],
    beams: Any,
    workers: int,
    runner_given: bool,
    folder: str,
    watcher: Callable[[TextIO], Watcher],
) -> None:
    """Run the graph that ``build`` makes to its end.

    Args:
        beams: Beam's PipelineOptions; None to make those of a local run.
        folder: where a local run may leave ``error.log``; a remote one leaves none.
        watcher: makes, of the terminal, what is called to say how far the run is.

    Raises:
        KeyboardInterrupt: Ctrl-C or a termination signal.
        Exception: what went wrong in a worker or a runner.
    """
    import apache_beam as beam

    from . import local

    if beams is None:
        from apache_beam.options.pipeline_options import PipelineOptions

        beams = PipelineOptions([], **local.options_for(workers))
    runner = None if runner_given else local.runner(beams)

    def work() -> None:
        root = beam.Pipeline(runner=runner, options=beams)
        build(root)
        state = root.run().wait_until_finish()
        if state in ("FAILED", "CANCELLED"):
            raise RuntimeError(f"the runner says the job {state.lower()}")

    remote = "://" in folder
    log = None if remote or workers == 1 else f"{folder}/error.log"
    with local.errors_to(log) as terminal:
        progress = watcher(terminal)
        try:
            local.run(work, progress.tick, REMOTE_TICK_SECONDS if remote else TICK_SECONDS)
        except Exception:
            if log:
                traceback.print_exc()
            raise
        finally:
            progress.end()
