"""Read one PubMed record: its bytes in, a :class:`Citation` out.

Of a record's many kilobytes (authors, MeSH, hundreds of references) a corpus reads a few elements.
They are found where the DTD (pubmed_250101.dtd; older ones alike) puts them: by direct child path
only, for ``PMID`` and ``ArticleIdList`` also occur in the records' lists of *cited* papers.  Text
without markup is taken as it stands; a title or abstract with inline markup goes through lxml.
A record that is unusual in any way (see tags.py) is first written out anew by lxml, which
also refuses it where it is not well-formed.

So the well-formedness of elements that are never read is checked only roughly (their tags must
balance, their bytes be UTF-8); tests compare every result with a whole-tree reading.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from lxml import etree

from . import tags
from .errors import BadRecordError

RETRACTED_TYPE: Final = "Retracted Publication"
"""Publication type of a retracted article (D016441); D016440 marks the notice, which is not one."""


class Section(NamedTuple):
    """One ``AbstractText``: its label as printed (None without one, or for UNLABELLED) and text."""

    label: str | None
    text: str


class Citation(NamedTuple):
    """What a corpus reads of a PubMed record.  Text is joined exactly as written."""

    pmid: int
    version: int
    title: str
    abstract: tuple[Section, ...]
    year: int | None
    languages: tuple[str, ...]
    publication_types: tuple[str, ...]
    retracted: bool
    pmcid: str | None
    doi: str | None


class _UnusualLayoutError(Exception):
    """The record is not laid out as the fast reading expects; lxml must write it out anew."""


def parse(record: bytes, balanced: bool = False) -> Citation:
    """Read a ``PubmedArticle`` or ``MedlineCitation``.

    Args:
        balanced: is it known that its tags balance?

    Raises:
        BadRecordError: not UTF-8, not well-formed, or without a PMID.
    """
    text = _decoded(record)
    if balanced or tags.balanced(text):
        try:
            return _citation(text)
        except _UnusualLayoutError:
            pass
    text = etree.tostring(_tree(text), encoding="unicode")
    try:
        return _citation(text)
    except _UnusualLayoutError as unusual:
        raise BadRecordError("no-pmid", str(unusual)) from unusual


def pmids(record: bytes) -> list[tuple[int, int]]:
    """(PMID, Version) of the record's own ``PMID`` children: a deletion has many, a book one."""
    tree = _tree(_decoded(record))
    holder = tree.find("BookDocument") if tree.tag == "PubmedBookArticle" else tree
    found = [] if holder is None else holder.findall("PMID")
    return [(_pmid(item.text or ""), _version(item.get("Version"))) for item in found]


def _decoded(record: bytes) -> str:
    try:
        return record.decode()
    except UnicodeDecodeError as error:
        raise BadRecordError("invalid-utf-8", f"{error.reason} at byte {error.start}") from error


_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
)


def _tree(text: str) -> etree._Element:
    try:
        return etree.fromstring(text, _PARSER)
    except etree.XMLSyntaxError as error:
        if "Namespace prefix mml" not in str(error):
            raise BadRecordError("malformed-xml", str(error)) from error
    # PubMed declares the prefix on the formula itself; where a file does so on its root, here.
    wrapped = f'<x xmlns:mml="http://www.w3.org/1998/Math/MathML">{text}</x>'
    try:
        return etree.fromstring(wrapped, _PARSER)[0]
    except etree.XMLSyntaxError as error:
        raise BadRecordError("malformed-xml", str(error)) from error


_ATTRIBUTES = r"""(?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*?"""
_START = _ATTRIBUTES + r"\s*"


def _attribute(name: str) -> str:
    """A pattern for a start tag's attributes up to this one, its value as the next two groups."""
    return rf"""{_ATTRIBUTES}\s+{name}\s*=\s*(?:"([^"<]*)"|'([^'<]*)')"""


_CITATION = re.compile(rf"<MedlineCitation{_START}>\s*<PMID({_START})>([^<]*)</PMID\s*>")
_VERSION = re.compile(_attribute("Version"))
_DATE = re.compile(r"<PubDate\s*>\s*(?:<Year\s*>\s*(\d{4})|<MedlineDate\s*>[^<]*?(\d{4}))")
_LANGUAGE = re.compile(r"<Language\s*>([^<]*)</Language\s*>\s*")
_TYPE = re.compile(rf"<PublicationType{_START}>([^<]*)</PublicationType\s*>")
_ARTICLE_ID = re.compile(rf"<ArticleId{_attribute('IdType')}{_START}>([^<]*)</ArticleId\s*>")
_LOCATION = re.compile(rf"<ELocationID({_START})>([^<]*)</ELocationID\s*>")
_DOI = re.compile(r"""\sEIdType\s*=\s*["']doi["']""")
_INVALID = re.compile(r"""\sValidYN\s*=\s*["']N["']""")
_RETRACTION_IN = re.compile(
    r"""<CommentsCorrections\s[^<>]*RefType\s*=\s*["']RetractionIn["']|<RetractionIn[\s>]"""
)
_PMCID = re.compile(r"PMC\d+")


