"""Compare benchmark files with known ones and with the counts that papers publish (``evaluate verify``).

A reader that loses a sentence or misreads a tag shows up here, before any score is computed. Counts alone do
not verify a file: other labels may have the same counts. Its SHA-256 does. ``known_files.sha256`` lists files
as ``sha256sum`` does, below the repository that they are of. A digest is entered when the file has been
compared with that repository.
"""

from __future__ import annotations

import hashlib
import os
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

from bioshards.evaluate.benchmarks.catalogue import Benchmark, BenchmarkFiles, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import SPLITS, BenchmarkFileError, RecordsBySplit, Split

Verdict = Literal["ok", "known", "own split", "differs", "missing", "damaged"]
"""``known``: the count differs from the published one for a documented reason."""
_LINE_WIDTH: Final = 105
_NOTES: Final = textwrap.TextWrapper(
    _LINE_WIDTH, "  ", "    ", break_long_words=False, break_on_hyphens=False
)


@dataclass(frozen=True, slots=True)
class CountCheck:
    """Comparison of one count.

    Attributes:
        unit: counted unit; "" if the whole benchmark is missing or damaged, as is split.
        split: split or sum of splits.
        expected: published count.
        actual: count in the files; None if it cannot be counted.
        source: publication of the expected count.
        notes: reasons, properties of the files, or download address.
        file_status: what is known of the files; None if the benchmark is missing or damaged.
    """

    benchmark: str
    title: str
    source: str
    verdict: Verdict
    notes: tuple[str, ...] = ()
    unit: str = ""
    split: str = ""
    expected: int | None = None
    actual: int | None = None
    file_status: FileStatus | None = None


def verify_benchmarks(benchmarks_dir: str, benchmarks: Iterable[Benchmark]) -> list[CountCheck]:
    """Check benchmarks. A damaged one yields one check, and the others are still checked.

    Raises:
        InputNotFoundError: the directory does not exist.
    """
    return [check for benchmark in benchmarks for check in check_benchmark(benchmarks_dir, benchmark)]


def check_benchmark(benchmarks_dir: str, benchmark: Benchmark) -> list[CountCheck]:
    """Check one benchmark.

    Raises:
        InputNotFoundError: the directory does not exist.
    """
    benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
    whole = CountCheck(benchmark.name, benchmark.title, benchmark.counts_source, "missing")
    if benchmark_files is None:
        return [replace(whole, notes=(_format_download_note(benchmark),))]
    try:
        records_by_split = load_records(benchmark_files)
    except (BenchmarkFileError, OSError) as error:
        return [replace(whole, verdict="damaged", notes=(str(error),))]
    checks = compare_counts(benchmark_files, records_by_split)
    judgement = judge_files(benchmark_files, do_counts_agree(benchmark_files, checks))
    file_note = _format_file_note(judgement)
    return [replace(check, file_status=judgement.status, notes=(file_note, *check.notes)) for check in checks]


def do_counts_agree(benchmark_files: BenchmarkFiles, checks: Sequence[CountCheck]) -> bool:
    """Return True if the split and all counts of these files are those that the papers used."""
    discrepancies = benchmark_files.layout.known_discrepancies
    same_data = {(known.unit, known.split) for known in discrepancies if known.is_same_data}
    return not benchmark_files.own_splits and all(
        check.verdict in ("ok", "missing")
        or (check.verdict == "known" and (check.unit, check.split) in same_data)
        for check in checks
    )


def _format_file_note(judgement: FileJudgement) -> str:
    if judgement.status == "invented":
        return "invented: the sample bundled with bioshards"
    if judgement.status == "differs":
        return "not the published files or split"
    note = f"files verified by SHA-256: {'; '.join(judgement.sources)}"
    if judgement.unknown_files:
        first_name, *others = judgement.unknown_files
        more = f" and {len(others)} more" if others else ""
        note = f"only the counts agree: the SHA-256 of {first_name}{more} is none that is known"
    if judgement.status == "partial":
        return f"no {' and no '.join(judgement.missing_splits)} in these files; of the others, {note}"
    return note


