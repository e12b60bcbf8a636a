"""Plain packing: documents joined by [SEP] and cut where a row is full.

No token is lost, and only the last row is padded.  This is the format for masked language modelling without a
pair objective: RoBERTa's FULL-SENTENCES (Liu et al. 2019), which cuts at sentences; here rows are full.
``spans`` hold the bounds of documents, for attention within a document.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import (
    SEP_RANGE,
    DocumentEdges,
    ExampleRow,
    RowSpan,
    TokenRange,
    make_span,
)

_NUM_END_TOKENS: Final = 2
"""[CLS] and the last [SEP]."""
_MIN_FREE_TOKENS: Final = 2
"""Minimum room for another document: its [SEP] and one token."""


def build_rows(
    order: Iterable[int], document_edges: DocumentEdges, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of documents in this order; all rows but the last are full.

    A row with room for one more token after the end of a document stays one token short, because a [SEP]
    would fill it.

    Args:
        order: numbers of the documents, each with a token or more.
        document_edges: sentence edges of all documents.
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
