"""A benchmark on disk: which files it is, how they are read, what their authors' papers count in them.

A set is described as data (sets/), so that ``verify`` can hold every reader against the published counts, and
so that what is missing can be named with the place where it is to be had.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from bioshards.corpus.errors import InputNotFoundError, UserError

from .record_types import LabelledText, Question, Record, Relation, TaggedSentence

Split = Literal["train", "dev", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "dev", "test")
PathsByName = Mapping[str, Sequence[str]]
"""Paths of a layout's files, sorted, by the names that the layout gives them; only what is there."""
RecordsBySplit = Mapping[Split, Sequence[Record]]


class BenchmarkFileError(UserError):
    """A file is not what its set's files are: says which file and line, what is wrong, and what to do."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        location = f"{path}, line {line}" if line else path
        super().__init__(f"{location}: {reason}. Put the authors' file there, or take this one away")


class BenchmarkNotFoundError(UserError):
    """A set, or a part of it, is not in the folder: says what was looked for and where to get it."""


@dataclass(frozen=True, slots=True)
class MissingSplitPolicy:
    """What is done where a file that says how a set is split is not there.

    Attributes:
        note: says so in every result.
        parts: those that then are not the published ones, though together they hold the same.
    """

    note: str
    affected_splits: tuple[Split, ...]


@dataclass(frozen=True, slots=True)
class KnownDiscrepancy:
    """A count that these files have instead of the published one, and why.

    Attributes:
        same: whether the paper's are the same files nonetheless, which it counted otherwise.
    """

    unit: str
    split: str
    actual: int
    reason: str
    is_same_data: bool = False


@dataclass(frozen=True, slots=True)
class FileLayout:
    """One way in which a set lies on disk.

    Attributes:
        files: names for the files, and for each a pattern (``glob``, ``**`` too) below the folder.
        parts: the names of the files that each part needs.
        read: from the paths of what is there to the parts that can be read from it.
        without: of names that no part needs, what is done where they are absent.
        note: what is particular about these files.
        known: where their counts are other than the published ones, and why.
    """

    patterns: Mapping[str, str]
    files_by_split: Mapping[Split, tuple[str, ...]]
    read: Callable[[PathsByName], RecordsBySplit]
    missing_split_policies: Mapping[str, MissingSplitPolicy] = field(
        default_factory=lambda: MappingProxyType({})
    )
    note: str = ""
    known_discrepancies: tuple[KnownDiscrepancy, ...] = ()


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark.

    Attributes:
        name: what the command line calls it.
        title: what papers call it.
        layouts: the ways in which it may lie on disk; the one with most parts is taken, of equals the first.
        counts: by unit (``mentions``, ``sentences``, ``pairs`` ...) and part, what ``count`` should find;
            a part may be several: ``train+dev``.
        count: what to count in a part, by unit.
        source: who published the counts.
        licence, where: of the files, and how to get them.
        pmids: whether ``document`` of its records is a PMID; of a question with snippets of several abstracts
            it is all of theirs, joined by a blank.
    """

    name: str
    title: str
    layouts: tuple[FileLayout, ...]
    published_counts: Mapping[str, Mapping[str, int]]
    count_records: Callable[[Sequence[Record]], Mapping[str, int]]
    counts_source: str
    licence: str
    download_from: str
    has_pmids: bool = False


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """A set in a folder: the layout, its files, and which parts of it are there."""

    benchmark: Benchmark
    folder: str
    layout: FileLayout
    paths: PathsByName
    splits: tuple[Split, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever reads a score of this set has to know."""
        policy_notes = [
            self.layout.missing_split_policies[name].note
            for name in self.layout.missing_split_policies
            if name not in self.paths
        ]
        return tuple(dict.fromkeys(filter(None, (self.layout.note, *policy_notes))))

    @property
    def own_splits(self) -> frozenset[Split]:
        """The parts that are not the published ones, because a list of the split is absent."""
        policies = (
            self.layout.missing_split_policies[name]
            for name in self.layout.missing_split_policies
            if name not in self.paths
        )
        return frozenset(split for policy in policies for split in policy.affected_splits)


def locate_benchmark(folder: str, benchmark: Benchmark) -> BenchmarkFiles | None:
    """Where a set lies in a folder; None: no part of it is there.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not os.path.isdir(folder):
        raise InputNotFoundError(f"there is no folder {folder} with benchmarks: give --benchmarks FOLDER")
    candidates = [_match_layout(folder, benchmark, layout) for layout in benchmark.layouts]
    best = max(candidates, key=lambda candidate: len(candidate.splits))
    return best if best.splits else None


def _match_layout(folder: str, benchmark: Benchmark, layout: FileLayout) -> BenchmarkFiles:
    paths_by_name = {
        name: paths
        for name, pattern in layout.patterns.items()
        if (paths := sorted(glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True)))
    }
    splits = tuple(
        split
        for split in SPLITS
        if split in layout.files_by_split
        and all(name in paths_by_name for name in layout.files_by_split[split])
    )
    return BenchmarkFiles(benchmark, folder, layout, paths_by_name, splits)


def load_records(benchmark_files: BenchmarkFiles) -> RecordsBySplit:
    """The records of all parts that are there.

    Raises:
        BenchmarkFileError: a file cannot be read, or a part is empty.
    """
    records_by_split = benchmark_files.layout.read(benchmark_files.paths)
    for split in benchmark_files.splits:
        if not records_by_split.get(split):
            split_paths = [
                path
                for name in benchmark_files.layout.files_by_split[split]
                for path in benchmark_files.paths[name]
            ]
            raise BenchmarkFileError(
                split_paths[0], None, f"it holds nothing for {split} of {benchmark_files.benchmark.title}"
            )
    return {split: records_by_split[split] for split in benchmark_files.splits}


def compute_checksums(benchmark_files: BenchmarkFiles) -> dict[str, str]:
    """SHA-256 of each file by its path below the folder; of more than 20 one of them all, by their folder."""
    digest_by_path = {}
    for paths in benchmark_files.paths.values():
        digests = {os.path.relpath(path, benchmark_files.folder): _hash_file(path) for path in paths}
        if len(digests) > 20:
            lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
            folder = os.path.dirname(next(iter(digests)))
            digest_by_path[f"{folder}/ ({len(digests)} files)"] = hashlib.sha256(lines.encode()).hexdigest()
        else:
            digest_by_path |= digests
    return digest_by_path


def _hash_file(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def count_by_record_type(records: Sequence[Record]) -> dict[str, int]:
    """How many records a part has, in the words of their kind; readers' sets count more."""
    type_names = {
        TaggedSentence: "sentences",
        LabelledText: "texts",
        Relation: "pairs",
        Question: "questions and passages",
    }
    return dict(Counter(type_names[type(record)] for record in records))
