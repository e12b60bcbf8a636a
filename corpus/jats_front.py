"""What a JATS article's front matter says of it: ids, year, journal, language, licence, retraction.

Read is what stands directly in the article's own ``front/article-meta``, child by child.  Related articles,
references, sub-articles and responses have ids, licences and types too, of other articles.

Suggested values of attributes are those of the tag libraries
(https://jats.nlm.nih.gov/archiving/tag-library/, https://dtd.nlm.nih.gov/archiving/tag-library/) and of
PMC's guidelines (https://www.ncbi.nlm.nih.gov/pmc/pmcdoc/tagging-guidelines/article/style.html).
"""

from __future__ import annotations

import re
from itertools import chain
from typing import Final, NamedTuple

from lxml import etree

from . import languages, licences
from .jats_xml import XLINK_HREF, XML_LANG

_LICENSE_REF: Final = "{http://www.niso.org/schemas/ali/1.0/}license_ref"


class Front(NamedTuple):
    """What an article says of itself.  None where it says nothing, or nothing that makes sense.

    Attributes:
        pmcid: ``PMC123456``.
        version: PMC's version of the article, 1 where none is said.
        doi: without ``https://doi.org/`` before it, in the letters in which it is written.
        year: of publication, as PubMed cites it: see :data:`_DATES`.
        journal: the journal's title as printed, in one line.
        article_type: in lower case.
        language: MARC's code.
        licence: of :data:`.licences.LICENCES`; never ``unknown``.
        retracted: is the article itself retracted?  A retraction's notice is not.
        notice: ``correction``, ``retraction`` or ``expression-of-concern`` if the article is such a notice.
        manuscript: is it an author's manuscript, not the published article?
        ocr: was its text read from scanned pages?
    """

    pmcid: str | None
    version: int
    pmid: int | None
    doi: str | None
    year: int | None
    journal: str | None
    article_type: str | None
    language: str
    licence: str | None
    retracted: bool
    notice: str | None
    manuscript: bool
    ocr: bool


NOTICES: Final = {
    "correction": "correction",
    "erratum": "correction",
    "corrigendum": "correction",
    "partial-retraction": "correction",
    "retraction": "retraction",
    "withdrawal": "retraction",
    "removal": "retraction",
    "expression-of-concern": "expression-of-concern",
}
"""Types of articles that only say something of another article.  A partial retraction is a correction to NLM
(https://www.nlm.nih.gov/bsd/policy/errata.html)."""


def front(article: etree._Element) -> Front:
    """Read the front matter of an ``article`` element."""
    matter = _child(article, "front")
    parts = _parts(_child(matter, "article-meta"))
    properties = _properties(parts)
    article_type = (article.get("article-type") or "").strip().lower() or None
    notice = NOTICES.get((article_type or "").replace(" ", "-"))
    ids = _ids(parts.get("article-id", []))
    pmcid, version = _pmcid(ids)
    return Front(
        pmcid=pmcid,
        version=version or _article_version(parts),
        pmid=_pmid(ids),
        doi=_doi(ids),
        year=_year(parts.get("pub-date", [])),
        journal=_journal(_child(matter, "journal-meta")),
        article_type=article_type,
        language=languages.marc((article.get(XML_LANG) or "").strip() or "en"),
        licence=_licence(parts, properties),
        retracted=notice is None and _retracted(parts),
        notice=notice,
        manuscript=_manuscript(ids, properties),
        ocr=properties.get("pmc-prop-is-scanned-article") == "yes" or _ocr_body(_child(article, "body")),
    )


_Parts = dict[str, list[etree._Element]]

_READ: Final = (
    *("article-id", "article-version", "article-version-alternatives", "title-group", "pub-date"),
    *("related-article", "permissions", "copyright-statement", "license", _LICENSE_REF),
    *("custom-meta-group", "custom-meta-wrap"),
)


def _parts(holder: etree._Element | None) -> _Parts:
    """The children of an element that are read, by name, in order."""
    parts: _Parts = {}
    for child in () if holder is None else holder.iterchildren(*_READ):
        parts.setdefault(child.tag, []).append(child)
    return parts


def _child(parent: etree._Element | None, name: str) -> etree._Element | None:
    """Its first child of this name.  (``find`` is ten times slower, which counts here.)"""
    return None if parent is None else next(parent.iterchildren(name), None)


def _text(element: etree._Element | None) -> str:
    """The text before an element's first child: all of it where it has none."""
    return "" if element is None else (element.text or "").strip()


def _line(element: etree._Element | None) -> str:
    """All text in an element, in one line."""
    return "" if element is None else " ".join(_all_text(element).split())


