"""Source files and their order.

NLM numbers the baseline and update files of a year in one series (``pubmed26n0001.xml.gz``).  A later file
replaces the citations of earlier ones, so that the order decides which version of a citation is kept.
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
"""Year of a file whose name has none: sorts after all others."""


@dataclass(frozen=True, slots=True, order=True)
class SourcePart:
    """One file of a source that consists of several; ``name`` is its name in messages."""

    name: str
    path: str
    size: int
    stamp: str


@dataclass(frozen=True, slots=True, order=True)
class SourceFile:
    """A source file, or a group of files that is read as one.  Sources sort in the order of application.

    Attributes:
        year: year in the file name.
        number: number in the file name.  NLM's sample sets have a year and no number (``medsamp2014.xml``):
            they come first in their year.  A file without year and number comes after all others, by name.
        name: file name, used in messages and in the origin of documents.
        path: local path or URL; the last sort key.
        size: in bytes.
        stamp: changes when the file changes; '' if the file could not be fetched.
        retrieved_at: UTC time at which it was fetched and verified; '' for a local input.
        parts: files of a source that consists of several.  Their folder is ``path``, and ``stamp`` changes
            with any of them.
        num_files: number of parts, even if part_lists.py has stored them elsewhere; 0 for a single file.
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
        """Return True if the file name has a year."""
        return self.year < UNORDERED_YEAR

    @property
    def stem(self) -> str:
        """Return the name without its extensions, restricted to characters that are safe in file names."""
        stem = re.sub(r"\.xml(\.gz)?(?=\.|$)", "", self.name)
        return re.sub(r"[^A-Za-z0-9_.@-]+", "_", stem).lstrip(".") or "file"


def list_input_files(storage: Storage, input_path: str, extensions: tuple[str, ...]) -> Iterator[FileInfo]:
    """Yield the files of an input: a path, a glob, or a folder.

    Args:
        storage: where the input is.
        input_path: value of ``--input``.
        extensions: of a folder, the files with these extensions are read, at any depth.
    """
    if storage.is_folder(input_path):
        for file_info in storage.walk(input_path):
            if file_info.path.endswith(extensions):
                yield _make_absolute(file_info)
    else:
        yield from map(_make_absolute, storage.glob(input_path))


def _make_absolute(file_info: FileInfo) -> FileInfo:
    """Return the file under its absolute path, so that two spellings of a path are one input."""
    if "://" in file_info.path:
        return file_info
    return FileInfo(os.path.abspath(file_info.path), file_info.size, file_info.stamp)


@contextlib.contextmanager
def open_source(storage: Storage, path: str) -> Iterator[BinaryIO]:
    """Open a source file.

    Raises:
        BadFileError: the file cannot be opened, or, inside the block, cannot be read.
        TransientStorageError: the object store does not answer.
    """
    try:
        with storage.open(path) as file:
            yield file
    except TransientStorageError:
        raise
    except OSError as error:
        raise bad_file_from_os_error(error) from error


def bad_file_from_os_error(error: OSError) -> BadFileError:
    """Return the error for a file that cannot be read."""
    return BadFileError("unreadable", f"cannot be read: {error.strerror or error}")


def is_unchanged(storage: Storage, source: SourceFile) -> bool:
    """Return True if the source has not changed since it was discovered."""

    def has_same_stamp(item: SourceFile | SourcePart) -> bool:
        return [info.stamp for info in storage.glob(item.path)] == [item.stamp]

    return (
        all(prefetch_map(storage, has_same_stamp, source.parts)) if source.parts else has_same_stamp(source)
    )
