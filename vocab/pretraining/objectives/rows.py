"""What a builder of examples says of a row: which tokens are in it, and where they come from.

Builders never touch token ids.  A document is to them the ``edges`` of its sentences: the positions, among
the tokens of many documents, where each sentence begins, and where the last one ends.  No sentence is without
tokens.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol


class DocumentEdges(Protocol):
    """The edges of each of several documents."""

    def __len__(self) -> int: ...

    def __getitem__(self, document: int) -> Sequence[int]: ...


TokenRange = tuple[int, int]
"""Tokens, from a position to before another."""

CLS_RANGE: Final[TokenRange] = (0, 1)
SEP_RANGE: Final[TokenRange] = (1, 2)
"""The first two tokens of all, before any document's, are these."""
NUM_PAIR_SPECIALS: Final = 3
"""Special tokens of a row with two segments."""


class RowSpan(NamedTuple):
    """Where a part of a row comes from; the columns of ``corpus.pretraining.SPAN``."""

    document: int
    start: int
    first_sentence: int
    end_sentence: int


class ExampleRow(NamedTuple):
    """An example.

    Attributes:
        first: the tokens of segment A; ``second``: those of segment B, none in a row of one segment.
        label: as ``corpus.pretraining.schema`` has it.
        lost: tokens of the document that were to be in this row, and are in none.
        borrowed: tokens in it that are another document's.
    """

    segment_a: list[TokenRange]
    segment_b: list[TokenRange]
    spans: tuple[RowSpan, ...]
    label: int = 0
    lost_tokens: int = 0
    other_document_tokens: int = 0


def make_span(document: int, start: int, edges: Sequence[int], token_range: TokenRange) -> RowSpan:
    """Which sentences of the document these tokens are of.

    Args:
        start: where in ``input_ids`` the tokens begin.
        edges: of the document.
    """
    return RowSpan(
        document, start, bisect_right(edges, token_range[0]) - 1, bisect_left(edges, token_range[1])
    )


def count_tokens(ranges: Sequence[TokenRange]) -> int:
    """How many tokens these are."""
    return sum(stop - start for start, stop in ranges)
