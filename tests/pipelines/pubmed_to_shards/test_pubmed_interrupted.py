"""Tests of interrupted runs of ``pubmed_to_shards``: the next run resumes and gives the same bytes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.pipelines.execution import local_runner, worker
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml, write_pubmed_files
from tests.support.fork_server import kill_repeatedly, run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]


def test_killed_run_gives_the_same_bytes(tmp_path: Path) -> None:
    """Kill a run on eight files with SIGKILL at six moments, and resume it each time.

    Many texts occur under two PMIDs, so that versions and duplicates are decided, and shards finalized, from
    the files of the killed runs.
    """
    files = []
    for number in range(1, 9):
        pmids = range(number * 500, number * 500 + 750)
        records = [citation_xml(pmid, f"Some words of {pmid % 2500}. And others here.") for pmid in pmids]
        files.append(pubmed_set_xml(*records, deleted=(number * 500 - 7,)))
    inputs = write_pubmed_files(tmp_path / "in", *files)
    command = ["run", "pubmed_to_shards", "--workers", "2", "--input", str(inputs), "--dedup", "exact"]
    assert run_beam(*command, "--output", tmp_path / "whole").returncode == 0
    assert load_manifest(tmp_path / "whole")["funnel"]["dropped: duplicate"] == 1747
    kill_repeatedly(tmp_path / "killed", *command)
    completed = run_beam(*command, "--output", tmp_path / "killed")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(tmp_path / "killed") == published_digests(tmp_path / "whole")
    leftovers = list((tmp_path / "killed").rglob(".tmp-*"))
    assert leftovers == []


def _start_run(tmp_path: Path) -> tuple[list[str], subprocess.Popen[str]]:
    """Start a run with two workers on eight files in its own session; return its arguments and process."""
    files = [
        pubmed_set_xml(*(citation_xml(start + pmid, "Some words here. " * 30) for pmid in range(1500)))
        for start in range(10_000, 90_000, 10_000)
    ]
    source = write_pubmed_files(tmp_path / "in", *files)
    arguments = ["run", "pubmed_to_shards", "--workers", "2"]
    arguments += ["--input", str(source), "--output", str(tmp_path / "out")]
    return arguments, subprocess.Popen(
        [sys.executable, "-m", "bioshards.pipelines.cli", *arguments],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
    )


def _find_worker_processes(session: int) -> list[int]:
    """Return the ids of the worker processes of a session."""
    process_ids = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            program, *arguments = path.read_bytes().split(b"\0")
            is_worker = b"python" in program and b"bioshards.pipelines.execution.worker" in arguments
            if is_worker and os.getsid(int(path.parent.name)) == session:
                process_ids.append(int(path.parent.name))
    return process_ids


def _wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(tmp_path: Path) -> None:
    arguments, process = _start_run(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    _wait_until(lambda: list(staged.glob("*.json")))
    os.killpg(process.pid, signal.SIGINT)
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "run the same command again to continue" in stderr
    assert "Traceback" not in stderr
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert run_beam(*arguments).returncode == 0
    assert len(load_documents(tmp_path / "out")) == 12_000


LISTING_INTERRUPTED = """
import os, signal, sys, time
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli

def walk_until_stopped(*_):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)

LocalStorage.walk = walk_until_stopped
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("pipeline", ["pubmed_to_shards", "pmc_to_shards"])
def test_sigterm_while_inputs_are_listed_ends_as_ctrl_c(pipeline: str, tmp_path: Path) -> None:
    arguments = ["run", pipeline, "--input", str(tmp_path), "--output", str(tmp_path / "out")]
    completed = subprocess.run(
        [sys.executable, "-c", LISTING_INTERRUPTED, *arguments], capture_output=True, text=True, timeout=200
    )
    assert completed.returncode == 130
    assert "run the same command again to continue" in completed.stderr
    assert "Traceback" not in completed.stderr


def test_killed_worker_ends_the_run_with_an_error(tmp_path: Path) -> None:
    arguments, process = _start_run(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    _wait_until(lambda: list(staged.glob(".tmp-*")))
    os.kill(_find_worker_processes(process.pid)[-1], signal.SIGKILL)
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 1
    assert "a worker process died, perhaps because memory ran out" in stderr
    assert run_beam(*arguments).returncode == 0
    assert len(load_documents(tmp_path / "out")) == 12_000


def test_workers_end_with_the_run(tmp_path: Path) -> None:
    """The signal reaches the process of the run alone: nobody is left to end its workers."""
    _, process = _start_run(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    _wait_until(lambda: list(staged.glob(".tmp-*")))
    assert len(_find_worker_processes(process.pid)) == 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=200)
    _wait_until(lambda: not _find_worker_processes(process.pid))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_no_worker_is_alive_once_the_lock_is_free(tmp_path: Path, number: signal.Signals) -> None:
    """It would write into the output of the next run."""
    _, process = _start_run(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    _wait_until(lambda: list(staged.glob(".tmp-*")))
    workers = [os.pidfd_open(worker) for worker in _find_worker_processes(process.pid)]
    assert len(workers) == 2
    with open(tmp_path / "out" / ".bioshards" / "lock", "rb") as lock:
        os.kill(process.pid, number)
        fcntl.flock(lock, fcntl.LOCK_EX)
        ended_workers, _, _ = select.select(workers, [], [], 0)
    assert ended_workers == workers
    _, stderr = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "run the same command again to continue" in stderr
    assert "Traceback" not in stderr


# Names a worker process, whose memory the kernel takes longer to free than kill() to return.
LARGE_WORKER = "import sys; memory = bytearray(1 << 29); print(flush=True); sys.stdin.read()"


def test_workers_have_ended_when_kill_workers_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)  # kill_workers sets it
    command = [sys.executable, "-c", LARGE_WORKER, worker.__name__]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        ended = os.pidfd_open(process.pid)
        local_runner.kill_workers()
        assert select.select([ended], [], [], 0)[0]
        os.close(ended)
        assert process.wait() == -signal.SIGKILL