def _all_text(element: etree._Element) -> str:
    return etree.tostring(element, method="text", encoding="unicode", with_tail=False)


# Ids

_PMCID: Final = re.compile(r"(?:PMC)?([1-9][0-9]{0,9})(?:\.([1-9][0-9]{0,3}))?", re.IGNORECASE)
_DOI: Final = re.compile(
    r"(?:https?://(?:dx\.|www\.)?doi\.org/|doi:|info:doi/)?\s*(10\.[0-9]{4,9}(?:\.[0-9]+)*/[^\s<>]+)",
    re.IGNORECASE,
)
MAX_DOI: Final = 2000
"""Characters; DOIs have no limit of their own (https://www.doi.org/doi-handbook/HTML/)."""


def _ids(elements: list[etree._Element]) -> dict[str, list[str]]:
    """The article's ids by ``pub-id-type``."""
    ids: dict[str, list[str]] = {}
    for element in elements:
        ids.setdefault((element.get("pub-id-type") or "").lower(), []).append(_text(element))
    return ids


def _pmcid(ids: dict[str, list[str]]) -> tuple[str | None, int | None]:
    """PMC's id and version.

    PMC writes ``pmcid`` (``PMC123``) and ``pmcid-ver`` (``PMC123.2``); until 2025 it was ``pmc`` (``123``),
    in OAI ``pmc-uid`` too.  ``pmcaid`` and ``pmcaiid`` are numbers of something else.
    """
    found = [
        match
        for kind in ("pmcid-ver", "pmcid", "pmc", "pmc-uid")
        for value in ids.get(kind, ())
        if (match := _PMCID.fullmatch(value)) and int(match[1]) < 2**31
    ]
    if not found:
        return None, None
    return f"PMC{found[0][1]}", next((int(match[2]) for match in found if match[2]), None)


def _article_version(parts: _Parts) -> int:
    """The version in ``article-version`` (JATS 1.2 and later) if that is a number, otherwise 1.

    Publishers' own versions ("1.1", "proof", "VoR") are none of PMC's.
    """
    alternatives = chain.from_iterable(parts.get("article-version-alternatives", []))
    for element in (*parts.get("article-version", []), *alternatives):
        text = _text(element)
        if element.get("article-version-type") == "number" and re.fullmatch("[1-9][0-9]{0,3}", text):
            return int(text)
    return 1


def _pmid(ids: dict[str, list[str]]) -> int | None:
    for value in ids.get("pmid", ()):
        if re.fullmatch("[1-9][0-9]{0,9}", value) and int(value) < 2**31:
            return int(value)
    return None


def _doi(ids: dict[str, list[str]]) -> str | None:
    for value in ids.get("doi", ()):
        match = _DOI.fullmatch(value) if len(value) <= MAX_DOI else None
        if match and match[1].isprintable():
            return match[1]
    return None


def _manuscript(ids: dict[str, list[str]], properties: dict[str, str]) -> bool:
    """PMC says so in a property, Europe PMC in ``is-manuscript``; older files have only its id."""
    said = properties.get("pmc-prop-manuscript") or properties.get("is-manuscript")
    return said == "yes" if said else "manuscript" in ids


# Year

_DATES: Final = (
    ("ppub", "print"),
    ("epub-ppub", "electronic-print", "print-electronic"),
    ("collection",),
    ("pub", "publication", ""),
    ("epub", "electronic"),
    ("epreprint", "preprint"),
    ("pmc-release",),
)
"""Which of an article's dates has the year of publication: the first of these kinds that it has.

PubMed's ``PubDate``, from which the year of our PubMed documents comes, is the issue's: the print date where
there is a printed issue, the collection's where the journal is electronic only (PubModel
Electronic-eCollection), the day of electronic publication where there is neither
(https://www.nlm.nih.gov/bsd/licensee/elements_article_source.html).  Dates of other kinds (``received``,
``nihms-submitted``, ``ecorrected``, ``update``) are not of publication.
"""
_RANKS: Final = {kind: rank for rank, kinds in enumerate(_DATES) for kind in kinds}
_YEAR: Final = re.compile(r"(?<![0-9])(1[6-9][0-9]{2}|20[0-9]{2})(?![0-9])")


def _year(dates: list[etree._Element]) -> int | None:
    found = [(rank, year) for date in dates if (rank := _rank(date)) is not None and (year := _year_of(date))]
    return min(found, key=lambda ranked: ranked[0])[1] if found else None


