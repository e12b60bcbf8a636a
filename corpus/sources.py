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
from .files import Found, LocalFiles

_NUMBERED = re.compile(r"(\d\d)n(\d{4,6})(?!\d)")
_SAMPLE = re.compile(r"medsamp20(\d\d)(?!\d)")
_ENDINGS: Final = (".xml", ".xml.gz")
_LAST: Final = 10**9


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One of the files that a source is made of; ``name`` tells people which."""

    name: str
    path: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True, order=True)
class Source:
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
    retrieved: str = ""
    parts: tuple[Part, ...] = ()
    files: int = 0

    @property
    def ordered(self) -> bool:
        """Does the name say where the file belongs?"""
        return self.year < _LAST

    @property
    def stem(self) -> str:
        """The name without its endings, safe in a file name."""
        stem = re.sub(r"\.xml(\.gz)?(?=\.|$)", "", self.name)
        return re.sub(r"[^A-Za-z0-9_.@-]+", "_", stem).lstrip(".") or "file"


def source(found: Found, retrieved: str = "") -> Source:
    """A found file with its order key."""
    name = re.split(r"[/\\]", found.path)[-1]
    numbered = _NUMBERED.search(name)
    sample = _SAMPLE.search(name)
    if numbered:
        key = int(numbered[1]), int(numbered[2])
    elif sample:
        key = int(sample[1]), 0
    else:
        key = _LAST, 0
    return Source(*key, name=name, path=found.path, size=found.size, stamp=found.stamp, retrieved=retrieved)


def discover(files: LocalFiles, inputs: Iterable[str]) -> list[Source]:
    """All files that the inputs (folders, globs, single files) name, once each, in order.

    A folder gives its ``*.xml`` and ``*.xml.gz`` at any depth, a glob or a path whatever it names.

    Raises:
        InputNotFoundError: an input names nothing.
    """
    found: dict[str, Source] = {}
    for given in inputs:
        here = list(files_of(files, given, _ENDINGS))
        if not here:
            kind = "has no *.xml or *.xml.gz file" if files.is_folder(given) else "names no file"
            raise InputNotFoundError(
                f"--input {given} {kind}. Give a folder, a file or a quoted glob of PubMed XML "
                "(pubmed26n0001.xml.gz ...)."
            )
        for item in here:
            found[item.path] = source(item)
    return sorted(found.values())


def files_of(files: LocalFiles, given: str, endings: tuple[str, ...]) -> Iterator[Found]:
    """The files that an input names: a folder those with one of these endings, at any depth."""
    if files.is_folder(given):
        for item in files.walk(given):
            if item.path.endswith(endings):
                yield _absolute(item)
    else:
        yield from map(_absolute, files.find(given))


def _absolute(found: Found) -> Found:
    """The same file by its one full path, so that two spellings of it are one input."""
    if "://" in found.path:
        return found
    return Found(os.path.abspath(found.path), found.size, found.stamp)
