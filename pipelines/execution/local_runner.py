"""Run a pipeline on this machine, in as many processes as asked for.

Beam's own default would first try to download a runner, so its in-process runner is named here.  It
gives its worker processes the pipeline's options only as "provision information", so that is made
here too.  The pipeline runs in a thread with the interrupt signal blocked, which its worker processes
inherit: Ctrl-C reaches the main thread alone, and that ends the run in an orderly way.
"""

from __future__ import annotations

import contextlib
import glob
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from typing import BinaryIO, TextIO

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.portability.api import beam_provision_api_pb2
from apache_beam.runners.portability.fn_api_runner import fn_runner
from apache_beam.runners.portability.portable_runner import JobServiceHandle
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from bioshards.corpus.ui.terminal import escape_stream
from bioshards.pipelines.execution import worker


def set_workers(options: PipelineOptions, workers: int) -> None:
    """Set the number of processes of a local run in Beam's options.

    The mode of several processes is Beam's default one, as the others replace the runner's environment.
    """
    direct_options = options.view_as(DirectOptions)
    direct_options.direct_running_mode = "in_memory"
    direct_options.direct_num_workers = workers


def make_runner(options: PipelineOptions) -> fn_runner.FnApiRunner:
    """Beam's in-process runner, its workers given ``options``, which :func:`set_workers` has changed."""
    encoded_options = JobServiceHandle.encode_pipeline_options(options.get_all_options())
    provision_info = beam_provision_api_pb2.ProvisionInfo(pipeline_options=encoded_options)
    environment = None  # the workers are threads of this process
    if options.view_as(DirectOptions).direct_num_workers > 1:
        # Without a shell between, so that this process is the parent.
        command = f"exec {shlex.quote(sys.executable)} -m {worker.__name__} {os.getpid()}"
        environment = SubprocessSDKEnvironment.from_command_string(command)
        logging.getLogger(fn_runner.__name__).setLevel(logging.ERROR)  # it warns of the mode
    return fn_runner.FnApiRunner(environment, provision_info=fn_runner.ExtendedProvisionInfo(provision_info))


@contextlib.contextmanager
def redirect_stderr(path: str | None) -> Iterator[TextIO]:
    """Send this process's and its workers' error output to a file; yields the real one.

    Beam's workers print pages of traceback for what the driver says in a line.  They print it before they
    report a failure, and never report it if that cannot be written: so it goes through a pipe, which does
    not fail where the file's disk is full.  With None nothing is sent anywhere.
    """
    if path is None:
        yield sys.stderr
        return
    log_file = open(path, "wb", buffering=0)  # noqa: SIM115 (the thread's, which closes it)
    read_fd, write_fd = os.pipe()
    copier = threading.Thread(target=_copy_pipe, args=(read_fd, log_file), name="errors", daemon=True)
    copier.start()
    with open(os.dup(2), "w") as terminal:
        os.dup2(write_fd, 2)
        os.close(write_fd)
        try:
            yield escape_stream(terminal)
        finally:
            os.dup2(terminal.fileno(), 2)
            copier.join(1)  # until the workers have ended, who have the pipe open


def _copy_pipe(read_fd: int, log_file: BinaryIO) -> None:
    """Copy a pipe into a file, as much of it as finds room there."""
    with log_file, open(read_fd, "rb", buffering=0) as pipe:
        while data := pipe.read(1 << 16):
            with contextlib.suppress(OSError):
                log_file.write(data)


def kill_workers() -> None:
    """Kill the worker processes and wait until they have ended: none writes once the lock is released.

    What they had begun is under temporary names.  Where there is no /proc they end by themselves, when the
    connection to this process closes.
    """
    threading.excepthook = lambda _: None  # Beam's threads miss their processes
    pids = []
    for children_path in glob.glob("/proc/self/task/*/children"):
        for pid in map(int, _read_proc(children_path).split()):
            if worker.__name__.encode() in _read_proc(f"/proc/{pid}/cmdline"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    pids.append(pid)
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # Beam has waited for it
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # its last write may outlive kill()


def _read_proc(path: str) -> bytes:
    """Return what a file in /proc says; nothing if its process or thread has ended."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        return file.read()
    return b""


def run_in_thread(function: Callable[[], None], poll: Callable[[], None], poll_seconds: float) -> None:
    """Run ``function`` to its end in a thread, calling ``poll`` every ``poll_seconds``.

    Raises:
        KeyboardInterrupt: Ctrl-C or a termination signal; the worker processes go on.
        Exception: what ``function`` raised.
    """
    errors: list[BaseException] = []

    def run_without_signals() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            function()
        except BaseException as error:  # handed to the main thread, which raises it
            errors.append(error)

    thread = threading.Thread(target=run_without_signals, name="pipeline", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(poll_seconds)
        poll()
    if errors:
        raise errors[0]
