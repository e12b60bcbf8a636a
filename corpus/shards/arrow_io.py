"""Arrow IPC streams: shards of pretraining rows, work files, and what ``datasets`` finds the shards by.

Shards of rows are streams, not IPC files, because that is what ``datasets`` memory-maps, and uncompressed,
because a compressed one would be unpacked into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from bioshards.corpus.manifest import Shard
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage


def write_dataset_info(storage: Storage, folder: str, shards: list[Shard]) -> None:
    """Write the files by which ``datasets.load_from_disk`` finds the shards."""
    fingerprint = combine_digests(shard.sha256 for shard in shards)
    state: dict[str, object] = {
        "_data_files": [{"filename": shard.file} for shard in shards],
        "_fingerprint": fingerprint[:16],
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }
    contents = {"dataset_info.json": {}, "state.json": state}
    parallel_for_each(storage, lambda name: storage.write_json(f"{folder}/{name}", contents[name]), contents)


def combine_digests(sha256s: Iterable[str]) -> str:
    """Return the SHA-256 of the SHA-256 sums of shards, in order."""
    return hashlib.sha256("".join(sha256s).encode()).hexdigest()


def read_stream(
    storage: Storage, path: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of one file, with these columns only, or all for None."""
    with open_mapped(storage, path) as file:
        schema = pa.ipc.read_schema(file)
        file.seek(0)
        names = schema.names if columns is None else columns
        options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
        with pa.ipc.open_stream(file, options=options) as stream:
            yield from stream


def open_mapped(storage: Storage, path: str) -> Any:
    """Open a file of Arrow data, memory-mapped if it is local, so that only the columns in use are read."""
    return storage.open(path) if "://" in path else pa.memory_map(path)
