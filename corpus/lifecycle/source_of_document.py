"""Find the record of a finished document in its source, where that is still at hand."""

from __future__ import annotations

import os
from collections.abc import Sequence

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.lifecycle.stage import make_reader
from bioshards.corpus.manifest import InputFile
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_config import TextConfig


def read_source_record(
    storage: Storage, inputs: Sequence[InputFile], document_config: TextConfig, file: str, position: int
) -> SourceRecord:
    """Read the record of a document, with the document that the config makes of it.

    Args:
        inputs: as the manifest lists them.
        file: name of the source file, as the document has it.
        position: 0-based index of the record in the file.

    Raises:
        InputNotFoundError: the source is not where it was, or has changed.
        BadFileError: it cannot be read.
    """
    path = next((one.path for one in inputs if file == one.file or file.startswith(f"{one.file}/")), None)
    if path is None:  # of many articles, a file each
        path, position = _find_part(storage, inputs, file), 0
    if not storage.exists(path):
        raise InputNotFoundError(f"the source is not at hand, there is no {path}")
    source = SourceFile(0, 0, os.path.basename(path), path, 0, "")
    for record in make_reader(document_config, False).read_records(storage, source):
        if record.position == position:
            return record
    raise InputNotFoundError(f"{path} has no record {position}: it has changed since the run")


def _find_part(storage: Storage, inputs: Sequence[InputFile], file: str) -> str:
    """Return the path of an article in a folder, or in a mirror with the list of what was selected."""
    for entry in inputs:
        folder, _, name = entry.path.rpartition("/")
        in_mirror = f"{folder.removesuffix('selected')}xml/{name.partition('.')[0]}/{file}"
        for path in (f"{folder}/{file}", in_mirror):
            if storage.exists(path):
                return path
    return file
