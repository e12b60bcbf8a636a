"""The shards of a finished directory, to be counted: batch by batch, and each shard seen to be whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from bioshards.corpus.errors import UserError
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.local_storage import LocalStorage


class StatsError(UserError):
    """There is nothing to be counted in this directory; the message says why and what to do."""


def iter_batches(
    storage: LocalStorage, folder: str, shard_entries: Iterable[Shard], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The record batches of shards as a manifest lists them, one in memory at a time.

    Args:
        columns: those to read, in the order of the schema.

    Raises:
        StatsError: a shard cannot be read, or has not the rows that the manifest lists.
    """
    for shard in shard_entries:
        path, rows = f"{folder}/{shard.file}", 0
        try:
            for batch in arrow_io.read_shards(storage, folder, [shard], columns):
                rows += batch.num_rows
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise damage_error(path, f"cannot be read ({error})") from error
        if rows != shard.rows:
            raise damage_error(path, f"has {rows:,} rows, and its manifest lists {shard.rows:,}")


def damage_error(path: str, problem: str) -> StatsError:
    """What to say of a shard that is not as it was written."""
    return StatsError(
        f"{path} {problem}. Delete it and run the command that made it once more, which makes it anew"
    )
