"""Parse one PubMed record: bytes to :class:`Citation`.

A record has many kilobytes (authors, MeSH, references), of which a corpus needs a few elements. They are
located by the child paths of the DTD (pubmed_250101.dtd; older versions agree), as ``PMID`` and
``ArticleIdList`` also occur in the lists of *cited* papers. Text is found by its tags (elements.py); titles
and abstracts with nested markup are parsed with lxml, and what records repeat, as journals, once. A record
with an unusual layout (see xml/element_stream.py) is first normalised by lxml, which rejects malformed XML.

Unread elements are checked only for balanced tags and valid UTF-8. Tests compare every result with a
full-tree parse.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from lxml import etree

from bioshards.corpus.document import (
    AbstractText,
    ArticleColumns,
    Author,
    Chemical,
    Grant,
    MeshHeading,
    MeshQualifier,
    find_earliest_date,
    format_partial_date,
    parse_doi,
    parse_orcid,
)
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.pubmed.elements import (
    START_TAG_ATTRIBUTES,
    UnusualLayoutError,
    attribute_pattern,
    decode_record,
    extract_text,
    find_content,
    find_element_end,
    find_text,
    iter_contents,
    parse_xml,
    read_content,
    unescape,
)
from bioshards.corpus.text_config import ISSNS
from bioshards.corpus.xml import element_stream, element_text

_NUM_CACHED: Final = 1 << 14
"""Entries of a cache of what records repeat."""
_RETRACTED_PUBLICATION_TYPE: Final = "Retracted Publication".casefold()
"""Publication type of a retracted article (D016441). D016440 marks the notice of the retraction."""


class AbstractSection(NamedTuple):
    """One ``AbstractText``: label as printed (None if absent or UNLABELLED), and text."""

    label: str | None
    text: str


class OtherAbstract(NamedTuple):
    """One ``OtherAbstract``: type, language (MARC code) and sections."""

    type: str
    language: str
    sections: tuple[AbstractSection, ...]


class Citation(NamedTuple):
    """The parsed fields of a PubMed record.

    Text is joined as written, powers as ``10^6``, formulas as those of articles.
    """

    pmid: int
    version: int
    title: str
    abstract: tuple[AbstractSection, ...]
    year: int | None
    languages: tuple[str, ...]
    publication_types: tuple[str, ...]
    retracted: bool
    pmcid: str | None
    doi: str | None
    other_abstracts: tuple[OtherAbstract, ...] = ()
    """Other abstracts of a record without an abstract; of other records they are not parsed."""
    journal: str | None = None
    abstract_categories: tuple[str | None, ...] = ()
    """``NlmCategory`` of each section of the abstract; empty unless asked for."""
    columns: ArticleColumns = ArticleColumns()
    issns: tuple[str, ...] = ()
    """ISSNs of the journal; empty unless asked for."""
    is_book: bool = False
    """True of a book or a chapter, whose journal is the title of the book."""


def parse_citation(record: bytes, is_checked: bool = False, columns: Collection[str] = ()) -> Citation:
    """Parse a ``PubmedArticle`` or ``MedlineCitation``.

    Args:
        record: the element's bytes.
        is_checked: True if it has passed :func:`~.element_stream.pass_checks`.
        columns: names of the columns of ``ArticleColumns`` to parse, and perhaps ``issns``.

    Raises:
        BadRecordError: invalid UTF-8, malformed XML, an unknown entity, or no PMID.
    """
    text = decode_record(record)
    if is_checked or element_stream.has_balanced_tags(text):
        try:
            return _parse_text(text, is_checked, columns)
        except UnusualLayoutError:
            pass
    text = etree.tostring(parse_xml(text), encoding="unicode")
    try:
        return _parse_text(text, True, columns)
    except UnusualLayoutError as unusual:
        raise BadRecordError("no-pmid", str(unusual)) from unusual


def parse_book(record: bytes, columns: Collection[str] = ()) -> Citation:
    """Parse a ``PubmedBookArticle`` or ``BookDocument``.

    Args:
        record: the element's bytes.
        columns: names of the columns of ``ArticleColumns`` to parse; a book has fewer than an article.

    Raises:
        BadRecordError: invalid UTF-8, malformed XML, an unknown entity, or no PMID.
    """
    tree = parse_xml(element_text.mark_exponents(decode_record(record)))
    document = tree.find("BookDocument") if tree.tag == "PubmedBookArticle" else tree
    pmid = None if document is None else document.find("PMID")
    if document is None or pmid is None:
        raise BadRecordError("no-pmid", "a book record without a PMID")
    abstract = document.find("Abstract")
    book_title = _find_text(document, "Book/BookTitle")
    chapter_title = _find_text(document, "ArticleTitle")
    ids = {
        element.get("IdType", ""): element.text or ""
        for element in tree.iterfind(".//ArticleIdList/ArticleId")
    }
    date = document.find("Book/PubDate")
    year, published = (
        (None, None) if date is None else _parse_publication_date(etree.tostring(date, encoding="unicode"))
    )
    publication_types = tuple(filter(None, map(extract_text, document.iterfind("PublicationType"))))
    authors = document.find("AuthorList")
    if authors is None:
        authors = document.find("Book/AuthorList")
    keywords = (" ".join(extract_text(item).split()) for item in document.iterfind("KeywordList/Keyword"))
    found = ArticleColumns(
        publication_types=publication_types,
        keywords=tuple(filter(None, keywords)),
        published=published,
        authors=() if authors is None else _read_authors(authors),
        vernacular_title=_find_text(document, "VernacularTitle"),
    )
    pmcid = _PMCID.search(ids.get("pmc") or ids.get("pmcid") or "")
    return Citation(
        pmid=_parse_pmid(pmid.text or ""),
        version=_parse_version(pmid.get("Version")),
        title=chapter_title or book_title or "",
        abstract=() if abstract is None else tuple(_make_sections(abstract.iterchildren("AbstractText"))),
        year=year,
        languages=tuple(filter(None, (element.text for element in document.iterfind("Language")))),
        publication_types=publication_types,
        retracted=False,
        pmcid=pmcid[0] if pmcid else None,
        doi=parse_doi(ids.get("doi", "")),
        journal=book_title,
        columns=found._replace(
            **{
                name: ArticleColumns._field_defaults[name]
                for name in ArticleColumns._fields
                if name not in columns
            }
        ),
        is_book=True,
    )


def _find_text(element: etree._Element, path: str) -> str | None:
    """Return the text of a descendant in one line, None without one or text."""
    found = element.find(path)
    return None if found is None else (" ".join(extract_text(found).split()) or None)


def parse_pmids(record: bytes) -> list[tuple[int, int]]:
    """Return (PMID, Version) of the record's own ``PMID`` children (a deletion has many)."""
    tree = parse_xml(decode_record(record))
    record_element = tree.find("BookDocument") if tree.tag == "PubmedBookArticle" else tree
    pmid_elements = [] if record_element is None else record_element.findall("PMID")
    return [(_parse_pmid(item.text or ""), _parse_version(item.get("Version"))) for item in pmid_elements]


