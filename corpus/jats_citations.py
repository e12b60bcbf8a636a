"""Take numeric citations out of running text so that nobody sees where they were.

``found worldwide.<sup>1,2</sup> People`` becomes "found worldwide. People": with the numbers go their
brackets, what separates them, and the blank before them.  jats_inline.py puts a mark where each citation
stood; here the marked text is closed up.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "\x02"
HOLE: Final = "\x03"
"""Stand where a citation, or something else, is to vanish: control characters, which no XML can hold.  What
separates citations vanishes with them."""

_DASHES: Final = "‐‑‒–—―−-"
_NUMBER: Final = r"[Ss]?(?:\d{1,3}|1[0-4]\d\d)[a-z]?•*"  # "12••": of outstanding interest
_NUMERIC = re.compile(
    rf"(?:refs?\.?|references?)?[\s\[(]*(?:{_NUMBER}|[*†‡§¶#])?(?:[\s,;{_DASHES}]+{_NUMBER})*[\s\])]*[.,;]?",
    re.IGNORECASE,
)


def is_numeric(text: str) -> bool:
    """Is a reference only numbers, as in ``[12]``, ``3–5``, ``S7``, or nothing?  A year is not."""
    return len(text) <= _LONGEST and _NUMERIC.fullmatch(text) is not None


def without_number(text: str) -> str:
    """A reference's text with a mark for the number it may end in: "Miller et al. [12]"."""
    return _ENDS_IN_NUMBER.sub(MARK, text) if len(text) <= _LONGEST else text


def only_citations(text: str) -> bool:
    """Is a text with a mark in it nothing but citations and their pages, as in ``<sup>M,5–M(p7)</sup>``?"""
    return _ONLY.fullmatch(text) is not None


_ENDS_IN_NUMBER = re.compile(rf"\s*[(\[]{_NUMBER}(?:[\s,;{_DASHES}]+{_NUMBER})*[)\]]$")
_BETWEEN: Final = rf"(?:[\s,;/&{_DASHES}]|\s(?:and|or|to)\s)*"
_RUN = re.compile(rf"(?:{MARK}(?:{_BETWEEN}{MARK})*|{HOLE})\s*")
_ONLY = re.compile(rf"(?:[\d\s,;•{MARK}{_DASHES}]|\b(?:and|to)\b|\(pp?\.?\s*\d[\d{_DASHES}]*\))*")
_DEEPEST: Final = 5  # brackets within brackets; real ones have three
_LONGEST: Final = 200  # characters of a reference's numbers
_BRACKET = re.compile(rf"[(\[][^()\[\]{MARK}{HOLE}]*[{MARK}{HOLE}][^()\[\]]*[)\]]")
_WORDLESS = re.compile(r"[\W_]*")
_INTRODUCTION = re.compile(
    r"(?:[\W_]|\b(?:(?:for|in) (?:an? )?(?:\w+ )?(?:reviews?|examples?)|see|also|reviewed|in|by|and|or"
    r"|e\.?g|i\.?e|cf|refs?|references?)\b)*",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(r"[\s,;:]*")
_LOOSE: Final = " \t\n,;:"


def without(text: str, introductions: bool = False) -> str:
    """The text without its marks and holes, and the brackets that citations leave empty.

    Args:
        introductions: does "(reviewed in [5])" leave "(reviewed in)", or nothing?
    """
    empty = _WORDLESS if introductions else _INTRODUCTION
    for _ in range(_DEEPEST):
        text, found = _BRACKET.subn(lambda bracket: _without_bracket(bracket[0], empty), text)
        if not found:
            break
    return _closed_up(text)


def _without_bracket(bracket: str, empty: re.Pattern[str]) -> str:
    """What becomes of a bracket with citations in it: a mark if it says nothing else."""
    inside = bracket[1:-1]
    if only_citations(inside) or empty.fullmatch(inside):
        return MARK
    return f"{bracket[0]}{_closed_up(inside).strip(_LOOSE)}{bracket[-1]}"


def _closed_up(text: str) -> str:
    parts: list[str] = []
    at = 0
    for run in _RUN.finditer(text):
        whole, end = text[at : run.start()], run.end()
        before = whole.rstrip()
        left, after = before[-1:], text[end : end + 1]
        if left and left in "([" and after and after in ",;:":  # "([5]; see also Ode)"
            end = _SEPARATORS.match(text, end).end()  # type: ignore[union-attr]
            gap = ""
        elif not after or after in ".,;:!?)]}”’\"'":
            # "as shown, [5]." loses its comma, "Miller et al., [5]." has its full stop already
            if left and left in ",;:" and (not after or after in ".,;:)]"):
                before = before[:-1]
            if before[-1:] == after == ".":
                before = before[:-1]
            gap = ""
        elif not left or left in "([{“‘":
            gap = ""
        elif len(before) < len(whole) or run[0][-1:].isspace():
            gap = " "
        else:
            gap = " " if (left.isalnum() or left in ".,;:!?)]") and (after.isalnum() or after in "([") else ""
        parts += [before, gap]
        at = end
    return "".join([*parts, text[at:]])
