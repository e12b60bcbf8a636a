"""The sdist and the wheel of this checkout."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

from tests.support.dockerfile import SOURCE_DATE_EPOCH
from tests.support.paths import REPOSITORY


def build_distributions(folder: Path) -> tuple[Path, Path]:
    """Build (sdist, wheel built from that sdist) in a folder, as ``make wheel`` does.

    A build writes into the checkout, so that the builds of two test processes wait for each other.
    """
    with (REPOSITORY / "pyproject.toml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, REPOSITORY],
            env={**os.environ, "SOURCE_DATE_EPOCH": SOURCE_DATE_EPOCH},
            check=True,
            capture_output=True,
        )
    [sdist], [wheel] = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel
