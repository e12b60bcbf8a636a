"""The processes of a benchmark: run in turns, on an idle machine, each from the same state."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.bench.harness import timing
from tests.bench.harness.timing import TimedRun
from tests.support.paths import REPOSITORY

ROOT = REPOSITORY
CALM_CORES = 0.2
"""A run during which other processes kept more than this busy is done again, TRIES times at most."""
TRIES = 4


class BenchRunner:
    """Runs the commands in the work folder and keeps their measurements by name."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.runs: dict[str, list[TimedRun]] = {}
        beam = Path(sys.executable).with_name("beam")
        self._beam = str(beam) if beam.exists() else shutil.which("beam") or "beam"
        self._env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._env["PYTHONPYCACHEPREFIX"] = str(work / "pycache")  # nobody compiles but the first, untimed
        self._env["TMPDIR"] = str(work / "tmp")
        shutil.rmtree(work / "tmp", ignore_errors=True)
        (work / "tmp").mkdir(parents=True)

    def time_python(self, name: str, *arguments: str, tries: int = TRIES) -> TimedRun:
        """Time a Python process."""
        return self._time_command(name, lambda: [sys.executable, *arguments], tries)

    def time_pipeline(
        self,
        name: str,
        inputs: list[str],
        workers: int,
        records: int,
        tries: int = TRIES,
        pipeline: str = "pubmed_to_shards",
    ) -> TimedRun:
        """Time ``beam run`` into a new output folder and see that no record was left out."""
        output = self.work / "output"
        command = [self._beam, "run", pipeline, "--workers", str(workers), "--output", str(output)]
        command += [word for path in inputs for word in ("--input", path)]

        def prepare_command() -> list[str]:
            shutil.rmtree(output, ignore_errors=True)
            return command

        run = self._time_command(name, prepare_command, tries)
        manifest = json.loads((output / "manifest.json").read_text())
        if sum(sum(source["funnel"].values()) for source in manifest["inputs"]) != records:
            raise SystemExit(
                f"{name}: not all of the {records} records are in its funnel: {manifest['funnel']}"
            )
        shutil.rmtree(output)
        return run

    def _time_command(self, name: str, make_command: Callable[[], list[str]], max_tries: int) -> TimedRun:
        """Time a command; again while the machine is busy with something else, and keep the calmest."""
        tries: list[TimedRun] = []
        while len(tries) < max_tries and (not tries or tries[-1].other_cores > CALM_CORES):
            argv = make_command()
            os.sync()  # what the last run wrote is not this one's to wait for
            run = timing.time_command(argv, self._env, ROOT, self.work / "stderr.log")
            tries.append(run)
            summary = f"{name}: {run.wall:.2f} s, CPU {run.cpu:.2f} s, {run.peak_mb:.0f} MB"
            print(f"{summary}, others {run.other_cores:.2f} cores", file=sys.stderr, flush=True)
        run = min(tries, key=lambda tried: tried.other_cores)
        self.runs.setdefault(name, []).append(run)
        return run

    def walls(self, name: str) -> list[float]:
        return [run.wall for run in self.runs[name]]

    def cpus(self, name: str) -> list[float]:
        return [run.cpu for run in self.runs[name]]

    def peaks(self, name: str) -> list[float]:
        return [run.peak_mb for run in self.runs[name]]


TWICE_SCRIPT: Final = """
import subprocess, sys
runs = [subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.DEVNULL) for _ in range(2)]
sys.exit(max(run.wait() for run in runs))
"""
"""Runs the Python code and arguments that follow it twice at once: what two cores give at most."""


def subtract_startup(values: list[float], start: list[float]) -> list[float]:
    """Values without the start-up: the least of it, for what disturbs so short a run only adds to it,
    and taking off too much would flatter whatever has more of it, which is us.
    """
    return [value - min(start) for value in values]


def ratios_by_round(above: list[float], below: list[float]) -> list[float]:
    """Round by round: the two of a round ran one after the other, on the machine as it was then."""
    return [numerator / max(denominator, 0.001) for numerator, denominator in zip(above, below, strict=True)]
