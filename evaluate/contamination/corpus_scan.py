"""Scan document shards for PMIDs and n-grams, in several processes.

Text is read from memory-mapped Arrow buffers block by block, so memory grows with the matches only.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
import time
import typing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing.sharedctypes import Synchronized
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    DocumentsPipeline,
    ManifestError,
    ManifestNotFoundError,
    Shard,
    read_manifest,
)
from bioshards.corpus.shards import arrow_io as shards
from bioshards.corpus.shards.arrow_io import DOCUMENT_SCHEMA
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.contamination.ngrams import NgramIndex, Positions, hash_ngrams

_PIPELINES: Final = typing.get_args(DocumentsPipeline)
_COLUMNS: Final = ("id", "pmid", "pmcid", "sentences")
_POLL_SECONDS: Final = 0.5
_BLOCK_BYTES: Final = 1 << 20
"""Text bytes of a block, or one document if it is longer. Arrays of a block need 20 times as much memory."""


class CorpusError(UserError):
    """A corpus directory is unfinished, damaged, or of another kind. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A finished document directory.

    Attributes:
        folder: path as given.
        pipeline: pipeline that wrote it.
        sha256: combined digest of its shards.
    """

    folder: str
    pipeline: str
    documents: int
    sha256: str
    shards: tuple[Shard, ...]


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
        hit_documents: index into ``documents`` of each distinct pair of document and requested n-gram.
        hit_ngrams: n-gram number of each pair.
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


def open_corpus(folder: str) -> Corpus:
    """Open a finished document directory by its manifest.

    Raises:
        CorpusError: it is not one.
    """
    hint = f"Give --corpus the --output of beam run {' or '.join(_PIPELINES)}"
    try:
        manifest = read_manifest(LocalStorage(), folder)
    except ManifestNotFoundError as error:
        raise CorpusError(str(error)) from error
    except ManifestError as error:
        raise CorpusError(f"{error}. {hint}") from error
    if not isinstance(manifest, DocumentsManifest):
        raise CorpusError(f"{folder} holds no documents, it was made by {manifest.pipeline}. {hint}")
    outputs = manifest.outputs
    digest = shards.combine_digests(shard.sha256 for shard in outputs)
    return Corpus(folder, manifest.pipeline, sum(shard.rows for shard in outputs), digest, outputs)


def scan_shards(
    corpora: Sequence[Corpus],
    query: MatchQuery,
    workers: int,
    on_documents: Callable[[int], object] = bool,
) -> Iterator[ShardHits]:
    """Yield the matches of each shard, in order, computed in ``workers`` processes.

    Args:
        on_documents: is called with the number of documents scanned so far.

    Raises:
        CorpusError: a shard is damaged, or a process died.
    """
    tasks = [(corpus.folder, shard) for corpus in corpora for shard in corpus.shards]
    counter = multiprocessing.Value("q", 0)

    def count_documents(count: int) -> None:
        counter.value += count
        on_documents(counter.value)

    if workers < 2:
        yield from (_scan_shard(query, *task, count_documents) for task in tasks)
        return
    pool = ProcessPoolExecutor(workers, initializer=_init_worker, initargs=(query, counter))
    try:
        futures = deque(pool.submit(_scan_shard_in_worker, task) for task in tasks)
        while futures:
            is_done = bool(wait([futures[0]], _POLL_SECONDS).done)
            on_documents(counter.value)
            if is_done:
                yield futures.popleft().result()
    except BrokenProcessPool as error:
        raise CorpusError(
            "a worker process was ended from outside, probably for its memory: give a lower --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_worker_query: MatchQuery
_worker_counter: Synchronized[int]


def _init_worker(query: MatchQuery, counter: Synchronized[int]) -> None:
    """Set what a worker process needs, and ignore Ctrl-C, which the main process handles."""
    global _worker_query, _worker_counter
    _worker_query, _worker_counter = query, counter
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()


def _exit_with_parent(parent_pid: int) -> None:
    """End this process when its parent is gone, which after SIGKILL cannot end it."""
    while os.getppid() == parent_pid:
        time.sleep(0.5)
    os._exit(1)


def _scan_shard_in_worker(task: tuple[str, Shard]) -> ShardHits:
    return _scan_shard(_worker_query, *task, _count_documents_in_worker)


def _count_documents_in_worker(count: int) -> None:
    with _worker_counter.get_lock():
        _worker_counter.value += count


def _scan_shard(
    query: MatchQuery, folder: str, shard: Shard, on_documents: Callable[[int], None]
) -> ShardHits:
    path = f"{folder}/{shard.file}"
    try:
        _check_shard(path, shard.bytes)
        return _find_hits(query, shards.read_shards(LocalStorage(), folder, [shard], _COLUMNS), on_documents)
    except (OSError, pa.ArrowInvalid) as error:
        raise CorpusError(
            f"{path} cannot be read ({error}). Delete it and run the beam run that made it once more, "
            "which makes it anew"
        ) from error


def _check_shard(path: str, size: int) -> None:
    if os.path.getsize(path) != size:
        raise OSError(f"it has {os.path.getsize(path):,} bytes, and its manifest lists {size:,}")
    with shards.open_mapped(LocalStorage(), path) as file:
        schema = pa.ipc.read_schema(file)
    for name in _COLUMNS:
        if name not in schema.names or schema.field(name).type != DOCUMENT_SCHEMA.field(name).type:
            raise CorpusError(
                f"{path} has no column {name} of {DOCUMENT_SCHEMA.field(name).type}: another version of "
                "bioshards "
                "has made it. Make it anew: beam run with another --output"
            )


def _find_hits(
    query: MatchQuery, batches: Iterator[pa.RecordBatch], on_documents: Callable[[int], None]
) -> ShardHits:
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
        on_documents(batch.num_rows)
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
        words, hashes = hash_ngrams(
            block, sentence_offsets[first_sentences[start] : first_sentences[end]] - block_start
        )
        first_words, found_ids = index.find_ngrams(words, hashes)
        row_ends = row_starts[start + 1 : end + 1] - block_start
        row_indices = np.searchsorted(row_ends, words.starts[first_words], "right")
        is_within_row = words.find_ngram_ends()[first_words] <= row_ends[row_indices]
        pairs.append((row_indices[is_within_row] + start) * len(index) + found_ids[is_within_row])
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
