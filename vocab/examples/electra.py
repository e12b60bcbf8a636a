"""ELECTRA's examples: two segments of one document, not always full, now and then short or of one segment.

The rules are those of ``ExampleBuilder`` in build_pretraining_dataset.py of google-research/electra (commit
8a46635), chances drawn in its order.  One thing differs: there a row's target length is drawn when the row
before it is done, be that another document's; here each document draws its own for its first row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from .randomness import Source
from .recipes import Recipe
from .rows import OVERHEAD, Range, Row, span, tokens

SHORTEST: Final = 5
"""The lowest target of a short row."""
_TO_FIRST: Final = 0.5
"""How often the sentence goes to segment A that would make it longer than half of the row."""
_NO_BOUND: Final = 100_000


def rows(document: int, edges: Sequence[int], random: Source, recipe: Recipe) -> Iterator[Row]:
    """The rows of a document.

    Sentences are gathered until they have the target's length; what does not fit into the row then is lost,
    or with ``recipe.keep_overflow`` is the beginning of what is gathered next.
    """
    target = _target(random, recipe)
    waiting: list[Range] = []
    size = 0
    for number in range(len(edges) - 1):
        start, stop = edges[number], edges[number + 1]
        waiting.append((start, stop))
        size += stop - start
        while size >= target:
            row, waiting = _row(document, edges, waiting, target, random, recipe)
            size = tokens(waiting)
            yield row
            target = _target(random, recipe)
    while size:
        row, waiting = _row(document, edges, waiting, target, random, recipe)
        size = tokens(waiting)
        yield row
        target = _target(random, recipe)


def _target(random: Source, recipe: Recipe) -> int:
    return random.randint(SHORTEST, recipe.length) if random.random() < recipe.short else recipe.length


def _row(
    document: int, edges: Sequence[int], waiting: list[Range], target: int, random: Source, recipe: Recipe
) -> tuple[Row, list[Range]]:
    """A row of the sentences that wait, and what waits from then on."""
    half = _NO_BOUND if random.random() < recipe.single else (target - OVERHEAD) // 2
    first: list[Range] = []
    second: list[Range] = []
    in_first = in_second = 0
    for start, stop in waiting:
        size = stop - start
        if (
            not in_first
            or in_first + size < half
            or (not in_second and in_first < half and random.random() < _TO_FIRST)
        ):
            _append(first, start, stop)
            in_first += size
        else:
            _append(second, start, stop)
            in_second += size
    over: list[Range] = []
    if in_first + in_second > recipe.length - OVERHEAD:
        first, over = _cut(first, recipe.length - 2)
        second, more = _cut(second, max(0, recipe.length - OVERHEAD - tokens(first)))
        over += more
    end = max(ranges[-1][1] for ranges in (first, second) if ranges)
    row_span = span(document, 1, edges, (first[0][0], end))
    if recipe.keep_overflow:
        return Row(first, second, (row_span,)), over
    return Row(first, second, (row_span,), lost=tokens(over)), []


def _append(ranges: list[Range], start: int, stop: int) -> None:
    """Add a sentence, as one range with the last where it follows it."""
    if ranges and ranges[-1][1] == start:
        ranges[-1] = (ranges[-1][0], stop)
    else:
        ranges.append((start, stop))


def _cut(ranges: list[Range], room: int) -> tuple[list[Range], list[Range]]:
    """The tokens that there is room for, and the others."""
    kept: list[Range] = []
    over: list[Range] = []
    for start, stop in ranges:
        middle = min(stop, start + room)
        room -= middle - start
        if middle > start:
            kept.append((start, middle))
        if middle < stop:
            over.append((middle, stop))
    return kept, over
