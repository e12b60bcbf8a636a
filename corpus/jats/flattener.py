"""Join inline mark-up into the text around it before an article is parsed: the same text, in half the time.

Most elements of a paragraph only look different (``<italic>``) or are references of which the reading is
simple (``<xref ref-type="bibr">12</xref>``).  An element costs a parser and a walk more than a hundred
characters of text do, so these are joined into plain text by a few regular expressions.  What is not simple,
``inline.py`` reads as it reads everything; tests hold that both give the same.
"""

from __future__ import annotations

import html
import re
from typing import Final

from .in_text_citations import (
    CITATION_MARK,
    CITATION_XREF_TYPES,
    REMOVAL_MARK,
    has_only_citations,
    is_numeric_citation,
)

_PRESENTATION_TAG = re.compile(r'</?(?:italic(?: toggle="yes")?|sub|bold|sc|underline|monospace)>')
_INDENTED_SCRIPT = re.compile(r"\n(?:[ \t]|<[^<>]*>)*?<su[bp][\s>]")
_XREF = re.compile(
    r'<xref\s(?:[^<>]*?\s)?ref-type="([^"<>]*)"[^<>]*(?<!/)>(?:([^<>]*)|<sup>([^<>]*)</sup>)</xref>'
)
_SUPERSCRIPT = re.compile(r"<sup>([^<>]*)</sup>")

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
"""Types of references that are text, whatever it is."""


def flatten_inline_markup(text: str) -> str:
    """An article's XML without the inline mark-up that only joins into the text around it.

    XML that is indented at scripts stays as it is, as the line break before them is then no blank.
    """
    if CITATION_MARK in text or REMOVAL_MARK in text:
        text = text.replace(CITATION_MARK, "\ufffd").replace(REMOVAL_MARK, "\ufffd")
    if _INDENTED_SCRIPT.search(text):
        return text
    return _SUPERSCRIPT.sub(_flatten_superscript, _XREF.sub(_flatten_xref, _PRESENTATION_TAG.sub("", text)))


def _flatten_xref(xref: re.Match[str]) -> str:
    ref_type, plain_text, superscript = xref.groups()
    text: str = superscript if plain_text is None else plain_text
    if ref_type in CITATION_XREF_TYPES:
        if is_numeric_citation(_unescape(text)):
            return CITATION_MARK
        return xref[0] if text[-1] in ")]" else text
    return text if ref_type in _TEXT_XREF_TYPES else xref[0]


def _flatten_superscript(superscript: re.Match[str]) -> str:
    text = superscript[1]
    return CITATION_MARK if CITATION_MARK in text and has_only_citations(_unescape(text)) else text


def _unescape(text: str) -> str:
    """The text with its characters for references to them: a range's dash may be written ``&#x2013;``."""
    return html.unescape(text) if "&" in text else text
