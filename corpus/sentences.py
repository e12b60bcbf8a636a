"""Split a paragraph of biomedical English into sentences.

A full stop, question or exclamation mark before a blank may end a sentence or not.  After a plain
word and before a capital it does: that is settled at once.  For all else the kinds of the words
around it are weighed (sentence_model.py).
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from .sentence_model import CAPITALS, ENDS, SETTLED, kinds
from .sentence_words import BEFORE

_CLOSED: Final = r"""
    (?: ["'”’)\]*†‡]* (?: \ ?\[\d[\d,\ –-]*\] (?=\ [A-Z]) )?   # "..." (...). [12] Then
      | (?<=[a-z)\]]\.) \d{1,3} (?:[,–-]\d{1,3})* (?=\ [A-Z])  # superscripts: was shown.12,13 Then
    )
    \ """
CANDIDATE: Final = re.compile(rf"[.!?] {_CLOSED}", re.VERBOSE)
"""What may end a sentence: a mark, what is closed after it, and citations set after it."""
_FULL_STOP: Final = re.compile(rf"\. {_CLOSED}", re.VERBOSE)
"""The same of full stops only: twice as fast, as one character can be searched for."""

_PARAGRAPH: Final = re.compile(r"\n\s*\n")


def one_line(text: str) -> str:
    """The text with each run of white space as one blank, and none at its ends."""
    # Most text is so already, and seeing that takes a third of the time of splitting it.
    if text.isascii():
        spaced = "\n" in text or "\t" in text or "\r" in text or "\v" in text or "\f" in text
        plain = not (spaced or "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text)
    else:
        plain = text.isprintable()
    if plain and "  " not in text and text[:1] != " " != text[-1:]:
        return text
    return " ".join(text.split())


def split(text: str) -> list[str]:
    """The sentences of a text, in order, white space collapsed to single blanks.

    No word is changed, lost or moved: ``" ".join(split(text)).split() == text.split()``.
    A blank line ends a sentence, other line breaks do not.  Time is linear in the text's length.
    """
    if "\n" not in text:
        return split_clean(one_line(text))
    return [sentence for part in _PARAGRAPH.split(text) for sentence in split_clean(one_line(part))]


def spans(text: str) -> list[tuple[int, int]]:
    """The sentences of :func:`split` as (start, end) in characters; between two is white space only."""
    if text and one_line(text) is text:
        found = ends(text)
        return list(zip([0, *[end + 1 for end in found]], [*found, len(text)], strict=True))
    in_words = []
    words = re.finditer(r"\S+", text)
    for sentence in split(text):
        its_words = list(itertools.islice(words, sentence.count(" ") + 1))
        in_words.append((its_words[0].start(), its_words[-1].end()))
    return in_words


def split_clean(text: str) -> list[str]:
    """:func:`split` for one line whose white space is single blanks already."""
    sentences = []
    start = 0
    for end in ends(text):
        sentences.append(text[start:end])
        start = end + 1
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def ends(text: str) -> list[int]:
    """Where the sentences of such a line end, but the last: offsets of the blanks after them."""
    found = []
    start = 0
    candidate = CANDIDATE if "?" in text or "!" in text else _FULL_STOP
    for match in candidate.finditer(text):
        stop, after = match.span()
        before = BEFORE[text[text.rfind(" ", start, stop) + 1 or start : stop]]
        if (before in SETTLED and text[after] in CAPITALS) or ENDS[kinds(text, start, stop, after)]:
            found.append(after - 1)
            start = after
    return found
