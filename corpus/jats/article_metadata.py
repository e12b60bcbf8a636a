"""Parse the metadata of a JATS article: ids, year, journal, language, licence, retraction, and columns.

Only direct children of the article's own ``front/article-meta`` are read. Related articles, references,
sub-articles and responses contain ids, licences and types of other articles.

Attribute values follow the tag libraries (https://jats.nlm.nih.gov/archiving/tag-library/,
https://dtd.nlm.nih.gov/archiving/tag-library/) and PMC's guidelines
(https://www.ncbi.nlm.nih.gov/pmc/pmcdoc/tagging-guidelines/article/style.html).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Final, NamedTuple

from lxml import etree

from bioshards.corpus import licences
from bioshards.corpus.document import (
    AbstractText,
    ArticleColumns,
    Author,
    Grant,
    find_earliest_date,
    format_partial_date,
    parse_doi,
    parse_orcid,
)
from bioshards.corpus.jats.xml_tree import XLINK_HREF, XML_LANG
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.text.language_detection import ENGLISH
from bioshards.corpus.text_config import ISSNS
from bioshards.corpus.xml.element_text import text_content, unescape_once

_LICENSE_REF: Final = "{http://www.niso.org/schemas/ali/1.0/}license_ref"

_ChildrenByName = dict[str, list[etree._Element]]
"""Children of an element by name, in order."""


class ArticleMetadata(NamedTuple):
    """Metadata of an article. A field is None if it is absent or invalid.

    Attributes:
        pmcid: ``PMC123456``.
        version: PMC's version of the article, or the first number of ``article-version``; default 1.
        pmid: PubMed id.
        doi: without ``https://doi.org/``, case as written.
        year: year of the earliest publication; see :data:`_RANK_BY_DATE_TYPE`.
        journal: journal title as printed, in one line.
        article_type: ``article-type`` in lower case.
        language: MARC code; None if the article declares none.
        licence: code in ``licences.LICENCES``; never ``unknown``.
        retracted: True if the article itself is retracted; False of a retraction's notice.
        notice: ``correction``, ``retraction`` or ``expression-of-concern`` if the article is such a notice.
        manuscript: True if it is an author manuscript.
        ocr: True if the text was read from scanned pages.
        translated: True if the text is a translation into ``language`` (document_builder.py).
        columns: values of the columns of ``--columns``.
        issns: ISSNs of the journal; empty unless asked for.
        minor_version: the numbers of the version after the first one, in base 1,000.
        has_version_number: False if ``article-version`` is no number ("VoR").
        published: date of the earliest publication, as precise as it is known.
    """

    pmcid: str | None
    version: int
    pmid: int | None
    doi: str | None
    year: int | None
    journal: str | None
    article_type: str | None
    language: str | None
    licence: str | None
    retracted: bool
    notice: str | None
    manuscript: bool
    ocr: bool
    translated: bool = False
    columns: ArticleColumns = ArticleColumns()
    issns: tuple[str, ...] = ()
    minor_version: int = 0
    has_version_number: bool = True
    published: str | None = None


class ListedMetadata(NamedTuple):
    """Metadata of an article in PMC's inventory, which PMC keeps current: columns of a mirror's list."""

    pmcid: int
    version: int
    pmid: int | None
    doi: str | None
    licence: str
    retracted: bool | None
    manuscript: bool | None
    ocr: bool | None


NOTICE_TYPES: Final = {
    "correction": "correction",
    "erratum": "correction",
    "corrigendum": "correction",
    "partial-retraction": "correction",
    "retraction": "retraction",
    "withdrawal": "retraction",
    "removal": "retraction",
    "expression-of-concern": "expression-of-concern",
}
"""Article types that are notices about another article. NLM treats a partial retraction as a correction
(https://www.nlm.nih.gov/bsd/policy/errata.html).
"""


def parse_metadata(
    article: etree._Element, columns: Collection[str] = (), xml: bytes = b""
) -> ArticleMetadata:
    """Parse the metadata of an article.

    Args:
        article: the ``article`` element, of xml_tree.py.
        columns: names of the columns of ``ArticleColumns`` to parse, and perhaps ``issns``.
        xml: bytes of the article, for the references.
    """
    front = _find_child(article, "front")
    children = _group_children(_find_child(front, "article-meta"))
    properties = _parse_properties(children)
    article_type = (article.get("article-type") or "").strip().lower() or None
    notice = NOTICE_TYPES.get((article_type or "").replace(" ", "-"))
    language = to_marc_code(article.get(XML_LANG) or "")
    ids = _group_ids(children.get("article-id", []))
    pmcid, version = _parse_pmcid(ids)
    journal_meta = _find_child(front, "journal-meta")
    version_numbers = (version,) if version else _parse_article_version(children)
    year, published = _find_publication_date(children.get("pub-date", []))
    return ArticleMetadata(
        pmcid=pmcid,
        version=version_numbers[0] if version_numbers else 1,
        pmid=_parse_pmid(ids),
        doi=next(filter(None, map(parse_doi, ids.get("doi", ()))), None),
        year=year,
        journal=_parse_journal(journal_meta),
        article_type=article_type,
        language=None if language in ("", "und") else language,  # MARC's undetermined
        licence=_find_licence(children, properties),
        retracted=notice is None and _is_retracted(children),
        notice=notice,
        manuscript=_is_manuscript(ids, properties),
        ocr=properties.get("pmc-prop-is-scanned-article") == "yes"
        or _has_ocr_body(_find_child(article, "body")),
        columns=_parse_columns(children, journal_meta, published, language or ENGLISH, columns, xml),
        issns=_list_texts([journal_meta], "issn") if ISSNS in columns and journal_meta is not None else (),
        minor_version=_join_minor_numbers(version_numbers),
        has_version_number=bool(version_numbers),
        published=published,
    )


def update_metadata(metadata: ArticleMetadata, listed: ListedMetadata) -> ArticleMetadata:
    """Override the metadata of the XML with that of PMC's inventory."""
    return metadata._replace(
        pmcid=f"PMC{listed.pmcid}",
        version=listed.version,
        minor_version=0,
        has_version_number=True,
        pmid=listed.pmid or metadata.pmid,
        doi=parse_doi(listed.doi or "") or metadata.doi,
        licence=metadata.licence if listed.licence == licences.UNKNOWN_LICENCE else listed.licence,
        retracted=metadata.retracted or bool(listed.retracted),
        manuscript=metadata.manuscript or bool(listed.manuscript),
        ocr=metadata.ocr or bool(listed.ocr),
    )


# Ids

_PMCID: Final = re.compile(r"(?:PMC)?([1-9][0-9]{0,9})(?:\.([1-9][0-9]{0,3}))?", re.IGNORECASE)


def _group_ids(elements: list[etree._Element]) -> dict[str, list[str]]:
    """Group the article's ids by ``pub-id-type``."""
    ids: dict[str, list[str]] = {}
    for element in elements:
        ids.setdefault((element.get("pub-id-type") or "").lower(), []).append(_leading_text(element))
    return ids


def _parse_pmcid(ids: dict[str, list[str]]) -> tuple[str | None, int | None]:
    """Parse PMC's id and version.

    PMC writes ``pmcid`` (``PMC123``) and ``pmcid-ver`` (``PMC123.2``); until 2025 ``pmc`` (``123``), and
    ``pmc-uid`` in OAI. ``pmcaid`` and ``pmcaiid`` are other numbers.
    """
    matches = [
        match
        for id_type in ("pmcid-ver", "pmcid", "pmc", "pmc-uid")
        for value in ids.get(id_type, ())
        if (match := _PMCID.fullmatch(value)) and int(match[1]) < 2**31
    ]
    if not matches:
        return None, None
    return f"PMC{matches[0][1]}", next((int(match[2]) for match in matches if match[2]), None)


_VERSION_NUMBERS: Final = re.compile(r"[vV]?([1-9][0-9]{0,3}(?:\.[0-9]{1,3}){0,2})")
_MINOR_BASE: Final = 1000


def _parse_article_version(children: _ChildrenByName) -> tuple[int, ...]:
    """Parse ``article-version`` (JATS 1.2 and later): "1.2" is (1, 2).

    Returns:
        The numbers; (1,) if there is no version, and none if no version is a number ("proof", "VoR").
    """
    alternatives = chain.from_iterable(children.get("article-version-alternatives", []))
    versions = [*children.get("article-version", []), *alternatives]
    for version in versions:
        match = _VERSION_NUMBERS.fullmatch(_leading_text(version))
        if match and version.get("article-version-type") in (None, "number"):
            return tuple(map(int, match[1].split(".")))
    return () if versions else (1,)


def _join_minor_numbers(version: tuple[int, ...]) -> int:
    """Return the numbers of a version after the first one as one number that sorts as they do."""
    second, third = (*version[1:], 0, 0)[:2]
    return second * _MINOR_BASE + third


def _parse_pmid(ids: dict[str, list[str]]) -> int | None:
    for value in ids.get("pmid", ()):
        if re.fullmatch("[1-9][0-9]{0,9}", value) and int(value) < 2**31:
            return int(value)
    return None


def _is_manuscript(ids: dict[str, list[str]], properties: dict[str, str]) -> bool:
    """Return True for an author manuscript, by its properties or, in older files, its id."""
    property_value = properties.get("pmc-prop-manuscript") or properties.get("is-manuscript")
    return property_value == "yes" if property_value else "manuscript" in ids


# Year

_PUBLICATION_TYPES: Final = """
    ppub print epub-ppub electronic-print print-electronic collection pub publication epub electronic
"""
_RANK_BY_DATE_TYPE: Final = {
    **dict.fromkeys(("", *_PUBLICATION_TYPES.split()), 0),
    "epreprint": 1,
    "preprint": 1,
    "pmc-release": 2,
}
"""Ranks of date types: the earliest date of the lowest rank that the article has is its publication, often
the electronic one, months before the printed issue or the collection. Other dates (``received``,
``nihms-submitted``, ``ecorrected``, ``update``) are ignored.
"""
_YEAR: Final = re.compile(r"(?<![0-9])(1[6-9][0-9]{2}|20[0-9]{2})(?![0-9])")


def _find_publication_date(dates: list[etree._Element]) -> tuple[int | None, str | None]:
    """Return year and date of the earliest publication, as precise as it is known.

    Of dates of one year, those without month or day are the last.
    """
    ranked_dates = []
    for date in dates:
        date_type = date.get("pub-type") or date.get("date-type") or ""  # the first in NLM and JATS 1.0
        if date_type in ("pub", "publication", ""):
            date_type = date.get("publication-format") or date_type
        rank = _RANK_BY_DATE_TYPE.get(date_type.lower())
        year = _YEAR.search(_leading_text(_find_child(date, "year")) or date.get("iso-8601-date", ""))
        year = year or _YEAR.search(_one_line_text(_find_child(date, "string-date")))
        if year and rank is not None:
            month, day = (_leading_text(_find_child(date, name)) for name in ("month", "day"))
            ranked_dates.append((rank, format_partial_date(year[1], month, day)))
    if not ranked_dates:
        return None, None
    lowest_rank, _ = min(ranked_dates)
    published = find_earliest_date(date for rank, date in ranked_dates if rank == lowest_rank)
    return int(published[:4]), published


# Journal, retraction, scanned pages


def _parse_journal(journal_meta: etree._Element | None) -> str | None:
    """Return the journal title. JATS and NLM 3.0 have a group around it, NLM 2.x has none."""
    group = _find_child(journal_meta, "journal-title-group")
    return (
        _one_line_text(_find_child(group, "journal-title"))
        or _one_line_text(_find_child(journal_meta, "journal-title"))
        or None
    )


_RETRACTION_LINK_TYPES: Final = frozenset(
    {"retraction-forward", "retraction-in", "retracted-in", "withdrawal-forward", "removal-forward"}
)
_RETRACTED_TITLE: Final = re.compile(
    r"\W*(?:retracted|withdrawn)(?: (?:article|paper|chapter))?\s*[\]:)]"
    r"|.*[\[(](?:retracted|withdrawn)(?: (?:article|paper|chapter))?[\])]\W*",
    re.IGNORECASE | re.DOTALL,
)


def _is_retracted(children: _ChildrenByName) -> bool:
    """Return True if the article links to its retraction (``retraction-forward``) or its title says so.

    A retraction's notice can have such a title too; it links to the ``retracted-article``.
    """
    link_types = {
        (related.get("related-article-type") or "").lower() for related in children.get("related-article", [])
    }
    if link_types & _RETRACTION_LINK_TYPES:
        return True
    if "retracted-article" in link_types:
        return False
    titles = (
        _one_line_text(_find_child(group, "article-title")) for group in children.get("title-group", [])
    )
    return any(_RETRACTED_TITLE.match(title) for title in titles)


def _parse_properties(children: _ChildrenByName) -> dict[str, str]:
    """Return the properties of PMC and publishers in ``custom-meta``, in lower case."""
    properties: dict[str, str] = {}
    for group in (*children.get("custom-meta-group", []), *children.get("custom-meta-wrap", [])):
        for item in group.iterchildren("custom-meta"):
            name = _leading_text(_find_child(item, "meta-name")).lower()
            if name.startswith(("pmc-", "is-")):
                properties.setdefault(name, _leading_text(_find_child(item, "meta-value")).lower())
    return properties


def _has_ocr_body(body: etree._Element | None) -> bool:
    """Return True for text of scanned pages: ``<preformat preformat-type="pmc-ocr-text">`` per page."""
    if body is None:
        return False
    return any(text.get("preformat-type") == "pmc-ocr-text" for text in body.iterchildren("preformat"))


# Licence


def _find_licence(children: _ChildrenByName, properties: dict[str, str]) -> str | None:
    """Combine all licence statements of the article into one code.

    Statements are in ``ali:license_ref`` (PMC puts the name into its content-type), in attributes of
    ``license``, in its prose and URLs, in PMC's ``pmc-license-ref``, and in the copyright statement. NLM 2.x
    has no ``permissions`` around them.
    """
    codes = {_licence_from_name(properties.get("pmc-license-ref"))}
    for container in (children, *map(_group_children, children.get("permissions", []))):
        for statement in container.get("copyright-statement", []):
            codes.add(licences.licence_from_text(text_content(statement)))
        for reference in container.get(_LICENSE_REF, []):
            codes |= _licences_from_reference(reference)
        for license_element in container.get("license", []):
            codes |= _licences_from_element(license_element)
    return licences.combine_licences(code for code in codes if code)


def _licences_from_reference(reference: etree._Element) -> set[str | None]:
    return {_licence_from_url(reference.text), _licence_from_name(reference.get("content-type"))}


def _licences_from_element(license_element: etree._Element) -> set[str | None]:
    """Return the codes that a ``license`` element states.

    A link to CC0 is ignored, as it may refer to the data; CC0 is recognised from the wording only.
    """
    link_codes = {
        _licence_from_url(link.get(XLINK_HREF)) for link in license_element.iter("ext-link", "uri")
    } - {"CC0"}
    codes = {
        _licence_from_url(license_element.get(XLINK_HREF)),
        _licence_from_name(license_element.get("license-type")),
        licences.licence_from_text(text_content(license_element)),
    }
    for reference in license_element.iterchildren(_LICENSE_REF):
        codes |= _licences_from_reference(reference)
    return codes | link_codes


def _licence_from_url(url: str | None) -> str | None:
    return licences.licence_from_url(url.strip()) if url else None


def _licence_from_name(name: str | None) -> str | None:
    return licences.licence_from_name(name) if name else None


# Columns: journal, keywords, authors, grants, references and others

_ABBREVIATION_TYPES: Final = ("iso-abbrev", "nlm-ta")
"""Types of ``journal-id`` with an abbreviation of the title, in order of precedence."""


def _parse_columns(
    children: _ChildrenByName,
    journal_meta: etree._Element | None,
    published: str | None,
    language: str,
    columns: Collection[str],
    xml: bytes,
) -> ArticleColumns:
    journal_ids: dict[str, str] = {}
    if journal_meta is not None and not {"journal_abbreviation", "nlm_id"}.isdisjoint(columns):
        for element in journal_meta.iterchildren("journal-id"):
            journal_ids.setdefault((element.get("journal-id-type") or "").lower(), _one_line_text(element))
    abbreviations = [journal_ids[name] for name in _ABBREVIATION_TYPES if journal_ids.get(name)]
    subjects = children.get("article-categories", [])
    return ArticleColumns(
        journal_abbreviation=next(iter(abbreviations), None) if "journal_abbreviation" in columns else None,
        nlm_id=journal_ids.get("nlm-journal-id") or None if "nlm_id" in columns else None,
        keywords=_parse_keywords(children) if "keywords" in columns else (),
        subjects=_list_texts(subjects, "subject") if "subjects" in columns else (),
        published=published if "published" in columns else None,
        authors=_parse_authors(children) if "authors" in columns else (),
        grants=_parse_grants(children) if "grants" in columns else (),
        cited_pmids=_find_cited_pmids(xml) if "cited_pmids" in columns else (),
        other_abstracts=_parse_other_abstracts(children, language) if "other_abstracts" in columns else (),
    )


def _parse_keywords(children: _ChildrenByName) -> tuple[str, ...]:
    """Return the keywords, without the article's abbreviations, whose meanings a group explains.

    PMC's XML of 2026 may have them as a section of the abstract only: "**Keywords:** gull, tern".
    """
    groups = [
        group
        for group in children.get("kwd-group", [])
        if not (group.get("kwd-group-type") or "").lower().startswith("abbr")
    ]
    if keywords := _list_texts(groups, "kwd"):
        return keywords
    sections = [
        section
        for abstract in children.get("abstract", [])
        for section in abstract.iterchildren("sec")
        if section.get("sec-type") == "kwd-group"
    ]
    lists = [text.partition(":")[2] or text for text in _list_texts(sections, "p")]
    return tuple(keyword.strip() for text in lists for keyword in text.split(",") if keyword.strip())


def _parse_authors(children: _ChildrenByName) -> tuple[Author, ...]:
    groups = children.get("contrib-group", [])
    affiliations = chain(children.get("aff", []), *(group.iter("aff") for group in groups))
    affiliation_by_id = {element.get("id"): _read_affiliation(element) for element in affiliations}
    contributors = chain.from_iterable(group.iterchildren("contrib") for group in groups)
    authors = (
        _parse_author(contributor, affiliation_by_id)
        for contributor in contributors
        if contributor.get("contrib-type", "author") == "author"
    )
    return tuple(author for author in authors if author.last_name)


def _parse_author(contributor: etree._Element, affiliation_by_id: Mapping[str | None, str]) -> Author:
    """Return an author; one without a name has an empty last name."""
    name = _find_name(contributor, ("name", "string-name"))
    surname = _one_line_text(_find_child(name, "surname")) or _one_line_text(name)
    ids = [parse_orcid(_one_line_text(item)) for item in contributor.iterchildren("contrib-id")]
    ids += [parse_orcid(link.get(XLINK_HREF) or "") for link in contributor.iterchildren("ext-link", "uri")]
    affiliations = [_read_affiliation(element) for element in contributor.iterchildren("aff")]
    for link in contributor.iterchildren("xref"):
        if link.get("ref-type") == "aff":
            affiliations += [affiliation_by_id.get(rid, "") for rid in (link.get("rid") or "").split()]
    return Author(
        surname or _read_group_name(_find_name(contributor, ("collab",))),
        _one_line_text(_find_child(name, "given-names")) or None,
        next(filter(None, ids), None),
        tuple(dict.fromkeys(filter(None, affiliations))),
        _one_line_text(_find_child(name, "suffix")) or None,
    )


def _find_name(contributor: etree._Element, names: tuple[str, ...]) -> etree._Element | None:
    """Return the first of these elements that is not of a member of a group."""
    alternatives = contributor.iterchildren(*names, "name-alternatives", "collab-alternatives")
    return next(chain.from_iterable(child.iter(*names) for child in alternatives), None)


def _read_group_name(collab: etree._Element | None) -> str:
    """Return the name of a group without its members."""
    if collab is None:
        return ""
    group = copy.deepcopy(collab)
    etree.strip_elements(group, "contrib-group", with_tail=False)
    return _one_line_text(group)


_ADDRESS_PARTS: Final = "institution institution-wrap addr-line country city state postal-code"


def _read_affiliation(element: etree._Element) -> str:
    """Return an affiliation without ids of institutions and its mark, a label or a superscript before it.

    Parts of an address that nothing separates are apart.
    """
    affiliation = copy.deepcopy(element)
    first = next(affiliation.iterchildren(), None)
    if first is not None and first.tag == "sup" and not _leading_text(affiliation):
        first.tag = "label"
    etree.strip_elements(affiliation, "label", "institution-id", with_tail=False)
    for part in affiliation.iter(*_ADDRESS_PARTS.split()):
        if part.getnext() is not None:
            part.tail = part.tail or " "
    return _one_line_text(affiliation)


def _parse_grants(children: _ChildrenByName) -> tuple[Grant, ...]:
    """Return a grant for each number of an ``award-group``, or one without a number.

    A grant that is given for each of its recipients is one.
    """
    grants = []
    for award in chain.from_iterable(
        group.iter("award-group")
        for group in (*children.get("funding-group", []), *children.get("support-group", []))
    ):
        source = _find_child(award, "funding-source")
        agency = _read_agency(_find_child(award, "support-source") if source is None else source)
        ids = [_one_line_text(item) or None for item in award.iterchildren("award-id")]
        grants += [Grant(grant_id, agency, None) for grant_id in ids or [None]]
    return tuple(dict.fromkeys(grants))


def _read_agency(source: etree._Element | None) -> str | None:
    """Return the name of a funder without its ids."""
    if source is None:
        return None
    source = copy.deepcopy(source)
    for element in list(source.iter("named-content")):
        if "-id" in element.get("content-type", ""):  # funder-id, fundref-id, funder-identifier
            element.tag = "institution-id"
    etree.strip_elements(source, "institution-id", with_tail=False)
    institution = next(source.iter("institution"), None)
    return _one_line_text(source if institution is None else institution) or None


_ABSTRACT_TYPES: Final = frozenset(
    {"", "abstract", "normal", "structured", "unstructured", "section", "main", "primary", "standard"}
)
"""Values of ``abstract-type`` of the main abstract."""
_ONLY_ABSTRACT_TYPES: Final = frozenset({"short", "summary", "executive-summary"})
"""Values of ``abstract-type`` of the main abstract where an article has no other abstract."""


def find_main_abstract(abstracts: Iterable[etree._Element], language: str) -> etree._Element | None:
    """Return the abstract in the article's own language, whatever its place, else the first, or None.

    A summary is the main abstract only where the article has one ``abstract``.

    Args:
        abstracts: each ``abstract`` and ``trans-abstract`` of an article, in order.
        language: MARC code of the article's language.
    """
    abstracts = list(abstracts)
    has_one = sum(element.tag == "abstract" for element in abstracts) == 1
    types = _ABSTRACT_TYPES | _ONLY_ABSTRACT_TYPES if has_one else _ABSTRACT_TYPES
    candidates = [element for element in abstracts if (element.get("abstract-type") or "").lower() in types]
    first = next((element for element in candidates if element.tag == "abstract"), None)
    if first is not None and not is_translated(first, language):
        return first
    own = (element for element in candidates if _language_of(element) == language)
    return next(own, first)


def is_translated(abstract: etree._Element, language: str) -> bool:
    """Return True if an abstract is in another language than the article."""
    return (_language_of(abstract) or (language if abstract.tag == "abstract" else "")) != language


def _language_of(element: etree._Element) -> str:
    return to_marc_code(element.get(XML_LANG) or "")


def _parse_other_abstracts(children: _ChildrenByName, language: str) -> tuple[AbstractText, ...]:
    """Return translated abstracts, and those with an ``abstract-type``."""
    abstracts = [*children.get("abstract", []), *children.get("trans-abstract", [])]
    main = find_main_abstract(abstracts, language)
    return tuple(
        AbstractText(
            element.get("abstract-type") or None, _language_of(element) or None, _read_abstract(element)
        )
        for element in abstracts
        if element is not main and (is_translated(element, language) or element.get("abstract-type"))
    )


_ABSTRACT_BLOCKS: Final = ("sec", "title", "p", "list", "list-item", "label", "break")


def _read_abstract(element: etree._Element) -> str:
    """Return the text of an abstract, its paragraphs and titles apart."""
    abstract = copy.deepcopy(element)
    for block in abstract.iter(*_ABSTRACT_BLOCKS):
        block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"
    return _one_line_text(abstract)


_REFERENCE_LIST_START: Final = re.compile(rb"<(?:\w+:)?ref-list\b")
_REFERENCE_LISTS: Final = re.compile(rb".*</(?:\w+:)?ref-list", re.DOTALL)
_CITED_PMID: Final = re.compile(
    rb"""<(?:\w+:)?pub-id\b[^<>]*pub-id-type\s*=\s*["']pmid["'][^<>]*>\s*([1-9][0-9]{0,8})\s*<"""
)


_SUB_ARTICLE: Final = re.compile(rb"<(?:\w+:)?(?:sub-article|response)\b")


def _find_cited_pmids(xml: bytes) -> tuple[int, ...]:
    """Return the PubMed ids in the reference lists of an article, which xml_tree.py leaves out.

    Reviews and replies, which follow the article's own text, have references of their own.
    """
    sub_article = _SUB_ARTICLE.search(xml)
    end = sub_article.start() if sub_article else len(xml)
    first = _REFERENCE_LIST_START.search(xml, 0, end)
    references = _REFERENCE_LISTS.match(xml, first.end(), end) if first else None
    return tuple(dict.fromkeys(map(int, _CITED_PMID.findall(references[0])))) if references else ()


# Elements


def _group_children(parent: etree._Element | None) -> _ChildrenByName:
    """Group the children of an element by name, in order."""
    children: _ChildrenByName = {}
    for child in () if parent is None else parent:
        children.setdefault(child.tag, []).append(child)
    return children


def _find_child(parent: etree._Element | None, name: str) -> etree._Element | None:
    """Return the first child of this name. Several times as fast as ``find`` and ``iterchildren``."""
    for child in () if parent is None else parent:
        if child.tag == name:
            return child
    return None


def _leading_text(element: etree._Element | None) -> str:
    """Return the text before an element's first child."""
    return "" if element is None else (element.text or "").strip()


def _one_line_text(element: etree._Element | None) -> str:
    """Return all text in an element, in one line."""
    return "" if element is None else " ".join(unescape_once(text_content(element)).split())


def _list_texts(elements: list[etree._Element], name: str) -> tuple[str, ...]:
    """Return the distinct texts of all descendants of this name, in order."""
    texts = (_one_line_text(item) for element in elements for item in element.iter(name))
    return tuple(dict.fromkeys(text for text in texts if text))