_CITATION_START = re.compile(
    rf"<MedlineCitation{START_TAG_ATTRIBUTES}>\s*<PMID({START_TAG_ATTRIBUTES})>([^<]*)</PMID\s*>"
)
_CITATION_START_TAGS = re.compile(
    rf"(?:<PubmedArticle>\s*)?<MedlineCitation{START_TAG_ATTRIBUTES}>\s*<PMID({START_TAG_ATTRIBUTES})"
)
_MAX_START: Final = 400
"""Characters up to the end of the PMID, as nearly all records have."""
_FIRST_VERSION: Final = ' Version="1"'
_VERSION = re.compile(attribute_pattern("Version"))
_RETRACTION_IN = re.compile(
    r"""<CommentsCorrections\s[^<>]*RefType\s*=\s*["']RetractionIn["']|<RetractionIn[\s>]"""
)
_PMCID = re.compile(r"PMC\d+")
_ISSN = re.compile(r"<ISSN(?:Linking)?\b[^<>]*>\s*([^<\s]+)")
_NO_COLUMNS: Final = ArticleColumns()


class _Layout(NamedTuple):
    """Offsets of the parts of a record, which follow each other as in the DTD.

    Attributes:
        after_pmid: after its PMID.
        date_start: of its ``PubDate``, -1 if it has none.
        after_types: after its publication types; MeSH headings and keywords follow.
        end: of its ``PubmedData``, or its end.
    """

    after_pmid: int
    date_start: int
    after_types: int
    end: int


