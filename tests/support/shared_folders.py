"""Folders that are built once for all processes of a run of tests, which only read them."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """Return the folder that ``build`` has filled, in this process or in another one of the same run."""
    own_folder = factory.getbasetemp()
    run_folder = own_folder.parent if "PYTEST_XDIST_WORKER" in os.environ else own_folder
    with open(run_folder / f"{name}.folder", "a+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        if path := file.read():
            return Path(path)
        folder = factory.mktemp(name)
        build(folder)
        file.write(str(folder))
        return folder
