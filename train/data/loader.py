"""What a process computes at a step: a pure function of the pretraining set, the recipe and the step.

The rows of step s are the places s * batch to (s + 1) * batch of an endless sequence of epochs (sampler.py),
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
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe

from . import collate, counter_rng, masking
from .collate import BatchShape
from .gather import gather_rows
from .piece_table import PieceTable
from .prefetcher import pin_memory
from .pretraining_dataset import PretrainingDataset
from .sampler import RowSampler

MAX_MICRO_BATCH_TOKENS: Final = {"cpu": 1 << 13, "cuda": 1 << 16}
"""Tokens a micro-batch at most, where nothing else is said: what keeps the activations of a base model within
some 20 GB on a GPU, and the scores of a vocabulary in a CPU's memory."""
Int64Array = NDArray[np.int64]
_VALIDATION_EPOCH: Final = -1
"""The epoch of validation: its masks are the same each time, and never those of training."""


@dataclass(frozen=True, slots=True)
class BatchPartition:
    """How a step's rows are dealt out: ``rows`` to each process, which computes ``micro`` of them at a time,
    and those that are left at last."""

    rows_per_process: int
    micro_batch_size: int

    @property
    def accumulation_steps(self) -> int:
        """Micro-batches of a process."""
        return math.ceil(self.rows_per_process / self.micro_batch_size)


def partition_batch(
    batch_size: int, world_size: int, max_seq_length: int, device: str, micro_batch_size: int | None
) -> BatchPartition:
    """Deal out a batch.

    Args:
        micro_batch_size: rows at a time, at most; None: as many as :data:`MOST_TOKENS` allows, in equal
            parts or nearly.

    Raises:
        ValueError: it cannot be dealt out so.
    """
    rows_per_process, remainder = divmod(batch_size, world_size)
    if remainder:
        raise InvalidValueError(
            f"--batch-size {batch_size:,} cannot be dealt out to {world_size} processes: give a multiple"
        )
    if micro_batch_size is None:
        num_micro_batches = math.ceil(
            rows_per_process / max(1, MAX_MICRO_BATCH_TOKENS[device] // max_seq_length)
        )
        micro_batch_size = math.ceil(rows_per_process / num_micro_batches)
    if micro_batch_size < 1:
        raise InvalidValueError(f"--micro-batch-size {micro_batch_size} is below 1")
    return BatchPartition(rows_per_process, min(micro_batch_size, rows_per_process))


class StepLoader:
    """The micro-batches of any step of one process.

    Args:
        first: the step at which this pretraining set begins: 0, or where a run that is continued had ended.
            Epochs are counted from there too, for the set may be the one that was trained on before, and its
            rows are to have another order and other masks.
    """

    def __init__(
        self,
        dataset: PretrainingDataset,
        piece_table: PieceTable,
        recipe: TrainRecipe,
        partition: BatchPartition,
        *,
        rank: int = 0,
        first_step: int = 0,
    ) -> None:
        self._dataset, self._piece_table, self._recipe, self._partition = (
            dataset,
            piece_table,
            recipe,
            partition,
        )
        self._sampler = RowSampler(dataset.block_sizes, recipe.seed)
        self._rank, self._first_step = rank, first_step
        self._batch_shape = _choose_batch_shape(dataset, recipe, partition.micro_batch_size)

    def load_step(self, step: int) -> list[tuple[Batch, BatchCounts]]:
        """The micro-batches of a step, in the order of their rows."""
        rows_per_process, micro_batch_size = (
            self._partition.rows_per_process,
            self._partition.micro_batch_size,
        )
        position = (
            self._first_step * self._dataset.rows
            + (step - self._first_step) * self._recipe.batch_size
            + self._rank * rows_per_process
        )
        mask_rate = self._recipe.mask_rate_at(step)
        return [
            self._make_batch(
                *self._sampler.get_rows(position + start, min(micro_batch_size, rows_per_process - start)),
                mask_rate,
            )
            for start in range(0, rows_per_process, micro_batch_size)
        ]

    def load_sequential(self, start: int, count: int) -> tuple[Batch, BatchCounts]:
        """Rows as they lie in the set, with masks that are the same each time: for validation."""
        row_ids = np.arange(start, start + count)
        return self._make_batch(np.full(count, _VALIDATION_EPOCH), row_ids, self._recipe.mask_rate)

    def get_epoch(self, step: int) -> float:
        """How often the set has been gone through before this step."""
        return (step - self._first_step) * self._recipe.batch_size / self._dataset.rows

    def _make_batch(
        self, epochs: Int64Array, row_ids: Int64Array, mask_rate: float
    ) -> tuple[Batch, BatchCounts]:
        flat_rows = gather_rows(self._dataset, epochs, row_ids)
        row_keys = counter_rng.make_row_keys(self._recipe.seed, epochs, row_ids)
        masking_config = dataclasses.replace(self._recipe.masking_config, rate=mask_rate)
        masked_rows = masking.mask_rows(
            flat_rows.ids,
            flat_rows.offsets,
            row_keys,
            self._piece_table,
            masking_config,
            self._dataset.max_seq_length,
        )
        batch = collate.collate_rows(
            flat_rows, masked_rows, self._dataset.special_ids["[PAD]"], self._batch_shape
        )
        return pin_memory(batch), collate.compute_counts(flat_rows, masked_rows)


def _choose_batch_shape(dataset: PretrainingDataset, recipe: TrainRecipe, num_rows: int) -> BatchShape:
    """How rows are laid out: as they come, or, for a compiler, so that all batches have the same shapes."""
    if not recipe.compile:
        return BatchShape(dataset.max_seq_length, recipe.pad_rows)
    masking_config = dataclasses.replace(
        recipe.masking_config, rate=max(recipe.mask_rate, recipe.final_mask_rate)
    )
    max_masked = int(
        masking_config.compute_budgets(np.array([dataset.max_seq_length]), dataset.max_seq_length)[0]
    )
    return BatchShape(
        dataset.max_seq_length,
        recipe.pad_rows,
        num_tokens=collate.compute_token_capacity(dataset, num_rows),
        num_masked=num_rows * max_masked,
    )
