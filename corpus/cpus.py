"""The CPUs that this process may use: in a container, or a job of a cluster, fewer than the machine has."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

_PROCESS_GROUPS: Final = "/proc/self/cgroup"
_GROUPS_FOLDER: Final = "/sys/fs/cgroup"


def count_cpus() -> int:
    """Return the number of CPUs that this process may use, by its affinity and its control groups' quotas."""
    has_affinity = hasattr(os, "sched_getaffinity")  # not on macOS
    cpus = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    return max(1, min([cpus, *_iter_quotas()]))


def _iter_quotas() -> Iterator[int]:
    """Yield the CPUs that the control group of this process (version 2) and each group above it may use."""
    group = PurePosixPath("/")
    with contextlib.suppress(OSError), open(_PROCESS_GROUPS) as file:
        paths = [line.rstrip("\n").removeprefix("0::") for line in file if line.startswith("0::/")]
        group = PurePosixPath(paths[0] if paths else "/")
    for folder in (group, *group.parents):
        with contextlib.suppress(OSError, ValueError), open(f"{_GROUPS_FOLDER}{folder}/cpu.max") as file:
            quota, period = map(int, file.read().split())  # "max 100000": no limit
            yield quota // period
