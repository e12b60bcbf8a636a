"""Remove numbers of references that lost their superscript and are glued to a word.

Names of genes and labels end in numbers too (``sirtuin1-3``, ``day1,7``). Only two forms are certain: numbers
after the full stop of a plain word, and a list or range of numbers after a word whose ending no name has.
"""

from __future__ import annotations

import re
from typing import Final

from bioshards.corpus.sentences.word_classes import CLASS_BEFORE_STOP

_MORE_NUMBERS = r"(?:[,–-]\d{1,2})*"
# Patterns that begin with a mark are searched several times as fast: nearly all texts have no such number.
_AFTER_STOP = re.compile(rf"\.\d(?<=[a-z][a-z][a-z][a-z]\.\d)\d?{_MORE_NUMBERS}(?=\s*\Z|\s+[^\sa-z\d])")
_LIST = re.compile(r",\d(?:(?<=[a-z]\d,\d)|(?<=[a-z]\d\d,\d))")
_RANGE = re.compile(r"-\d(?:(?<=[a-z]\d-\d)|(?<=[a-z]\d\d-\d))")
_AFTER_WORD = re.compile(rf"\b([a-z]+)(?=\d{{1,2}}[,–-])\d{{1,2}}{_MORE_NUMBERS}(?=[.,;:]?(?:\s|\Z))")
_WORD_ENDING = re.compile(
    r"[a-z]{3,}(?:cancers?|diseases?|disorders?|ed|emia|itis|ly|ness|omas?|osis|therap(?:y|ies)|tumou?rs?)"
    r"|cancers?|diseases?|disorders?|tumou?rs?"
)
_MAX_WORD_LENGTH: Final = 40


def remove_reference_numbers(text: str) -> str:
    """Return the text without numbers of references that are glued to words."""
    if _AFTER_STOP.search(text):
        text = _AFTER_STOP.sub(_keep_stop, text)
    if _LIST.search(text) or _RANGE.search(text) or "–" in text:
        text = _AFTER_WORD.sub(_keep_word, text)
    return text


def _keep_stop(match: re.Match[str]) -> str:
    stop = match.start()
    word = match.string[max(0, stop - _MAX_WORD_LENGTH) : stop].rpartition(" ")[2].rpartition(":")[2]
    return "." if CLASS_BEFORE_STOP[word] == "word" else match[0]


def _keep_word(match: re.Match[str]) -> str:
    return match[1] if _WORD_ENDING.fullmatch(match[1]) else match[0]