def compare_counts(benchmark_files: BenchmarkFiles, records_by_split: RecordsBySplit) -> list[CountCheck]:
    """Compare the counts of loaded records with the published ones."""
    benchmark, notes = benchmark_files.benchmark, benchmark_files.notes
    counts_by_split: dict[str, Mapping[str, int]] = {
        split: benchmark.count_records(records_by_split[split]) for split in benchmark_files.splits
    }
    checks = []
    for unit, published_counts in benchmark.published_counts.items():
        expected_counts = dict(published_counts)
        own_splits = [split for split in published_counts if split in benchmark_files.own_splits]
        if len(own_splits) > 1:  # the sum over splits of our own equals the published sum
            expected_counts["+".join(own_splits)] = sum(published_counts[split] for split in own_splits)
        for split, expected in expected_counts.items():
            check = CountCheck(
                *(benchmark.name, benchmark.title, benchmark.counts_source, "missing"),
                *(notes, unit, split, expected),
            )
            names = split.split("+")
            if not counts_by_split.keys() >= {*names}:
                check = replace(check, notes=(*notes, _format_download_note(benchmark)))
            elif any(unit not in counts_by_split[name] for name in names):
                check = replace(check, notes=(f"these files do not have {unit}",))
            else:
                check = replace(check, actual=sum(counts_by_split[name][unit] for name in names))
                check = _judge_count(check, benchmark_files)
            checks.append(check)
    return checks


def _judge_count(check: CountCheck, benchmark_files: BenchmarkFiles) -> CountCheck:
    if check.actual == check.expected:
        return replace(check, verdict="ok")
    if check.split in benchmark_files.own_splits:
        return replace(check, verdict="own split")
    for known in benchmark_files.layout.known_discrepancies:
        if (known.unit, known.split, known.actual) == (check.unit, check.split, check.actual):
            return replace(check, verdict="known", notes=(*check.notes, known.reason))
    return replace(check, verdict="differs")


def _format_download_note(benchmark: Benchmark) -> str:
    return f"to be had from {benchmark.download_from}; licence: {benchmark.licence}"


def has_failures(checks: Sequence[CountCheck]) -> bool:
    """Return True if a count differs for no known reason, a file is damaged, or nothing was found."""
    verdicts = {check.verdict for check in checks}
    return bool(verdicts & {"differs", "damaged"}) or verdicts <= {"missing"}


def format_table(checks: Sequence[CountCheck]) -> str:
    """Format the checks as text of at most 110 columns; missing benchmarks come last."""
    benchmark_names = list(dict.fromkeys(check.benchmark for check in checks))
    groups = [[check for check in checks if check.benchmark == name] for name in benchmark_names]
    groups.sort(key=lambda group: not group[0].unit and group[0].verdict == "missing")
    return "\n".join([*(line for group in groups for line in _format_group(group)), _format_summary(checks)])


def _format_group(checks: Sequence[CountCheck]) -> Iterator[str]:
    first = checks[0]
    status = first.file_status or ("" if first.unit else first.verdict)
    yield f"{first.benchmark}: {first.title}" + (f" - {status}" if status else "")
    if first.unit:
        yield f"  {'':<26}{'split':<16}{'expected':>10}{'actual':>10}"
    for check in checks:
        if check.unit:
            actual_text = "-" if check.actual is None else str(check.actual)
            verdict = "differs: see below" if check.verdict == "known" else check.verdict
            yield f"  {check.unit:<26}{check.split:<16}{check.expected:>10}{actual_text:>10}  {verdict}"
    source = [f"expected by {first.source}"] if first.unit else []
    for note in dict.fromkeys([*source, *(note for check in checks for note in check.notes)]):
        yield from _NOTES.wrap(note)
    yield ""


def _format_summary(checks: Sequence[CountCheck]) -> str:
    counts = Counter(check.verdict for check in checks if check.unit)
    benchmarks = Counter(check.verdict for check in checks if not check.unit)
    statuses = Counter({check.benchmark: check.file_status for check in checks}.values())
    known = f"differ ({counts['known']} of them for a known reason)"
    phrases = [
        (statuses["verified"], "benchmarks verified by SHA-256", True),
        (statuses["counts agree"], "only by their counts", True),
        (statuses["partial"], "partial", False),
        (counts["ok"], "counts ok", True),
        (counts["differs"] + counts["known"], known, True),
        (benchmarks["missing"], "benchmarks missing", True),
        (counts["own split"], "not comparable (own split)", False),
        (counts["missing"], "without data in these files", False),
        (benchmarks["damaged"], "benchmarks damaged", False),
    ]
    shown = (f"{number} {text}" for number, text, is_always_shown in phrases if number or is_always_shown)
    return textwrap.fill(", ".join(shown), _LINE_WIDTH)


