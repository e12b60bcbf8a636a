"""Steps of counting words: count a shard, merge a bucket, publish.

Each call handles one shard or bucket.  Only names and small reports pass between calls and words stay in
files, so that calls may run anywhere and in any order (``beam run shards_to_words``).  The counts of a shard
are named by its SHA-256: an unchanged shard is counted once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.manifest import (
    InputDocuments,
    PrunedWords,
    Shard,
    ValidationWords,
    WordsConfig,
    WordsManifest,
    WordsRun,
    WordTotals,
    find_manifest,
    is_complete,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui import progress_notes
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import CountConfig

WORDS_FILE: Final = "words.tsv"
VALIDATION_WORDS_FILE: Final = "validation-words.tsv"
_LINES_PER_WRITE: Final = 65536
"""Lines per write."""


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Result of counting one shard.

    Attributes:
        sha256: SHA-256 of the shard; names its counts in the work folder.
        documents: training documents.
        validation_documents: documents of the validation split.
        tokens: occurrences of words in training documents.
        validation_tokens: occurrences of words in the validation split.
        distinct_words: distinct words of both.
        failure: reason why the shard cannot be read; None if it was counted.
    """

    sha256: str
    documents: int = 0
    validation_documents: int = 0
    tokens: int = 0
    validation_tokens: int = 0
    distinct_words: int = 0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Counts of one bucket of words of all shards; ``pruned_*`` are of words below ``min_count``."""

    index: int
    distinct_words: int
    validation_distinct_words: int
    pruned_distinct_words: int
    pruned_tokens: int


def count_shard(
    storage: Storage, output_dir: OutputDir, folder: str, shard: Shard, count_config: CountConfig
) -> ShardCounts:
    """Count a shard of a directory, or return its cached counts."""
    report_path = output_dir.word_counts_path(shard.sha256, "json")
    if storage.exists(report_path):
        return ShardCounts(**storage.read_json(report_path)["shard_counts"])
    path = f"{folder}/{shard.file}"
    if damage := input_dirs.find_damage(storage, path, shard):
        return ShardCounts(shard.sha256, failure=f"{path}: {damage}")
    started = time.monotonic()
    progress_notes.begin_item(shard.sha256)
    result = word_counts.count_shard_words(storage, folder, shard, count_config, progress_notes.add_units)
    word_counts.write_counts(storage, output_dir.word_counts_path(shard.sha256, "arrow"), result)
    shard_counts = ShardCounts(
        sha256=shard.sha256,
        documents=result.documents,
        validation_documents=result.validation_documents,
        tokens=result.words.total(),
        validation_tokens=result.validation_words.total(),
        distinct_words=len(result.words.keys() | result.validation_words.keys()),
    )
    seconds = round(time.monotonic() - started, 3)
    storage.write_json(
        report_path, {"file": shard.file, "seconds": seconds, "shard_counts": asdict(shard_counts)}
    )
    return shard_counts


def merge_bucket(
    storage: Storage, output_dir: OutputDir, sha256s: Iterable[str], bucket: int, min_count: int
) -> BucketCounts:
    """Merge one bucket of all shards, and write its training and validation words as sorted lines."""
    table = word_counts.merge_bucket_counts(
        storage, [output_dir.word_counts_path(sha256, "arrow") for sha256 in sorted(sha256s)], bucket
    )
    _write_lines(
        storage,
        output_dir.merged_bucket_path(bucket, WORDS_FILE),
        word_counts.lines_from_table(table, "count", min_count),
    )
    _write_lines(
        storage,
        output_dir.merged_bucket_path(bucket, VALIDATION_WORDS_FILE),
        word_counts.lines_from_table(table, "validation_count"),
    )
    occurrences = table["count"]
    pruned = table.filter(pc.and_(pc.greater(occurrences, 0), pc.less(occurrences, min_count)))["count"]
    return BucketCounts(
        index=bucket,
        distinct_words=_count_positive(occurrences),
        validation_distinct_words=_count_positive(table["validation_count"]),
        pruned_distinct_words=len(pruned),
        pruned_tokens=pc.sum(pruned, min_count=0).as_py(),
    )


def publish_words(
    storage: Storage,
    output_dir: OutputDir,
    config: dict[str, Any],
    inputs: Sequence[InputDocuments],
    shard_counts: Sequence[ShardCounts],
    bucket_counts: Sequence[BucketCounts],
    run: WordsRun,
) -> str | None:
    """Write the sorted word lists of all buckets, and the manifest last.

    Args:
        config: fields of :class:`WordsConfig`.
        inputs: content of the directories that were read.
        run: facts about this run; the finishing time is added.

    Returns:
        The reason why nothing is published, or None.
    """
    totals = _sum_counts(shard_counts, bucket_counts)
    words_config = msgspec.convert(config, WordsConfig)
    if problem := _find_problem(shard_counts, totals, words_config.min_count):
        return problem
    buckets = sorted(bucket.index for bucket in bucket_counts)
    outputs = []
    for name in (WORDS_FILE, VALIDATION_WORDS_FILE) if words_config.validation_fraction else (WORDS_FILE,):
        paths = [output_dir.merged_bucket_path(bucket, name) for bucket in buckets]
        outputs.append(_merge_files(storage, paths, output_dir.path, name))
    names = {shard.sha256 for shard in shard_counts}
    sweep(
        storage,
        [f"{output_dir.work_folder}/word_counts"],
        (),
        lambda name: name.partition(".")[0] not in names,
    )
    manifest = WordsManifest(
        config=words_config,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        counts=totals,
        run=msgspec.structs.replace(run, finished_at=utc_now()),
    )
    write_manifest(storage, output_dir.manifest_path, manifest)
    return None


def is_up_to_date(storage: Storage, output_dir: OutputDir, inputs: Sequence[DocumentsInput]) -> bool:
    """Return True if the manifest is of these inputs and all files that it lists are in place."""
    manifest = find_manifest(storage, output_dir.path, WordsManifest)
    return (
        manifest is not None
        and list(manifest.inputs) == [documents.summary for documents in inputs]
        and is_complete(storage, output_dir.path, manifest)
    )


def _write_lines(storage: Storage, path: str, lines: Iterator[bytes]) -> Shard:
    """Write lines as they are produced."""
    rows = 0
    with storage.write(path) as file:
        writer = HashingWriter(file)
        while block := list(itertools.islice(lines, _LINES_PER_WRITE)):
            writer.write(b"".join(block))
            rows += len(block)
    return Shard(path.rpartition("/")[2], rows, writer.size, writer.sha256)


def _merge_files(storage: Storage, paths: Sequence[str], folder: str, name: str) -> Shard:
    """Merge sorted files into one."""
    with ExitStack() as stack:
        sorted_files = [stack.enter_context(storage.open(path)) for path in paths]
        return _write_lines(storage, f"{folder}/{name}", word_counts.merge_lines(sorted_files))


def _count_positive(column: pa.ChunkedArray) -> int:
    """Return the number of values above 0."""
    return int(pc.sum(pc.greater(column, 0), min_count=0).as_py())


def _sum_counts(shard_counts: Sequence[ShardCounts], bucket_counts: Sequence[BucketCounts]) -> WordTotals:
    return WordTotals(
        documents=sum(shard.documents for shard in shard_counts),
        tokens=sum(shard.tokens for shard in shard_counts),
        distinct_words=sum(bucket.distinct_words for bucket in bucket_counts),
        pruned=PrunedWords(
            distinct_words=sum(bucket.pruned_distinct_words for bucket in bucket_counts),
            tokens=sum(bucket.pruned_tokens for bucket in bucket_counts),
        ),
        validation=ValidationWords(
            documents=sum(shard.validation_documents for shard in shard_counts),
            tokens=sum(shard.validation_tokens for shard in shard_counts),
            distinct_words=sum(bucket.validation_distinct_words for bucket in bucket_counts),
        ),
    )


def _find_problem(shard_counts: Sequence[ShardCounts], totals: WordTotals, min_count: int) -> str | None:
    """Return the reason why these counts cannot be published, or None."""
    failures = sorted(shard.failure for shard in shard_counts if shard.failure)
    if failures:
        return (
            f"{len(failures)} of {len(shard_counts)} shards cannot be read "
            f"({shorten_list(failures, separator='; ')}). All others are counted. Delete them and rerun "
            "the command that made them; then rerun this one"
        )
    if totals.distinct_words == totals.pruned.distinct_words:
        return (
            f"no word is left: {totals.documents:,} training documents have {totals.distinct_words:,} "
            f"words, all with fewer than {min_count} occurrences. Check --input, --validation-fraction "
            "and --min-count"
        )
    return None
