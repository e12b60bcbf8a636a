"""Directories of short texts, and their words counted directly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting import word_counts as counts
from bioshards.vocab.counting.word_counts import CountConfig, WordCounts
from tests.support.corpus import synthetic_documents as invented


def write_texts(
    folder: Path,
    texts: dict[str, dict[int, str]],
    pipeline: str = "pubmed_to_shards",
    prefix: str = "pubmed:",
) -> Path:
    """Write a finished directory with a shard for each name: documents by PMID, one sentence each."""
    documents = {
        name: [
            invented.make_document(f"{prefix}{number}", [text], number) for number, text in text_of.items()
        ]
        for name, text_of in texts.items()
    }
    return invented.write_document_dir(folder, documents, pipeline)


def count_directly(*folders: Path, **options: Any) -> WordCounts:
    """Count the words of all documents of directories in this process."""
    storage = LocalStorage()
    columns = ["id", "pmid", "sentences"]
    batches = (
        batch for folder in folders for batch in document_shards.read_directory(storage, str(folder), columns)
    )
    return counts.count_words(batches, CountConfig(**options))
