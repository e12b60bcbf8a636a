"""Rows as builders describe them: token ranges, their origin and a label.

Builders never handle token ids.  They see the ``edges`` of a document's sentences: the positions, among the
tokens of many documents, at which each sentence starts, and the end of the last one.  No sentence is empty.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class DocumentEdges(Protocol):
    """Sentence edges of several documents."""

    def __len__(self) -> int: ...

    def __getitem__(self, document: int) -> Sequence[int]: ...


TokenRange = tuple[int, int]
"""Start and end position of tokens."""

CLS_RANGE: Final[TokenRange] = (0, 1)
SEP_RANGE: Final[TokenRange] = (1, 2)
"""[CLS] and [SEP] are the first two tokens, before those of any document."""
NUM_PAIR_SPECIALS: Final = 3
"""Number of special tokens of a row with two segments."""


class RowSpan(NamedTuple):
    """Origin of a part of a row; the fields of ``pretraining_schema.SPAN_TYPE``."""

    document: int
    start: int
    first_sentence: int
    end_sentence: int


class ExampleRow(NamedTuple):
    """A row.

    Attributes:
        segment_a: token ranges of segment A.
        segment_b: token ranges of segment B; empty in a row of one segment.
        spans: origins of the text, in the order of the tokens.
        label: as in ``pretraining_schema.make_schema``.
        lost_tokens: tokens of the document that belonged to this row and are in none.
        other_document_tokens: tokens of another document.
    """

    segment_a: list[TokenRange]
    segment_b: list[TokenRange]
    spans: tuple[RowSpan, ...]
    label: int = 0
    lost_tokens: int = 0
    other_document_tokens: int = 0


def make_span(document: int, start: int, edges: Sequence[int], token_range: TokenRange) -> RowSpan:
    """Return the span of these tokens.

    Args:
        start: position of the tokens in ``input_ids``.
        edges: sentence edges of the document.
    """
    first_sentence = bisect_right(edges, token_range[0]) - 1
    end_sentence = bisect_left(edges, token_range[1], first_sentence)
    # RowSpan(...), in half the instructions
    return tuple.__new__(RowSpan, (document, start, first_sentence, end_sentence))


def count_tokens(ranges: Sequence[TokenRange]) -> int:
    """Return the number of tokens in ranges."""
    return sum(stop - start for start, stop in ranges)
