"""Processes that end with their parent, also when it is killed."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from bioshards.vocab.training import subword_trainers

CHILD = """
import hashlib, os, sys, time
from bioshards.corpus.parent_process import end_with_parent
sys.platform = sys.argv[2]
end_with_parent(int(sys.argv[1]))
print(os.getpid(), flush=True)
hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000) if sys.platform == "linux" else time.sleep(600)
"""
PARENT = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2]])
"""


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_child_ends_when_its_parent_is_killed(platform: str) -> None:
    """On Linux also within a library that runs no Python."""
    command = [sys.executable, "-c", PARENT, CHILD, platform]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        assert not select.select([child], [], [], 0)[0]
        parent.send_signal(signal.SIGKILL)
        assert select.select([child], [], [], 60)[0]
        os.close(child)


def test_a_trainer_whose_parent_has_ended_ends_at_once() -> None:
    command = [*subword_trainers._COMMAND, "0"]
    completed = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert (completed.returncode, completed.stderr) == (1, b"")
