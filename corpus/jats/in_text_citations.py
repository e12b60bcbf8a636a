"""Remove numeric citations from running text, with their brackets, separators and the blank before them.

``found worldwide.<sup>1,2</sup> People`` becomes "found worldwide. People". inline.py and flattener.py insert
a mark for each citation; this module removes the marks and closes the gaps. Where a sentence needs a citation
as its noun ("as shown in [5], gulls"), a mark of the gap stays, to be masked or dropped.
"""

from __future__ import annotations

import functools
import re
from typing import Final

CITATION_MARK: Final = "\ufdd0"
REMOVAL_MARK: Final = "\ufdd1"
"""Marks of a removed citation and of another removed element: Unicode noncharacters, which are valid in XML
and which flattener.py replaces in input text. Separators between citations are removed with them.
"""
GAP_MARK: Final = "\ufdd2"
"""Mark of a citation that was the noun of its sentence."""
RESERVED_MARKS: Final = (CITATION_MARK, REMOVAL_MARK, GAP_MARK)

CITATION_MODES: Final = ("keep", "drop", "mask")
"""keep: citations as printed; drop: none; mask: :data:`CITATION_MASK` in place of nouns, no others."""
CITATION_MASK: Final = "[CITATION]"

LINK_SIGN: Final = "▶"
"""Sign of a link after the year of a reference, in the journals of crystallography."""
CITATION_XREF_TYPES: Final = frozenset({"bibr", "ref"})
"""Values of ``ref-type`` of an ``xref`` to the reference list."""

_DASHES: Final = "‐‑‒–—―−-"
_NUMBER: Final = r"[Ss]?(?:\d{1,3}|1[0-4]\d\d)[a-z]?•*"  # "12••": of outstanding interest
_NUMERIC_CITATION = re.compile(
    rf"(?:refs?\.?|references?)?[\s\[(]*(?:{_NUMBER}|[*†‡§¶#])?(?:[\s,;{_DASHES}]+{_NUMBER})*[\s\])]*[.,;]?",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=1 << 14)
def is_numeric_citation(text: str) -> bool:
    """Return True if a reference is empty or only numbers: ``[12]``, ``3–5``, ``S7``; False for a year."""
    return len(text) <= _MAX_CITATION_LENGTH and _NUMERIC_CITATION.fullmatch(text) is not None


def mark_trailing_number(text: str) -> str:
    """Replace the number at a reference's end by a mark: "Miller et al. [12]"."""
    return _TRAILING_NUMBER.sub(CITATION_MARK, text) if len(text) <= _MAX_CITATION_LENGTH else text


def has_only_citations(text: str) -> bool:
    """Return True if a marked text is only citations and their pages: ``<sup>M,5–M(p7)</sup>``."""
    return _ONLY_CITATIONS.fullmatch(text) is not None


_TRAILING_NUMBER = re.compile(rf"\s*[(\[]{_NUMBER}(?:[\s,;{_DASHES}]+{_NUMBER})*[)\]]$")
_CITATION_SEPARATOR: Final = rf"(?:[\s,;/&{_DASHES}]|\s(?:and|or|to)\s)*"
_CITATION_RUN = re.compile(rf"{CITATION_MARK}(?:{_CITATION_SEPARATOR}{CITATION_MARK})*\s*")
"""Citations with separators between them. It begins with one character, which is found four times as fast."""
_MARK_RUN = re.compile(rf"{_CITATION_RUN.pattern}|{REMOVAL_MARK}\s*")
_ONLY_CITATIONS = re.compile(
    rf"(?:[\d\s,;•{CITATION_MARK}{_DASHES}]|\b(?:and|to)\b|\(pp?\.?\s*\d[\d{_DASHES}]*\))*"
)
_MAX_BRACKET_DEPTH: Final = 5  # brackets within brackets; real ones have three
_MAX_CITATION_LENGTH: Final = 200  # characters of a reference's numbers
_MARKED_BRACKET = re.compile(
    rf"[(\[][^()\[\]{CITATION_MARK}{REMOVAL_MARK}]*[{CITATION_MARK}{REMOVAL_MARK}][^()\[\]]*[)\]]"
)
_NUMERIC_BRACKETS: Final = tuple(
    (opening, re.compile(rf"{re.escape(opening)}[\d\s,;•{CITATION_MARK}{_DASHES}]*+[)\]]"))
    for opening in (f"({CITATION_MARK}", f"[{CITATION_MARK}")
)
"""Most brackets by their first two characters."""
_NO_WORDS = re.compile(r"[\W_]*")
_INTRODUCTION_WORDS = re.compile(
    r"(?:[\W_]|\b(?:(?:for|in) (?:an? )?(?:\w+ )?(?:reviews?|examples?)|see|also|reviewed|in|by|and|or"
    r"|e\.?g|i\.?e|cf|refs?|references?)\b)*",
    re.IGNORECASE,
)
_INTRODUCTION_AT_END = re.compile(
    r"[,;:]\s*(?:see(?:\s+also)?|e\.?g\.?|cf\.?|for\s+reviews?,?\s+see|reviewed\s+in)[\s,]*\Z"
)
_SEPARATORS = re.compile(r"[\s,;:]*")
_OPENING_BRACKETS: Final = frozenset("([")
_SEPARATING_MARKS: Final = frozenset(",;:")
_MARKS_WITHOUT_GAP: Final = frozenset(".,;:!?)]}”’\"'")
_GOVERNING_WORD = re.compile(
    r"(?:\b(?:in|by|from|of|to|with|per|than|following|after|[Bb]ased on)"
    r"|\bsee(?:,? (?:e\.?g\.?|for example),?)?"
    r"|\bRef(?:erence)?s?\.?|\b(?:in|by|from|of|to|and|see) ref(?:erence)?s?\.?)$"
)
"""Words before a citation that is their object. Of 70 that were read in real articles all were."""
_LAST_WORDS: Final = frozenset(
    (
        "in",
        "by",
        "from",
        "of",
        "to",
        "with",
        "per",
        "than",
        "following",
        "after",
        "on",
        "see",
        "e.g",
        "eg",
        "example",
        "ref",
        "refs",
        "reference",
        "references",
    )
)
"""Last words of :data:`_GOVERNING_WORD`, a fast prefilter."""
_LOOKBACK_CHARACTERS: Final = 30
_STRIPPED_IN_BRACKET: Final = " \t\n,;:"


