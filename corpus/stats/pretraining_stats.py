"""Statistics of a pretraining set: row lengths, padding, and token accounting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.manifest import PretrainingConfig, PretrainingManifest, Shard, SplitCounts
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.stats.histogram import add_counts, summarise_distribution
from bioshards.corpus.stats.shard_batches import iter_batches
from bioshards.corpus.storage.storage_protocol import Storage


def compute_pretraining_stats(storage: Storage, folder: str, manifest: PretrainingManifest) -> dict[str, Any]:
    """Compute the statistics of a pretraining set as JSON data.

    Raises:
        StatsError: a shard is unreadable.
    """
    config, counts = manifest.config, manifest.counts
    entries_by_split = {
        split: [shard for shard in manifest.outputs if shard.file.startswith(f"{split}/")] for split in SPLITS
    }
    counts_by_split = {"train": counts.train, "validation": counts.validation}
    return {
        "objective": config.objective,
        "length": config.max_seq_length,
        "vocabulary": msgspec.to_builtins(config.vocabulary),
        "inputs": msgspec.to_builtins(manifest.inputs),
        "documents": counts.documents,
        "dropped": dict(counts.dropped),
        "rejected": dict(counts.rejected),
        "splits": {
            split: _compute_split_stats(storage, folder, shards, config, counts_by_split[split])
            for split, shards in entries_by_split.items()
            if shards or counts_by_split[split].documents
        },
        "years": {
            source: {year: {"tokens": tokens} for year, tokens in sorted(years.items())}
            for source, years in sorted(counts.years.items())
        },
    }


def _compute_split_stats(
    storage: Storage,
    folder: str,
    shard_entries: Sequence[Shard],
    config: PretrainingConfig,
    counts: SplitCounts,
) -> dict[str, Any]:
    lengths, document_counts, labels = Counter[int](), Counter[int](), Counter[int]()
    single_segment_rows = 0
    for batch in iter_batches(storage, folder, shard_entries, columns=None):
        add_counts(lengths, pc.list_value_length(batch["input_ids"]))
        add_counts(document_counts, count_documents_per_row(batch["spans"]))
        single_segment_rows += pc.sum(pc.equal(batch["split"], 0), min_count=0).as_py()
        if "label" in batch.schema.names:
            add_counts(labels, batch["label"])
    rows = lengths.total()
    row_lengths, documents_per_row = summarise_distribution(lengths), summarise_distribution(document_counts)
    tokens = row_lengths["sum"]
    fill = _compute_ratio(tokens, rows * config.max_seq_length)
    document_tokens = tokens - counts.special_tokens - counts.other_document_tokens
    return {
        "shards": len(shard_entries),
        "bytes": sum(shard.bytes for shard in shard_entries),
        "documents": counts.documents,
        "rows": rows,
        "tokens": tokens,
        "fill": fill,
        "padding": None if fill is None else 1 - fill,
        "full_rows": _compute_ratio(lengths[config.max_seq_length], rows),
        "single_segment": _compute_ratio(single_segment_rows, rows),
        "labels": {
            str(label): {"rows": label_rows, "share": _compute_ratio(label_rows, rows)}
            for label, label_rows in sorted(labels.items())
        },
        "row_lengths": row_lengths,
        "documents_per_row": documents_per_row,
        "rows_per_document": _compute_ratio(documents_per_row["sum"], counts.documents),
        "input_tokens": counts.input_tokens,
        "special_tokens": counts.special_tokens,
        "other_document_tokens": counts.other_document_tokens,
        "lost_tokens": dict(sorted(counts.lost_tokens.items())),
        "unaccounted_tokens": counts.input_tokens - document_tokens - sum(counts.lost_tokens.values()),
    }


def count_documents_per_row(spans: pa.Array) -> pa.Array:
    """Return the number of distinct documents of each row."""
    row_documents = pa.table(
        {"row": pc.list_parent_indices(spans), "document": pc.struct_field(spans.flatten(), "document")}
    )
    pairs = row_documents.group_by(["row", "document"], use_threads=False).aggregate([])
    counts = pairs.group_by("row", use_threads=False).aggregate([("document", "count")])["document_count"]
    empty_rows = pa.array([0] * (len(spans) - len(counts)), pa.int64())
    return pa.concat_arrays([*counts.chunks, empty_rows])


def _compute_ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