def _parse_text(text: str, is_checked: bool, columns: Collection[str]) -> Citation:
    """Parse the record from left to right, in the DTD's order; each part is scanned at most twice.

    ``PubDate``, ``ArticleTitle``, ``Abstract``, ``Language`` and ``PublicationTypeList`` occur once in a
    record, as children of its ``Article`` (``PubDate``: of its ``JournalIssue``).
    """
    pmid_digits, pmid_attributes, start = _find_pmid(text)
    date_start = text.find("<PubDate", start)
    date_end = text.find("</PubDate", date_start) if date_start >= 0 else -1
    year, published = _parse_publication_date(text[date_start:date_end]) if date_end >= 0 else (None, None)
    title_start = text.find("<ArticleTitle", start)
    title, after_title, journal, abbreviation = "", start, None, None
    if title_start >= 0:
        title, after_title = _parse_title(text, title_start, is_checked)
        journal, abbreviation = _parse_journal(text[date_end if date_end >= 0 else start : title_start])
    abstract, categories, after_abstract = _parse_abstract(
        text, after_title, "section_categories" in columns, is_checked
    )
    languages, after_languages = _parse_languages(text, after_abstract)
    publication_types, after_types = _parse_publication_types(text, after_languages)
    if (article_date := text.find("<ArticleDate", after_types)) >= 0 and published:
        electronic = _parse_day(text, article_date)
        published = find_earliest_date([published, electronic.isoformat()] if electronic else [published])
        year = int(published[:4])
    data_start = text.rfind("<PubmedData", after_types)  # nearer to the end, but with many references
    end = data_start if data_start >= 0 else len(text)
    ids = _parse_article_ids(text, data_start) if data_start >= 0 else {}
    doi, pmcid = ids.get("doi"), _PMCID.search(ids.get("pmc") or ids.get("pmcid") or "")
    has_retraction_link = (
        text.find("RetractionIn", after_types, end) >= 0
        and _RETRACTION_IN.search(text, after_types, end) is not None
    )
    layout = _Layout(start, date_start, after_types, end)
    return Citation(
        pmid=_parse_pmid(pmid_digits),
        version=_read_version(pmid_attributes),
        title=title,
        abstract=abstract,
        year=year,
        languages=languages,
        publication_types=publication_types,
        retracted=has_retraction_link or _RETRACTED_PUBLICATION_TYPE in map(str.casefold, publication_types),
        pmcid=pmcid[0] if pmcid else None,
        doi=(parse_doi(doi) if doi else None) or _parse_elocation_doi(text, start, end),
        other_abstracts=() if abstract else _parse_other_abstracts(text, after_types, end),
        journal=journal or find_text(text, "Title", start, end),
        abstract_categories=categories,
        columns=_parse_columns(text, layout, columns, publication_types, published, abbreviation)
        if columns
        else _NO_COLUMNS,
        issns=tuple(_ISSN.findall(text, start, end)) if ISSNS in columns else (),
    )


def _find_pmid(text: str) -> tuple[str, str, int]:
    """Return the PMID as written, the attributes of its element, and the offset after it.

    Raises:
        UnusualLayoutError: the PMID is not the first child of ``MedlineCitation``.
    """
    pmid_end = text.find("</PMID>")
    if 0 < pmid_end < _MAX_START:
        start_tags, _, digits = text[:pmid_end].rpartition(">")
        attributes = _read_start_tags(start_tags)
        if attributes is not None:
            return digits, attributes, pmid_end + len("</PMID>")
    pmid_match = _CITATION_START.search(text)
    if pmid_match is None:
        raise UnusualLayoutError("no PMID as first child of MedlineCitation")
    return pmid_match[2], pmid_match[1], pmid_match.end()


@lru_cache(maxsize=_NUM_CACHED)
def _read_start_tags(xml: str) -> str | None:
    """Return the attributes of the PMID from what stands before it; None if that is something else."""
    start_tags = _CITATION_START_TAGS.fullmatch(xml)
    return start_tags[1] if start_tags else None


