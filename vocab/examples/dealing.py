"""A global shuffle: the rows of all portions in the order of their keys, though no memory holds them all.

Each portion's rows are dealt out by the upper bits of their keys: one file a shard's worth of them, sorted,
with a record batch for each bucket.  A bucket of all portions, sorted by the keys, is a shard; the buckets
in a row are all rows in the order of their keys, which is a random one.  Between the two steps pass names and
numbers.  A bucket takes some three times the memory of a shard.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import shards
from bioshards.corpus.ahead import ahead
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.pretraining import BATCH_ROWS

from .block import Positions
from .plan import Keys, Plan

_KEY: Final = pa.field("key", pa.uint64(), nullable=False)


def deal(
    files: LocalFiles, path: str, plan: Plan, order: Positions, keys: Keys, schema: pa.Schema, buckets: int
) -> None:
    """Write a plan's rows, sorted by their keys, as a record batch for each of the buckets."""
    upper = keys >> np.uint64(32)
    ends = np.searchsorted((upper * np.uint64(buckets)) >> np.uint64(32), np.arange(buckets + 1))
    with_key = schema.append(_KEY)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        files.write(path) as file,
        pa.ipc.new_file(pa.PythonFile(file, "w"), with_key, options=options) as out,
    ):
        for start, stop in zip(ends.tolist(), ends[1:].tolist(), strict=False):
            rows = _whole(list(plan.batches(order[start:stop], schema)), schema)
            out.write_batch(pa.record_batch([*rows.columns, pa.array(keys[start:stop])], schema=with_key))


class Bucket(NamedTuple):
    """Rows of all portions.

    Attributes:
        order: the rows' numbers in the order of their keys; ``keys``: these, in order.
    """

    rows: pa.RecordBatch
    order: pa.Array
    keys: Keys


def bucket(files: LocalFiles, paths: Sequence[str], number: int) -> Bucket:
    """All rows of a bucket."""
    parts = list(ahead(files, lambda path: _part(files, path, number), paths))
    rows = _whole(parts, parts[0].schema)
    order = pc.sort_indices(rows["key"])
    return Bucket(rows.select(rows.schema.names[:-1]), order, rows["key"].take(order).to_numpy())


def _part(files: LocalFiles, path: str, number: int) -> pa.RecordBatch:
    """A bucket of one file, which is closed at once: there may be more of them than may be open."""
    with shards.opened(files, path) as file, pa.ipc.open_file(file) as reader:
        return reader.get_batch(number)


def _whole(parts: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    """Record batches as one; the list is emptied, so that no more than two copies of the rows are there."""
    columns = pa.Table.from_batches(parts, schema).columns
    parts.clear()
    whole = []
    while columns:
        whole.append(columns.pop(0).combine_chunks())
    return pa.record_batch(whole, schema=schema)


def batches(bucket: Bucket, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """A bucket's rows, in their order, as record batches of a shard."""
    for start in range(0, len(bucket.rows), BATCH_ROWS):
        # Few at a time: taking lists, Arrow makes a number of eight bytes for each token.
        rows = bucket.rows.take(bucket.order.slice(start, BATCH_ROWS))
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)
