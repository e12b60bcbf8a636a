"""Recognise text that publishers and databases add to titles and abstracts: notices, notes, stubs, labels.

Precision comes first: a remaining notice is harmless, a removed sentence of science is a loss. A copyright
notice must start like one, after the end of a sentence, and from there to the end of the abstract contain
only lower-case words of the notice vocabulary: "© 2019 Wiley. All rights reserved." is removed, "© 2019
Wiley. The mice slept." and sentences about copyright law stay.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from bioshards.corpus.text.journal_notes import find_journal_note, may_end_in_journal_note

# Copyright

_MAX_NOTICE_LENGTH: Final = 800
"""Characters before the end within which a notice must start; the longest real ones have half as many."""

_YEAR = r"(?:19|20)\d\d"
_PUBLISHER = (
    r"(?:Academic\s+Press|Baishideng|BMJ|Blackwell|(?:Cambridge|Oxford)\s+University\s+Press|Elsevier"
    r"|(?:Georg\s+)?Thieme|(?:S\.\s*)?Karger|Lippincott|Macmillan|Masson|MDPI|Mosby|(?:W\.\s*B\.\s*)?Saunders"
    r"|Schattauer|Springer|Taylor\s+&|Urban\s+&|(?:John\s+)?Wiley|Wolters)"
)
_HOLDER = rf"(?:{_PUBLISHER}|Association|Inc|Institute|Ltd|Press|Publish|Society|University)"
_OPENING = rf"""\s*
    ( [(\[]? (?: Crown\s+ )? (?: Copyrights? | COPYRIGHT ) \s*:?\s* (?: © | \([cC]\) | {_YEAR} | [Bb]y\s )
    | [(\[]? ©
    | \([cC]\) \s* {_YEAR}
    | (?: All | Some ) \s+ [Rr]ights \s+ [Rr]eserved | ALL\s+RIGHTS\s+RESERVED
    | Published\s+ (?: online\s+ )? (?= (?: by | on | under | with )\s .{{0,200}}? {_HOLDER} )
    | This\s+ (?: article | document | manuscript | paper | review | work | is\s+an?\s+[Oo]pen ) \b
      (?= .{{0,300}}? (?: copyright | [Ll]icen[sc]e | [Oo]pen[-\s][Aa]ccess | public\s+domain ) )
    | (?: Open\s+[Aa]ccess | Distributed | Licensed ) \s+ (?: under | article ) \b
    | [(\[]? P[Ss][Yy][Cc]I[Nn][Ff][Oo]\s+Database\s+Record
    | (?<! \b[A-Z]\.\s ) (?: {_YEAR}\s+ (?: by\s+ )? )? {_PUBLISHER} \b
    )
"""
_OPENING_AT_START = re.compile(_OPENING, re.VERBOSE | re.DOTALL)
_OPENING_WITHIN = re.compile(r"""[.?!"'”’)\]]""" + _OPENING, re.VERBOSE | re.DOTALL)

_NOTICE_WORD_LIST = """
    a access accordance adaptations al all allowed allows already an and any appropriate are article
    articles as at attribution author authors be been behalf by c changes cited claim commercial
    commercially commons company content copied copyright copyrighted creative credit credited de del der
    derivative derivatives des distributed distribution do document domain du e email employees employer
    employers et except exception exclusive exclusively expressly for foreign from further für given go
    government granted has have held holder hosting if in is it its la le les licence licenced licences
    license licensed licensee licenses link mail manuscript may medium modifications modified more must no
    non noncommercial not o of on online only open or original originally otherwise paper part parts
    permission permissions permits permitted please por prior production properly protected protection
    provided public publicado publication published publisher publishers publishing queries re recorded
    reproduced reproduction reserved reuse review right rights s see some source stated subject term terms
    text the their this to trading transmitted und under unless unrestricted upon use used user version way
    where which whole will with without work works y z
"""
_NOTICE_WORDS: Final = frozenset(_NOTICE_WORD_LIST.split())
_URL_OR_EMAIL = re.compile(r"\S*(?:@|://|www\.)\S*")
_WORD = re.compile(r"[^\W\d_]+")
_NON_NOTICE_CONTENT = re.compile(r"[A-Za-z]\d{4}|evidence|\btrial|registr", re.IGNORECASE)
"""Content after some notices that must stay: trial numbers, levels of evidence."""


def _find_copyright_start(text: str, end: int) -> int:
    search_start = max(0, end - _MAX_NOTICE_LENGTH)
    openings = [_OPENING_AT_START.match(text, 0, end)] if search_start == 0 else []
    for opening in (*openings, *_OPENING_WITHIN.finditer(text, search_start, end)):
        if opening and _is_notice(text[opening.start(1) : end]):
            return opening.start(1)
    return end


def _is_notice(text: str) -> bool:
    words = _WORD.findall(_URL_OR_EMAIL.sub(" ", text))
    return not (
        any(word[0].islower() and word not in _NOTICE_WORDS for word in words)
        or _NON_NOTICE_CONTENT.search(text)
    )


# Notes

_MAX_NOTE_LENGTH: Final = 120
_AT_NUMBER_OF_WORDS = r"\s+AT\s+\d+\s+WORDS"
_TRUNCATION_NOTE = re.compile(
    rf"(?:[(\[]\s*)?(?:(?<!\w)ABSTRACT\s+TRUNCATED(?:{_AT_NUMBER_OF_WORDS})?|(?<!\w)(?i:ABSTRACT\s+TRUNCATED{_AT_NUMBER_OF_WORDS})"
    rf"|(?<=[(\[])\s*(?i:ABSTRACT\s+TRUNCATED|TRUNCATED{_AT_NUMBER_OF_WORDS}))\s*[)\]]?[\s.]*\Z"
)
_AUTHOR_TRANSLATED = r"author(?:['’`´]?s|s['’`´])?\s+transl\.?\s*"
_NOTE_BOUNDARY = r"(?=[\s.,:;?!()\[\]]|\Z)"
_TRANSLATION_NOTE = re.compile(
    rf"(?<!\s)\s*(?:\(\s*{_AUTHOR_TRANSLATED}(?:\)|(?=\]))|\[\s*{_AUTHOR_TRANSLATED}\]){_NOTE_BOUNDARY}",
    re.IGNORECASE,
)
_TRANSLATION_NOTE_AT_END = re.compile(rf"(?:{_TRANSLATION_NOTE.pattern})[\s.]*\Z", re.IGNORECASE)
_IN_PROCESS_NOTE = re.compile(rf"(?<!\s)\s*\[\s*in[ -]process\s+citation\s*\]{_NOTE_BOUNDARY}", re.IGNORECASE)
_IN_PROCESS_NOTE_AT_END = re.compile(rf"{_IN_PROCESS_NOTE.pattern}[\s.]*\Z", re.IGNORECASE)


def _make_end_rule(pattern: re.Pattern[str], content: str) -> Callable[[str, int], int]:
    """Create the rule that removes matches of a pattern from the end of a text.

    Args:
        pattern: pattern of a note at the end of a text.
        content: what each match contains, in lower case: a search of the pattern takes much longer.
    """

    def find_start(text: str, end: int) -> int:
        start = max(0, end - _MAX_NOTE_LENGTH)
        match = pattern.search(text, start, end) if content in text[start:end].lower() else None
        return match.start() if match else end

    return find_start


_NOTE_LAST_WORDS: Final = frozenset(
    {
        "WORDS",
        "TRUNCATED",
        "B.V.",
        "GmbH.",
        "Inc.",
        "Ltd.",
        "Press.",
        "Sons.",
        "Stuttgart.",
        "York.",
        "cited.",
        "Commons.",
        "commons.",
        "Licence.",
        "licence.",
        "License.",
        "license.",
        "reserved",
        "reserved.",
        "RESERVED.",
    }
)


_BRACKETED_NOTE_HINTS: Final = (
    ".[",
    "RUNCATED",
    "runcated",
    "transl",
    "TRANSL",
    "itation",
    "ITATION",
    "icense",
    "icence",
    "ommons",
    "eserved",
    "RESERVED",
    "(c)",
    "(C)",
    "://",
    "www.",
)
"""Prefilter for notes that end with a bracket, as many abstracts end with one."""


def may_end_in_note(text: str) -> bool:
    """Return False if none of :data:`END_RULES` can apply.

    A fast prefilter: False for nearly all abstracts.
    """
    if text[-1:] <= " ":
        text = text.rstrip()
        if not text:
            return True
    tail = text[-200:]
    return (
        "©" in text
        or "opyright" in tail
        or "ublished" in tail
        or text[-1] == ":"
        or (
            (text[-1] in ")]" or text[-2:] in (").", "]."))
            and any(hint in tail for hint in _BRACKETED_NOTE_HINTS)
        )
        or text[text.rfind(" ") + 1 :] in _NOTE_LAST_WORDS
        or text[-1] in "(["
        or may_end_in_journal_note(text)
        or ("(" in tail and "(c) " in tail)
    )


# Labels

_SECTION_NAME = (
    r"(?:BACKGROUND|INTRODUCTION|CONTEXT|RATIONALE|HYPOTHESIS|OBJECTIVES?|AIMS?|PURPOSE|GOALS?|DISCUSSION"
    r"|(?:STUDY )?DESIGN|SETTINGS?|PATIENTS?|PARTICIPANTS|SUBJECTS|MATERIALS?|METHODS?|METHODOLOGY"
    r"|INTERVENTIONS?|MEASUREMENTS?|(?:MAIN )?(?:OUTCOME MEASURES?|RESULTS?|FINDINGS)|CONCLUSIONS?"
    r"|INTERPRETATION)"
)
_SECTION_LABEL = rf"(?<![\w-]){_SECTION_NAME}(?:(?: AND | & |/|, ){_SECTION_NAME}){{0,3}}\s*:"
EMPTY_LABELS: Final = re.compile(rf"(?:{_SECTION_LABEL}\s*)+(?={_SECTION_LABEL})")
_SECTION_LABEL_AT_END = re.compile(rf"{_SECTION_LABEL}\s*\Z")
_COLON = re.compile(r"\s*:\s*(?:[.,;:]\s+)*")
_BLANKS_AND_PUNCTUATION: Final = " \t\r\n.,:;*-–—…"


def begins_with_label(text: str) -> bool:
    """Return True if a text starts with upper-case words and a colon."""
    head, colon, _ = text[:60].partition(":")
    return bool(colon) and head.isupper()


def strip_label(label: str, text: str) -> str:
    """Remove the section's label from the start of its text; return "" if nothing else remains."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    while text[start : start + 1] == label[:1] and text[start : start + len(label)].lower() == label.lower():
        colon = _COLON.match(text, start + len(label))
        if colon is None:
            break
        start = colon.end()
    rest = text[start:] if text[:start].strip() else text
    return "" if rest.strip(_BLANKS_AND_PUNCTUATION).lower() in ("", label.lower()) else rest


# Stray marks

_STRAY_MARKS_AT_START = re.compile(r"\s*(?:[.,;:]\s+)+(?=[^\W_])")
_STRAY_MARKS_AT_END = re.compile(r"(?<=[^\s(\[])(?:\s+[(\[])+\s*\Z")


def strip_stray_marks(text: str) -> str:
    """Remove marks that stand alone at the start of a text, and opening brackets at its end."""
    start = _STRAY_MARKS_AT_START.match(text)
    end = _STRAY_MARKS_AT_END.search(text, max(0, len(text) - _MAX_NOTE_LENGTH))
    return text[start.end() if start else 0 : end.start() if end else len(text)]


def _find_stray_marks(text: str, end: int) -> int:
    """Return the start of opening brackets that stand alone at the end of ``text[:end]``, or ``end``."""
    if not text.endswith(("(", "["), 0, end):
        return end
    marks = _STRAY_MARKS_AT_END.search(text, max(0, end - _MAX_NOTE_LENGTH), end)
    return marks.start() if marks else end


# Stubs

MAX_STUB_LENGTH: Final = 120
MAX_TITLE_STUB_LENGTH: Final = 30
"""Length in characters below which an abstract, or a title, may be a stub."""
_STRIPPED_AROUND_STUB: Final = _BLANKS_AND_PUNCTUATION + "()[]"
_STUBS: Final = frozenset(
    {
        "",
        "n/a",
        "na",
        "none",
        "not applicable",
        "not available",
        "abstract not available",
        "abstract unavailable",
        "summary not available",
        "no abstract",
        "no abstract available",
        "no abstract is available",
        "no abstract provided",
        "there is no abstract available",
        "abstract available from the publisher",
    }
)
_ERRATUM = re.compile(r"\s*\[This (?:corrects|retracts) the [^\[\]]+\]\.?\s*")
_TITLE_STUBS: Final = frozenset({"no title available", "not available", "title not available", "untitled"})


def is_stub(abstract: str) -> bool:
    """Return True if an abstract is empty, a placeholder, or only names the article it corrects."""
    if len(abstract) >= MAX_STUB_LENGTH:
        return False
    return abstract.strip(_STRIPPED_AROUND_STUB).lower() in _STUBS or bool(_ERRATUM.fullmatch(abstract))


# Titles

_BRACKET = re.compile(r"[\[\]]")
_DOUBLED_OPENING = re.compile(r"\[\s*(?:\[\s*)+")


def _parse_bracketed_title(text: str) -> tuple[str, str] | None:
    """Return the content of brackets around a whole text, and the mark after them, or None."""
    if not text.startswith("["):
        return None
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] == "[" else -1
        if not depth:
            end_mark = text[bracket.end() :].strip()
            return (text[1 : bracket.start()].strip(), end_mark) if end_mark in ("", ".", "?", "!") else None
    return None


def _drop_doubled_opening(text: str) -> str:
    """Remove those of two or more opening brackets at the start that nothing closes."""
    opening = _DOUBLED_OPENING.match(text)
    num_unclosed = text.count("[") - text.count("]")
    if opening is None or num_unclosed <= 0:
        return text
    num_kept = max(0, opening[0].count("[") - num_unclosed)
    return "[" * num_kept + text[opening.end() :]


def _strip_title_brackets(title: str) -> str:
    """Remove NLM's brackets of a translated title; "[3H]thymidine and [14C]uridine" stays."""
    text = _drop_doubled_opening(title.strip())
    bracketed = _parse_bracketed_title(text)
    # Leave a title in two pairs of brackets unchanged.
    if bracketed is None or _parse_bracketed_title(bracketed[0]):
        return title if title.strip() == text else text
    inner, end_mark = bracketed
    return inner if inner.endswith((".", "?", "!", "…")) else inner + end_mark


def _drop_title_stub(title: str) -> str:
    return "" if title.strip(_STRIPPED_AROUND_STUB).lower() in _TITLE_STUBS else title


TITLE_RULES: Final[dict[str, Callable[[str], str]]] = {
    "in-process": lambda title: _IN_PROCESS_NOTE.sub("", title),
    "author-translation": lambda title: _TRANSLATION_NOTE.sub("", title),
    "translated-titles": _strip_title_brackets,
    "stubs": _drop_title_stub,
}
"""Rules for titles, by name."""

END_RULES: Final[dict[str, Callable[[str, int], int]]] = {
    "in-process": _make_end_rule(_IN_PROCESS_NOTE_AT_END, "citation"),
    "author-translation": _make_end_rule(_TRANSLATION_NOTE_AT_END, "transl"),
    "truncation-notes": _make_end_rule(_TRUNCATION_NOTE, "truncated"),
    "copyright": _find_copyright_start,
    "journal-notes": find_journal_note,
    "stray-marks": _find_stray_marks,
    "empty-labels": _make_end_rule(_SECTION_LABEL_AT_END, ":"),
}
"""Rules for the end of a text, by name: each returns where a match at the end of ``text[:end]`` starts, or
``end``.

They inspect a bounded number of characters, so that their time is independent of the length of the text.
"""