def _read_version(attributes: str) -> int:
    if attributes in ("", _FIRST_VERSION):
        return 1
    version = _VERSION.match(attributes)
    return _parse_version(version[1] or version[2] or "" if version else None)


def _parse_pmid(digits: str) -> int:
    digits = digits.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10 and 0 < int(digits) < 2**31):
        raise BadRecordError("bad-pmid", f"PMID {digits[:20]!r} is no number from 1 to 2,147,483,647")
    return int(digits)


def _parse_version(digits: str | None) -> int:
    if digits is None:
        return 1
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 4):
        raise BadRecordError("bad-version", f"PMID Version {digits[:20]!r} is no number below 10,000")
    return int(digits)


_TITLE_START = re.compile(rf"<ArticleTitle{START_TAG_ATTRIBUTES}/?>")
_ABSTRACT = re.compile(rf"<Abstract{START_TAG_ATTRIBUTES}>")
_SECTION_START = re.compile(rf"\s*<AbstractText({START_TAG_ATTRIBUTES})/?>")
_PLAIN_ABSTRACT: Final = "<Abstract>"
_PLAIN_TITLE: Final = "<ArticleTitle>"
"""Start tags as nearly all are written."""
_OTHER_ABSTRACT = re.compile(rf"<OtherAbstract{START_TAG_ATTRIBUTES}/?>")
_ABSTRACT_END = re.compile(r"\s*(?:<CopyrightInformation>[^<]*</CopyrightInformation>\s*)?</Abstract\s*>")
_LABEL = re.compile(attribute_pattern("Label"))
_CATEGORY = re.compile(attribute_pattern("NlmCategory"))
_UNLABELLED: Final = "UNLABELLED"


@lru_cache(maxsize=_NUM_CACHED)
def _parse_journal(xml: str) -> tuple[str | None, str | None]:
    """Return title and ISO abbreviation of a journal, of the XML between the date and the article's title."""
    return find_text(xml, "Title", 0, len(xml)), find_text(xml, "ISOAbbreviation", 0, len(xml))


def _parse_title(text: str, title_start: int, is_checked: bool) -> tuple[str, int]:
    """Return the title, whose element is at an offset, and the offset after it."""
    if text.startswith(_PLAIN_TITLE, title_start):
        content_start = title_start + len(_PLAIN_TITLE)
    else:
        start_tag = _TITLE_START.match(text, title_start)
        content_start = start_tag.end() if start_tag else 0
    content = read_content(text, content_start, "</ArticleTitle>") if content_start else None
    if content and (
        is_checked or not element_stream.has_forbidden_character(text[title_start : content[1]].encode())
    ):
        return content
    title_end = find_element_end(text, "ArticleTitle", title_start)
    title = element_text.mark_exponents(text[title_start:title_end])
    return extract_text(parse_xml(title)), title_end


_LANGUAGE = re.compile(r"<Language\s*>([^<]*)</Language\s*>\s*")
_LANGUAGES = re.compile(rf"(?:{_LANGUAGE.pattern})+")


def _parse_languages(text: str, start: int) -> tuple[tuple[str, ...], int]:
    """Return the language codes, which follow abstract and authors, and the offset after them."""
    position = text.find("<Language", start)
    match = _LANGUAGES.match(text, position) if position >= 0 else None
    return (_read_languages(match[0]), match.end()) if match else ((), start)


@lru_cache(maxsize=_NUM_CACHED)
def _read_languages(xml: str) -> tuple[str, ...]:
    return tuple([unescape(code).strip() for code in _LANGUAGE.findall(xml)])


_TYPE = re.compile(rf"<PublicationType{START_TAG_ATTRIBUTES}>([^<]*)</PublicationType\s*>")


def _parse_publication_types(text: str, start: int) -> tuple[tuple[str, ...], int]:
    """Return the publication types, which follow the languages, and the offset after them."""
    span = find_content(text, "PublicationTypeList", start, len(text))
    if span is None:
        return (), start
    return _read_publication_types(text[slice(*span)]), span[1]


@lru_cache(maxsize=_NUM_CACHED)
def _read_publication_types(xml: str) -> tuple[str, ...]:
    return tuple([unescape(name).strip() for name in _TYPE.findall(xml)])


