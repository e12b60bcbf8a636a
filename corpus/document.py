"""The document: the row type and schema that every source produces and every later step reads."""

from __future__ import annotations

from typing import Final, NamedTuple

import pyarrow as pa

HEADING_SEPARATOR: Final = " > "

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
"""Schema of a document shard. docs describe each column in words.

Repetitive columns are plain strings: ``datasets.load_from_disk`` decodes dictionary columns into memory
(180 bytes a document), but memory-maps plain ones (measured with datasets 5.2).
"""


class Document(NamedTuple):
    """The text of one article as sentences, with its metadata and origin.

    To add a column: add the attribute here (with a default, if only some builders set it) and the field of
    the same name to :data:`DOCUMENT_SCHEMA`.

    Attributes:
        id: ``pubmed:12345678``, ``pmc:PMC123456.1`` or ``text:note-17``; unique in a directory.
        source: ``pubmed``, ``pmc`` or ``text``.
        version: version of the PubMed citation or of the PMC article; 1 of a text file's record.
        year: year of publication.
        journal: journal title as printed; PMC only.
        article_type: JATS ``article-type`` ("research-article"); PMC only.
        language: MARC language codes of the article (three letters), joined by a comma. The text of a PubMed
            document is English whatever the article's language.
        licence: code in ``licences.LICENCES``; PMC only; None if the article names none.
        retracted: True if the article is retracted.
        flags: of a PMC article: ``manuscript``, ``ocr``, ``no-body``, ``translation``, and ``correction``,
            ``retraction`` or ``expression-of-concern`` for a notice.
        title: as printed, in one line. ``sentences`` starts with its sentences unless titles are excluded.
        sentences: the text, in order.
        sections: (heading path joined by " > ", index of the section's first sentence).
        file: name of the source file.
        position: 0-based index of the record in the file.
        num_words: words of all sentences, split at white space.
        num_characters: characters of all sentences.
        removed_characters: number of characters removed, by cleaning rule.
    """

    id: str
    source: str
    pmid: int | None
    pmcid: str | None
    doi: str | None
    version: int
    year: int | None
    journal: str | None
    article_type: str | None
    language: str | None
    licence: str | None
    retracted: bool
    flags: list[str]
    title: str
    sentences: list[str]
    sections: list[tuple[str, int]]
    file: str
    position: int
    num_words: int
    num_characters: int
    removed_characters: dict[str, int]
