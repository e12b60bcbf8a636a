"""Run a pipeline on this machine, in as many processes as asked for.

Beam's own default would first try to download a runner, so its in-process runner is named here.  It
gives its worker processes the pipeline's options only as "provision information", so that is made
here too.  The pipeline runs in a thread with the interrupt signal blocked, which its worker processes
inherit: Ctrl-C reaches the main thread alone, and that ends the run in an orderly way.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, TextIO

from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.portability.portable_runner import JobServiceHandle


def options_for(workers: int) -> dict[str, Any]:
    """Beam options of a local run."""
    mode = "in_memory" if workers == 1 else "multi_processing"
    return {"direct_running_mode": mode, "direct_num_workers": workers}


def runner(options: PipelineOptions) -> fn_runner.FnApiRunner:
    """Beam's in-process runner, its workers given ``options``."""
    encoded = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    provision = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded)
    return fn_runner.FnApiRunner(provision_info=fn_runner.ExtendedProvisionInfo(provision))


@contextlib.contextmanager
def errors_to(path: str | None) -> Iterator[TextIO]:
    """Send this process's and its workers' error output to a file; yields the real one.

    Beam's workers print pages of traceback for what the driver says in a line.  They print it before they
    report a failure, and never report it if that cannot be written: so it goes through a pipe, which does
    not fail where the file's disk is full.  With None nothing is sent anywhere.
    """
    if path is None:
        yield sys.stderr
        return
    log = open(path, "wb", buffering=0)  # noqa: SIM115 (the thread's, which closes it)
    read, write = os.pipe()
    copying = threading.Thread(target=_copy, args=(read, log), name="errors", daemon=True)
    copying.start()
    with open(os.dup(2), "w") as terminal:
        os.dup2(write, 2)
        os.close(write)
        try:
            yield terminal
        finally:
            os.dup2(terminal.fileno(), 2)
            copying.join(1)  # workers that have not ended yet have the pipe open still


def _copy(read: int, log: BinaryIO) -> None:
    """Copy a pipe into a file, as much of it as finds room there."""
    with log, open(read, "rb", buffering=0) as said:
        while data := said.read(1 << 16):
            with contextlib.suppress(OSError):
                log.write(data)


def run(work: Callable[[], None], tick: Callable[[], None], seconds: float) -> None:
    """Run ``work`` to its end in a thread, calling ``tick`` every ``seconds``.

    Raises:
        KeyboardInterrupt: Ctrl-C or a termination signal; the worker processes are gone by then.
        Exception: what ``work`` raised.
    """
    failed: list[BaseException] = []

    def quietly() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            work()
        except BaseException as error:  # handed to the main thread, which raises it
            failed.append(error)

    thread = threading.Thread(target=quietly, name="pipeline", daemon=True)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        thread.start()
        while thread.is_alive():
            thread.join(seconds)
            tick()
    except KeyboardInterrupt:
        threading.excepthook = lambda _: None  # Beam's threads miss their processes
        _kill_descendants(os.getpid())
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
    if failed:
        raise failed[0]


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _kill_descendants(process: int) -> None:
    """End worker processes at once: what they had begun is under temporary names.

    Where there is no /proc they end by themselves, when the connection to this process closes.
    """
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as listed:
                for child in map(int, listed.read().split()):
                    _kill_descendants(child)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
