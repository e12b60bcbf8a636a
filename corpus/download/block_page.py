"""Recognise the page with which a server blocks a network."""

from __future__ import annotations

import re
from typing import Final

MAX_NOTICE_BYTES: Final = 1 << 14
"""Beginning of a page in which the notice of a block is searched."""
_HTML_START = re.compile(rb"\s{0,99}<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<(script|style)\b.*?(?:</\1>|\Z)|<!--.*?(?:-->|\Z)|<[^<>]{0,2000}>", re.DOTALL | re.I)
_BLOCKED = re.compile(
    r"\b(?:access|address|ip|network|you)\b[^<>]{0,200}?\bblocked\b|\bpossible (?:misuse|abuse)\b"
    r"|\bblocked diagnostic\b",
    re.IGNORECASE,
)


def is_html(page: bytes) -> bool:
    """Return True if a page begins like HTML."""
    return _HTML_START.match(page) is not None


def find_block_notice(page: bytes) -> str | None:
    """Return the words of a page with which a server blocks a network; None for any other page."""
    if not is_html(page):
        return None
    text = " ".join(_MARKUP.sub(" ", page[:MAX_NOTICE_BYTES].decode("utf-8", "replace")).split())
    match = _BLOCKED.search(text)
    return text[max(0, match.start() - 20) :] if match else None
