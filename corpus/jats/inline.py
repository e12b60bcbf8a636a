"""The text of a title or a paragraph: inline elements joined as written, numeric citations gone.

``<sub>``, ``<italic>``, ``<named-content>`` and all that only looks different join without a blank more or
less.  What a reader's eye skips is skipped: numbers of references and footnotes, graphics, LaTeX.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from bioshards.corpus.mathml import formula
from bioshards.corpus.mathml.formula import MATHML_NAMESPACE
from bioshards.corpus.sentences import collapse_whitespace

from . import in_text_citations
from .in_text_citations import CITATION_MARK, CITATION_XREF_TYPES, REMOVAL_MARK

TextPieces = list[str]

_FOOTNOTE_TYPES: Final = frozenset({"fn", "table-fn", "author-notes", "aff", "corresp"})
_NON_CITATION_ID = re.compile("eq|fig|tab|sec", re.IGNORECASE)
"""How the ids begin that a reference without a type names when it is to no reference."""
_REMOVED_XREF_TAG: Final = "vanishing-xref"
_MAX_FOOTNOTE_MARK_LENGTH: Final = 3  # characters of a footnote's number or symbol
_LOOKBACK_CHARACTERS: Final = 20
_NUMBERED_ITEM_NAME = re.compile(
    r"\b(?:fig|figs|figure|figures|table|tables|eq|eqs|equation|section|box|file|part|step)\.?\s*[(\[]?$",
    re.I,
)


def extract_text(element: etree._Element) -> str:
    """The element's text in one line."""
    pieces: TextPieces = []
    append_text(element, pieces)
    return join_pieces(pieces)


def join_pieces(pieces: TextPieces, keep_introductions: bool = False) -> str:
    """What :func:`append` has given, in one line, closed up where citations stood.

    Args:
        keep_introductions: as :func:`jats_citations.without` has it.
    """
    text = "".join(pieces)
    if CITATION_MARK in text or REMOVAL_MARK in text:
        text = in_text_citations.remove_marks(text, keep_introductions)
    return collapse_whitespace(_remove_indentation(text) if "\n" in text else text)


def _remove_indentation(text: str) -> str:
    """The text without the line breaks that can only indent the XML: inside of brackets, before a comma."""
    parts = [""]
    for line in filter(None, map(str.strip, text.split("\n"))):
        parts += ("" if line[0] in ",.;:)]" or parts[-1][-1:] in ("(", "[") else " ", line)
    return "".join(parts)


