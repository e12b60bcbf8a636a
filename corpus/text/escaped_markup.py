"""Remove tags that came as text: HTML or JATS that a publisher escaped, or put into CDATA.

"10<sup>6</sup> cells" becomes "10^6 cells". Only tags of formatting go, and only those that the text closes:
"p <a and b>c", "<r.m.s. deviation>" and articles about XML stay as they are.
"""

from __future__ import annotations

import re
from typing import Final

from bioshards.corpus.xml import element_text

_INLINE_NAMES: Final = (
    "a|abbr|acronym|b|big|bold|cite|code|em|ext-link|font|i|inf|italic|link|mark|pre|q|s|sc|small|span|strike"
    "|strong|sub|sup|tt|u|underline|uri|var|xref"
)
_BLOCK_NAMES: Final = (
    "blockquote|center|dd|div|dl|dt|h[1-6]|li|ol|p|sec|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
_VOID_NAMES: Final = "br|hr|img"
_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[\w#%-]+))*\s*"""
_END_TAG = re.compile(rf"</({_INLINE_NAMES}|{_BLOCK_NAMES})(?:\s*>|(?=[;,.\s]))", re.IGNORECASE)
_TAG = re.compile(
    rf"</?(?:({_INLINE_NAMES})|{_BLOCK_NAMES}|{_VOID_NAMES})(?:{_ATTRIBUTES}/?>|(?<=\w)(?=[;,.]))",
    re.IGNORECASE,
)
_TAG_NAME = re.compile(r"[\w-]+")
_BLANK_BEFORE_STOP = re.compile(r"\s+(?=[.,;:](?:\s|$))")
_DOUBLED_STOP = re.compile(r"(?<!\.)\.\.(?=\s|$)")


def remove_escaped_markup(text: str) -> str:
    """Return the text without tags of formatting; blocks and line breaks become blanks.

    The fast test for texts without tags is the caller's: ``"</" in text``.
    """
    closed_names = {match[1].lower() for match in _END_TAG.finditer(text)}
    if not closed_names:
        return text
    removable_names = closed_names.union(_VOID_NAMES.split("|"))

    def replace(tag: re.Match[str]) -> str:
        name = _TAG_NAME.search(tag[0])
        if name is None or name[0].lower() not in removable_names:
            return tag[0]
        return "" if tag[1] else " "

    text = _TAG.sub(replace, element_text.mark_exponents(text))
    text = _DOUBLED_STOP.sub(".", _BLANK_BEFORE_STOP.sub("", text))
    return " ".join(text.split())
