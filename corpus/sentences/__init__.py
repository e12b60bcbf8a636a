"""Split biomedical English into sentences.

A full stop, question mark or exclamation mark before a blank is a boundary candidate. After a plain word and
before a capital it is a boundary. All other candidates are classified by the words around them
(boundary_model.py).
"""

from __future__ import annotations

import itertools
import re
from typing import Final

from .boundary_model import CAPITALS, CERTAIN_CLASSES, IS_BOUNDARY, extract_context
from .word_classes import CLASS_BEFORE_STOP

_CLOSING_MARKS: Final = r"""
    (?: ["'”’)\]*†‡]* (?: \ ?\[\d[\d,\ –-]*\] (?=\ [A-Z]) )?   # "..." (...). [12] Then
      | (?<=[a-z)\]]\.) \d{1,3} (?:[,–-]\d{1,3})* (?=\ [A-Z])  # superscripts: was shown.12,13 Then
    )
    \ """
BOUNDARY_CANDIDATE: Final = re.compile(rf"[.!?] {_CLOSING_MARKS}", re.VERBOSE)
"""Boundary candidate: a mark, closing quotes and brackets, and citations after it."""
_FULL_STOP: Final = re.compile(rf"\. {_CLOSING_MARKS}", re.VERBOSE)
"""The same for full stops only: twice as fast, as the regular expression starts with one character."""

_PARAGRAPH_BREAK: Final = re.compile(r"\n\s*\n")


def collapse_whitespace(text: str) -> str:
    """Replace each run of white space by one blank and strip the ends."""
    # Most text is collapsed already; the check takes a third of the time of splitting.
    if text.isascii():
        has_line_break = "\n" in text or "\t" in text or "\r" in text or "\v" in text or "\f" in text
        is_plain = not (
            has_line_break or "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text
        )
    else:
        is_plain = text.isprintable()
    if is_plain and "  " not in text and text[:1] != " " != text[-1:]:
        return text
    return " ".join(text.split())


def count_line_words(line: str) -> int:
    """Return the number of words of a line whose white space is single blanks."""
    return line.count(" ") + 1 if line else 0


def split(text: str) -> list[str]:
    """Split a text into sentences, with white space collapsed to single blanks.

    Words are preserved in order: ``" ".join(split(text)).split() == text.split()``. A blank line ends a
    sentence; other line breaks do not. Time is linear in the length of the text.
    """
    if "\n" not in text:
        return split_line(collapse_whitespace(text))
    return [
        sentence
        for paragraph in _PARAGRAPH_BREAK.split(text)
        for sentence in split_line(collapse_whitespace(paragraph))
    ]


def spans(text: str) -> list[tuple[int, int]]:
    """Return the sentences of :func:`split` as character offsets (start, end) in the text."""
    if text and collapse_whitespace(text) is text:
        sentence_ends = find_sentence_ends(text)
        return list(zip([0, *[end + 1 for end in sentence_ends]], [*sentence_ends, len(text)], strict=True))
    word_spans = []
    words = re.finditer(r"\S+", text)
    for sentence in split(text):
        words_in_sentence = list(itertools.islice(words, sentence.count(" ") + 1))
        word_spans.append((words_in_sentence[0].start(), words_in_sentence[-1].end()))
    return word_spans


def split_line(text: str) -> list[str]:
    """Split a line whose white space is single blanks."""
    sentences = []
    start = 0
    for end in find_sentence_ends(text):
        sentences.append(text[start:end])
        start = end + 1
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def find_sentence_ends(text: str) -> list[int]:
    """Return the offsets of the blanks between the sentences of such a line."""
    sentence_ends = []
    start = 0
    pattern = BOUNDARY_CANDIDATE if "?" in text or "!" in text else _FULL_STOP
    for match in pattern.finditer(text):
        stop, after = match.span()
        class_before = CLASS_BEFORE_STOP[text[text.rfind(" ", start, stop) + 1 or start : stop]]
        if (class_before in CERTAIN_CLASSES and text[after] in CAPITALS) or IS_BOUNDARY[
            extract_context(text, start, stop, after)
        ]:
            sentence_ends.append(after - 1)
            start = after
    return sentence_ends