_LOCATION = re.compile(rf"<ELocationID({START_TAG_ATTRIBUTES})>([^<]*)</ELocationID\s*>")
_DOI = re.compile(r"""\sEIdType\s*=\s*["']doi["']""")
_INVALID = re.compile(r"""\sValidYN\s*=\s*["']N["']""")


def _parse_elocation_doi(text: str, start: int, end: int) -> str | None:
    """Return the DOI of the article's ELocationIDs, for records without PubmedData."""
    position = text.find("<ELocationID", start, end)
    for attributes, value in _LOCATION.findall(text, position, end) if position >= 0 else []:
        if (
            _DOI.search(attributes)
            and not _INVALID.search(attributes)
            and (doi := parse_doi(unescape(value)))
        ):
            return doi
    return None


def _parse_abstract(
    text: str, start: int, has_categories: bool, is_checked: bool
) -> tuple[tuple[AbstractSection, ...], tuple[str | None, ...], int]:
    """Parse the Abstract, which follows ``start``.

    Returns:
        Its sections, their categories if asked for, and the offset after the sections.
    """
    abstract_start = text.find("<Abstract", start)
    if abstract_start >= 0 and text.startswith(_PLAIN_ABSTRACT, abstract_start):
        position = sections_start = abstract_start + len(_PLAIN_ABSTRACT)
    else:
        start_tag = _ABSTRACT.search(text, abstract_start) if abstract_start >= 0 else None
        if start_tag is None:
            return (), (), start
        abstract_start, position = start_tag.span()
        sections_start = position
    sections: list[AbstractSection] = []
    categories: list[str | None] = []
    while attributes := _read_section_start(text[position : (content_start := text.find(">", position) + 1)]):
        content = read_content(text, content_start, "</AbstractText>")
        if content is None:
            break
        label, category = attributes
        sections.append(AbstractSection(label, element_text.mark_bracketed_exponents(content[0])))
        categories.append(category)
        position = content[1]
    if not _ABSTRACT_END.match(text, position) or (
        not is_checked and element_stream.has_forbidden_character(text[abstract_start:position].encode())
    ):
        position = find_element_end(text, "Abstract", sections_start)
        abstract = parse_xml(element_text.mark_exponents(text[abstract_start:position]))
        parts = list(abstract.iterchildren("AbstractText"))
        sections = _make_sections(parts)
        categories = [part.get("NlmCategory") or None for part in parts]
    return tuple(sections), tuple(categories) if has_categories else (), position


@lru_cache(maxsize=_NUM_CACHED)
def _read_section_start(xml: str) -> tuple[str | None, str | None] | None:
    """Return label and category of an ``AbstractText`` start tag; None if the XML is something else."""
    start_tag = _SECTION_START.fullmatch(xml)
    if start_tag is None:
        return None
    label, category = _LABEL.match(start_tag[1]), _CATEGORY.match(start_tag[1])
    return (
        _normalize_label(unescape(label[1] or label[2] or "")) if label else None,
        unescape(category[1] or category[2] or "") or None if category else None,
    )


def _parse_other_abstracts(text: str, start: int, end: int) -> tuple[OtherAbstract, ...]:
    """Return the other abstracts between the offsets, in order."""
    others = []
    while (match := _OTHER_ABSTRACT.search(text, start, end)) is not None:
        is_empty = match[0].endswith("/>")
        start = match.end() if is_empty else find_element_end(text, "OtherAbstract", match.end())
        other = parse_xml(element_text.mark_exponents(text[match.start() : start]))
        sections = tuple(_make_sections(other.iterchildren("AbstractText")))
        others.append(OtherAbstract(other.get("Type", ""), other.get("Language", "eng"), sections))
    return tuple(others)


def _make_sections(parts: Iterable[etree._Element]) -> list[AbstractSection]:
    """Return the sections of an abstract that contains markup."""
    return [
        AbstractSection(
            _normalize_label(part.get("Label", "")), element_text.mark_bracketed_exponents(extract_text(part))
        )
        for part in parts
    ]


def _normalize_label(label: str) -> str | None:
    label = label.strip()
    return None if not label or label.upper() == _UNLABELLED else label


