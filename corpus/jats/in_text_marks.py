"""Remove the numbers of citations and the marks of notes from the text of a paragraph.

``found worldwide.<sup>1,2</sup> People`` becomes "found worldwide. People". xml_tree.py and inline.py insert
a mark for each citation; this module removes the marks with their brackets, their separators and the blank
before them. Where a sentence needs a citation as its noun ("as shown in [5], gulls"), a mark of the gap
stays, to be masked or dropped.

A note of a table begins with a letter or a number. ``<p><sup>a</sup>Adjusted for age. <sup>b</sup>At
birth.</p>`` becomes "Adjusted for age. At birth.", as if the marks were labels. Isotopes and prefixes of
chemical names (``<sup>14</sup>C``, ``<sup>t</sup>BuOH``) stay, and so do marks that are explained ("a =
mean", "a indicates"). inline.py frames what may be a mark, which is decided with the whole paragraph.
"""

from __future__ import annotations

import functools
import re
from typing import Final

CITATION_MARK: Final = "\ufdd0"
REMOVAL_MARK: Final = "\ufdd1"
"""Marks of a removed citation and of another removed element: Unicode noncharacters, which are valid in XML
and which xml_tree.py replaces in input text. Separators between citations are removed with them.
"""
GAP_MARK: Final = "\ufdd2"
"""Mark of a citation that was the noun of its sentence."""
NOTE_FRAME: Final = "\ufdd3"
"""Frame of a superscript that may be the mark of a note."""
FORMULA_MARK: Final = "\ufdd4"
"""Mark of a formula or symbol without text, which a word replaces."""
HEADING_FRAME: Final = "\ufdd5"
"""Frame of the heading that a paragraph begins with, or that it is."""
CITATION_REFERENCE, REMOVAL_REFERENCE, HEADING_REFERENCE = (
    f"&#{ord(mark)};" for mark in (CITATION_MARK, REMOVAL_MARK, HEADING_FRAME)
)
"""The same in XML, which stays ASCII: after another character, the parser takes half as long again."""
RESERVED_MARKS: Final = (CITATION_MARK, REMOVAL_MARK, GAP_MARK, NOTE_FRAME, FORMULA_MARK)

# Citations

LINK_SIGN: Final = "▶"
"""Sign of a link after the year of a reference, in the journals of crystallography."""
LINK_WITHOUT_NUMBER: Final = "[Link]"
"""What PMC writes for a link to a reference, a supplement or a statement whose number it does not know."""
CITATION_XREF_TYPES: Final = frozenset({"bibr", "ref", "bib", "bib-ref"})
"""Values of ``ref-type`` of an ``xref`` to the reference list; the last two are no values of JATS."""

