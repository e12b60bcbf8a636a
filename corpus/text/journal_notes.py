"""Recognise notes of a journal at the end of an abstract: its own citation, and pointers to its other pages.

Such a note is a whole last sentence: the name of a journal in capitalised words with year, volume, issue or
pages (``Mol Mouse Res; 16(2); 286-95.``), a bare DOI, ``See related commentary by Ito, p. 12``, or a list of
the journal's categories. Citations within a sentence stay.
"""

from __future__ import annotations

import re
from typing import Final

from bioshards.corpus.sentences.word_classes import CLASS_BEFORE_STOP, WORD_FAMILIES

_MAX_CITATION_LENGTH: Final = 120
_MAX_POINTER_LENGTH: Final = 400
"""Characters before the end within which a note must start."""

_NOTE_ENDING: Final = 12
"""Last characters of a text that tell a pointer to a resource, cheaper than to search the whole."""

_YEAR = r"(?:19|20)\d\d"
_NAME_WORD = r"(?:[^\W\d_a-z][^\W\d_]*(?:[.'’-][^\W\d_]+)*\.?|&|and|da|de|do|for|in|of|on|the)"
_JOURNAL = rf"(?![a-z&]){_NAME_WORD}(?:\s+(?:Part\s[A-D]:?|{_NAME_WORD})){{0,9}}"
_VOLUME = r"(?:[Vv]ol\.?\s*)?\d{1,4}[A-Z]?(?:[-–/]\d{1,3}|[-–]?[A-Z])?"
_ISSUE = r"\s*\([\w/–-]{1,10}(?:\.?\s[\w–-]{1,8})?\)"
_PAGE = r"[A-Za-z]{0,3}\.?\d[\w.]*"
_PAGES = rf"(?:pp?\.?\s*)?{_PAGE}(?:\s*[-–—]\s*{_PAGE})?"
_DATE = rf"\(?{_YEAR}\)?(?:\s+[A-Z][a-z]{{2,8}}\.?(?:\s*\d{{1,2}})?)?"
_NUMBERS = rf"""(?:
      [;,.]?\s* {_VOLUME} (?: {_ISSUE}\s*[;:,.]\s*{_PAGES}(?:[\s,;.]*\(?{_YEAR}\)?)?   # 16(2); 286-95
                            | \s*[;:,]\s*{_PAGES}[\s,;.]*\(?{_YEAR}\)? )               # 18:251, 2001
    | ;\s*\d{{1,4}}[-–]\d{{1,4}}                                                       # ; 1-11
    | [.,;]?\s* {_DATE}\s*[;:,]\s*{_VOLUME} (?: {_ISSUE}(?:\s*[:;,]\s*{_PAGES})? | \s*[:;,]\s*{_PAGES} )
    | [.,;]?\s* {_YEAR}\s*;\s*\[online\]\.?\s*ahead\s+print,?\s*PP\.\s?0-0
    )"""
_CITATION = rf"(?:(?:How\s+to\s+c|C)ite\s+this\s+article(?:\s+as)?:\s*)? {_JOURNAL} {_NUMBERS}"
_DOI = r"(?:https?://(?:dx\.)?doi\.org/|(?:doi|DOI):?\s*)10\.\d{4,9}/\S+"
_PAGE_POINTER = rf"(?:\bpp?\.|\bpages?)\s*{_PAGES}"
_POINTER = rf"""
    See \s+ (?: (?:also\s+)? (?:the\s+)? (?:related|accompanying|companion)\s+ )?
        (?:article|commentar|editorial|letter|perspective|review|spotlight|highlight)\w* \b
        .{{0,250}}? (?: {_PAGE_POINTER} | {_DOI} | https?://\S+ )
    | This\s+article\s+is\s+(?:highlighted|featured)\s+in\s+the\s.{{0,80}}? {_PAGE_POINTER}
    | This\s+article\s+is\s+(?:categori[sz]ed|characterized)\s+under:\s+[A-Z][^.]*
    | (?:Visual\s+Overview[-–—:\s]+)?An\s+online\s+visual\s+overview\s+is\s+available\s+for\s+this\s+article
    | For\s+further\s+resources\s+related\s+to\s+this\s+article,\s+please\s+visit\s+the\s+\w+\s+website
    | (?:Open\s+Science:\s+)?This\s+(?:article|manuscript)\s+was\s+awarded\s+.{{0,80}}?\bBadges?\b[^.]{{0,80}}(?:https?://\S+)?
"""
_START = r"""(?: [.?!]["'”’)\]]*\s* | \A\s* | \s(?=Laryngoscope,\s|For\s+further\s+resources\s) )"""
_CITATION_AT_END = re.compile(
    rf"{_START} ([(\[]? (?: {_CITATION} | {_DOI} | (?P<name>{_JOURNAL}),?\s+{_YEAR} ) [\s.,;)\]]*) \Z",
    re.VERBOSE,
)
_POINTER_AT_END = re.compile(
    rf"{_START} ([(\[]? (?: {_POINTER} ) [\s.,;)\]]*) \Z", re.VERBOSE | re.DOTALL | re.IGNORECASE
)
_KEYWORDS_AT_END = re.compile(r"[.?!]\s?(\[[A-Z][^\[\].;=]*(?:;\s[^\[\].;=]+){2,}\.?\]\.?)\Z")
_MAX_CITATION_AT_START: Final = 1000
_CITING_JOURNAL: Final = "J Strength Cond Res "
"""The journal whose abstracts begin with their own citation: "Ito, E. Title. J ... 2(1): 3-9, 2019-Mice"."""
_CITATION_AT_START = re.compile(
    rf"[^\W\d_][^.?!:;]*,\s[A-Z]{{1,4}}\b.*?\b{_CITING_JOURNAL}"
    rf"[\dX]+\([\dX]+\):\s?[\dX]+-[\dX]+,\s{_YEAR}\s?[-–—]+\s?",
    re.DOTALL,
)
_ABBREVIATION_CLASSES: Final = frozenset(
    {"capital", "genus", "initials", "journal", "latin", "letter", "others", "reference", "title"}
)
_MAX_WORD_LENGTH: Final = 40
_JOURNAL_WORDS: Final = frozenset({"J", "Laryngoscope", *WORD_FAMILIES["journal"].split()})


