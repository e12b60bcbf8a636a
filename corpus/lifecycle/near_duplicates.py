"""Near duplicates of documents by MinHash signatures and bands (locality-sensitive hashing).

The similarity of two documents is the Jaccard similarity of their sets of shingles, runs of
:data:`SHINGLE_WORDS` consecutive words; words are compared without case, punctuation and compatibility
forms.  A signature has :data:`NUM_HASHES` values, each the minimum of a hash function over the shingles, and
the fraction of equal values estimates the similarity (Broder 1997).  Documents are compared if all values of
a band are equal, and linked if the estimate is at least :data:`THRESHOLD`.  Of the documents that links
connect one is kept: the one of the latest year of publication; of the same year, the one of the lowest number
(PMID, PMCID), then the lowest id.

:func:`compute_drop_probability` gives the errors.  A pair of similarity 0.6 is linked with a probability of
0.000002, of 0.7 with 0.009, of 0.75 with 0.12, of 0.8 with 0.55, of 0.85 with 0.95, of 0.9 with 0.9997.

A document of fewer than :data:`MIN_WORDS` words is one shingle, and so has duplicates of exactly its words
only: in a shorter text a single changed word takes the similarity below the threshold, and what passes are
forms such as "Comment on" with another end.  Documents without an abstract are not compared.

Memory is bounded by :data:`KEYS_PER_BUCKET` keys of one band, and by the linked documents.  The signatures of
a source are a file, written in large batches, so that a column is few ranges of it.
"""

from __future__ import annotations

import functools
import math
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bioshards.corpus import splitmix
from bioshards.corpus.lifecycle import decisions
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

THRESHOLD: Final = 0.8
"""Lowest estimated similarity of near duplicates."""
SHINGLE_WORDS: Final = 5
"""Words in a shingle."""
NUM_BANDS: Final = 20
BAND_ROWS: Final = 6
"""Values in a band.  Of at most 128 values, 20 of 6 are the longest bands that miss less than 1 % of the
pairs at the threshold (0.2 %; 18 of 7 miss 1.5 %); 73 % of the pairs of similarity 0.5 are not even compared.
"""
NUM_HASHES: Final = NUM_BANDS * BAND_ROWS
_MIN_AGREEMENTS: Final = math.ceil(THRESHOLD * NUM_HASHES - 1e-9)
MIN_WORDS: Final = 50
"""Words from which a document has shingles.  A changed word is in five shingles, and (n - 5) / (n + 5) is
0.8 at n = 45 shingles, 49 words."""
KEYS_PER_BUCKET: Final = 16_000_000
"""Keys of a band that are compared at a time: 0.7 GB (tests/bench/bench_near_duplicates.py)."""
MAX_RUN_DISTANCE: Final = 64
"""Each signature is compared with this many next ones of the same band, in the order of their digests, which
bounds the time that a band of boilerplate takes."""

BAND_COLUMNS: Final = tuple(f"band_{band:02d}" for band in range(NUM_BANDS))
SIGNATURE_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("year", pa.int16()),
        pa.field("digest", pa.uint64(), nullable=False),
        *(pa.field(name, pa.binary(4 * BAND_ROWS), nullable=False) for name in BAND_COLUMNS),
    ]
)
"""A document to compare: ``digest`` is of the whole signature, a band is :data:`BAND_ROWS` values (uint32,
little-endian).  A column is read at a time."""

ColumnReader = Callable[[Sequence[str]], pa.Table]
"""Reads columns of the surviving documents of a source, always the same documents in the same order."""

UInt8Array = NDArray[np.uint8]
UInt32Array = NDArray[np.uint32]
UInt64Array = NDArray[np.uint64]
Int64Array = NDArray[np.int64]

DUPLICATES_HEADER: Final = b"id\tduplicate_of\tsimilarity\n"
_BATCH_DOCUMENTS: Final = 65_536
"""Documents in a batch of signatures: 33 MB."""
_CANDIDATE_SCHEMA: Final = pa.schema([pa.field("pair", pa.uint64(), nullable=False)])

