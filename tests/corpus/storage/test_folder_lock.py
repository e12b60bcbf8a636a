"""The exclusive lock on a folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.folder_lock import lock_folder


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
        "import sys, time; from bioshards.corpus.storage.folder_lock import lock_folder\n"
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
