"""Time whole processes from outside, in turns, and put the figures into a Markdown table.

What a user waits for and pays is a process from its start to its end, so nothing is timed from within.  CPU
time and peak memory are those of the process and of every process it starts.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.paths import REPOSITORY

PIPELINE: Final = ("-m", "bioshards.pipelines.cli", "run")
"""Arguments of Python that stand for ``beam run``."""
PR_SET_CHILD_SUBREAPER: Final = 36
MB: Final = 1e6
CALM_CORES: Final = 0.2
"""A run during which other processes kept more than this busy is done again, TRIES times at most."""
TRIES: Final = 4
TWICE_SCRIPT: Final = """
import subprocess, sys
runs = [subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.DEVNULL) for _ in range(2)]
sys.exit(max(run.wait() for run in runs))
"""
"""Runs the Python code and arguments that follow it twice at once: what two cores give at most."""


@dataclass(frozen=True, slots=True)
class TimedRun:
    """One timed process.

    Attributes:
        wall: seconds from its start to its end.
        cpu: user and system seconds of it and all processes under it.
        peak_mb: the most memory that any one of these processes held at a time.
        other_cores: cores that the rest of the machine kept busy meanwhile; more than a little of one, and
            the times are not worth much.
        output: its standard output.
    """

    wall: float
    cpu: float
    peak_mb: float
    other_cores: float
    output: str


class BenchRunner:
    """Runs commands in turns on an idle machine, each from the same state, and keeps their times by name."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.runs: dict[str, list[TimedRun]] = {}
        self._env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._env["PYTHONPYCACHEPREFIX"] = str(work / "pycache")  # nobody compiles but the first, untimed
        self._env["TMPDIR"] = str(work / "tmp")
        shutil.rmtree(work / "tmp", ignore_errors=True)
        (work / "tmp").mkdir(parents=True)
        # Orphaned processes become children of this one, so that their CPU time is counted.
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def time_python(
        self, name: str, *arguments: object, removed: Sequence[Path] = (), tries: int = TRIES
    ) -> TimedRun:
        """Time a Python process; again while the machine is busy with something else, and keep the calmest.

        Args:
            removed: folders that are removed before each run.
        """
        command = [sys.executable, *map(str, arguments)]
        tried: list[TimedRun] = []
        while len(tried) < tries and (not tried or tried[-1].other_cores > CALM_CORES):
            for folder in removed:
                shutil.rmtree(folder, ignore_errors=True)
            os.sync()  # what the last run wrote is not this one's to wait for
            run = _time_once(command, self._env, self.work / "stderr.log")
            tried.append(run)
            summary = f"{name}: {run.wall:.2f} s, CPU {run.cpu:.2f} s, {run.peak_mb:.0f} MB"
            print(f"{summary}, others {run.other_cores:.2f} cores", file=sys.stderr, flush=True)
        calmest = min(tried, key=lambda run: run.other_cores)
        self.runs.setdefault(name, []).append(calmest)
        return calmest

    def walls(self, name: str, start: str | None = None) -> list[float]:
        """Return the seconds of all runs, less the start-up that runs of another name show.

        The least of it is taken off, for what disturbs so short a run only adds to it, and taking off too
        much would flatter whatever has more of it, which is us.
        """
        least = min(run.wall for run in self.runs[start]) if start else 0
        return [run.wall - least for run in self.runs[name]]

    def cpus(self, name: str, start: str | None = None) -> list[float]:
        """Return the CPU seconds of all runs, less the start-up."""
        least = min(run.cpu for run in self.runs[start]) if start else 0
        return [run.cpu - least for run in self.runs[name]]

    def peaks(self, name: str) -> list[float]:
        """Return the peak memory of all runs in MB."""
        return [run.peak_mb for run in self.runs[name]]


def _time_once(command: Sequence[str], env: Mapping[str, str], log: Path) -> TimedRun:
    """Run a command to its end and measure it.

    Raises:
        SystemExit: the command failed; the message has the end of its output.
    """
    with open(log, "wb") as errors:
        busy_seconds, started = _machine_busy_seconds(), time.perf_counter()
        process = subprocess.Popen(command, env=env, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=errors)
        assert process.stdout is not None
        output = process.stdout.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        wall, busy_seconds = time.perf_counter() - started, _machine_busy_seconds() - busy_seconds
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stdout.close()
    usages = [usage, *_reap_orphans()]
    if process.returncode:
        log_tail = log.read_text(errors="replace")[-2000:]
        raise SystemExit(
            f"{' '.join(command)[:300]} ended with {process.returncode}:\n{output[-1000:]}{log_tail}"
        )
    cpu = sum(one.ru_utime + one.ru_stime for one in usages)
    peak_mb = max(one.ru_maxrss for one in usages) * 1024 / MB
    return TimedRun(wall, cpu, peak_mb, max(0.0, busy_seconds - cpu) / wall, output)


def _machine_busy_seconds() -> float:
    """Return the busy seconds of all cores since boot, with the share of other guests."""
    user, nice, system, _idle, _waiting, irq, softirq, steal, *_ = (
        int(ticks) for ticks in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")


def _reap_orphans() -> Iterator[resource.struct_rusage]:
    """Kill the remaining processes of a job, and yield the resources that they used."""
    while True:
        for task in os.listdir("/proc/self/task"):
            for child in Path(f"/proc/self/task/{task}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(child), signal.SIGKILL)
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return
        yield usage


def ratios_by_round(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Divide round by round: the two of a round ran one after the other, on the machine as it was then."""
    return [numerator / max(denominator, 0.001) for numerator, denominator in zip(above, below, strict=True)]


@dataclass(frozen=True, slots=True)
class Figure:
    """A row: a name, its values (one a round), and the bars that the median is to meet."""

    name: str
    values: Sequence[float]
    unit: str
    at_most: tuple[float, ...] = ()
    at_least: tuple[float, ...] = ()

    def row(self) -> str:
        """Return the row as Markdown."""
        median = statistics.median(self.values)
        bars = [f"≤ {bar:g}: {'met' if median <= bar else 'NOT met'}" for bar in self.at_most]
        bars += [f"≥ {bar:g}: {'met' if median >= bar else 'NOT met'}" for bar in self.at_least]
        spread = f"{_format_value(min(self.values))} – {_format_value(max(self.values))}"
        if len(self.values) == 1:
            spread = "one run"
        return f"| {self.name} | {_format_value(median)} {self.unit} | {spread} | {'; '.join(bars)} |"


def _format_value(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def print_table(title: str, figures: Sequence[Figure]) -> None:
    """Print what was measured, on what machine, and the figures as a Markdown table."""
    print(f"{title} {os.cpu_count()} cores, Python {sys.version.split()[0]}.\n")
    print("| what | median | min – max | bar |\n|---|---|---|---|")
    for figure in figures:
        print(figure.row())
