"""Data loader: the micro-batches of a step, a pure function of pretraining set, recipe, step and rank.

Step s has the positions [s * batch_size, (s + 1) * batch_size) of the sampler's endless sequence of epochs,
and the masks of a row are a function of (seed, epoch, row).  Resuming needs only the step number, and
processes need no communication.
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
from bioshards.train.data import collate, counter_rng, masking
from bioshards.train.data.collate import BatchShape
from bioshards.train.data.gather import gather_rows
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.prefetcher import pin_memory
from bioshards.train.data.pretraining_dataset import PretrainingDataset
from bioshards.train.data.sampler import RowSampler

MAX_MICRO_BATCH_TOKENS: Final = {"cpu": 1 << 13, "cuda": 1 << 16}
"""Default maximum of tokens in a micro-batch.  The activations of a base model then take about 20 GB of a
GPU, and the MLM logits fit into the memory of a CPU."""
Int64Array = NDArray[np.int64]
_VALIDATION_EPOCH: Final = -1
"""Epoch number of validation, so that its masks are constant and differ from those of training."""


@dataclass(frozen=True, slots=True)
class BatchPartition:
    """Partition of a batch into processes and micro-batches.

    Attributes:
        rows_per_process: rows of a step in each process.
        micro_batch_size: rows in a forward pass; the last micro-batch of a step may have fewer.
    """

    rows_per_process: int
    micro_batch_size: int

    @property
    def accumulation_steps(self) -> int:
        """Number of micro-batches of a step in each process."""
        return math.ceil(self.rows_per_process / self.micro_batch_size)


def partition_batch(
    batch_size: int, world_size: int, max_seq_length: int, device: str, micro_batch_size: int | None
) -> BatchPartition:
    """Partition a batch.

    Args:
        device: type of the device, a key of :data:`MAX_MICRO_BATCH_TOKENS`.
        micro_batch_size: maximum rows in a forward pass; None: near-equal parts of at most
            :data:`MAX_MICRO_BATCH_TOKENS` tokens.

    Raises:
        InvalidValueError: the batch size is not a multiple of the number of processes.
    """
    rows_per_process, remainder = divmod(batch_size, world_size)
    if remainder:
        raise InvalidValueError(
            f"--batch-size {batch_size:,} is not a multiple of the {world_size} processes"
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
    """Micro-batches of any step of one process.

    Args:
        first_step: step at which training on this set starts: 0, or the last step of a continued run.  Epochs
            are offset by it, so that a continued run on the same set has another order and other masks.
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
        self._dataset, self._piece_table = dataset, piece_table
        self._recipe, self._partition = recipe, partition
        self._sampler = RowSampler(dataset.block_sizes, recipe.seed)
        self._rank, self._first_step = rank, first_step
        self._batch_shape = _choose_batch_shape(dataset, recipe, partition.micro_batch_size)

    @property
    def micro_batch_size(self) -> int:
        """Maximum rows in a micro-batch."""
        return self._partition.micro_batch_size

    def with_micro_batch_size(self, micro_batch_size: int) -> StepLoader:
        """Return a loader of the same rows in micro-batches of at most so many rows."""
        partition = dataclasses.replace(
            self._partition, micro_batch_size=min(micro_batch_size, self._partition.micro_batch_size)
        )
        return StepLoader(
            self._dataset,
            self._piece_table,
            self._recipe,
            partition,
            rank=self._rank,
            first_step=self._first_step,
        )

    def load_step(self, step: int) -> list[tuple[Batch, BatchCounts]]:
        """Load the micro-batches of a step, in the order of their rows."""
        rows_per_process = self._partition.rows_per_process
        micro_batch_size = self._partition.micro_batch_size
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
        """Load consecutive rows with constant masks, for validation."""
        row_ids = np.arange(start, start + count)
        return self._make_batch(np.full(count, _VALIDATION_EPOCH), row_ids, self._recipe.mask_rate)

    def get_epoch(self, step: int) -> float:
        """Return the number of epochs before a step."""
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
    """Choose the batch layout; with ``--compile`` all batches have constant shapes."""
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
