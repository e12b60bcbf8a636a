"""Columns of document shards, and record batches of documents."""

from __future__ import annotations

import datetime
import types
from collections.abc import Iterable, Sequence
from typing import Any, Final, get_args, get_origin, get_type_hints

import pyarrow as pa

from bioshards.corpus.document import ArticleColumns, Document

BATCH_ROWS: Final = 2048
"""Documents in a record batch: 3 to 4 MB of abstracts."""
BATCH_CHARACTERS: Final = 8_000_000
"""Characters in a record batch of longer documents: about 200 articles."""
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

Repetitive columns are plain strings: as dictionaries they are no smaller under zstd, and readers differ in
how they show them.
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
