"""Write a shard of rows, and check the files of cached results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from bioshards.corpus.manifest import Shard
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage


def write_shard(
    storage: Storage, output: str, file: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Shard:
    """Write one shard, and return it as listed in the manifest.

    Args:
        file: path of the shard in the output directory.
        schema: schema of the shard (``pretraining_schema.make_schema``).
        batches: record batches of the rows.
    """
    rows = 0
    with storage.write(f"{output}/{file}") as shard_file:
        writer = HashingWriter(shard_file)
        with pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
                rows += len(batch)
    return Shard(file, rows, writer.size, writer.sha256)


def has_all_outputs(storage: Storage, output: str, outputs: Iterable[Shard]) -> bool:
    """Return True if all files exist with the listed sizes."""
    return all(
        [file_info.size for file_info in storage.glob(f"{output}/{entry.file}")] == [entry.bytes]
        for entry in outputs
    )
