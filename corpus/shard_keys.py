"""The keys of the documents of a shard, in a small file of their own, for overlap.py to look for.

A shard has its columns batch by batch, so that an object store has to hand out all of it for a few of them:
of all abstracts and articles over 500 GB.  So they are taken out of each shard once, by as many workers as
there are.  The files lie in the work folder of the directory that asks, under the SHA-256 of the shards: what
is there is right whatever is updated later, and an update takes out what is new.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from . import shards
from .ahead import ahead
from .files import LocalFiles
from .manifest import sweep as sweep_files
from .overlap import KEYS
from .shards import Shard
from .workspace import Workspace


def take(files: LocalFiles, work: Workspace, folder: str, shard: Shard) -> None:
    """Write the keys of a directory's shard, as a manifest lists it, unless they are there already.

    An article that PMC has no text of is not among them: it holds no abstract in full.
    """
    path = work.keys(shard.sha256)
    if files.exists(path):
        return
    with files.write(path) as file, pa.ipc.new_stream(pa.PythonFile(file, "w"), KEYS) as stream:
        for batch in shards.read_columns(files, f"{folder}/{shard.file}", [*KEYS.names, "flags"]):
            abstract_only = pc.match_substring(pc.binary_join(batch["flags"], ","), "no-body")
            keys = batch.filter(pc.and_not(pc.is_valid(batch["id"]), abstract_only)).select(KEYS.names)
            stream.write_table(pa.Table.from_batches([keys]).cast(KEYS))


def read(
    files: LocalFiles, work: Workspace, folder: str, listed: Sequence[Shard]
) -> Iterator[pa.RecordBatch]:
    """The keys of a directory's shards, in order: batches of :data:`KEYS`.  What is not there is taken."""

    def of(shard: Shard) -> list[pa.RecordBatch]:
        take(files, work, folder, shard)
        with shards.opened(files, work.keys(shard.sha256)) as file, pa.ipc.open_stream(file) as stream:
            return list(stream)

    for batches in ahead(files, of, listed):
        yield from batches


def sweep(files: LocalFiles, work: Workspace, listed: Sequence[Shard]) -> None:
    """Remove the keys of all other shards than these."""
    wanted = {work.keys(shard.sha256) for shard in listed}
    sweep_files(files, [f"{work.folder}/keys"], wanted)
