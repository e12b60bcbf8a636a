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

from bioshards.corpus.sentences.boundary_model import CLASS_BEFORE_STOP, WORD_FAMILIES
from bioshards.corpus.text.labels import BLANKS_AND_PUNCTUATION, LABEL_AT_END

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
    ( [(\[]? (?: Crown\s+ )? (?: Copyrights? | COPYRIGHT ) \s*+:?\s*+ (?: © | \([cC]\) | {_YEAR} | [Bb]y\s )
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
_URL_OR_EMAIL = re.compile(r"(?<!\S)\S*(?:@|://|www\.)\S*")
_WORD = re.compile(r"[^\W\d_]+")
_NON_NOTICE_CONTENT = re.compile(r"[A-Za-z]\d{4}|evidence|\btrial|registr", re.IGNORECASE)
"""Content after some notices that must stay: trial numbers, levels of evidence."""


def _find_copyright_start(text: str, end: int) -> int:
    search_start = max(0, end - _MAX_NOTICE_LENGTH)
    openings = [_OPENING_AT_START.match(text, 0, end)] if search_start == 0 else []
    for opening in (*openings, *_OPENING_WITHIN.finditer(text, search_start, end)):
        if opening and is_notice(text[opening.start(1) : end]):
            return opening.start(1)
    return end


def is_notice(text: str) -> bool:
    """Return True if all lower-case words of a text are of notices."""
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


_NOTE_LAST_WORD_LIST: Final = """
    WORDS TRUNCATED B.V. GmbH. Inc. Ltd. Press. Sons. Stuttgart. York. cited. Commons. commons. Licence.
    licence. License. license. reserved reserved. RESERVED.
"""
_NOTE_LAST_WORDS: Final = frozenset(_NOTE_LAST_WORD_LIST.split())
_BRACKETED_NOTE_HINT_LIST: Final = """
    .[ RUNCATED runcated transl TRANSL itation ITATION icense icence ommons eserved RESERVED (c) (C) :// www.
"""
_BRACKETED_NOTE_HINTS: Final = tuple(_BRACKETED_NOTE_HINT_LIST.split())
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


# Notes of a journal: its own citation, and pointers to its other pages. Such a note is a whole last sentence:
# the name of a journal in capitalised words with year, volume, issue or pages ("Mol Mouse Res; 16(2);
# 286-95."), a bare DOI, "See related commentary by Ito, p. 12", or a list of the journal's categories.
# Citations within a sentence stay.

_MAX_CITATION_LENGTH: Final = 120
_MAX_POINTER_LENGTH: Final = 400
"""Characters before the end within which a note must start."""

_NOTE_ENDING: Final = 12
"""Last characters of a text that tell a pointer to a resource, cheaper than to search the whole."""

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
_ABBREVIATED = r"[A-Z][a-z]+\.(?:\s[A-Z][a-z]*\.?){0,6}\s[A-Z][a-z]+\."
_CITATION_WITHOUT_YEAR = rf"{_ABBREVIATED}\s\d{{1,4}},\s\d+[-–]\d+"
"""A journal with an abbreviated first and last word: "Am. Mouse Res. 27, 913-930."."""
_CITATION = rf"(?:(?:How\s+to\s+c|C)ite\s+this\s+article(?:\s+as)?:\s*)? {_JOURNAL} {_NUMBERS}"
_DOI = r"(?:https?://(?:dx\.)?doi\.org/|(?:doi|DOI):?\s*)10\.\d{4,9}/\S+"
_PAGE_POINTER = rf"(?:\bpp?\.|\bpages?)\s*{_PAGES}"
_POINTER = rf"""
    See \s+ (?: (?:also\s+)? (?:the\s+)? (?:related|accompanying|companion)\s+ )?
        (?:article|commentar|editorial|letter|perspective|review|spotlight|highlight)\w* \b
        .{{0,250}}? (?: {_PAGE_POINTER} | {_DOI} | https?://\S+ )
    | This\s+article\s+is\s+(?:highlighted|featured)\s+in\s+the\s.{{0,80}}? {_PAGE_POINTER}
    | This\s+article\s+is\s+part\s+of\s+(?:a|the)\s+(?:\w+\s+)?(?:meeting|themed?)\s+issue
        \s+[‘'“"][^.]{{1,200}}[’'”"]
    | This\s+article\s+has\s+an\s+associated\s+[A-Z][\w\s]{{1,40}}\binterview\b[^.]*
    | This\s+article\s+is\s+(?:categori[sz]ed|characterized)\s+under:\s+[A-Z][^.]*
    | (?:Visual\s+Overview[-–—:\s]+)?An\s+online\s+visual\s+overview\s+is\s+available\s+for\s+this\s+article
    | For\s+further\s+resources\s+related\s+to\s+this\s+article,\s+please\s+visit\s+the\s+\w+\s+website
    | (?:Open\s+Science:\s+)?This\s+(?:article|manuscript)\s+was\s+awarded\s+.{{0,80}}?\bBadges?\b[^.]{{0,80}}(?:https?://\S+)?
"""
_START = r"""(?: [.?!]["'”’)\]]*\s* | \A\s* | \s(?=Laryngoscope,\s|For\s+further\s+resources\s) )"""
_CITATION_AT_END = re.compile(
    rf"""{_START} ([(\[]?
        (?: {_CITATION} | {_CITATION_WITHOUT_YEAR} | {_DOI} | (?P<name>{_JOURNAL}),?\s+{_YEAR} )
    [\s.,;)\]]*) \Z""",
    re.VERBOSE,
)
_POINTER_AT_END = re.compile(
    rf"{_START} ([(\[]? (?: {_POINTER} ) [\s.,;)\]]*) \Z", re.VERBOSE | re.DOTALL | re.IGNORECASE
)
_KEYWORDS_AT_END = re.compile(r"[.?!]\s?(\[[A-Z][^\[\].;=]*(?:;\s[^\[\].;=]+){2,}\.?\]\.?)\Z")
_MAX_OWN_CITATION_LENGTH: Final = 1000
_OWN_CITATION_DASHES: Final = (".-", ". -", ".–", ".—", ". —")
_OWN_CITATION_AT_END = re.compile(
    r"[.?!]\s?([-–—]\s?(?:[^\W\d_][^,.;:()\[\]]{0,40}+,(?:[\s-]?[A-Z]\.)++,?\s(?:and\s)?)++"
    r"[^\W_](?:[^.?!]|[.?!](?!\s+\S))*+)\Z"
)
"""Authors and title of the article: "They sleep.-Ito, E., Lin, A. B. Sleep of mice."."""
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
_JOURNAL_WORDS: Final = frozenset({"J", "Laryngoscope", *WORD_FAMILIES["journal"]})


def find_citation_end(text: str) -> int:
    """Return the end of the citation of the article at the start of its abstract; 0 if there is none."""
    if _CITING_JOURNAL not in text[:_MAX_CITATION_AT_START]:
        return 0
    citation = _CITATION_AT_START.match(text, 0, _MAX_CITATION_AT_START)
    return citation.end() if citation else 0


def may_end_in_journal_note(text: str) -> bool:
    """Return False if no note can be at the end of the text, which has no trailing white space."""
    return (
        _may_end_in_citation(text[-_MAX_CITATION_LENGTH:])
        or _has_pointer_hint(text[-_MAX_POINTER_LENGTH:])
        or _may_end_in_own_citation(text[-_MAX_OWN_CITATION_LENGTH:])
    )


def find_journal_note(text: str, end: int) -> int:
    """Return the start of the note at the end of ``text[:end]``, or ``end``."""
    citation_start = max(0, end - _MAX_CITATION_LENGTH)
    if _may_end_in_citation(text[citation_start:end]):
        note = _CITATION_AT_END.search(text, citation_start, end)
        if note and _is_sentence(note) and (note["name"] is None or _is_journal(note["name"])):
            return note.start(1)
    own_citation_start = max(0, end - _MAX_OWN_CITATION_LENGTH)
    if _may_end_in_own_citation(text[own_citation_start:end]):
        note = _OWN_CITATION_AT_END.search(text, own_citation_start, end)
        if note:
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
        and (";" in tail or ":" in tail or " 20" in tail[-10:] or " 19" in tail[-10:] or ", " in tail[-14:])
    )


def _may_end_in_own_citation(tail: str) -> bool:
    return any(dash in tail for dash in _OWN_CITATION_DASHES)


def _has_pointer_hint(tail: str) -> bool:
    end = tail[-_NOTE_ENDING:]
    return (
        "See " in tail
        or "This article is " in tail
        or "This article has an associated " in tail
        or "rticle" in end  # available for this article.
        or "ebsite" in end
        or "adge" in end  # https://.../open-science-badges/.
    )


# Stubs

MAX_STUB_LENGTH: Final = 120
MAX_TITLE_STUB_LENGTH: Final = 30
"""Length in characters below which an abstract, or a title, may be a stub."""
_STRIPPED_AROUND_STUB: Final = BLANKS_AND_PUNCTUATION + "()[]"
_STUB_LIST: Final = """
    n/a, na, none, not applicable, not available, abstract not available, abstract unavailable,
    summary not available, no abstract, no abstract available, no abstract is available, no abstract provided,
    there is no abstract available, abstract available from the publisher
"""
_STUBS: Final = frozenset({"", *(stub.strip() for stub in _STUB_LIST.split(","))})
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
    "empty-labels": _make_end_rule(LABEL_AT_END, ":"),
}
"""Rules for the end of a text, by name: each returns where a match at the end of ``text[:end]`` starts, or
``end``.

They inspect a bounded number of characters, so that their time is independent of the length of the text.
"""
