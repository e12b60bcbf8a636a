"""The exclusive lock on a folder, and temporary folders that killed processes left."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.locks import lock_folder, make_temporary_folder

HOLD = """\
import time
from bioshards.corpus.storage.locks import make_temporary_folder
with make_temporary_folder("test") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_second_lock_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    with lock_folder(path, "taken"):
        with pytest.raises(OutputMismatchError, match="taken"):
            lock_folder(path, "taken")
        assert os.listdir(tmp_path) == ["lock"]
    with pytest.raises(ZeroDivisionError), lock_folder(path, "taken"):
        raise ZeroDivisionError
    with lock_folder(path, "taken"):
        pass


def test_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    code = (
        "import sys, time; from bioshards.corpus.storage.locks import lock_folder\n"
        "with lock_folder(sys.argv[1], ''): print('ready', flush=True), time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(OutputMismatchError):
            lock_folder(path, "taken")
        child.send_signal(signal.SIGKILL)
    with lock_folder(path, "taken"):
        pass


def test_leftovers_of_killed_processes_alone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        live, killed = [Path(holder.stdout.readline().strip()) for holder in holders if holder.stdout]
        holders[1].kill()
        holders[1].wait()
        with make_temporary_folder("test") as folder:
            assert killed.is_dir()  # too young to be judged
        for path in (live, killed):
            os.utime(path, (0, 0))
        with make_temporary_folder("test") as folder:
            assert set(tmp_path.iterdir()) == {live, Path(folder)}
        assert list(tmp_path.iterdir()) == [live]
    finally:
        holders[0].kill()
        for holder in holders:
            holder.communicate()


@pytest.mark.parametrize("owner", ["this user", "another user"])
def test_planted_pipe_hangs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    """Another user can put anything under the temporary folder, under any name that is free."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / "bioshards-test-planted"
    planted.mkdir()
    os.mkfifo(planted / ".lock")
    os.mkfifo(tmp_path / "bioshards-test-pipe")
    (tmp_path / "bioshards-test-link").symlink_to("/")
    os.utime(planted, (0, 0))
    if owner == "another user":
        own_uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own_uid + 1)
    with make_temporary_folder("test") as folder:
        assert os.path.isdir(folder)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert planted.exists() == (owner == "another user")
    assert os.path.lexists(tmp_path / "bioshards-test-pipe")
