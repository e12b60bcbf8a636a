"""Documents with defaults, and finished directories of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioshards.corpus.document import Document
from bioshards.corpus.manifest import OverlapFile, Shard
from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.corpus.manifests import put_documents


def make_document(id_: str, sentences: Sequence[str], pmid: int | None = None, **overrides: Any) -> Document:
    """Make a document of sentences; ``pubmed:7`` has the PMID 7 unless another is given."""
    source, _, number = id_.partition(":")
    if pmid is None and source == "pubmed":
        pmid = int(number)
    defaults: dict[str, Any] = {
        "id": id_,
        "source": source,
        "pmid": pmid,
        "pmcid": None if source == "pubmed" else number,
        "doi": None,
        "version": 1,
        "year": 2020,
        "journal": None,
        "article_type": None,
        "language": "eng",
        "licence": None,
        "retracted": False,
        "flags": [],
        "title": "A title.",
        "sentences": list(sentences),
        "sections": [],
        "file": "invented.xml",
        "position": 0,
        "num_words": 0,
        "num_characters": 0,
        "removed_characters": {},
    }
    return Document(**{**defaults, **overrides})


def write_document_dir(
    folder: Path,
    documents_by_shard: Mapping[str, Sequence[Document]],
    pipeline: str = "pubmed_to_shards",
    batch_size: int = 50,
    overlap: Sequence[OverlapFile] = (),
) -> Path:
    """Write a finished directory with a shard for each name, in record batches of a given size."""
    storage, outputs = LocalStorage(), list[Shard]()
    for name, documents in documents_by_shard.items():
        batch_starts = range(0, max(1, len(documents)), batch_size)
        batches = [
            document_schema.record_batch_from_documents(list(documents[start : start + batch_size]))
            for start in batch_starts
        ]
        outputs += document_shards.write_shards(storage, str(folder), name, batches, DOCUMENT_SCHEMA, 1 << 30)
    put_documents(folder, outputs, pipeline, overlap)
    return folder
