"""A document beside its source: what is in both, what was cut and why, and what only the text has.

The words of the source and of the text are aligned (difflib).  The reason of a cut is the element that held
the words, or that none of the named ones held them: cleaning, or another form of the same word.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Final, NamedTuple

from lxml import etree

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats.in_text_marks import CITATION_XREF_TYPES
from bioshards.corpus.pubmed.elements import parse_xml

KEPT: Final = "kept"
ADDED: Final = "added"
MOVED: Final = "moved"
_OTHER: Final = "cleaning"
_TEXT_ELEMENTS: Final = frozenset(
    (
        *("ArticleTitle", "Abstract", "OtherAbstract", "title-group", "abstract", "trans-abstract"),
        *("body", "back", "floats-group", "fn", "sub-article", "response"),
    )
)
"""Elements of a record whose words are compared. The others are metadata."""
_REASONS: Final = {
    "CopyrightInformation": "notice",
    "OtherAbstract": "other abstract",
    "trans-abstract": "other abstract",
    "ack": "acknowledgements",
    "disp-formula": "formula",
    "inline-formula": "formula",
    "fig": "figure",
    "fn": "footnote",
    "label": "label",
    "math": "formula",
    "media": "supplement",
    "permissions": "notice",
    "ref-list": "references",
    "response": "sub-article",
    "sub-article": "sub-article",
    "supplementary-material": "supplement",
    "table": "table",
    "title": "heading",
    "xref": "cross-reference",
}
_WHOLE: Final = frozenset(("references", "table"))
"""Reasons of an element that those of the elements within do not replace."""
_INLINE: Final = frozenset(
    (
        *("b", "bold", "i", "italic", "monospace", "sc", "sub", "sup", "u", "underline"),
        *("ext-link", "named-content", "styled-content", "xref"),
    )
)
"""Elements that do not end a word."""
_WORD = re.compile(r"(\s*)(\w+|[^\w\s])")
_MAX_WORDS: Final = 30_000
"""Words that are compared of a source: its first ones."""
_MIN_MOVED: Final = 5
"""Words of a passage that is in the text, but in another place than in the source."""
_PASSES: Final = 3
"""Searches for such passages: each finds those that are in the same order in both."""
_SHOWN_ENDS: Final = 30
"""Words that are shown of a long passage, from its beginning and from its end."""


class _Word(NamedTuple):
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Passage:
    """Words in a row of one kind.

    Attributes:
        kind: :data:`KEPT`, :data:`ADDED`, or the reason why the words were cut.
        text: the words; the middle of many is replaced by its number.
        words: number of words, marks included.
    """

    kind: str
    text: str
    words: int


@dataclass(frozen=True, slots=True)
class SourceComparison:
    """A document beside its source.

    Attributes:
        id: the document's id.
        passages: the source and the text in one, in order.
        note: why there are no passages, or that the source is longer; '' for neither.
    """

    id: str
    passages: Sequence[Passage] = ()
    note: str = ""

    def count_cuts(self) -> list[tuple[str, int]]:
        """Return the reasons with the number of words that each cut, the most first."""
        counts = Counter[str]()
        for passage in self.passages:
            counts[passage.kind] += passage.words
        return [item for item in counts.most_common() if item[0] not in (KEPT, ADDED)]


def compare_with_source(document: Document, raw: bytes) -> SourceComparison:
    """Compare a document with the record that it was made of.

    Args:
        raw: the record, XML or a text.
    """
    source = raw.decode("utf-8", "replace")
    try:
        segments = [(source, _OTHER)] if document.source == "text" else _iter_text(parse_xml(source))
        words = [word for text, reason in _join(segments) for word in _split(text, reason)]
    except BadRecordError as error:
        return SourceComparison(document.id, note=f"its source cannot be compared: {error.detail}")
    words[:1] = [word._replace(text=word.text.strip()) for word in words[:1]]
    note = f"its source is longer: the first {_MAX_WORDS:,} words are here" if len(words) > _MAX_WORDS else ""
    text_words = list(_split(" ".join(document.sentences), ADDED))
    aligned = list(_align(words[:_MAX_WORDS], text_words[:_MAX_WORDS]))
    for _ in range(_PASSES):
        aligned = _find_moved(aligned)
    while note and aligned and aligned[-1].reason == ADDED:  # of the part of the source that is not here
        aligned.pop()
    return SourceComparison(document.id, tuple(_group(aligned)), note)


def _iter_text(element: etree._Element, reason: str = "") -> Iterator[tuple[str, str]]:
    """Yield the text in an element with its reasons; only of elements with text until one is entered."""
    if not isinstance(element.tag, str):  # a processing instruction, or an entity
        return
    name = etree.QName(element).localname
    if not reason:
        if name in _TEXT_ELEMENTS:
            reason = _OTHER
        else:
            for child in element:
                yield from _iter_text(child)
            return
    if reason not in _WHOLE:
        is_citation = name == "xref" and element.get("ref-type") in CITATION_XREF_TYPES
        reason = "citation" if is_citation else _REASONS.get(name, reason)
    gap = "" if name in _INLINE else " "
    if label := element.get("Label"):
        yield f" {label}: ", "label"
    yield gap + (element.text or ""), reason
    for child in element:
        yield from _iter_text(child, reason)
        yield child.tail or "", reason
    yield gap, reason


def _join(segments: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Join the texts that follow each other with the same reason, as H and 2 and O are one word."""
    for reason, group in groupby(segments, key=lambda segment: segment[1]):
        yield "".join(text for text, _ in group), reason


