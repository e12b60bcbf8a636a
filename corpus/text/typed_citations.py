"""Remove citations that are typed as numbers, in text that has no links to its references.

Numbers in brackets ("of gulls [2, 3-5]"), and numbers that lost their superscript and are glued to a word.
Names of genes and labels end in numbers too (sirtuin1-3, day1,7). Only two forms are certain: numbers after
the full stop of a plain word, and a list or range of numbers after a word whose ending no name has.
"""

from __future__ import annotations

import functools
import re
from typing import Final

from bioshards.corpus.sentences.boundary_model import CLASS_BEFORE_STOP

_MORE_NUMBERS = r"(?:[,–-]\d{1,2})*"
# Patterns that begin with a mark are searched several times as fast: nearly all texts have no such number.
_AFTER_STOP = re.compile(rf"\.\d(?<=[a-z][a-z][a-z][a-z]\.\d)\d?{_MORE_NUMBERS}(?=\s*\Z|\s+[^\sa-z\d])")
_NUMBER_AFTER_STOP = re.compile(r"\.\d(?:(?<=[a-z][a-z][a-z][a-z]\.\d)|(?<=\bal\.\d))")
_AFTER_AL = re.compile(r"al\.(?<=\bal\.)\d{1,3}(?:[,–-]\d{1,3})*+(?=[\s,;)]|\Z)")
_LIST = re.compile(r",\d(?:(?<=[a-z]\d,\d)|(?<=[a-z]\d\d,\d))")
_RANGE = re.compile(r"-\d(?:(?<=[a-z]\d-\d)|(?<=[a-z]\d\d-\d))")
_BEFORE_COMMA = re.compile(r",(?:(?<=[a-z]\d,)|(?<=[a-z]\d\d,))")
_BEFORE_DASH = re.compile(r"–(?:(?<=[a-z]\d–)|(?<=[a-z]\d\d–))")
_AFTER_WORD = re.compile(rf"\b([a-z]+)(?=\d{{1,2}}[,–-])\d{{1,2}}{_MORE_NUMBERS}(?=[.,;:]?(?:\s|\Z))")
_WORD_ENDING = re.compile(
    r"[a-z]{3,}(?:cancers?|diseases?|disorders?|ed|emia|itis|ly|ness|omas?|osis|therap(?:y|ies)|tumou?rs?)"
    r"|cancers?|diseases?|disorders?|tumou?rs?"
)
_NUMBERED_WORDS: Final = frozenset({"equation", "figure", "figures", "file", "table", "tables", "version"})
_NUMBER = re.compile(r"\d+")
_MAX_WORD_LENGTH: Final = 40
_BRACKET: Final = r"\[[1-9]\d{0,2}+(?:\s?[,;–-]\s?[1-9]\d{0,2}+)*+\]"
_BRACKETED_NUMBERS = re.compile(_BRACKET)
_NUMBER_OR_RANGE = re.compile(r"\d+(?:\s?[–-]\s?\d+)?")
_MIN_COUNTED: Final = 10
_MIN_COUNTED_SHARE: Final = 0.8
_IN_BRACKETS = re.compile(rf"\s?{_BRACKET}(?:,?\s?{_BRACKET})*(?:(?=[\s,;:)]|\Z)|(\.))")
_AFTER_NAMES = re.compile(rf"(?<=\bal\.)\s{_BRACKET}(?:\.(?=\s|\Z))?(?!\w)")
_CITED_WORD = re.compile(
    r"(?:(?<![\w-])[A-Za-z][a-zà-ÿ-]*[a-zà-ÿ]{3}|\b(?:[A-Z]{3,}|al\.)|[a-z]{3}[”\"']|\b(?:19|20)\d\d[a-z]?\))\Z"
)
_CITED_STOP = re.compile(r"[a-z]{4}\.\Z")
_NOUN_OR_STATISTIC = re.compile(
    r"\b(?:[Aa]fter|[Aa]ged?|also|[Bb]etween|[Ee]quations?|[Ff]ollowing|[Ff]rom|ICC|[Ii]ntervals?|IQR"
    r"|[Ll]ike|[Mm]eans?|[Mm]edians?|[Oo]f|[Pp]er|[Qq]uartiles?|[Rr]ang(?:e[ds]?|ing)|[Rr]atios?"
    r"|[Rr]ef(?:erence)?s?|[Ss]cales?|[Ss]cores?|SDs?|[Ss]ee|[Tt]han|[Tt]imes|[Tt]otal|[Uu]nlike|[Vv]alues?|versus|[Ww]as|[Ww]ere|[Ww]ith|[Yy]ears)\Z"
)
"""Words before numbers in brackets that are a noun ("see [4]") or a range ("median [3-7]")."""
_PREPOSITION = re.compile(r"\b(?:[Aa](?:nd|s|t)|[Bb]y|[Ff]or|[Ii]n|[Oo][nr]|[Tt]o|via)\Z")
_PROTEIN_PART = re.compile(r"\b(?:acids?|motifs?|regions?|residues?|sequences?)\Z")
"""Words before a range in brackets that is of a protein: "the region [1-375]"."""
MAX_REFERENCE: Final = 999
"""Highest number of a reference in an article of which nothing is known."""


