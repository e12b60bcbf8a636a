"""Tell texts that are plainly not in English by their script or their function words.

A fifth to a half of the words of a text are function words: "of", "the", "de", "und". English text has many
of English and few of any other language, whatever its subject. The test is one-sided: a text counts as
English unless its words plainly say otherwise, and a short text always does.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Sequence
from importlib import resources
from typing import Final

ENGLISH: Final = "eng"
MIN_WORDS: Final = 30
"""Words below which a text in Latin script is too short to tell."""
MIN_LETTERS: Final = 60
"""Letters below which a text in another script is too short to tell."""
_MAX_TEXTS: Final = 20
"""Texts that are read of a document, evenly spread."""
_SAMPLE_CHARACTERS: Final = 6000
"""Characters that are read of a document."""


def _read_function_words() -> dict[str, frozenset[str]]:
    table = (resources.files(__package__) / "function_words.txt").read_text(encoding="utf-8")
    lines = [line.partition(": ") for line in table.splitlines()]
    return {language: frozenset(words.split()) for language, _, words in lines}


_WORDS_BY_LANGUAGE: Final = _read_function_words()
"""Frequent function words of languages in Latin script, by MARC code."""
_ENGLISH_WORDS: Final = _WORDS_BY_LANGUAGE[ENGLISH]
_FREQUENT_WORDS: Final = (" the ", " of ", " and ", " in ", " to ", " a ")
"""Most of the function words of English, each a fast search: they suffice for most English texts."""
_MIN_ENGLISH_SHARE: Final = 0.15
"""Share of English function words from which a text is English. The lowest of 2,194 abstracts is 0.19."""
_MIN_OTHER_SHARE: Final = 0.12
_MIN_RATIO: Final = 2
"""Function words of another language for each English one. English abstracts have 0.44 at most."""
_MIN_DISTINCT_WORDS: Final = 4
"""Different function words of two letters or more: symbols, and the "et al." of references, are fewer."""

_NON_ASCII: Final = re.compile(r"[^\x00-\x7f]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_LETTERS_BY_SCRIPT: Final = {
    "jpn": re.compile("[\u3040-\u30ff]"),  # before Chinese, whose characters it has too
    "chi": re.compile("[\u3400-\u9fff]"),
    "kor": re.compile("[\u1100-\u11ff\uac00-\ud7af]"),
    "rus": re.compile("[\u0400-\u04ff]"),
    "gre": re.compile("[\u0370-\u03ff\u1f00-\u1fff]"),
    "ara": re.compile("[\u0600-\u06ff]"),
    "heb": re.compile("[\u0590-\u05ff]"),
    "tha": re.compile("[\u0e00-\u0e7f]"),
    "geo": re.compile("[\u10a0-\u10ff]"),
}
"""Letters of the scripts of one language, or of the main one of several, by MARC code."""
_MAX_JAPANESE_CHINESE_RATIO: Final = 20
"""Chinese characters for each Japanese one above which a text is Chinese."""


def detect_language(texts: Sequence[str]) -> str | None:
    """Return the MARC code of the language if the texts are plainly not in English, else None.

    Args:
        texts: paragraphs, each in one line, of which a sample is read.
    """
    read_texts = texts[:: len(texts) // _MAX_TEXTS + 1]
    max_characters = _SAMPLE_CHARACTERS // max(1, len(read_texts))
    sample = " ".join([text[:max_characters] for text in read_texts])
    min_frequent = _MIN_ENGLISH_SHARE * (sample.count(" ") + 1)
    num_frequent = 0
    for word in _FREQUENT_WORDS:  # most texts do not need all
        num_frequent += sample.count(word)
        if num_frequent >= min_frequent:
            return None
    words = sample.split()
    # Counted as written first: lower case of a text beyond ASCII takes as long as the rest.
    if words and _count_english(words) >= _MIN_ENGLISH_SHARE * len(words):
        return None
    words = sample.lower().split()
    english_words = _count_english(words)
    if words and english_words >= _MIN_ENGLISH_SHARE * len(words):
        return None
    return _detect_script(sample) or _detect_by_words(words, english_words)


def _count_english(words: list[str]) -> int:
    return sum(map(_ENGLISH_WORDS.__contains__, words))


def _detect_by_words(words: list[str], english_words: int) -> str | None:
    if len(words) < MIN_WORDS:
        return None
    counts = collections.Counter(words)
    other_words, language = max(
        (sum(counts[word] for word in function_words), language)
        for language, function_words in _WORDS_BY_LANGUAGE.items()
        if language != ENGLISH
    )
    if other_words < max(_MIN_OTHER_SHARE * len(words), _MIN_RATIO * english_words):
        return None
    num_distinct = sum(len(word) > 1 for word in _WORDS_BY_LANGUAGE[language].intersection(counts))
    return language if num_distinct >= _MIN_DISTINCT_WORDS else None


def _detect_script(sample: str) -> str | None:
    """Return the language of the script that most letters are in, unless that is the Latin one."""
    if len(_NON_ASCII.findall(sample)) < MIN_LETTERS:
        return None
    num_letters = len(_LETTER.findall(sample))
    counts = {language: len(letter.findall(sample)) for language, letter in _LETTERS_BY_SCRIPT.items()}
    if counts["jpn"] * _MAX_JAPANESE_CHINESE_RATIO > counts["chi"]:
        counts["jpn"] += counts.pop("chi")
    language = max(counts, key=counts.__getitem__)
    return language if 2 * counts[language] > num_letters and counts[language] >= MIN_LETTERS else None
