"""Document shards larger than the real text there is, for a pipeline to have minutes of work:
``python -m tests.bench.harness.enlarged_shards OUT MB DIR ...``.

The documents of finished directories come over and over, under new ids and PMIDs.  In each copy one chunk in
40 (what stands between two blanks) is made of the halves of two others: in the last tenth of 89 MB of real
text 3.2 % of the chunks are new, and fewer would be further on.
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import put_documents

SEED: Final = 7
CHANGED_CHUNK_INTERVAL: Final = 40
"""One chunk in so many is a made one."""
SHARD_BYTES: Final = 24_000_000
"""Bytes of a shard: what 15,000 abstracts take, half of an update file of PubMed's."""


def copy_batch(
    batch: pa.RecordBatch, copy_number: int, pmids: Iterator[int], rng: random.Random
) -> pa.RecordBatch:
    """The batch under new ids and PMIDs, some of its chunks changed."""
    offsets, flat = document_schema.flatten_lists(
        [_change_chunks(lines, rng) for lines in batch["sentences"].to_pylist()]
    )
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns["id"] = pa.array([f"{name}-{copy_number}" for name in batch["id"].to_pylist()])
    new_pmids = [None if pmid is None else next(pmids) for pmid in batch["pmid"].to_pylist()]
    columns["pmid"] = pa.array(new_pmids, pa.int32())
    columns["sentences"] = pa.ListArray.from_arrays(offsets, pa.array(flat, pa.string()))
    return pa.RecordBatch.from_arrays(
        [columns[name] for name in DOCUMENT_SCHEMA.names], schema=DOCUMENT_SCHEMA
    )


def _change_chunks(sentences: list[str], rng: random.Random) -> list[str]:
    chunks = "\n".join(sentences).split(" ")
    for position in range(rng.randrange(CHANGED_CHUNK_INTERVAL), len(chunks), CHANGED_CHUNK_INTERVAL):
        if "\n" not in chunks[position]:
            first, second = (rng.choice(chunks).partition("\n")[0] for _ in range(2))
            chunks[position] = first[: len(first) // 2] + second[len(second) // 2 :]
    return " ".join(chunks).split("\n")


def iter_copies(folders: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """Copies of the directories' documents until so many bytes of batches are there."""
    rng, pmids, bytes_made, copy_number = random.Random(SEED), itertools.count(1), 0, 0
    while True:
        copy_number += 1
        for folder in folders:
            for batch in document_shards.read_directory(LocalStorage(), folder):
                if bytes_made >= size:
                    return
                bytes_made += batch.nbytes
                yield copy_batch(batch, copy_number, pmids, rng)


def main() -> None:
    """Write the shards and a manifest that the next pipeline reads."""
    out, size, *folders = sys.argv[1:]
    if Path(out, "manifest.json").exists():
        return
    copied_batches = iter_copies(folders, round(float(size) * 1e6))
    written = document_shards.write_shards(
        LocalStorage(), out, "enlarged", copied_batches, DOCUMENT_SCHEMA, SHARD_BYTES
    )
    put_documents(out, written)


if __name__ == "__main__":
    main()
