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
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from bioshards.vocab.pretraining.objectives.document_rng import RandomSource
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import (
    NUM_PAIR_SPECIALS,
    DocumentEdges,
    ExampleRow,
    TokenRange,
    make_span,
)

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
    random, randint = rng.random, rng.randint
    edges: Sequence[int] = list(document_edges[document])  # an array would make its integers at each access
    sentences = len(edges) - 1
    num_documents = len(document_edges)
    is_bert = recipe.objective == "bert" and num_documents > 1
    should_pair_single_sentence = is_bert or (recipe.as_published and num_documents > 1)
    should_swap = recipe.objective == "albert"
    max_tokens = recipe.max_seq_length - NUM_PAIR_SPECIALS
    target_length = max_tokens
    if random() < recipe.short_seq_prob:
        target_length = randint(_MIN_TARGET_LENGTH, target_length)
    start = 0
    while start < sentences:
        start_a = edges[start]
        end = bisect_left(edges, start_a + target_length, start + 1, sentences)
        is_single_sentence = end - start == 1
        if is_single_sentence and not should_pair_single_sentence:
            yield _build_single_segment_row(document, edges, (start_a, edges[end]), max_tokens + 1, random)
            start = end
            continue
        middle = end if is_single_sentence else start + randint(1, end - start - 1)
        start_b = edges[middle]
        segment_a, segment_b = (start_a, start_b), (start_b, edges[end])
        next_document, next_edges, label = document, edges, IN_ORDER
        if is_single_sentence or (is_bert and random() < _RANDOM_NEXT_PROB):
            next_document = _draw_other_document(document, num_documents, randint)
            next_edges = document_edges[next_document]
            segment_b = _draw_segment(next_edges, target_length - (start_b - start_a), randint)
            label = NOT_IN_ORDER
            end = middle
        elif should_swap and random() < _SWAP_PROB:
            segment_a, segment_b = segment_b, segment_a
            label = NOT_IN_ORDER
        truncated_a, truncated_b = _truncate_pair(segment_a, segment_b, max_tokens, random)
        size_a, size_b = truncated_a[1] - truncated_a[0], truncated_b[1] - truncated_b[0]
        lost_tokens = segment_a[1] - segment_a[0] - size_a
        other_document_tokens = 0
        if next_document == document:
            lost_tokens += segment_b[1] - segment_b[0] - size_b
        else:
            other_document_tokens = size_b
        spans = (
            make_span(document, 1, edges, truncated_a),
            make_span(next_document, 2 + size_a, next_edges, truncated_b),
        )
        yield ExampleRow([truncated_a], [truncated_b], spans, label, lost_tokens, other_document_tokens)
        start = end


def _build_single_segment_row(
    document: int, edges: Sequence[int], sentence: TokenRange, max_tokens: int, random: Callable[[], float]
) -> ExampleRow:
    """Return the row of a sentence without a second segment."""
    # here, so that --help waits for no pyarrow
    from bioshards.corpus.shards.pretraining_schema import NO_LABEL

    start, end = sentence
    truncated, _ = _truncate_pair(sentence, (end, end), max_tokens, random)
    lost_tokens = end - start - (truncated[1] - truncated[0])
    return ExampleRow([truncated], [], (make_span(document, 1, edges, truncated),), NO_LABEL, lost_tokens)


def _draw_other_document(document: int, num_documents: int, randint: Callable[[int, int], int]) -> int:
    """Return a random document other than this one."""
    for _ in range(_MAX_DRAWS):
        other = randint(0, num_documents - 1)
        if other != document:
            return other
    return (document + 1) % num_documents


def _draw_segment(edges: Sequence[int], size: int, randint: Callable[[int, int], int]) -> TokenRange:
    """Return sentences from a random one on, until they reach the size or the document ends."""
    last = len(edges) - 1
    start = randint(0, last - 1)
    start_token = edges[start]
    return start_token, edges[bisect_left(edges, start_token + size, start + 1, last)]


def _truncate_pair(
    segment_a: TokenRange, segment_b: TokenRange, max_tokens: int, random: Callable[[], float]
) -> tuple[TokenRange, TokenRange]:
    """Remove tokens from a random end of the longer segment, B if both are equally long, until both fit."""
    (start_a, end_a), (start_b, end_b) = segment_a, segment_b
    size_a, size_b = end_a - start_a, end_b - start_b
    if size_a + size_b <= max_tokens:
        return segment_a, segment_b
    are_from_front = [random() < 0.5 for _ in range(size_a + size_b - max_tokens)]
    # the longer one alone until both are equally long, then B and A in turns
    num_alone = abs(size_a - size_b)
    from_a, from_b = are_from_front[num_alone + 1 :: 2], are_from_front[num_alone::2]
    if size_a > size_b:
        from_a += are_from_front[:num_alone]
    else:
        from_b += are_from_front[:num_alone]
    start_a += sum(from_a)
    start_b += sum(from_b)
    return (start_a, start_a + size_a - len(from_a)), (start_b, start_b + size_b - len(from_b))
