"""The document: the row type that every source produces and every later step reads."""

from __future__ import annotations

import datetime
import html
import re
import urllib.parse
from collections.abc import Iterable
from typing import Final, NamedTuple

HEADING_SEPARATOR: Final = " > "

DEFAULT_COLUMNS: Final = (
    "journal_abbreviation",
    "nlm_id",
    "publication_types",
    "keywords",
    "subjects",
    "published",
)
"""Columns of every run: those that cost little. With MeSH, dates and categories too, a run over 500 real
records takes a fifth more instructions than without columns."""


class MeshQualifier(NamedTuple):
    """A MeSH qualifier (subheading), and True if it is a major topic of the article."""

    qualifier: str
    major: bool


class MeshHeading(NamedTuple):
    """A MeSH descriptor with its id (D008297), True if it or a qualifier is a major topic, and qualifiers."""

    descriptor: str
    ui: str | None
    major: bool
    qualifiers: tuple[MeshQualifier, ...]


class Author(NamedTuple):
    """An author, or a group by its name alone, with ORCID iD (0000-0002-1825-0097) and suffix (Jr)."""

    last_name: str
    fore_name: str | None
    orcid: str | None
    affiliations: tuple[str, ...]
    suffix: str | None = None


class Chemical(NamedTuple):
    """A substance by its MeSH name and id, with CAS, EC or UNII number (0: none)."""

    name: str
    ui: str | None
    registry_number: str | None


class Grant(NamedTuple):
    """A grant: its number, who gave it, and the country."""

    id: str | None
    agency: str | None
    country: str | None


class AbstractText(NamedTuple):
    """An abstract beside that of the document: type, MARC code of the language, text in one line."""

    type: str | None
    language: str | None
    text: str


class ArticleColumns(NamedTuple):
    """The values of the columns of ``--columns``; those that are not chosen are not parsed.

    To add a column: add the attribute here; the type of the column in shards follows from its own.

    Attributes:
        journal_abbreviation: ISO abbreviation of the journal.
        nlm_id: id of the journal in NLM's catalogue.
        publication_types: PubMed's publication types; PubMed only.
        mesh: MeSH headings; PubMed only.
        keywords: the authors' keywords.
        subjects: subjects under which the journal lists the article; PMC only.
        published: date of the earliest publication as ISO 8601, as precise as it is known: ``2001``,
            ``2001-02`` or ``2001-02-03``; of a range its beginning.
        entered: date on which the citation entered PubMed; PubMed only.
        revised: date of the last revision of the citation; PubMed only.
        section_categories: NLM's category (``METHODS``) of each section of the document, or empty if none has
            one; PubMed only.
        authors: authors in order.
        chemicals: substances; PubMed only.
        grants: grants that paid for the work.
        cited_pmids: PubMed ids of the references, each once, in order.
        other_abstracts: other abstracts: translated, of other databases, for laymen.
        vernacular_title: title in the article's own language; PubMed only.
    """

    journal_abbreviation: str | None = None
    nlm_id: str | None = None
    publication_types: tuple[str, ...] = ()
    mesh: tuple[MeshHeading, ...] = ()
    keywords: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    published: str | None = None
    entered: datetime.date | None = None
    revised: datetime.date | None = None
    section_categories: tuple[str | None, ...] = ()
    authors: tuple[Author, ...] = ()
    chemicals: tuple[Chemical, ...] = ()
    grants: tuple[Grant, ...] = ()
    cited_pmids: tuple[int, ...] = ()
    other_abstracts: tuple[AbstractText, ...] = ()
    vernacular_title: str | None = None


_ORCID: Final = re.compile(r"(\d{4})-?(\d{4})-?(\d{4})-?(\d{3}[\dX])(?![\dA-Z])", re.IGNORECASE)


def parse_orcid(text: str) -> str | None:
    """Return the ORCID iD in a text, in groups of four digits: it is written with and without an address."""
    match = _ORCID.search(text)
    return "-".join(match.groups()).upper() if match else None


