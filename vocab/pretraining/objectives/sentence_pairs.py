"""Rows of BERT and ALBERT: pairs of segments, for next-sentence and sentence-order prediction.

The rules and the order of random draws are those of ``create_instances_from_document`` in
create_pretraining_data.py of google-research/bert (commit eedf571) and google-research/albert (b772393).  The
text of a document is used once per pass, in order.  The second segment of a random pair is of another
document, and the sentences that it replaces are used for the next row.

Two differences: the second segment of a random pair is never of the same document (the reference allows it
after ten draws).  And a chunk of one sentence, of which nothing can be swapped, becomes an ALBERT row of one
segment without a label.  The reference pairs it with the text of a random document, labelled as swapped
(albert's issue 234); ``as_published`` reproduces this.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from .document_rng import RandomSource
from .rows import NUM_PAIR_SPECIALS, DocumentEdges, ExampleRow, RowSpan, TokenRange, make_span

if TYPE_CHECKING:
    from .example_recipes import ExampleRecipe

_MIN_TARGET_LENGTH: Final = 2
_MAX_DRAWS: Final = 10
_RANDOM_NEXT_PROB: Final = 0.5
_SWAP_PROB: Final = 0.5
IN_ORDER: Final = 0
NOT_IN_ORDER: Final = 1


def build_rows(
    document: int, document_edges: DocumentEdges, rng: RandomSource, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of a document.

    Args:
        document: number of the document in its block.
        document_edges: sentence edges of all documents from which second segments may be drawn; no sentence
            is empty.
    """
    from bioshards.corpus.shards.pretraining_schema import (
        NO_LABEL,  # here, so that --help waits for no pyarrow
    )

    edges = document_edges[document]
    sentences = len(edges) - 1
    target_length = recipe.max_seq_length - NUM_PAIR_SPECIALS
    if rng.random() < recipe.short_seq_prob:
        target_length = rng.randint(_MIN_TARGET_LENGTH, target_length)
    start = 0
    while start < sentences:
        end = min(bisect_left(edges, edges[start] + target_length, start + 1), sentences)
        is_single_sentence = end - start == 1
        middle = start + (1 if is_single_sentence else rng.randint(1, end - start - 1))
        segment_a, segment_b = (edges[start], edges[middle]), (edges[middle], edges[end])
        next_document, next_edges, label = document, edges, IN_ORDER
        if _should_draw_random_next(is_single_sentence, document_edges, rng, recipe):
            next_document = _draw_other_document(document, len(document_edges), rng)
            next_edges = document_edges[next_document]
            segment_b = _draw_segment(next_edges, target_length - _range_size(segment_a), rng)
            label = NOT_IN_ORDER
            end = middle
        elif is_single_sentence:
            label = NO_LABEL
        elif recipe.objective == "albert" and rng.random() < _SWAP_PROB:
            segment_a, segment_b = segment_b, segment_a
            label = NOT_IN_ORDER
        max_tokens = recipe.max_seq_length - (
            NUM_PAIR_SPECIALS - 1 if label == NO_LABEL else NUM_PAIR_SPECIALS
        )
        truncated_a, truncated_b = _truncate_pair(segment_a, segment_b, max_tokens, rng)
        spans: tuple[RowSpan, ...] = (make_span(document, 1, edges, truncated_a),)
        if label != NO_LABEL:
            spans += (make_span(next_document, 2 + _range_size(truncated_a), next_edges, truncated_b),)
        lost_tokens = _range_size(segment_a) - _range_size(truncated_a)
        other_document_tokens = 0
        if next_document == document:
            lost_tokens += _range_size(segment_b) - _range_size(truncated_b)
        else:
            other_document_tokens = _range_size(truncated_b)
        yield ExampleRow(
            [truncated_a],
            [] if label == NO_LABEL else [truncated_b],
            spans,
            label,
            lost_tokens,
            other_document_tokens,
        )
        start = end


def _should_draw_random_next(
    is_single_sentence: bool, document_edges: DocumentEdges, rng: RandomSource, recipe: ExampleRecipe
) -> bool:
    """Return True if the second segment is to be of another document.

    Args:
        is_single_sentence: True if the document has no sentence left for it.
    """
    if len(document_edges) == 1:
        return False
    if recipe.objective == "bert":
        return is_single_sentence or rng.random() < _RANDOM_NEXT_PROB
    return is_single_sentence and recipe.as_published


def _draw_other_document(document: int, num_documents: int, rng: RandomSource) -> int:
    """Return a random document other than this one."""
    for _ in range(_MAX_DRAWS):
        other = rng.randint(0, num_documents - 1)
        if other != document:
            return other
    return (document + 1) % num_documents


def _draw_segment(edges: Sequence[int], size: int, rng: RandomSource) -> TokenRange:
    """Return sentences from a random one on, until they reach the size or the document ends."""
    start = rng.randint(0, len(edges) - 2)
    end = bisect_left(edges, edges[start] + size, start + 1)
    return edges[start], edges[min(end, len(edges) - 1)]


def _range_size(token_range: TokenRange) -> int:
    return token_range[1] - token_range[0]


def _truncate_pair(
    segment_a: TokenRange, segment_b: TokenRange, max_tokens: int, rng: RandomSource
) -> tuple[TokenRange, TokenRange]:
    """Remove tokens from a random end of the longer segment until both fit."""
    (start_a, end_a), (start_b, end_b) = segment_a, segment_b
    while end_a - start_a + end_b - start_b > max_tokens:
        should_cut_front = rng.random() < 0.5
        if end_a - start_a > end_b - start_b:
            start_a, end_a = (start_a + 1, end_a) if should_cut_front else (start_a, end_a - 1)
        else:
            start_b, end_b = (start_b + 1, end_b) if should_cut_front else (start_b, end_b - 1)
    return (start_a, end_a), (start_b, end_b)
