"""Exact counts of the words of document shards: what vocabularies are trained on and measured with.

Words are counted as written, so that one count serves every vocabulary: ``recased`` makes the counts of any
casing of them.  Of documents held out the words are counted apart, to measure a vocabulary on text that it
was not trained on.  They are drawn by PMID where they have one: an abstract of PubMed and the article of PMC
that begins with it have ids of their own, and were one held out and not the other, its text would be on both
sides.

A shard's counts are an Arrow IPC file with a record batch for each of :data:`BUCKETS` buckets of words, so
that a corpus' counts are merged bucket by bucket, in memory that grows with a bucket's distinct words only.
"""

from __future__ import annotations

import hashlib
import heapq
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import shards
from bioshards.corpus.ahead import ahead
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.shards import Shard

from .words import Split, Words

BUCKETS: Final = 64
"""60 million distinct words, as the whole of PubMed and PMC may have, are 1 million a bucket."""
KINDS: Final = ("bert", "white-space")
"""A word is what BERT takes for one (words.py), or what stands between white space, as for SentencePiece.

White space is that of Python's ``str.split``.  Others disagree on U+0085 and U+001C to U+001F, of which there
is none in documents of bioshards: one_line (corpus/sentences.py) makes blanks of them.
"""
SCHEMA: Final = pa.schema([("word", pa.string()), ("count", pa.int64()), ("held_out", pa.int64())])
_WAITING_ROWS: Final = 4_000_000
"""Rows of shards that wait to be added up while a bucket is merged: some 200 MB."""
_DRAWS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Counting:
    """What is counted.

    Attributes:
        kind: one of :data:`KINDS`.
        hold_out: the share of documents whose words are counted apart, 0 to below 1.
        seed: with a document's PMID, or its id where it has none, it decides whether that one is held out,
            whatever else is in the corpus.
    """

    kind: str = "bert"
    hold_out: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidValueError(f"kind is {self.kind}; it must be one of {', '.join(KINDS)}")
        if not 0 <= self.hold_out < 1:
            raise InvalidValueError(f"hold_out is {self.hold_out}; it must be a share from 0 to below 1")

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a manifest."""
        return {"kind": self.kind, "validation_fraction": self.hold_out, "seed": self.seed}

    def held_out(self, id_: str, pmid: int | None = None) -> bool:
        """Is the document of this id, and of this PMID if it has one, held out?"""
        name = id_ if pmid is None else f"pmid:{pmid}"
        digest = hashlib.blake2b(f"{self.seed} {name}".encode(), digest_size=4).digest()
        return int.from_bytes(digest) < self.hold_out * _DRAWS


class Counted(NamedTuple):
    """The words of some documents, how often each occurs; in no order.

    Attributes:
        words: of the documents to train on; ``held_out``: of those held out.
        documents: how many there are of the first, and ``held_out_documents`` of the second.
    """

    words: Counter[str]
    held_out: Counter[str]
    documents: int
    held_out_documents: int


def count(batches: Iterable[pa.RecordBatch], counting: Counting) -> Counted:
    """Count the words of documents: record batches with the columns ``id``, ``pmid`` and ``sentences``."""
    empty = SCHEMA.empty_table().select(["word", "count"])
    kept, held = [empty], [empty]
    documents = [0, 0]
    for batch in batches:
        names = zip(batch["id"].to_pylist(), batch["pmid"].to_pylist(), strict=True)
        apart = pa.array([counting.held_out(id_, pmid) for id_, pmid in names], pa.bool_())
        for which, (chunks, mask) in enumerate(((kept, pc.invert(apart)), (held, apart))):
            sentences = batch["sentences"].filter(mask)
            documents[which] += len(sentences)
            chunks.append(_chunks(sentences.flatten()))
    words, held_out = (_words(_summed(chunks, ["count"]), counting.kind) for chunks in (kept, held))
    return Counted(words, held_out, *documents)


def of_shard(files: LocalFiles, folder: str, shard: Shard, counting: Counting) -> Counted:
    """The words of one of a finished directory's shards, as its manifest lists it."""
    return count(shards.read_some(files, folder, [shard], ["id", "pmid", "sentences"]), counting)


def recased(counts: Mapping[str, int], words: Split) -> Counter[str]:
    """The counts of what ``words`` makes of each word: another casing's, of words counted as written."""
    found: Counter[str] = Counter()
    for word, number in counts.items():
        for part in words(word):
            found[part] += number
    return found


def write(files: LocalFiles, path: str, counted: Counted) -> None:
    """Write one shard's counts, in buckets and sorted, so that the same counts are the same bytes."""
    buckets: list[list[str]] = [[] for _ in range(BUCKETS)]
    for word in sorted(counted.words.keys() | counted.held_out.keys()):
        buckets[zlib.crc32(word.encode()) % BUCKETS].append(word)
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with files.write(path) as file, pa.ipc.new_file(pa.PythonFile(file, "w"), SCHEMA, options=options) as out:
        for bucket in buckets:
            columns = [bucket, [counted.words[w] for w in bucket], [counted.held_out[w] for w in bucket]]
            arrays = [pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)]
            out.write_batch(pa.record_batch(arrays, schema=SCHEMA))


