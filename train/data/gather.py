"""Copy rows out of mapped shards and concatenate them.

Every row is validated here, because the bytes of a shard may have changed before or after it was opened.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.train.data.mapped_shard import REBUILD_HINT, TrainingDataError
from bioshards.train.data.pretraining_dataset import PretrainingDataset


class FlatRows(NamedTuple):
    """R concatenated rows of T tokens in total.

    Attributes:
        ids: uint16[T] or uint32[T]; read-only.
        offsets: int64[R + 1], start of each row, and T.
        segment_b_starts: int64[R], position of segment B in its row; 0 for none.
        labels: int64[R], label of next-sentence prediction or sentence order; -100 for none.
        row_ids: int64[R], row numbers in the set.
        epochs: int64[R], epoch of each row.
    """

    ids: NDArray[np.uint16] | NDArray[np.uint32]
    offsets: NDArray[np.int64]
    segment_b_starts: NDArray[np.int64]
    labels: NDArray[np.int64]
    row_ids: NDArray[np.int64]
    epochs: NDArray[np.int64]


def gather_rows(
    dataset: PretrainingDataset, epochs: NDArray[np.int64], row_ids: NDArray[np.int64]
) -> FlatRows:
    """Copy rows in the given order.

    Args:
        epochs: int64[R], copied to the result.
        row_ids: int64[R], from 0 to below ``dataset.rows``.

    Raises:
        TrainingDataError: a row is damaged; the message names its shard and its number there.
    """
    block_index = dataset.block_index
    blocks = np.searchsorted(dataset.block_ends, row_ids, side="right")
    row_in_block = row_ids - dataset.block_ends[blocks] + dataset.block_sizes[blocks]
    row_shards = [dataset.shards[number] for number in block_index.shard[blocks].tolist()]
    indices = (block_index.offsets[blocks] + row_in_block).tolist()
    starts = np.array(
        [shard.offsets[index] for shard, index in zip(row_shards, indices, strict=True)], np.int64
    )
    ends = np.array(
        [shard.offsets[index + 1] for shard, index in zip(row_shards, indices, strict=True)], np.int64
    )
    indices = (block_index.segment_b_starts[blocks] + row_in_block).tolist()
    segment_b_starts = np.array(
        [shard.segment_b_starts[index] for shard, index in zip(row_shards, indices, strict=True)], np.int64
    )
    labels = np.full(len(row_ids), NO_LABEL, np.int64)
    if dataset.labelled:
        indices = (block_index.labels[blocks] + row_in_block).tolist()
        labels[:] = [shard.labels[index] for shard, index in zip(row_shards, indices, strict=True)]
    lengths = ends - starts
    is_valid = (
        (starts >= 0)
        & (lengths > 0)
        & (lengths <= dataset.max_seq_length)
        & (ends <= block_index.tokens[blocks])
    )
    if not is_valid.all():
        _raise_damaged(dataset, row_ids, ~is_valid, f"its length is not 1 to {dataset.max_seq_length} tokens")
    if not (segment_b_starts < lengths).all():
        _raise_damaged(dataset, row_ids, segment_b_starts >= lengths, "segment B starts after its end")
    is_known = (labels == NO_LABEL) | (labels == 0) | (labels == 1)
    if not is_known.all():
        _raise_damaged(dataset, row_ids, ~is_known, "its label is not 0, 1 or -100")
    id_starts = block_index.ids[blocks] + starts
    slices = zip(row_shards, id_starts.tolist(), (id_starts + lengths).tolist(), strict=True)
    joined = b"".join([shard.ids[start:end] for shard, start, end in slices])
    ids: NDArray[Any] = np.frombuffer(joined, np.uint16 if dataset.vocabulary_size <= 1 << 16 else np.uint32)
    offsets = np.zeros(len(row_ids) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    if len(ids) and ids.max() >= dataset.vocabulary_size:
        index = int(np.argmax(ids >= dataset.vocabulary_size))
        is_bad = np.arange(len(row_ids)) == np.searchsorted(offsets, index, side="right") - 1
        _raise_damaged(
            dataset,
            row_ids,
            is_bad,
            f"its token {ids[index]} exceeds the vocabulary of {dataset.vocabulary_size:,}",
        )
    return FlatRows(ids, offsets, segment_b_starts, labels, row_ids, epochs)


def _raise_damaged(
    dataset: PretrainingDataset, row_ids: NDArray[np.int64], is_bad: NDArray[np.bool_], reason: str
) -> NoReturn:
    """Raise an error that names the first bad row by its shard and its number there."""
    row_id = row_ids[np.argmax(is_bad)]
    shard_of_block = dataset.block_index.shard
    block = int(np.searchsorted(dataset.block_ends, row_id, side="right"))
    first_row_id = int(dataset.block_sizes[shard_of_block < shard_of_block[block]].sum())
    path = dataset.shards[int(shard_of_block[block])].path
    raise TrainingDataError(f"{path} is damaged at row {row_id - first_row_id:,}: {reason}. {REBUILD_HINT}.")
