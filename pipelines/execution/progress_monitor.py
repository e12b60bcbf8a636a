"""Show the progress of a run.

A bundle's results reach the driver only when the whole bundle is done, so progress is read from the work
folder, where every finished item leaves its report.  How far the items are that are worked on, and which step
follows, is in the notes of local worker processes (corpus/ui/progress_notes.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.jats.inputs import ARTICLE_LIST_EXTENSION
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.pubmed.discovery import source_from_file
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX, FileInfo, Storage
from bioshards.corpus.ui import progress_notes
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.pipelines.inputs.downloads import DownloadPlan, SourceListing
from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs

if TYPE_CHECKING:  # vocab needs the libraries of an extra
    from bioshards.corpus.download.mirror import Mirror
    from bioshards.corpus.manifest import Shard
    from bioshards.vocab.counting.count_steps import WordsJob
    from bioshards.vocab.pretraining.job import PretrainingJob
    from bioshards.vocab.pretraining.shard_groups import ShardGroup

_REPORT_SUFFIX_START: Final = -len("-fb7c0573.json")
"""Where a source's stem ends in its report's name."""


class _DownloadCounter:
    """Counts what of listings has arrived in the mirror.

    Attributes:
        num_bytes: their listed sizes; 0 if one is not listed.
    """

    def __init__(self, storage: Storage, listings: Iterable[SourceListing]) -> None:
        self._storage = storage
        self._sizes = {
            listing.download_plan.mirror.path(remote_file): remote_file.size
            for listing in listings
            for remote_file in listing.to_fetch
        }
        self._folders = {path.rpartition("/")[0] for path in self._sizes}
        self.num_files = len(self._sizes)
        self.num_bytes = sum(self._sizes.values()) if all(self._sizes.values()) else 0

    def count(self) -> tuple[int, int]:
        """Return the number of files that are there, and of bytes, with those of incomplete files."""
        sizes = {
            path: self._sizes[path]
            for folder in self._folders
            for name in self._storage.list_names(folder)
            if (path := f"{folder}/{name}") in self._sizes
        }
        num_files = len(sizes)
        for folder in self._folders:
            for info in self._storage.glob(f"{folder}/{PARTIAL_PREFIX}*"):
                path = f"{folder}/{info.path.rpartition(PARTIAL_PREFIX)[2].partition('-')[2]}"
                sizes.setdefault(path, min(info.size, self._sizes.get(path, 0)))
        return num_files, sum(sizes.values())

    def __str__(self) -> str:
        num_files, num_bytes = self.count()
        text = f"{num_files:,}/{self.num_files:,} fetched"
        return (
            f"{text} ({num_bytes / 1e6:,.0f} of {self.num_bytes / 1e6:,.0f} MB)" if self.num_bytes else text
        )


class _WaitNotices:
    """Says why downloads of this machine wait, as the processes that wait have noted it."""

    def __init__(
        self, listings: Mapping[str, SourceListing], article_plan: PmcArticlePlan | None, progress: Progress
    ) -> None:
        plans: list[DownloadPlan] = [
            listing.download_plan for listing in listings.values() if listing.to_fetch
        ]
        plans += [article_plan.download_plan] if article_plan else []
        self._limiters = {plan.server.rate_limiter for plan in plans if not plan.is_distributed}
        self._last = {limiter: limiter.read_wait() for limiter in self._limiters}  # of former runs
        self._progress = progress

    def show(self) -> None:
        """Show what was noted since the last call."""
        for limiter in self._limiters:
            noted = limiter.read_wait()
            if noted and noted != self._last[limiter]:
                self._last[limiter] = noted
                self._progress.write(f"waiting: {noted.text}")


@dataclass(frozen=True, slots=True)
class _LaterStep:
    """A step after the first, known by the notes of workers.

    Attributes:
        name: name of the step in its metrics.
        total: number of its items; None: not known.
    """

    name: str
    title: str
    unit: str = ""
    total: int | None = None


class _RunProgress(ABC):
    """Shows how far a run is: in its first step by the reports of items, then by the notes of workers.

    Attributes:
        TITLE: what the first step does.
        ITEMS: what it does it to.
        EARLIER_STEPS: what is done before, by the name of the step.
    """

    TITLE: str
    ITEMS: str
    EARLIER_STEPS: Mapping[str, str] = {}

    def __init__(
        self,
        storage: Storage,
        folder: str,
        sizes: Mapping[str, list[int]],
        unit: str,
        progress: Progress,
    ) -> None:
        """Begin the bar.

        Args:
            folder: where finished items leave their reports.
            sizes: of the items with this name, in ``unit``; a 0 is unknown, and items are counted then.
            unit: ``B``, or a unit that workers note.
        """
        self._storage, self._folder, self._progress = storage, folder, progress
        has_sizes = all(size for item_sizes in sizes.values() for size in item_sizes)
        self._unit = unit if has_sizes else f" {self.ITEMS}"
        self._sizes = {
            item: list(item_sizes) if has_sizes else [1] * len(item_sizes)
            for item, item_sizes in sizes.items()
        }
        self._total_items = sum(map(len, self._sizes.values()))
        total = sum(map(sum, self._sizes.values()))
        self._known_names = set(self._list_reports())
        self._done_before = Counter(item for item in map(self._get_item, self._known_names) if item in sizes)
        self._num_done = self._done_before.total()
        self._num_records = self._size_done = 0
        for item, count in self._done_before.items():
            self._size_done += sum(self._take_size(item) for _ in range(count))
        self._later_index = -1
        self._bar: ProgressBar = progress.bar(self.TITLE, total, self._unit, initial=self._size_done)

    @abstractmethod
    def _list_later_steps(self) -> list[_LaterStep]:
        """Return the steps that follow, in their order."""

    def _list_reports(self) -> list[str]:
        return [name for name in self._storage.list_names(self._folder) if name.endswith(".json")]

    def _get_item(self, name: str) -> str:
        """Return the item of a report by the report's name; a file that has changed has a new report."""
        return name.removesuffix(".json")

    def _take_size(self, item: str) -> int:
        """Return the size of an item that is done."""
        item_sizes = self._sizes.get(item)
        return item_sizes.pop(0) if item_sizes else 0

    def _count_records(self, names: list[str]) -> int:
        """Return the records of new reports, where their number is shown."""
        return 0

    def update(self) -> None:
        """Show what is done since the last call."""
        new_names = [name for name in self._list_reports() if name not in self._known_names]
        self._num_records += self._count_records(new_names)
        for name in new_names:
            self._known_names.add(name)
            item = self._get_item(name)
            if self._done_before[item]:  # an earlier version of it was done
                self._done_before[item] -= 1
            else:
                self._num_done += 1
                self._size_done += self._take_size(item)
        notes = progress_notes.read_notes()
        self._show_later_step(notes)
        if self._later_index >= 0:
            return
        size_now, num_records = self._size_done, self._num_records
        for note in notes or ():
            item = self._get_item(f"{note.item}.json")
            if note.item and f"{note.item}.json" not in self._known_names and self._sizes.get(item):
                num_records += note.num_units
                amount = {"B": note.num_bytes, f" {self.ITEMS}": 0}.get(self._unit, note.num_units)
                size_now += min(amount, self._sizes[item][0])
        text = self._describe(num_records)
        if notes is not None and all(note.step in self.EARLIER_STEPS for note in notes):
            titles = [
                title for step, title in self.EARLIER_STEPS.items() if step in {note.step for note in notes}
            ]
            text = titles[-1] if titles else "starting the workers"
        self._bar.move_to(size_now, text)

    def _describe(self, num_records: int) -> str:
        """Return what follows the rate."""
        return "" if self._unit == f" {self.ITEMS}" else self._format_items()

    def _format_items(self) -> str:
        return f"{self._num_done:,}/{self._total_items:,} {self.ITEMS}"

    def _show_later_step(self, notes: list[progress_notes.WorkerNote] | None) -> None:
        """Show the last step that a worker has begun, or that one has, where workers note nothing."""
        steps = self._list_later_steps()
        names = [step.name for step in steps]
        index = max((names.index(note.step) for note in notes or () if note.step in names), default=-1)
        if notes is None and self._num_done >= self._total_items:
            index = 0
        if index > self._later_index:
            if self._later_index < 0:
                self._bar.move_to(self._size_done, self._describe(self._num_records))
            elif (total := steps[self._later_index].total) is not None:
                self._bar.move_to(total)
            self._bar.close()
            self._later_index = index
            step = steps[index]
            self._bar = self._progress.bar(
                step.title, step.total if notes else None, step.unit if notes else ""
            )
        if self._later_index >= 0:
            done = (note.num_done for note in notes or () if note.step == names[self._later_index])
            self._bar.move_to(sum(done))

    def close(self) -> None:
        """End the bar, so that what follows begins on its own line."""
        self._bar.close()


