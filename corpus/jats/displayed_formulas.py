"""Place displayed formulas in the text around them: a word or mark for one that its sentence needs.

``computed as <disp-formula/> where n is`` is one sentence, whose formula a mark stands for. A formula after a
whole sentence leaves nothing. What ``inline.write_formulas`` has written always stays.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from lxml import etree

from bioshards.corpus.jats.in_text_marks import FORMULA_MARK
from bioshards.corpus.jats.inline import (
    DISPLAYED_FORMULAS,
    PRESENTATION_ELEMENTS,
    WRITTEN_DISPLAYED_FORMULA,
)
from bioshards.corpus.xml.element_text import text_content

_STOPS: Final = frozenset(".,;")
"""Text after a displayed formula that goes with it."""


class FormulaPlace(NamedTuple):
    """What becomes of a formula in a paragraph.

    Attributes:
        word: what stands for it; "" if nothing does.
        ends_block: True if a sentence ends before it, or in it: its stop is removed with it.
        takes_tail: True if the text after it is its stop, which goes with it.
        following: first character of the text after it, "" if that is its stop.
    """

    word: str
    ends_block: bool
    takes_tail: bool
    following: str


def place_formula(formula: etree._Element, before: str) -> FormulaPlace:
    """Place a displayed formula after its paragraph's text before it, which ends without blanks."""
    is_last_stop = (formula.tail or "").strip() in _STOPS
    following = "" if is_last_stop else _text_after(formula)[:1]
    word = get_written(formula) or mark_formula(before, following)
    ends_block = following.isupper() or ends_sentence(before)
    return FormulaPlace(word, ends_block, is_last_stop and not word, following)


def _text_after(element: etree._Element) -> str:
    """Return the text after an element, up to the next element that is more than presentation."""
    text = (element.tail or "").lstrip()
    following = element.getnext()
    if text or following is None or following.tag not in PRESENTATION_ELEMENTS:
        return text
    return text_content(following).lstrip() or _text_after(following)


def mark_formula(before: str, following: str) -> str:
    """Return a mark for a displayed formula that its sentence needs: "computed as ▣ where n is".

    Args:
        before: the paragraph's text before it.
        following: first character of the text after it, if it is in the paragraph.
    """
    if not before or before[-1] == FORMULA_MARK or ends_sentence(before):
        return ""
    is_inside = following.islower() or (following != "" and following in ",;.")
    return FORMULA_MARK if is_inside or before[-1] not in ":;" else ""


def ends_in_formula(paragraph: etree._Element) -> bool:
    """Return True if nothing but a stop follows the last formula of a paragraph that has elements."""
    last = paragraph[-1]
    return last.tag in DISPLAYED_FORMULAS and not (last.tail or "").strip(" \t\r\n.,;")


def join_at_formula(before: str, text: str) -> str:
    """Return a text with that which goes on after its formula: "computed as ▣ where n is"."""
    mark = "" if before[-1] == FORMULA_MARK else f"{FORMULA_MARK} "
    return f"{before} {mark}{text}"


def ends_sentence(text: str) -> bool:
    """Return True if a text ends in a stop that is no abbreviation's before a formula."""
    return text.endswith((".", "!", "?")) and not text.endswith(("i.e.", "e.g."))


def get_written(formula: etree._Element) -> str:
    """Return what inline.py has written for a displayed formula, or ""."""
    return formula.text or "" if formula.tag == WRITTEN_DISPLAYED_FORMULA else ""
