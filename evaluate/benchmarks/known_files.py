"""Tell benchmark files by SHA-256: those of their authors, and those of the bundled, invented sample.

``known_files.sha256`` lists files as ``sha256sum`` does, below the repository that they are of. A digest is
entered when the file has been compared with that repository.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final, Literal, get_args

from bioshards.evaluate.benchmarks.definition import SPLITS, BenchmarkFiles, Split

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
