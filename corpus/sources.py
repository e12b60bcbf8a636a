"""Input files and the order in which PubMed means them to be applied.

NLM numbers a year's baseline and update files in one series (``pubmed26n0001.xml.gz``); what a
later file says of a citation replaces what an earlier one said, so everything hangs on this order.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from .errors import InputNotFoundError
from .files import FileInfo, LocalStorage

_NUMBERED_NAME = re.compile(r"(\d\d)n(\d{4,6})(?!\d)")
_SAMPLE_NAME = re.compile(r"medsamp20(\d\d)(?!\d)")
_EXTENSIONS: Final = (".xml", ".xml.gz")
UNORDERED_YEAR: Final = 10**9


@dataclass(frozen=True, slots=True, order=True)
class SourcePart:
    """One of the files that a source is made of; ``name`` tells people which."""

    name: str
    path: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """An input file.  Sources sort in the order in which they are applied.

    Attributes:
        year, number: of the file's name, the order key.  NLM's sample sets have a year but no
            number (``medsamp2014.xml``) and come first in their year; a file with neither comes
            after all others, by name.
        name: the file's name, for messages and for a document's origin.
        path: where it is; also the last tie-break, between files of the same name.
        stamp: changes when the file does; '' for a file that should have been fetched and could not be.
        retrieved: when it was fetched and verified, UTC; '' for a file that was given.
        parts: the files of a source that is made of several; its path is then where they lie, and its stamp
            changes with any of them.  ``files``: how many there are, also where parts.py has laid them aside;
            0 for a source that is itself a file.
    """

    year: int
    number: int
    name: str
    path: str
    size: int
    stamp: str
    retrieved_at: str = ""
    parts: tuple[SourcePart, ...] = ()
    num_files: int = 0

    @property
    def is_ordered(self) -> bool:
        """Does the name say where the file belongs?"""
        return self.year < UNORDERED_YEAR

    @property
    def stem(self) -> str:
        """The name without its endings, safe in a file name."""
        stem = re.sub(r"\.xml(\.gz)?(?=\.|$)", "", self.name)
        return re.sub(r"[^A-Za-z0-9_.@-]+", "_", stem).lstrip(".") or "file"


def source_from_file(file_info: FileInfo, retrieved_at: str = "") -> SourceFile:
    """A found file with its order key."""
    name = re.split(r"[/\\]", file_info.path)[-1]
    number_match = _NUMBERED_NAME.search(name)
    sample_match = _SAMPLE_NAME.search(name)
    if number_match:
        key = int(number_match[1]), int(number_match[2])
    elif sample_match:
        key = int(sample_match[1]), 0
    else:
        key = UNORDERED_YEAR, 0
    return SourceFile(
        *key,
        name=name,
        path=file_info.path,
        size=file_info.size,
        stamp=file_info.stamp,
        retrieved_at=retrieved_at,
    )


def discover_sources(storage: LocalStorage, inputs: Iterable[str]) -> list[SourceFile]:
    """All files that the inputs (folders, globs, single files) name, once each, in order.

    A folder gives its ``*.xml`` and ``*.xml.gz`` at any depth, a glob or a path whatever it names.

    Raises:
        InputNotFoundError: an input names nothing.
    """
    sources_by_path: dict[str, SourceFile] = {}
    for input_path in inputs:
        matches = list(list_input_files(storage, input_path, _EXTENSIONS))
        if not matches:
            problem = "has no *.xml or *.xml.gz file" if storage.is_folder(input_path) else "names no file"
            raise InputNotFoundError(
                f"--input {input_path} {problem}. Give a folder, a file or a quoted glob of PubMed XML "
                "(pubmed26n0001.xml.gz ...)."
            )
        for file_info in matches:
            sources_by_path[file_info.path] = source_from_file(file_info)
    return sorted(sources_by_path.values())


def list_input_files(
    storage: LocalStorage, input_path: str, extensions: tuple[str, ...]
) -> Iterator[FileInfo]:
    """The files that an input names: a folder those with one of these endings, at any depth."""
    if storage.is_folder(input_path):
        for file_info in storage.walk(input_path):
            if file_info.path.endswith(extensions):
                yield _make_absolute(file_info)
    else:
        yield from map(_make_absolute, storage.glob(input_path))


def _make_absolute(file_info: FileInfo) -> FileInfo:
    """The same file by its one full path, so that two spellings of it are one input."""
    if "://" in file_info.path:
        return file_info
    return FileInfo(os.path.abspath(file_info.path), file_info.size, file_info.stamp)
