"""Statistics of document shards: documents, sentences, words, and their lengths.

All text stays in Arrow: a gigabyte takes a few seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.manifest import DocumentsManifest
from bioshards.corpus.storage.storage_protocol import Storage

from .histogram import add_counts, summarise_distribution
from .shard_batches import iter_batches

UNKNOWN_YEAR: Final = "unknown"
"""Key of documents without a year, as in manifests."""


def compute_document_stats(storage: Storage, folder: str, manifest: DocumentsManifest) -> dict[str, Any]:
    """Compute the statistics of document shards as JSON data.

    Words are separated by blanks, as in manifests. Sentences have no other white space if the cleaning rule
    ``spaces`` was enabled.

    Raises:
        StatsError: a shard is unreadable.
    """
    shard_entries = manifest.outputs
    lengths: dict[str, Counter[int]] = {
        name: Counter() for name in ("sentences_per_document", "words_per_document", "words_per_sentence")
    }
    documents: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    characters = 0
    for batch in iter_batches(storage, folder, shard_entries, ["source", "year", "sentences"]):
        sentences = batch["sentences"].flatten()
        sentences_per_document = pc.list_value_length(batch["sentences"])
        words_in_sentence = count_words(sentences)
        words_in_document = sum_groups(words_in_sentence, sentences_per_document)
        add_counts(lengths["sentences_per_document"], sentences_per_document)
        add_counts(lengths["words_per_document"], words_in_document)
        add_counts(lengths["words_per_sentence"], words_in_sentence)
        characters += pc.sum(pc.utf8_length(sentences), min_count=0).as_py()
        rows = pa.table({"source": batch["source"], "year": batch["year"], "words": words_in_document})
        groups = rows.group_by(["source", "year"], use_threads=False)
        for group in groups.aggregate([("words", "count"), ("words", "sum")]).to_pylist():
            key = group["source"], UNKNOWN_YEAR if group["year"] is None else str(group["year"])
            documents[key] += group["words_count"]
            words[key] += group["words_sum"]
    distributions = {name: summarise_distribution(counts) for name, counts in lengths.items()}
    return {
        "shards": len(shard_entries),
        "bytes": sum(shard.bytes for shard in shard_entries),
        "documents": documents.total(),
        "sentences": distributions["sentences_per_document"]["sum"],
        "words": words.total(),
        "characters": characters,
        "distributions": distributions,
        "years": {
            source: {
                year: {"documents": documents[source, year], "words": words[source, year]}
                for year in sorted(year for document_source, year in documents if document_source == source)
            }
            for source in sorted({source for source, _ in documents})
        },
        "funnel": dict(manifest.funnel),
    }


def count_words(sentences: pa.Array) -> pa.Array:
    """Return the number of words of each sentence: its blanks + 1, or 0 if it is empty."""
    is_not_empty = pc.not_equal(pc.binary_length(sentences), 0).cast(pa.int32())
    return pc.add(pc.count_substring(sentences, " "), is_not_empty)


def sum_groups(numbers: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return the sums of the first ``lengths[0]`` numbers, the next ``lengths[1]``, and so on."""
    cumulative = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), numbers.cast(pa.int64())]))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pc.subtract(cumulative.take(ends), cumulative.take(pc.subtract(ends, lengths)))