_DASHES: Final = "‐‑‒–—―−-"
_NUMBER: Final = r"[Ss]?(?:\d{1,3}|1[0-4]\d\d)[a-z]?•*"  # "12••": of outstanding interest
_NUMERIC_CITATION = re.compile(
    rf"(?:refs?\.?|references?)?[\s\[(]*+(?:{_NUMBER}|[*†‡§¶#])?(?:[\s,;{_DASHES}]++{_NUMBER})*[\s\])]*[.,;]?",
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
    """Return True if a marked text is only citations and their pages: ``<sup>M,5–M(p7)</sup>``.

    A bracket of which the other half is missing is theirs: ``<sup>M)</sup>``.
    """
    return _ONLY_CITATIONS.fullmatch(text) is not None


def closes_citation(script: str, before: str) -> bool:
    """Return True if a superscript is a bracket after a citation that has no opening one.

    ``nests<xref>18</xref><sup>)</sup>``, as Japanese journals print citations.

    Args:
        script: the text of the superscript.
        before: the marked text before it, which may have tags of superscripts.
    """
    if script not in (")", "]") or before[-1:] != CITATION_MARK:
        return False
    text = before.replace("<sup>", "").replace("</sup>", "")
    return text.rstrip(f"{CITATION_MARK}0123456789 ,;{_DASHES}")[-1:] not in ("(", "[")


_FACTOR_AND_TEN = re.compile(r"\d\s?[×x·∙⋅]\s?10\Z")
_TEN = re.compile(r"(?<![\d.,])10\Z")
COUNTED: Final = (
    r"\s?(?:cells|CFUs?|cfu|PFUs?|pfu|IFUs?|TCID|colon(?:y|ies)|copies|spores|particles|viral|vector|M[−–-])"
)
"""Pattern of what a power of ten without a factor counts."""
_COUNTED = re.compile(COUNTED)


def is_linked_exponent(before: str, after: str = "") -> bool:
    """Return True if a number above the line is an exponent, though it has a link.

    Args:
        before: the text before it: "2 × 10", "less than 10".
        after: the text after it, of which a unit tells that a power without a factor is counted: " cells".
    """
    return _FACTOR_AND_TEN.search(before) is not None or (
        _COUNTED.match(after) is not None and _TEN.search(before) is not None
    )


_PER_LENGTH = re.compile(r"/\s?[cdkmμµ]?m\Z")


def is_linked_power_of_unit(script: str, before: str) -> bool:
    """Return True if a number above the line is the power of a unit, though it has a link: "22 kg/m"."""
    return script in ("2", "3") and _PER_LENGTH.search(before) is not None


def ends_in_names(before: str) -> bool:
    """Return True if a number above the line is a citation, as it follows "et al."."""
    return before.rstrip().endswith("et al.")


_TRAILING_NUMBER = re.compile(rf"(?<!\s)\s*+[(\[]{_NUMBER}(?:[\s,;{_DASHES}]++{_NUMBER})*[)\]]$")
_CITATION_SEPARATOR: Final = rf"(?:[\s,;/&{_DASHES}]|\s(?:and|or|to)\s)*"
_CITATION_RUN = re.compile(rf"{CITATION_MARK}(?:{_CITATION_SEPARATOR}{CITATION_MARK})*\s*")
"""Citations with separators between them. It begins with one character, which is found four times as fast."""
_MARK_RUN = re.compile(rf"{_CITATION_RUN.pattern}|{REMOVAL_MARK}\s*")
_ONLY_CITATIONS = re.compile(
    rf"[(\[]?(?:[\d\s,;•{CITATION_MARK}{_DASHES}]|\b(?:and|to)\b|\(pp?\.?\s*\d[\d{_DASHES}]*\))*[)\]]?"
)
_FORMULA_MARK_EDGES = re.compile(
    rf"{FORMULA_MARK}(?:(?<=\w{FORMULA_MARK})())?(?:(?=(?!(?:s|th|st|nd|rd)\b)\w)())?"
)
"""A formula with empty groups where a letter or digit is beside it; "the nth" and "the ns" are one word."""
_MAX_BRACKET_DEPTH: Final = 5  # brackets within brackets; real ones have three
_MAX_CITATION_LENGTH: Final = 200  # characters of a reference's numbers
_MARKED_BRACKET = re.compile(
    rf"[(\[][^()\[\]{CITATION_MARK}{REMOVAL_MARK}]*[{CITATION_MARK}{REMOVAL_MARK}][^()\[\]]*[)\]]"
)
_NUMERIC_ROUND_BRACKET, _NUMERIC_SQUARE_BRACKET = (
    re.compile(rf"{opening}{CITATION_MARK}[\d\s,;•{CITATION_MARK}{_DASHES}]*+[)\]]")
    for opening in (r"\(", r"\[")
)
"""Most brackets by their first two characters."""
_YEAR_BEFORE_CITATION = re.compile(rf"(?:19|20)\d\d[a-z]?[,;]\s*{CITATION_MARK}")
"""In brackets: "Ode (2031, [5])"."""
_INTRODUCTION_WORDS = re.compile(
    r"(?>[\W_]|\b(?:(?:for|in) (?:an? )?(?:\w+ )?(?:reviews?|examples?)|see|also|reviewed|in|by|and|or"
    r"|e\.?g|i\.?e|cf|refs?|references?)\b)*+",
    re.IGNORECASE,
)
_INITIALS_AND_CITATIONS = re.compile(rf"(?:[A-Z]\.|[\s,;{_DASHES}{CITATION_MARK}])++")
"""What a publisher's conversion left of the authors: "[17, Y. 139]"."""
_INTRODUCTION_AT_END = re.compile(
    r"[,;:]\s*(?:see(?:\s+also)?|e\.?g\.?|cf\.?|ref(?:erence)?s?\.?|for\s+reviews?,?\s+see|reviewed\s+in)"
    r"[\s,]*\Z"
    rf"|(?<!see)[,;:]\s*(?:e\.g\.|cf\.|i\.e\.),?\s{GAP_MARK}\s*\Z"
)
_SEPARATORS = re.compile(r"[\s,;:]*")
_OPENING_BRACKETS: Final = frozenset("([")
_CLOSING_BRACKET = re.compile(r"[)\]]")
_SEPARATING_MARKS: Final = frozenset(",;:")
_MARKS_WITHOUT_GAP: Final = frozenset(".,;:!?)]}”’\"'。，；：")
_GOVERNING_WORD = re.compile(
    r"(?:\b(?:in|by|from|of|to|with|per|than|following|after|[Bb]ased on)"
    r"|(?:\A|[.!?:;(]\s*+)(?:After|By|Following|From|In|Unlike|With)"
    r"|\b[Ss]ee(?:,? (?:e\.?g\.?|for example),?)?"
    r"|\b(?:[Rr]efs?|References?)\.?|\b(?:in|by|from|of|to|and|[Ss]ee) references?"
    r"|\bvia|\b(?:accessible|available|deposited|described|downloadable|downloaded|found|given|hosted"
    r"|provided|published)(?: for free| for download| freely| online)? (?:at|under|within))$"
)
"""Words before a citation that is their object. Of 70 that were read in real articles all were."""
_LOOSELY_GOVERNING_WORD = re.compile(
    r"(?:(?:\A|[.!?]\s++)As|(?<![\w-])(?:and|as|(?<!in )between|like|or|[Uu]nlike)"
    r"|\b(?:[Cc]f\.?|e\.g\.|i\.e\.),?)$"
)
"""The same with a blank before the citation and :data:`_AFTER_NOUN` behind it; a number above the line after
"and" is of the word before.
"""
_CONJUNCTION = re.compile(
    r"(?<![\w-])(?:although|because|whereas|while)$"
    r"|(?:\A|[.!?]\s++)(?:Additionally|Conversely|Finally|For (?:example|instance)|Furthermore|However"
    r"|In (?:addition|comparison|contrast|particular)|Interestingly|Later|Likewise|Moreover|Previously"
    r"|Recently|Similarly|Subsequently),$"
)
"""Words before a citation that is the subject of what follows: "while [6] described", "Later, [6] found"."""
_VERBS: Final = r"""(?:also\s|both\s|have\s|has\s|recently\s)?(?:are|demonstrate[ds]?|describe[ds]?
    |discuss(?:ed|es)?|evaluate[ds]?|find|found|give|has|have|introduce[ds]?|is|observed|present(?:ed|s)?|propose[ds]?
    |provide[ds]?|report(?:ed|s)?|reviewe?[ds]?|select|show(?:ed|s|n)?|stud(?:y|ied|ies)|suggest(?:ed|s)?
    |use[ds]?|was|were)\b"""
_VERB = re.compile(_VERBS, re.VERBOSE)
_VERB_AFTER_SUBJECT = re.compile(rf"{_VERBS}|[a-z]{{3,}}ed\b", re.VERBOSE)
"""What follows a citation that begins a sentence as its subject: "[4] showed that"."""
_AFTER_NOUN = re.compile(
    rf"[.,;)\]]|\Z|(?:by|in|that|therein|which|who|with|and\s(?:references|reviews))\b|{_VERBS}",
    re.VERBOSE,
)
_SENTENCE_END = re.compile(r"(?:\A[.!?]?|(?:[a-z]{3}|[\d)\]])[.!?:])\Z")
_LAST_WORD_LIST: Final = """
    in by from of to with per than following after on see e.g eg example ref refs reference references and as
    between like or unlike cf i.e at via under within although because whereas while
    additionally conversely finally instance furthermore however addition comparison contrast particular
    interestingly later likewise moreover previously recently similarly subsequently
"""
_LAST_WORDS: Final = frozenset(_LAST_WORD_LIST.split())
"""Last words of these patterns, a fast prefilter."""
_LOOKBACK_CHARACTERS: Final = 30
_SECOND_COMMA = re.compile(r",\s*+(?=[,;]|\.(?!\.))")
"""A comma behind a citation that other punctuation follows: "gulls [5],. Terns", "gulls, [5], , terns"."""
_BRACKETED_SEPARATORS: Final = (f"{CITATION_MARK})-({CITATION_MARK}", f"{CITATION_MARK}),({CITATION_MARK}")
"""Separators between citations whose outer brackets are not set."""
_BESIDE_CITATION = re.compile(
    rf"(?:\[\d{{1,3}}\]\s?){{1,4}}+(?=\[{CITATION_MARK})|(?<={CITATION_MARK}\])(?:\s?\[\d{{1,3}}\]){{1,4}}+"
)
"""Numbers in brackets that have no link, beside a citation that has: "gulls [45] [2]"."""
_ADJACENT_BRACKETS = re.compile(r"\] ?\[")
_LEFT_TO_RIGHT: Final = "\u200e"
_RIGHT_TO_LEFT: Final = "\u200f"
_STRIPPED_IN_BRACKET: Final = " \t\n,;:"


def remove_marks(text: str) -> str:
    """Remove the marks, and the brackets that become empty."""
    if _LEFT_TO_RIGHT in text or _RIGHT_TO_LEFT in text:  # between a citation and its stop
        text = text.replace(_LEFT_TO_RIGHT, "").replace(_RIGHT_TO_LEFT, "")
    # A search for one character is ten times as fast as one for two.
    has_round_bracket = "(" in text and f"({CITATION_MARK}" in text
    has_square_bracket = "[" in text
    if has_round_bracket:
        for separator in _BRACKETED_SEPARATORS:
            text = text.replace(separator, CITATION_MARK)
    if has_square_bracket and _ADJACENT_BRACKETS.search(text):
        text = _BESIDE_CITATION.sub("", text)
    if has_round_bracket:
        text = _NUMERIC_ROUND_BRACKET.sub(CITATION_MARK, text)
    if has_square_bracket:
        text = _NUMERIC_SQUARE_BRACKET.sub(CITATION_MARK, text)
    for _ in range(_MAX_BRACKET_DEPTH if "(" in text or "[" in text else 0):
        cleaned = text
        for mark in (CITATION_MARK, REMOVAL_MARK):
            cleaned = _clean_brackets(cleaned, mark)
        if cleaned is text:
            break
        text = cleaned
    return _close_gaps(text)


def fill_gaps(text: str, mask: str) -> str:
    """Replace the marks of citations that were nouns by a mask, or remove them if it is empty."""
    if mask:
        return text.replace(GAP_MARK, mask)
    return text.replace(f" {GAP_MARK}", "").replace(GAP_MARK, "").lstrip(" ")


def write_formula_words(text: str, word: str) -> str:
    """Replace the marks of formulas without text by a word, apart from letters and digits beside it."""
    return _FORMULA_MARK_EDGES.sub(
        lambda edges: f"{' ' if edges[1] is not None else ''}{word}{' ' if edges[2] is not None else ''}",
        text,
    )


def _clean_brackets(text: str, mark: str) -> str:
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
            parts += (text[end:start], _clean_bracket(bracket[0]))
            end = searched = bracket.end()
        else:
            searched = position + 1
        position = text.find(mark, searched)
    return "".join([*parts, text[end:]]) if parts else text


def _clean_bracket(bracket: str) -> str:
    """Remove the citations of a bracket; return a mark if nothing else remains."""
    content = bracket[1:-1]
    if _YEAR_BEFORE_CITATION.match(content) is None and (
        has_only_citations(content)
        or _INTRODUCTION_WORDS.fullmatch(content)
        or _INITIALS_AND_CITATIONS.fullmatch(content)
    ):
        return CITATION_MARK
    cleaned = _close_gaps(content).strip(_STRIPPED_IN_BRACKET)
    if content.rstrip()[-1] == CITATION_MARK:
        cleaned = _INTRODUCTION_AT_END.sub("", cleaned)
    return f"{bracket[0]}{cleaned}{bracket[-1]}"


def _close_gaps(text: str) -> str:
    """Remove the marks outside of brackets, with the punctuation and blanks that belong to them."""
    parts: list[str] = []
    position = 0
    last_character = ""  # of what is before the marks
    for run in (_MARK_RUN if REMOVAL_MARK in text else _CITATION_RUN).finditer(text):
        start, end = run.span()
        before_run = kept = text[position:start].rstrip()
        left_character = last_character = kept[-1] if kept else last_character
        right_character = text[end] if end < len(text) else ""
        is_citation = text[start] == CITATION_MARK
        if right_character == "," and (comma := _SECOND_COMMA.match(text, end)):
            end = comma.end()
            right_character = text[end]
        if left_character in _OPENING_BRACKETS and right_character in _SEPARATING_MARKS:
            # "([5]; see also Ode)"
            end = _SEPARATORS.match(text, end).end()  # type: ignore[union-attr]
            gap = ""
        elif right_character in _MARKS_WITHOUT_GAP or not right_character:
            # "as shown, [5]." loses its comma, "Miller et al., [5]." has its full stop already
            if left_character in ".;" and right_character == "," and CITATION_MARK not in run[0]:
                end += 1  # of a picture that is a key: "Nests. PICTURE, gulls; PICTURE, terns"
            elif left_character in _SEPARATING_MARKS and (not right_character or right_character in ".,;:)]"):
                kept = kept[:-1]
            if kept[-1:] == right_character == ".":
                kept = kept[:-1]
            elif right_character == "." and kept.endswith((".”", '."', ".’")):  # “They nest.” [5].
                end += 1
                right_character = text[end : end + 1]
            if left_character in _OPENING_BRACKETS and not _CLOSING_BRACKET.search(text, end):
                kept = kept[:-1].rstrip()  # of a citation that has no other bracket: "as shown [5."
            gap = ""
        elif (
            not left_character
            or left_character in "([{"
            or (left_character in "“‘" and not kept[-2:-1].isalnum())  # which some print as closing ones
            or (right_character == "—" and not text[end - 1].isspace())  # gulls [5]—as terns
        ):
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
        near = start - position - _LOOKBACK_CHARACTERS
        if is_citation and _is_noun(run, before_run, near, end, right_character.islower()):
            parts += (
                before_run,
                f"{' ' if before_run else ''}{GAP_MARK}{gap or ' ' * right_character.islower()}",
            )
        else:
            parts += (kept, gap)
        if right_character == "." and is_citation and text[end + 1 : end + 2].isupper():
            parts.append(". ")  # "gulls [5].The terns"
            end += 1
        position = end
    return "".join([*parts, text[position:]])


def _is_noun(run: re.Match[str], before_run: str, near: int, end: int, is_before_word: bool) -> bool:
    """Return True if a citation is the noun of its sentence.

    Args:
        run: the marks.
        before_run: the text before them, from the run before.
        near: offset in it from which words are looked at; may be negative.
        end: offset after the marks, and punctuation that goes with them.
        is_before_word: True if a small letter follows the marks.
    """
    text = run.string
    last_word = before_run.rpartition(" ")[2]
    if "\n" in last_word:
        last_word = last_word.rpartition("\n")[2]
    is_after_word = last_word.lower().strip("([.,") in _LAST_WORDS
    opens_sentence = is_before_word and (len(before_run) <= near or before_run[-1:] in ".!?:")
    if not (is_after_word or opens_sentence):  # nearly all, without the slower searches
        return False
    before = before_run[max(0, near) :]
    return (is_after_word and _is_governed(before, text, run, end)) or (
        opens_sentence
        and _SENTENCE_END.search(before) is not None
        and not before.endswith("al.")
        # "completed by gulls: [5] planned visits" has no verb.
        and (_VERB if before.endswith(":") else _VERB_AFTER_SUBJECT).match(text, end) is not None
    )


def _is_governed(before: str, text: str, run: re.Match[str], end: int) -> bool:
    """Return True if a citation is the object of the words before it."""
    return _GOVERNING_WORD.search(before) is not None or (
        text[run.start() - 1].isspace()
        and (
            (_LOOSELY_GOVERNING_WORD.search(before) is not None and _AFTER_NOUN.match(text, end) is not None)
            or (_CONJUNCTION.search(before) is not None and _VERB_AFTER_SUBJECT.match(text, end) is not None)
        )
    )


def governs_address(before: str) -> bool:
    """Return True if an address is the object of the words before it: "compiled from", "found at"."""
    before = before.rstrip()
    return before.endswith((" at", " and", " or")) or _GOVERNING_WORD.search(before) is not None


# Marks of notes

_NOTE_MARK: Final = r"(?>(?:[A-Z]|[a-z]{1,3}|[ivx]{1,8}|\d{1,3}|NS)(?!\w))"
_NOTE_MARKS = re.compile(rf"\s*[(\[]?{_NOTE_MARK}(?:\s?[,;–-]\s?{_NOTE_MARK})*[)\]]?\s*")
_FRAMED_SCRIPT = re.compile(rf"{NOTE_FRAME}([^{NOTE_FRAME}]*){NOTE_FRAME}(\s*)")
_ISOTOPE = re.compile(
    r"(?: [123]H(?=NMR|[^A-Z]|$) | 2D | [34]He | [67]Li | \d[JO] | 1\d[BCNOF] | 3[1-5][PS] | \d{3}[A-Z][a-z]?"
    r" | \d\d(?!A[st]?\b|I\b|In|No)[A-Z][a-z]? ) (?![a-zà-ÿ])",
    re.VERBOSE,
)
_INITIAL_OR_WORD = re.compile(r"[A-Z]\. [A-Z]|[A-Z][a-z]* [a-z]{2}")
_CHEMICAL_PREFIX = re.compile(
    r"[tinsc](?:Bu|Pr|Am|Pent|Hex)(?:(?:t|op|nt)?(?:yl|an|ox|en)|ane?|yl|(?![a-z]))|m[56]?[ACGU](?![a-z]|[A-Z][a-z])|mCpG"
)
_EXPLANATION = re.compile(
    r"(?:correspond|denot|designat|indicat|refer|represent|show|stand)[a-z]*\b|(?:is|are|was|were|and|or|to)\b"
)
MIN_NOTED_WORD: Final = 5
_NOTED_WORD = re.compile(r"[^\W\d_][a-z-]{3}\.?\Z")
_NOT_SIGNIFICANT: Final = ("ns", "NS")
_NOTE_LETTERS: Final = frozenset("abcdefgh")
"""Letters of the notes of a table; an index is later in the alphabet, or no word is before it."""
CLAUSE_ENDS: Final = ".;:,)"
_SENTENCE_ENDS: Final = ".;:)"
END_OF_CAPTION: Final = ".</p>"
_NUMBERS_AT_END = re.compile(r"[1-9](?:,\s?[1-9])*")


def is_note_mark(script: str) -> bool:
    """Return True if a superscript looks like the mark of a note: "a", "1,2", "xiv", "(b)"."""
    return _NOTE_MARKS.fullmatch(script) is not None


def may_point_to_note(script: str, before: str) -> bool:
    """Return True if a superscript is a letter and after a word, which points to a note.

    All of 24 outside of tables that were read, in 6,500 articles, pointed to notes; none was an allele.
    """
    return script in _NOTE_LETTERS and _NOTED_WORD.search(before) is not None


def may_open_note(script: str, before: str, after: str) -> bool:
    """Return True if a superscript letter is between two notes of a table: ``nests.<sup>b</sup>Gulls``."""
    return script in _NOTE_LETTERS and before.endswith(".") and after[:1].isupper() and after[1:2].islower()


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
    next_mark = ""

    def resolve(framed: re.Match[str]) -> str:
        nonlocal is_note, next_mark
        mark, gap = framed.groups()
        before = text[: framed.start()].rstrip()
        after = text[framed.end() : framed.end() + 12]
        if not before:
            is_note = True
        if not after:
            return ""
        is_at_note = (
            is_note
            or mark.strip() == next_mark
            or (before[-1] in _SENTENCE_ENDS and _opens_note(after, mark.strip()))
        )
        if (
            not is_at_note
            or not (after[0].isalnum() or after[0] in "(“‘\"'[%<>≤≥")
            or (_ISOTOPE.match(mark.strip() + after) and not (gap and _INITIAL_OR_WORD.match(after)))
            or (not gap and _CHEMICAL_PREFIX.match(mark + after))
        ):
            return mark + gap
        if mark in _NOT_SIGNIFICANT or _EXPLANATION.match(after):
            return f"{mark} "
        next_mark = chr(ord(mark.strip()) + 1) if mark.strip() in _NOTE_LETTERS else ""
        return ""

    return _FRAMED_SCRIPT.sub(resolve, text)


def _opens_note(after: str, mark: str) -> bool:
    """Return True if a note may begin so after its mark: with a word, or as "t-test", "p value"."""
    return (
        after[:2].isalpha()
        or after.startswith(("t-", "p value", "p-value", "P value"))
        or (mark.isalpha() and after[0].isupper())
    )