def remove_bracketed_numbers(text: str, highest: int = MAX_REFERENCE, are_counted: bool = False) -> str:
    """Return the text without citations by number in brackets: "of gulls [2, 3-5].".

    Those that are the object of a verb or preposition, or may be a range ("6 months [4-17]"), stay.

    Args:
        text: a paragraph in one line.
        highest: numbers above it are none of references.
        are_counted: the numbers count up (:func:`count_up`), so that those after a word that may be an amount
            or a name are citations too: "in 30 days [12]", "of CcdA [12]".
    """
    if not has_bracketed_numbers(text):  # most texts; a pattern that may begin with a blank is slow
        return text
    return _IN_BRACKETS.sub(functools.partial(_keep_range, highest, are_counted), text)


def count_up(text: str) -> bool:
    """Return True if the numbers in brackets are nearly all from 1 to the highest, as those of references."""
    numbers: set[int] = set()
    for bracket in _BRACKETED_NUMBERS.findall(text):
        for part in _NUMBER_OR_RANGE.findall(bracket):
            first, _, last = part.replace("–", "-").partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return len(numbers) >= _MIN_COUNTED and len(numbers) >= _MIN_COUNTED_SHARE * max(numbers)


def has_bracketed_numbers(text: str) -> bool:
    """Return True if :func:`remove_bracketed_numbers` or :func:`remove_numbers_after_names` can.

    Brackets are few, and a search for one character passes over others ten times as fast as a pattern.
    """
    position = text.find("[")
    while position >= 0 and not _BRACKETED_NUMBERS.match(text, position):
        position = text.find("[", position + 1)
    return position >= 0


def remove_numbers_after_names(text: str) -> str:
    """Return the text without citations by number after names: "Ode et al. [14]"."""
    return _AFTER_NAMES.sub("", text) if "al. [" in text else text


def has_numbers_after_stops(text: str) -> bool:
    """Return True if :func:`remove_numbers_after_stops` may change a text, or a part after a line break."""
    return _NUMBER_AFTER_STOP.search(text) is not None


def remove_numbers_after_stops(text: str) -> str:
    """Return the text without numbers of references after a full stop: "of gulls.12 Terns", "Ode et al.4"."""
    if not has_numbers_after_stops(text):
        return text
    return _AFTER_STOP.sub(_keep_stop, _AFTER_AL.sub("al.", text))


def _is_range(numbers: str) -> bool:
    return "-" in numbers or "–" in numbers


def _keep_range(highest: int, are_counted: bool, numbers: re.Match[str]) -> str:
    if any(int(number) > highest for number in _NUMBER.findall(numbers[0])):
        return numbers[0]
    before = numbers.string[max(0, numbers.start() - _MAX_WORD_LENGTH) : numbers.start()]
    if not numbers[0][0].isspace():
        is_citation = _CITED_STOP.search(before) is not None
    elif are_counted and not _is_range(numbers[0]):
        following = numbers.string[numbers.end() : numbers.end() + 1]
        leaves_mark = before[-1:] in (",", ";") and following in (",", ";", ")")
        is_citation = not (leaves_mark or _NOUN_OR_STATISTIC.search(before) or _PREPOSITION.search(before))
    else:
        is_citation = (
            _CITED_WORD.search(before) is not None
            and not _is_amount(before.split())
            and not _NOUN_OR_STATISTIC.search(before)
            and not (_is_range(numbers[0]) and _PROTEIN_PART.search(before))
        )
    if not is_citation:
        return numbers[0]
    return "" if before.endswith(".") else numbers[1] or ""


def _is_amount(words: list[str]) -> bool:
    """Return True if words end in a number and its unit: "for 6 months"."""
    return len(words) > 1 and any(map(str.isdigit, words[-2])) and not any(map(str.isdigit, words[-1]))


def remove_reference_numbers(text: str) -> str:
    """Return the text without numbers of references that are glued to words."""
    if _AFTER_STOP.search(text):
        text = _AFTER_STOP.sub(_keep_stop, text)
    if _LIST.search(text) or _RANGE.search(text) or ("–" in text and _has_joined_number(text)):
        text = _AFTER_WORD.sub(_keep_word, text)
    return text


def _has_joined_number(text: str) -> bool:
    """Return True if a number is joined to a word and a comma or dash follows: a fast prefilter."""
    return _BEFORE_COMMA.search(text) is not None or _BEFORE_DASH.search(text) is not None


def _keep_stop(match: re.Match[str]) -> str:
    stop = match.start()
    word = match.string[max(0, stop - _MAX_WORD_LENGTH) : stop].rpartition(" ")[2].rpartition(":")[2]
    return "." if CLASS_BEFORE_STOP[word] == "word" and word not in _NUMBERED_WORDS else match[0]


def _keep_word(match: re.Match[str]) -> str:
    return match[1] if _WORD_ENDING.fullmatch(match[1]) else match[0]
