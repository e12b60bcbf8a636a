"""Parse one article's XML: plain names, entities from a table, what is never read left out unread.

Half of an article's bytes are its reference list and the cells of its tables, of which a corpus reads
nothing.  They are cut out before the rest is parsed.  That is exact, because in the bytes of
article_stream.py a ``<`` always begins a tag.  The price: inside of them nothing is checked but UTF-8.  And
simple inline mark-up is joined into its text before the parse (flattener.py).
"""

from __future__ import annotations

import html.entities
import re
from typing import Final

from lxml import etree

from bioshards.corpus.errors import BadRecordError

from . import flattener

XLINK_HREF: Final = "{http://www.w3.org/1999/xlink}href"
XML_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"

_UNREAD_ELEMENTS: Final = (b"ref-list", b"table")
_JATS_NAMESPACE: Final = re.compile(
    r"\{(?:https?://(?:jats|dtd)\.nlm\.nih\.gov(?:/[^}]*)?|[^}]*/journalpublishing[^}]*)\}"
)
_PARSER: Final = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


def parse_article(xml: bytes, flatten: bool = True) -> etree._Element:
    """The tree of an ``<article>`` as article_stream.py gives it: no comments, instructions, CDATA or
    DOCTYPE.

    Elements of JATS have their local names, whether the article uses a namespace or not; others, such as
    MathML's, have their full ones.  What a corpus never reads is not in it.

    Args:
        flat: join inline mark-up into the text around it, where that is simple: the same text, in less time.

    Raises:
        BadRecordError: not UTF-8, not well-formed, or with an entity that is not known.
    """
    try:
        xml.decode()
    except UnicodeDecodeError as error:
        raise BadRecordError("invalid-utf-8", f"{error.reason} at byte {error.start}") from error
    trimmed = _cut_unread_elements(xml)
    text = trimmed.decode()
    try:
        root = _parse_xml(flattener.flatten_inline_markup(text) if flatten else text)
    except etree.XMLSyntaxError:  # of tags that were joined too, as far as that goes
        try:
            root = _parse_xml(text)
        except etree.XMLSyntaxError as error:
            raise BadRecordError("malformed-xml", str(error)) from error
    if _JATS_NAMESPACE.match(root.tag):
        for element in root.iter():
            element.tag = _JATS_NAMESPACE.sub("", element.tag)
    if trimmed is xml:  # nothing could be cut out: there is nothing, or it has a prefix, or odd text in it
        etree.strip_elements(root, *map(bytes.decode, _UNREAD_ELEMENTS), with_tail=False)
    return root


def _parse_xml(text: str) -> etree._Element:
    return etree.fromstring(_resolve_entities(text).encode(), _PARSER)


def _cut_unread_elements(xml: bytes) -> bytes:
    """The article without the elements that are never read; as it is where one of them does not end."""
    trimmed = xml
    for name in _UNREAD_ELEMENTS:
        trimmed = _cut_elements(trimmed, name)
    return trimmed


def _cut_elements(xml: bytes, name: bytes) -> bytes:
    """The bytes without the elements of this name; one within another goes with it."""
    chunks = []
    position = 0
    while (start := _find_tag(xml, b"<" + name, position, len(xml))) >= 0:
        end = _find_element_end(xml, start, name)
        # If a tag stands within another one, or is not closed, the parser will say what is wrong.
        if end < 0 or xml.rfind(b"<", 0, start) > xml.rfind(b">", 0, start):
            return xml
        chunks.append(xml[position:start])
        position = end
    return b"".join([*chunks, xml[position:]]) if chunks else xml


# Not with possessive quantifiers, which Python before 3.11.5 gets wrong here (CPython issue 106052).
_START_TAG_REST = re.compile(rb"""(?:[^<>"'/]|"[^"<]*"|'[^'<]*'|/(?!>))*(/?)>""")


def _find_tag(xml: bytes, prefix: bytes, start: int, end: int) -> int:
    """Where the next tag begins that has exactly this name; -1 where there is none."""
    position = xml.find(prefix, start, end)
    while position >= 0 and xml[position + len(prefix) : position + len(prefix) + 1] not in b" \t\r\n>/":
        position = xml.find(prefix, position + 1, end)
    return position


def _find_element_end(xml: bytes, start: int, name: bytes) -> int:
    """The offset after the element that begins at ``start``; -1 where it does not end."""
    start_tag = _START_TAG_REST.match(xml, start + 1 + len(name))
    if start_tag is None:
        return -1
    position = start_tag.end()
    depth = 0 if start_tag[1] else 1
    while depth:
        end_tag_start = _find_tag(xml, b"</" + name, position, len(xml))
        if end_tag_start < 0:
            return -1
        nested_start = _find_tag(xml, b"<" + name, position, end_tag_start)
        tag = _START_TAG_REST.match(
            xml, (end_tag_start + 1 if nested_start < 0 else nested_start) + 1 + len(name)
        )
        if tag is None:
            return -1
        position = tag.end()
        depth += -1 if nested_start < 0 else 0 if tag[1] else 1
    return position


_NAMED_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)([^\W\d][\w.:-]*);")


def _resolve_entities(text: str) -> str:
    """The text with references to the characters that named entities stand for.

    The DTDs of JATS declare the entities of ISO 8879 and 9573 and of MathML.  HTML 5 has taken those over
    (https://www.w3.org/TR/xml-entity-names/), so the standard library's table has them, but for ISO's further
    names of Greek letters (``&agr;`` and ``&b.alpha;`` beside ``&alpha;``), which are not known here.
    """
    return _NAMED_ENTITY.sub(_entity_to_character_references, text) if "&" in text else text


def _entity_to_character_references(entity: re.Match[str]) -> str:
    name = entity[1]
    characters = html.entities.html5.get(f"{name};")
    if characters is None:
        raise BadRecordError("unknown-entity", f"&{name[:40]}; is no entity of JATS, MathML or HTML")
    return "".join(f"&#{ord(character)};" for character in characters)
