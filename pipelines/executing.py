"""Run a pipeline's graph: on this machine unless a runner is named, with progress, until it ends."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO

from bioshards.corpus.files import LocalFiles

from .options import UsageError

if TYPE_CHECKING:
    import apache_beam as beam

TICK_SECONDS: Final = 0.5
REMOTE_TICK_SECONDS: Final = 20
"""How often progress is looked for; in an object store each look is a listing that costs."""


class Watcher(Protocol):
    """Says how far a run is."""

    def tick(self) -> None: ...

    def end(self) -> None: ...


def for_workers_elsewhere(rest: Sequence[str], folders: dict[str, str]) -> None:
    """See that Dataflow's workers can reach the folders, by option, that they will read and write.

    Raises:
        UsageError: one is on this machine.
    """
    for option, folder in folders.items():
        if "DataflowRunner" in " ".join(rest) and "://" not in folder:
            raise UsageError(f"{option} {folder} is local; Dataflow's workers need gs://BUCKET/...")


def local_options(runner_given: bool, workers: int) -> dict[str, Any]:
    """Beam options of a run without ``--runner``; none with one."""
    if runner_given:
        return {}
    from . import local

    return local.options_for(workers)


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


def remote_files(paths: Sequence[str], beams: Any) -> LocalFiles:
    """The storage of paths of which some are on object stores, which Beam's options open."""
    from .storage import AnyFiles, configure, supported

    configure(beams)
    for path in paths:
        if "://" in path and not supported(path):
            raise UsageError(
                f"nothing here can open {path}; gs:// and s3:// need: pip install 'bioshards[cloud]'"
            )
    return AnyFiles()


_SECRET = re.compile(r"(--\w*(?:key|secret|token|password)\w*)(=.*)?", re.IGNORECASE)


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments as a manifest may show them: no access keys, passwords and tokens."""
    shown: list[str] = []
    hide = False
    for word in arguments:
        secret = _SECRET.fullmatch(word)
        shown.append("***" if hide else f"{secret[1]}=***" if secret and secret[2] else word)
        hide = bool(secret and not secret[2])
    return shown
