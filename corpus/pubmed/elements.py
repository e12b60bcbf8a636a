"""Find the elements of a record in its text, and read their content.

A record whose tags balance is read with searches and regular expressions. :class:`UnusualLayoutError` says
that one is not laid out as expected; lxml normalises it then (citation.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.mathml import MATHML_NAMESPACE, formula_to_text
from bioshards.corpus.xml import element_text
from bioshards.corpus.xml.element_text import resolve_entities, text_content


class UnusualLayoutError(Exception):
    """The layout prevents fast parsing; lxml must normalise the record."""


def decode_record(record: bytes) -> str:
    """Decode the bytes of a record.

    Raises:
        BadRecordError: they are not UTF-8.
    """
    try:
        return record.decode()
    except UnicodeDecodeError as error:
        raise BadRecordError("invalid-utf-8", f"{error.reason} at byte {error.start}") from error


_PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
)


def parse_xml(text: str) -> etree._Element:
    """Parse a record, or an element of one, with lxml.

    Raises:
        BadRecordError: malformed XML, or an unknown entity.
    """
    text = resolve_entities(text)
    try:
        return etree.fromstring(text, _PARSER)
    except etree.XMLSyntaxError as error:
        if "Namespace prefix mml" not in str(error):
            raise BadRecordError("malformed-xml", str(error)) from error
    # PubMed declares the prefix on the formula; if the file declares it on its root, declare it here.
    wrapped = f'<x xmlns:mml="http://www.w3.org/1998/Math/MathML">{text}</x>'
    try:
        return etree.fromstring(wrapped, _PARSER)[0]
    except etree.XMLSyntaxError as error:
        raise BadRecordError("malformed-xml", str(error)) from error


ATTRIBUTES = r"""(?:\s+[\w:.-]+\s*=\s*(?:"[^"]*"|'[^']*'))*?"""
START_TAG_ATTRIBUTES = ATTRIBUTES + r"\s*"


def attribute_pattern(name: str) -> str:
    """Return a pattern for the attributes up to this one; two groups capture its value."""
    return rf"""{ATTRIBUTES}\s+{name}\s*=\s*(?:"([^"<]*)"|'([^'<]*)')"""


def find_element_end(text: str, name: str, start: int) -> int:
    """Return the offset after the end tag of an element that occurs once.

    Raises:
        UnusualLayoutError: there is no such tag.
    """
    end_tag = f"</{name}>"
    position = text.find(end_tag, start)
    if position >= 0:
        return position + len(end_tag)
    match = re.search(rf"</{name}\s*>", text[start:])
    if match is None:
        raise UnusualLayoutError(f"no {end_tag}")
    return start + match.end()


def find_content(text: str, name: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the offsets of the content of the next element of this name, or None if absent or empty."""
    position = text.find(f"<{name}", start, end)
    tag_end = text.find(">", position) if position >= 0 else -1
    if tag_end < 0 or text[tag_end - 1] == "/":
        return None
    content_end = text.find(f"</{name}", tag_end)
    if content_end < 0:
        raise UnusualLayoutError(f"no </{name}>")
    return tag_end + 1, content_end


def iter_contents(text: str, name: str, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the offsets of each element of this name that is not empty, of its content, and of its end."""
    while (start := text.find(f"<{name}", start, end)) >= 0:
        span = find_content(text, name, start, end)
        if span:
            yield start, *span
        start = span[1] if span else start + 1


# Text with inline mark-up that is not nested, as nearly all titles and abstracts have; lxml parses the rest.
_CONTENT = re.compile(r"[^<]*(?:<(?P<tag>b|i|sub|sup|u)>[^<]*</(?P=tag)>[^<]*)*")
_INLINE_TAG = re.compile(r"</?(?:b|i|sub|sup|u)>")


def read_content(text: str, start: int, end_tag: str) -> tuple[str, int] | None:
    """Return the text of an element with inline mark-up, and the offset after the element.

    Args:
        text: the record.
        start: offset after the element's start tag.
        end_tag: the expected end tag.

    Returns:
        None if the element has other mark-up, or its end tag is written in another way.
    """
    if text[start - 2] == "/":
        return "", start
    end = text.find("<", start)
    if text.startswith(end_tag, end):
        return unescape(text[start:end]), end + len(end_tag)
    content = _CONTENT.match(text, start)
    if content is None or not text.startswith(end_tag, content.end()):
        return None
    parts = _INLINE_TAG.split(element_text.mark_exponents(content[0]))
    return "".join(map(unescape, parts)), content.end() + len(end_tag)


def unescape(text: str) -> str:
    """Resolve entities and character references, and those that were escaped twice."""
    if "&" not in text:
        return text
    resolved = text.replace("&lt;", "<").replace("&gt;", ">")
    if resolved.count("&") == resolved.count("&amp;"):
        return element_text.unescape_once(resolved.replace("&amp;", "&"))
    return element_text.unescape_once(parse_xml(f"<x>{text}</x>").text or "")


def find_text(text: str, name: str, start: int, end: int) -> str | None:
    """Return the text of the next element of this name, which has no children, or None if absent or blank."""
    content_start = text.find(f"<{name}>", start, end) + len(name) + 2
    content_end = text.find("<", content_start)
    if content_start > len(name) + 1 and text.startswith("</", content_end):
        return " ".join(unescape(text[content_start:content_end]).split()) or None
    span = find_content(text, name, start, end)
    return (" ".join(unescape(text[slice(*span)]).split()) or None) if span else None


def extract_text(element: etree._Element) -> str:
    """Return the text of an element, its formulas as those of articles: "η_p^2 = 0.15"."""
    for math in list(element.iter(f"{MATHML_NAMESPACE}math")):
        formula_text, tail = formula_to_text(math), math.tail
        math.clear()
        math.text, math.tail = formula_text, tail
    return element_text.unescape_once(text_content(element))
