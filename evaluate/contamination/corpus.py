"""What of the benchmarks is in document shards: by PMID and by n-grams, in several processes.

Text is looked at where Arrow has mapped it, a block at a time, so that memory does not grow with the corpus,
but for what is found.
"""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import shards
from bioshards.corpus.document import SCHEMA
from bioshards.corpus.errors import UserError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    DocumentsManifest,
    ManifestError,
    MissingManifest,
    Shard,
    read_manifest,
)

from .ngrams import Index, Places, ngrams

_PIPELINES: Final = ("pubmed_to_shards", "pmc_to_shards")
_COLUMNS: Final = ("id", "pmid", "pmcid", "sentences")
_BLOCK_BYTES: Final = 1 << 20
"""Of text, or a document where it is longer.  Arrays of a block take 20 times as much."""


class CorpusError(UserError):
    """A folder is no finished output of documents, or damaged; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Corpus:
    """A finished folder of documents.

    Attributes:
        folder: as it was given.
        pipeline: what has made it.
        sha256: a digest of its shards.
    """

    folder: str
    pipeline: str
    documents: int
    sha256: str
    shards: tuple[Shard, ...]


class Document(NamedTuple):
    """A document of the corpus."""

    id: str
    pmid: int | None
    pmcid: str | None


class Found(NamedTuple):
    """What a shard holds.

    Attributes:
        bytes: of the text that was looked at.
        ngrams: those that are in it.
        documents: those that have a PMID that was looked for, or an n-gram that was asked for.
        holders, held: pairs of a document's place among them and such an n-gram, once each.
    """

    bytes: int
    ngrams: Places
    documents: list[Document]
    holders: Places
    held: Places


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for.

    Attributes:
        asked: by n-gram, whether it is asked which documents hold it.
        pmids: of which it is asked too.
    """

    index: Index
    asked: np.ndarray[Any, np.dtype[np.bool_]]
    pmids: frozenset[int]


def opened(folder: str) -> Corpus:
    """A finished folder of documents, by its manifest.

    Raises:
        CorpusError: it is none.
    """
    give = f"Give --corpus the --output of beam run {' or '.join(_PIPELINES)}"
    try:
        manifest = read_manifest(LocalFiles(), folder)
    except MissingManifest as error:
        raise CorpusError(str(error)) from error
    except ManifestError as error:
        raise CorpusError(f"{error}. {give}") from error
    if not isinstance(manifest, DocumentsManifest):
        raise CorpusError(f"{folder} holds no documents, it was made by {manifest.pipeline}. {give}")
    outputs = manifest.outputs
    digest = shards.digest(one.sha256 for one in outputs)
    return Corpus(folder, manifest.pipeline, sum(one.rows for one in outputs), digest, outputs)


def look(corpora: Sequence[Corpus], wanted: Wanted, workers: int) -> Iterator[Found]:
    """What each shard holds, in their order, in as many processes as ``workers``.

    Raises:
        CorpusError: a shard is not what it must be, or a process has died.
    """
    tasks = [(corpus.folder, shard) for corpus in corpora for shard in corpus.shards]
    if workers < 2:
        yield from (_shard(wanted, *task) for task in tasks)
        return
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(wanted,))
    try:
        yield from pool.map(_shard_of_worker, tasks)
    except BrokenProcessPool as error:
        raise CorpusError(
            "a worker process was ended from outside, probably for its memory: give a lower --workers"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_wanted: Wanted


def _begin(wanted: Wanted) -> None:
    """Keep what is looked for in a worker: forked ones share it.  Ctrl-C is for the first process."""
    global _wanted
    _wanted = wanted
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """End this process when its parent has been killed, which could not tell it to."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _shard_of_worker(task: tuple[str, Shard]) -> Found:
    return _shard(_wanted, *task)


def _shard(wanted: Wanted, folder: str, shard: Shard) -> Found:
    path = f"{folder}/{shard.file}"
    try:
        _check(path, shard.bytes)
        return _found(wanted, shards.read_some(LocalFiles(), folder, [shard], _COLUMNS))
    except (OSError, pa.ArrowInvalid) as error:
        raise CorpusError(
            f"{path} cannot be read ({error}). Delete it and run the beam run that made it once more, "
            "which makes it anew"
        ) from error


def _check(path: str, size: int) -> None:
    if os.path.getsize(path) != size:
        raise OSError(f"it has {os.path.getsize(path):,} bytes, and its manifest lists {size:,}")
    with shards.opened(LocalFiles(), path) as file:
        schema = pa.ipc.read_schema(file)
    for name in _COLUMNS:
        if name not in schema.names or schema.field(name).type != SCHEMA.field(name).type:
            raise CorpusError(
                f"{path} has no column {name} of {SCHEMA.field(name).type}: another version of bioshards "
                "has made it. Make it anew: beam run with another --output"
            )


def _found(wanted: Wanted, batches: Iterator[pa.RecordBatch]) -> Found:
    size, documents = 0, list[Document]()
    ngrams, holders, held = ([np.zeros(0, np.int64)] for _ in range(3))
    pmids = pa.array(wanted.pmids, pa.int32())
    for batch in batches:
        text_bytes, rows, numbers = _in_batch(wanted.index, batch)
        size += text_bytes
        ngrams.append(np.unique(numbers))
        asked = wanted.asked[numbers]
        rows, numbers = rows[asked], numbers[asked]
        by_pmid = np.flatnonzero(pc.is_in(batch["pmid"], value_set=pmids).to_numpy(zero_copy_only=False))
        kept = np.union1d(rows, by_pmid)
        holders.append(np.searchsorted(kept, rows) + len(documents))
        held.append(numbers)
        columns = batch.select(["id", "pmid", "pmcid"]).take(pa.array(kept)).columns
        documents += map(Document, *(column.to_pylist() for column in columns))
    all_of = (np.concatenate(arrays) for arrays in (holders, held))
    return Found(size, np.unique(np.concatenate(ngrams)), documents, *all_of)


def _in_batch(index: Index, batch: pa.RecordBatch) -> tuple[int, Places, Places]:
    """Bytes of text; and pairs of a row and the number of an n-gram that it holds, once each."""
    sentences = batch["sentences"]
    first = _offsets(sentences)
    text = sentences.values
    data, cuts = text.buffers()[2] or pa.py_buffer(b""), _offsets(text)
    begins = cuts[first]
    pairs = [np.zeros(0, np.int64)]
    for start, end in _blocks(begins):
        begin = begins[start]
        block = data.slice(begin, begins[end] - begin).to_pybytes()
        words, hashes = ngrams(block, cuts[first[start] : first[end]] - begin)
        at, numbers = index.find(words, hashes)
        ends = begins[start + 1 : end + 1] - begin
        row = np.searchsorted(ends, words.starts[at], "right")
        within = words.ngram_ends()[at] <= ends[row]
        pairs.append((row[within] + start) * len(index) + numbers[within])
    rows, held = np.divmod(np.unique(np.concatenate(pairs)), max(1, len(index)))
    return int(begins[-1] - begins[0]), rows, held


def _offsets(array: pa.Array) -> Places:
    """Where the values of a column of strings or lists begin, and the last ends."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)
    return offsets[array.offset : array.offset + len(array) + 1].astype(np.int64)


def _blocks(begins: Places) -> Iterator[tuple[int, int]]:
    """Rows from and to, of about :data:`_BLOCK_BYTES` each."""
    last = np.flatnonzero(np.diff((begins[1:] - begins[0]) // _BLOCK_BYTES)) + 1
    return itertools.pairwise([0, *last.tolist(), len(begins) - 1])