def find_citation_end(text: str) -> int:
    """Return the end of the citation of the article at the start of its abstract; 0 if there is none."""
    if _CITING_JOURNAL not in text[:_MAX_CITATION_AT_START]:
        return 0
    citation = _CITATION_AT_START.match(text, 0, _MAX_CITATION_AT_START)
    return citation.end() if citation else 0


def may_end_in_journal_note(text: str) -> bool:
    """Return False if no note can be at the end of the text, which has no trailing white space."""
    return _may_end_in_citation(text[-_MAX_CITATION_LENGTH:]) or _has_pointer_hint(
        text[-_MAX_POINTER_LENGTH:]
    )


def find_journal_note(text: str, end: int) -> int:
    """Return the start of the note at the end of ``text[:end]``, or ``end``."""
    citation_start = max(0, end - _MAX_CITATION_LENGTH)
    if _may_end_in_citation(text[citation_start:end]):
        note = _CITATION_AT_END.search(text, citation_start, end)
        if note and _is_sentence(note) and (note["name"] is None or _is_journal(note["name"])):
            return note.start(1)
    pointer_start = max(0, end - _MAX_POINTER_LENGTH)
    if "]" in text[max(0, end - 2) : end]:
        keywords = _KEYWORDS_AT_END.search(text, pointer_start, end)
        return keywords.start(1) if keywords else end
    if _has_pointer_hint(text[pointer_start:end]):
        note = _POINTER_AT_END.search(text, pointer_start, end)
        return note.start(1) if note else end
    return end


def _is_sentence(note: re.Match[str]) -> bool:
    """Return False if the note is the end of a sentence: (by E. Ito, J. Mouse Virol. 6:7-9, 1991)."""
    stop = note.start()
    word_before = note.string[max(0, stop - _MAX_WORD_LENGTH) : stop].rpartition(" ")[2]
    return (
        note[1].count("(") >= note[1].count(")")
        and CLASS_BEFORE_STOP[word_before] not in _ABBREVIATION_CLASSES
    )


def _is_journal(name: str) -> bool:
    """Return True if a name consists of abbreviated words of journal names.

    A name and a year alone are a citation then: "Osaka, 2018" is a place, "New York 2018" too.
    """
    words = name.split()
    known = [word.rstrip(".") in _JOURNAL_WORDS for word in words]
    if len(words) == 1:
        return words == ["Laryngoscope"]
    return known[-1] and (all(known) or all(word.endswith(".") for word in words[:-1]))


def _may_end_in_citation(tail: str) -> bool:
    return "doi" in tail or (
        tail[-4:].rstrip(".)] ")[-1:].isdigit()
        and (";" in tail or ":" in tail or " 20" in tail[-10:] or " 19" in tail[-10:])
    )


def _has_pointer_hint(tail: str) -> bool:
    end = tail[-_NOTE_ENDING:]
    return (
        "See " in tail
        or "This article is " in tail
        or "rticle" in end  # available for this article.
        or "ebsite" in end
        or "adge" in end  # https://.../open-science-badges/.
    )
