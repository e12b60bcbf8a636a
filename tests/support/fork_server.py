"""The ``beam`` command in processes that are forked from one that has imported Beam.

Importing Beam takes two seconds, as long as processing a hundred small files.  So the process of the command
is forked from a server, and Beam's worker processes are forked from the command before it starts a thread;
they wait for the environment that Beam gives to a worker.  A forked process imports nothing, so a test that
kills it at a random moment interrupts its work.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import pkgutil
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from multiprocessing import reduction
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from types import SimpleNamespace

from bioshards.corpus.cpus import count_cpus

Overrides = Mapping[str, object]
"""Names in a process' modules (``bioshards.corpus.storage.parallel:AT_A_TIME``), and what they are set to
there.
"""

FORK_SERVER = multiprocessing.get_context("forkserver")
"""The one server of all forks; it starts with the first fork."""
_FORK_CONTEXT = multiprocessing.get_context("fork")
_STARTED_PROCESSES: list[ForkServerProcess] = []
_preloaded_modules = list[str]()


def preload_modules(*modules: str) -> None:
    """Let the server import these modules too; call this when a test module is imported."""
    _preloaded_modules.extend(modules)
    FORK_SERVER.set_forkserver_preload(_preloaded_modules)


preload_modules(
    "apache_beam.runners.worker.sdk_worker_main",
    "bioshards.corpus.lifecycle.full_text_overlap",
    "bioshards.corpus.lifecycle.publish",
    "bioshards.pipelines.execution.local_runner",
    "bioshards.pipelines.pmc_to_shards",
    "bioshards.pipelines.shards",
    "bioshards.vocab.counting.count_steps",
    "bioshards.vocab.pretraining.pretraining_dir",
)


def run_beam(*arguments: object, overrides: Overrides | None = None) -> subprocess.CompletedProcess[str]:
    """Run the ``beam`` command in a process to its end."""
    with tempfile.TemporaryDirectory() as temp_dir:
        stderr_path = Path(temp_dir, "said")
        process = start_beam(*arguments, stderr_path=stderr_path, overrides=overrides)
        process.join()
        assert process.exitcode is not None
        return subprocess.CompletedProcess(
            [str(word) for word in arguments],
            process.exitcode,
            Path(f"{stderr_path}.out").read_text(),
            stderr_path.read_text(),
        )


def start_beam(
    *arguments: object, stderr_path: str | Path = os.devnull, overrides: Overrides | None = None
) -> ForkServerProcess:
    """Start ``beam`` in a process with a new session.

    Its stderr is appended to the file ``stderr_path``, its stdout to that name with ``.out``; by default both
    are discarded.
    """
    argv = [str(word) for word in arguments]
    process = FORK_SERVER.Process(
        target=_run_command, args=(argv, dict(os.environ), str(stderr_path), dict(overrides or {}))
    )
    process.start()
    _STARTED_PROCESSES.append(process)
    return process


@atexit.register
def _kill_leftover_processes() -> None:
    """Kill processes that failed tests have left: multiprocessing would wait for them at exit."""
    for process in _STARTED_PROCESSES:
        if process.is_alive():
            kill_process_group(process)


def kill_process_group(process: ForkServerProcess) -> None:
    """Kill a process and its workers with SIGKILL."""
    assert process.pid
    with contextlib.suppress(ProcessLookupError):  # it has no session and no workers yet
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def kill_when(process: ForkServerProcess, condition: Callable[[], bool]) -> None:
    """Kill a process as soon as a condition holds, which must be before its end."""
    _wait_until(process, condition)
    kill_process_group(process)


def interrupt_when(process: ForkServerProcess, condition: Callable[[], bool]) -> None:
    """Send SIGINT to a process as soon as a condition holds, and wait for its end."""
    _wait_until(process, condition)
    assert process.pid
    os.killpg(process.pid, signal.SIGINT)
    process.join(60)


def _wait_until(process: ForkServerProcess, condition: Callable[[], bool]) -> None:
    while not condition():
        assert process.is_alive(), "it ended before it could be stopped"
        time.sleep(0.001)


def kill_repeatedly(output: Path, *arguments: object, overrides: Overrides | None = None) -> None:
    """Kill a run six times at random moments, each run resuming the last."""
    started_at = time.monotonic()
    measured_output = f"{output}-measured"
    assert run_beam(*arguments, "--output", measured_output, overrides=overrides).returncode == 0
    duration = time.monotonic() - started_at
    rng, killed = random.Random(7), 0
    while killed < 6:
        process = start_beam(*arguments, "--output", output, overrides=overrides)
        process.join(rng.uniform(0, duration))
        if process.is_alive():
            kill_process_group(process)
        killed += process.exitcode == -signal.SIGKILL
        if (output / "manifest.json").exists():
            shutil.rmtree(output)


def _run_command(
    argv: list[str], environment: dict[str, str], stderr_path: str, overrides: Overrides
) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # background jobs of a shell ignore SIGINT
    from apache_beam.runners.portability import local_job_service

    from bioshards.pipelines import cli
    from bioshards.pipelines.execution import local_runner

    os.environ.clear()
    os.environ.update(environment)
    for number, name in (
        (1, stderr_path if stderr_path == os.devnull else f"{stderr_path}.out"),
        (2, stderr_path),
    ):
        with open(name, "a") as file:
            os.dup2(file.fileno(), number)
    for name, value in overrides.items():
        module_name, _, attribute = name.partition(":")
        module = pkgutil.resolve_name(module_name)
        getattr(module, attribute)  # raises AttributeError for a misspelt override
        setattr(module, attribute, value)
    workers = int(argv[argv.index("--workers") + 1]) if "--workers" in argv else count_cpus()
    idle_workers = [_ForkedWorker() for _ in range(workers)] if workers > 1 else []

    def start_worker(
        command: str, shell: bool, env: dict[str, str]
    ) -> _ForkedWorker | subprocess.Popen[bytes]:
        return (
            idle_workers.pop().start(env) if idle_workers else subprocess.Popen(command, shell=shell, env=env)
        )

    local_job_service.subprocess = SimpleNamespace(Popen=start_worker)
    forks, kill_workers = list(idle_workers), local_runner.kill_workers

    def kill_forks() -> None:
        kill_workers()  # finds workers by their command lines, which forks do not have
        for fork in forks:
            fork.kill()

    local_runner.kill_workers = kill_forks
    sys.exit(cli.main(argv))


class _ForkedWorker:
    """A worker process that waits for its environment, with the interface of ``Popen`` that Beam uses."""

    def __init__(self) -> None:
        receiver, self._connection = _FORK_CONTEXT.Pipe()
        self._process = _FORK_CONTEXT.Process(target=_run_worker, args=(receiver, os.getpid()), daemon=True)
        self._process.start()
        receiver.close()

    def start(self, environment: dict[str, str]) -> _ForkedWorker:
        self._connection.send((environment, signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        reduction.send_handle(
            self._connection, 2, self._process.pid
        )  # the run's stderr may have been redirected
        return self

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> None:
        self._process.join()

    def kill(self) -> None:
        """Kill the process and wait until it has ended, as ``local_runner.kill_workers`` does."""
        self._process.kill()
        assert self._process.pid
        with contextlib.suppress(ChildProcessError):  # Beam has waited for it
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode


def _run_worker(connection: Connection, driver: int) -> None:
    from bioshards.pipelines.execution.worker import run_worker

    environment, blocked_signals = connection.recv()
    os.dup2(reduction.recv_handle(connection), 2)
    os.environ.update(environment)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked_signals)
    run_worker(driver)
