"""Exact counts of the words of document shards.

Words are counted as written, so that one count serves every vocabulary: :func:`convert_counts` derives the
counts of any casing.  Words of the validation split are counted separately.  The split is drawn by PMID where
a document has one, because an abstract of PubMed and the article of PMC that contains it have different ids:
split by id, their text would be on both sides.

The counts of a shard are an Arrow IPC file with one record batch for each of :data:`NUM_BUCKETS` buckets of
words.  A corpus is merged bucket by bucket, in memory for the distinct words of one bucket.
"""

from __future__ import annotations

import dataclasses
import hashlib
import heapq
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.manifest import CountingConfig, OutputFile, Shard, convert
from bioshards.corpus.shards import document_shards
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.tokenizer.pretokenizer import PretokenizeFn, Pretokenizer

NUM_BUCKETS: Final = 64
"""Number of buckets; the 60 million distinct words of PubMed and PMC make 1 million a bucket."""
PRETOKENIZERS: Final = ("bert", "white-space")
"""Rules that split text into words: BERT's (pretokenizer.py), or at white space, as for SentencePiece.

White space is that of ``str.split``.  Other definitions differ in U+0085 and U+001C to U+001F, which never
occur in documents of bioshards (corpus/sentences replaces them by blanks).
"""
SCHEMA: Final = pa.schema([("word", pa.string()), ("count", pa.int64()), ("validation_count", pa.int64())])
_MAX_PENDING_ROWS: Final = 4_000_000
"""Rows that are added up at once while a bucket is merged, about 200 MB."""
_HASH_RANGE: Final = 1 << 32
_MAX_DIGITS: Final = 18
"""Digits of a count, an int64 in Arrow."""


@dataclass(frozen=True, slots=True)
class CountConfig:
    """How words are counted.

    Attributes:
        pretokenizer: one of :data:`PRETOKENIZERS`.
        validation_fraction: fraction of documents in the validation split, from 0 to below 1.
        seed: seed of the validation split.
    """

    pretokenizer: str = "bert"
    validation_fraction: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.pretokenizer not in PRETOKENIZERS:
            raise InvalidValueError(
                f"pretokenizer {self.pretokenizer} is not one of {', '.join(PRETOKENIZERS)}"
            )
        if not 0 <= self.validation_fraction < 1:
            raise InvalidValueError(f"validation_fraction {self.validation_fraction} is not in [0, 1)")

    @property
    def counting(self) -> CountingConfig:
        """Return the fields for a manifest."""
        return convert(dataclasses.asdict(self), CountingConfig)

    def is_validation(self, document_id: str, pmid: int | None = None) -> bool:
        """Return True if a document is in the validation split, by the PMID, or by the id without one."""
        split_key = document_id if pmid is None else f"pmid:{pmid}"
        digest = hashlib.blake2b(f"{self.seed} {split_key}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) < self.validation_fraction * _HASH_RANGE

    def find_validation(self, batch: pa.RecordBatch) -> pa.Array:
        """Return for each document of a batch whether it is in the validation split."""
        names = zip(batch["id"].to_pylist(), batch["pmid"].to_pylist(), strict=True)
        return pa.array([self.is_validation(document_id, pmid) for document_id, pmid in names], pa.bool_())


class WordCounts(NamedTuple):
    """Unordered occurrences of the words of training and validation documents, and their numbers."""

    words: Counter[str]
    validation_words: Counter[str]
    documents: int
    validation_documents: int


def count_words(batches: Iterable[pa.RecordBatch], count_config: CountConfig) -> WordCounts:
    """Count the words of record batches with the columns ``id``, ``pmid`` and ``sentences``."""
    empty = SCHEMA.empty_table().select(["word", "count"])
    chunks_of_splits = [empty], [empty]  # training, validation
    documents = [0, 0]
    for batch in batches:
        is_validation = count_config.find_validation(batch)
        for split, mask in enumerate((pc.invert(is_validation), is_validation)):
            sentences = batch["sentences"].filter(mask)
            documents[split] += len(sentences)
            chunks = pc.value_counts(pc.split_pattern(sentences.flatten(), " ").flatten())
            columns = {"word": chunks.field("values"), "count": chunks.field("counts")}
            chunks_of_splits[split].append(pa.table(columns))
    words, validation_words = (
        _words_from_chunks(_sum_by_word(chunks, ["count"]), count_config.pretokenizer)
        for chunks in chunks_of_splits
    )
    return WordCounts(words, validation_words, *documents)


def count_shard_words(
    storage: Storage,
    folder: str,
    shard: Shard,
    count_config: CountConfig,
    on_documents: Callable[[int], None],
) -> WordCounts:
    """Count the words of a shard; call ``on_documents`` with each number of counted documents."""

    def iter_batches() -> Iterator[pa.RecordBatch]:
        columns = ["id", "pmid", "sentences"]
        for batch in document_shards.read_checked_file(storage, f"{folder}/{shard.file}", columns):
            yield batch
            on_documents(batch.num_rows)

    return count_words(iter_batches(), count_config)


def convert_counts(counts: Mapping[str, int], pretokenize: PretokenizeFn) -> Counter[str]:
    """Return the counts of the words into which ``pretokenize`` turns each word."""
    converted: Counter[str] = Counter()
    for word, count in counts.items():
        for new_word in pretokenize(word):
            converted[new_word] += count
    return converted


def write_counts(storage: Storage, path: str, word_counts: WordCounts) -> OutputFile:
    """Write the counts of a shard in buckets, sorted, so that equal counts give equal bytes."""
    buckets: list[list[str]] = [[] for _ in range(NUM_BUCKETS)]
    for word in sorted(word_counts.words.keys() | word_counts.validation_words.keys()):
        buckets[zlib.crc32(word.encode()) % NUM_BUCKETS].append(word)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with storage.write(path) as file:
        hashing_file = HashingWriter(file)
        with pa.ipc.new_file(pa.PythonFile(hashing_file, "w"), SCHEMA, options=options) as writer:
            for bucket in buckets:
                counts = [word_counts.words[word] for word in bucket]
                validation_counts = [word_counts.validation_words[word] for word in bucket]
                columns = {"word": bucket, "count": counts, "validation_count": validation_counts}
                writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
    return OutputFile(path.rpartition("/")[2], hashing_file.size, hashing_file.sha256)


def merge_bucket_counts(storage: Storage, paths: Iterable[str], bucket: int) -> pa.Table:
    """Add up one bucket of the counts of all shards, one unordered row of :data:`SCHEMA` per word."""

    def read_bucket(path: str) -> pa.Table:
        with storage.open(path) as file:
            return pa.Table.from_batches([pa.ipc.open_file(file).get_batch(bucket)])

    total, pending, rows = SCHEMA.empty_table(), list[pa.Table](), 0
    for table in prefetch_map(storage, read_bucket, paths):
        pending.append(table)
        rows += len(table)
        if rows > _MAX_PENDING_ROWS:
            total, pending, rows = _sum_by_word([total, *pending], ["count", "validation_count"]), [], 0
    return _sum_by_word([total, *pending], ["count", "validation_count"])


def lines_from_table(table: pa.Table, column: str, min_count: int = 1) -> Iterator[bytes]:
    """Yield sorted lines ``WORD<tab>COUNT`` of the words whose ``column`` is ``min_count`` or more."""
    selected = table.filter(pc.greater_equal(table[column], max(1, min_count))).select(["word", column])
    selected = selected.sort_by([(column, "descending"), ("word", "ascending")])
    for batch in selected.to_batches(max_chunksize=65536):
        for word, occurrences in zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True):
            yield f"{word}\t{occurrences}\n".encode()


