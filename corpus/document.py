"""The document: what every source gives, every shard holds and every later step reads."""

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
"""One row of a document shard.  README.md has each column in words.

The repetitive columns are plain strings: ``datasets.load_from_disk`` unpacks dictionary-encoded ones
into memory, 180 bytes a document, where it maps plain ones (measured with datasets 5.2).
"""


class Document(NamedTuple):
    """One article's text, sentence by sentence, with where it comes from.

    Attributes:
        id: ``pubmed:12345678`` or ``pmc:PMC123456.1``; unique among the documents of a directory.
        source: ``pubmed`` or ``pmc``.
        version: of a PubMed citation, or of a PMC article.
        year: year of publication.
        journal, article_type: as the article says, in PMC's only ("research-article").
        language: the article's language codes (MARC, three letters), joined by a comma; the text
            of a PubMed document is English whatever the article's language.
        licence: a code of licences.py, in PMC's documents only; None where the article names none.
        flags: what else to know of a PMC article: ``manuscript``, ``ocr``, ``no-body``, and ``correction``,
            ``retraction`` or ``expression-of-concern`` for a notice of one.
        title: as printed, in one line; its sentences are the first of ``sentences`` too, unless
            the rules leave titles out of the text.
        sections: (heading path joined by " > ", index of the section's first sentence).
        file: name of the source file; ``position``: index of the record in it, from 0.
        words: words of all sentences, split at white space.
        characters: characters of all sentences.
        cleaned: the rules by which something was taken from its text, and how many characters.
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
