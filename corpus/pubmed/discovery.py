"""Find PubMed XML files in the inputs and derive their order from their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from bioshards.corpus.errors import InputNotFoundError, shorten_list
from bioshards.corpus.storage.source_file import (
    UNORDERED_YEAR,
    OnNotice,
    SourceFile,
    describe_output,
    ignore_notice,
    list_input_files,
)
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.corpus.xml.input_roots import check_roots

_EXTENSIONS: Final = (".xml", ".xml.gz")
_NUMBERED_NAME = re.compile(r"(\d\d)n(\d{4,6})(?!\d)", re.IGNORECASE)
_SAMPLE_NAME = re.compile(r"medsamp20(\d\d)(?!\d)", re.IGNORECASE)


def source_from_file(file_info: FileInfo, retrieved_at: str = "") -> SourceFile:
    """Create the source of a file; its sort key is the year and number in its name."""
    name = re.split(r"[/\\]", file_info.path)[-1]
    year, number = UNORDERED_YEAR, 0
    if match := _NUMBERED_NAME.search(name):
        year, number = int(match[1]), int(match[2])
    elif match := _SAMPLE_NAME.search(name):
        year = int(match[1])
    return SourceFile(year, number, name, file_info.path, file_info.size, file_info.stamp, retrieved_at)


def discover_sources(
    storage: Storage, inputs: Iterable[str], on_notice: OnNotice = ignore_notice
) -> list[SourceFile]:
    """Find all files that the inputs match, each once, in the order of their numbers.

    A directory contributes its ``*.xml`` and ``*.xml.gz``, in any case, at any depth; a glob or a path, any
    file it matches.

    Args:
        storage: where the files are.
        inputs: directories, globs and files.
        on_notice: is told of files of a directory that are not read, and of links to directories that are.

    Raises:
        InputNotFoundError: an input matches no file.
        InputUnreadableError: a directory cannot be listed, or a file's name is not in UTF-8.
    """
    sources_by_path: dict[str, SourceFile] = {}
    for input_path in inputs:
        listing = list_input_files(storage, input_path, _EXTENSIONS, on_notice)
        listing.check_names()
        if not listing.files:
            problem = "has no *.xml or *.xml.gz file" if storage.is_folder(input_path) else "names no file"
            raise InputNotFoundError(
                f"--input {input_path} {problem}. Give a folder, a file or a quoted glob of PubMed XML "
                f"(pubmed26n0001.xml.gz ...).{describe_output(storage, input_path)}"
            )
        check_roots(storage, input_path, [info.path for info in listing.files], "pubmed_to_shards")
        if notice := listing.describe_others("*.xml and *.xml.gz"):
            on_notice(notice)
        for file_info in listing.files:
            sources_by_path[file_info.path] = source_from_file(file_info)
    return sorted(sources_by_path.values())


def check_numbers(sources: Iterable[SourceFile], other_names: Iterable[str]) -> list[str]:
    """Return notices on missing numbers between local files, and on files of several years.

    Args:
        sources: local files.
        other_names: names of the files of a listing, which are read too.
    """
    local_names = [source.name for source in sources]
    all_numbers = _group_numbers([*local_names, *other_names])
    notices = []
    for series, numbers in sorted(_group_numbers(local_names).items()):
        known = sorted(number for number in all_numbers[series] if min(numbers) <= number <= max(numbers))
        if len(known) <= max(numbers) - min(numbers):
            notices.append(_describe_gaps(series, known))
    if len({series[-2:] for series in all_numbers}) > 1:
        notices.append(_describe_years(all_numbers))
    return notices


def _group_numbers(names: Iterable[str]) -> dict[str, set[int]]:
    """Return the numbers of files by series: what precedes them in the names, ``pubmed26``."""
    numbers_by_series: dict[str, set[int]] = defaultdict(set)
    for name in names:
        if match := _NUMBERED_NAME.search(name):
            numbers_by_series[name[: match.end(1)].lower()].add(int(match[2]))
    return numbers_by_series


def _describe_gaps(series: str, numbers: Sequence[int]) -> str:
    gaps = [(low + 1, high - 1) for low, high in pairwise(numbers) if high > low + 1]
    gap_names = [
        f"{series}n{low:04d}" if low == high else f"{series}n{low:04d} to {series}n{high:04d}"
        for low, high in gaps
    ]
    num_missing = sum(high - low + 1 for low, high in gaps)
    verb, pronoun = ("is", "its") if num_missing == 1 else ("are", "their")
    return (
        f"The inputs have no {shorten_list(gap_names)}: {num_missing:,} of the files up to "
        f"{series}n{numbers[-1]:04d} {verb} missing. The result is without {pronoun} citations, {pronoun} "
        f"revisions and {pronoun} deletions: older versions of citations stay, and deleted ones"
    )


def _describe_years(numbers_by_series: Mapping[str, set[int]]) -> str:
    counts = [
        f"{series} ({len(numbers):,} {'file' if len(numbers) == 1 else 'files'})"
        for series, numbers in sorted(numbers_by_series.items(), key=lambda item: item[0][-2:])
    ]
    years = len({series[-2:] for series in numbers_by_series})
    return (
        f"The inputs are of {years} years, {', '.join(counts[:-1])} and {counts[-1]}. A baseline has all "
        "citations of the years before, so that the version of the later year is kept, and citations that "
        "NLM has removed since then stay. Give the files of one year, unless you mean this"
    )
