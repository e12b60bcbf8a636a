"""Source files and their order.

NLM numbers the baseline and update files of a year in one series (``pubmed26n0001.xml.gz``).  A later file
replaces the citations of earlier ones, so that the order decides which version of a citation is kept.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, TypeAlias

from bioshards.corpus import progress_notes
from bioshards.corpus.errors import (
    BadFileError,
    DiskFullError,
    InputUnreadableError,
    TransientStorageError,
    shorten_list,
)
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import PARTIAL_PREFIX, TEMPORARY_PREFIX, FileInfo, Storage

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
        num_files: number of parts, even if these are in a list elsewhere (lifecycle/inputs.py); 0 for a
            single file.
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
        return stem_from_name(self.name)


def stem_from_name(name: str) -> str:
    """Return the stem of a source with this name."""
    stem = re.sub(r"\.xml(\.gz)?(?=\.|$)", "", name)
    return re.sub(r"[^A-Za-z0-9_.@-]+", "_", stem).lstrip(".") or "file"


OnNotice: TypeAlias = Callable[[str], None]
"""Is called with a message on the inputs for the person."""


def ignore_notice(notice: str) -> None:
    """Do nothing about a notice."""


@dataclass(frozen=True, slots=True)
class InputListing:
    """The files of an input.

    Attributes:
        input_path: value of ``--input``.
        files: the files to read.
        others: paths of the other files of a folder; of hidden files, those that would be read otherwise.
    """

    input_path: str
    files: list[FileInfo]
    others: list[str]

    def check_names(self) -> None:
        """Check that the names of the files to read are in UTF-8, for documents that name their file.

        Raises:
            InputUnreadableError: one is not.
        """
        for info in self.files:
            try:
                os.path.basename(info.path).encode()
            except UnicodeEncodeError:
                shown = os.fsencode(info.path).decode(errors="backslashreplace")
                raise InputUnreadableError(
                    f"--input {self.input_path}: the name of {shown} is not in UTF-8, and documents name "
                    "their file. Rename it"
                ) from None

    def describe_others(self, wanted: str) -> str:
        """Return how many other files there are, by extension or as hidden; '' if there are none.

        Checksums of the files to read are not counted.

        Args:
            wanted: what is read, for the message.
        """
        checksum_paths = {f"{file_info.path}.md5" for file_info in self.files}
        others = [path for path in self.others if path not in checksum_paths]
        if not others:
            return ""
        kind_counts = Counter(map(_describe_kind, others))
        kinds = [
            f"{count:,} {kind}"
            for kind, count in sorted(kind_counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        plural = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
        return f"--input {self.input_path}: {plural} not read (only {wanted} are): {shorten_list(kinds)}"


def _is_hidden(path: str) -> bool:
    return os.path.basename(path).startswith(".")


def _describe_kind(path: str) -> str:
    extension = os.path.splitext(path)[1].lower()
    return "hidden" if _is_hidden(path) else f"*{extension}" if extension else "without an extension"


def list_input_files(
    storage: Storage,
    input_path: str,
    extensions: tuple[str, ...],
    on_notice: OnNotice = ignore_notice,
) -> InputListing:
    """List the files of an input: a path, a glob, or a folder.

    Args:
        input_path: value of ``--input``.
        extensions: of a folder, the files with these extensions, in any case, are read, at any depth.
        on_notice: is told of folders that are found twice.

    Raises:
        InputUnreadableError: a folder cannot be listed, a link that may be one leads nowhere, or a file is a
            pipe or a device.
    """

    def report_repeated(path: str, first_path: str) -> None:
        on_notice(f"--input {input_path}: {path} is the same folder as {first_path} and is read once")

    with explain_unreadable(f"--input {input_path}"):
        if not storage.is_folder(input_path):
            files = [_make_absolute(info) for info in storage.glob(input_path)]
            for info in files:
                _check_readable(input_path, info)
            return InputListing(input_path, files, [])
        infos = [_make_absolute(info) for info in storage.walk(input_path, report_repeated, True)]
    others = []
    files = []
    for info in infos:
        has_extension = info.path.lower().endswith(extensions)
        if _is_hidden(info.path):
            is_temporary = os.path.basename(info.path).startswith((TEMPORARY_PREFIX, PARTIAL_PREFIX))
            others += [info.path] if has_extension and not is_temporary else []
        elif has_extension:
            _check_readable(input_path, info)
            files.append(info)
        else:
            _check_link(input_path, info.path)
            others.append(info.path)
    return InputListing(input_path, files, others)


@contextlib.contextmanager
def explain_unreadable(name: str) -> Iterator[None]:
    """Turn the error of a folder that cannot be listed into one that says what to do.

    Args:
        name: what is listed, in the message.

    Raises:
        InputUnreadableError: inside the block, a folder cannot be listed.
    """
    try:
        yield
    except TransientStorageError:
        raise
    except OSError as error:
        raise InputUnreadableError(
            f"{name}: {error.filename or 'a folder'} cannot be read ({error.strerror or error}), so that its "
            "files would be missing. Permit this user to read it, or give the folders and files beside it"
        ) from error


def _check_link(input_path: str, path: str) -> None:
    """Check that a file is not a broken link, which may have been one to a folder.

    Raises:
        InputUnreadableError: it is.
    """
    if "://" not in path and os.path.islink(path) and not os.path.exists(path):
        raise InputUnreadableError(
            f"--input {input_path}: {path} is a link to {os.readlink(path)}, which does not exist: if it is "
            "a folder, its files would be missing. Restore what it links to, or remove the link"
        )


def describe_output(storage: Storage, input_path: str) -> str:
    """Return a sentence on a folder without files to read that a run has written; '' on another folder."""
    if not storage.exists(f"{input_path.rstrip('/')}/manifest.json"):
        return ""
    return " It is an output of bioshards, by its manifest.json: give the files that it was made from."


def _check_readable(input_path: str, info: FileInfo) -> None:
    """Check that a file is no pipe or device, which has no end or waits.

    Raises:
        InputUnreadableError: it is one.
    """
    if info.size or "://" in info.path:  # of files on a disk, only an empty one is looked at again
        return
    if os.path.exists(info.path) and not os.path.isfile(info.path):
        raise InputUnreadableError(
            f"--input {input_path}: {info.path} is a pipe or a device. Write its data to a file, and give it"
        )


def _make_absolute(file_info: FileInfo) -> FileInfo:
    """Return the file under its absolute path, so that two spellings of a path are one input."""
    if "://" in file_info.path:
        return file_info
    return FileInfo(os.path.abspath(file_info.path), file_info.size, file_info.stamp)


def list_typed_folders(paths: Iterable[str]) -> dict[str, str]:
    """Return the folders of relative paths and globs as they were typed, by their absolute paths."""
    typed_folders = {}
    for path in paths:
        if "://" not in path and not os.path.isabs(path):
            start = re.split(r"[*?\[]", path)[0]
            folder = path if start == path else os.path.dirname(start)
            typed_folders[os.path.abspath(folder)] = folder.rstrip("/") or "."
    return typed_folders


SAMPLE_FOLDER: Final = "bioshards/corpus/sample"
"""Stands for the folder of the bundled sample in paths that are published."""


def replace_folder(path: str, replacements: Mapping[str, str]) -> str:
    """Return a path with the first of these folders that holds it replaced; unchanged if none does."""
    for folder, replacement in replacements.items():
        if f"{path}/".startswith(f"{folder}/"):
            return replacement + path[len(folder) :]
    return path


@contextlib.contextmanager
def open_source(storage: Storage, path: str) -> Iterator[BinaryIO]:
    """Open a source file.

    Raises:
        BadFileError: the file cannot be opened, or, inside the block, cannot be read.
        TransientStorageError: the object store does not answer.
    """
    try:
        with storage.open(path) as file:
            yield progress_notes.count_reads(file)
    except (DiskFullError, TransientStorageError):
        raise
    except OSError as error:
        raise BadFileError("unreadable", f"cannot be read: {error.strerror or error}") from error


def is_unchanged(storage: Storage, source: SourceFile) -> bool:
    """Return True if the source has not changed since it was discovered."""

    def has_same_stamp(item: SourceFile | SourcePart) -> bool:
        return [info.stamp for info in storage.glob(item.path)] == [item.stamp]

    return (
        all(prefetch_map(storage, has_same_stamp, source.parts)) if source.parts else has_same_stamp(source)
    )