def _split(text: str, reason: str) -> Iterator[_Word]:
    """Yield the words and the marks of a text, each with a blank before it if the text has white space."""
    for space, word in _WORD.findall(text):
        yield _Word(f" {word}" if space else word, reason)


def _align(source: Sequence[_Word], text: Sequence[_Word]) -> Iterator[_Word]:
    """Yield the words of both in one order; those of both have the reason :data:`KEPT`."""
    matcher = SequenceMatcher(a=[_key(word) for word in source], b=[_key(word) for word in text])
    for operation, start, end, text_start, text_end in matcher.get_opcodes():
        if operation == "equal":
            for before, after in zip(source[start:end], text[text_start:text_end], strict=True):
                yield _Word(f" {after.text}" if before.text[0] == " " != after.text[0] else after.text, KEPT)
        else:
            yield from _explain_marks(source[start:end])
            yield from text[text_start:text_end]


def _explain_marks(words: Sequence[_Word]) -> Sequence[_Word]:
    """Give the marks around what was cut its reason, as a citation's brackets, if no other word was cut."""
    reasons = [word.reason for word in words if word.reason != _OTHER]
    if not reasons or any(word.reason == _OTHER and word.text.strip().isalnum() for word in words):
        return words
    return [_Word(word.text, reasons[0]) if word.reason == _OTHER else word for word in words]


def _find_moved(words: Sequence[_Word]) -> list[_Word]:
    """Return aligned words, those in long passages that stand in another place of the text as moved."""
    cut = [index for index, word in enumerate(words) if word.reason not in (KEPT, ADDED)]
    added = [index for index, word in enumerate(words) if word.reason == ADDED]
    moved = list(words)
    matcher = SequenceMatcher(
        a=[_key(words[index]) for index in cut], b=[_key(words[index]) for index in added]
    )
    for start, added_start, length in matcher.get_matching_blocks():
        for offset in range(length) if length >= _MIN_MOVED else ():
            index, added_index = cut[start + offset], added[added_start + offset]
            moved[index] = _Word(words[index].text, MOVED)
            moved[added_index] = _Word(words[added_index].text, KEPT)
    return moved


def _key(word: _Word) -> str:
    return word.text.strip().casefold()


def _group(words: Sequence[_Word]) -> Iterator[Passage]:
    for kind, group in groupby(words, key=lambda word: word.reason):
        texts = [word.text for word in group]
        shown = texts
        if hidden := max(0, len(texts) - 3 * _SHOWN_ENDS):
            hidden += _SHOWN_ENDS
            shown = [*texts[:_SHOWN_ENDS], f" … ({hidden:,} words) …", *texts[-_SHOWN_ENDS:]]
        yield Passage(kind, "".join(shown), len(texts))
