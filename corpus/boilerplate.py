"""Recognise what publishers and databases add to titles and abstracts: notices, notes, stubs, labels.

A notice left in is a small blemish, a sentence of science taken out is a loss.  So a notice is not
recognised by a word in it, but must open as notices do, after the end of a sentence, and from there
to the end of the abstract may have no word in small letters that notices do not use.  "© 2019 Wiley.
All rights reserved." passes, "© 2019 Wiley. The mice slept." does not, and neither does anything
that is said of copyright laws.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

# Copyright

_NOTICE_LENGTH: Final = 800
"""Characters from the end in which a notice must begin; the longest real ones have half as many."""

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

_WORDS = """
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
_NOTICE_WORDS: Final = frozenset(_WORDS.split())
_ADDRESS = re.compile(r"\S*(?:@|://|www\.)\S*")
_WORD = re.compile(r"[^\W\d_]+")
_OTHER = re.compile(r"[A-Za-z]\d{4}|evidence|\btrial|registr", re.IGNORECASE)
"""What stands behind some notices and is no part of them: trial numbers, levels of evidence."""


def _copyright_start(text: str, end: int) -> int:
    first = max(0, end - _NOTICE_LENGTH)
    openings = [_OPENING_AT_START.match(text, 0, end)] if first == 0 else []
    for opening in (*openings, *_OPENING_WITHIN.finditer(text, first, end)):
        if opening and _is_notice(text[opening.start(1) : end]):
            return opening.start(1)
    return end


def _is_notice(text: str) -> bool:
    words = _WORD.findall(_ADDRESS.sub(" ", text))
    return not (any(word[0].islower() and word not in _NOTICE_WORDS for word in words) or _OTHER.search(text))


# Notes

_NOTE_LENGTH: Final = 120
_AT = r"\s+AT\s+\d+\s+WORDS"
_TRUNCATION = re.compile(
    rf"(?:[(\[]\s*)?(?:(?<!\w)ABSTRACT\s+TRUNCATED(?:{_AT})?|(?<!\w)(?i:ABSTRACT\s+TRUNCATED{_AT})"
    rf"|(?<=[(\[])\s*(?i:ABSTRACT\s+TRUNCATED|TRUNCATED{_AT}))\s*[)\]]?[\s.]*\Z"
)
_AUTHOR = r"author(?:['’`´]?s|s['’`´])?\s+transl\.?\s*"
_BEFORE = r"(?=[\s.,:;?!()\[\]]|\Z)"
_TRANSLATION = re.compile(
    rf"(?<!\s)\s*(?:\(\s*{_AUTHOR}(?:\)|(?=\]))|\[\s*{_AUTHOR}\]){_BEFORE}", re.IGNORECASE
)
_LAST_TRANSLATION = re.compile(rf"(?:{_TRANSLATION.pattern})[\s.]*\Z", re.IGNORECASE)
_IN_PROCESS = re.compile(rf"(?<!\s)\s*\[\s*in[ -]process\s+citation\s*\]{_BEFORE}", re.IGNORECASE)
_LAST_IN_PROCESS = re.compile(rf"{_IN_PROCESS.pattern}[\s.]*\Z", re.IGNORECASE)


def _starts(pattern: re.Pattern[str]) -> Callable[[str, int], int]:
    """The rule that takes away, from the end of a text, what such a pattern finds there."""

    def start(text: str, end: int) -> int:
        found = pattern.search(text, max(0, end - _NOTE_LENGTH), end)
        return found.start() if found else end

    return start


_END_WORDS: Final = frozenset(
    {
        *("WORDS", "TRUNCATED", "B.V.", "GmbH.", "Inc.", "Ltd.", "Press.", "Sons.", "Stuttgart.", "York."),
        *("cited.", "Commons.", "commons.", "Licence.", "licence.", "License.", "license."),
        *("reserved", "reserved.", "RESERVED."),
    }
)


_IN_BRACKETS: Final = (
    *(
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
    ),
    *("RESERVED", "(c)", "(C)", "://", "www."),
)
"""What a note has that ends with a bracket; many abstracts end with one, few of these have it."""