class ShardsProgress(_RunProgress):
    """Of a run that makes shards: bytes of files staged, files fetched, then the steps that follow."""

    TITLE = "staging"
    ITEMS = "files"

    def __init__(
        self, storage: Storage, output_dir: OutputDir, run_inputs: RunInputs, progress: Progress
    ) -> None:
        sizes: dict[str, list[int]] = {}
        for source in run_inputs.available:
            sizes.setdefault(source.stem, []).append(source.size)
        for path, size in _list_sizes_to_fetch(run_inputs):
            sizes.setdefault(source_from_file(FileInfo(path, 0, "")).stem, []).append(size)
        super().__init__(storage, output_dir.staged_folder, sizes, "B", progress)
        self._downloads = run_inputs.to_fetch and _DownloadCounter(storage, run_inputs.listings.values())
        self._wait_notices = _WaitNotices(run_inputs.listings, run_inputs.article_plan, progress)

    def _list_later_steps(self) -> list[_LaterStep]:
        return [
            _LaterStep("decide", "resolving versions"),
            _LaterStep("candidates", "comparing documents", " bands"),
            _LaterStep("duplicates", "finding duplicates"),
            _LaterStep("finalize", "finishing the shards", " files", self._num_done),
            _LaterStep("keys", "reading keys of shards", " shards"),
            _LaterStep("overlap", "finding abstracts of articles"),
            _LaterStep("publish", "publishing"),
        ]

    def _get_item(self, name: str) -> str:
        return name[:_REPORT_SUFFIX_START]

    def _count_records(self, names: list[str]) -> int:
        paths = [f"{self._folder}/{name}" for name in names]
        reports = prefetch_map(self._storage, self._storage.read_json, paths)
        return sum(report["result"]["records"] for report in reports)

    def update(self) -> None:
        """Show the files staged since the last call, and why downloads wait."""
        self._wait_notices.show()
        super().update()

    def _describe(self, num_records: int) -> str:
        items = f"{self._format_items()}, {num_records:,} records"
        return f"{items}, {self._downloads}" if self._downloads else items