def merge(files: LocalFiles, paths: Iterable[str], bucket: int) -> pa.Table:
    """One bucket of all shards' counts added up: a row of :data:`SCHEMA` for each word, in no order."""

    def part(path: str) -> pa.Table:
        with files.open(path) as file:
            return pa.Table.from_batches([pa.ipc.open_file(file).get_batch(bucket)])

    total, waiting = SCHEMA.empty_table(), [SCHEMA.empty_table()]
    for table in ahead(files, part, paths):
        waiting.append(table)
        if sum(map(len, waiting)) > _WAITING_ROWS:
            total, waiting = _summed([total, *waiting], ["count", "held_out"]), []
    return _summed([total, *waiting], ["count", "held_out"])


def lines(table: pa.Table, column: str, min_count: int = 1) -> Iterator[bytes]:
    """Lines ``WORD<tab>COUNT`` of words that ``column`` counts so often: the rarest last, then by word."""
    wanted = table.filter(pc.greater_equal(table[column], max(1, min_count)))
    order = pc.sort_indices(wanted, [(column, "descending"), ("word", "ascending")])
    wanted = wanted.take(order)
    for batch in wanted.select(["word", column]).to_batches(max_chunksize=65536):
        for word, number in zip(batch[0].to_pylist(), batch[1].to_pylist(), strict=True):
            yield f"{word}\t{number}\n".encode()


def merge_lines(sorted_lines: Sequence[Iterable[bytes]]) -> Iterator[bytes]:
    """Lines of several sorted sources as one sorted sequence."""
    return heapq.merge(*sorted_lines, key=_rank)


def as_lines(counts: Mapping[str, int], min_count: int = 1) -> Iterator[bytes]:
    """The same lines of counts that are in memory."""
    wanted = ((word, number) for word, number in counts.items() if number >= max(1, min_count))
    for word, number in sorted(wanted, key=lambda pair: (-pair[1], pair[0])):
        yield f"{word}\t{number}\n".encode()


def read(file: BinaryIO) -> Counter[str]:
    """The counts of a file of such lines.

    Raises:
        ValueError: a line is no word and count, or the lines are not sorted.
    """
    return read_frequent(file, None)[0]


def read_frequent(file: BinaryIO, max_words: int | None) -> tuple[Counter[str], int]:
    """The counts of a file of such lines, its first ``max_words`` at most; nothing behind them is read.

    Where there are more, words as rare as the first one left out are left out too.

    Returns:
        The counts, and a bound: all words that occur so often are among them.

    Raises:
        ValueError: a line is no word and count, or the lines are not sorted.
    """
    found: Counter[str] = Counter()
    last = None
    for number, line in enumerate(file, 1):
        word, tab, count = line.decode().rstrip("\n").rpartition("\t")
        if not tab or not word or not count.isdecimal() or (last is not None and int(count) > last):
            raise InvalidValueError(
                f"line {number} is not a word, a tab and a count, the most frequent first: {line!r}"
            )
        last = int(count)
        if len(found) == max_words:
            return Counter({word: count for word, count in found.items() if count > last}), last + 1
        found[word] = last
    return found, 1


def _rank(line: bytes) -> tuple[int, bytes]:
    word, _, number = line.rpartition(b"\t")
    return -int(number), word


def _chunks(sentences: pa.StringArray) -> pa.Table:
    """What stands between blanks, how often each."""
    counted = pc.value_counts(pc.split_pattern(sentences, " ").flatten())
    return pa.table({"word": counted.field("values"), "count": counted.field("counts")})


def _summed(tables: Sequence[pa.Table], columns: list[str]) -> pa.Table:
    """The rows of tables, those of one word added up."""
    sums = pa.concat_tables(tables).group_by("word").aggregate([(column, "sum") for column in columns])
    return sums.select(["word", *(f"{column}_sum" for column in columns)]).rename_columns(["word", *columns])


def _words(chunks: pa.Table, kind: str) -> Counter[str]:
    """The words of chunks, how often each."""
    words: Split = Words() if kind == "bert" else str.split
    plain = pc.ascii_is_alnum(chunks["word"])
    found: Counter[str] = Counter(_pairs(chunks.filter(plain)))
    for chunk, number in _pairs(chunks.filter(pc.invert(plain))).items():
        for word in words(chunk if chunk.isascii() else unicodedata.normalize("NFC", chunk)):
            found[word] += number
    return found


def _pairs(table: pa.Table) -> dict[str, int]:
    return dict(zip(table["word"].to_pylist(), table["count"].to_pylist(), strict=True))
