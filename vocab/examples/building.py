"""A block of documents to a plan of their rows: each document with the chances of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import electra, pairs, plain
from .block import Block
from .plan import Plan
from .randomness import Chances, key
from .recipes import Recipe
from .rows import Row


def plan(block: Block, recipe: Recipe, seed: int, passes: int) -> Plan:
    """All rows of all passes over a block."""
    planned = Plan(block)
    names = block.documents().to_pylist()
    for number in range(passes):
        keys = [key(seed, number, name) for name in names]
        if recipe.objective == "plain":
            order = sorted(range(len(keys)), key=keys.__getitem__)
            _add(planned, plain.rows(order, block, recipe), keys)
            continue
        chances = Chances()
        for document, its_key in enumerate(keys):
            _add(planned, _rows(document, block, chances.begin(its_key), recipe), keys)
    return planned


def _rows(document: int, block: Block, chances: Chances, recipe: Recipe) -> Iterator[Row]:
    if recipe.objective == "electra":
        return electra.rows(document, block[document], chances, recipe)
    return pairs.rows(document, block, chances, recipe)


def _add(planned: Plan, rows: Iterable[Row], keys: list[int]) -> None:
    """Add rows, those that begin with the same document one after another, numbered within it."""
    document, number = -1, 0
    for row in rows:
        number = number + 1 if row.spans[0].document == document else 0
        document = row.spans[0].document
        planned.add(row, keys[document], number)