class WordsProgress(_RunProgress):
    """Of a run that counts words: documents of shards counted."""

    TITLE = "counting"
    ITEMS = "shards"

    def __init__(self, job: WordsJob, shards: Sequence[tuple[str, Shard]], progress: Progress) -> None:
        sizes = {shard.sha256: [shard.rows] for _, shard in shards}
        super().__init__(job.storage, job.output.word_counts_folder, sizes, " documents", progress)

    def _list_later_steps(self) -> list[_LaterStep]:
        from bioshards.vocab.counting.word_counts import NUM_BUCKETS  # needs libraries of the extra vocab

        return [
            _LaterStep("merge", "merging the counts", " buckets", NUM_BUCKETS),
            _LaterStep("publish", "publishing"),
        ]


class PretrainingProgress(_RunProgress):
    """Of a run that makes examples: documents of groups of shards done."""

    TITLE = "making examples"
    ITEMS = "groups of shards"
    EARLIER_STEPS: Mapping[str, str] = {
        "sign": "reading the documents for near duplicates",
        "candidates": "comparing documents",
        "duplicates": "finding near duplicates",
    }

    def __init__(self, job: PretrainingJob, groups: Sequence[ShardGroup], progress: Progress) -> None:
        self._num_buckets = sum(job.num_buckets.values())
        sizes = {group.name: [sum(shard.rows for shard in group.shards)] for group in groups}
        super().__init__(job.storage, job.output.build_reports_folder, sizes, " documents", progress)

    def _list_later_steps(self) -> list[_LaterStep]:
        merge = _LaterStep("merge", "merging the shards", " buckets", self._num_buckets)
        return [*([merge] if self._num_buckets else []), _LaterStep("publish", "publishing")]


def _list_sizes_to_fetch(run_inputs: RunInputs) -> Iterator[tuple[str, int]]:
    """Yield the path and size of files and article lists that are downloaded before they are staged."""
    for remote_file in run_inputs.to_fetch:
        yield remote_file.path, remote_file.size
    for number in run_inputs.article_plan.ranges if run_inputs.article_plan else ():
        yield f"{range_label(number)}{ARTICLE_LIST_EXTENSION}", 0


class FetchProgress:
    """Shows how much of what was asked for the mirror has: files of listings, and ranges of articles."""

    def __init__(
        self,
        mirror: Mirror,
        listings: Mapping[str, SourceListing],
        article_plan: PmcArticlePlan | None,
        progress: Progress,
    ) -> None:
        self._mirror, self._progress = mirror, progress
        self._downloads = _DownloadCounter(mirror.storage, listings.values())
        self._ranges = article_plan.ranges if article_plan else ()
        self._wait_notices = _WaitNotices(listings, article_plan, progress)
        self._reports_before = self._list_reports()
        self._file_bar: ProgressBar | None = None
        self._range_bar: ProgressBar | None = None
        if self._downloads.num_files:
            total, unit = self._downloads.num_bytes, "B"
            if not total:
                total, unit = self._downloads.num_files, " files"
            self._file_bar = progress.bar("fetching files", total, unit, initial=self._count_downloads()[0])
        if self._ranges:
            self._range_bar = progress.bar("fetching articles", len(self._ranges), " ranges")

    def _count_downloads(self) -> tuple[int, str]:
        num_files, num_bytes = self._downloads.count()
        if self._downloads.num_bytes:
            return num_bytes, f"{num_files:,}/{self._downloads.num_files:,} files"
        return num_files, ""

    def _list_reports(self) -> set[tuple[str, str]]:
        if not self._ranges:
            return set()
        report_files = self._mirror.storage.walk(f"{self._mirror.folder}/pmc/reports")
        return {(report.path, report.stamp) for report in report_files}

    def update(self) -> None:
        """Show how far it is, and why downloads wait."""
        self._wait_notices.show()
        if self._file_bar:
            self._file_bar.move_to(*self._count_downloads())
        if self._range_bar:
            num_requests = sum(note.num_units for note in progress_notes.read_notes() or ())
            note = f"{num_requests:,} requests of ranges in progress" if num_requests else ""
            self._range_bar.move_to(len(self._list_reports() - self._reports_before), note)

    def close(self) -> None:
        """End the bars, so that what follows begins on its own line."""
        for bar in (self._range_bar, self._file_bar):
            if bar:
                bar.close()
