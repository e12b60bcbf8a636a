"""Plain packing: documents one after another, a [SEP] between them, cut where a row is full.

There is no pair and no padding but in the last row, and no token is lost: what language models are trained on
that have no objective beside the masked tokens (RoBERTa's FULL-SENTENCES, Liu et al. 2019, cut at sentences;
here rows are full).  ``spans`` keep the documents' bounds, for attention that stays within a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from .recipes import Recipe
from .rows import SEP, Pool, Range, Row, Span, span

_BOTH_ENDS: Final = 2
"""[CLS] and the last [SEP]."""
_SEPARATED: Final = 2
"""The least that another document takes of a row: its [SEP] and a token."""


def rows(order: Iterable[int], pool: Pool, recipe: Recipe) -> Iterator[Row]:
    """The rows of documents, none of them without tokens, in this order; all but the last one are full.

    A row that has room for one token more than a document ends with is left with it: a [SEP] would fill it.
    """
    room = recipe.length - _BOTH_ENDS
    ranges: list[Range] = []
    spans: list[Span] = []
    used = 0
    for document in order:
        edges = pool[document]
        at, end = edges[0], edges[-1]
        while at < end:
            if used and room - used < _SEPARATED:
                yield Row(ranges, [], tuple(spans))
                ranges, spans, used = [], [], 0
            if used:
                ranges.append(SEP)
                used += 1
            taken = (at, min(end, at + room - used))
            spans.append(span(document, 1 + used, edges, taken))
            ranges.append(taken)
            used += taken[1] - at
            at = taken[1]
    if ranges:
        yield Row(ranges, [], tuple(spans))
