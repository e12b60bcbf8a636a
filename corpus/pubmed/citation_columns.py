"""Parse the columns of ``--columns`` of a PubMed record (pubmed_250101.dtd).

Each is searched in its own part of the record. What records repeat, dates and MeSH headings, is parsed once.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection
from functools import lru_cache
from typing import Final

from lxml import etree

from bioshards.corpus.document import (
    AbstractText,
    ArticleColumns,
    Author,
    Chemical,
    Grant,
    MeshHeading,
    MeshQualifier,
    format_partial_date,
    parse_orcid,
)
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.pubmed.elements import (
    START_TAG_ATTRIBUTES,
    attribute_pattern,
    extract_text,
    find_content,
    find_text,
    parse_xml,
    unescape,
)
from bioshards.corpus.xml import element_text

NUM_CACHED: Final = 1 << 14
"""Entries of a cache of what records repeat."""

_YEAR = re.compile(r"<PubDate\s*>\s*(?:<Year\s*>\s*(\d{4})|<MedlineDate\s*>[^<]*?(\d{4}))")
_MONTH = re.compile(
    r"\s*</Year\s*>\s*<(?:Month|Season)\s*>\s*(\w+)[^<]*</\w+\s*>(?:\s*<Day\s*>\s*(\d{1,2})\s*</Day)?"
)
_MEDLINE_MONTH = re.compile(r"\s+([A-Za-z]{3,9})\b\.?(?:\s+(\d{1,2})\b)?")


@lru_cache(maxsize=NUM_CACHED)
def parse_publication_date(xml: str) -> tuple[int | None, str | None]:
    """Parse a ``PubDate`` without its end tag.

    Returns:
        The year, and the date in ISO 8601 as precise as it is given: ``2001``, ``2001-02``, ``2001-02-03``.
        Of a range it is the beginning (``May-Jun``), of spring the year.
    """
    year = _YEAR.match(xml)
    if year is None:
        return None, None
    month = (_MONTH if year[1] else _MEDLINE_MONTH).match(xml, year.end())
    digits = year[1] or year[2]
    return int(digits), format_partial_date(digits, *month.groups()) if month else digits


def parse_columns(
    text: str,
    start: int,
    date_start: int,
    after_types: int,
    end: int,
    publication_types: tuple[str, ...],
    published: str | None,
    journal_abbreviation: str | None,
    columns: Collection[str],
) -> ArticleColumns:
    """Parse the columns of a record.

    Args:
        text: the record.
        start: offset after its PMID.
        date_start: offset of its ``PubDate``, -1 if it has none.
        after_types: offset after its publication types; MeSH headings and keywords follow.
        end: offset of its ``PubmedData``, or its end.
        publication_types: its publication types.
        published: its date of publication.
        journal_abbreviation: ISO abbreviation of its journal, if it is at the usual place.
        columns: names of the columns to parse.
    """
    return ArticleColumns(
        journal_abbreviation=journal_abbreviation or find_text(text, "ISOAbbreviation", start, end)
        if "journal_abbreviation" in columns
        else None,
        nlm_id=find_text(text, "NlmUniqueID", after_types, end) if "nlm_id" in columns else None,
        publication_types=publication_types if "publication_types" in columns else (),
        mesh=_parse_mesh(text, after_types, end) if "mesh" in columns else (),
        keywords=_parse_keywords(text, after_types, end) if "keywords" in columns else (),
        published=published if "published" in columns else None,
        entered=_parse_entered(text, end) if "entered" in columns else None,
        revised=_parse_day(text, text.find("<DateRevised", start, date_start if date_start >= 0 else end))
        if "revised" in columns
        else None,
        authors=tuple([_make_author(item) for item in _parse_list(text, "AuthorList", start, end)])
        if "authors" in columns
        else (),
        chemicals=tuple(
            [_make_chemical(item) for item in _parse_list(text, "ChemicalList", after_types, end)]
        )
        if "chemicals" in columns
        else (),
        grants=tuple([_make_grant(item) for item in _parse_list(text, "GrantList", start, end)])
        if "grants" in columns
        else (),
        cited_pmids=_parse_cited_pmids(text, end) if "cited_pmids" in columns else (),
        other_abstracts=_parse_other_abstracts(text, after_types, end)
        if "other_abstracts" in columns
        else (),
    )


_DAY = re.compile(
    r"<\w+[^<>]*>\s*<Year\s*>\s*(\d{4})\s*</Year\s*>\s*<Month\s*>\s*(\d{1,2})\s*</Month\s*>"
    r"\s*<Day\s*>\s*(\d{1,2})\s*</Day"
)


def _parse_day(text: str, start: int) -> datetime.date | None:
    """Return the date of the element at an offset; None for an offset below 0 and for a date that is none."""
    day = _DAY.match(text, start) if start >= 0 else None
    try:
        return datetime.date(int(day[1]), int(day[2]), int(day[3])) if day else None
    except ValueError:
        return None


def _parse_entered(text: str, data_start: int) -> datetime.date | None:
    """Return the date of the ``PubMedPubDate`` of status ``entrez``."""
    history_end = text.find("</History", data_start)
    status = text.find("entrez", data_start, history_end) if history_end >= 0 else -1
    return _parse_day(text, text.rfind("<", data_start, status)) if status >= 0 else None


_MESH_NAME = re.compile(r'Name(?: UI="([^"]*)")? MajorTopicYN="([YN])">([^<&\s]+(?: [^<&\s]+)*)</')
"""A descriptor or qualifier as nearly all are written: these attributes, plain text."""
_ANY_MESH_NAME = re.compile(rf"<(?:Descriptor|Qualifier)Name({START_TAG_ATTRIBUTES})>([^<]*)</")
_UI = re.compile(attribute_pattern("UI"))
_MAJOR = re.compile(r"""\sMajorTopicYN\s*=\s*["']Y["']""")


def _parse_mesh(text: str, start: int, end: int) -> tuple[MeshHeading, ...]:
    span = find_content(text, "MeshHeadingList", start, end)
    if span is None:
        return ()
    return tuple([_parse_mesh_heading(xml) for xml in text[slice(*span)].split("<MeshHeading")[1:]])


@lru_cache(maxsize=NUM_CACHED)
def _parse_mesh_heading(xml: str) -> MeshHeading:
    """Parse what follows the name of a ``MeshHeading``: one descriptor, then qualifiers."""
    names = _MESH_NAME.findall(xml)
    if 2 * len(names) != xml.count("Name"):
        names = [_parse_mesh_name(*match) for match in _ANY_MESH_NAME.findall(xml)] or [("", "N", "")]
    ui, major, descriptor = names[0]
    qualifiers = tuple([MeshQualifier(name, major == "Y") for _, major, name in names[1:]])
    return MeshHeading(descriptor, ui or None, major == "Y", qualifiers)


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
    while (start := text.find("<KeywordList", start, end)) >= 0:
        span = find_content(text, "KeywordList", start, end)
        if span is None:
            start += 1
            continue
        xml = text[slice(*span)]
        texts = _PLAIN_KEYWORD.findall(xml)
        if "&" in xml or len(texts) != xml.count("<Keyword"):
            elements = parse_xml(f"<x>{element_text.mark_exponents(xml)}</x>").iterchildren("Keyword")
            texts = [extract_text(element) for element in elements]
        keywords += filter(None, [" ".join(keyword.split()) for keyword in texts])
        start = span[1]
    return tuple(keywords)


def _parse_list(text: str, name: str, start: int, end: int) -> list[etree._Element]:
    """Parse the elements of the next list of this name, if any, with lxml."""
    span = find_content(text, name, start, end)
    return list(parse_xml(f"<x>{text[slice(*span)]}</x>").iterchildren("*")) if span else []


def _read_child(element: etree._Element, name: str) -> str | None:
    """Return the text of a child in one line, None without one or text."""
    child = next(element.iterchildren(name), None)
    return None if child is None else (" ".join(extract_text(child).split()) or None)


def _make_author(author: etree._Element) -> Author:
    affiliations = [_read_child(info, "Affiliation") for info in author.iterchildren("AffiliationInfo")]
    affiliations.append(_read_child(author, "Affiliation"))  # before 2015
    identifiers = [
        parse_orcid(identifier.text or "")
        for identifier in author.iterchildren("Identifier")
        if identifier.get("Source") == "ORCID"
    ]
    return Author(
        _read_child(author, "LastName") or _read_child(author, "CollectiveName") or "",
        _read_child(author, "ForeName") or _read_child(author, "Initials"),
        next(filter(None, identifiers), None),
        tuple([affiliation for affiliation in affiliations if affiliation]),
    )


def _make_chemical(chemical: etree._Element) -> Chemical:
    substance = next(chemical.iterchildren("NameOfSubstance"), None)
    return Chemical(
        _read_child(chemical, "NameOfSubstance") or "",
        None if substance is None else substance.get("UI") or None,
        _read_child(chemical, "RegistryNumber"),
    )


def _make_grant(grant: etree._Element) -> Grant:
    return Grant(*[_read_child(grant, name) for name in ("GrantID", "Agency", "Country")])


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


def _parse_other_abstracts(text: str, start: int, end: int) -> tuple[AbstractText, ...]:
    abstracts = []
    while (start := text.find("<OtherAbstract", start, end)) >= 0:
        span = find_content(text, "OtherAbstract", start, end)
        if span is not None:
            xml = element_text.mark_exponents(f"{text[start : span[1]]}</OtherAbstract>")
            other = parse_xml(xml)
            texts = [extract_text(part) for part in other.iterchildren("AbstractText")]
            language = to_marc_code(other.get("Language", "eng"))
            abstracts.append(
                AbstractText(other.get("Type") or None, language, " ".join(" ".join(texts).split()))
            )
        start = span[1] if span else start + 1
    return tuple(abstracts)