def _citation(text: str) -> Citation:
    """Read the record from left to right, in the DTD's order, each part of it at most once or twice.

    ``PubDate``, ``ArticleTitle``, ``Abstract``, ``Language`` and ``PublicationTypeList`` occur in a
    record once, as children of its ``Article`` (``PubDate``: of its ``JournalIssue``).
    """
    number = _CITATION.search(text)
    if number is None:
        raise _UnusualLayoutError("no PMID as first child of MedlineCitation")
    start = number.end()
    dated = text.find("<PubDate", start)
    date = _DATE.match(text, dated) if dated >= 0 else None
    title, after_title = _title(text, start)
    languages, after_languages = _languages(text, after_title)
    abstract = _abstract(text, after_title, after_languages if languages else len(text))
    types, after_types = _types(text, after_languages)
    data_at = text.find("<PubmedData", after_types)
    end = data_at if data_at >= 0 else len(text)
    ids = _article_ids(text, data_at) if data_at >= 0 else {}
    pmcid = _PMCID.search(ids.get("pmc") or ids.get("pmcid") or "")
    version = _VERSION.match(number[1]) if number[1] else None
    return Citation(
        pmid=_pmid(number[2]),
        version=_version(version[1] or version[2] or "" if version else None),
        title=title,
        abstract=abstract,
        year=int(date[1] or date[2]) if date else None,
        languages=languages,
        publication_types=types,
        retracted=RETRACTED_TYPE in types or _retraction_in(text, after_types, end),
        pmcid=pmcid[0] if pmcid else None,
        doi=ids.get("doi") or _located_doi(text, start, end),
    )


def _pmid(digits: str) -> int:
    digits = digits.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 10 and 0 < int(digits) < 2**31):
        raise BadRecordError("bad-pmid", f"PMID {digits[:20]!r} is no number from 1 to 2,147,483,647")
    return int(digits)


def _version(digits: str | None) -> int:
    if digits is None:
        return 1
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 4):
        raise BadRecordError("bad-version", f"PMID Version {digits[:20]!r} is no number below 10,000")
    return int(digits)


def _close(text: str, name: str, start: int) -> tuple[int, int]:
    """Offsets of the end tag of an element that a record has but once.

    Raises:
        _UnusualLayoutError: there is none.
    """
    at = text.find(f"</{name}>", start)
    if at >= 0:
        return at, at + len(name) + 3
    spaced = re.search(rf"</{name}\s*>", text[start:])
    if spaced is None:
        raise _UnusualLayoutError(f"no </{name}>")
    return start + spaced.start(), start + spaced.end()


def _inside(text: str, name: str, start: int, end: int) -> tuple[int, int] | None:
    """Offsets of what is in the next element of this name; None where there is none or it is empty."""
    at = text.find(f"<{name}", start, end)
    head = text.find(">", at) if at >= 0 else -1
    if head < 0 or text[head - 1] == "/":
        return None
    close = text.find(f"</{name}", head)
    if close < 0:
        raise _UnusualLayoutError(f"no </{name}>")
    return head + 1, close


_TITLE = re.compile(rf"<ArticleTitle{_START}(?:/>|>([^<]*)</ArticleTitle\s*>)")
_SEGMENT = re.compile(rf"\s*<AbstractText({_START})(?:/>|>([^<]*)</AbstractText\s*>)\s*")
_ABSTRACT = re.compile(rf"<Abstract{_START}>")
_COPYRIGHT = re.compile(r"\s*<CopyrightInformation>[^<]*</CopyrightInformation>\s*")
_LABEL = re.compile(_attribute("Label"))
_UNLABELLED: Final = "UNLABELLED"


