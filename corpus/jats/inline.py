"""Extract the text of a title or paragraph: inline elements joined as written, numeric citations removed.

Presentation elements (``<sub>``, ``<italic>``, ``<named-content>``) join without additional blanks. Numbers
of references and footnotes, graphics and LaTeX are removed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from bioshards.corpus.mathml import formula
from bioshards.corpus.mathml.formula import MATHML_NAMESPACE
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.xml import exponents
from bioshards.corpus.xml.element_text import text_content

from . import in_text_citations
from .in_text_citations import CITATION_MARK, CITATION_XREF_TYPES, REMOVAL_MARK

TextPieces = list[str]

_LINK_ARROW: Final = "▸"
"""Sign of a link in text: "Fig. 4 ▸(a)"."""

_FOOTNOTE_TYPES: Final = frozenset({"fn", "table-fn", "author-notes", "aff", "corresp"})
_NON_CITATION_ID = re.compile("eq|fig|tab|sec", re.IGNORECASE)
"""Id prefixes of targets other than references, of an xref without a type."""
_REMOVED_XREF_TAG: Final = "vanishing-xref"
_KEPT_XREF_TAG: Final = "kept-xref"
_MAX_FOOTNOTE_MARK_LENGTH: Final = 3  # characters of a footnote's number or symbol
_LOOKBACK_CHARACTERS: Final = 20
_LOOKBACK_PIECES: Final = 8
_NUMBERED_ITEM_NAME = re.compile(
    r"\b(?:fig|figs|figure|figures|table|tables|eq|eqs|equation|section|box|file|part|step)\.?\s*[(\[]?$",
    re.I,
)


def extract_text(element: etree._Element) -> str:
    """Return the element's text in one line."""
    pieces: TextPieces = []
    append_text(element, pieces)
    return join_pieces(pieces)


def join_pieces(pieces: TextPieces, keep_introductions: bool = False) -> str:
    """Join the output of :func:`append_text` into one line and remove the citation marks.

    Args:
        pieces: pieces of text with marks.
        keep_introductions: see :func:`in_text_citations.remove_marks`.
    """
    text = "".join(pieces)
    if CITATION_MARK in text or REMOVAL_MARK in text:
        text = in_text_citations.remove_marks(text, keep_introductions)
    if _LINK_ARROW in text:
        text = re.sub(rf"\s*{_LINK_ARROW}", "", text)
    return collapse_whitespace(_remove_indentation(text) if "\n" in text else text)


def _remove_indentation(text: str) -> str:
    """Remove line breaks that only indent the XML: inside brackets, before a comma."""
    parts = [""]
    for line in filter(None, map(str.strip, text.split("\n"))):
        parts += ("" if line[0] in ",.;:)]" or parts[-1][-1:] in ("(", "[") else " ", line)
    return "".join(parts)


def append_text(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text inside an element, with a mark for each removed citation."""
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


def mark_citations(article: etree._Element, *, author_year: bool, numeric: bool) -> None:
    """Rename citations of the tree that are not treated by default: numeric ones removed, others kept.

    Args:
        article: a parsed article.
        author_year: keep citations by name and year.
        numeric: keep numeric citations; the tree must not have been flattened.
    """
    if author_year and not numeric:
        return
    for xref in article.iter("xref"):
        ref_type = xref.get("ref-type")
        is_numeric = in_text_citations.is_numeric_citation(text_content(xref))
        if numeric and (not ref_type or (ref_type in CITATION_XREF_TYPES and (is_numeric or author_year))):
            xref.tag = _KEPT_XREF_TAG
        elif ref_type in CITATION_XREF_TYPES and not author_year:
            xref.tag = _REMOVED_XREF_TAG


def _append_kept_citation(xref: etree._Element, pieces: TextPieces) -> None:
    """Append the text of a citation; superscript numbers in brackets, as they would join the word before."""
    text = text_content(xref)
    is_superscript = next(xref.iterchildren("sup"), None) is not None
    pieces.append(f" [{text.strip()}]" if is_superscript else text)


def _append_citation_mark(_: etree._Element, pieces: TextPieces) -> None:
    pieces.append(CITATION_MARK)


def _skip(_: etree._Element, pieces: TextPieces) -> None:
    """Skip the element; the text after it is kept."""


def _append_removal_mark(_: etree._Element, pieces: TextPieces) -> None:
    """Append a mark for a picture, so that no blank remains before a comma."""
    pieces.append(REMOVAL_MARK)


def _append_link(link: etree._Element, pieces: TextPieces) -> None:
    """Append the text of a link, or a mark if it has none."""
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
    if next(element.iterchildren(_KEPT_XREF_TAG), None) is not None:
        pieces.append(f" [{text.strip()}]")
        return
    is_isotope = text.isdigit() and (element.tail or "")[:1].isupper()
    if not is_isotope:  # the blank before <sup>14</sup>C is intended
        _strip_line_break(pieces)
    if CITATION_MARK in text and in_text_citations.has_only_citations(text):
        pieces.append(CITATION_MARK)
    elif exponents.may_be_exponent(text) and exponents.is_exponent(
        "".join(pieces[-_LOOKBACK_PIECES:])[-exponents.LOOKBACK_CHARACTERS :], text
    ):
        pieces.append(f"^{text.lstrip()}")
    elif text:
        pieces.append(text)


def _append_subscript(element: etree._Element, pieces: TextPieces) -> None:
    _strip_line_break(pieces)
    append_text(element, pieces)


def _strip_line_break(pieces: TextPieces) -> None:
    """Remove a trailing line break that only indents the XML before a script."""
    if pieces and pieces[-1][-1:] in (" ", "\t"):
        stripped = pieces[-1].rstrip()
        if "\n" in pieces[-1][len(stripped) :]:
            pieces[-1] = stripped


def _append_formula(element: etree._Element, pieces: TextPieces) -> None:
    """Append a formula from its MathML, or its text without LaTeX and graphics."""
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
    _KEPT_XREF_TAG: _append_kept_citation,
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
"""Handlers of elements whose text is not simply their content."""
