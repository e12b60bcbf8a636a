"""Say how far a run is: one live line on a terminal, one line a file in a log.

A bundle's results reach the driver only when the whole bundle is done, so progress is read from the
work folder, where every finished file leaves its report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, TextIO

from bioshards.corpus import sources
from bioshards.corpus.article_sources import LIST
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc_bucket import label
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.workspace import Workspace

if TYPE_CHECKING:
    from .fetch import Job as FetchJob
    from .inputs import Inputs

_NAME_END: Final = -len("-fb7c0573.json")
"""Where a source's stem ends in its report's name."""
_LOG_SECONDS: Final = 10
"""A log has a line about what is fetched this often at most."""
_QUICK_SECONDS: Final = 1
"""Of sources that took less than this ..."""
_PAUSE_SECONDS: Final = 2
"""... a log has a line this often at most."""


class _Arrived:
    """How many of the files that are to be fetched the mirror has."""

    def __init__(self, mirror: Mirror, wanted: Iterable[Remote]) -> None:
        self._files = mirror.files
        self._wanted = {mirror.path(remote) for remote in wanted}
        self._folders = {path.rpartition("/")[0] for path in self._wanted}

    def __str__(self) -> str:
        here = {f"{folder}/{name}" for folder in self._folders for name in self._files.names(folder)}
        return f"{len(self._wanted & here):,}/{len(self._wanted):,} fetched"


class Progress:
    """Call :meth:`tick` now and then; it prints what is new."""

    def __init__(self, files: LocalFiles, work: Workspace, inputs: Inputs, out: TextIO | None = None) -> None:
        self._files, self._work, self._inputs, self._total = files, work, inputs, inputs.count
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        stems = {source.stem for source in inputs.here} | {
            sources.source(Found(name, 0, "")).stem for name in _to_fetch(inputs)
        }
        there = set(self._reports())
        self._done = {name for name in there if name[:_NAME_END] in stems}
        self._others = there - self._done  # of inputs of former runs
        self._before = len(self._done)
        self._records = 0
        self._started = self._when = time.monotonic()
        self._line_when = -_PAUSE_SECONDS + self._started
        self._arrived = inputs.fetching and inputs.wanted and _Arrived(inputs.fetching.mirror, inputs.wanted)
        self._said = ""

    def _reports(self) -> list[str]:
        return [name for name in self._files.names(f"{self._work.folder}/staged") if name.endswith(".json")]

    def tick(self) -> None:
        """Print the files staged since the last call."""
        for name in self._reports():
            if name in self._done or name in self._others:
                continue
            self._done.add(name)
            report = self._files.read_json(f"{self._work.folder}/staged/{name}")
            records = report["staged"]["records"]
            self._records += records
            if not self._live and self._worth_a_line(report["seconds"]):
                print(
                    f"{len(self._done)}/{self._total} {name[:_NAME_END]}: {records:,} records "
                    f"in {report['seconds']:.1f} s",
                    file=self._out,
                    flush=True,
                )
        if self._live:
            self._line()
        elif self._arrived and time.monotonic() - self._when > _LOG_SECONDS:
            self._when = time.monotonic()
            if (line := str(self._arrived)) != self._said:
                self._said = line
                print(line, file=self._out, flush=True)

    def _worth_a_line(self, seconds: float) -> bool:
        """Of many small sources in a row a few lines say enough, with the last one."""
        now = time.monotonic()
        last = len(self._done) == self._total
        if seconds < _QUICK_SECONDS and now - self._line_when < _PAUSE_SECONDS and not last:
            return False
        self._line_when = now
        return True

    def _line(self) -> None:
        seconds = time.monotonic() - self._started
        new = len(self._done) - self._before
        left = self._total - len(self._done)
        if left <= 0:
            eta = ", finishing the shards"
        else:
            eta = f", {_clock(left * seconds / new)} left" if new else ""
        rate = f", {self._records / seconds:,.0f} records/s" if self._records else ""
        arrived = f"{self._arrived}, " if self._arrived else ""
        line = f"{arrived}{len(self._done)}/{self._total} files{rate}{eta}"
        print(f"\r\033[K{line}", end="", file=self._out, flush=True)

    def end(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._live:
            print(file=self._out)


def _to_fetch(inputs: Inputs) -> list[str]:
    """The names of what will be staged as it is fetched: files, and lists of ranges of articles."""
    ranges = inputs.bucket.ranges if inputs.bucket else []
    return [remote.path for remote in inputs.wanted] + [f"{label(number)}{LIST}" for number in ranges]


class FetchProgress:
    """Says how much of what was asked for the mirror has."""

    def __init__(self, job: FetchJob, out: TextIO) -> None:
        self._job, self._out, self._live = job, out, out.isatty()
        wanted = [remote for listed in job.listed.values() for remote in listed.wanted]
        self._arrived = wanted and _Arrived(job.mirror, wanted)
        self._before = self._reports()
        self._said, self._when = "", time.monotonic()

    def _reports(self) -> set[tuple[str, str]]:
        if not self._job.bucket:
            return set()
        found = self._job.mirror.files.walk(f"{self._job.mirror.folder}/pmc/reports")
        return {(report.path, report.stamp) for report in found}

    def tick(self) -> None:
        """Print how far it is, if that has changed."""
        if not self._live and time.monotonic() - self._when < _LOG_SECONDS:
            return
        self._when = time.monotonic()
        parts = [str(self._arrived)] if self._arrived else []
        if self._job.bucket:
            done = len(self._reports() - self._before)
            parts.append(f"{done:,}/{len(self._job.bucket.ranges):,} ranges of articles")
        line = ", ".join(parts)
        if line != self._said:
            self._said = line
            begin, end = ("\r\033[K", "") if self._live else ("", "\n")
            print(f"{begin}{line}", end=end, file=self._out, flush=True)

    def end(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._live and self._said:
            print(file=self._out)


def _clock(seconds: float) -> str:
    minutes = int(seconds + 59) // 60
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
