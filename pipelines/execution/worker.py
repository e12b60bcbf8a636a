"""The program of a worker process of a local run: Beam's own, which ends when the process of the run does."""

from __future__ import annotations

import gc
import os
import sys

from bioshards.corpus.parent_process import end_with_parent
from bioshards.corpus.ui.terminal import escape_output


@escape_output()
def run_worker(driver: int) -> None:
    """Run Beam's worker, and end the process; it ends with its parent, too.

    By itself it would wait for the connection for two minutes. What it had begun is under temporary names.

    Args:
        driver: id of its parent, the process of the run.
    """
    end_with_parent(driver)
    gc.disable()  # collections would search all that is imported
    from apache_beam.runners.worker import sdk_worker_main

    gc.enable()
    gc.freeze()
    sdk_worker_main.main([])
    os._exit(0)  # to take apart what is imported takes a second


if __name__ == "__main__":
    run_worker(int(sys.argv[1]))
