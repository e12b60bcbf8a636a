"""BERT's and ALBERT's examples: pairs of segments, to be told to be in order or not.

The rules are those of ``create_instances_from_document`` in create_pretraining_data.py of
google-research/bert (commit eedf571) and google-research/albert (b772393), chances drawn in their order.  A
document's text is used once a pass, in order; the second segment of a random pair is another document's, and
what was to stand there is put back.

What differs: a random pair's second segment is never of the same document (there it is, after ten draws),
and ALBERT's pair of a chunk that is a single sentence, of which nothing can be swapped, is a row of one
segment without a label.  There it is a sentence and a random document's text, labelled as if they were
swapped (albert's issue 234); so it is here with ``as_published``.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from bioshards.corpus.pretraining import NO_LABEL

from .randomness import Source
from .recipes import Recipe
from .rows import OVERHEAD, Pool, Range, Row, Span, span

_SHORTEST: Final = 2
_TRIES: Final = 10
_RANDOM_NEXT: Final = 0.5
_SWAPPED: Final = 0.5
IN_ORDER: Final = 0
NOT_IN_ORDER: Final = 1


def rows(document: int, pool: Pool, random: Source, recipe: Recipe) -> Iterator[Row]:
    """The rows of a document.

    Args:
        document: which one of the pool.
        pool: the edges of all documents of which second segments may come; no sentence is without tokens.
    """
    edges = pool[document]
    sentences = len(edges) - 1
    target = recipe.length - OVERHEAD
    if random.random() < recipe.short:
        target = random.randint(_SHORTEST, target)
    begin = 0
    while begin < sentences:
        end = min(bisect_left(edges, edges[begin] + target, begin + 1), sentences)
        alone = end - begin == 1
        middle = begin + (1 if alone else random.randint(1, end - begin - 1))
        first, second = (edges[begin], edges[middle]), (edges[middle], edges[end])
        other, others, label = document, edges, IN_ORDER
        if _random_next(alone, pool, random, recipe):
            other = _other(document, len(pool), random)
            others = pool[other]
            second = _from_anywhere(others, target - _size(first), random)
            label = NOT_IN_ORDER
            end = middle
        elif alone:
            label = NO_LABEL
        elif recipe.objective == "albert" and random.random() < _SWAPPED:
            first, second = second, first
            label = NOT_IN_ORDER
        room = recipe.length - (OVERHEAD - 1 if label == NO_LABEL else OVERHEAD)
        a, b = _fitting(first, second, room, random)
        spans: tuple[Span, ...] = (span(document, 1, edges, a),)
        if label != NO_LABEL:
            spans += (span(other, 2 + _size(a), others, b),)
        lost = _size(first) - _size(a)
        borrowed = 0
        if other == document:
            lost += _size(second) - _size(b)
        else:
            borrowed = _size(b)
        yield Row([a], [] if label == NO_LABEL else [b], spans, label, lost, borrowed)
        begin = end


def _random_next(alone: bool, pool: Pool, random: Source, recipe: Recipe) -> bool:
    """Is the second segment to be another document's?  ``alone``: there is no sentence for it in this one."""
    if len(pool) == 1:
        return False
    if recipe.objective == "bert":
        return alone or random.random() < _RANDOM_NEXT
    return alone and recipe.as_published


def _other(document: int, documents: int, random: Source) -> int:
    """A random document that is not this one."""
    for _ in range(_TRIES):
        other = random.randint(0, documents - 1)
        if other != document:
            return other
    return (document + 1) % documents


def _from_anywhere(edges: Sequence[int], size: int, random: Source) -> Range:
    """Sentences from a random one on, until they have this size or the document ends."""
    begin = random.randint(0, len(edges) - 2)
    end = bisect_left(edges, edges[begin] + size, begin + 1)
    return edges[begin], edges[min(end, len(edges) - 1)]


def _size(one: Range) -> int:
    return one[1] - one[0]


def _fitting(first: Range, second: Range, room: int, random: Source) -> tuple[Range, Range]:
    """The two without as many tokens as are too many, the longer losing one at either end each time."""
    (a, b), (c, d) = first, second
    while b - a + d - c > room:
        front = random.random() < 0.5
        if b - a > d - c:
            a, b = (a + 1, b) if front else (a, b - 1)
        else:
            c, d = (c + 1, d) if front else (c, d - 1)
    return (a, b), (c, d)