def remove_marks(text: str, keep_introductions: bool = False) -> str:
    """Remove the marks, and the brackets that become empty.

    Args:
        text: marked text.
        keep_introductions: keep "(reviewed in)" of "(reviewed in [5])".
    """
    empty_pattern = _NO_WORDS if keep_introductions else _INTRODUCTION_WORDS
    for opening, pattern in _NUMERIC_BRACKETS:
        if opening in text:
            text = pattern.sub(CITATION_MARK, text)
    for _ in range(_MAX_BRACKET_DEPTH if "(" in text or "[" in text else 0):
        cleaned = text
        for mark in (CITATION_MARK, REMOVAL_MARK):
            cleaned = _clean_brackets(cleaned, mark, empty_pattern)
        if cleaned is text:
            break
        text = cleaned
    return _close_gaps(text)


def fill_gaps(text: str, mask: str) -> str:
    """Replace the marks of citations that were nouns by a mask, or remove them if it is empty."""
    return text.replace(GAP_MARK, mask) if mask else text.replace(f" {GAP_MARK}", "").replace(GAP_MARK, "")


def _clean_brackets(text: str, mark: str, empty_pattern: re.Pattern[str]) -> str:
    """Clean the innermost brackets that have this mark; return the same text if there are none.

    They are found from their first mark; a pattern that begins with either bracket is tried everywhere.
    """
    parts: list[str] = []
    end = searched = 0
    position = text.find(mark)
    has_square_brackets = position >= 0 and "[" in text
    while position >= 0:
        start = text.rfind("(", searched, position)
        if has_square_brackets:
            start = max(start, text.rfind("[", searched, position))
        bracket = _MARKED_BRACKET.match(text, start) if start >= 0 else None
        if bracket:
            parts += (text[end:start], _clean_bracket(bracket[0], empty_pattern))
            end = searched = bracket.end()
        else:
            searched = position + 1
        position = text.find(mark, searched)
    return "".join([*parts, text[end:]]) if parts else text


def _clean_bracket(bracket: str, empty_pattern: re.Pattern[str]) -> str:
    """Remove the citations of a bracket; return a mark if nothing else remains."""
    content = bracket[1:-1]
    if has_only_citations(content) or empty_pattern.fullmatch(content):
        return CITATION_MARK
    cleaned = _close_gaps(content).strip(_STRIPPED_IN_BRACKET)
    if content.rstrip()[-1] == CITATION_MARK and empty_pattern is _INTRODUCTION_WORDS:
        cleaned = _INTRODUCTION_AT_END.sub("", cleaned)
    return f"{bracket[0]}{cleaned}{bracket[-1]}"


def _close_gaps(text: str) -> str:
    """Remove the marks outside of brackets, with the punctuation and blanks that belong to them."""
    parts: list[str] = []
    position = 0
    for run in (_MARK_RUN if REMOVAL_MARK in text else _CITATION_RUN).finditer(text):
        start, end = run.span()
        kept = text[position:start].rstrip()
        left_character, right_character = kept[-1:], text[end : end + 1]
        if left_character in _OPENING_BRACKETS and right_character in _SEPARATING_MARKS:
            # "([5]; see also Ode)"
            end = _SEPARATORS.match(text, end).end()  # type: ignore[union-attr]
            gap = ""
        elif right_character in _MARKS_WITHOUT_GAP or not right_character:
            # "as shown, [5]." loses its comma, "Miller et al., [5]." has its full stop already
            if left_character in _SEPARATING_MARKS and (not right_character or right_character in ".,;:)]"):
                kept = kept[:-1]
            if kept[-1:] == right_character == ".":
                kept = kept[:-1]
            gap = ""
        elif not left_character or left_character in "([{“‘":
            gap = ""
        elif position + len(kept) < start or text[end - 1].isspace():
            gap = " "
        else:
            gap = (
                " "
                if (left_character.isalnum() or left_character in ".,;:!?)]")
                and (right_character.isalnum() or right_character in "([")
                else ""
            )
        before = kept[-_LOOKBACK_CHARACTERS:]
        last_word = before[max(before.rfind(" "), before.rfind("\n")) + 1 :]
        is_noun = (
            last_word.lower().strip("([.,") in _LAST_WORDS
            and CITATION_MARK in run[0]
            and _GOVERNING_WORD.search(before)
        )
        parts += (kept, f" {GAP_MARK}{gap}" if is_noun else gap)
        position = end
    return "".join([*parts, text[position:]])
