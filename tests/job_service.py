"""Beam's job service and a pool of workers apart, each a process: the portable path to Flink and Spark."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def running(folder: Path, python: str = sys.executable) -> Iterator[list[str]]:
    """Gives the options of a run that goes on there; ``python`` is that of the workers' environment."""
    job, pool = _free_port(), _free_port()
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"  # a pool starts workers as "python"
    modules = (
        (sys.executable, "portability.local_job_service_main", "-p", str(job), "--staging_dir", str(folder)),
        (python, "worker.worker_pool_main", f"--service_port={pool}"),
    )
    processes = [
        subprocess.Popen(
            [program, "-m", f"apache_beam.runners.{module}", *words],
            cwd=None if python == sys.executable else folder,  # this repository is not theirs
            env={**os.environ, "PATH": path},
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for program, module, *words in modules
    ]
    try:
        _wait_for(job)
        _wait_for(pool)
        yield [
            *("--runner=PortableRunner", f"--job_endpoint=localhost:{job}"),
            *("--environment_type=EXTERNAL", f"--environment_config=localhost:{pool}"),
        ]
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port}")
