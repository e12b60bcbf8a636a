"""Shards of pretraining rows: Arrow IPC streams."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from bioshards.corpus.manifest import Shard


def write_stream(folder: Path, name: str, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Shard:
    """Write ``FOLDER/NAME`` and return it as a manifest lists it, by a name relative to the folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = 0
    with pa.ipc.new_stream(str(path), schema) as stream:
        for batch in batches:
            stream.write_batch(batch)
            rows += batch.num_rows
    data = path.read_bytes()
    return Shard(name, rows, len(data), hashlib.sha256(data).hexdigest())
