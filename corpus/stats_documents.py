"""What is in a directory of document shards, in numbers: documents, sentences, words, and how long they are.

Texts stay in Arrow from the first to the last: a gigabyte of them is counted in some seconds.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from .files import LocalFiles
from .manifest import DocumentsManifest
from .stats_distribution import count, distribution
from .stats_shards import batches

UNKNOWN: Final = "unknown"
"""The year of a document that has none, as in manifests."""


def figures(files: LocalFiles, folder: str, manifest: DocumentsManifest) -> dict[str, Any]:
    """The figures as plain data.

    A word is what stands between blanks, as in the manifests: sentences have no other white space, if the
    cleaning rule ``spaces`` was on.

    Raises:
        StatsError: a shard cannot be read.
    """
    listed = manifest.outputs
    lengths: dict[str, Counter[int]] = {
        name: Counter() for name in ("sentences_per_document", "words_per_document", "words_per_sentence")
    }
    documents: Counter[tuple[str, str]] = Counter()
    words: Counter[tuple[str, str]] = Counter()
    characters = 0
    for batch in batches(files, folder, listed, ["source", "year", "sentences"]):
        sentences = batch["sentences"].flatten()
        in_document = pc.list_value_length(batch["sentences"])
        words_in_sentence = words_of(sentences)
        words_in_document = sums(words_in_sentence, in_document)
        count(lengths["sentences_per_document"], in_document)
        count(lengths["words_per_document"], words_in_document)
        count(lengths["words_per_sentence"], words_in_sentence)
        characters += pc.sum(pc.utf8_length(sentences), min_count=0).as_py()
        rows = pa.table({"source": batch["source"], "year": batch["year"], "words": words_in_document})
        groups = rows.group_by(["source", "year"], use_threads=False)
        for group in groups.aggregate([("words", "count"), ("words", "sum")]).to_pylist():
            key = group["source"], UNKNOWN if group["year"] is None else str(group["year"])
            documents[key] += group["words_count"]
            words[key] += group["words_sum"]
    found = {name: distribution(counts) for name, counts in lengths.items()}
    return {
        "shards": len(listed),
        "bytes": sum(shard.bytes for shard in listed),
        "documents": documents.total(),
        "sentences": found["sentences_per_document"]["sum"],
        "words": words.total(),
        "characters": characters,
        "distributions": found,
        "years": {
            source: {
                year: {"documents": documents[source, year], "words": words[source, year]}
                for year in sorted(year for of, year in documents if of == source)
            }
            for source in sorted({source for source, _ in documents})
        },
        "funnel": dict(manifest.funnel),
    }


def words_of(sentences: pa.Array) -> pa.Array:
    """The words of each sentence: one more than it has blanks, none where it is empty."""
    written = pc.not_equal(pc.binary_length(sentences), 0).cast(pa.int32())
    return pc.add(pc.count_substring(sentences, " "), written)


def sums(numbers: pa.Array, lengths: pa.Array) -> pa.Array:
    """The sums of the first ``lengths[0]`` numbers, of the next ``lengths[1]``, and so on."""
    before = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), numbers.cast(pa.int64())]))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pc.subtract(before.take(ends), before.take(pc.subtract(ends, lengths)))
