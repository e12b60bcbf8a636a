"""A job service, Beam's or Prism, and our worker pool, each a process, as on Flink and Spark."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support.network import find_free_port

PRISM: Final = os.environ.get("PRISM") or shutil.which("prism")
"""Beam's runner in Go, if it is installed: go install github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0."""


@contextlib.contextmanager
def run_portable_services(
    folder: Path, python: str = sys.executable, prism: str | None = None
) -> Iterator[list[str]]:
    """Run the services; yield the options of a run on them.

    Args:
        python: the workers' interpreter.
        prism: program of Prism; default: Beam's own job service in Python.
    """
    job_port, pool_port = find_free_port(), find_free_port()
    beam_service = (sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main")
    job_service: tuple[str, ...] = (*beam_service, "-p", str(job_port), "--staging_dir", str(folder))
    if prism:
        job_service = (prism, "--job_port", str(job_port), "--serve_http=false")
    pool = (python, "-m", "bioshards", "worker-pool", "--port", str(pool_port))
    processes = [
        subprocess.Popen(
            command,
            cwd=None if command[0] == sys.executable else folder,  # this repository is not theirs
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in (job_service, pool)
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
