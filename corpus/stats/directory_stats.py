"""Statistics of a finished directory of documents or pretraining rows as JSON data, deterministic.

report.py renders them for a terminal and as HTML. All text stays in Arrow: a gigabyte takes a few seconds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from msgspec import to_builtins

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    ForeignManifestError,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    PretrainingConfig,
    PretrainingManifest,
    Shard,
    SplitCounts,
    find_damage,
    read_manifest,
)
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.shards import arrow_io, document_schema, document_shards
from bioshards.corpus.stats.document_stats import (
    TALLIED_COLUMNS,
    DocumentTally,
    count_values,
    draw_documents,
    read_samples,
    summarise_distribution,
    summarise_documents,
)
from bioshards.corpus.storage.storage_protocol import Storage

_READ_COLUMNS: Final = {"id", "source", "year", "sentences", *TALLIED_COLUMNS}


FileReader = Callable[[Storage, str, Sequence[str] | None], Iterator[pa.RecordBatch]]


class StatsError(UserError):
    """The directory has no statistics, or is damaged. The message says why and what to do."""


def compute_stats(storage: Storage, folder: str) -> dict[str, Any]:
    """Compute all statistics of a finished directory.

    Returns:
        JSON data: ``pipeline``, ``kind`` (``documents`` or ``pretraining``), and the fields of
        :func:`summarise_documents` or of a pretraining set.

    Raises:
        FileNotFoundError: the directory has no manifest: it is not finished.
        StatsError: the directory is of another kind, or damaged.
    """
    try:
        manifest: Manifest | None = read_manifest(storage, folder)
    except ManifestNotFoundError:
        raise
    except ForeignManifestError as error:
        manifest, pipeline = None, error.pipeline
    except ManifestError as error:
        raise StatsError(str(error)) from error
    if isinstance(manifest, DocumentsManifest):
        return _compute_document_stats(storage, folder, manifest)
    if isinstance(manifest, PretrainingManifest):
        return _compute_pretraining_stats(storage, folder, manifest)
    if manifest is not None:
        pipeline = manifest.pipeline
    origin = f"was made by {pipeline}" if pipeline else "is not of bioshards"
    raise StatsError(
        f"{folder} has no statistics: by its manifest.json it {origin}. Give an output of pubmed_to_shards, "
        "pmc_to_shards, text_to_shards or shards_to_pretraining"
    )


def to_json(stats: dict[str, Any]) -> str:
    """Encode the statistics as the text of a JSON file."""
    return json.dumps(stats, indent=1, ensure_ascii=False) + "\n"


# Documents


def _compute_document_stats(storage: Storage, folder: str, manifest: DocumentsManifest) -> dict[str, Any]:
    """Compute the statistics of document shards, with the lengths of sentences.

    Words are separated by blanks, as in manifests. Sentences have no other white space if the cleaning rule
    ``spaces`` was enabled.
    """
    tally = DocumentTally()
    words_per_sentence = tally.lengths["words_per_sentence"]
    characters = 0
    columns = [field.name for field in document_schema.DOCUMENT_SCHEMA if field.name in _READ_COLUMNS]
    for batch in _iter_batches(document_shards.read_file, storage, folder, manifest.outputs, columns):
        sentences = batch["sentences"].flatten()
        num_sentences = pc.list_value_length(batch["sentences"])
        words_in_sentence = _count_words(sentences)
        lengths = {"num_sentences": num_sentences, "words": _sum_groups(words_in_sentence, num_sentences)}
        tally.add_rows(pa.table({name: batch[name] for name in columns} | lengths))
        tally.add_sentences(batch["id"], batch["sentences"])
        words_per_sentence.update(count_values(words_in_sentence))
        characters += pc.sum(pc.utf8_length(sentences), min_count=0).as_py()
    drawn = draw_documents(storage, folder, manifest.outputs)
    return summarise_documents(manifest, tally, characters, read_samples(storage, folder), drawn)


def _count_words(sentences: pa.Array) -> pa.Array:
    """Return the number of words of each sentence: its blanks + 1, or 0 if it is empty."""
    is_not_empty = pc.not_equal(pc.binary_length(sentences), 0).cast(pa.int32())
    return pc.add(pc.count_substring(sentences, " "), is_not_empty)


def _sum_groups(numbers: pa.Array, lengths: pa.Array) -> pa.Array:
    """Return the sums of the first ``lengths[0]`` numbers, the next ``lengths[1]``, and so on."""
    cumulative = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int64()), numbers.cast(pa.int64())]))
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    return pc.subtract(cumulative.take(ends), cumulative.take(pc.subtract(ends, lengths)))


# Pretraining sets


def summarise_set(manifest: PretrainingManifest) -> dict[str, Any]:
    """Return what the manifest of a pretraining set has of its statistics, without reading rows."""
    counts = manifest.counts
    counts_by_split = {"train": counts.train, "validation": counts.validation}
    splits = {}
    for split in SPLITS:
        shards = _list_shards(manifest, split)
        if shards or counts_by_split[split].documents:
            split_counts = counts_by_split[split]
            totals = split_counts.rows, split_counts.tokens
            splits[split] = _summarise_split(shards, manifest.config, split_counts, *totals)
    return {
        "pipeline": manifest.pipeline,
        "kind": "pretraining",
        "objective": manifest.config.objective,
        "length": manifest.config.max_seq_length,
        "vocabulary": to_builtins(manifest.config.vocabulary),
        "inputs": to_builtins(manifest.inputs),
        "documents": counts.documents,
        "dropped": dict(counts.dropped),
        "rejected": dict(counts.rejected),
        "splits": splits,
        "years": {
            source: {year: {"tokens": tokens} for year, tokens in sorted(years.items())}
            for source, years in sorted(counts.years.items())
        },
    }


def _list_shards(manifest: PretrainingManifest, split: str) -> list[Shard]:
    return [shard for shard in manifest.outputs if shard.file.startswith(f"{split}/")]


def _summarise_split(
    shards: Sequence[Shard], config: PretrainingConfig, counts: SplitCounts, rows: int, tokens: int
) -> dict[str, Any]:
    fill = _compute_ratio(tokens, rows * config.max_seq_length)
    document_tokens = tokens - counts.special_tokens - counts.other_document_tokens
    return {
        "shards": len(shards),
        "bytes": sum(shard.bytes for shard in shards),
        "documents": counts.documents,
        "rows": rows,
        "tokens": tokens,
        "fill": fill,
        "padding": None if fill is None else 1 - fill,
        "rows_per_document": _compute_ratio(rows, counts.documents),
        "input_tokens": counts.input_tokens,
        "special_tokens": counts.special_tokens,
        "other_document_tokens": counts.other_document_tokens,
        "lost_tokens": dict(sorted(counts.lost_tokens.items())),
        "unaccounted_tokens": counts.input_tokens - document_tokens - sum(counts.lost_tokens.values()),
    }


def _compute_pretraining_stats(
    storage: Storage, folder: str, manifest: PretrainingManifest
) -> dict[str, Any]:
    """Compute row lengths, padding and the accounts of tokens of a pretraining set."""
    stats, counts = summarise_set(manifest), manifest.counts
    for split in stats["splits"]:
        split_counts = counts.train if split == "train" else counts.validation
        shards = _list_shards(manifest, split)
        stats["splits"][split] = _compute_split_stats(storage, folder, shards, manifest.config, split_counts)
    return stats


def _compute_split_stats(
    storage: Storage, folder: str, shards: Sequence[Shard], config: PretrainingConfig, counts: SplitCounts
) -> dict[str, Any]:
    lengths, labels = Counter[int](), Counter[int]()
    single_segment_rows = 0
    for batch in _iter_batches(_read_rows, storage, folder, shards, columns=None):
        lengths.update(count_values(pc.list_value_length(batch["input_ids"])))
        single_segment_rows += pc.sum(pc.equal(batch["split"], 0), min_count=0).as_py()
        if "label" in batch.schema.names:
            labels.update(count_values(batch["label"]))
    rows = lengths.total()
    row_lengths = summarise_distribution(lengths)
    return {
        **_summarise_split(shards, config, counts, rows, row_lengths["sum"]),
        "full_rows": _compute_ratio(lengths[config.max_seq_length], rows),
        "single_segment": _compute_ratio(single_segment_rows, rows),
        "labels": {
            str(label): {"rows": label_rows, "share": _compute_ratio(label_rows, rows)}
            for label, label_rows in sorted(labels.items())
        },
        "row_lengths": row_lengths,
    }


def _read_rows(storage: Storage, path: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a shard of rows.

    Raises:
        pyarrow.ArrowInvalid: values point outside of the file, or are missing.
    """
    for batch in arrow_io.read_stream(storage, path, columns):
        batch.validate(full=True)
        if any(column.null_count for column in batch.columns):
            raise pa.ArrowInvalid("a row lacks a value")
        yield batch


def _compute_ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _iter_batches(
    read_file: FileReader,
    storage: Storage,
    folder: str,
    shards: Iterable[Shard],
    columns: Sequence[str] | None,
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of shards; one is in memory at a time.

    Args:
        read_file: reads a shard.
        shards: as the manifest lists them.
        columns: columns to read, in the order of the schema; None for all.

    Raises:
        StatsError: a shard is unreadable, or its number of rows differs from the manifest.
    """
    for shard in shards:
        path, rows = f"{folder}/{shard.file}", 0
        if damage := find_damage(storage, path, shard):
            raise _make_damage_error(path, f"cannot be read: {damage}")
        try:
            for batch in read_file(storage, path, columns):
                rows += batch.num_rows
                yield batch
        except (OSError, pa.ArrowException) as error:
            raise _make_damage_error(path, f"cannot be read ({error})") from error
        if rows != shard.rows:
            raise _make_damage_error(path, f"has {rows:,} rows, and its manifest lists {shard.rows:,}")


def _make_damage_error(path: str, problem: str) -> StatsError:
    return StatsError(f"{path} {problem}. Delete it and run the command that wrote it again")
