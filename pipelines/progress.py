"""Say how far a run is: one live line on a terminal, one line a file in a log.

A bundle's results reach the driver only when the whole bundle is done, so progress is read from the
work folder, where every finished file leaves its report.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO

from bioshards.corpus import sources
from bioshards.corpus.ahead import ahead
from bioshards.corpus.article_sources import LIST
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc_bucket import label
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import Found, LocalFiles
from bioshards.corpus.workspace import Workspace

if TYPE_CHECKING:
    from .fetch import Job as FetchJob
    from .inputs import Inputs
    from .shards_to_pretraining import Job as ExampleJob
    from .shards_to_words import Job as CountJob

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


class _Reported:
    """Says how many of a step's items are done, by the reports that these leave in a folder.

    Attributes:
        ITEMS: what they are; ``UNITS``: what is counted in them; ``AFTERWARDS``: what is done after the last.
    """

    ITEMS: str
    UNITS: str
    AFTERWARDS: str

    def __init__(
        self, files: LocalFiles, folder: str, total: int, is_ours: Callable[[str], bool], out: TextIO | None
    ) -> None:
        self._files, self._folder, self._total = files, folder, total
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        there = set(self._reports())
        self._done = {name for name in there if is_ours(name)}
        self._others = there - self._done  # of inputs of former runs
        self._before = len(self._done)
        self._units = 0
        self._started = time.monotonic()
        self._line_when = -_PAUSE_SECONDS + self._started

    def _reports(self) -> list[str]:
        return [name for name in self._files.names(self._folder) if name.endswith(".json")]

    def _described(self, name: str, report: Any) -> tuple[str, int]:
        """What a report's item is called, and how many units are in it."""
        raise NotImplementedError

    def tick(self) -> None:
        """Print what is done since the last call."""
        new = [name for name in self._reports() if name not in self._done and name not in self._others]
        reports = ahead(self._files, self._files.read_json, [f"{self._folder}/{name}" for name in new])
        for name, report in zip(new, reports, strict=True):
            self._done.add(name)
            item, units = self._described(name, report)
            self._units += units
            if not self._live and self._worth_a_line(report["seconds"]):
                print(
                    f"{len(self._done)}/{self._total} {item}: {units:,} {self.UNITS} "
                    f"in {report['seconds']:.1f} s",
                    file=self._out,
                    flush=True,
                )
        if self._live:
            print(f"\r\033[K{self._line()}", end="", file=self._out, flush=True)

    def _worth_a_line(self, seconds: float) -> bool:
        """Of many small items in a row a few lines say enough, with the last one."""
        now = time.monotonic()
        last = len(self._done) == self._total
        if seconds < _QUICK_SECONDS and now - self._line_when < _PAUSE_SECONDS and not last:
            return False
        self._line_when = now
        return True

    def _line(self) -> str:
        seconds = time.monotonic() - self._started
        new = len(self._done) - self._before
        left = self._total - len(self._done)
        eta = f", {_clock(left * seconds / new)} left" if new else ""
        if left <= 0:
            eta = f", {self.AFTERWARDS}"
        rate = f", {self._units / seconds:,.0f} {self.UNITS}/s" if self._units else ""
        return f"{len(self._done)}/{self._total} {self.ITEMS}{rate}{eta}"

    def end(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._live:
            print(file=self._out)


class Progress(_Reported):
    """Of a run that makes shards: files staged, and fetched."""

    ITEMS = "files"
    UNITS = "records"
    AFTERWARDS = "finishing the shards"

    def __init__(self, files: LocalFiles, work: Workspace, inputs: Inputs, out: TextIO | None = None) -> None:
        stems = {source.stem for source in inputs.here} | {
            sources.source(Found(name, 0, "")).stem for name in _to_fetch(inputs)
        }
        folder = f"{work.folder}/staged"
        super().__init__(files, folder, inputs.count, lambda name: name[:_NAME_END] in stems, out)
        self._arrived = inputs.fetching and inputs.wanted and _Arrived(inputs.fetching.mirror, inputs.wanted)
        self._said, self._when = "", self._started

    def _described(self, name: str, report: Any) -> tuple[str, int]:
        return name[:_NAME_END], report["staged"]["records"]

    def tick(self) -> None:
        """Print the files staged since the last call."""
        super().tick()
        if not self._live and self._arrived and time.monotonic() - self._when > _LOG_SECONDS:
            self._when = time.monotonic()
            if (line := str(self._arrived)) != self._said:
                self._said = line
                print(line, file=self._out, flush=True)

    def _line(self) -> str:
        return f"{self._arrived}, {super()._line()}" if self._arrived else super()._line()


class CountProgress(_Reported):
    """Of a run that counts words: shards counted."""

    ITEMS = "shards"
    UNITS = "documents"
    AFTERWARDS = "merging the counts"

    def __init__(self, job: CountJob, out: TextIO | None = None) -> None:
        names = {f"{shard.sha256}.json" for documents in job.inputs for shard in documents.shards}
        folder = f"{job.work.folder}/counts"
        super().__init__(job.files, folder, len(names), names.__contains__, out)

    def _described(self, name: str, report: Any) -> tuple[str, int]:
        counted = report["counted"]
        return report["file"], counted["documents"] + counted["held_out_documents"]


class ExampleProgress(_Reported):
    """Of a run that makes examples: portions done."""

    ITEMS = "portions"
    UNITS = "documents"
    AFTERWARDS = "publishing"

    def __init__(self, job: ExampleJob, out: TextIO | None = None) -> None:
        if job.making.buckets:
            self.AFTERWARDS = "merging the shards"
        names = {f"{portion.name}.json" for portion in job.portions}
        super().__init__(job.files, f"{job.work.folder}/made", len(names), names.__contains__, out)

    def _described(self, name: str, report: Any) -> tuple[str, int]:
        return report["file"], report["made"]["documents"]


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
