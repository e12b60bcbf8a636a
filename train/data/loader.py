"""Data loader: the micro-batches of a step, a pure function of pretraining set, recipe, step and rank.

Step s has the positions [s * batch_size, (s + 1) * batch_size) of the sampler's endless sequence of epochs,
and the masks of a row are a function of (seed, epoch, row).  Resuming needs only the step number, and
processes need no communication.

Rows are packed end to end.  Sizes of batches are rounded up to few shapes, because libraries cache by shape:
with exact sizes oneDNN's cache grew by 1 MB a step to 3 GB.  A compiled model needs constant shapes: batches
are then filled up to a number of tokens that suffices for all but a few in 100,000; those few get the size of
padded rows, so two shapes occur.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.train.batch import TOKEN_MULTIPLE, Batch, BatchCounts
from bioshards.train.data.masking import MaskedRows, MaskingConfig, make_row_keys, mask_rows
from bioshards.train.data.piece_table import PieceTable
from bioshards.train.data.pretraining_dataset import FlatRows, PretrainingDataset
from bioshards.train.data.sampler import RowSampler
from bioshards.train.recipe import TrainRecipe

MAX_MICRO_BATCH_TOKENS: Final = {"cpu": 1 << 13, "cuda": 1 << 16}
"""Default maximum of tokens in a micro-batch.  The activations of a base model then take about 20 GB of a
GPU, and the MLM logits fit into the memory of a CPU."""
PREFETCH_STEPS: Final = 3
"""Steps loaded ahead."""
_MASKED_MULTIPLE: Final = 64
"""Masked positions of a batch are a multiple of this."""
_STANDARD_DEVIATIONS: Final = 4
_VALIDATION_EPOCH: Final = -1
"""Epoch number of validation, so that its masks are constant and differ from those of training."""
T = TypeVar("T")


def choose_micro_batch_size(
    batch_size: int, world_size: int, max_seq_length: int, device: str, requested: int | None
) -> int:
    """Return the maximum number of rows in a forward pass.

    Args:
        device: type of the device, a key of :data:`MAX_MICRO_BATCH_TOKENS`.
        requested: the size to use; None: near-equal parts of at most :data:`MAX_MICRO_BATCH_TOKENS` tokens.

    Raises:
        InvalidValueError: the batch size is not a multiple of the number of processes.
    """
    rows_per_process, remainder = divmod(batch_size, world_size)
    if remainder:
        raise InvalidValueError(
            f"--batch-size {batch_size:,} is not a multiple of the {world_size} processes"
        )
    if requested is None:
        max_rows = max(1, MAX_MICRO_BATCH_TOKENS[device] // max_seq_length)
        requested = math.ceil(rows_per_process / math.ceil(rows_per_process / max_rows))
    if requested < 1:
        raise InvalidValueError(f"--micro-batch-size {requested} is below 1")
    return min(requested, rows_per_process)


class StepLoader:
    """Micro-batches of any step of one process.

    Args:
        micro_batch_size: maximum rows in a micro-batch.
        first_step: step at which training on this set starts: 0, or the last step of a continued run.  Epochs
            are offset by it, so that a continued run on the same set has another order and other masks.
    """

    def __init__(
        self,
        dataset: PretrainingDataset,
        piece_table: PieceTable,
        recipe: TrainRecipe,
        micro_batch_size: int,
        rank: int = 0,
        world_size: int = 1,
        first_step: int = 0,
    ) -> None:
        self._dataset, self._piece_table, self._recipe = dataset, piece_table, recipe
        self._sampler = RowSampler(dataset.block_sizes, recipe.seed)
        self.micro_batch_size, self._rows_per_process = micro_batch_size, recipe.batch_size // world_size
        self._rank, self._first_step = rank, first_step
        self._num_tokens = self._num_masked = 0  # constant sizes of batches; 0: the actual ones, rounded up
        if recipe.compile:
            masking = MaskingConfig.of_recipe(recipe, max(recipe.mask_rate, recipe.final_mask_rate))
            budgets = masking.compute_budgets(np.array([dataset.max_seq_length]), dataset.max_seq_length)
            self._num_masked = micro_batch_size * int(budgets[0])
            self._num_tokens = compute_token_capacity(dataset, micro_batch_size)

    def load_step(self, step: int) -> list[tuple[Batch, BatchCounts]]:
        """Load the micro-batches of a step, in the order of their rows."""
        num_rows, size = self._rows_per_process, self.micro_batch_size
        position = (
            self._first_step * self._dataset.rows
            + (step - self._first_step) * self._recipe.batch_size
            + self._rank * num_rows
        )
        mask_rate = self._recipe.mask_rate_at(step)
        starts = range(0, num_rows, size)
        parts = [self._sampler.get_rows(position + start, min(size, num_rows - start)) for start in starts]
        return [self._make_batch(epochs, row_ids, mask_rate) for epochs, row_ids in parts]

    def load_sequential(self, start: int, count: int) -> tuple[Batch, BatchCounts]:
        """Load consecutive rows with constant masks, for validation."""
        row_ids = np.arange(start, start + count)
        return self._make_batch(np.full(count, _VALIDATION_EPOCH), row_ids, self._recipe.mask_rate)

    def get_epoch(self, step: int) -> float:
        """Return the number of epochs before a step."""
        return (step - self._first_step) * self._recipe.batch_size / self._dataset.rows

    def _make_batch(
        self, epochs: NDArray[np.int64], row_ids: NDArray[np.int64], mask_rate: float
    ) -> tuple[Batch, BatchCounts]:
        rows, length = self._dataset.gather_rows(row_ids), self._dataset.max_seq_length
        row_keys = make_row_keys(self._recipe.seed, epochs, row_ids)
        masking = MaskingConfig.of_recipe(self._recipe, mask_rate)
        masked = mask_rows(rows.ids, rows.offsets, row_keys, self._piece_table, masking, length)
        pad_id = self._dataset.special_ids["[PAD]"]
        batch = collate_rows(rows, masked, pad_id, length, self._num_tokens, self._num_masked)
        counts = BatchCounts(
            rows=len(row_ids),
            tokens=len(rows.ids),
            masked=len(masked.positions),
            labelled=int((rows.labels != NO_LABEL).sum()),
        )
        if torch.cuda.is_available():  # page-locked memory, for asynchronous copies
            batch = Batch._make(
                field.pin_memory() if isinstance(field, torch.Tensor) else field for field in batch
            )
        return batch, counts


def compute_token_capacity(dataset: PretrainingDataset, num_rows: int) -> int:
    """Return a number of tokens that almost all batches of ``num_rows`` rows fit into.

    It is the mean plus four standard deviations of a random batch (exceeded by one in 30,000), rounded up to
    a multiple of 128, and at most that of padded rows.  The deviation is that of sampled record batches.
    """
    lengths = np.concatenate([np.diff(np.asarray(block.offsets)) for block in dataset.sample_blocks()])
    mean_tokens = num_rows * dataset.tokens / dataset.rows
    deviation = math.sqrt(num_rows) * float(lengths.astype(np.int64).std())
    capacity = math.ceil(mean_tokens + _STANDARD_DEVIATIONS * deviation)
    return min(num_rows * dataset.max_seq_length, _round_up(capacity, TOKEN_MULTIPLE))


def collate_rows(
    rows: FlatRows,
    masked: MaskedRows,
    pad_id: int,
    max_seq_length: int,
    constant_tokens: int = 0,
    constant_masked: int = 0,
) -> Batch:
    """Build a batch from rows and their masks.

    Args:
        pad_id: id of [PAD].
        max_seq_length: maximum row length in tokens.
        constant_tokens: number of tokens of the batch; 0: the actual number, rounded up.
        constant_masked: number of masked positions, the maximum; 0: the actual number, rounded up.
    """
    lengths = np.diff(rows.offsets)
    num_tokens, num_rows = len(rows.ids), len(lengths)
    size, max_padding = _round_up(num_tokens, TOKEN_MULTIPLE), TOKEN_MULTIPLE
    if constant_tokens:
        size = max_padding = constant_tokens if num_tokens <= constant_tokens else num_rows * max_seq_length
    # Padding is in segments of its own; the length of cu_seqlens depends only on the number of tokens.
    cu_seqlens = np.full(num_rows + math.ceil(max_padding / max_seq_length) + 1, size, np.int64)
    cu_seqlens[: num_rows + 1] = rows.offsets
    padding_starts = np.arange(num_tokens, size, max_seq_length)
    cu_seqlens[num_rows : num_rows + len(padding_starts)] = padding_starts
    position_ids = np.arange(size)
    position_ids -= np.repeat(cu_seqlens[:-1], np.diff(cu_seqlens))
    is_token = np.zeros(size, np.bool_)
    is_token[:num_tokens] = True
    # Segments A and B of each row in turn, then padding, which counts as A.
    segment_lengths = np.zeros(2 * num_rows + 1, np.int64)
    segment_lengths[:-1:2] = np.where(rows.segment_b_starts > 0, rows.segment_b_starts, lengths)
    segment_lengths[1::2] = lengths - segment_lengths[:-1:2]
    segment_lengths[-1] = size - num_tokens
    return Batch(
        ids=_pad_to_size(masked.ids, size, pad_id),
        token_type_ids=torch.from_numpy(np.repeat(np.arange(2 * num_rows + 1) % 2, segment_lengths)),
        position_ids=torch.from_numpy(position_ids),
        is_token=torch.from_numpy(is_token),
        masked_positions=_pad_to_size(masked.positions, constant_masked, 0),
        targets=_pad_to_size(masked.targets, constant_masked, NO_LABEL),
        noise=_pad_to_size(masked.noise, constant_masked, 0),
        row_starts=torch.from_numpy(rows.offsets[:-1].copy()),
        labels=torch.from_numpy(rows.labels),
        cu_seqlens=torch.from_numpy(cu_seqlens.astype(np.int32)),
        max_seqlen=max_seq_length,
    )


def prefetch(load: Callable[[int], T], steps: Iterable[int]) -> Generator[T]:
    """Yield the results of a function of the step, computed ahead in a thread; close it to end the thread.

    One thread suffices: numpy releases the GIL while it copies, and a batch takes a fraction of a step.
    """
    executor, futures = ThreadPoolExecutor(1, "prefetch"), deque[Future[T]]()
    try:
        for step in steps:
            futures.append(executor.submit(load, step))
            if len(futures) > PREFETCH_STEPS:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()
    finally:
        executor.shutdown(cancel_futures=True)


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _pad_to_size(values: NDArray[np.generic], size: int, fill_value: int) -> torch.Tensor:
    """Pad values to a size; size 0: to the next multiple of ``_MASKED_MULTIPLE``."""
    size = size or _round_up(len(values), _MASKED_MULTIPLE)
    if size == len(values):
        return torch.from_numpy(values)
    padded = np.full(size, fill_value, values.dtype)
    padded[: len(values)] = values
    return torch.from_numpy(padded)
