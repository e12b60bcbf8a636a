"""Rows of ELECTRA: two segments of one document, sometimes short or of one segment.

The rules and the order of random draws are those of ``ExampleBuilder`` in build_pretraining_dataset.py of
google-research/electra (commit 8a46635), with one difference.  There the target length of a row is drawn when
the previous row is complete, even if that is of another document; here each document draws its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from bioshards.vocab.pretraining.objectives.document_rng import RandomSource
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import (
    NUM_PAIR_SPECIALS,
    ExampleRow,
    TokenRange,
    count_tokens,
    make_span,
)

MIN_TARGET_LENGTH: Final = 5
"""Lowest target length of a short row."""
_TO_SEGMENT_A_PROB: Final = 0.5
"""Probability that a sentence which crosses the middle of the row goes to segment A."""
_UNBOUNDED: Final = 100_000


def build_rows(
    document: int, edges: Sequence[int], rng: RandomSource, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    """Yield the rows of a document.

    Sentences are collected until they reach the target length.  Tokens that do not fit into the row are
    lost, or start the next row with ``recipe.keep_overflow``.

    Args:
        document: number of the document in its block.
        edges: sentence edges of the document.
    """
    target_length = _draw_target_length(rng, recipe)
    pending: list[TokenRange] = []
    num_pending_tokens = 0
    for sentence in pairwise(edges):
        pending.append(sentence)
        num_pending_tokens += sentence[1] - sentence[0]
        while num_pending_tokens >= target_length:
            row, pending = _build_row(document, edges, pending, target_length, rng, recipe)
            num_pending_tokens = count_tokens(pending)
            yield row
            target_length = _draw_target_length(rng, recipe)
    while num_pending_tokens:
        row, pending = _build_row(document, edges, pending, target_length, rng, recipe)
        num_pending_tokens = count_tokens(pending)
        yield row
        target_length = _draw_target_length(rng, recipe)


def _draw_target_length(rng: RandomSource, recipe: ExampleRecipe) -> int:
    return (
        rng.randint(MIN_TARGET_LENGTH, recipe.max_seq_length)
        if rng.random() < recipe.short_seq_prob
        else recipe.max_seq_length
    )


def _build_row(
    document: int,
    edges: Sequence[int],
    pending: list[TokenRange],
    target_length: int,
    rng: RandomSource,
    recipe: ExampleRecipe,
) -> tuple[ExampleRow, list[TokenRange]]:
    """Return a row of the pending sentences, and the sentences that remain pending."""
    segment_a_target = (
        _UNBOUNDED if rng.random() < recipe.single_segment_prob else (target_length - NUM_PAIR_SPECIALS) // 2
    )
    segment_a: list[TokenRange] = []
    segment_b: list[TokenRange] = []
    num_tokens_a = num_tokens_b = 0
    for start, stop in pending:
        size = stop - start
        if (
            not num_tokens_a
            or num_tokens_a + size < segment_a_target
            or (not num_tokens_b and num_tokens_a < segment_a_target and rng.random() < _TO_SEGMENT_A_PROB)
        ):
            segment = segment_a
            num_tokens_a += size
        else:
            segment = segment_b
            num_tokens_b += size
        if segment and segment[-1][1] == start:  # the sentence follows the previous one
            segment[-1] = (segment[-1][0], stop)
        else:
            segment.append((start, stop))
    overflow: list[TokenRange] = []
    if num_tokens_a + num_tokens_b > recipe.max_seq_length - NUM_PAIR_SPECIALS:
        segment_a, overflow = _split_ranges(segment_a, recipe.max_seq_length - 2)
        segment_b, overflow_b = _split_ranges(
            segment_b, max(0, recipe.max_seq_length - NUM_PAIR_SPECIALS - count_tokens(segment_a))
        )
        overflow += overflow_b
    end = max(ranges[-1][1] for ranges in (segment_a, segment_b) if ranges)
    row_span = make_span(document, 1, edges, (segment_a[0][0], end))
    if recipe.keep_overflow:
        return ExampleRow(segment_a, segment_b, (row_span,)), overflow
    return ExampleRow(segment_a, segment_b, (row_span,), lost_tokens=count_tokens(overflow)), []


def _split_ranges(ranges: list[TokenRange], max_tokens: int) -> tuple[list[TokenRange], list[TokenRange]]:
    """Split ranges after ``max_tokens`` tokens."""
    taken: list[TokenRange] = []
    overflow: list[TokenRange] = []
    for start, stop in ranges:
        cut = min(stop, start + max_tokens)
        max_tokens -= cut - start
        if cut > start:
            taken.append((start, cut))
        if cut < stop:
            overflow.append((cut, stop))
    return taken, overflow
