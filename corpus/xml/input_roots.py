"""The first look at an input: which pipeline reads files with its root element."""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.corpus.errors import BadFileError, InputNotFoundError
from bioshards.corpus.storage.source_file import open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.element_stream import find_foreign_root


def check_roots(storage: Storage, input_path: str, paths: Sequence[str], pipeline: str) -> None:
    """Check that the first or the last file of an input is not for another pipeline.

    A single other file is left for the run, which rejects it, as one that cannot be read.

    Raises:
        InputNotFoundError: both are.
    """
    foreign = []
    for path in dict.fromkeys((*paths[:1], *paths[-1:])):
        try:
            with open_source(storage, path) as file:
                description = find_foreign_root(file, pipeline)
        except (BadFileError, ValueError):  # a name that no disk takes
            return
        if not description:
            return
        foreign.append(f"{path} {description}")
    if foreign:
        raise InputNotFoundError(f"--input {input_path}: {foreign[0]} reads it")
