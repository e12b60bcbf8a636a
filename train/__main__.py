"""``bioshards train DATA --output RUN``: pretrain a model on a finished pretraining set.

Rerun the command to resume a stopped run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from threading import Event
from typing import Final

from bioshards.corpus.errors import INTERRUPTED, OK, USAGE_ERROR, describe_install
from bioshards.corpus.ui.command_line import report_error
from bioshards.corpus.ui.options import OptionParser
from bioshards.corpus.ui.progress import Progress
from bioshards.corpus.ui.terminal import escape_output
from bioshards.train.options import TrainJob

_COMMAND: Final = ("bioshards", "train")


@escape_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    argv = list(sys.argv[1:] if arguments is None else arguments)
    progress, job = Progress(sys.stderr), None
    try:
        parser = OptionParser(
            prog="bioshards train", description="Pretrain a model. Rerun the command to resume a stopped run."
        )
        job = parser.parse_options(TrainJob, argv)
        from bioshards.train.train import train  # here, so that --help does not wait for torch

        with _stop_on_signals(progress) as stop, contextlib.ExitStack() as stack:
            job = dataclasses.replace(job, recipe=job.make_recipe(), command=(*_COMMAND, *argv))
            return _report(train(job, progress, stop, stack))
    except KeyboardInterrupt:
        return _report(f"stopped. {_format_resume_hint(job.output)}" if job else "stopped", INTERRUPTED)
    except ImportError as error:
        return _report(f"a library is missing ({error}): {describe_install('train')}", USAGE_ERROR)
    except Exception as error:
        return _report(*report_error(error, "lower --micro-batch-size"))


def _format_resume_hint(run: str) -> str:
    from bioshards.train import checkpoint

    last_checkpoint = checkpoint.find_latest(run)
    return (
        f"Rerun the command to resume from {last_checkpoint}"
        if last_checkpoint
        else "No checkpoint was saved: rerun the command to start again"
    )


def _report(message: str, code: int = OK) -> int:
    rank = os.environ.get("RANK", "0")
    prefix = "train" if rank == "0" else f"train, process {rank}"
    with contextlib.suppress(OSError):  # a closed pipe does not change the result
        if code == INTERRUPTED and rank != "0":
            pass  # printed by the main process
        elif code != OK:
            print(f"{prefix}: {message}", file=sys.stderr)
        elif message:
            print(message, flush=True)
    return code


@contextlib.contextmanager
def _stop_on_signals(progress: Progress) -> Iterator[Event]:
    """Return an event that Ctrl-C and SIGTERM set; a second signal raises KeyboardInterrupt."""
    stop = Event()

    def on_signal(_number: int, _frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()
        progress.write("stopping after this step with a checkpoint; press Ctrl-C again to stop now")

    previous_handlers = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield stop
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


if __name__ == "__main__":
    sys.exit(main())
