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

from .records import Question, Record, Relation, Sentence, Text

Part = Literal["train", "dev", "test"]
PARTS: Final[tuple[Part, ...]] = ("train", "dev", "test")
Files = Mapping[str, Sequence[str]]
"""Paths of a layout's files, sorted, by the names that the layout gives them; only what is there."""
Parts = Mapping[Part, Sequence[Record]]


class BenchmarkFileError(UserError):
    """A file is not what its set's files are: says which file and line, what is wrong, and what to do."""

    def __init__(self, path: str, line: int | None, why: str) -> None:
        place = f"{path}, line {line}" if line else path
        super().__init__(f"{place}: {why}. Put the authors' file there, or take this one away")


class BenchmarkNotFoundError(UserError):
    """A set, or a part of it, is not in the folder: says what was looked for and where to get it."""


@dataclass(frozen=True, slots=True)
class Without:
    """What is done where a file that says how a set is split is not there.

    Attributes:
        note: says so in every result.
        parts: those that then are not the published ones, though together they hold the same.
    """

    note: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """A count that these files have instead of the published one, and why.

    Attributes:
        same: whether the paper's are the same files nonetheless, which it counted otherwise.
    """

    unit: str
    part: str
    found: int
    why: str
    same: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """One way in which a set lies on disk.

    Attributes:
        files: names for the files, and for each a pattern (``glob``, ``**`` too) below the folder.
        parts: the names of the files that each part needs.
        read: from the paths of what is there to the parts that can be read from it.
        without: of names that no part needs, what is done where they are absent.
        note: what is particular about these files.
        known: where their counts are other than the published ones, and why.
    """

    files: Mapping[str, str]
    parts: Mapping[Part, tuple[str, ...]]
    read: Callable[[Files], Parts]
    without: Mapping[str, Without] = field(default_factory=lambda: MappingProxyType({}))
    note: str = ""
    known: tuple[Known, ...] = ()


@dataclass(frozen=True, slots=True)
class DataSet:
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
    layouts: tuple[Layout, ...]
    counts: Mapping[str, Mapping[str, int]]
    count: Callable[[Sequence[Record]], Mapping[str, int]]
    source: str
    licence: str
    where: str
    pmids: bool = False


@dataclass(frozen=True, slots=True)
class Located:
    """A set in a folder: the layout, its files, and which parts of it are there."""

    set: DataSet
    folder: str
    layout: Layout
    files: Files
    parts: tuple[Part, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What whoever reads a score of this set has to know."""
        missing = [self.layout.without[name].note for name in self.layout.without if name not in self.files]
        return tuple(dict.fromkeys(filter(None, (self.layout.note, *missing))))

    @property
    def own_split(self) -> frozenset[Part]:
        """The parts that are not the published ones, because a list of the split is absent."""
        missing = (self.layout.without[name] for name in self.layout.without if name not in self.files)
        return frozenset(part for one in missing for part in one.parts)


def locate(folder: str, dataset: DataSet) -> Located | None:
    """Where a set lies in a folder; None: no part of it is there.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    if not os.path.isdir(folder):
        raise InputNotFoundError(f"there is no folder {folder} with benchmarks: give --data FOLDER")
    found = [_located(folder, dataset, layout) for layout in dataset.layouts]
    best = max(found, key=lambda one: len(one.parts))
    return best if best.parts else None


def _located(folder: str, dataset: DataSet, layout: Layout) -> Located:
    files = {
        name: paths
        for name, pattern in layout.files.items()
        if (paths := sorted(glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True)))
    }
    parts = tuple(
        part for part in PARTS if part in layout.parts and all(name in files for name in layout.parts[part])
    )
    return Located(dataset, folder, layout, files, parts)


def load(located: Located) -> Parts:
    """The records of all parts that are there.

    Raises:
        BenchmarkFileError: a file cannot be read, or a part is empty.
    """
    parts = located.layout.read(located.files)
    for part in located.parts:
        if not parts.get(part):
            names = [path for name in located.layout.parts[part] for path in located.files[name]]
            raise BenchmarkFileError(names[0], None, f"it holds nothing for {part} of {located.set.title}")
    return {part: parts[part] for part in located.parts}


def checksums(located: Located) -> dict[str, str]:
    """SHA-256 of each file by its path below the folder; of more than 20 one of them all, by their folder."""
    found = {}
    for paths in located.files.values():
        digests = {os.path.relpath(path, located.folder): _sha256(path) for path in paths}
        if len(digests) > 20:
            lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
            folder = os.path.dirname(next(iter(digests)))
            found[f"{folder}/ ({len(digests)} files)"] = hashlib.sha256(lines.encode()).hexdigest()
        else:
            found |= digests
    return found


def _sha256(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def size(records: Sequence[Record]) -> dict[str, int]:
    """How many records a part has, in the words of their kind; readers' sets count more."""
    names = {Sentence: "sentences", Text: "texts", Relation: "pairs", Question: "questions and passages"}
    return dict(Counter(names[type(record)] for record in records))
