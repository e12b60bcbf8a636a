"""A pretraining set's shards, mapped into memory, and where in them each row lies.

A set of 100 million rows is 50 GB, and a trainer that is started again should work within seconds.  So rows
are not read here but when they are asked for (gather.py); the operating system reads and keeps what is used.

What is opened is checked against the manifest and the shards' schemas.  Bytes that have changed are found by
:meth:`Shards.verify`, which reads them all, or by the checks of gather.py, where they make no sense.  A file
that is cut short while it is mapped ends the process (SIGBUS): nothing may write to a set in use.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
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
from bioshards.corpus.shards.pretraining_schema import LABELLED_OBJECTIVES, PIPELINE
from bioshards.corpus.storage.local_storage import LocalStorage

from .mapped_shard import REBUILD_HINT, MappedShard, ShardMetadata, TrainingDataError, open_shard

__all__ = ["BlockIndex", "PretrainingDataset", "TrainingDataError", "is_empty", "manifest_of"]

_READ_SIZE: Final = 1 << 20


class BlockIndex(NamedTuple):
    """Where in their files the record batches' columns begin, int64[blocks] each, counted in values.

    Attributes:
        file: which of the files.
        offsets, ids, splits, labels: in its views; labels are 0 where there are none.
        tokens: how many values ``ids`` has for this record batch.
    """

    shard: NDArray[np.int64]
    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]
    tokens: NDArray[np.int64]
    segment_b_starts: NDArray[np.int64]
    labels: NDArray[np.int64]


class PretrainingDataset:
    """The rows of one split of a finished pretraining set, numbered in the order of its manifest.

    Attributes:
        rows, tokens: how many there are.
        length: tokens that a row may have.
        objective: electra, bert, albert or plain.
        labelled: do rows have labels?
        special: ids of [PAD], [UNK], [CLS], [SEP] and [MASK].
        vocabulary_sha256: of the vocabulary's tokenizer.json.
        fingerprint: SHA-256 over the names and checksums of the split's shards: what tells data apart.
        blocks: int64[record batches], the rows of each.
        ends: int64[record batches], the number of the row after each one's last.
    """

    def __init__(self, folder: str, split: str = "train") -> None:
        """Map the shards.

        Raises:
            TrainingDataError: it is no finished pretraining set, has no such rows, or a shard is not as
                listed.
        """
        self._folder, self._manifest_entries = folder, _read_manifest_entries(folder, split)
        if not sum(entry.rows for entry in self._manifest_entries):
            raise TrainingDataError(
                f"{folder} has no rows for {split}. Make a set with some: --validation-fraction of "
                f"beam run {PIPELINE} is the share of documents that is held out."
            )
        digests = "".join(f"{entry.file} {entry.sha256}\n" for entry in self._manifest_entries)
        self.fingerprint = hashlib.sha256(digests.encode()).hexdigest()
        self.shards: list[MappedShard] = []
        metadata: list[ShardMetadata] = []
        block_rows: list[tuple[int, ...]] = []
        for shard_number, manifest_entry in enumerate(self._manifest_entries):
            shard, shard_metadata, blocks = open_shard(
                os.path.join(folder, manifest_entry.file), manifest_entry
            )
            self.shards.append(shard)
            metadata.append(shard_metadata)
            block_rows += [(*block, shard_number) for block in blocks]
        self._set_metadata(metadata, split)
        rows, offsets, ids, tokens, segment_b_starts, labels, shard_of_block = np.array(
            block_rows, np.int64
        ).T.copy()
        self.block_sizes, self.block_ends = rows, np.cumsum(rows)
        self.block_index = BlockIndex(shard_of_block, offsets, ids, tokens, segment_b_starts, labels)

    def _set_metadata(self, metadata: Sequence[ShardMetadata], split: str) -> None:
        """What the schemas say, which must be the same of all."""
        first = metadata[0]
        for shard, shard_metadata in zip(self.shards, metadata, strict=True):
            for name, value, expected in zip(ShardMetadata._fields[:-2], shard_metadata, first, strict=False):
                if value != expected:
                    raise TrainingDataError(
                        f"{shard.path} is not of the same set as {self.shards[0].path}: its {name} is "
                        f"{value}, "
                        f"and that one's is {expected}. Make the set anew."
                    )
        if first.split != split:
            raise TrainingDataError(
                f"{self.shards[0].path} is of the rows for {first.split}, and its folder says {split}: "
                "its files were moved. Make the set anew."
            )
        self.rows = sum(shard_metadata.rows for shard_metadata in metadata)
        self.tokens = sum(shard_metadata.tokens for shard_metadata in metadata)
        self.objective, self.max_seq_length = first.objective, first.max_seq_length
        self.labelled = self.objective in LABELLED_OBJECTIVES
        self.vocabulary_size, self.vocabulary_sha256 = first.vocabulary_size, first.vocabulary_sha256
        self.special_ids = first.special_ids

    def get_row_lengths(self, block: int) -> NDArray[np.int64]:
        """How many tokens each row of a record batch has."""
        start = int(self.block_index.offsets[block])
        offsets = self.shards[int(self.block_index.shard[block])].offsets
        return np.diff(np.asarray(offsets[start : start + int(self.block_sizes[block]) + 1])).astype(np.int64)

    def verify(self, progress: Callable[[str], None]) -> None:
        """Read all shards, as many at a time as there are cores, and compare them with their checksums.

        Args:
            progress: is told how far it is, a line for each shard.

        Raises:
            TrainingDataError: a shard is not as it was written.
        """
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            futures = [
                threads.submit(_verify_checksum, os.path.join(self._folder, entry.file), entry.sha256)
                for entry in self._manifest_entries
            ]
            try:
                for count, future in enumerate(as_completed(futures), 1):
                    future.result()
                    progress(f"verified {count} of {len(futures)} shards")
            finally:
                threads.shutdown(wait=False, cancel_futures=True)


def is_empty(folder: str, split: str) -> bool:
    """Has a finished pretraining set no rows of this split?  There are none to validate on unless asked for.

    Raises:
        TrainingDataError: it is no finished pretraining set.
    """
    return not sum(entry.rows for entry in _read_manifest_entries(folder, split))


def manifest_of(folder: str) -> PretrainingManifest:
    """The manifest of a finished pretraining set on this machine.

    Raises:
        TrainingDataError: it is none.
    """
    if "://" in folder:
        raise TrainingDataError(
            f"{folder} is no folder of this machine, and shards are mapped: copy it here first."
        )
    try:
        manifest = read_manifest(LocalStorage(), folder)
    except ManifestNotFoundError as error:
        raise TrainingDataError(_describe_unfinished(folder)) from error
    except ManifestError as error:
        raise TrainingDataError(f"{error}.") from error
    if not isinstance(manifest, PretrainingManifest):
        raise TrainingDataError(
            f"{folder} is an output of {manifest.pipeline}, and what is trained on is one of {PIPELINE}: "
            f"make a pretraining set of it (beam run {PIPELINE} --input {folder} ...) and give that."
        )
    if manifest.config.format != FORMAT:
        raise TrainingDataError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{FORMAT}). Make it anew: beam run {PIPELINE} with another --output."
        )
    return manifest


def _read_manifest_entries(folder: str, split: str) -> list[Shard]:
    """The split's shards, as the manifest lists them."""
    return [entry for entry in manifest_of(folder).outputs if entry.file.startswith(f"{split}/")]


def _describe_unfinished(folder: str) -> str:
    if not os.path.isdir(folder):
        return f"{folder}: there is no such folder. Give the --output of beam run {PIPELINE}."
    parent = os.path.dirname(os.path.abspath(folder))
    if os.path.exists(os.path.join(parent, "manifest.json")):
        return f"{folder} has no manifest.json, but the folder above it has: give {parent}."
    return (
        f"{folder} has no manifest.json: it is no finished pretraining set. Give the --output of a "
        f"beam run {PIPELINE} that has ended, or run it again to its end."
    )


def _verify_checksum(path: str, sha256: str) -> None:
    """Compare a file with its checksum.  It is read: an error of the disk would end a mapping process."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ_SIZE):
                digest.update(block)
    except OSError as error:
        raise TrainingDataError(f"{path} cannot be read: {error.strerror}. {REBUILD_HINT}.") from error
    if digest.hexdigest() != sha256:
        raise TrainingDataError(
            f"{path} is not as it was written: its SHA-256 is another than the manifest's. {REBUILD_HINT}."
        )