_SEED: Final = 25
_TEXT_BASE: Final = 0x9E3779B97F4A7C15
"""Base of the polynomial hash of text; odd, so that it has an inverse modulo 2**64."""
_SHINGLES_PER_BLOCK: Final = 512
_PAIRS_PER_BLOCK: Final = 1_000_000
_SPACE: Final = ord(" ")
_WORD_BYTES: Final = (string.ascii_lowercase + string.digits).encode()
_SPACE_FOR_OTHERS: Final = bytes(
    code if code in _WORD_BYTES or code >= 128 else _SPACE for code in range(256)
)
"""Translation of ASCII characters other than lower-case letters and digits."""
_NO_WORD: Final = re.compile(r"[^\w ]+")


def _draw(stream: int, count: int) -> UInt64Array:
    """Draw constants: SplitMix64 of the seed, apart for each stream."""
    indices = np.arange(1, count + 1, dtype=np.uint64) + np.uint64((_SEED << 16) + (stream << 10))
    return splitmix.mix(indices * np.uint64(_TEXT_BASE))


def _cumulate_powers(base: np.uint64, count: int) -> UInt64Array:
    """Return the powers of a number modulo 2**64, from exponent 0."""
    factors = np.full(count, base)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


_POWERS: Final = _cumulate_powers(np.uint64(_TEXT_BASE), 4096)
_INVERSE_POWERS: Final = _cumulate_powers(np.uint64(pow(_TEXT_BASE, -1, 1 << 64)), 4096)
# Multiply-shift (Dietzfelbinger 1996): x -> (a x + b mod 2**64) >> 32 is strongly universal for 32-bit x.
_FACTORS: Final = _draw(0, NUM_HASHES)[:, None]
_TERMS: Final = _draw(1, NUM_HASHES)[:, None]
_ROW_FACTORS: Final = _draw(2, NUM_HASHES // 2) | np.uint64(1)


def compute_drop_probability(similarity: float) -> float:
    """Compute the probability that two documents of this Jaccard similarity are linked.

    The values of a signature agree independently of each other with this probability.  A pair is linked if a
    band agrees as a whole and the fraction of agreeing values reaches :data:`THRESHOLD`.
    """
    band = np.array(
        [
            math.comb(BAND_ROWS, count) * similarity**count * (1 - similarity) ** (BAND_ROWS - count)
            for count in range(BAND_ROWS + 1)
        ]
    )
    all_pairs, without_equal_band = np.ones(1), np.ones(1)
    for _ in range(NUM_BANDS):
        all_pairs = np.convolve(all_pairs, band)
        without_equal_band = np.convolve(without_equal_band, band[:-1])
    return float(all_pairs[_MIN_AGREEMENTS:].sum() - without_equal_band[_MIN_AGREEMENTS:].sum())


def compute_signature(title: str, abstract: Iterable[str]) -> UInt32Array | None:
    """Compute the MinHash signature of a document.

    Args:
        title: title, may be empty.
        abstract: texts of the abstract, in order.

    Returns:
        :data:`NUM_HASHES` values; None if the abstract has no letter or digit, so that the document is not
        compared.
    """
    text = normalise_words(" ".join(abstract))
    if not text:
        return None
    shingles = _hash_shingles(b" ".join(filter(None, (normalise_words(title), text))))
    lowest = np.full(NUM_HASHES, np.iinfo(np.uint64).max, np.uint64)
    for start in range(0, len(shingles), _SHINGLES_PER_BLOCK):
        hashes = _FACTORS * shingles[start : start + _SHINGLES_PER_BLOCK]
        hashes += _TERMS
        np.minimum(lowest, hashes.min(axis=1), out=lowest)
    return (lowest >> np.uint64(32)).astype(np.uint32)


def normalise_words(text: str) -> bytes:
    """Return the words of a text in UTF-8 with one space between: runs of letters and digits, case folded."""
    if text.isascii():
        return b" ".join(text.lower().encode().translate(_SPACE_FOR_OTHERS).split())
    # As in decisions.py.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = folded.encode().translate(_SPACE_FOR_OTHERS).decode()
    return b" ".join(_NO_WORD.sub(" ", words).encode().split())


def _hash_shingles(words: bytes) -> UInt64Array:
    """Hash every shingle to 32 bits: polynomial hashes by differences of prefix sums, mixed."""
    codes = np.frombuffer(words, np.uint8)
    prefixes = np.zeros(len(codes) + 1, np.uint64)
    np.cumsum(codes * _find_powers(_POWERS, len(codes)), out=prefixes[1:])
    spaces = np.flatnonzero(codes == _SPACE)
    if len(spaces) + 1 < MIN_WORDS:
        starts, ends = np.zeros(1, np.int64), np.array([len(codes)])
    else:
        starts = np.concatenate([[0], spaces[: 1 - SHINGLE_WORDS] + 1])
        ends = np.concatenate([spaces[SHINGLE_WORDS - 1 :], [len(codes)]])
    inverse_powers = _find_powers(_INVERSE_POWERS, int(starts[-1]) + 1)
    return splitmix.mix((prefixes[ends] - prefixes[starts]) * inverse_powers[starts]) >> np.uint64(32)


def _find_powers(known: UInt64Array, count: int) -> UInt64Array:
    """Return powers from exponent 0, computed if the known ones are too few."""
    return known[:count] if count <= len(known) else _cumulate_powers(known[1], count)


def make_signature_batch(
    rows: Sequence[tuple[int, str, int, int | None]], signatures: Sequence[UInt32Array]
) -> pa.RecordBatch:
    """Make a batch of :data:`SIGNATURE_SCHEMA`.

    Args:
        rows: key, id, position and year of publication of each document.
        signatures: their signatures.
    """
    values = np.array(signatures, "<u4").reshape(-1, NUM_HASHES)
    keys, ids, positions, years = zip(*rows, strict=True) if rows else ((), (), (), ())
    metadata = [
        pa.array(column, field.type)
        for column, field in zip((keys, ids, positions, years), SIGNATURE_SCHEMA, strict=False)
    ]
    bands = [
        pa.Array.from_buffers(pa.binary(4 * BAND_ROWS), len(values), [None, pa.py_buffer(band.tobytes())])
        for band in np.split(values, NUM_BANDS, axis=1)
    ]
    digests = pa.array(_hash_rows(values.view("<u8")))
    return pa.RecordBatch.from_arrays([*metadata, digests, *bands], schema=SIGNATURE_SCHEMA)


def _hash_rows(values: UInt64Array) -> UInt64Array:
    """Hash each row of a matrix to 64 bits."""
    return splitmix.mix((values * _ROW_FACTORS[: values.shape[1]]).sum(axis=1, dtype=np.uint64))


def _read_band(table: pa.Table, band: int) -> UInt8Array:
    """Return the bytes of a band, a row each."""
    column = table[BAND_COLUMNS[band]].combine_chunks()
    data = np.frombuffer(column.buffers()[1] or b"", np.uint8)
    width = 4 * BAND_ROWS
    return data[column.offset * width : (column.offset + len(column)) * width].reshape(-1, width)


# Files of signatures


class SignatureWriter(ExitStack):
    """Writes the signatures of the documents of a source; the file appears when the block ends."""

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._file = HashingWriter(self.enter_context(storage.write(path)))
        self._writer = self.enter_context(pa.ipc.new_file(pa.PythonFile(self._file, "w"), SIGNATURE_SCHEMA))
        self._rows: list[tuple[int, str, int, int | None]] = []
        self._signatures: list[UInt32Array] = []
        self.callback(self._write_batch)

    @property
    def sha256(self) -> str:
        """SHA-256 of the file, once the block has ended."""
        return self._file.sha256

    def add(
        self, key: int, document_id: str, position: int, year: int | None, title: str, abstract: Iterable[str]
    ) -> None:
        """Add a document; one without an abstract is left out."""
        signature = compute_signature(title, abstract)
        if signature is not None:
            self._rows.append((key, document_id, position, year))
            self._signatures.append(signature)
            if len(self._rows) == _BATCH_DOCUMENTS:
                self._write_batch()

    def _write_batch(self) -> None:
        self._writer.write_batch(make_signature_batch(self._rows, self._signatures))
        self._rows, self._signatures = [], []


@dataclass(frozen=True, slots=True)
class SignatureSource:
    """The signatures of the documents of a source.

    Attributes:
        path: file of :class:`SignatureWriter`; None if there is none.
        dropped_positions: positions of documents that are dropped for other reasons.
    """

    path: str | None
    dropped_positions: pa.Array | None = None


# Candidates and links


def count_buckets(num_documents: int) -> int:
    """Return the number of buckets of a band for this number of documents."""
    return max(1, -(-num_documents // KEYS_PER_BUCKET))


class SignatureTable:
    """The signatures of the surviving documents of all sources, read a column at a time.

    Documents are numbered over all sources, in the order of the readers.
    """

    def __init__(self, storage: Storage, readers: Sequence[ColumnReader]) -> None:
        """Count the documents.

        Args:
            readers: read :data:`SIGNATURE_SCHEMA` of each source.
        """
        self._storage, self._readers = storage, readers
        positions = prefetch_map(storage, lambda reader: reader(["position"]), readers)
        self._starts = np.cumsum([0] + [table.num_rows for table in positions])

    def find_candidates(self, band: int, bucket: int, num_buckets: int) -> UInt64Array:
        """Find the pairs of documents that agree in a band, enough of them to connect near duplicates.

        Documents of the same signature are linked in a chain, by the first band; one of them is compared with
        others.

        Args:
            band: number of the band.
            bucket: number of the range of keys.
            num_buckets: number of equal ranges of the keys of a band.

        Returns:
            Pairs of numbers, each ``lower << 32 | higher``, sorted.
        """
        first_key, last_key = ((number << 64) // num_buckets for number in (bucket, bucket + 1))
        key_parts, number_parts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
        tables = prefetch_map(self._storage, lambda reader: reader([BAND_COLUMNS[band]]), self._readers)
        for start, table in zip(self._starts, tables, strict=False):
            keys = _hash_rows(_read_band(table, band).view("<u8"))
            rows = np.flatnonzero((keys >= np.uint64(first_key)) & (keys <= np.uint64(last_key - 1)))
            key_parts.append(keys[rows])
            number_parts.append(rows + start)
        keys, numbers = np.concatenate(key_parts), np.concatenate(number_parts)
        del key_parts, number_parts
        order = np.argsort(keys)
        ordered = keys[order]
        is_repeated = ordered[1:] == ordered[:-1]
        del ordered
        in_run = np.append(is_repeated, False) | np.append(False, is_repeated)
        chosen = np.sort(order[in_run[: len(order)]])
        if not len(chosen):
            return np.zeros(0, np.uint64)
        keys, numbers = keys[chosen], numbers[chosen]
        digests = self._read_rows(["digest"], numbers)["digest"].to_numpy()
        return _pair_runs(keys, digests, numbers, should_link_copies=band == 0)

    def find_near_duplicates(self, candidates: UInt64Array) -> Iterator[pa.RecordBatch]:
        """Yield the near duplicates: a batch of :data:`~.decisions.DECISION_SCHEMA` per source, in order.

        Args:
            candidates: pairs of all bands and buckets, in any order.
        """
        candidates = np.unique(candidates)
        firsts, seconds = _split_pairs(candidates)
        is_linked = self._count_agreements(firsts, seconds) >= _MIN_AGREEMENTS
        firsts, seconds = firsts[is_linked], seconds[is_linked]
        numbers = np.unique(np.concatenate([firsts, seconds]))
        documents = self._read_rows(["key", "id", "position", "year"], numbers)
        order = pc.sort_indices(
            documents, [("year", "descending"), ("key", "ascending"), ("id", "ascending")]
        ).to_numpy()
        ranks = np.argsort(order)
        first_ranks, second_ranks = (ranks[np.searchsorted(numbers, ends)] for ends in (firsts, seconds))
        lowest_ranks = find_components(first_ranks, second_ranks, len(numbers))
        dropped_ranks = np.flatnonzero(lowest_ranks != np.arange(len(numbers)))
        dropped, kept = order[dropped_ranks], order[lowest_ranks[dropped_ranks]]
        agreements = self._count_agreements(numbers[dropped], numbers[kept])
        reason = decisions.DECISION_REASONS.index("near-duplicate").as_py()
        sources = np.searchsorted(self._starts, numbers[dropped], side="right") - 1
        yield from decisions.split_by_source(
            pa.table(
                {
                    "source": pa.array(sources, pa.int32()),
                    "position": documents["position"].take(dropped),
                    "reason": pa.repeat(pa.scalar(reason, pa.int8()), len(dropped)),
                    "duplicate_of": documents["id"].take(kept),
                    "similarity": pa.array(agreements / NUM_HASHES, pa.float32()),
                }
            ),
            len(self._readers),
        )

    def _count_agreements(self, firsts: Int64Array, seconds: Int64Array) -> Int64Array:
        """Count the equal values of pairs of signatures, a band at a time."""
        numbers = np.unique(np.concatenate([firsts, seconds]))
        first_rows, second_rows = np.searchsorted(numbers, firsts), np.searchsorted(numbers, seconds)
        agreements = np.zeros(len(firsts), np.int64)
        for band, name in enumerate(BAND_COLUMNS):
            values = _read_band(self._read_rows([name], numbers), band).view("<u4")
            for start in range(0, len(firsts), _PAIRS_PER_BLOCK):
                block = slice(start, start + _PAIRS_PER_BLOCK)
                agreements[block] += (values[first_rows[block]] == values[second_rows[block]]).sum(axis=1)
        return agreements

    def _read_rows(self, columns: Sequence[str], numbers: Int64Array) -> pa.Table:
        """Read columns of documents, whose numbers are sorted."""
        bounds = np.searchsorted(numbers, self._starts)

        def read_source(source: int) -> pa.Table:
            rows = numbers[bounds[source] : bounds[source + 1]] - self._starts[source]
            return self._readers[source](columns).take(rows)

        sources = np.flatnonzero(np.diff(bounds)).tolist()
        schema = pa.schema([SIGNATURE_SCHEMA.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *prefetch_map(self._storage, read_source, sources)])


def find_components(firsts: Int64Array, seconds: Int64Array, num_nodes: int) -> Int64Array:
    """Return the lowest node of the connected component of each node.

    Roots are hooked to lower neighbouring roots, and paths are halved, until no edge connects two roots.
    """
    labels = np.arange(num_nodes)
    while True:
        first_roots, second_roots = labels[firsts], labels[seconds]
        is_apart = first_roots != second_roots
        if not is_apart.any():
            return labels
        firsts, seconds = firsts[is_apart], seconds[is_apart]
        first_roots, second_roots = first_roots[is_apart], second_roots[is_apart]
        np.minimum.at(labels, np.maximum(first_roots, second_roots), np.minimum(first_roots, second_roots))
        while (parents := labels[labels]).tobytes() != labels.tobytes():
            labels = parents


def _pair_runs(
    keys: UInt64Array, digests: UInt64Array, numbers: Int64Array, should_link_copies: bool
) -> UInt64Array:
    """Return the pairs of documents with equal keys, at most :data:`MAX_RUN_DISTANCE` signatures apart."""
    order = np.lexsort((digests, keys))
    keys, digests, numbers = keys[order], digests[order], numbers[order]
    is_copy = np.append(False, (np.diff(keys) == 0) & (np.diff(digests) == 0))
    pairs = [_join_pairs(numbers[:-1][is_copy[1:]], numbers[1:][is_copy[1:]])] if should_link_copies else []
    keys, numbers = keys[~is_copy], numbers[~is_copy]
    rows = np.arange(len(keys))
    for distance in range(1, MAX_RUN_DISTANCE + 1):
        rows = rows[rows < len(keys) - distance]
        rows = rows[keys[rows] == keys[rows + distance]]
        if not len(rows):
            break
        pairs.append(_join_pairs(numbers[rows], numbers[rows + distance]))
    return np.unique(np.concatenate([np.zeros(0, np.uint64), *pairs]))


def _join_pairs(firsts: Int64Array, seconds: Int64Array) -> UInt64Array:
    return (np.minimum(firsts, seconds) << 32 | np.maximum(firsts, seconds)).astype(np.uint64)


def _split_pairs(pairs: UInt64Array) -> tuple[Int64Array, Int64Array]:
    return (pairs >> np.uint64(32)).astype(np.int64), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int64)


# Steps


def find_candidates(job: ShardsJob, band: int, staged: Sequence[StageResult], decided: Sequence[str]) -> str:
    """Write the pairs of documents of a run that agree in a band; return the path of the file."""
    num_documents = sum(stage_result.num_keys for stage_result in staged)
    return write_candidates(job.storage, job.output, _list_sources(job, staged, decided), band, num_documents)


def decide_near_duplicates(
    job: ShardsJob, staged: Sequence[StageResult], decided: Sequence[str], candidates: Sequence[str]
) -> str:
    """Write the decisions on near duplicates, as :func:`~.decisions.decide`; return the path."""
    return write_decisions(job.storage, job.output, _list_sources(job, staged, decided), candidates)


def _list_sources(
    job: ShardsJob, staged: Sequence[StageResult], decided: Sequence[str]
) -> list[SignatureSource]:
    """List the signatures of the usable sources, without the documents that earlier decisions drop."""
    [decisions_path] = decided
    dropped_by_source = decisions.read_dropped_positions(job.storage, decisions_path)
    return [
        SignatureSource(job.output.staged_path(name, "signatures"), dropped_positions)
        for name, dropped_positions in zip(
            decisions.usable_output_names(staged), dropped_by_source, strict=True
        )
    ]


def write_candidates(
    storage: Storage, output: OutputDir, sources: Sequence[SignatureSource], band: int, num_documents: int
) -> str:
    """Write the pairs of :meth:`SignatureTable.find_candidates` of a band, a batch per bucket.

    Args:
        num_documents: number of documents, or more.

    Returns:
        Path of the file.
    """
    table = _open_signatures(storage, sources)
    num_buckets = count_buckets(num_documents)
    path = output.work_path(f"decisions/candidates-{band:02d}.arrow")
    with storage.write(path) as out, pa.ipc.new_stream(out, _CANDIDATE_SCHEMA) as stream:
        for bucket in range(num_buckets):
            pairs = table.find_candidates(band, bucket, num_buckets)
            stream.write_table(pa.table([pa.array(pairs)], schema=_CANDIDATE_SCHEMA))
    return path


def write_decisions(
    storage: Storage, output: OutputDir, sources: Sequence[SignatureSource], candidate_files: Sequence[str]
) -> str:
    """Write the decisions on near duplicates, a batch per source in order; return the path."""

    def read_pairs(path: str) -> pa.Table:
        with storage.open(path) as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()

    tables = [_CANDIDATE_SCHEMA.empty_table(), *prefetch_map(storage, read_pairs, candidate_files)]
    candidates = pa.concat_tables(tables)["pair"].to_numpy()
    return decisions.write_decisions(
        storage,
        output.work_path("decisions/near-duplicates.arrow"),
        _open_signatures(storage, sources).find_near_duplicates(candidates),
    )


def _open_signatures(storage: Storage, sources: Sequence[SignatureSource]) -> SignatureTable:
    readers = [functools.partial(_read_columns, storage, source) for source in sources]
    return SignatureTable(storage, readers)


def _read_columns(storage: Storage, source: SignatureSource, columns: Sequence[str]) -> pa.Table:
    """Read columns of the documents that are not dropped."""
    if source.path is None:
        return SIGNATURE_SCHEMA.empty_table().select(columns)
    names = [name for name in SIGNATURE_SCHEMA.names if name in ("position", *columns)]
    options = pa.ipc.IpcReadOptions(included_fields=list(map(SIGNATURE_SCHEMA.get_field_index, names)))
    with (
        arrow_io.open_mapped(storage, source.path) as file,
        pa.ipc.open_file(file, options=options) as reader,
    ):
        table = reader.read_all()
    if source.dropped_positions is not None:
        table = table.filter(pc.invert(pc.is_in(table["position"], value_set=source.dropped_positions)))
    return table.select(columns)
