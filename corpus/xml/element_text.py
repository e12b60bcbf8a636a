"""Text of an lxml element."""

from __future__ import annotations

from lxml import etree


def text_content(element: etree._Element) -> str:
    """Return all text in an element as written, without its tail."""
    if not len(element):
        return element.text or ""
    return etree.tostring(element, method="text", encoding="unicode", with_tail=False)
