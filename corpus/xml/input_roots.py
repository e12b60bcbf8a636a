"""The first look at an input: which pipeline reads files with its root element."""

from __future__ import annotations

from bioshards.corpus.errors import BadFileError, InputNotFoundError
from bioshards.corpus.storage.source_file import open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.element_stream import find_foreign_root


def check_root(storage: Storage, input_path: str, path: str, pipeline: str) -> None:
    """Check that the first file of an input is not one for another pipeline.

    A file that cannot be read is left for the run, which rejects it.

    Raises:
        InputNotFoundError: it is.
    """
    try:
        with open_source(storage, path) as file:
            foreign = find_foreign_root(file, pipeline)
    except BadFileError:
        return
    if foreign:
        raise InputNotFoundError(f"--input {input_path}: {path} {foreign} reads it")
