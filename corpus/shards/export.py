"""Export documents as plain text or JSON lines; the shards are Parquet already."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Final, Literal

import pyarrow as pa

from bioshards.corpus.storage.storage_protocol import Storage

ExportFormat = Literal["text", "jsonl"]
MAX_FILE_BYTES: Final = 256 << 20
"""Bytes of documents in memory after which the next file of an export begins."""
_SUFFIXES: Final[dict[ExportFormat, str]] = {"text": "txt.gz", "jsonl": "jsonl.gz"}


def format_documents(batch: pa.RecordBatch, export_format: ExportFormat) -> str:
    """Return documents as text or JSON lines.

    Text has a sentence a line and a blank line after each document, as the data builders of BERT, ELECTRA and
    ALBERT read it. JSON lines have all columns; dates are ISO 8601.
    """
    if export_format == "text":
        return "".join("\n".join(sentences) + "\n\n" for sentences in batch["sentences"].to_pylist())
    return "".join(
        json.dumps(document, ensure_ascii=False, default=str) + "\n" for document in batch.to_pylist()
    )


def export_files(
    storage: Storage,
    batches: Iterable[pa.RecordBatch],
    folder: str,
    export_format: ExportFormat,
    max_file_bytes: int = MAX_FILE_BYTES,
) -> list[str]:
    """Write documents to compressed files of a folder, ``data-00000.jsonl.gz`` and following.

    Args:
        batches: the documents.
        export_format: format of the files.
        max_file_bytes: size in memory of the documents of a file; its last batch may exceed it.

    Returns:
        The paths of the files.
    """
    paths: list[str] = []
    iterator = iter(batches)
    batch = next(iterator, None)
    while batch is not None:
        paths.append(f"{folder}/data-{len(paths):05d}.{_SUFFIXES[export_format]}")
        num_bytes = 0
        with (
            storage.write(paths[-1]) as file,
            gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as stream,
        ):
            while batch is not None and num_bytes < max_file_bytes:
                stream.write(format_documents(batch, export_format).encode())
                num_bytes += batch.nbytes
                batch = next(iterator, None)
    return paths
