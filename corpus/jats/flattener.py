"""Flatten simple inline markup into text before an article is parsed: the same text in half the time.

Most elements in a paragraph are presentation (``<italic>``) or simple references (``<xref
ref-type="bibr">12</xref>``). An element costs the parser more than a hundred characters of text, so regular
expressions flatten them first. ``inline.py`` handles the remaining elements; tests check that both agree.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Final

from bioshards.corpus.jats.in_text_citations import (
    CITATION_MARK,
    CITATION_XREF_TYPES,
    LINK_SIGN,
    REMOVAL_MARK,
    RESERVED_MARKS,
    has_only_citations,
    is_numeric_citation,
)
from bioshards.corpus.jats.note_marks import (
    CLAUSE_ENDS,
    END_OF_CAPTION,
    FRAME,
    MIN_NOTED_WORD,
    is_mark,
    may_end_caption,
    may_point_to_note,
)
from bioshards.corpus.xml import exponents

# An alternative for all end tags is faster than an optional slash before the names.
_PRESENTATION_TAG = re.compile(
    r"<(?:/(?:italic|bold|sub|sc|underline|monospace)"
    r'|italic(?: toggle="yes")?|bold|sub|sc|underline|monospace)>'
)
_INDENTED_SCRIPT = re.compile(r"\n(?:[ \t]|<[^<>]*>)*?<su[bp][\s>]")
# Its first branch only saves time: many have the attributes in this order.
_XREF = re.compile(
    r'<xref\s(?:rid="[^"<>]*"\s|[^<>]*?\s)??ref-type="([^"<>]*)"[^<>]*(?<!/)>'
    r"(?:([^<>]*)|<sup>([^<>]*)</sup>)</xref>"
)
_SUPERSCRIPT = re.compile(r"<sup>([^<>]*)</sup>")
_TAG_BEFORE_NOTE = re.compile(r"<(?!(?:xref|label)\b)[^<>]*>")
_MAX_TAG_LENGTH: Final = 300
_NUMBER_AFTER_TAG = re.compile(r">[\d.,xX]*$")

_TEXT_XREF_TYPES: Final = frozenset(
    {
        "fig",
        "table",
        "supplementary-material",
        "media",
        "sec",
        "disp-formula",
        "app",
        "boxed-text",
        "table-wrap",
        "video",
        "scheme",
    }
)
"""Values of ``ref-type`` whose text is always kept."""


def flatten_inline_markup(text: str) -> str:
    """Remove inline markup that only joins into the text around it.

    XML with line breaks before scripts is returned unchanged, as these breaks must not become blanks.
    """
    for mark in (*RESERVED_MARKS, FRAME):
        text = text.replace(mark, "\ufffd")
    if _has_indented_script(text):
        return text
    return _SUPERSCRIPT.sub(_flatten_superscript, _XREF.sub(_flatten_xref, _PRESENTATION_TAG.sub("", text)))


def _has_indented_script(text: str) -> bool:
    """Search from the line breaks: ``find`` passes over other characters ten times as fast as a pattern."""
    position = text.find("\n")
    while position >= 0 and not _INDENTED_SCRIPT.match(text, position):
        position = text.find("\n", position + 1)
    return position >= 0


def _flatten_xref(xref: re.Match[str]) -> str:
    ref_type, plain_text, superscript = xref.groups()
    text: str = superscript if plain_text is None else plain_text
    if ref_type in CITATION_XREF_TYPES:
        flat_text = _flatten_citation(text)
        return xref[0] if flat_text is None else flat_text
    return text if ref_type in _TEXT_XREF_TYPES else xref[0]


@functools.lru_cache(maxsize=1 << 14)
def _flatten_citation(text: str) -> str | None:
    """Return what stays of a citation with this text; None if this is decided with the text around it."""
    value = _unescape(text)
    if is_numeric_citation(value):
        return CITATION_MARK
    if value.strip() == LINK_SIGN:
        return REMOVAL_MARK
    return None if text[-1] in ")]" else text


def _flatten_superscript(superscript: re.Match[str]) -> str:
    content: str = superscript[1]
    if content == CITATION_MARK:
        return CITATION_MARK
    text = _unescape(content)
    if CITATION_MARK in text and has_only_citations(text):
        return CITATION_MARK
    xml, start = superscript.string, superscript.start()
    last_character = xml[start - 1]
    if (
        last_character in " \t\n>"
        and is_mark(text)
        and _may_precede_note(xml[max(0, start - _MAX_TAG_LENGTH) : start])
    ):  # decided with the whole paragraph
        return superscript[0]
    if may_point_to_note(text, xml[max(0, start - MIN_NOTED_WORD) : start]):
        return superscript[0]
    if (
        last_character == " "
        and xml.startswith(END_OF_CAPTION, superscript.end())
        and may_end_caption(text, xml[max(0, start - MIN_NOTED_WORD - 1) : start])
    ):
        return superscript[0]
    # Most are of units, cm<sup>2</sup>; x is a sign of multiplication.
    if (last_character in "xX" or not last_character.isalpha()) and exponents.may_be_exponent(text):
        before = xml[max(0, start - exponents.LOOKBACK_CHARACTERS) : start]
        if _NUMBER_AFTER_TAG.search(before):  # the base may begin in another element
            return superscript[0]
        if exponents.is_exponent(before, text):
            return f"^{content.lstrip()}"
    return "™" if text == "TM" else content


def _may_precede_note(before: str) -> bool:
    """Return True if a text ends in a tag, or in a blank after a clause."""
    stripped = before.rstrip()
    if stripped.endswith(">"):
        return _TAG_BEFORE_NOTE.fullmatch(stripped, max(0, stripped.rfind("<"))) is not None
    return stripped != before and stripped.endswith(tuple(CLAUSE_ENDS))


@functools.lru_cache(maxsize=1 << 14)
def _unescape(text: str) -> str:
    """Resolve character references: a range's dash may be written ``&#x2013;``."""
    return html.unescape(text) if "&" in text else text
