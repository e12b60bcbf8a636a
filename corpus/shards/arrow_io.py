"""Write and read document shards: Arrow IPC streams that pyarrow and datasets open memory-mapped.

A directory of shards holds ``data-*.arrow`` and the two small JSON files by which Hugging Face's
``datasets.load_from_disk`` finds them.  Shards are streams, not IPC files, because that is what
``datasets`` maps, and uncompressed, because a compressed one would be unpacked into memory.
"""

from __future__ import annotations

import datetime
import hashlib
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa

from bioshards.corpus.document import ArticleColumns, Document
from bioshards.corpus.manifest import (
    DOCUMENT_PIPELINES,
    DocumentsManifest,
    ForeignManifestError,
    ManifestError,
    Shard,
    read_manifest,
)
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage

BATCH_ROWS: Final = 2048
"""Documents in a record batch: 3 to 4 MB of abstracts."""
BATCH_CHARACTERS: Final = 8_000_000
"""Characters in a record batch of longer documents: about 200 articles."""
_MAX_OVERHEAD: Final = 10_000
"""Most bytes of padding and metadata of a record batch in a stream."""
_NESTED_COLUMNS: Final = ("sentences", "sections", "origin")
"""Columns that :func:`record_batch_from_documents` builds from several values of a document."""

DOCUMENT_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("source", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("pmcid", pa.string()),
        pa.field("doi", pa.string()),
        pa.field("version", pa.int16()),
        pa.field("year", pa.int16()),
        pa.field("journal", pa.string()),
        pa.field("article_type", pa.string()),
        pa.field("language", pa.string()),
        pa.field("licence", pa.string()),
        pa.field("retracted", pa.bool_(), nullable=False),
        pa.field("flags", pa.list_(pa.string())),
        pa.field("title", pa.string(), nullable=False),
        pa.field("sentences", pa.list_(pa.string()), nullable=False),
        pa.field("sections", pa.list_(pa.struct([("heading", pa.string()), ("first_sentence", pa.int32())]))),
        pa.field("origin", pa.struct([("file", pa.string()), ("position", pa.int32())])),
    ]
)
"""Columns of every document shard. docs describe each column in words.

Repetitive columns are plain strings: ``datasets.load_from_disk`` decodes dictionary columns into memory
(180 bytes a document), but memory-maps plain ones (measured with datasets 5.2).
"""

_SCALAR_TYPES: Final = {str: pa.string(), int: pa.int32(), bool: pa.bool_(), datetime.date: pa.date32()}


def _arrow_type(hint: Any) -> pa.DataType:
    """Return the type of values with this type hint: tuples are lists, named tuples structs."""
    if hint in _SCALAR_TYPES:
        return _SCALAR_TYPES[hint]
    if get_origin(hint) is tuple:
        return pa.list_(_arrow_type(get_args(hint)[0]))
    if get_origin(hint) is types.UnionType:  # of a type and None: every value may be null
        return _arrow_type(get_args(hint)[0])
    return pa.struct([(name, _arrow_type(field)) for name, field in get_type_hints(hint).items()])


COLUMN_TYPES: Final = {name: _arrow_type(hint) for name, hint in get_type_hints(ArticleColumns).items()}
"""Types of the columns of ``--columns``, in the order of the schema."""


def make_schema(columns: Iterable[str]) -> pa.Schema:
    """Return :data:`DOCUMENT_SCHEMA` with these columns of :data:`COLUMN_TYPES` after its own."""
    return pa.schema([*DOCUMENT_SCHEMA, *(pa.field(name, COLUMN_TYPES[name]) for name in columns)])


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
    """Convert documents to a record batch of a schema of :func:`make_schema`."""
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
            [pa.array(values["file"], pa.string()), pa.array(values["position"], pa.int32())],
            names=["file", "position"],
        ),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


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
                    not rows or writer.size + pending.nbytes + _MAX_OVERHEAD <= max_bytes
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


def read_documents_manifest(
    storage: Storage, folder: str, accepted_pipelines: Sequence[str] = DOCUMENT_PIPELINES
) -> DocumentsManifest:
    """Read the manifest of a finished directory of documents.

    Args:
        accepted_pipelines: pipelines to name in the error message.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: it holds something else, or its manifest is damaged.
    """
    pipeline: str | None
    try:
        manifest = read_manifest(storage, folder)
        if isinstance(manifest, DocumentsManifest):
            return manifest
        pipeline = manifest.pipeline
    except ForeignManifestError as error:
        pipeline = error.pipeline
    origin = f"was made by {pipeline}" if pipeline else "is not of bioshards"
    *other_pipelines, last_pipeline = accepted_pipelines
    raise ManifestError(
        f"{folder} does not hold documents: by its manifest.json it {origin}. Give the --output of "
        f"beam run {', '.join(other_pipelines)} or {last_pipeline}"
    )


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
