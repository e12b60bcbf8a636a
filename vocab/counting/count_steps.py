"""Steps of counting words: count a shard, merge a bucket, publish.

Each call handles one shard or bucket.  Only names and small reports pass between calls and words stay in
files, so that calls may run anywhere and in any order (``beam run shards_to_words``).  The counts of a shard
are named by its SHA-256: an unchanged shard is counted once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

import msgspec
import pyarrow.compute as pc

from bioshards.corpus import progress_notes
from bioshards.corpus.errors import shorten_list
from bioshards.corpus.lifecycle.job import PublishResult, finish_manifest, make_key
from bioshards.corpus.manifest import (
    InputDocuments,
    OutputFile,
    PrunedWords,
    Shard,
    ValidationWords,
    WordsConfig,
    WordsManifest,
    WordsRun,
    WordTotals,
    convert,
    find_damage,
    sweep,
    write_manifest,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import CountConfig

WORDS_FILE: Final = "words.tsv"
VALIDATION_WORDS_FILE: Final = "validation-words.tsv"
_LINES_PER_WRITE: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsJob:
    """Document shards to word counts: what each step gets, whole.

    Attributes:
        config, inputs: as the manifest has them; the options that fix the bytes of the output.
        run: facts about this run; the last step completes them.
    """

    storage: Storage
    output: OutputDir
    config: WordsConfig
    inputs: tuple[InputDocuments, ...]
    run: WordsRun

    @property
    def count_config(self) -> CountConfig:
        """Return how words are counted."""
        config = self.config
        return CountConfig(config.pretokenizer, config.validation_fraction, config.seed)

    @property
    def inputs_key(self) -> str:
        """Return the key of the inputs, by which a finished output is known."""
        return make_key(msgspec.to_builtins(self.inputs))


@dataclass(frozen=True, slots=True)
class ShardCounts:
    """Result of counting one shard.

    Attributes:
        sha256: SHA-256 of the shard; names its counts in the work folder.
        documents, tokens: of the training split; tokens are occurrences of words.
        distinct_words: distinct words of both splits.
        failure: reason why the shard cannot be read; None if it was counted.
        is_cached: True if it was counted by an earlier run.
    """

    sha256: str
    documents: int = 0
    validation_documents: int = 0
    tokens: int = 0
    validation_tokens: int = 0
    distinct_words: int = 0
    failure: str | None = None
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        names = ("documents", "tokens", "validation_documents", "validation_tokens")
        counts = {name: getattr(self, name) for name in names}
        return {"skipped": int(self.is_cached), "failed": int(self.failure is not None), **counts}


@dataclass(frozen=True, slots=True)
class BucketCounts:
    """Counts of one bucket of words of all shards; ``pruned_*`` are of words below ``min_count``."""

    index: int
    distinct_words: int
    validation_distinct_words: int
    pruned_distinct_words: int
    pruned_tokens: int

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        names = ("distinct_words", "validation_distinct_words", "pruned_distinct_words")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class _Report:
    """Report on a counted shard, a JSON file beside its counts.

    Attributes:
        counts_file: the counts.
        key: of the other fields, by which a damaged report is known.
    """

    shard_counts: ShardCounts
    counts_file: OutputFile
    key: str

    @classmethod
    def make(cls, shard_counts: ShardCounts, counts_file: OutputFile) -> _Report:
        """Return the report with its key."""
        key = make_key(msgspec.to_builtins([shard_counts, counts_file]))
        return cls(shard_counts, counts_file, key)


def _find_counted(storage: Storage, report_path: str, counts_path: str) -> ShardCounts | None:
    """Return the counts of a shard by an earlier run; None if there are none, or they are damaged."""
    try:
        report = convert(storage.read_json(report_path), _Report)
    except (FileNotFoundError, ValueError, msgspec.ValidationError):
        return None
    is_same = report == _Report.make(report.shard_counts, report.counts_file)
    if not is_same or find_damage(storage, counts_path, report.counts_file):
        return None
    return dataclasses.replace(report.shard_counts, is_cached=True)


def count_shard(job: WordsJob, folder_and_shard: tuple[str, Shard]) -> ShardCounts:
    """Count a shard of a directory, or return its cached counts."""
    storage, output = job.storage, job.output
    folder, shard = folder_and_shard
    progress_notes.begin_item(shard.rows)
    report_path = output.word_counts_path(shard.sha256, "json")
    counts_path = output.word_counts_path(shard.sha256, "arrow")
    if cached := _find_counted(storage, report_path, counts_path):
        return cached
    path = f"{folder}/{shard.file}"
    if damage := find_damage(storage, path, shard):
        return ShardCounts(shard.sha256, failure=f"{path}: {damage}")
    result = word_counts.count_shard_words(storage, folder, shard, job.count_config, progress_notes.add_units)
    counts_file = word_counts.write_counts(storage, counts_path, result)
    shard_counts = ShardCounts(
        sha256=shard.sha256,
        documents=result.documents,
        validation_documents=result.validation_documents,
        tokens=result.words.total(),
        validation_tokens=result.validation_words.total(),
        distinct_words=len(result.words.keys() | result.validation_words.keys()),
    )
    storage.write_json(report_path, msgspec.to_builtins(_Report.make(shard_counts, counts_file)))
    return shard_counts


def list_buckets(job: WordsJob, counted: Sequence[ShardCounts]) -> range:
    """List the buckets of words; none if a shard is damaged."""
    return range(0 if any(shard.failure for shard in counted) else word_counts.NUM_BUCKETS)


def merge_bucket(job: WordsJob, bucket: int, counted: Sequence[ShardCounts]) -> BucketCounts:
    """Merge one bucket of all shards, and write its training and validation words as sorted lines."""
    storage, output, min_count = job.storage, job.output, job.config.min_count
    paths = [output.word_counts_path(sha256, "arrow") for sha256 in sorted(shard.sha256 for shard in counted)]
    table = word_counts.merge_bucket_counts(storage, paths, bucket)
    words = word_counts.lines_from_table(table, "count", min_count)
    validation_words = word_counts.lines_from_table(table, "validation_count")
    for name, lines in ((WORDS_FILE, words), (VALIDATION_WORDS_FILE, validation_words)):
        _write_lines(storage, output.merged_bucket_path(bucket, name), lines)
    counts = table["count"].filter(pc.greater(table["count"], 0))
    pruned = counts.filter(pc.less(counts, min_count))
    return BucketCounts(
        index=bucket,
        distinct_words=len(counts),
        validation_distinct_words=len(table.filter(pc.greater(table["validation_count"], 0))),
        pruned_distinct_words=len(pruned),
        pruned_tokens=pc.sum(pruned, min_count=0).as_py(),
    )


def publish(job: WordsJob, counted: Sequence[ShardCounts], merged: Sequence[BucketCounts]) -> PublishResult:
    """Write the sorted word lists of all buckets, and the manifest last."""
    storage, output = job.storage, job.output
    totals = _sum_counts(counted, merged)
    if problem := _find_problem(counted, totals, job.config.min_count):
        return PublishResult(problem)
    outputs = []
    for name in (WORDS_FILE, VALIDATION_WORDS_FILE) if job.config.validation_fraction else (WORDS_FILE,):
        with ExitStack() as stack:
            paths = [
                output.merged_bucket_path(bucket, name) for bucket in sorted(one.index for one in merged)
            ]
            sorted_files = [stack.enter_context(storage.open(path)) for path in paths]
            lines = word_counts.merge_lines(sorted_files)
            outputs.append(_write_lines(storage, f"{output.path}/{name}", lines))
    names = {shard.sha256 for shard in counted}
    sweep(storage, [output.work_path("word_counts")], (), lambda name: name.partition(".")[0] not in names)
    manifest = WordsManifest(
        config=job.config, inputs=job.inputs, outputs=tuple(outputs), counts=totals, run=job.run
    )
    write_manifest(storage, output.manifest_path, finish_manifest(manifest, job.inputs_key))
    return PublishResult(None)


def _write_lines(storage: Storage, path: str, lines: Iterator[bytes]) -> Shard:
    """Write lines as they are produced."""
    rows = 0
    with storage.write(path) as file:
        writer = HashingWriter(file)
        while block := list(itertools.islice(lines, _LINES_PER_WRITE)):
            writer.write(b"".join(block))
            rows += len(block)
    return Shard(path.rpartition("/")[2], rows, writer.size, writer.sha256)


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
