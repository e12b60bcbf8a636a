"""Input files and the order in which PubMed means them to be applied.

NLM numbers a year's baseline and update files in one series (``pubmed26n0001.xml.gz``); what a
later file says of a citation replaces what an earlier one said, so everything hangs on this order.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from bioshards.corpus.errors import BadFileError, TransientStorageError

from .parallel import prefetch_map
from .storage_protocol import FileInfo, Storage

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
            changes with any of them.  ``files``: how many there are, also where part_lists.py has laid them
                aside;
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


def list_input_files(storage: Storage, input_path: str, extensions: tuple[str, ...]) -> Iterator[FileInfo]:
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


@contextlib.contextmanager
def open_source(storage: Storage, path: str) -> Iterator[BinaryIO]:
    """An open file.

    Raises:
        BadFileError: it cannot be opened, or, while it is looked at, not read.
        TransientStorageError: not the file's fault.
    """
    try:
        with storage.open(path) as file:
            yield file
    except TransientStorageError:
        raise
    except OSError as error:
        raise bad_file_from_os_error(error) from error


def bad_file_from_os_error(error: OSError) -> BadFileError:
    """What is said of a file that cannot be read."""
    return BadFileError("unreadable", f"cannot be read: {error.strerror or error}")


def is_unchanged(storage: Storage, source: SourceFile) -> bool:
    """Is the source as it was when it was found?"""

    def has_same_stamp(item: SourceFile | SourcePart) -> bool:
        return [info.stamp for info in storage.glob(item.path)] == [item.stamp]

    return (
        all(prefetch_map(storage, has_same_stamp, source.parts)) if source.parts else has_same_stamp(source)
    )
