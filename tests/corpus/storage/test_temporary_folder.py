"""Temporary folders, and those that killed processes left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bioshards.corpus.storage.temporary_folder import make_temporary_folder

HOLD = """\
import time
from bioshards.corpus.storage.temporary_folder import make_temporary_folder
with make_temporary_folder("test") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


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
