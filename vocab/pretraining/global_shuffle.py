"""Global shuffle of the rows of all shard groups, in bounded memory.

Each group spills its rows by the upper bits of their keys: one file per block, sorted, with a record batch
for each bucket.  A bucket of all groups, sorted by key, is a shard, so that the shards in order hold all rows
in the order of their random keys.  Between the two steps only names and numbers are passed.  A bucket takes
about three times the memory of a shard.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.manifest import PretrainingConfig
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.pretraining_schema import BATCH_ROWS
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.pretraining.row_plan import KeyArray, RowPlan
from bioshards.vocab.pretraining.token_block import Int64Array

TOKENS_PER_BYTE: Final = 0.22
"""Tokens per byte of document shards; abstracts and articles have 0.19 to 0.21.  It sets the number of
shards, which has no effect on their content."""
_KEY_FIELD: Final = pa.field("key", pa.uint64(), nullable=False)


def count_buckets(config: PretrainingConfig, size: int) -> dict[str, int]:
    """Return the number of shards of each split, by the size of the inputs in bytes."""
    bytes_per_token = 2 if config.vocabulary.size <= 1 << 16 else 4
    train = size * TOKENS_PER_BYTE * bytes_per_token * config.dupe_factor / (config.max_shard_mb * 1e6)
    validation = train / config.dupe_factor * config.validation_fraction
    return {"train": max(1, math.ceil(train)), "validation": max(1, math.ceil(validation))}


def spill_rows(
    storage: Storage,
    path: str,
    row_plan: RowPlan,
    order: Int64Array,
    keys: KeyArray,
    schema: pa.Schema,
    num_buckets: int,
) -> None:
    """Write the rows of a plan, sorted by key, as one record batch per bucket."""
    upper_bits = keys >> np.uint64(32)
    ends = np.searchsorted((upper_bits * np.uint64(num_buckets)) >> np.uint64(32), np.arange(num_buckets + 1))
    schema_with_key = schema.append(_KEY_FIELD)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        storage.write(path) as file,
        pa.ipc.new_file(pa.PythonFile(file, "w"), schema_with_key, options=options) as writer,
    ):
        for start, stop in zip(ends.tolist(), ends[1:].tolist(), strict=False):
            rows = _concat_batches(list(row_plan.iter_batches(order[start:stop], schema)), schema)
            writer.write_batch(
                pa.record_batch([*rows.columns, pa.array(keys[start:stop])], schema=schema_with_key)
            )


class ShuffleBucket(NamedTuple):
    """Rows of one bucket of all groups.

    Attributes:
        rows: record batch of the rows, unsorted.
        order: row numbers in the order of their keys.
        keys: sorted keys.
    """

    rows: pa.RecordBatch
    order: pa.Array
    keys: KeyArray


def read_bucket(storage: Storage, paths: Sequence[str], bucket_index: int) -> ShuffleBucket:
    """Read all rows of a bucket."""
    parts = list(prefetch_map(storage, lambda path: _read_part(storage, path, bucket_index), paths))
    rows = _concat_batches(parts, parts[0].schema)
    order = pc.sort_indices(rows["key"])
    return ShuffleBucket(rows.select(rows.schema.names[:-1]), order, rows["key"].take(order).to_numpy())


def _read_part(storage: Storage, path: str, bucket_index: int) -> pa.RecordBatch:
    """Read a bucket of one file and close it: there may be more files than can be open."""
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(bucket_index)


def _concat_batches(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Return one record batch; the list is emptied to hold at most two copies of the rows in memory."""
    columns = pa.Table.from_batches(parts, schema).columns
    parts.clear()
    combined = []
    while columns:
        combined.append(columns.pop(0).combine_chunks())
    return pa.record_batch(combined, schema=schema)


def iter_batches(bucket: ShuffleBucket, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the sorted rows of a bucket as record batches of a shard."""
    for start in range(0, len(bucket.rows), BATCH_ROWS):
        # Few at a time: taking lists, Arrow makes a number of eight bytes for each token.
        rows = bucket.rows.take(bucket.order.slice(start, BATCH_ROWS))
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)
