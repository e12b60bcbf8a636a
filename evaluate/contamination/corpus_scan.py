"""Scan document shards for PMIDs and n-grams, in several processes.

A row group is read at a time and scanned block by block, so memory grows with the matches only.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import ManifestError, ManifestNotFoundError, Shard
from bioshards.corpus.parent_process import end_with_parent
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.contamination.ngrams import NgramIndex, Positions, hash_ngrams

_COLUMNS: Final = ("id", "pmid", "pmcid", "sentences")
_BLOCK_BYTES: Final = 1 << 20
"""Text bytes of a block, or one document if it is longer. Arrays of a block need 20 times as much memory."""


class CorpusError(UserError):
    """A corpus directory is unfinished, damaged, or of another kind. The message says what to do."""


class CorpusDocument(NamedTuple):
    """Ids of a document."""

    id: str
    pmid: int | None
    pmcid: str | None


class ShardHits(NamedTuple):
    """Matches in a shard.

    Attributes:
        text_bytes: size of the scanned text.
        ngrams: numbers of the n-grams found.
        documents: documents with a requested PMID or n-gram.
        hit_documents: index into ``documents`` of each distinct pair of document and requested n-gram;
            ``hit_ngrams`` has the n-gram.
    """

    text_bytes: int
    ngrams: Positions
    documents: list[CorpusDocument]
    hit_documents: Positions
    hit_ngrams: Positions


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """What to search for.

    Attributes:
        is_requested: bool[N], n-grams whose documents are reported.
        pmids: PMIDs whose documents are reported.
    """

    index: NgramIndex
    is_requested: np.ndarray[Any, np.dtype[np.bool_]]
    pmids: frozenset[int]


def open_corpus(folder: str) -> DocumentsInput:
    """Open a finished document directory by its manifest.

    Raises:
        CorpusError: it is not one.
    """
    try:
        manifest = document_shards.read_documents_manifest(LocalStorage(), folder)
    except ManifestNotFoundError as error:
        raise CorpusError(str(error)) from error
    except ManifestError as error:
        raise CorpusError(f"--corpus: {error}") from error
    return DocumentsInput(folder, manifest.pipeline, manifest.outputs)


def scan_shards(
    corpora: Sequence[DocumentsInput], query: MatchQuery, workers: int
) -> Iterator[tuple[Shard, ShardHits]]:
    """Yield each shard, in order, with its matches, computed in ``workers`` processes.

    Raises:
        CorpusError: a shard is damaged, or a process died.
    """
    tasks = [(corpus.folder, shard) for corpus in corpora for shard in corpus.shards]
    if workers < 2:
        yield from ((shard, _scan_shard(query, folder, shard)) for folder, shard in tasks)
        return
    pool = ProcessPoolExecutor(workers, initializer=_init_worker, initargs=(query, os.getpid()))
    try:
        futures = [pool.submit(_scan_shard_in_worker, folder, shard) for folder, shard in tasks]
        for (_, shard), future in zip(tasks, futures, strict=True):
            yield shard, future.result()
    except BrokenProcessPool as error:
        raise CorpusError(
            "a worker process was ended from outside, probably for its memory: give a lower --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_worker_query: MatchQuery


def _init_worker(query: MatchQuery, parent: int) -> None:
    """Set what a worker process searches for, and ignore Ctrl-C, which the main process handles."""
    global _worker_query
    _worker_query = query
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)


def _scan_shard_in_worker(folder: str, shard: Shard) -> ShardHits:
    return _scan_shard(_worker_query, folder, shard)


def _scan_shard(query: MatchQuery, folder: str, shard: Shard) -> ShardHits:
    path = f"{folder}/{shard.file}"
    try:
        return _find_hits(query, document_shards.read_shards(LocalStorage(), folder, [shard], _COLUMNS))
    except document_shards.DamagedShardError:
        raise
    except (OSError, pa.ArrowException) as error:
        raise CorpusError(
            f"{path} cannot be read ({error}). Delete it and run the beam run that made it once more, "
            "which makes it anew"
        ) from error


def _find_hits(query: MatchQuery, batches: Iterator[pa.RecordBatch]) -> ShardHits:
    total_bytes, documents = 0, list[CorpusDocument]()
    ngram_arrays, hit_documents, hit_ngrams = ([np.zeros(0, np.int64)] for _ in range(3))
    pmids = pa.array(query.pmids, pa.int32())
    for batch in batches:
        text_bytes, rows, ngram_ids = _find_in_batch(query.index, batch)
        total_bytes += text_bytes
        ngram_arrays.append(np.unique(ngram_ids))
        is_requested = query.is_requested[ngram_ids]
        rows, ngram_ids = rows[is_requested], ngram_ids[is_requested]
        pmid_rows = np.flatnonzero(pc.is_in(batch["pmid"], value_set=pmids).to_numpy(zero_copy_only=False))
        matched_rows = np.union1d(rows, pmid_rows)
        hit_documents.append(np.searchsorted(matched_rows, rows) + len(documents))
        hit_ngrams.append(ngram_ids)
        columns = batch.select(["id", "pmid", "pmcid"]).take(pa.array(matched_rows)).columns
        documents += map(CorpusDocument, *(column.to_pylist() for column in columns))
    hit_arrays = (np.concatenate(arrays) for arrays in (hit_documents, hit_ngrams))
    return ShardHits(total_bytes, np.unique(np.concatenate(ngram_arrays)), documents, *hit_arrays)


def _find_in_batch(index: NgramIndex, batch: pa.RecordBatch) -> tuple[int, Positions, Positions]:
    """Return the text bytes, and distinct pairs of row and n-gram number."""
    sentences = batch["sentences"]
    first_sentences = _value_offsets(sentences)
    text = sentences.values
    data, sentence_offsets = text.buffers()[2] or pa.py_buffer(b""), _value_offsets(text)
    row_starts = sentence_offsets[first_sentences]
    pairs = [np.zeros(0, np.int64)]
    for start, end in _iter_blocks(row_starts):
        block_start = row_starts[start]
        block = data.slice(block_start, row_starts[end] - block_start).to_pybytes()
        sentence_starts = sentence_offsets[first_sentences[start] : first_sentences[end]] - block_start
        ngrams = hash_ngrams(block, sentence_starts)
        found, ngram_ids = index.find_ngrams(ngrams.hashes)
        block_rows = ngrams.find_rows(row_starts[start + 1 : end + 1] - block_start, found)
        is_within_row = block_rows >= 0
        pairs.append((block_rows[is_within_row] + start) * len(index) + ngram_ids[is_within_row])
    rows, ngram_ids = np.divmod(np.unique(np.concatenate(pairs)), max(1, len(index)))
    return int(row_starts[-1] - row_starts[0]), rows, ngram_ids


def _value_offsets(array: pa.Array) -> Positions:
    """Return the offsets of the values of a string or list column."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _iter_blocks(row_starts: Positions) -> Iterator[tuple[int, int]]:
    """Yield row ranges of about :data:`_BLOCK_BYTES` each."""
    block_ends = np.flatnonzero(np.diff((row_starts[1:] - row_starts[0]) // _BLOCK_BYTES)) + 1
    return itertools.pairwise([0, *block_ends.tolist(), len(row_starts) - 1])
