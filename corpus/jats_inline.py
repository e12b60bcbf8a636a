"""The text of a title or a paragraph: inline elements joined as written, numeric citations gone.

``<sub>``, ``<italic>``, ``<named-content>`` and all that only looks different join without a blank more or
less.  What a reader's eye skips is skipped: numbers of references and footnotes, graphics, LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from . import jats_citations, mathml
from .jats_citations import HOLE, MARK
from .jats_xml import MATHML
from .sentences import one_line

Pieces = list[str]

_REFERENCE: Final = frozenset({"bibr", "ref"})
_FOOTNOTE: Final = frozenset({"fn", "table-fn", "author-notes", "aff", "corresp"})
_ELSEWHERE = re.compile("eq|fig|tab|sec", re.IGNORECASE)
"""How the ids begin that a reference without a type names when it is to no reference."""
_VANISHING: Final = "vanishing-xref"
_LONGEST_FOOTNOTE: Final = 3  # characters of a footnote's number or symbol
_LONGEST_NAME: Final = 20
_COUNTED = re.compile(
    r"\b(?:fig|figs|figure|figures|table|tables|eq|eqs|equation|section|box|file|part|step)\.?\s*[(\[]?$",
    re.I,
)


def text_of(element: etree._Element) -> str:
    """The element's text in one line."""
    pieces: Pieces = []
    append(element, pieces)
    return joined(pieces)


def joined(pieces: Pieces, introductions: bool = False) -> str:
    """What :func:`append` has given, in one line, closed up where citations stood.

    Args:
        introductions: as :func:`jats_citations.without` has it.
    """
    text = "".join(pieces)
    if MARK in text or HOLE in text:
        text = jats_citations.without(text, introductions)
    return one_line(_unindented(text) if "\n" in text else text)


def _unindented(text: str) -> str:
    """The text without the line breaks that can only indent the XML: inside of brackets, before a comma."""
    parts = [""]
    for line in filter(None, map(str.strip, text.split("\n"))):
        parts += ("" if line[0] in ",.;:)]" or parts[-1][-1:] in ("(", "[") else " ", line)
    return "".join(parts)


def append(element: etree._Element, pieces: Pieces) -> None:
    """Append the text inside an element, with a mark for each citation that is to vanish."""
    if element.text:
        pieces.append(element.text)
    for child in element:
        append_one(child, pieces)
        if child.tail:
            pieces.append(child.tail)


def append_one(element: etree._Element, pieces: Pieces) -> None:
    """Append the text of an inline element."""
    special = _SPECIAL.get(element.tag)
    if special:
        special(element, pieces)
    else:
        append(element, pieces)


def mark_citations(article: etree._Element) -> None:
    """Make all citations of an article's tree vanish from its text, those by name and year too."""
    for xref in article.iter("xref"):
        if xref.get("ref-type") in _REFERENCE:
            xref.tag = _VANISHING


def _vanishing(_: etree._Element, pieces: Pieces) -> None:
    pieces.append(MARK)


def _nothing(_: etree._Element, pieces: Pieces) -> None:
    """No text: the element is left out, what follows it is not."""


def _picture(_: etree._Element, pieces: Pieces) -> None:
    """A picture in the text leaves no blank before a comma."""
    pieces.append(HOLE)


def _link(link: etree._Element, pieces: Pieces) -> None:
    """A link: one without a text says nothing."""
    inside: Pieces = []
    append(link, inside)
    pieces.append("".join(inside) or HOLE)


def _blank(_: etree._Element, pieces: Pieces) -> None:
    pieces.append(" ")


def _xref(xref: etree._Element, pieces: Pieces) -> None:
    kind = xref.get("ref-type")
    inside: Pieces = []
    append(xref, inside)
    text = "".join(inside)
    if kind in _REFERENCE or not kind:
        if jats_citations.is_numeric(text.replace(MARK, "")):
            if kind or not (
                _ELSEWHERE.match(xref.get("rid", ""))
                or (pieces and _COUNTED.search(pieces[-1][-_LONGEST_NAME:]))
            ):
                text = MARK
        elif kind:
            text = jats_citations.without_number(text)
    elif kind in _FOOTNOTE and len(text) <= _LONGEST_FOOTNOTE and not (pieces and pieces[-1][-1:].isspace()):
        text = MARK
    if text:
        pieces.append(text)


def _superscript(element: etree._Element, pieces: Pieces) -> None:
    inside: Pieces = []
    append(element, inside)
    text = "".join(inside)
    isotope = text.isdigit() and (element.tail or "")[:1].isupper()
    if not isotope:  # of <sup>14</sup>C the blank before is meant
        _unindent(pieces)
    if text:
        pieces.append(MARK if MARK in text and jats_citations.only_citations(text) else text)


def _subscript(element: etree._Element, pieces: Pieces) -> None:
    _unindent(pieces)
    append(element, pieces)


def _unindent(pieces: Pieces) -> None:
    """Take back a line break that only indents the XML: scripts stand at what comes before them."""
    if pieces and pieces[-1][-1:] in (" ", "\t"):
        before = pieces[-1].rstrip()
        if "\n" in pieces[-1][len(before) :]:
            pieces[-1] = before


def _formula(element: etree._Element, pieces: Pieces) -> None:
    """A formula as MathML if it is there, else as what is left without LaTeX and graphics, if anything."""
    math = element.find(f".//{MATHML}math")
    if math is None:
        inside: Pieces = []
        append(element, inside)
        text = "".join(inside)
    else:
        text = mathml.text(math)
    pieces.append(text if text.strip() else HOLE)


def _math(element: etree._Element, pieces: Pieces) -> None:
    pieces.append(mathml.text(element))


_SPECIAL: Final[dict[object, Callable[[etree._Element, Pieces], None]]] = {
    "xref": _xref,
    _VANISHING: _vanishing,
    "sup": _superscript,
    "sub": _subscript,
    "break": _blank,
    **dict.fromkeys(("ext-link", "uri"), _link),
    "inline-formula": _formula,
    f"{MATHML}math": _math,
    "math": _math,
    **dict.fromkeys(("graphic", "inline-graphic", "media", "inline-media", "private-char"), _picture),
    **dict.fromkeys(
        (
            *("tex-math", "object-id"),
            *("supplementary-material", "index-term", "fn", "table", "array"),
            *("mixed-citation", "element-citation", "nlm-citation", "citation", "citation-alternatives"),
            *("ref-list", "related-article", "related-object", "alt-text", "long-desc", "processing-meta"),
            *("contrib-group", "permissions", "label-alternatives"),
        ),
        _nothing,
    ),
}
"""Elements of which the text is not simply what is in them."""
