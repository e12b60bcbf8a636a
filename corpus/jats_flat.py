"""Join inline mark-up into the text around it before an article is parsed: the same text, in half the time.

Most elements of a paragraph only look different (``<italic>``) or are references of which the reading is
simple (``<xref ref-type="bibr">12</xref>``).  An element costs a parser and a walk more than a hundred
characters of text do, so these are joined into plain text by a few regular expressions.  What is not simple,
``jats_inline.py`` reads as it reads everything; tests hold that both give the same.
"""

from __future__ import annotations

import html
import re
from typing import Final

from .jats_citations import HOLE, MARK, is_numeric, only_citations

_PLAIN = re.compile(r'</?(?:italic(?: toggle="yes")?|sub|bold|sc|underline|monospace)>')
_INDENTED = re.compile(r"\n(?:[ \t]|<[^<>]*>)*?<su[bp][\s>]")
_XREF = re.compile(
    r'<xref\s(?:[^<>]*?\s)?ref-type="([^"<>]*)"[^<>]*(?<!/)>(?:([^<>]*)|<sup>([^<>]*)</sup>)</xref>'
)
_SUPERSCRIPT = re.compile(r"<sup>([^<>]*)</sup>")

_REFERENCES: Final = frozenset({"bibr", "ref"})
_TEXT: Final = frozenset(
    {
        *("fig", "table", "supplementary-material", "media", "sec", "disp-formula", "app", "boxed-text"),
        *("table-wrap", "video", "scheme"),
    }
)
"""Types of references that are text, whatever it is."""


def flat(text: str) -> str:
    """An article's XML without the inline mark-up that only joins into the text around it.

    XML that is indented at scripts stays as it is, as the line break before them is then no blank.
    """
    if MARK in text or HOLE in text:
        text = text.replace(MARK, "\ufffd").replace(HOLE, "\ufffd")
    if _INDENTED.search(text):
        return text
    return _SUPERSCRIPT.sub(_superscript, _XREF.sub(_xref, _PLAIN.sub("", text)))


def _xref(xref: re.Match[str]) -> str:
    kind, plain, superscript = xref.groups()
    text: str = superscript if plain is None else plain
    if kind in _REFERENCES:
        if is_numeric(_read(text)):
            return MARK
        return xref[0] if text[-1] in ")]" else text
    return text if kind in _TEXT else xref[0]


def _superscript(superscript: re.Match[str]) -> str:
    text = superscript[1]
    return MARK if MARK in text and only_citations(_read(text)) else text


def _read(text: str) -> str:
    """The text with its characters for references to them: a range's dash may be written ``&#x2013;``."""
    return html.unescape(text) if "&" in text else text
