"""Plain packing: documents one after another, a [SEP] between them, cut where a row is full.

There is no pair and no padding but in the last row, and no token is lost: what language models are trained on
that have no objective beside the masked tokens (RoBERTa's FULL-SENTENCES, Liu et al. 2019, cut at sentences;
here rows are full).  ``spans`` keep the documents' bounds, for attention that stays within a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from .rows import SEP_RANGE, DocumentEdges, ExampleRow, RowSpan, TokenRange, make_span

if TYPE_CHECKING:
    from .example_recipes import ExampleRecipe

_NUM_END_TOKENS: Final = 2
"""[CLS] and the last [SEP]."""
_MIN_FREE_TOKENS: Final = 2
"""The least that another document takes of a row: its [SEP] and a token."""


def build_rows(
    order: Iterable[int], document_edges: DocumentEdges, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """The rows of documents, none of them without tokens, in this order; all but the last one are full.

    A row that has room for one token more than a document ends with is left with it: a [SEP] would fill it.
    """
    max_tokens = recipe.max_seq_length - _NUM_END_TOKENS
    ranges: list[TokenRange] = []
    spans: list[RowSpan] = []
    num_tokens = 0
    for document in order:
        edges = document_edges[document]
        start, end = edges[0], edges[-1]
        while start < end:
            if num_tokens and max_tokens - num_tokens < _MIN_FREE_TOKENS:
                yield ExampleRow(ranges, [], tuple(spans))
                ranges, spans, num_tokens = [], [], 0
            if num_tokens:
                ranges.append(SEP_RANGE)
                num_tokens += 1
            token_range = (start, min(end, start + max_tokens - num_tokens))
            spans.append(make_span(document, 1 + num_tokens, edges, token_range))
            ranges.append(token_range)
            num_tokens += token_range[1] - start
            start = token_range[1]
    if ranges:
        yield ExampleRow(ranges, [], tuple(spans))