def _title(text: str, start: int) -> tuple[str, int]:
    """The title, and the offset after it."""
    opened = text.find("<ArticleTitle", start)
    if opened < 0:
        return "", start
    plain = _TITLE.match(text, opened)
    if plain and not _forbidden(plain[0]):
        return _unescaped(plain[1] or ""), plain.end()
    closed = _close(text, "ArticleTitle", opened)[1]
    return _text(_tree(text[opened:closed])), closed


_PERMITTED: Final = bytes(set(range(256)) - set(range(0x20)) | set(b"\t\n\r"))


def _forbidden(text: str) -> bool:
    """Is there a control character in it that XML forbids?"""
    return bool(text.encode().translate(None, _PERMITTED))


def _languages(text: str, start: int) -> tuple[tuple[str, ...], int]:
    """The language codes, which follow the abstract and the authors, and the offset after them."""
    at = text.find("<Language", start)
    if at < 0:
        return (), start
    codes = []
    while language := _LANGUAGE.match(text, at):
        codes.append(_unescaped(language[1]).strip())
        at = language.end()
    return tuple(codes), at


def _types(text: str, start: int) -> tuple[tuple[str, ...], int]:
    """The publication types, which follow the languages, and the offset after them."""
    inside = _inside(text, "PublicationTypeList", start, len(text))
    if inside is None:
        return (), start
    return tuple([_unescaped(name).strip() for name in _TYPE.findall(text, *inside)]), inside[1]


def _retraction_in(text: str, start: int, end: int) -> bool:
    """Do its CommentsCorrections, between these offsets, name a retraction of the article?"""
    return text.find("RetractionIn", start, end) >= 0 and bool(_RETRACTION_IN.search(text, start, end))


def _located_doi(text: str, start: int, end: int) -> str | None:
    """The DOI among the article's ELocationIDs, for records without PubmedData."""
    at = text.find("<ELocationID", start, end)
    for attributes, value in _LOCATION.findall(text, at, end) if at >= 0 else []:
        if _DOI.search(attributes) and not _INVALID.search(attributes) and value.strip():
            return _unescaped(value).strip()
    return None


def _abstract(text: str, start: int, end: int) -> tuple[Section, ...]:
    """The sections of the Abstract, which the DTD has between ``start`` and ``end``."""
    opened = text.find("<Abstract>", start, end)
    if opened >= 0:
        at = opened + len("<Abstract>")
    else:
        elsewhere = _ABSTRACT.search(text, start)
        if elsewhere is None:
            return ()
        opened, at = elsewhere.span()
    end, after = _close(text, "Abstract", at)
    sections = []
    while segment := _SEGMENT.match(text, at, end):
        label = _LABEL.match(segment[1]) if segment[1] else None
        value = _unescaped(label[1] or label[2] or "") if label else None
        sections.append(_section(value, _unescaped(segment[2] or "")))
        at = segment.end()
    unusual = at != end and not _COPYRIGHT.fullmatch(text, at, end) and text[at:end].strip()
    if unusual or _forbidden(text[opened:at]):
        sections = _marked_up(text[opened:after])
    return tuple(sections)


def _marked_up(abstract: str) -> list[Section]:
    """The sections of an Abstract in which something is not plain text."""
    return [_section(part.get("Label"), _text(part)) for part in _tree(abstract).iterchildren("AbstractText")]


def _text(element: etree._Element) -> str:
    """All text in an element, joined as written."""
    return etree.tostring(element, method="text", encoding="unicode", with_tail=False)


def _section(label: str | None, text: str) -> Section:
    label = label.strip() if label else None
    return Section(None if not label or label.upper() == _UNLABELLED else label, text)


def _article_ids(text: str, data: int) -> dict[str, str]:
    """The record's own ids by type, the first of each: never those of its references."""
    references = text.find("<ReferenceList", data)
    end = references if references >= 0 else len(text)
    inside = _inside(text, "ArticleIdList", data, end)
    if inside is None and references >= 0:
        after = max(references, text.rfind("</ReferenceList"))
        inside = _inside(text, "ArticleIdList", after, len(text))
    ids: dict[str, str] = {}
    for double, single, value in _ARTICLE_ID.findall(text, *inside) if inside else []:
        if value.strip():
            ids.setdefault(double or single, _unescaped(value).strip())
    return ids


def _unescaped(text: str) -> str:
    """Flat text with its entities resolved: XML's own only, so that others are errors."""
    if "&" not in text:
        return text
    rest = text.replace("&lt;", "<").replace("&gt;", ">")
    if rest.count("&") == rest.count("&amp;"):
        return rest.replace("&amp;", "&")
    return _tree(f"<x>{text}</x>").text or ""
