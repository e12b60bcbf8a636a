"""The schema of document shards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

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

_STRINGS: Final = pa.list_(pa.string())
_QUALIFIERS: Final = pa.list_(pa.struct([("qualifier", pa.string()), ("major", pa.bool_())]))
_MESH: Final = pa.struct(
    [("descriptor", pa.string()), ("ui", pa.string()), ("major", pa.bool_()), ("qualifiers", _QUALIFIERS)]
)
_AUTHOR: Final = pa.struct(
    [
        ("last_name", pa.string()),
        ("fore_name", pa.string()),
        ("orcid", pa.string()),
        ("affiliations", _STRINGS),
    ]
)
_CHEMICAL: Final = pa.struct([("name", pa.string()), ("ui", pa.string()), ("registry_number", pa.string())])
_GRANT: Final = pa.struct([("id", pa.string()), ("agency", pa.string()), ("country", pa.string())])
_OTHER_ABSTRACT: Final = pa.struct([("type", pa.string()), ("language", pa.string()), ("text", pa.string())])
COLUMN_TYPES: Final = {
    "journal_abbreviation": pa.string(),
    "nlm_id": pa.string(),
    "publication_types": _STRINGS,
    "mesh": pa.list_(_MESH),
    "keywords": _STRINGS,
    "subjects": _STRINGS,
    "published": pa.string(),
    "entered": pa.date32(),
    "revised": pa.date32(),
    "section_categories": _STRINGS,
    "authors": pa.list_(_AUTHOR),
    "chemicals": pa.list_(_CHEMICAL),
    "grants": pa.list_(_GRANT),
    "cited_pmids": pa.list_(pa.int32()),
    "other_abstracts": pa.list_(_OTHER_ABSTRACT),
}
"""Types of the columns of ``--columns``, in the order of the schema."""


def make_schema(columns: Iterable[str]) -> pa.Schema:
    """Return :data:`DOCUMENT_SCHEMA` with these columns of :data:`COLUMN_TYPES` after its own."""
    return pa.schema([*DOCUMENT_SCHEMA, *(pa.field(name, COLUMN_TYPES[name]) for name in columns)])
