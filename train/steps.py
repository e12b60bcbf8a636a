"""What a process computes at a step: a pure function of the pretraining set, the recipe and the step.

The rows of step s are the places s * batch to (s + 1) * batch of an endless sequence of epochs (order.py),
and a row's masks follow from (seed, epoch, row) (masking.py).  So a run that is resumed needs no more than
the number of its step, and processes need not tell each other what they read.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError

from . import layout, masking, randomness
from .batch import Batch, Counts
from .gather import gather
from .layout import Layout
from .order import Order
from .pieces import Pieces
from .prefetch import pinned
from .recipes import Recipe
from .shards import Shards

MOST_TOKENS: Final = {"cpu": 1 << 13, "cuda": 1 << 16}
"""Tokens a micro-batch at most, where nothing else is said: what keeps the activations of a base model within
some 20 GB on a GPU, and the scores of a vocabulary in a CPU's memory."""
Numbers = NDArray[np.int64]
_NOT_TRAINED: Final = -1
"""The epoch of validation: its masks are the same each time, and never those of training."""


@dataclass(frozen=True, slots=True)
class Division:
    """How a step's rows are dealt out: ``rows`` to each process, which computes ``micro`` of them at a time,
    and those that are left at last."""

    rows: int
    micro: int

    @property
    def accumulate(self) -> int:
        """Micro-batches of a process."""
        return math.ceil(self.rows / self.micro)


def division(batch: int, world: int, length: int, device: str, micro: int | None) -> Division:
    """Deal out a batch.

    Args:
        micro: rows at a time, at most; None: as many as :data:`MOST_TOKENS` allows, in equal parts or nearly.

    Raises:
        ValueError: it cannot be dealt out so.
    """
    each, rest = divmod(batch, world)
    if rest:
        raise InvalidValueError(
            f"--batch {batch:,} cannot be dealt out to {world} processes: give a multiple"
        )
    if micro is None:
        parts = math.ceil(each / max(1, MOST_TOKENS[device] // length))
        micro = math.ceil(each / parts)
    if micro < 1:
        raise InvalidValueError(f"--micro-batch {micro} is below 1")
    return Division(each, min(micro, each))


class Steps:
    """The micro-batches of any step of one process.

    Args:
        first: the step at which this pretraining set begins: 0, or where a run that is continued had ended.
            Epochs are counted from there too, for the set may be the one that was trained on before, and its
            rows are to have another order and other masks.
    """

    def __init__(
        self,
        shards: Shards,
        pieces: Pieces,
        recipe: Recipe,
        division: Division,
        *,
        rank: int = 0,
        first: int = 0,
    ) -> None:
        self._shards, self._pieces, self._recipe, self._division = shards, pieces, recipe, division
        self._order = Order(shards.blocks, recipe.seed)
        self._rank, self._first = rank, first
        self._layout = _layout(shards, recipe, division.micro)

    def at(self, step: int) -> list[tuple[Batch, Counts]]:
        """The micro-batches of a step, in the order of their rows."""
        rows, micro = self._division.rows, self._division.micro
        place = (
            self._first * self._shards.rows + (step - self._first) * self._recipe.batch + self._rank * rows
        )
        rate = self._recipe.mask_rate_at(step)
        return [
            self._batch(*self._order.rows(place + begin, min(micro, rows - begin)), rate)
            for begin in range(0, rows, micro)
        ]

    def in_order(self, start: int, count: int) -> tuple[Batch, Counts]:
        """Rows as they lie in the set, with masks that are the same each time: for validation."""
        rows = np.arange(start, start + count)
        return self._batch(np.full(count, _NOT_TRAINED), rows, self._recipe.mask_rate)

    def epoch(self, step: int) -> float:
        """How often the set has been gone through before this step."""
        return (step - self._first) * self._recipe.batch / self._shards.rows

    def _batch(self, epochs: Numbers, rows: Numbers, rate: float) -> tuple[Batch, Counts]:
        found = gather(self._shards, epochs, rows)
        keys = randomness.key(self._recipe.seed, epochs, rows)
        how = dataclasses.replace(self._recipe.masking, rate=rate)
        masked = masking.mask(found.ids, found.offsets, keys, self._pieces, how, self._shards.length)
        made = layout.batch(found, masked, self._shards.special["[PAD]"], self._layout)
        return pinned(made), layout.counts(found, masked)


def _layout(shards: Shards, recipe: Recipe, rows: int) -> Layout:
    """How rows are laid out: as they come, or, for a compiler, so that all batches have the same shapes."""
    if not recipe.compile:
        return Layout(shards.length, recipe.padded)
    how = dataclasses.replace(recipe.masking, rate=max(recipe.mask_rate, recipe.mask_rate_end))
    most = int(how.budgets(np.array([shards.length]), shards.length)[0])
    return Layout(shards.length, recipe.padded, tokens=layout.capacity(shards, rows), masked=rows * most)
