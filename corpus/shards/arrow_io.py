"""Write and read document shards: Arrow IPC streams that pyarrow and datasets open memory-mapped.

A directory of shards holds ``data-*.arrow`` and the two small JSON files by which Hugging Face's
``datasets.load_from_disk`` finds them.  Shards are streams, not IPC files, because that is what
``datasets`` maps, and uncompressed, because a compressed one would be unpacked into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from bioshards.corpus.document import ArticleColumns, Document
from bioshards.corpus.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.manifest import DocumentsManifest, ManifestError, read_manifest
from bioshards.corpus.manifest import Shard as Shard
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage

BATCH_ROWS: Final = 2048
"""Documents in a record batch: 3 to 4 MB of abstracts."""
BATCH_CHARACTERS: Final = 8_000_000
"""Characters in a record batch of longer documents: about 200 articles."""


_NESTED_COLUMNS: Final = ("sentences", "sections", "origin")
"""Columns that :func:`record_batch_from_documents` builds from several values of a document."""


def flatten_lists(rows: Iterable[list[Any]]) -> tuple[pa.Array, list[Any]]:
    """Flatten a list column: return offsets (int32) and values."""
    offsets = [0]
    flat: list[Any] = []
    for values in rows:
        flat += values
        offsets.append(len(flat))
    return pa.array(offsets, pa.int32()), flat


def transpose(rows: Sequence[tuple[Any, ...]], num_columns: int) -> list[tuple[Any, ...]]:
    """Return the columns of rows, which may be none."""
    return list(zip(*rows, strict=True)) or [()] * num_columns


def record_batch_from_documents(
    documents: list[Document], schema: pa.Schema = DOCUMENT_SCHEMA
) -> pa.RecordBatch:
    """Convert documents to a record batch of a schema of :func:`~bioshards.corpus.document.make_schema`."""
    values = dict(zip(Document._fields, transpose(documents, len(Document._fields)), strict=True))
    chosen = transpose(values["columns"], len(ArticleColumns._fields))
    values |= zip(ArticleColumns._fields, chosen, strict=True)
    sentence_offsets, sentences = flatten_lists(values["sentences"])
    section_offsets, sections = flatten_lists(values["sections"])
    # Columns of the same name and type as an attribute of the document need no line here.
    columns = {
        field.name: pa.array(values[field.name], field.type)
        for field in schema
        if field.name not in _NESTED_COLUMNS
    }
    columns |= {
        "sentences": pa.ListArray.from_arrays(sentence_offsets, pa.array(sentences, pa.string())),
        "sections": pa.ListArray.from_arrays(
            section_offsets,
            pa.StructArray.from_arrays(
                [
                    pa.array([heading for heading, _ in sections], pa.string()),
                    pa.array([first for _, first in sections], pa.int32()),
                ],
                names=["heading", "first_sentence"],
            ),
        ),
        "origin": pa.StructArray.from_arrays(
            [
                pa.array(values["file"], pa.string()),
                pa.array(values["position"], pa.int32()),
            ],
            names=["file", "position"],
        ),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _max_stream_bytes(record_batch: pa.RecordBatch) -> int:
    """Return an upper bound of the bytes of a batch in a stream: buffers, padding and metadata."""
    return int(record_batch.nbytes) + 10_000


def write_shards(
    storage: Storage,
    folder: str,
    stem: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    max_bytes: int,
) -> list[Shard]:
    """Write record batches to ``data-STEM-00000.arrow`` and following shards.

    Args:
        stem: part of the file names.
        batches: record batches in order.
        schema: schema of the batches.
        max_bytes: size limit of a shard; only a shard of a single batch may exceed it.
    """
    shards: list[Shard] = []
    batch_iterator = iter(batches)
    pending = next(batch_iterator, None)
    while pending is not None:
        name = f"data-{stem}-{len(shards):05d}.arrow"
        rows = 0
        with storage.write(f"{folder}/{name}") as file:
            writer = HashingWriter(file)
            with pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream:
                while pending is not None and (
                    not rows or writer.size + _max_stream_bytes(pending) <= max_bytes
                ):
                    stream.write_batch(pending)
                    rows += pending.num_rows
                    pending = next(batch_iterator, None)
        shards.append(Shard(name, rows, writer.size, writer.sha256))
    return shards


def write_dataset_info(storage: Storage, folder: str, shards: list[Shard]) -> None:
    """Write the files by which ``datasets.load_from_disk`` finds the shards."""
    fingerprint = combine_digests(shard.sha256 for shard in shards)
    state: dict[str, object] = {
        "_data_files": [{"filename": shard.file} for shard in shards],
        "_fingerprint": fingerprint[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    contents = {"dataset_info.json": {}, "state.json": state}
    parallel_for_each(storage, lambda name: storage.write_json(f"{folder}/{name}", contents[name]), contents)


def combine_digests(sha256s: Iterable[str]) -> str:
    """Return the SHA-256 of the SHA-256 sums of shards, in order."""
    return hashlib.sha256("".join(sha256s).encode()).hexdigest()


def read_documents_manifest(files: Storage, folder: str) -> DocumentsManifest:
    """Read the manifest of a finished directory of documents.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: it holds something else, or its manifest is damaged.
    """
    manifest = read_manifest(files, folder)
    if not isinstance(manifest, DocumentsManifest):
        raise ManifestError(
            f"{folder} does not hold documents: by its manifest.json it was made by {manifest.pipeline}. "
            "Give the --output of beam run pubmed_to_shards, pmc_to_shards or text_to_shards",
            f"{folder}/manifest.json",
        )
    return manifest


def read_directory(
    storage: Storage, folder: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield all record batches of a finished directory, in the order of its shards.

    Args:
        columns: names of the columns to read, in the order of the schema; None for all.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: it does not hold documents, or its manifest is damaged.
    """
    yield from read_shards(storage, folder, read_documents_manifest(storage, folder).outputs, columns)


def read_shards(
    storage: Storage, folder: str, manifest_entries: Iterable[Shard], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of some shards of a directory, with these columns only, or all for None."""
    for shard in manifest_entries:
        yield from read_file(storage, f"{folder}/{shard.file}", columns)


def read_file(storage: Storage, path: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of one file, with these columns only, or all for None."""
    with open_mapped(storage, path) as file:
        schema = pa.ipc.read_schema(file)
        file.seek(0)
        names = schema.names if columns is None else columns
        options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
        with pa.ipc.open_stream(file, options=options) as stream:
            yield from stream


def open_mapped(storage: Storage, path: str) -> Any:
    """Open a file of Arrow data, memory-mapped if it is local, so that only the columns in use are read."""
    return storage.open(path) if "://" in path else pa.memory_map(path)