_PLAIN_ARTICLE_ID = re.compile(r'<ArticleId IdType="([^"]*)">([^<]*)</ArticleId>')
"""An id as nearly all are written. A set of one excluded character is matched several times as fast."""
_ARTICLE_ID = re.compile(
    rf"<ArticleId{attribute_pattern('IdType')}{START_TAG_ATTRIBUTES}>([^<]*)</ArticleId\s*>"
)


def _parse_article_ids(text: str, data_start: int) -> dict[str, str]:
    """Return the first id of each type of the record itself, perhaps with white space around it.

    Ids of its references are excluded.
    """
    references = text.find("<ReferenceList", data_start)
    end = references if references >= 0 else len(text)
    span = find_content(text, "ArticleIdList", data_start, end)
    if span is None and references >= 0:
        after = max(references, text.rfind("</ReferenceList"))
        span = find_content(text, "ArticleIdList", after, len(text))
    if span is None:
        return {}
    xml = text[slice(*span)]
    plain = _PLAIN_ARTICLE_ID.findall(xml)
    if len(plain) == xml.count("<ArticleId") and "&" not in xml:
        plain_ids = dict(reversed(plain))
        if all(map(str.strip, plain_ids.values())):
            return plain_ids
    ids: dict[str, str] = {}
    for double, single, value in _ARTICLE_ID.findall(xml):
        if value.strip():
            ids.setdefault(double or single, unescape(value).strip())
    return ids


_YEAR = re.compile(r"<PubDate\s*>\s*(?:<Year\s*>\s*(\d{4})|<MedlineDate\s*>[^<]*?(\d{4}))")
_MONTH = re.compile(
    r"\s*</Year\s*>\s*<(?:Month|Season)\s*>\s*(\w++)[^<]*+</\w+\s*>(?:\s*<Day\s*>\s*(\d{1,2})\s*</Day)?"
)
_MEDLINE_MONTH = re.compile(r"\s+([A-Za-z]{3,9})\b\.?(?:\s+(\d{1,2})\b)?")


@lru_cache(maxsize=_NUM_CACHED)
def _parse_publication_date(xml: str) -> tuple[int | None, str | None]:
    """Parse a ``PubDate`` without its end tag.

    Returns:
        The year, and the date in ISO 8601 as precise as it is given: ``2001``, ``2001-02``, ``2001-02-03``.
        Of a range it is the beginning (``May-Jun``), of spring the year.
    """
    year = _YEAR.match(xml)
    if year is None:
        return None, None
    month = _MONTH.match(xml, year.end()) if year[1] else _MEDLINE_MONTH.match(xml, year.end())
    digits = year[1] or year[2]
    return int(digits), format_partial_date(digits, *month.groups()) if month else digits


# Columns


def _parse_columns(
    text: str,
    layout: _Layout,
    columns: Collection[str],
    publication_types: tuple[str, ...],
    published: str | None,
    journal_abbreviation: str | None,
) -> ArticleColumns:
    """Parse columns, by name. The last three are parsed already; the abbreviation may be elsewhere."""
    after_pmid, date_start, after_types, end = layout
    return ArticleColumns(
        journal_abbreviation=journal_abbreviation or find_text(text, "ISOAbbreviation", after_pmid, end)
        if "journal_abbreviation" in columns
        else None,
        nlm_id=find_text(text, "NlmUniqueID", after_types, end) if "nlm_id" in columns else None,
        publication_types=publication_types if "publication_types" in columns else (),
        mesh=_parse_mesh(text, after_types, end) if "mesh" in columns else (),
        keywords=_parse_keywords(text, after_types, end) if "keywords" in columns else (),
        published=published if "published" in columns else None,
        entered=_parse_entered(text, end) if "entered" in columns else None,
        revised=_parse_revised(text, after_pmid, date_start if date_start >= 0 else end)
        if "revised" in columns
        else None,
        authors=_parse_authors(text, after_pmid, end) if "authors" in columns else (),
        chemicals=_parse_chemicals(text, after_types, end) if "chemicals" in columns else (),
        grants=_parse_grants(text, after_pmid, end) if "grants" in columns else (),
        cited_pmids=_parse_cited_pmids(text, end) if "cited_pmids" in columns else (),
        other_abstracts=_join_other_abstracts(text, after_types, end) if "other_abstracts" in columns else (),
        vernacular_title=_parse_vernacular_title(text, after_types, end)
        if "vernacular_title" in columns
        else None,
    )


