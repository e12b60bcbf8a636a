"""Split biomedical English into sentences.

A full stop, question mark or exclamation mark before a blank is a boundary candidate. After a plain word and
before a capital it is a boundary. All other candidates are classified by the words around them
(boundary_model.py). Stops of other scripts (。！？।؟ and their like) are boundaries, also without a blank.
"""

from __future__ import annotations

import functools
import itertools
import re
from typing import Final

from bioshards.corpus.sentences.boundary_model import (
    CAPITALS,
    CERTAIN_CLASSES,
    CLASS_BEFORE_STOP,
    decide,
)

# An alternative that begins with a character or looks ahead is passed over soon, as in numbers: 0.05
_CLOSING_MARKS: Final = r"""
    (?: \ (?=[^\[,;])                                           # most of them, in two thirds of the time
      | (?=["'”’)\]*†‡\ \[])
        ["'”’)\]*†‡]* (?: \ ?\[\d[\d,\ –-]*\] (?=\ [A-Z]) )? \ (?![,;])   # "..." (...). [12] Then
      | \d (?<=[a-z)\]]\.\d)
        \d{0,2} (?:[,–-]\d{1,3})* (?=\ [A-Z]) \                  # superscripts: was shown.12,13 Then
    )"""
BOUNDARY_CANDIDATE: Final = re.compile(rf"[.!?] {_CLOSING_MARKS}", re.VERBOSE)
"""Boundary candidate: a mark, closing quotes and brackets, and citations after it."""
_FULL_STOP: Final = re.compile(rf"\. {_CLOSING_MARKS}", re.VERBOSE)
"""The same for full stops only: twice as fast, as the regular expression starts with one character."""

_OTHER_STOPS: Final = frozenset("。！？．｡।॥؟۔።։။")
"""Full stops, question and exclamation marks of Chinese, Japanese, Devanagari, Arabic, Urdu, Ethiopic,
Armenian and Burmese."""
_OTHER_BOUNDARY: Final = re.compile(
    r"(?:[。！？｡।॥؟۔።։။]|．(?![0-9０-９]))++[.」』）〕】〉》”’\"')\]]*+ ?"  # not in ３．５
)

_MAX_LABEL_LENGTH: Final = 32
FIGURE_LABEL: Final = re.compile(
    r"(?:Suppl(?:ementa(?:ry|l))?\.? |Supporting |Extended Data )?"
    r"(?:Figs?\.|Figures?|Tabs?\.|Tables?|Schemes?|Charts?|Box|Movies?|Videos?|Plates?) "
    r"S?\d{1,3}[A-Za-z]?\Z"
)
"""Label of a figure or table, which stays with its caption, as list numbers stay with what they number."""
_LABEL: Final = re.compile(
    r"[IVX]{1,4}|(?:Appendix|Panel|Part|Section) [A-Z]|(?:Step )?\d{1,3}[’']?"
    r"|\d{1,2}(?:[a-h]|(?:\.\d{1,2}){1,3})|[A-Z]\d{1,2}|\([A-Za-z]\)"
)
"""Number or letter that stays with what it numbers: a Roman number, Panel A, 2, Step 2, 29.2, 1b, Q1, (a)."""
_SERIES_NUMBER: Final = re.compile(
    r"(?:(?<!lass|rade|evel|hase|tage)(?<!ype)(?<!vidence): |--|—)[IVX]{1,4}\Z"
)
"""Number of a part in the title of a series: "Of gulls: II. Their nests"."""
_MAX_SERIES_NUMBER: Final = 8
_CITATION_AFTER_STOP: Final = re.compile(
    r"\((?:e\.g\.,? |see |reviewed in )?[A-Z][^()]{2,200}\b(?:19|20)\d\d[a-z]?\)\.?(?= [A-Z“\"]|\Z)"
)
"""A citation of the sentence before its full stop: "Gulls nest. (Ode et al., 2031) Terns"."""
_WORD_CHARACTER: Final = re.compile(r"[^\W_]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_VERB: Final = re.compile(
    r" (?:is|are|was|were|be|been|has|have|had|can|may|will|would|should|do|does|did|not|that|which|we)[ .,)]"
    r"| (?:represent|indicate|show|correspond|denote|mean|refer|include|contain)s? ",
    re.IGNORECASE,
)
"""What sentences have, and names, addresses and values in brackets lack."""
_LAST_BRACKET: Final = re.compile(r"\((?!ABSTRACT )[^()]{1,60}[^.!?()]\)|\[[^\[\]]{1,60}[^.!?\[\]]\]")
"""Bracket without a full stop at the end of a paragraph: We saw gulls. (Interview 2)"""
_LAST_PANEL: Final = re.compile(r"\([A-Za-z](?:[-–,&][A-Za-z])?\)\.")
"""Panel at the end of a paragraph: of Genus minor L. (d-f)."""
_BRACKET_LOOKBACK: Final = 200
"""Characters before a mark that are searched for an open bracket."""
_MAX_BRACKET_REST: Final = 120
"""Characters after a mark that are searched for the bracket's end."""
PARAGRAPH_BREAK: Final = re.compile(r"\n\s*\n")
"""Blank lines, between paragraphs of plain text."""


