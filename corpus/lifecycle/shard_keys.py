"""Ids of the documents of a shard in a small file, for full_text_overlap.py.

Reading a few columns of a shard on an object store transfers the whole shard, over 500 GB for all abstracts
and articles.  So the ids are extracted once, in parallel.  The files are in the work folder of the
directory that needs them, named by the SHA-256 of the shard: they stay valid, and an update extracts those
of new shards only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle.full_text_overlap import MATCH_KEY_SCHEMA
from bioshards.corpus.manifest import Shard
from bioshards.corpus.manifest import sweep as sweep_files
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage


def extract_keys(storage: Storage, output_dir: OutputDir, folder: str, shard: Shard) -> None:
    """Write the ids of the documents of a shard, unless the file exists.

    Articles without a body are left out, because they do not contain the full text of an abstract.
    """
    path = output_dir.shard_keys_path(shard.sha256)
    if storage.exists(path):
        return
    with storage.write(path) as file, pa.ipc.new_stream(pa.PythonFile(file, "w"), MATCH_KEY_SCHEMA) as stream:
        for batch in arrow_io.read_file(
            storage, f"{folder}/{shard.file}", [*MATCH_KEY_SCHEMA.names, "flags"]
        ):
            is_abstract_only = pc.match_substring(pc.binary_join(batch["flags"], ","), "no-body")
            keys = batch.filter(pc.and_not(pc.is_valid(batch["id"]), is_abstract_only)).select(
                MATCH_KEY_SCHEMA.names
            )
            stream.write_table(pa.Table.from_batches([keys]).cast(MATCH_KEY_SCHEMA))


def read_keys(
    storage: Storage, output_dir: OutputDir, folder: str, manifest_entries: Sequence[Shard]
) -> Iterator[pa.RecordBatch]:
    """Yield the ids of the documents of shards, in order, as batches of :data:`MATCH_KEY_SCHEMA`."""

    def read_shard(shard: Shard) -> list[pa.RecordBatch]:
        extract_keys(storage, output_dir, folder, shard)
        with (
            arrow_io.open_mapped(storage, output_dir.shard_keys_path(shard.sha256)) as file,
            pa.ipc.open_stream(file) as stream,
        ):
            return list(stream)

    for batches in prefetch_map(storage, read_shard, manifest_entries):
        yield from batches


def sweep(storage: Storage, output_dir: OutputDir, manifest_entries: Sequence[Shard]) -> None:
    """Remove the files of all shards but these."""
    expected = {output_dir.shard_keys_path(shard.sha256) for shard in manifest_entries}
    sweep_files(storage, [f"{output_dir.work_folder}/shard_keys"], expected)
