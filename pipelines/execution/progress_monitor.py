"""Print the progress of a run: one live line on a terminal, one line for each file in a log.

A bundle's results reach the driver only when the whole bundle is done, so progress is read from the
work folder, where every finished file leaves its report.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TextIO

from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.errors import escape_controls
from bioshards.corpus.jats.inputs import ARTICLE_LIST_EXTENSION
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage

if TYPE_CHECKING:
    from bioshards.pipelines.inputs.downloads import DownloadPlan, SourceListing
    from bioshards.pipelines.inputs.pmc_articles import PmcArticlePlan
    from bioshards.pipelines.inputs.run_inputs import RunInputs
    from bioshards.pipelines.job_types import FetchJob, PretrainingJob, WordsJob

_REPORT_SUFFIX_START: Final = -len("-fb7c0573.json")
"""Where a source's stem ends in its report's name."""
_LOG_INTERVAL_SECONDS: Final = 10
"""A log has a line about what is fetched this often at most."""
_FAST_ITEM_SECONDS: Final = 1
"""Of sources that took less than this ..."""
_LINE_INTERVAL_SECONDS: Final = 2
"""... a log has a line this often at most."""
_LINE_START: Final = "\r\033[K"
"""Clears the live line of a terminal."""


class _DownloadCounter:
    """Counts the files of listings that have arrived in the mirror."""

    def __init__(self, storage: Storage, listings: Iterable[SourceListing]) -> None:
        self._storage = storage
        self._expected_paths = {
            listing.download_plan.mirror.path(remote_file)
            for listing in listings
            for remote_file in listing.to_fetch
        }
        self._folders = {path.rpartition("/")[0] for path in self._expected_paths}

    def __str__(self) -> str:
        present = {
            f"{folder}/{name}" for folder in self._folders for name in self._storage.list_names(folder)
        }
        return f"{len(self._expected_paths & present):,}/{len(self._expected_paths):,} fetched"


class _WaitNotices:
    """Says why downloads of this machine wait, as the processes that wait have noted it."""

    def __init__(self, plans: Iterable[DownloadPlan]) -> None:
        self._limiters = {plan.server.rate_limiter for plan in plans if not plan.is_distributed}
        self._last = {limiter: limiter.read_wait() for limiter in self._limiters}  # of former runs

    def read_new(self) -> Iterator[str]:
        """Yield what was noted since the last call."""
        for limiter in self._limiters:
            noted = limiter.read_wait()
            if noted and noted != self._last[limiter]:
                self._last[limiter] = noted
                yield f"waiting: {noted.text}"


class _StepProgress:
    """Says how many of a step's items are done, by the reports that these leave in a folder.

    Attributes:
        ITEMS: what they are; ``UNITS``: what is counted in them; ``AFTERWARDS``: what is done after the last.
    """

    ITEMS: str
    UNITS: str
    NEXT_STEP: str

    def __init__(
        self,
        storage: Storage,
        folder: str,
        total: int,
        is_expected: Callable[[str], bool],
        out: TextIO | None,
    ) -> None:
        self._storage, self._folder, self._total = storage, folder, total
        self._out = out or sys.stderr
        self._is_live = self._out.isatty()
        self._known_names = set(self._list_reports())
        self._done_before = Counter(self._get_item(name) for name in self._known_names if is_expected(name))
        self._num_done_before = self._num_done = self._done_before.total()
        self._num_units = 0
        self._start_time = time.monotonic()
        self._last_line_time = -_LINE_INTERVAL_SECONDS + self._start_time

    def _list_reports(self) -> list[str]:
        return [name for name in self._storage.list_names(self._folder) if name.endswith(".json")]

    def _get_item(self, name: str) -> str:
        """Return the item of a report by the report's name; a file that has changed has a new report."""
        return name

    def _describe(self, name: str, report: Any) -> tuple[str, int]:
        """Return the name of a report's item and its number of units."""
        raise NotImplementedError

    def update(self) -> None:
        """Print what is done since the last call."""
        new_names = [name for name in self._list_reports() if name not in self._known_names]
        reports = prefetch_map(
            self._storage, self._storage.read_json, [f"{self._folder}/{name}" for name in new_names]
        )
        for name, report in zip(new_names, reports, strict=True):
            self._known_names.add(name)
            if self._done_before[self._get_item(name)]:  # an earlier version of it was done
                self._done_before[self._get_item(name)] -= 1
            else:
                self._num_done += 1
            item, units = self._describe(name, report)
            self._num_units += units
            if not self._is_live and self._should_print_line(report["seconds"]):
                print(
                    f"{self._num_done}/{self._total} {item}: {units:,} {self.UNITS} "
                    f"in {report['seconds']:.1f} s",
                    file=self._out,
                    flush=True,
                )
        if self._is_live:
            print(f"{_LINE_START}{self._format_line()}", end="", file=self._out, flush=True)

    def _should_print_line(self, seconds: float) -> bool:
        """Of many small items in a row a few lines say enough, with the last one."""
        now = time.monotonic()
        is_last = self._num_done == self._total
        if (
            seconds < _FAST_ITEM_SECONDS
            and now - self._last_line_time < _LINE_INTERVAL_SECONDS
            and not is_last
        ):
            return False
        self._last_line_time = now
        return True

    def _format_line(self) -> str:
        seconds = time.monotonic() - self._start_time
        num_new = self._num_done - self._num_done_before
        num_left = self._total - self._num_done
        eta = f", {_format_remaining(num_left * seconds / num_new)} left" if num_new else ""
        if num_left <= 0:
            eta = f", {self.NEXT_STEP}"
        rate = f", {self._num_units / seconds:,.0f} {self.UNITS}/s" if self._num_units else ""
        return f"{self._num_done}/{self._total} {self.ITEMS}{rate}{eta}"

    def close(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._is_live:
            print(file=self._out)


class ShardsProgress(_StepProgress):
    """Of a run that makes shards: files staged, and fetched."""

    ITEMS = "files"
    UNITS = "records"
    NEXT_STEP = "finishing the shards"

    def __init__(
        self, storage: Storage, output_dir: OutputDir, run_inputs: RunInputs, out: TextIO | None = None
    ) -> None:
        stems = {source.stem for source in run_inputs.available} | {
            source_from_file(FileInfo(name, 0, "")).stem for name in _list_paths_to_fetch(run_inputs)
        }
        super().__init__(
            storage,
            output_dir.staged_folder,
            run_inputs.num_items,
            lambda name: name[:_REPORT_SUFFIX_START] in stems,
            out,
        )
        self._downloads = run_inputs.to_fetch and _DownloadCounter(storage, run_inputs.listings.values())
        self._wait_notices = _WaitNotices(_list_download_plans(run_inputs.listings, run_inputs.article_plan))
        self._last_line, self._last_log_time = "", self._start_time

    def _get_item(self, name: str) -> str:
        return name[:_REPORT_SUFFIX_START]

    def _describe(self, name: str, report: Any) -> tuple[str, int]:
        return self._get_item(name), report["result"]["records"]

    def update(self) -> None:
        """Print the files staged since the last call, and why downloads wait."""
        _print_notices(self._wait_notices, self._is_live, self._out)
        super().update()
        if (
            not self._is_live
            and self._downloads
            and time.monotonic() - self._last_log_time > _LOG_INTERVAL_SECONDS
        ):
            self._last_log_time = time.monotonic()
            if (line := str(self._downloads)) != self._last_line:
                self._last_line = line
                print(line, file=self._out, flush=True)

    def _format_line(self) -> str:
        return f"{self._downloads}, {super()._format_line()}" if self._downloads else super()._format_line()


class WordsProgress(_StepProgress):
    """Of a run that counts words: shards counted."""

    ITEMS = "shards"
    UNITS = "documents"
    NEXT_STEP = "merging the counts"

    def __init__(self, job: WordsJob, out: TextIO | None = None) -> None:
        names = {f"{shard.sha256}.json" for document_input in job.inputs for shard in document_input.shards}
        super().__init__(job.storage, job.output_dir.word_counts_folder, len(names), names.__contains__, out)

    def _describe(self, name: str, report: Any) -> tuple[str, int]:
        counts = report["shard_counts"]
        return report["file"], counts["documents"] + counts["validation_documents"]


class PretrainingProgress(_StepProgress):
    """Of a run that makes examples: groups of shards done."""

    ITEMS = "groups of shards"
    UNITS = "documents"
    NEXT_STEP = "publishing"

    def __init__(self, job: PretrainingJob, out: TextIO | None = None) -> None:
        if job.build_config.num_buckets:
            self.NEXT_STEP = "merging the shards"
        names = {f"{group.name}.json" for group in job.shard_groups}
        super().__init__(
            job.storage, job.output_dir.build_reports_folder, len(names), names.__contains__, out
        )

    def _describe(self, name: str, report: Any) -> tuple[str, int]:
        return report["file"], report["result"]["documents"]


def _list_paths_to_fetch(run_inputs: RunInputs) -> list[str]:
    """Return the names of the files and article lists that are downloaded before they are staged."""
    ranges = run_inputs.article_plan.ranges if run_inputs.article_plan else []
    return [remote_file.path for remote_file in run_inputs.to_fetch] + [
        f"{range_label(number)}{ARTICLE_LIST_EXTENSION}" for number in ranges
    ]


def _list_download_plans(
    listings: Mapping[str, SourceListing], article_plan: PmcArticlePlan | None
) -> list[DownloadPlan]:
    plans = [listing.download_plan for listing in listings.values() if listing.to_fetch]
    return plans + ([article_plan.download_plan] if article_plan else [])


def _print_notices(wait_notices: _WaitNotices, is_live: bool, out: TextIO) -> None:
    for notice in wait_notices.read_new():
        print(f"{_LINE_START if is_live else ''}{escape_controls(notice)}", file=out, flush=True)


class FetchProgress:
    """Says how much of what was asked for the mirror has."""

    def __init__(self, job: FetchJob, out: TextIO) -> None:
        self._job, self._out, self._is_live = job, out, out.isatty()
        has_files = any(listing.to_fetch for listing in job.listings.values())
        self._downloads = has_files and _DownloadCounter(job.storage, job.listings.values())
        self._wait_notices = _WaitNotices(_list_download_plans(job.listings, job.article_plan))
        self._reports_before = self._list_reports()
        self._last_line, self._last_log_time = "", time.monotonic()

    def _list_reports(self) -> set[tuple[str, str]]:
        if not self._job.article_plan:
            return set()
        report_files = self._job.mirror.storage.walk(f"{self._job.mirror.folder}/pmc/reports")
        return {(report.path, report.stamp) for report in report_files}

    def update(self) -> None:
        """Print how far it is, if that has changed, and why downloads wait."""
        _print_notices(self._wait_notices, self._is_live, self._out)
        if not self._is_live and time.monotonic() - self._last_log_time < _LOG_INTERVAL_SECONDS:
            return
        self._last_log_time = time.monotonic()
        parts = [str(self._downloads)] if self._downloads else []
        if self._job.article_plan:
            num_done = len(self._list_reports() - self._reports_before)
            parts.append(f"{num_done:,}/{len(self._job.article_plan.ranges):,} ranges of articles")
        line = ", ".join(parts)
        if line != self._last_line:
            self._last_line = line
            line_start, line_end = (_LINE_START, "") if self._is_live else ("", "\n")
            print(f"{line_start}{line}", end=line_end, file=self._out, flush=True)

    def close(self) -> None:
        """Leave the live line, so that what follows begins on its own."""
        if self._is_live and self._last_line:
            print(file=self._out)


def _format_remaining(seconds: float) -> str:
    minutes = int(seconds + 59) // 60
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"