def _parse_vernacular_title(text: str, start: int, end: int) -> str | None:
    """Return the title in the article's own language, which follows the publication types."""
    span = find_content(text, "VernacularTitle", start, end)
    if span is None:
        return None
    title = extract_text(parse_xml(f"<x>{element_text.mark_exponents(text[slice(*span)])}</x>"))
    return " ".join(title.split()) or None


_DAY = re.compile(
    r"<\w[^<>]*>\s*<Year\s*>\s*(\d{4})\s*</Year\s*>\s*<Month\s*>\s*(\d{1,2})\s*</Month\s*>"
    r"\s*<Day\s*>\s*(\d{1,2})\s*</Day"
)


def _parse_day(text: str, start: int) -> datetime.date | None:
    """Return the date of the element at an offset; None for an offset below 0 and for a date that is none."""
    day = _DAY.match(text, start) if start >= 0 else None
    try:
        return datetime.date(int(day[1]), int(day[2]), int(day[3])) if day else None
    except ValueError:
        return None


def _parse_revised(text: str, start: int, end: int) -> datetime.date | None:
    return _parse_day(text, text.find("<DateRevised", start, end))


def _parse_entered(text: str, data_start: int) -> datetime.date | None:
    """Return the date of the ``PubMedPubDate`` of status ``entrez``."""
    history_end = text.find("</History", data_start)
    status = text.find("entrez", data_start, history_end) if history_end >= 0 else -1
    return _parse_day(text, text.rfind("<", data_start, status)) if status >= 0 else None


_MESH_NAME = re.compile(r'Name(?: UI="([^"]*)")? MajorTopicYN="([YN])">([^<>&\s]+(?: [^<>&\s]+)*)</')
"""A descriptor or qualifier as nearly all are written: these attributes, plain text."""
_ANY_MESH_NAME = re.compile(rf"<(?:Descriptor|Qualifier)Name({START_TAG_ATTRIBUTES})>([^<]*)</")
_UI = re.compile(attribute_pattern("UI"))
_MAJOR = re.compile(r"""\sMajorTopicYN\s*=\s*["']Y["']""")


def _parse_mesh(text: str, start: int, end: int) -> tuple[MeshHeading, ...]:
    span = find_content(text, "MeshHeadingList", start, end)
    if span is None:
        return ()
    return tuple([_parse_mesh_heading(xml) for xml in text[slice(*span)].split("<MeshHeading")[1:]])


@lru_cache(maxsize=_NUM_CACHED)
def _parse_mesh_heading(xml: str) -> MeshHeading:
    """Parse what follows the name of a ``MeshHeading``: one descriptor, then qualifiers."""
    names = _MESH_NAME.findall(xml)
    if not names or 2 * len(names) != xml.count("Name"):
        names = [_parse_mesh_name(*match) for match in _ANY_MESH_NAME.findall(xml)] or [("", "N", "")]
    ui, major, descriptor = names[0]
    qualifiers = tuple([MeshQualifier(name, major == "Y") for _, major, name in names[1:]])
    is_major = major == "Y" or any(qualifier.major for qualifier in qualifiers)
    return MeshHeading(descriptor, ui or None, is_major, qualifiers)


def _parse_mesh_name(attributes: str, name: str) -> tuple[str, str, str]:
    """Return id, major topic (Y or N) and name."""
    ui = _UI.match(attributes)
    major = "Y" if _MAJOR.search(attributes) else "N"
    return (ui[1] or ui[2] or "") if ui else "", major, " ".join(unescape(name).split())


_PLAIN_KEYWORD = re.compile(r'<Keyword(?: MajorTopicYN="[YN]")?>([^<]*)</Keyword>')
"""A keyword as nearly all are written: without mark-up."""