FileStatus = Literal["verified", "counts agree", "partial", "differs", "invented"]
"""``verified``: all files are there and known; ``counts agree``: a file is unknown, the counts are the
published ones; ``partial``: a split has no file, and nothing differs in the others; ``differs``: a count or a
split is another; ``invented``: files of the bundled sample."""
FILE_STATUSES: Final[tuple[FileStatus, ...]] = get_args(FileStatus)
"""From the most to the least comparable."""
_GROUP_SIZE: Final = 20
"""A larger group of files has one digest."""


@dataclass(frozen=True, slots=True)
class FileJudgement:
    """What is known of the files of a benchmark.

    Attributes:
        status: see :data:`FileStatus`.
        checksums: SHA-256 of each file by relative path, of a large group by its folder.
        sources: origins of the known files.
        unknown_files: keys of ``checksums`` that are no known files.
        missing_splits: needed splits of the benchmark without a file.
    """

    status: FileStatus
    checksums: Mapping[str, str]
    sources: tuple[str, ...]
    unknown_files: tuple[str, ...]
    missing_splits: tuple[Split, ...]


def judge_files(
    benchmark_files: BenchmarkFiles, do_counts_agree: bool, needed_splits: Collection[Split] = SPLITS
) -> FileJudgement:
    """Compare the files of a benchmark with the known ones.

    Args:
        do_counts_agree: True if split and counts are the published ones.
        needed_splits: splits without which the files are partial.
    """
    known_sources, sample_digests = _load_known_sources(), _hash_sample()
    checksums: dict[str, str] = {}
    is_invented = False
    for paths in benchmark_files.paths.values():
        digests = {path: _hash_file(path) for path in paths}
        is_invented |= sample_digests.issuperset(digests.values())
        checksums |= _combine_digests(digests, benchmark_files.folder)
    unknown_files = tuple(name for name, digest in checksums.items() if digest not in known_sources)
    missing_splits = tuple(split for split in benchmark_files.missing_splits if split in needed_splits)
    status: FileStatus = "counts agree" if unknown_files else "verified"
    if is_invented:
        status = "invented"
    elif not do_counts_agree:
        status = "differs"
    elif missing_splits:
        status = "partial"
    sources = dict.fromkeys(known_sources[digest] for digest in checksums.values() if digest in known_sources)
    return FileJudgement(status, checksums, tuple(sources), unknown_files, missing_splits)


def worse_status(first: FileStatus, second: FileStatus) -> FileStatus:
    """Return the less comparable of two statuses."""
    return max(first, second, key=FILE_STATUSES.index)


def _combine_digests(digests: Mapping[str, str], folder: str) -> dict[str, str]:
    """Return digests by path relative to ``folder``; of many files one, which their place does not change."""
    if len(digests) <= _GROUP_SIZE:
        return {os.path.relpath(path, folder): digest for path, digest in digests.items()}
    group_folder = os.path.commonpath(digests)
    by_name = sorted((os.path.relpath(path, group_folder), digest) for path, digest in digests.items())
    listing = "".join(f"{digest}  {name}\n" for name, digest in by_name)
    name = f"{os.path.relpath(group_folder, folder)}/ ({len(digests)} files)"
    return {name: hashlib.sha256(listing.encode("utf-8", "surrogateescape")).hexdigest()}


@cache
def _load_known_sources() -> Mapping[str, str]:
    """Return the source of each known digest."""
    sources: dict[str, str] = {}
    source = ""
    for line in (resources.files(__package__) / "known_files.sha256").read_text("utf-8").splitlines():
        if line.startswith("#"):
            source = line.removeprefix("# ")
        else:
            sources[line.split()[0]] = source
    return sources


@cache
def _hash_sample() -> frozenset[str]:
    """Return the digests of the files of the bundled sample; none if it is not installed."""
    sample = Path(__file__).parent.parent / "sample"
    return frozenset(_hash_file(str(path)) for path in sample.rglob("*") if path.is_file())


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
