"""The ``beam`` command as processes of their own, forked off one that has imported Beam.

Importing Beam takes two seconds, as long as a hundred small files.  So the command's process is forked off a
server's, and the worker processes that Beam asks for off the command's, before it has a thread: they wait to
be told what they are told in their environment otherwise.  A fork's moments are all work, so one that is
killed at any moment is killed at its work.
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

Settings = Mapping[str, object]
"""Names in a process' modules (``bioshards.corpus.ahead:AT_A_TIME``), and what they are set to there."""

SERVER = multiprocessing.get_context("forkserver")
"""There is one server, of all files' forks: it begins with the first fork that is wanted."""
_FORK = multiprocessing.get_context("fork")
_STARTED: list[ForkServerProcess] = []
_imported = list[str]()


def imports(*modules: str) -> None:
    """Let the server import these modules, too: to be said when a file of tests is read."""
    _imported.extend(modules)
    SERVER.set_forkserver_preload(_imported)


imports(
    "apache_beam.runners.worker.sdk_worker_main",
    "bioshards.pipelines.article_transforms",
    "bioshards.pipelines.local",
    "bioshards.pipelines.pmc_to_shards",
    "bioshards.pipelines.pretraining_transforms",
    "bioshards.pipelines.shards_job",
    "bioshards.pipelines.words_transforms",
)


def beam(*arguments: object, settings: Settings | None = None) -> subprocess.CompletedProcess[str]:
    """The ``beam`` command as a process of its own, to its end."""
    with tempfile.TemporaryDirectory() as folder:
        said = Path(folder, "said")
        process = started(*arguments, said=said, settings=settings)
        process.join()
        assert process.exitcode is not None
        return subprocess.CompletedProcess(
            [str(word) for word in arguments],
            process.exitcode,
            Path(f"{said}.out").read_text(),
            said.read_text(),
        )


def started(
    *arguments: object, said: str | Path = os.devnull, settings: Settings | None = None
) -> ForkServerProcess:
    """``beam`` with these arguments as a process with a session of its own.

    Its error output is added to the file ``said``, its output to that name with ``.out``; without a name both
    are lost.
    """
    words = [str(word) for word in arguments]
    process = SERVER.Process(target=_command, args=(words, dict(os.environ), str(said), dict(settings or {})))
    process.start()
    _STARTED.append(process)
    return process


@atexit.register
def _nobody_is_left() -> None:
    """Kill what a failed test has left: multiprocessing would wait for it, in an exit that comes later."""
    for process in _STARTED:
        if process.is_alive():
            kill(process)


def kill(process: ForkServerProcess) -> None:
    """``kill -9`` of a process that was started, and of its workers."""
    assert process.pid
    with contextlib.suppress(ProcessLookupError):  # it has no session yet, and no workers
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


def kill_when(process: ForkServerProcess, so_far: Callable[[], bool]) -> None:
    """Kill a process as soon as it has come so far, which it must before its end."""
    _wait(process, so_far)
    kill(process)


def interrupt_when(process: ForkServerProcess, so_far: Callable[[], bool]) -> None:
    """Ctrl-C as soon as a process has come so far, and its end."""
    _wait(process, so_far)
    assert process.pid
    os.killpg(process.pid, signal.SIGINT)
    process.join(30)


def _wait(process: ForkServerProcess, so_far: Callable[[], bool]) -> None:
    while not so_far():
        assert process.is_alive(), "it ended before it could be stopped"
        time.sleep(0.001)


def killed_ten_times(output: Path, *arguments: object, settings: Settings | None = None) -> None:
    """Kill a run with this output ten times, wherever it is, each going on with the last."""
    begun = time.monotonic()
    measured = f"{output}-measured"
    assert beam(*arguments, "--output", measured, settings=settings).returncode == 0
    lasts = time.monotonic() - begun
    chance, killed = random.Random(7), 0
    while killed < 10:
        process = started(*arguments, "--output", output, settings=settings)
        process.join(chance.uniform(0, lasts))
        if process.is_alive():
            kill(process)
        killed += process.exitcode == -signal.SIGKILL
        if (output / "manifest.json").exists():
            shutil.rmtree(output)


def _command(words: list[str], environment: dict[str, str], said: str, settings: Settings) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    from apache_beam.runners.portability import local_job_service

    from bioshards.pipelines import cli

    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, said if said == os.devnull else f"{said}.out"), (2, said)):
        with open(name, "a") as file:
            os.dup2(file.fileno(), number)
    for name, value in settings.items():
        module, _, attribute = name.partition(":")
        setattr(pkgutil.resolve_name(module), attribute, value)
    workers = int(words[words.index("--workers") + 1]) if "--workers" in words else os.cpu_count() or 1
    idle = [_Worker() for _ in range(workers)] if workers > 1 else []

    def begun(line: str, shell: bool, env: dict[str, str]) -> _Worker | subprocess.Popen[bytes]:
        return idle.pop().begin(env) if idle else subprocess.Popen(line, shell=shell, env=env)

    local_job_service.subprocess = SimpleNamespace(Popen=begun)
    sys.exit(cli.main(words))


class _Worker:
    """A worker process of Beam's, which waits for its environment: what Beam uses of a ``Popen``."""

    def __init__(self) -> None:
        told, self._tell = _FORK.Pipe()
        self._process = _FORK.Process(target=_work, args=(told,), daemon=True)
        self._process.start()
        told.close()

    def begin(self, environment: dict[str, str]) -> _Worker:
        self._tell.send((environment, signal.pthread_sigmask(signal.SIG_BLOCK, ())))
        reduction.send_handle(self._tell, 2, self._process.pid)  # the run's errors may go elsewhere now
        return self

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> None:
        self._process.join()

    def kill(self) -> None:
        self._process.kill()

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode


def _work(told: Connection) -> None:
    from apache_beam.runners.worker import sdk_worker_main

    environment, blocked = told.recv()
    os.dup2(reduction.recv_handle(told), 2)
    os.environ.update(environment)
    signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    sdk_worker_main.main([])