_SPACES: Final = frozenset(filter(str.isspace, map(chr, range(0x3001)))) - {" "}
"""All white space but the blank."""
_VISIBLE_ASCII: Final = bytes(range(0x20, 0x7F))
_MAX_CACHED: Final = 10_000
"""Characters of a text whose unusual ones are cached: longer texts would fill the memory."""


def collapse_whitespace(text: str) -> str:
    """Replace each run of white space by one blank and strip the ends."""
    if text.isascii():
        has_line_break = "\n" in text or "\t" in text or "\r" in text or "\v" in text or "\f" in text
        if has_line_break or "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text:
            return " ".join(text.split())
    else:
        unusual = extract_unusual(text)
        if not unusual.isprintable():
            # Replacing the few kinds of spaces takes a fifth of the time of splitting at every blank.
            for space in _SPACES.intersection(unusual):
                text = text.replace(space, " ")
    return " ".join(text.split()) if "  " in text else text.strip()


def extract_unusual(text: str) -> str:
    """Return the characters of a text that are neither blanks nor visible ASCII.

    The last results are cached, as white space, cleaning and the splitter ask for those of each paragraph.
    """
    return _extract_cached(text) if len(text) <= _MAX_CACHED else _extract_uncached(text)


def _extract_uncached(text: str) -> str:
    unusual = text.encode(errors="surrogatepass").translate(None, _VISIBLE_ASCII)
    return unusual.decode(errors="surrogatepass")


_extract_cached = functools.lru_cache(maxsize=1 << 8)(_extract_uncached)


def count_line_words(line: str) -> int:
    """Return the number of words of a line whose white space is single blanks."""
    return line.count(" ") + 1 if line else 0


def split(text: str) -> list[str]:
    """Split a text into sentences, with white space collapsed to single blanks.

    Words are preserved in order: ``" ".join(split(text)).split() == text.split()``, but that a sentence may
    end in a word of a script that has no blanks. A blank line ends a sentence; other line breaks do not. Time
    is linear in the length of the text.
    """
    if "\n" not in text:
        return split_line(collapse_whitespace(text))
    return [
        sentence
        for paragraph in PARAGRAPH_BREAK.split(text)
        for sentence in split_line(collapse_whitespace(paragraph))
    ]


def spans(text: str) -> list[tuple[int, int]]:
    """Return the sentences of :func:`split` as character offsets (start, end) in the text."""
    if _has_other_stop(text):
        return _find_spans(text, split(text))
    if text and collapse_whitespace(text) is text:
        starts = itertools.accumulate((len(sentence) + 1 for sentence in split_line(text)), initial=0)
        return [(start, end - 1) for start, end in itertools.pairwise(starts)]
    word_spans = []
    words = re.finditer(r"\S+", text)
    for sentence in split(text):
        words_in_sentence = list(itertools.islice(words, sentence.count(" ") + 1))
        word_spans.append((words_in_sentence[0].start(), words_in_sentence[-1].end()))
    return word_spans