def append_text(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text inside an element, with a mark for each citation that is to vanish."""
    if element.text:
        pieces.append(element.text)
    for child in element:
        append_inline(child, pieces)
        if child.tail:
            pieces.append(child.tail)


def append_inline(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text of an inline element."""
    handler = _HANDLERS.get(element.tag)
    if handler:
        handler(element, pieces)
    else:
        append_text(element, pieces)


def mark_citations(article: etree._Element) -> None:
    """Make all citations of an article's tree vanish from its text, those by name and year too."""
    for xref in article.iter("xref"):
        if xref.get("ref-type") in CITATION_XREF_TYPES:
            xref.tag = _REMOVED_XREF_TAG


def _append_citation_mark(_: etree._Element, pieces: TextPieces) -> None:
    pieces.append(CITATION_MARK)


def _skip(_: etree._Element, pieces: TextPieces) -> None:
    """No text: the element is left out, what follows it is not."""


def _append_removal_mark(_: etree._Element, pieces: TextPieces) -> None:
    """A picture in the text leaves no blank before a comma."""
    pieces.append(REMOVAL_MARK)


def _append_link(link: etree._Element, pieces: TextPieces) -> None:
    """A link: one without a text says nothing."""
    inner_pieces: TextPieces = []
    append_text(link, inner_pieces)
    pieces.append("".join(inner_pieces) or REMOVAL_MARK)


def _append_blank(_: etree._Element, pieces: TextPieces) -> None:
    pieces.append(" ")


def _append_xref(xref: etree._Element, pieces: TextPieces) -> None:
    ref_type = xref.get("ref-type")
    inner_pieces: TextPieces = []
    append_text(xref, inner_pieces)
    text = "".join(inner_pieces)
    if ref_type in CITATION_XREF_TYPES or not ref_type:
        if in_text_citations.is_numeric_citation(text.replace(CITATION_MARK, "")):
            if ref_type or not (
                _NON_CITATION_ID.match(xref.get("rid", ""))
                or (pieces and _NUMBERED_ITEM_NAME.search(pieces[-1][-_LOOKBACK_CHARACTERS:]))
            ):
                text = CITATION_MARK
        elif ref_type:
            text = in_text_citations.mark_trailing_number(text)
    elif (
        ref_type in _FOOTNOTE_TYPES
        and len(text) <= _MAX_FOOTNOTE_MARK_LENGTH
        and not (pieces and pieces[-1][-1:].isspace())
    ):
        text = CITATION_MARK
    if text:
        pieces.append(text)


def _append_superscript(element: etree._Element, pieces: TextPieces) -> None:
    inner_pieces: TextPieces = []
    append_text(element, inner_pieces)
    text = "".join(inner_pieces)
    is_isotope = text.isdigit() and (element.tail or "")[:1].isupper()
    if not is_isotope:  # of <sup>14</sup>C the blank before is meant
        _strip_line_break(pieces)
    if text:
        pieces.append(
            CITATION_MARK if CITATION_MARK in text and in_text_citations.has_only_citations(text) else text
        )


def _append_subscript(element: etree._Element, pieces: TextPieces) -> None:
    _strip_line_break(pieces)
    append_text(element, pieces)


def _strip_line_break(pieces: TextPieces) -> None:
    """Take back a line break that only indents the XML: scripts stand at what comes before them."""
    if pieces and pieces[-1][-1:] in (" ", "\t"):
        stripped = pieces[-1].rstrip()
        if "\n" in pieces[-1][len(stripped) :]:
            pieces[-1] = stripped


def _append_formula(element: etree._Element, pieces: TextPieces) -> None:
    """A formula as MathML if it is there, else as what is left without LaTeX and graphics, if anything."""
    math = element.find(f".//{MATHML_NAMESPACE}math")
    if math is None:
        inner_pieces: TextPieces = []
        append_text(element, inner_pieces)
        text = "".join(inner_pieces)
    else:
        text = formula.formula_to_text(math)
    pieces.append(text if text.strip() else REMOVAL_MARK)


def _append_math(element: etree._Element, pieces: TextPieces) -> None:
    pieces.append(formula.formula_to_text(element))


_HANDLERS: Final[dict[object, Callable[[etree._Element, TextPieces], None]]] = {
    "xref": _append_xref,
    _REMOVED_XREF_TAG: _append_citation_mark,
    "sup": _append_superscript,
    "sub": _append_subscript,
    "break": _append_blank,
    **dict.fromkeys(("ext-link", "uri"), _append_link),
    "inline-formula": _append_formula,
    f"{MATHML_NAMESPACE}math": _append_math,
    "math": _append_math,
    **dict.fromkeys(
        ("graphic", "inline-graphic", "media", "inline-media", "private-char"), _append_removal_mark
    ),
    **dict.fromkeys(
        (
            "tex-math",
            "object-id",
            "supplementary-material",
            "index-term",
            "fn",
            "table",
            "array",
            "mixed-citation",
            "element-citation",
            "nlm-citation",
            "citation",
            "citation-alternatives",
            "ref-list",
            "related-article",
            "related-object",
            "alt-text",
            "long-desc",
            "processing-meta",
            "contrib-group",
            "permissions",
            "label-alternatives",
        ),
        _skip,
    ),
}
"""Elements of which the text is not simply what is in them."""
