"""Memory-mapped rows of one split of a pretraining set.

A set of 100 million rows is 50 GB and must open in seconds after a restart, so rows are read on demand
(gather.py) and cached by the operating system.

Shards are checked against the manifest and their schemas when they are opened.  Changed bytes are found by
:meth:`PretrainingDataset.verify`, or by the checks of gather.py.  Truncating a mapped file kills the process
with SIGBUS: a set in use must not be written to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.manifest import (
    ManifestError,
    ManifestNotFoundError,
    PretrainingManifest,
    Shard,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards.pretraining_schema import PIPELINE
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.train.config.model_families import LABELLED_OBJECTIVES
from bioshards.train.data.mapped_shard import (
    REBUILD_HINT,
    MappedShard,
    ShardMetadata,
    TrainingDataError,
    open_shard,
)

__all__ = ["BlockIndex", "PretrainingDataset", "TrainingDataError", "is_empty", "manifest_of"]

_READ_SIZE: Final = 1 << 20
_SAMPLED_BLOCKS: Final = 64
"""Record batches that are sampled for statistics."""


class BlockIndex(NamedTuple):
    """Positions of the columns of all record batches, int64[blocks] each.

    Attributes:
        shard: index of the shard.
        offsets, ids, tokens, segment_b_starts, labels: as in :class:`BlockColumns`.
    """

    shard: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    tokens: NDArray[np.int64]
    segment_b_starts: NDArray[np.int64]
    labels: NDArray[np.int64]


class PretrainingDataset:
    """Rows of one split of a finished pretraining set, numbered in the order of its manifest.

    Attributes:
        rows, tokens: number of rows and tokens.
        max_seq_length: maximum row length in tokens.
        objective: ``--objective`` of the set.
        labelled: True if rows have labels.
        special_ids: ids of [PAD], [UNK], [CLS], [SEP] and [MASK].
        vocabulary_size: highest id plus one.
        vocabulary_sha256: SHA-256 of the vocabulary's tokenizer.json.
        fingerprint: SHA-256 of the names and checksums of the split's shards.
        shards: the mapped shards.
        block_index: positions of the record batches' columns.
        block_sizes: int64[blocks], rows of each record batch.
        block_ends: int64[blocks], cumulative sum of ``block_sizes``.
    """

    def __init__(self, folder: str, split: str = "train") -> None:
        """Map the shards of a split.

        Raises:
            TrainingDataError: the set is unfinished, the split is empty, or a shard differs from the
            manifest.
        """
        self._folder, self._manifest_entries = folder, _read_manifest_entries(folder, split)
        if not sum(entry.rows for entry in self._manifest_entries):
            raise TrainingDataError(
                f"{folder} has no rows in the split {split}; see --validation-fraction of beam run "
                f"{PIPELINE}."
            )
        digests = "".join(f"{entry.file} {entry.sha256}\n" for entry in self._manifest_entries)
        self.fingerprint = hashlib.sha256(digests.encode()).hexdigest()
        self.shards: list[MappedShard] = []
        metadata: list[ShardMetadata] = []
        block_rows: list[tuple[int, ...]] = []
        for shard_number, manifest_entry in enumerate(self._manifest_entries):
            opened = open_shard(os.path.join(folder, manifest_entry.file), manifest_entry)
            self.shards.append(opened.shard)
            metadata.append(opened.metadata)
            block_rows += [(*block, shard_number) for block in opened.blocks]
        self._set_metadata(metadata, split)
        rows, offsets, ids, tokens, segment_b_starts, labels, shard_of_block = np.array(
            block_rows, np.int64
        ).T.copy()
        self.block_sizes, self.block_ends = rows, np.cumsum(rows)
        self.block_index = BlockIndex(shard_of_block, offsets, ids, tokens, segment_b_starts, labels)

    def _set_metadata(self, metadata: Sequence[ShardMetadata], split: str) -> None:
        """Check that all shards have the same metadata, and take them over."""
        first = metadata[0]
        for shard, shard_metadata in zip(self.shards, metadata, strict=True):
            for name, value, expected in zip(ShardMetadata._fields[:-2], shard_metadata, first, strict=False):
                if value != expected:
                    raise TrainingDataError(
                        f"{shard.path} and {self.shards[0].path} are of different sets: {name} is {value} "
                        f"and {expected}. Rebuild the set."
                    )
        if first.split != split:
            raise TrainingDataError(
                f"{self.shards[0].path} has rows of the split {first.split}, but is in the folder {split}. "
                "Rebuild the set."
            )
        self.rows = sum(shard_metadata.rows for shard_metadata in metadata)
        self.tokens = sum(shard_metadata.tokens for shard_metadata in metadata)
        self.objective, self.max_seq_length = first.objective, first.max_seq_length
        self.labelled = self.objective in LABELLED_OBJECTIVES
        self.vocabulary_size, self.vocabulary_sha256 = first.vocabulary_size, first.vocabulary_sha256
        self.special_ids = first.special_ids

    def get_row_lengths(self, block: int) -> NDArray[np.int64]:
        """Return the row lengths of a record batch in tokens, int64[rows]."""
        start = int(self.block_index.offsets[block])
        offsets = self.shards[int(self.block_index.shard[block])].offsets
        return np.diff(np.asarray(offsets[start : start + int(self.block_sizes[block]) + 1])).astype(np.int64)

    @cached_property
    def most_frequent_id(self) -> int:
        """Id of the most frequent token, [PAD], [CLS], [SEP] and [MASK] left out.

        Tokens are counted in record batches spread evenly over the set.
        """
        counts = np.zeros(self.vocabulary_size, np.int64)
        for block in self.sample_blocks():
            start = int(self.block_index.ids[block])
            shard = self.shards[int(self.block_index.shard[block])]
            ids = np.asarray(shard.ids[start : start + int(self.block_index.tokens[block])])
            counts += np.bincount(ids[ids < len(counts)], minlength=len(counts))
        counts[[self.special_ids[name] for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]] = 0
        return int(counts.argmax())

    def sample_blocks(self) -> range:
        """Return up to twice :data:`_SAMPLED_BLOCKS` record batches, spread evenly over the set."""
        return range(0, len(self.block_sizes), max(1, len(self.block_sizes) // _SAMPLED_BLOCKS))

    def verify(self, progress: Progress) -> None:
        """Compare the SHA-256 of all shards with the manifest, in one thread per core.

        Args:
            progress: shows the bytes read.

        Raises:
            TrainingDataError: a checksum differs.
        """
        total = sum(entry.bytes for entry in self._manifest_entries)
        with (
            progress.bar("verifying the shards", total, "B") as bar,
            ThreadPoolExecutor(os.cpu_count()) as threads,
        ):
            futures = [
                threads.submit(_verify_checksum, os.path.join(self._folder, entry.file), entry.sha256, bar)
                for entry in self._manifest_entries
            ]
            try:
                for count, future in enumerate(as_completed(futures), 1):
                    future.result()
                    bar.advance(0, f"{count:,}/{len(futures):,} shards")
            finally:
                threads.shutdown(wait=False, cancel_futures=True)


def is_empty(folder: str, split: str) -> bool:
    """Return True if a split of a finished pretraining set has no rows.

    Raises:
        TrainingDataError: the folder is not a finished pretraining set.
    """
    return not sum(entry.rows for entry in _read_manifest_entries(folder, split))


def manifest_of(folder: str) -> PretrainingManifest:
    """Read the manifest of a finished pretraining set on this machine.

    Raises:
        TrainingDataError: the folder is remote, unfinished, or of another pipeline or format.
    """
    if "://" in folder:
        raise TrainingDataError(
            f"{folder} is remote; training maps local files. Copy it first (rclone, or the store's own tools)"
        )
    try:
        manifest = read_manifest(LocalStorage(), folder)
    except ManifestNotFoundError as error:
        raise TrainingDataError(_describe_unfinished(folder)) from error
    except ManifestError as error:
        raise TrainingDataError(f"{error}.") from error
    if not isinstance(manifest, PretrainingManifest):
        raise TrainingDataError(
            f"{folder} is an output of {manifest.pipeline}, not of {PIPELINE}. Build a pretraining set from "
            f"it: beam run {PIPELINE} --input {folder} ..."
        )
    if manifest.config.format != FORMAT:
        raise TrainingDataError(
            f"{folder} was built by another version of bioshards (format {manifest.config.format}, expected "
            f"{FORMAT}). Rebuild it: beam run {PIPELINE} with another --output."
        )
    return manifest


def _read_manifest_entries(folder: str, split: str) -> list[Shard]:
    """Read the manifest entries of a split's shards."""
    return [entry for entry in manifest_of(folder).outputs if entry.file.startswith(f"{split}/")]


def _describe_unfinished(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"{folder} does not exist. Give the --output of beam run {PIPELINE}."
    parent = os.path.dirname(os.path.abspath(folder))
    if os.path.exists(os.path.join(parent, "manifest.json")):
        return f"{folder} has no manifest.json, but its parent folder has one: give {parent}."
    return (
        f"{folder} has no manifest.json: it is not a finished pretraining set. Give the --output of a "
        f"finished beam run {PIPELINE}, or rerun that command to resume it."
    )


def _verify_checksum(path: str, sha256: str, bar: ProgressBar) -> None:
    """Compare the SHA-256 of a file.  It is read, because a disk error in a mapped file kills the process."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ_SIZE):
                digest.update(block)
                bar.advance(len(block))
    except OSError as error:
        raise TrainingDataError(f"{path} cannot be read: {error.strerror}. {REBUILD_HINT}.") from error
    if digest.hexdigest() != sha256:
        raise TrainingDataError(f"{path} has changed: its SHA-256 differs from the manifest. {REBUILD_HINT}.")