def _parse_keywords(text: str, start: int, end: int) -> tuple[str, ...]:
    """Return the keywords of all lists; a record has one for each owner."""
    keywords: list[str] = []
    for _, content_start, content_end in iter_contents(text, "KeywordList", start, end):
        xml = text[content_start:content_end]
        texts = _PLAIN_KEYWORD.findall(xml)
        if "&" in xml or len(texts) != xml.count("<Keyword"):
            elements = parse_xml(f"<x>{element_text.mark_exponents(xml)}</x>").iterchildren("Keyword")
            texts = [extract_text(element) for element in elements]
        keywords += filter(None, [" ".join(keyword.split()) for keyword in texts])
    return tuple(keywords)


def _parse_list(text: str, name: str, start: int, end: int) -> list[etree._Element]:
    """Parse the elements of the next list of this name, if any, with lxml."""
    span = find_content(text, name, start, end)
    return list(parse_xml(f"<x>{text[slice(*span)]}</x>").iterchildren("*")) if span else []


def _read_child(element: etree._Element, name: str) -> str | None:
    """Return the text of a child in one line, None without one or text."""
    child = next(element.iterchildren(name), None)
    return None if child is None else (" ".join(extract_text(child).split()) or None)


def _parse_authors(text: str, start: int, end: int) -> tuple[Author, ...]:
    return _read_authors(_parse_list(text, "AuthorList", start, end))


def _read_authors(elements: Iterable[etree._Element]) -> tuple[Author, ...]:
    authors = []
    for author in elements:
        if author.get("ValidYN") == "N":  # the name as it was before it was corrected
            continue
        affiliations = [_read_child(info, "Affiliation") for info in author.iterchildren("AffiliationInfo")]
        affiliations.append(_read_child(author, "Affiliation"))  # before 2015
        identifiers = [
            parse_orcid(identifier.text or "")
            for identifier in author.iterchildren("Identifier")
            if identifier.get("Source") == "ORCID"
        ]
        authors.append(
            Author(
                _read_child(author, "LastName") or _read_child(author, "CollectiveName") or "",
                _read_child(author, "ForeName") or _read_child(author, "Initials"),
                next(filter(None, identifiers), None),
                tuple(filter(None, affiliations)),
                _read_child(author, "Suffix"),
            )
        )
    return tuple(authors)


def _parse_chemicals(text: str, start: int, end: int) -> tuple[Chemical, ...]:
    chemicals = []
    for chemical in _parse_list(text, "ChemicalList", start, end):
        substance = next(chemical.iterchildren("NameOfSubstance"), None)
        ui = None if substance is None else substance.get("UI") or None
        name = _read_child(chemical, "NameOfSubstance") or ""
        chemicals.append(Chemical(name, ui, _read_child(chemical, "RegistryNumber")))
    return tuple(chemicals)


def _parse_grants(text: str, start: int, end: int) -> tuple[Grant, ...]:
    return tuple(
        [
            Grant(*[_read_child(grant, name) for name in ("GrantID", "Agency", "Country")])
            for grant in _parse_list(text, "GrantList", start, end)
        ]
    )


_CITED_PMID = re.compile(
    rf"<ArticleId{attribute_pattern('IdType')}{START_TAG_ATTRIBUTES}>\s*([1-9]\d{{0,8}})\s*</ArticleId"
)


def _parse_cited_pmids(text: str, data_start: int) -> tuple[int, ...]:
    """Return the PubMed ids in the lists of references, which may have the record's own ids on both sides."""
    references = text.find("<ReferenceList", data_start)
    if references < 0:
        return ()
    ids = _CITED_PMID.findall(text, references, text.rfind("</ReferenceList"))
    return tuple(dict.fromkeys(int(value) for double, single, value in ids if "pubmed" in (double, single)))


def _join_other_abstracts(text: str, start: int, end: int) -> tuple[AbstractText, ...]:
    """Return the other abstracts, each with its text in one line."""
    abstracts = []
    for tag_start, _, content_end in iter_contents(text, "OtherAbstract", start, end):
        other = parse_xml(element_text.mark_exponents(f"{text[tag_start:content_end]}</OtherAbstract>"))
        texts = [extract_text(part) for part in other.iterchildren("AbstractText")]
        language = to_marc_code(other.get("Language", "eng"))
        abstracts.append(AbstractText(other.get("Type") or None, language, " ".join(" ".join(texts).split())))
    return tuple(abstracts)