def _find_spans(text: str, sentences: list[str]) -> list[tuple[int, int]]:
    """Return the offsets of sentences, which have the visible characters of the text in order."""
    offsets = [offset for offset, character in enumerate(text) if not character.isspace()]
    lengths = [len(sentence) - sentence.count(" ") for sentence in sentences]
    starts = itertools.accumulate(lengths, initial=0)
    return [
        (offsets[start], offsets[start + length - 1] + 1)
        for start, length in zip(starts, lengths, strict=False)
    ]


def _has_other_stop(text: str) -> bool:
    """Return True if a text has a stop of another script."""
    return not text.isascii() and not _OTHER_STOPS.isdisjoint(extract_unusual(text))


def split_line(text: str) -> list[str]:
    """Split a line whose white space is single blanks."""
    if not _has_other_stop(text):
        return _split_at_stops(text)
    sentences: list[str] = []
    start = 0
    for boundary in _OTHER_BOUNDARY.finditer(text):
        sentences += _split_at_stops(text[start : boundary.end()].rstrip(" "))
        start = boundary.end()
    return sentences + _split_at_stops(text[start:])


def _split_at_stops(text: str) -> list[str]:
    """Split a line at full stops, question marks and exclamation marks before blanks."""
    sentences: list[str] = []
    start = 0
    pattern = BOUNDARY_CANDIDATE if "?" in text or "!" in text else _FULL_STOP
    classes, certain_classes, capitals = CLASS_BEFORE_STOP, CERTAIN_CLASSES, CAPITALS
    closing = text.find(")")  # the next one; -1 if there is none
    for match in pattern.finditer(text):
        stop, after = match.span()
        if stop < start:
            continue
        class_before = classes[text[text.rfind(" ", start, stop) + 1 or start : stop]]
        following = text[after]
        is_plain = class_before in certain_classes
        citation = _CITATION_AFTER_STOP.match(text, after) if following == "(" and is_plain else None
        if citation or (is_plain and following in capitals) or decide(text, start, stop, after):
            if stop < start + _MAX_LABEL_LENGTH and _is_no_sentence(text, start, stop):
                continue
            # The class "word" has small letters only.
            if (
                class_before != "word"
                and text[stop - 1] in "IVX"
                and _SERIES_NUMBER.search(text, max(start, stop - _MAX_SERIES_NUMBER), stop)
            ):
                continue
            if 0 <= closing < after:
                closing = text.find(")", after)
            if (
                after <= closing < after + _MAX_BRACKET_REST
                and text.find("(", after, closing) < 0
                and _is_in_bracket(text, start, after, closing)
            ):
                continue
            if citation:
                after = citation.end() + 1
            sentences.append(text[start : after - 1])
            start = after
    rest = text[start:]
    if rest and sentences and _is_end_of_sentence(rest):
        sentences[-1] = f"{sentences[-1]} {rest}"
    elif rest:
        sentences.append(rest)
    return sentences


def _is_no_sentence(text: str, start: int, stop: int) -> bool:
    """Return True if only marks, the label of a figure or of a list are between the offsets."""
    return (
        not _WORD_CHARACTER.search(text, start, stop)
        or FIGURE_LABEL.match(text, start, stop) is not None
        or _LABEL.fullmatch(text, start, stop) is not None
    )


def _is_in_bracket(text: str, start: int, after: int, closing: int) -> bool:
    """Return True if a mark is in a round bracket within a sentence, whose rest has no verb.

    Args:
        text: a line.
        start: offset of the sentence's start.
        after: offset of the word after the mark.
        closing: offset of the closing bracket, before which none opens after the mark.
    """
    near = max(start + 1, after - _BRACKET_LOOKBACK)
    is_nested = text.count("(", near, after) > text.count(")", near, after)
    if not (is_nested or text.rfind("(", near, after) > text.rfind(")", near, after)):
        return False
    return not _VERB.search(f" {text[after : closing + 1]}")


def _is_end_of_sentence(rest: str) -> bool:
    """Return True if a paragraph's last words belong to the sentence before: no letter, or only a bracket."""
    if len(rest) < _MAX_LABEL_LENGTH and not _LETTER.search(rest):
        return True
    if rest[0] not in "([":
        return False
    return _LAST_PANEL.fullmatch(rest) is not None or (
        _LAST_BRACKET.fullmatch(rest) is not None and not _VERB.search(rest)
    )
