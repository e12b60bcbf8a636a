"""The program of a worker process of a local run: Beam's own, which ends when the process of the run does."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
"""Of Linux's prctl: the signal that a process gets when its parent ends."""


def run_worker(driver: int) -> None:
    """Run Beam's worker, and end the process.

    On Linux the kernel kills it when its parent ends, however that ends; elsewhere it ends by itself once
    the connection to the parent is closed. What it had begun is under temporary names.

    Args:
        driver: id of its parent, the process of the run.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == driver:  # it has not ended in the meantime
        gc.disable()  # collections would search all that is imported
        from apache_beam.runners.worker import sdk_worker_main

        gc.enable()
        gc.freeze()
        sdk_worker_main.main([])
    os._exit(0)  # to take apart what is imported takes a second


if __name__ == "__main__":
    run_worker(int(sys.argv[1]))