def merge_lines(sorted_lines: Sequence[Iterable[bytes]]) -> Iterator[bytes]:
    """Merge sorted sequences of lines."""
    return heapq.merge(*sorted_lines, key=_line_sort_key)


def lines_from_counts(counts: Mapping[str, int], min_count: int = 1) -> Iterator[bytes]:
    """Yield the same lines of counts in memory."""
    columns = {"word": list(counts), "count": list(counts.values())}
    return lines_from_table(pa.table(columns, SCHEMA.remove(2)), "count", min_count)


def read_counts(file: BinaryIO) -> Counter[str]:
    """Read a file of lines ``WORD<tab>COUNT``.

    Raises:
        ValueError: a line is malformed, or the lines are not sorted.
    """
    return read_frequent_counts(file, None)[0]


def read_frequent_counts(file: BinaryIO, max_words: int | None) -> tuple[Counter[str], int]:
    """Read at most the first ``max_words`` lines of a file.

    If there are more, words as rare as the first one left out are left out, too.

    Returns:
        The counts, and a bound: all words with as many occurrences are included.

    Raises:
        ValueError: a line is malformed, or the lines are not sorted.
    """
    word_counts: Counter[str] = Counter()
    last_count = None
    for line_number, line in enumerate(file, 1):
        word, _, count = line.decode().rstrip("\n").rpartition("\t")
        is_number = count.isascii() and count.isdecimal() and len(count) <= _MAX_DIGITS
        if not word or not is_number or (last_count is not None and int(count) > last_count):
            raise InvalidValueError(
                f"line {line_number} is not a word, a tab and a count, the most frequent first: {line[:99]!r}"
            )
        last_count = int(count)
        if len(word_counts) == max_words:
            frequent_words = {word: count for word, count in word_counts.items() if count > last_count}
            return Counter(frequent_words), last_count + 1
        word_counts[word] = last_count
    return word_counts, 1


def _line_sort_key(line: bytes) -> tuple[int, bytes]:
    word, _, occurrences = line.rpartition(b"\t")
    return -int(occurrences), word


def _sum_by_word(tables: Sequence[pa.Table], columns: list[str]) -> pa.Table:
    """Add up the rows of each word."""
    totals = pa.concat_tables(tables).group_by("word").aggregate([(column, "sum") for column in columns])
    totals = totals.select(["word", *(f"{column}_sum" for column in columns)])
    return totals.rename_columns(["word", *columns])


def _words_from_chunks(chunks: pa.Table, pretokenizer: str) -> Counter[str]:
    """Count the words of counted chunks."""
    pretokenize: PretokenizeFn = Pretokenizer() if pretokenizer == "bert" else str.split
    word_counts: dict[str, int] = {}  # a Counter takes longer to add a word
    for chunk, count in zip(chunks["word"].to_pylist(), chunks["count"].to_pylist(), strict=True):
        if chunk.isascii():
            words = [chunk] if chunk.isalnum() else pretokenize(chunk)
        else:
            words = pretokenize(unicodedata.normalize("NFC", chunk))
        for word in words:
            word_counts[word] = word_counts.get(word, 0) + count
    return Counter(word_counts)