_DOI: Final = re.compile(
    r"(?P<address>(?:https?://)?(?:dx\.|www\.)?doi\.org/)?(?:(?:info:)?doi[\s:/]{0,3})?"
    r"(?P<doi>10\.[0-9]{4,9}(?:\.[0-9]+)*/\S+)",
    re.IGNORECASE,
)
MAX_DOI_LENGTH: Final = 2000
"""Characters. DOIs have no limit of their own (https://www.doi.org/doi-handbook/HTML/)."""


def parse_doi(text: str) -> str | None:
    """Return the DOI that a text is, case as written; None if it is none.

    It may be an address, which has characters as ``%3C``, or begin with ``doi:``. A DOI may have any
    printable character but white space: ``10.1002/(SICI)1097-0010(1999)8:2/3<109::AID-JSFA7>3.0.CO;2-W``.
    """
    text = html.unescape(text.strip()) if "&" in text else text.strip()
    match = _DOI.fullmatch(text) if len(text) <= MAX_DOI_LENGTH else None
    if match is None:
        return None
    doi = urllib.parse.unquote(match["doi"]) if match["address"] else match["doi"]
    return doi if doi.isprintable() and " " not in doi else None


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def format_partial_date(year: str, month: str | None, day: str | None) -> str:
    """Return a date in ISO 8601, as precise as its parts allow: ``2001``, ``2001-02`` or ``2001-02-03``.

    Args:
        year: four digits.
        month: ``Feb``, ``February``, ``2`` or ``02``; what is none, as a season, is left out with the day.
        day: of the month.
    """
    month_number = _parse_number(month, 12) or _find_month(month)
    if not month_number:
        return year
    day_number = _parse_number(day, 31)
    return f"{year}-{month_number:02}-{day_number:02}" if day_number else f"{year}-{month_number:02}"


def find_earliest_date(dates: Iterable[str]) -> str:
    """Return the earliest date of :func:`format_partial_date`; of a year, one without a month is the last."""
    return min(dates, key=lambda date: date + "-99-99"[len(date) - 4 :])


def _parse_number(text: str | None, highest: int) -> int | None:
    if not (text and text.isascii() and text.isdecimal() and len(text) <= 2):
        return None
    return int(text) if 1 <= int(text) <= highest else None


def _find_month(name: str | None) -> int | None:
    beginning = name[:3].lower() if name else ""
    return _MONTHS.index(beginning) + 1 if beginning in _MONTHS else None


class Document(NamedTuple):
    """The text of one article as sentences, with its metadata and origin.

    To add a column: add the attribute here (with a default, if only some builders set it) and the field of
    the same name to :data:`~.document_schema.DOCUMENT_SCHEMA`.

    Attributes:
        id: ``pubmed:12345678``, ``pmc:PMC123456.1`` or ``text:note-17``; unique in a directory.
        source: ``pubmed``, ``pmc`` or ``text``.
        version: version of the PubMed citation or of the PMC article; 1 of a text file's record.
        year: year of the earliest publication.
        journal: journal title as printed.
        doi: without ``https://doi.org/``, case as written.
        article_type: JATS ``article-type`` ("research-article"); PMC only.
        language: MARC language codes of the article (three letters), joined by a comma. The text of a PubMed
            document is English whatever the article's language.
        licence: code in ``licences.LICENCES``; PMC only; None if the article names none.
        retracted: True if the article is retracted.
        flags: of a PMC article: ``manuscript``, ``ocr``, ``no-body``, ``translation``, and ``correction``,
            ``retraction`` or ``expression-of-concern`` for a notice; ``book`` of a book in PubMed.
        title: as printed, in one line. ``sentences`` starts with its sentences unless titles are excluded.
        sentences: the text, in order.
        sections: (heading path joined by " > ", index of the section's first sentence).
        file: name of the source file.
        position: 0-based index of the record in the file.
        num_words: words of all sentences, split at white space.
        num_characters: characters of all sentences.
        removed_characters: number of characters removed, by cleaning rule.
        columns: values of the columns of ``--columns``.
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
    columns: ArticleColumns = ArticleColumns()
