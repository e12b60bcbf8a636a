"""Find text files in the inputs; each is one source, and one group of shards."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Final

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.storage.source_file import (
    UNORDERED_YEAR,
    InputListing,
    OnNotice,
    SourceFile,
    ignore_notice,
    list_input_files,
)
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_files.raw_records import FORMATS

EXTENSIONS: Final = tuple(FORMATS)
_WANTED: Final = ".jsonl, .json, .ndjson and .txt, also with .gz, .bz2, .xz or .zst, and .parquet"


def discover_sources(
    storage: Storage, inputs: Iterable[str], on_notice: OnNotice = ignore_notice
) -> list[SourceFile]:
    """Find all text files that the inputs match, each once, ordered by name.

    The name of a file, which ids may contain, is its path below the input's folder, so that files of one
    name in different folders stay apart and a moved folder keeps its ids.

    Args:
        storage: where the files are.
        inputs: folders, globs and files.
        on_notice: is told of files that are not read.

    Raises:
        InputNotFoundError: an input matches no text file.
        InputUnreadableError: a folder cannot be listed, or a file's name is not in UTF-8.
    """
    sources_by_path: dict[str, SourceFile] = {}
    for input_path in inputs:
        listing = list_input_files(storage, input_path, EXTENSIONS, on_notice)
        listing.check_names()
        files = [info for info in listing.files if info.path.lower().endswith(EXTENSIONS)]
        is_folder = storage.is_folder(input_path)
        if not files:
            raise InputNotFoundError(
                f"--input {input_path} {'has' if is_folder else 'names'} no text file. Give a folder, a file "
                f"or a quoted glob of {_WANTED}."
            )
        others = [info.path for info in listing.files if not info.path.lower().endswith(EXTENSIONS)]
        if notice := InputListing(input_path, files, [*listing.others, *others]).describe_others(_WANTED):
            on_notice(notice)
        root = input_path if is_folder else re.split(r"[*?\[]", input_path)[0].rpartition("/")[0]
        root = root.rstrip("/") if "://" in root else os.path.abspath(root)
        for info in files:
            is_below = info.path.startswith(f"{root}/")
            name = info.path.removeprefix(f"{root}/") if is_below else os.path.basename(info.path)
            source = SourceFile(
                UNORDERED_YEAR,
                0,
                name.encode(errors="replace").decode(),
                info.path,
                info.size,
                info.stamp,
            )
            former = sources_by_path.get(info.path, source)
            # Of two inputs that contain the file, the upper one names it, whatever their order.
            sources_by_path[info.path] = max(source, former, key=lambda item: len(item.name))
    return sorted(sources_by_path.values())
