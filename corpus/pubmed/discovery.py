"""Find PubMed XML files in the inputs and derive their order from their names."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.storage.source_file import (
    UNORDERED_YEAR,
    OnNotice,
    SourceFile,
    ignore_notice,
    list_input_files,
)
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage


def source_from_file(file_info: FileInfo, retrieved_at: str = "") -> SourceFile:
    """Create the source of a file; its sort key is the year and number in its name."""
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
        InputUnreadableError: a directory cannot be listed.
    """
    sources_by_path: dict[str, SourceFile] = {}
    for input_path in inputs:
        listing = list_input_files(storage, input_path, _EXTENSIONS, on_notice)
        if not listing.files:
            problem = "has no *.xml or *.xml.gz file" if storage.is_folder(input_path) else "names no file"
            raise InputNotFoundError(
                f"--input {input_path} {problem}. Give a folder, a file or a quoted glob of PubMed XML "
                "(pubmed26n0001.xml.gz ...)."
            )
        if notice := listing.describe_others("*.xml or *.xml.gz"):
            on_notice(notice)
        for file_info in listing.files:
            sources_by_path[file_info.path] = source_from_file(file_info)
    return sorted(sources_by_path.values())


_NUMBERED_NAME = re.compile(r"(\d\d)n(\d{4,6})(?!\d)", re.IGNORECASE)


_SAMPLE_NAME = re.compile(r"medsamp20(\d\d)(?!\d)", re.IGNORECASE)


_EXTENSIONS: Final = (".xml", ".xml.gz")
