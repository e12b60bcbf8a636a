"""Read the shards that a manifest lists, batch by batch, and check that each is complete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.storage_protocol import Storage


class StatsError(UserError):
    """The directory has no statistics, or is damaged. The message says why and what to do."""


def iter_batches(
    storage: Storage, folder: str, shard_entries: Iterable[Shard], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of shards; one is in memory at a time.

    Args:
        storage: where the directory is.
        folder: the directory.
        shard_entries: the shards as the manifest lists them.
        columns: columns to read, in the order of the schema; None for all.

    Raises:
        StatsError: a shard is unreadable, or its number of rows differs from the manifest.
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
    """Create the error for a damaged shard."""
    return StatsError(f"{path} {problem}. Delete it and run the command that wrote it again")
