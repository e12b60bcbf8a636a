"""Statistics of document shards: documents, sentences, words, and their lengths.

All text stays in Arrow: a gigabyte takes a few seconds.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.manifest import DocumentsManifest
from bioshards.corpus.shards.arrow_io import DOCUMENT_SCHEMA
from bioshards.corpus.stats.document_tally import LENGTHS, TALLIED_COLUMNS, DocumentTally
from bioshards.corpus.stats.histogram import add_counts, summarise_distribution
from bioshards.corpus.stats.reject_samples import RejectedRecord, read_samples
from bioshards.corpus.stats.shard_batches import iter_batches
from bioshards.corpus.storage.storage_protocol import Storage

_READ_COLUMNS: Final = {"source", "year", "sentences", *TALLIED_COLUMNS}
TOP_VALUES: Final = 20
"""Values of a column that are named, the most frequent ones."""


def compute_document_stats(storage: Storage, folder: str, manifest: DocumentsManifest) -> dict[str, Any]:
    """Compute the statistics of document shards as JSON data.

    Words are separated by blanks, as in manifests. Sentences have no other white space if the cleaning rule
    ``spaces`` was enabled.

    Raises:
        StatsError: a shard is unreadable.
    """
    tally = DocumentTally()
    words_per_sentence = tally.lengths["words_per_sentence"]
    characters = 0
    columns = [field.name for field in DOCUMENT_SCHEMA if field.name in _READ_COLUMNS]
    for batch in iter_batches(storage, folder, manifest.outputs, columns):
        sentences = batch["sentences"].flatten()
        num_sentences = pc.list_value_length(batch["sentences"])
        words_in_sentence = count_words(sentences)
        tally.add_rows(
            pa.table(
                {
                    **{name: batch[name] for name in columns},
                    "num_sentences": num_sentences,
                    "words": sum_groups(words_in_sentence, num_sentences),
                }
            )
        )
        add_counts(words_per_sentence, words_in_sentence)
        characters += pc.sum(pc.utf8_length(sentences), min_count=0).as_py()
    return summarise_documents(manifest, tally, characters, read_samples(storage, folder))


def summarise_documents(
    manifest: DocumentsManifest, tally: DocumentTally, characters: int, rejected: Sequence[RejectedRecord]
) -> dict[str, Any]:
    """Return the statistics of documents that are counted as JSON data.

    Args:
        characters: number of characters of all sentences.
        rejected: samples of rejected records.
    """
    distributions = {
        name: summarise_distribution(tally.lengths[name])
        for name in (*LENGTHS, *(name for name in tally.lengths if name not in LENGTHS))
    }
    config = msgspec.to_builtins(manifest.config)
    return {
        "shards": len(manifest.outputs),
        "bytes": sum(shard.bytes for shard in manifest.outputs),
        "documents": sum(years.total() for years in tally.documents.values()),
        "sentences": distributions["sentences_per_document"]["sum"],
        "words": sum(years.total() for years in tally.words.values()),
        "characters": characters,
        "funnel": dict(manifest.funnel),
        "distributions": distributions,
        "years": {
            source: {
                year: {"documents": documents, "words": tally.words[source][year]}
                for year, documents in sorted(years.items())
            }
            for source, years in sorted(tally.documents.items())
        },
        "values": {column: _summarise_values(tally.values[column]) for column in TALLIED_COLUMNS},
        "cleaning": msgspec.to_builtins(manifest.cleaning),
        "dropped_parts": msgspec.to_builtins(manifest.dropped_parts),
        "rejected": [msgspec.to_builtins(record) for record in rejected],
        "bad_files": [{"file": bad.file, "detail": bad.detail} for bad in manifest.bad_files],
        "warnings": list(manifest.warnings),
        "notice": manifest.notice,
        "config": {**config.pop("document_config"), **config},
        "steps": msgspec.to_builtins(manifest.run.steps),
        "run": {
            "command": shlex.join(manifest.run.command),
            "version": manifest.run.bioshards,
            "started": manifest.run.started_at,
            "finished": manifest.run.finished_at,
        },
    }


def _summarise_values(documents: Counter[str]) -> dict[str, Any]:
    """Return the number of distinct values, and the most frequent ones with their documents."""
    ordered = sorted(documents.items(), key=lambda item: (-item[1], item[0]))
    return {"distinct": len(documents), "top": dict(ordered[:TOP_VALUES])}


def count_words(sentences: pa.Array) -> pa.Array:
    """Return the number of words of each sentence: its blanks + 1, or 0 if it is empty."""
    is_not_empty = pc.not_equal(pc.binary_length(sentences), 0).cast(pa.int32())
    return pc.add(pc.count_substring(sentences, " "), is_not_empty)


def sum_groups(numbers: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return the sums of the first ``lengths[0]`` numbers, the next ``lengths[1]``, and so on."""
    cumulative = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), numbers.cast(pa.int64())]))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pc.subtract(cumulative.take(ends), cumulative.take(pc.subtract(ends, lengths)))
