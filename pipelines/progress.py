"""Say how far a run is: one live line on a terminal, one line a file in a log.

A bundle's results reach the driver only when the whole bundle is done, so progress is read from the
work folder, where every finished file leaves its report.
"""

from __future__ import annotations

import sys
import time
from typing import TextIO

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.workspace import Workspace

from .inputs import Inputs


class Progress:
    """Call :meth:`tick` now and then; it prints what is new."""

    def __init__(self, files: LocalFiles, work: Workspace, inputs: Inputs, out: TextIO | None = None) -> None:
        self._files, self._work, self._inputs, self._total = files, work, inputs, inputs.count
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._done = set(self._reports())
        self._before = len(self._done)
        self._records = 0
        self._started = time.monotonic()

    def _reports(self) -> list[str]:
        return [name for name in self._files.names(f"{self._work.folder}/staged") if name.endswith(".json")]

    def tick(self) -> None:
        """Print the files staged since the last call."""
        for name in self._reports():
            if name in self._done:
                continue
            self._done.add(name)
            report = self._files.read_json(f"{self._work.folder}/staged/{name}")
            records = report["staged"]["records"]
            self._records += records
            if not self._live:
                print(
                    f"{len(self._done)}/{self._total} {name[:-14]}: {records:,} records "
                    f"in {report['seconds']:.1f} s",
                    file=self._out,
                    flush=True,
                )
        if self._live:
            self._line()

    def _line(self) -> None:
        seconds = time.monotonic() - self._started
        new = len(self._done) - self._before
        left = self._total - len(self._done)
        if left <= 0:
            eta = ", finishing the shards"
        else:
            eta = f", {_clock(left * seconds / new)} left" if new else ""
        rate = f", {self._records / seconds:,.0f} records/s" if self._records else ""
        print(f"\r\033[K{len(self._done)}/{self._total} files{rate}{eta}", end="", file=self._out, flush=True)

    def end(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._live:
            print(file=self._out)


def _clock(seconds: float) -> str:
    minutes = int(seconds + 59) // 60
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
