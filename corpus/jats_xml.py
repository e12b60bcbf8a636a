"""Parse one article's XML: plain names, entities from a table, what is never read left out unread.

Half of an article's bytes are its reference list, the cells of its tables and the LaTeX of its formulas,
of which a corpus reads nothing.  They are cut out before the rest is parsed.  That is exact, because in the
bytes of article_file.py a ``<`` always begins a tag.  The price: inside of them only the balance of the tags
and UTF-8 are checked.
"""

from __future__ import annotations

import html.entities
import re
from typing import Final

from lxml import etree

from . import tags
from .medline import BadRecord

MATHML: Final = "{http://www.w3.org/1998/Math/MathML}"
XLINK_HREF: Final = "{http://www.w3.org/1999/xlink}href"
XML_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"

_UNREAD: Final = (b"ref-list", b"table", b"tex-math")
_JATS: Final = re.compile(r"\{(?:https?://jats\.nlm\.nih\.gov|http://dtd\.nlm\.nih\.gov|.*/journalpublishing)[^}]*\}")
_PARSER: Final = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


def tree(article: bytes) -> etree._Element:
    """The tree of an ``<article>`` as article_file.py gives it: no comments, instructions, CDATA or DOCTYPE.

    Elements of JATS have their local names, whether the article uses a namespace or not; others, such as
    MathML's, have their full ones.  Reference lists, tables' rows and LaTeX are not in it.

    Raises:
        BadRecord: not UTF-8, not well-formed, or with an entity that is not known.
    """
    try:
        article.decode()
    except UnicodeDecodeError as error:
        raise BadRecord("invalid-utf-8", f"{error.reason} at byte {error.start}") from error
    try:
        root = etree.fromstring(_resolved(_read_parts(article)), _PARSER)
    except etree.XMLSyntaxError as error:
        raise BadRecord("malformed-xml", str(error)) from error
    if _JATS.match(root.tag):
        for element in root.iter():
            element.tag = _JATS.sub("", element.tag)
    return root


def _read_parts(article: bytes) -> bytes:
    """The article without the elements that are never read; as it is where their tags do not balance."""
    kept, cut = article, []
    for name in _UNREAD:
        if b"<" + name in kept:
            kept, found = _without(kept, name)
            cut += found
    return kept if not cut or tags.all_balanced(cut) else article


def _without(xml: bytes, name: bytes) -> tuple[bytes, list[bytes]]:
    """The bytes without the elements of this name, and these; one within another goes with it."""
    kept, cut = [], []
    at = depth = start = 0
    for tag in re.finditer(rb"<(/?)%b(?=[\s>/])[^>]*?(/?)>" % name, xml):
        if not tag[1] and not depth:
            start = tag.start()
        depth += -1 if tag[1] else 0 if tag[2] else 1
        if depth == 0:
            kept.append(xml[at:start])
            at = tag.end()
            cut.append(xml[start:at])
        elif depth < 0:
            break
    if depth:  # not balanced: the parser will say what is wrong
        return xml, []
    return b"".join([*kept, xml[at:]]), cut


_NAMED = re.compile(rb"&(?!(?:lt|gt|amp|quot|apos);)([A-Za-z][A-Za-z0-9.]*);")


def _resolved(xml: bytes) -> bytes:
    """The bytes with the characters that named entities stand for: those of ISO, MathML and HTML.

    The DTDs of JATS declare the entities of ISO 8879 and 9573 and of MathML, which HTML 5 has taken over
    (https://www.w3.org/TR/xml-entity-names/), so the standard library's table has them all.
    """
    return _NAMED.sub(_character, xml) if b"&" in xml else xml


def _character(entity: re.Match[bytes]) -> bytes:
    found = html.entities.html5.get(f"{entity[1].decode()};")
    if found is None:
        raise BadRecord("unknown-entity", f"&{entity[1].decode()}; is no entity of JATS, MathML or HTML")
    return found.encode()
