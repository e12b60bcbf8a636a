"""The keys of the documents of a shard, in a small file of their own, for full_text_overlap.py to look for.

A shard has its columns batch by batch, so that an object store has to hand out all of it for a few of them:
of all abstracts and articles over 500 GB.  So they are taken out of each shard once, by as many workers as
there are.  The files lie in the work folder of the directory that asks, under the SHA-256 of the shards: what
is there is right whatever is updated later, and an update takes out what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.manifest import sweep as sweep_files
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

from .full_text_overlap import MATCH_KEY_SCHEMA


def extract_keys(storage: Storage, output_dir: OutputDir, folder: str, shard: Shard) -> None:
    """Write the keys of a directory's shard, as a manifest lists it, unless they are there already.

    An article that PMC has no text of is not among them: it holds no abstract in full.
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
    """The keys of a directory's shards, in order: batches of :data:`KEYS`.  What is not there is taken."""

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
    """Remove the keys of all other shards than these."""
    expected = {output_dir.shard_keys_path(shard.sha256) for shard in manifest_entries}
    sweep_files(storage, [f"{output_dir.work_folder}/shard_keys"], expected)
