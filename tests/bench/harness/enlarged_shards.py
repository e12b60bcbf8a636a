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

from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import put_documents

CHANGED_CHUNK_INTERVAL: Final = 40
SHARD_BYTES: Final = 24_000_000
"""Bytes of a shard: what 15,000 abstracts take, half of an update file of PubMed's."""


def iter_copies(folders: Sequence[str], size: int) -> Iterator[pa.RecordBatch]:
    """Yield copies of the documents until so many bytes of batches are there."""
    rng, pmids, bytes_made = random.Random(7), itertools.count(1), 0
    for copy_number in itertools.count(1):
        for folder in folders:
            for batch in document_shards.read_directory(LocalStorage(), folder):
                if bytes_made >= size:
                    return
                bytes_made += batch.nbytes
                documents = batch.to_pylist()
                for document in documents:
                    document["id"] = f"{document['id']}-{copy_number}"
                    document["pmid"] = document["pmid"] and next(pmids)
                    document["sentences"] = _change_chunks(document["sentences"], rng)
                yield pa.RecordBatch.from_pylist(documents, DOCUMENT_SCHEMA)


def _change_chunks(sentences: list[str], rng: random.Random) -> list[str]:
    chunks = "\n".join(sentences).split(" ")
    for position in range(rng.randrange(CHANGED_CHUNK_INTERVAL), len(chunks), CHANGED_CHUNK_INTERVAL):
        if "\n" not in chunks[position]:
            first, second = (rng.choice(chunks).partition("\n")[0] for _ in range(2))
            chunks[position] = first[: len(first) // 2] + second[len(second) // 2 :]
    return " ".join(chunks).split("\n")


def main() -> None:
    """Write the shards and a manifest that the next pipeline reads."""
    out, megabytes, *folders = sys.argv[1:]
    if not Path(out, "manifest.json").exists():
        copies = iter_copies(folders, round(float(megabytes) * 1e6))
        written = document_shards.write_shards(
            LocalStorage(), out, "enlarged", copies, DOCUMENT_SCHEMA, SHARD_BYTES
        )
        put_documents(out, written)


if __name__ == "__main__":
    main()
