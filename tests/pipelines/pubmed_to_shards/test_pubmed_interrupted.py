"""A run that is stopped, by whatever, loses nothing: the next one continues to the same bytes."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.fork_server import kill_ten_times, run_beam
from tests.support.outputs import load_documents, load_manifest, published_digests

Run = Callable[..., int]


@pytest.mark.timeout(600)
def test_killed_at_any_moment_and_continued_it_ends_with_the_same_bytes(tmp_path: Path) -> None:
    """``kill -9`` at ten moments spread over the run, each time continued, over eight files.

    Many a text is there under two PMIDs, so that versions and duplicates are decided, and shards finished,
    on what the killed runs left.
    """
    inputs = tmp_path / "in"
    inputs.mkdir()
    for number in range(1, 9):
        pmids = range(number * 500, number * 500 + 750)
        records = [citation_xml(pmid, f"Some words of {pmid % 2500}. And others here.") for pmid in pmids]
        (inputs / f"pubmed26n{number:04d}.xml").write_bytes(
            pubmed_set_xml(*records, deleted=(number * 500 - 7,))
        )
    command = ["run", "pubmed_to_shards", "--workers", "2", "--input", str(inputs), "--dedup", "exact"]
    assert run_beam(*command, "--output", tmp_path / "whole").returncode == 0
    assert load_manifest(tmp_path / "whole")["funnel"]["dropped: duplicate"] == 1747
    kill_ten_times(tmp_path / "killed", *command)
    done = run_beam(*command, "--output", tmp_path / "killed")
    assert done.returncode == 0, done.stderr
    assert published_digests(tmp_path / "killed") == published_digests(tmp_path / "whole")
    left = list((tmp_path / "killed").rglob(".tmp-*"))
    assert left == []


def _begun(tmp_path: Path) -> tuple[list[str], subprocess.Popen[str]]:
    """A run of two workers over eight files, as it is started by hand: its arguments, its process."""
    source = tmp_path / "in"
    source.mkdir()
    for number in range(1, 9):
        records = [citation_xml(number * 10_000 + pmid, "Some words here. " * 30) for pmid in range(1500)]
        (source / f"pubmed26n{number:04d}.xml").write_bytes(pubmed_set_xml(*records))
    words = ["run", "pubmed_to_shards", "--workers", "2"]
    words += ["--input", str(source), "--output", str(tmp_path / "out")]
    return words, subprocess.Popen(
        [sys.executable, "-m", "bioshards.pipelines.cli", *words],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
    )


def _workers(session: int) -> list[int]:
    """The worker processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            program, *rest = path.read_bytes().split(b"\0")
            ours = b"python" in program and any(b"sdk_worker_main" in word for word in rest)
            if ours and os.getsid(int(path.parent.name)) == session:
                found.append(int(path.parent.name))
    return found


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(tmp_path: Path) -> None:
    words, process = _begun(tmp_path)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out" / ".bioshards" / "staged").glob("*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "run the same command again to continue" in errors
    assert "Traceback" not in errors
    assert not (tmp_path / "out" / "manifest.json").exists()
    assert run_beam(*words).returncode == 0
    assert len(load_documents(tmp_path / "out")) == 12_000


def test_a_killed_worker_ends_the_run_with_a_clear_word(tmp_path: Path) -> None:
    words, process = _begun(tmp_path)
    staged = tmp_path / "out" / ".bioshards" / "staged"
    deadline = time.monotonic() + 60
    while not list(staged.glob(".tmp-*")):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    os.kill(_workers(process.pid)[-1], signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "a worker process died, perhaps because memory ran out" in errors
    assert run_beam(*words).returncode == 0
    assert len(load_documents(tmp_path / "out")) == 12_000
