"""Beam's job service and an external worker pool, each a process, as on Flink and Spark."""

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

from tests.support.network import find_free_port


@contextlib.contextmanager
def run_portable_services(folder: Path, python: str = sys.executable) -> Iterator[list[str]]:
    """Run the services; yield the options of a run on them. ``python`` is the workers' interpreter."""
    job_port, pool_port = find_free_port(), find_free_port()
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"  # a pool starts workers as "python"
    modules = (
        (
            sys.executable,
            "portability.local_job_service_main",
            "-p",
            str(job_port),
            "--staging_dir",
            str(folder),
        ),
        (python, "worker.worker_pool_main", f"--service_port={pool_port}"),
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
        _wait_for(job_port)
        _wait_for(pool_port)
        yield [
            *("--runner=PortableRunner", f"--job_endpoint=localhost:{job_port}"),
            *("--environment_type=EXTERNAL", f"--environment_config=localhost:{pool_port}"),
        ]
    finally:
        for process in processes:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"nothing listens on {port}")
