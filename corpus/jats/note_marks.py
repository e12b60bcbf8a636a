"""Remove the marks of notes: the letter or number that a note of a table begins with.

``<p><sup>a</sup>Adjusted for age. <sup>b</sup>At birth.</p>`` becomes "Adjusted for age. At birth.", as if
the marks were labels. Isotopes and prefixes of chemical names (``<sup>14</sup>C``, ``<sup>t</sup>BuOH``)
stay, and so do marks that are explained ("a = mean", "a indicates"). inline.py frames what may be a mark;
this module decides once the whole paragraph is there.
"""

from __future__ import annotations

import re
from typing import Final

FRAME: Final = "\ufdd3"
"""Frame of a superscript that may be the mark of a note: a noncharacter, as in in_text_citations.py."""

_MARK: Final = r"(?:[A-Z]|[a-z]{1,3}|[ivx]{1,8}|\d{1,3}|NS)"
_CANDIDATE = re.compile(rf"\s*[(\[]?{_MARK}(?:\s?[,;–-]\s?{_MARK})*[)\]]?\s*")
_FRAMED = re.compile(rf"{FRAME}([^{FRAME}]*){FRAME}(\s*)")
_ISOTOPE = re.compile(
    r"(?: [123]H(?=NMR|[^A-Z]|$) | 2D | [34]He | [67]Li | \d[JO] | 1\d[BCNOF] | 3[1-5][PS] | \d{3}[A-Z][a-z]?"
    r" | \d\d(?!A[st]?\b|I\b|In|No)[A-Z][a-z]? ) (?![a-zà-ÿ])",
    re.VERBOSE,
)
_CHEMICAL_PREFIX = re.compile(r"[tinsc](?:Bu|Pr|Am|Pent|Hex)|m[56]?[ACGU](?![a-z]|[A-Z][a-z])|mCpG")
_EXPLANATION = re.compile(
    r"(?:correspond|denot|designat|indicat|refer|represent|show|stand)[a-z]*\b|(?:is|are|was|were|and|or|to)\b"
)
MIN_NOTED_WORD: Final = 4
_NOTED_WORD = re.compile(r"[^\W\d_][a-z]{3}\Z")
_NOT_SIGNIFICANT: Final = ("ns", "NS")
_NOTE_LETTERS: Final = frozenset("abcdefgh")
"""Letters of the notes of a table; an index is later in the alphabet, or no word is before it."""
CLAUSE_ENDS: Final = ".;:,)"
_SENTENCE_ENDS: Final = ".;:)"
END_OF_CAPTION: Final = ".</p>"
_NUMBERS_AT_END = re.compile(r"[1-9](?:,\s?[1-9])*")


def is_mark(script: str) -> bool:
    """Return True if a superscript looks like the mark of a note: "a", "1,2", "xiv", "(b)"."""
    return _CANDIDATE.fullmatch(script) is not None


def may_point_to_note(script: str, before: str) -> bool:
    """Return True if a superscript is a letter and after a word, which points to a note in a table."""
    return script in _NOTE_LETTERS and _NOTED_WORD.search(before) is not None


def may_end_caption(script: str, before: str) -> bool:
    """Return True if a superscript may be the number of a note at the end of the caption of a table.

    ``Weight of gulls <sup>1</sup>.</p>``: journals set a blank before it.
    """
    return (
        before[-1:] == " "
        and _NUMBERS_AT_END.fullmatch(script) is not None
        and _NOTED_WORD.search(before, 0, len(before) - 1) is not None
    )


def remove_note_marks(text: str) -> str:
    """Remove the framed marks of notes from the text of a paragraph, and the frames of all others."""
    is_note = False

    def resolve(framed: re.Match[str]) -> str:
        nonlocal is_note
        mark, gap = framed.groups()
        before = text[: framed.start()].rstrip()
        after = text[framed.end() : framed.end() + 12]
        if not before:
            is_note = True
        if not after:
            return ""
        is_at_note = is_note or (
            before[-1] in _SENTENCE_ENDS and (after[:2].isalpha() or (mark.isalpha() and after[0].isupper()))
        )
        if (
            not is_at_note
            or not (after[0].isalnum() or after[0] in "(“‘\"'[")
            or _ISOTOPE.match(mark.strip() + after)
            or (not gap and _CHEMICAL_PREFIX.match(mark + after))
        ):
            return mark + gap
        return f"{mark} " if mark in _NOT_SIGNIFICANT or _EXPLANATION.match(after) else ""

    return _FRAMED.sub(resolve, text)