def _rank(date: etree._Element) -> int | None:
    """NLM and JATS 1.0 have ``pub-type``; since then it is ``date-type`` and ``publication-format``."""
    kind = date.get("pub-type") or date.get("date-type") or ""
    if kind in ("pub", "publication", ""):
        kind = date.get("publication-format") or kind
    return _RANKS.get(kind.lower())


def _year_of(date: etree._Element) -> int | None:
    match = _YEAR.search(_text(_child(date, "year")) or date.get("iso-8601-date", ""))
    match = match or _YEAR.search(_line(_child(date, "string-date")))
    return int(match[1]) if match else None


# Journal, retraction, scanned pages


def _journal(meta: etree._Element | None) -> str | None:
    """JATS and NLM 3.0 have a group around the title, NLM 2.x has none."""
    group = _child(meta, "journal-title-group")
    return _line(_child(group, "journal-title")) or _line(_child(meta, "journal-title")) or None


_RETRACTED_BY: Final = frozenset(
    {"retraction-forward", "retraction-in", "retracted-in", "withdrawal-forward", "removal-forward"}
)
_RETRACTED_TITLE: Final = re.compile(
    r"\W*(?:retracted|withdrawn)(?: (?:article|paper|chapter))?\s*[\]:)]"
    r"|.*[\[(](?:retracted|withdrawn)(?: (?:article|paper|chapter))?[\])]\W*",
    re.IGNORECASE | re.DOTALL,
)


def _retracted(parts: _Parts) -> bool:
    """Does it point to its retraction (``retraction-forward``), or say it in its title?

    A title like that stands over a retraction's notice too; that points to the ``retracted-article``.
    """
    kinds = {
        (related.get("related-article-type") or "").lower() for related in parts.get("related-article", [])
    }
    if kinds & _RETRACTED_BY:
        return True
    if "retracted-article" in kinds:
        return False
    titles = (_line(_child(group, "article-title")) for group in parts.get("title-group", []))
    return any(_RETRACTED_TITLE.match(title) for title in titles)


def _properties(parts: _Parts) -> dict[str, str]:
    """The article's custom-meta, in lower case: PMC's own properties, and publishers'."""
    properties: dict[str, str] = {}
    for group in (*parts.get("custom-meta-group", []), *parts.get("custom-meta-wrap", [])):
        for item in group.iterchildren("custom-meta"):
            name = _text(_child(item, "meta-name")).lower()
            if name.startswith(("pmc-", "is-")):
                properties.setdefault(name, _text(_child(item, "meta-value")).lower())
    return properties


def _ocr_body(body: etree._Element | None) -> bool:
    """PMC gives the text of scanned pages as ``<preformat preformat-type="pmc-ocr-text">``, page by page."""
    if body is None:
        return False
    return any(text.get("preformat-type") == "pmc-ocr-text" for text in body.iterchildren("preformat"))


# Licence


def _licence(parts: _Parts, properties: dict[str, str]) -> str | None:
    """All that is said of the licence, as one code.

    Said in ``ali:license_ref`` (PMC writes the licence's name into its content-type), in attributes of
    ``license``, in its prose and the addresses in that, in PMC's ``pmc-license-ref``, and in the copyright
    statement.  NLM 2.x has no ``permissions`` around them.
    """
    said = {_of_name(properties.get("pmc-license-ref"))}
    for holder in (parts, *map(_parts, parts.get("permissions", []))):
        for statement in holder.get("copyright-statement", []):
            said.add(licences.of_text(_all_text(statement)))
        for reference in holder.get(_LICENSE_REF, []):
            said |= _of_reference(reference)
        for license in holder.get("license", []):
            said |= _of_license(license)
    return licences.strictest(code for code in said if code)


def _of_reference(reference: etree._Element) -> set[str | None]:
    return {_of_address(reference.text), _of_name(reference.get("content-type"))}


def _of_license(license: etree._Element) -> set[str | None]:
    """What is said in and of a ``license``.

    A link to CC0 says nothing alone, for it may be the data's; what is CC0 is decided by the words around it.
    """
    links = {_of_address(link.get(XLINK_HREF)) for link in license.iter("ext-link", "uri")} - {"CC0"}
    said = {
        _of_address(license.get(XLINK_HREF)),
        _of_name(license.get("license-type")),
        licences.of_text(_all_text(license)),
    }
    for reference in license.iterchildren(_LICENSE_REF):
        said |= _of_reference(reference)
    return said | links


def _of_address(url: str | None) -> str | None:
    return licences.of_address(url.strip()) if url else None


def _of_name(name: str | None) -> str | None:
    return licences.of_name(name) if name else None
