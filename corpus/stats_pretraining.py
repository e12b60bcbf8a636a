"""What is in a pretraining set, in numbers: how full its rows are, and what of the text is not in them.

The trainer's question is which share of a batch is padding, if every row is padded to the set's length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .files import LocalFiles
from .manifest import PretrainingConfig, PretrainingManifest, SplitCounts, encode
from .pretraining import LABELLED, SPLITS
from .shards import Shard
from .stats_distribution import count, distribution
from .stats_shards import batches


def figures(files: LocalFiles, folder: str, manifest: PretrainingManifest) -> dict[str, Any]:
    """The figures as plain data.

    Raises:
        StatsError: a shard cannot be read.
    """
    config, counts = manifest.config, manifest.counts
    listed = {
        split: [shard for shard in manifest.outputs if shard.file.startswith(f"{split}/")] for split in SPLITS
    }
    counts_of = {"train": counts.train, "validation": counts.validation}
    return {
        "objective": config.objective,
        "length": config.length,
        "vocabulary": encode(config.vocabulary),
        "inputs": encode(manifest.inputs),
        "documents": counts.documents,
        "dropped": dict(counts.dropped),
        "rejected": dict(counts.rejected),
        "splits": {
            split: _split(files, folder, shards, config, counts_of[split])
            for split, shards in listed.items()
            if shards or counts_of[split].documents
        },
        "years": {
            source: {year: {"tokens": tokens} for year, tokens in sorted(years.items())}
            for source, years in sorted(counts.years.items())
        },
    }


def _split(
    files: LocalFiles,
    folder: str,
    listed: Sequence[Shard],
    config: PretrainingConfig,
    counts: SplitCounts,
) -> dict[str, Any]:
    labelled = config.objective in LABELLED
    lengths, documents_of_row, labels = Counter[int](), Counter[int](), Counter[int]()
    single = 0
    columns = ["input_ids", "split", *(["label"] if labelled else []), "spans"]
    for batch in batches(files, folder, listed, columns):
        count(lengths, pc.list_value_length(batch["input_ids"]))
        count(documents_of_row, documents_in(batch["spans"]))
        single += pc.sum(pc.equal(batch["split"], 0), min_count=0).as_py()
        if labelled:
            count(labels, batch["label"])
    rows = lengths.total()
    row_lengths, documents_per_row = distribution(lengths), distribution(documents_of_row)
    tokens = row_lengths["sum"]
    fill = _share(tokens, rows * config.length)
    in_rows = tokens - counts.special_tokens - counts.other_document_tokens
    return {
        "shards": len(listed),
        "bytes": sum(shard.bytes for shard in listed),
        "documents": counts.documents,
        "rows": rows,
        "tokens": tokens,
        "fill": fill,
        "padding": None if fill is None else 1 - fill,
        "full_rows": _share(lengths[config.length], rows),
        "single_segment": _share(single, rows),
        "labels": {
            str(label): {"rows": number, "share": _share(number, rows)}
            for label, number in sorted(labels.items())
        },
        "row_lengths": row_lengths,
        "documents_per_row": documents_per_row,
        "rows_per_document": _share(documents_per_row["sum"], counts.documents),
        "input_tokens": counts.input_tokens,
        "special_tokens": counts.special_tokens,
        "other_document_tokens": counts.other_document_tokens,
        "lost_tokens": dict(sorted(counts.lost_tokens.items())),
        "unaccounted": counts.input_tokens - in_rows - sum(counts.lost_tokens.values()),
    }


def documents_in(spans: pa.Array) -> pa.Array:
    """How many different documents each row's text is of."""
    parts = pa.table(
        {"row": pc.list_parent_indices(spans), "document": pc.struct_field(spans.flatten(), "document")}
    )
    pairs = parts.group_by(["row", "document"], use_threads=False).aggregate([])
    found = pairs.group_by("row", use_threads=False).aggregate([("document", "count")])["document_count"]
    without = pa.array([0] * (len(spans) - len(found)), pa.int64())
    return pa.concat_arrays([*found.chunks, without])


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
