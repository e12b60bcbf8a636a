"""The memory that a job takes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def measure_peak_memory(job: Callable[[], object]) -> int:
    """Return the maximum number of bytes allocated by Python during the job."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
