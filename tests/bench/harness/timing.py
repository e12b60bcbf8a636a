"""Time whole processes from outside, and put the figures into a Markdown table.

What a user waits for and pays is a process from its start to its end, so nothing is timed from
within.  CPU time and peak memory are those of the process and of every process it starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_SECONDS = 0.1
PR_SET_CHILD_SUBREAPER = 36
MB = 1e6


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One timed process.

    Attributes:
        wall: seconds from its start to its end.
        cpu: user and system seconds of it and all processes under it.
        peak_mb: the most memory that any one of these processes held at a time.
        processes_mb: what the processes of the job held, each at its own peak, the first one first.
        others: cores that the rest of the machine kept busy meanwhile; more than a little of one, and
            the times are not worth much.
        output: its standard output.
    """

    wall: float
    cpu: float
    peak_mb: float
    processes_mb: tuple[float, ...]
    other_cores: float
    output: str


def adopt_orphans() -> None:
    """Adopt orphaned processes, so that their CPU time is counted."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def time_command(command: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path) -> TimedRun:
    """Run a command to its end and measure it.

    Raises:
        SystemExit: the command failed; the message has the end of its output.
    """
    with open(log, "wb") as errors:
        busy_seconds, started = _machine_busy_seconds(), time.perf_counter()
        process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=errors)
        sampler = _Sampler(process.pid)
        assert process.stdout is not None
        output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        wall, busy_seconds = time.perf_counter() - started, _machine_busy_seconds() - busy_seconds
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
        sampler.stop()
    cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024 / MB
    for orphan in _reap_orphans():
        cpu += orphan.ru_utime + orphan.ru_stime
        peak = max(peak, orphan.ru_maxrss * 1024 / MB)
    if process.returncode:
        log_tail = log.read_text(errors="replace")[-2000:]
        raise SystemExit(
            f"{' '.join(command)[:300]} ended with {process.returncode}:\n{output[-1000:]}{log_tail}"
        )
    peaks = tuple(sampler.peaks.values())
    return TimedRun(wall, cpu, max(peak, *peaks, 0.0), peaks, max(0.0, busy_seconds - cpu) / wall, output)


def _machine_busy_seconds() -> float:
    """Return the busy seconds of all cores since boot, with the share of other guests."""
    user, nice, system, _idle, _waiting, irq, softirq, steal, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _reap_orphans() -> Iterator[resource.struct_rusage]:
    """Kill the remaining processes of a job, and return the resources that they used."""
    while True:
        for child in _list_children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return
        yield usage


def _list_children(process: int) -> list[int]:
    children: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{process}/task"):
            children += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
    return children


class _Sampler:
    """Looks at the peak memory of a process and its descendants now and then, until told to stop.

    A process's own peak (VmHWM) only grows, so looking seldom costs no more than its last moment.
    """

    def __init__(self, process: int) -> None:
        self.peaks: dict[int, float] = {}
        self._process = process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _loop(self) -> None:
        while not self._stopped.wait(SAMPLE_SECONDS):
            self._sample(self._process)

    def _sample(self, process: int) -> None:
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{process}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    self.peaks[process] = int(line.split()[1]) * 1024 / MB
        for child in _list_children(process):
            self._sample(child)


@dataclass(frozen=True, slots=True)
class Figure:
    """One row: a name, its values (one a round) and what they should be.

    ``comparison`` is "<=" or ">=" where there is a ``bar``, and perhaps a ``goal`` beyond it.
    """

    name: str
    values: list[float]
    unit: str
    comparison: str = ""
    bar: float | None = None
    goal: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def verdict(self) -> str:
        """Return the last column: bar and goal, and whether the median meets each."""
        bounds = [("", self.bar), ("goal ", self.goal)]
        return "; ".join(
            f"{name}{'≤' if self.comparison == '<=' else '≥'} {bound:g}: "
            f"{'met' if self.meets(bound) else 'NOT met'}"
            for name, bound in bounds
            if bound is not None
        )

    def meets(self, bound: float) -> bool:
        return self.median <= bound if self.comparison == "<=" else self.median >= bound

    def row(self) -> str:
        """The row as Markdown."""
        spread = f"{self._format_value(min(self.values))} – {self._format_value(max(self.values))}"
        if len(self.values) == 1:
            spread = "one run"
        return (
            f"| {self.name} | {self._format_value(self.median)} {self.unit} | {spread} | {self.verdict()} |"
        )

    @staticmethod
    def _format_value(value: float) -> str:
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def format_table(figures: Sequence[Figure]) -> str:
    """Format all figures as a Markdown table."""
    head = "| what | median | min – max | bar |\n|---|---|---|---|"
    return "\n".join([head, *(figure.row() for figure in figures)])