def may_end_in_note(text: str) -> bool:
    """Could one of :data:`END_RULES` find something, or is there nothing to look at?

    Fast, and False for nearly all abstracts.
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
        or ((text[-1] in ")]" or text[-2:] in (").", "].")) and any(hint in tail for hint in _IN_BRACKETS))
        or text[text.rfind(" ") + 1 :] in _END_WORDS
        or ("(" in tail and "(c) " in tail)
    )


# Labels

_SECTION = (
    r"(?:BACKGROUND|INTRODUCTION|CONTEXT|RATIONALE|HYPOTHESIS|OBJECTIVES?|AIMS?|PURPOSE|GOALS?|DISCUSSION"
    r"|(?:STUDY )?DESIGN|SETTINGS?|PATIENTS?|PARTICIPANTS|SUBJECTS|MATERIALS?|METHODS?|METHODOLOGY"
    r"|INTERVENTIONS?|MEASUREMENTS?|(?:MAIN )?(?:OUTCOME MEASURES?|RESULTS?|FINDINGS)|CONCLUSIONS?"
    r"|INTERPRETATION)"
)
_LABEL = rf"(?<![\w-]){_SECTION}(?:(?: AND | & |/|, ){_SECTION}){{0,3}}\s*:"
EMPTY_LABELS: Final = re.compile(rf"(?:{_LABEL}\s*)+(?={_LABEL})")
_LAST_LABEL = re.compile(rf"{_LABEL}\s*\Z")
_COLON = re.compile(r"\s*:\s*")
_NOTHING: Final = " \t\r\n.,:;*-–—…"


def begins_with_label(text: str) -> bool:
    """Does a text begin with words in capitals and a colon?"""
    head, colon, _ = text[:60].partition(":")
    return bool(colon) and head.isupper()


def without_label(label: str, text: str) -> str:
    """A section's text without its label printed again; "" if there is nothing else in it."""
    at = len(text) - len(text.lstrip(" \t\r\n"))
    while text[at : at + 1] == label[:1] and text[at : at + len(label)].lower() == label.lower():
        colon = _COLON.match(text, at + len(label))
        if colon is None:
            break
        at = colon.end()
    rest = text[at:] if text[:at].strip() else text
    return "" if rest.strip(_NOTHING).lower() in ("", label.lower()) else rest


# Stubs

STUB_LENGTH: Final = 120
TITLE_STUB_LENGTH: Final = 30
"""Characters below which an abstract, or a title, may be a stub."""
_AROUND: Final = _NOTHING + "()[]"
_STUBS: Final = frozenset(
    {
        *("", "n/a", "na", "none", "not applicable", "not available", "abstract not available"),
        *("abstract unavailable", "summary not available", "no abstract", "no abstract available"),
        *("no abstract is available", "no abstract provided", "there is no abstract available"),
        "abstract available from the publisher",
    }
)
_ERRATUM = re.compile(r"\s*\[This (?:corrects|retracts) the [^\[\]]+\]\.?\s*")
_TITLE_STUBS: Final = frozenset({"no title available", "not available", "title not available", "untitled"})


def is_stub(abstract: str) -> bool:
    """Does a whole abstract say that there is none, nothing at all, or only what article it corrects?"""
    if len(abstract) >= STUB_LENGTH:
        return False
    return abstract.strip(_AROUND).lower() in _STUBS or bool(_ERRATUM.fullmatch(abstract))


# Titles

_BRACKET = re.compile(r"[\[\]]")


def _wrapped(text: str) -> tuple[str, str] | None:
    """What is within the brackets around all of a text, and the stop behind them; None without such."""
    if not text.startswith("["):
        return None
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] == "[" else -1
        if not depth:
            stop = text[bracket.end() :].strip()
            return (text[1 : bracket.start()].strip(), stop) if stop in ("", ".", "?", "!") else None
    return None


def _unwrapped(title: str) -> str:
    """A translated title without NLM's brackets; "[3H]thymidine and [14C]uridine" has none of them."""
    wrapped = _wrapped(title.strip())
    # A title that is wrapped twice is none that we understand.
    if wrapped is None or _wrapped(wrapped[0]):
        return title
    inner, stop = wrapped
    return inner if inner.endswith((".", "?", "!", "…")) else inner + stop


def _without_stub(title: str) -> str:
    return "" if title.strip(_AROUND).lower() in _TITLE_STUBS else title


TITLE_RULES: Final[dict[str, Callable[[str], str]]] = {
    "in-process": lambda title: _IN_PROCESS.sub("", title),
    "author-translation": lambda title: _TRANSLATION.sub("", title),
    "translated-titles": _unwrapped,
    "stubs": _without_stub,
}
"""What becomes of a title, by the name of the rule."""

END_RULES: Final[dict[str, Callable[[str, int], int]]] = {
    "in-process": _starts(_LAST_IN_PROCESS),
    "author-translation": _starts(_LAST_TRANSLATION),
    "truncation-notes": _starts(_TRUNCATION),
    "copyright": _copyright_start,
    "empty-labels": _starts(_LAST_LABEL),
}
"""Where, at the end of ``text[:end]``, what a rule takes away begins; ``end`` where there is nothing.

They look at the last few characters only, so that their time does not grow with the text.
"""
