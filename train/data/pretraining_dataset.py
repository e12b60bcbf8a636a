"""Memory-mapped rows of one split of a pretraining set.

A set of 100 million rows is 50 GB and must open in seconds after a restart, so only the headers of record
batches are read when it is opened; rows are read on demand and cached by the operating system.

Shards are checked against the manifest and their schemas when they are opened, and each row when it is read,
because a damaged file must not crash the process.  :meth:`PretrainingDataset.verify` finds all changed bytes.
Truncating a mapped file kills the process with SIGBUS: a set in use must not be written to.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import cached_property
from typing import Any, Final, Literal, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.errors import InvalidValueError, UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    ManifestError,
    ManifestNotFoundError,
    PretrainingManifest,
    Shard,
    VocabularyManifest,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards.pretraining_schema import NO_LABEL, PIPELINE, make_schema, metadata_from_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.train.recipe import LABELLED_OBJECTIVES

_READ_SIZE: Final = 1 << 20
_SAMPLED_BLOCKS: Final = 64
"""Record batches that are sampled for statistics."""
_REBUILD_HINT: Final = "Delete it and rerun the command that built the set, which rebuilds it"


class TrainingDataError(UserError):
    """A pretraining set is unfinished, damaged, or built for another model."""


class ShardMetadata(NamedTuple):
    """Metadata of a shard's schema; in a set, only ``rows`` and ``tokens`` differ between shards."""

    objective: str
    max_seq_length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special_ids: Mapping[str, int]
    split: str
    rows: int
    tokens: int


class Block(NamedTuple):
    """A record batch: views of its columns in the mapped shard.

    Attributes:
        shard: index of the shard.
        rows: number of rows.
        offsets: int32[rows + 1], start of each row in ``ids``, and the end of the last one.
        ids: uint16[tokens] or uint32[tokens].
        segment_b_starts: uint16[rows].
        labels: int8[rows]; None without that column.
    """

    shard: int
    rows: int
    offsets: memoryview
    ids: memoryview
    segment_b_starts: memoryview
    labels: memoryview | None


class FlatRows(NamedTuple):
    """R concatenated rows of T tokens in total.

    Attributes:
        ids: uint16[T] or uint32[T]; read-only.
        offsets: int64[R + 1], start of each row, and T.
        segment_b_starts: int64[R], position of segment B in its row; 0 for none.
        labels: int64[R], label of next-sentence prediction or sentence order; -100 for none.
    """

    ids: NDArray[np.uint16] | NDArray[np.uint32]
    offsets: NDArray[np.int64]
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
        split: name of the split.
        is_english: True if all documents are citations of PubMed, whose abstracts are English.
        fingerprint: SHA-256 of the names and checksums of the split's shards.
        blocks: the record batches.
        block_sizes, block_ends: int64[blocks], rows of each record batch, and their cumulative sum.
    """

    def __init__(self, folder: str, split: str = "train") -> None:
        """Map the shards of a split.

        Raises:
            TrainingDataError: the set is unfinished, the split empty, or a shard not as in the manifest.
        """
        manifest = manifest_of(folder)
        self._folder, self._shards, self.split = folder, _list_shards(manifest, split), split
        self.is_english = {one.pipeline for one in manifest.inputs} == {"pubmed_to_shards"}
        if not sum(shard.rows for shard in self._shards):
            raise TrainingDataError(
                f"{folder} has no rows in the split {split}; see --validation-fraction of beam run "
                f"{PIPELINE}."
            )
        digests = "".join(f"{shard.file} {shard.sha256}\n" for shard in self._shards)
        self.fingerprint = hashlib.sha256(digests.encode()).hexdigest()
        self.blocks: list[Block] = []
        self.rows = self.tokens = 0
        first, first_path = None, os.path.join(folder, self._shards[0].file)
        for number, shard in enumerate(self._shards):
            path = os.path.join(folder, shard.file)
            metadata, blocks = _open_shard(path, number, shard)
            first = first or metadata
            for name, value, expected in zip(ShardMetadata._fields[:-2], metadata, first, strict=False):
                if value != expected:
                    raise TrainingDataError(
                        f"{path} and {first_path} are of different sets: {name} is {value} and {expected}. "
                        "Rebuild the set."
                    )
            self.blocks += blocks
            self.rows, self.tokens = self.rows + metadata.rows, self.tokens + metadata.tokens
        assert first is not None
        if first.split != split:
            raise TrainingDataError(
                f"{first_path} has rows of the split {first.split}, but is in the folder {split}. "
                "Rebuild the set."
            )
        self.objective, self.max_seq_length = first.objective, first.max_seq_length
        self.vocabulary_size, self.vocabulary_sha256 = first.vocabulary_size, first.vocabulary_sha256
        self.special_ids = first.special_ids
        self.labelled = self.objective in LABELLED_OBJECTIVES
        self.block_sizes = np.array([block.rows for block in self.blocks], np.int64)
        self.block_ends = np.cumsum(self.block_sizes)

    def gather_rows(self, row_ids: NDArray[np.int64]) -> FlatRows:
        """Copy rows in the given order.

        Args:
            row_ids: int64[R], from 0 to below ``rows``.

        Raises:
            TrainingDataError: a row is damaged; the message names its shard and its number there.
        """
        numbers = np.searchsorted(self.block_ends, row_ids, side="right")
        indices = row_ids - self.block_ends[numbers] + self.block_sizes[numbers]
        blocks = [self.blocks[number] for number in numbers.tolist()]
        places = list(zip(blocks, indices.tolist(), strict=True))
        starts = np.array([block.offsets[index] for block, index in places], np.int64)
        ends = np.array([block.offsets[index + 1] for block, index in places], np.int64)
        segment_b_starts = np.array([block.segment_b_starts[index] for block, index in places], np.int64)
        labels = np.array(
            [NO_LABEL if block.labels is None else block.labels[index] for block, index in places], np.int64
        )
        lengths = ends - starts
        num_ids = np.array([len(block.ids) for block in blocks], np.int64)
        for is_bad, reason in (
            (
                (starts < 0) | (lengths <= 0) | (lengths > self.max_seq_length) | (ends > num_ids),
                f"its length is not 1 to {self.max_seq_length} tokens",
            ),
            (segment_b_starts >= lengths, "segment B starts after its end"),
            ((labels != NO_LABEL) & (labels != 0) & (labels != 1), "its label is not 0, 1 or -100"),
        ):
            if is_bad.any():
                self._raise_damaged(int(row_ids[np.argmax(is_bad)]), reason)
        slices = zip(blocks, starts.tolist(), ends.tolist(), strict=True)
        joined = b"".join([block.ids[start:end] for block, start, end in slices])
        ids: NDArray[Any] = np.frombuffer(joined, np.uint16 if self.vocabulary_size <= 1 << 16 else np.uint32)
        offsets = np.zeros(len(row_ids) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        if len(ids) and ids.max() >= self.vocabulary_size:
            position = int(np.argmax(ids >= self.vocabulary_size))
            self._raise_damaged(
                int(row_ids[np.searchsorted(offsets, position, side="right") - 1]),
                f"its token {ids[position]} exceeds the vocabulary of {self.vocabulary_size:,}",
            )
        return FlatRows(ids, offsets, segment_b_starts, labels)

    def _raise_damaged(self, row_id: int, reason: str) -> NoReturn:
        """Raise an error that names a row by its shard and its number there."""
        shard = self.blocks[int(np.searchsorted(self.block_ends, row_id, side="right"))].shard
        number = row_id - sum(block.rows for block in self.blocks if block.shard < shard)
        path = os.path.join(self._folder, self._shards[shard].file)
        raise TrainingDataError(f"{path} is damaged at row {number:,}: {reason}. {_REBUILD_HINT}.")

    def sample_blocks(self) -> list[Block]:
        """Return up to twice :data:`_SAMPLED_BLOCKS` record batches, spread evenly over the set."""
        return self.blocks[:: max(1, len(self.blocks) // _SAMPLED_BLOCKS)]

    @cached_property
    def most_frequent_id(self) -> int:
        """Id of the most frequent token of the sampled record batches, but [PAD], [CLS], [SEP], [MASK]."""
        counts = np.zeros(self.vocabulary_size, np.int64)
        for block in self.sample_blocks():
            ids = np.asarray(block.ids)
            counts += np.bincount(ids[ids < len(counts)], minlength=len(counts))
        counts[[self.special_ids[name] for name in ("[PAD]", "[CLS]", "[SEP]", "[MASK]")]] = 0
        return int(counts.argmax())

    def verify(self, progress: Progress) -> None:
        """Compare the SHA-256 of all shards with the manifest, in one thread per core.

        Raises:
            TrainingDataError: a checksum differs.
        """
        total = sum(shard.bytes for shard in self._shards)
        with (
            progress.bar("verifying the shards", total, "B") as bar,
            ThreadPoolExecutor(count_cpus()) as threads,
        ):
            futures = [
                threads.submit(_verify_checksum, os.path.join(self._folder, shard.file), shard.sha256, bar)
                for shard in self._shards
            ]
            try:
                for count, future in enumerate(as_completed(futures), 1):
                    future.result()
                    bar.advance(0, f"{count:,}/{len(futures):,} shards")
            finally:
                threads.shutdown(wait=False, cancel_futures=True)


def open_validation_set(folder: str) -> PretrainingDataset | None:
    """Open the split ``validation`` of a finished pretraining set; None if it is empty.

    Raises:
        TrainingDataError: the folder is not a finished pretraining set, or a shard differs from the manifest.
    """
    if not sum(shard.rows for shard in _list_shards(manifest_of(folder), "validation")):
        return None
    return PretrainingDataset(folder, "validation")


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
        remedy = f"Give the --output of beam run {PIPELINE}"
        if isinstance(manifest, DocumentsManifest):
            remedy = f"Build a pretraining set from it: beam run {PIPELINE} --input {folder} ..."
        elif isinstance(manifest, VocabularyManifest):
            remedy = (
                f"Build a pretraining set with it: beam run {PIPELINE} --input DOCUMENTS --vocab {folder} ..."
            )
        raise TrainingDataError(f"{folder} is an output of {manifest.pipeline}, not of {PIPELINE}. {remedy}")
    if manifest.config.format != FORMAT:
        raise TrainingDataError(
            f"{folder} was built by another version of bioshards (format {manifest.config.format}, expected "
            f"{FORMAT}). Rebuild it: beam run {PIPELINE} with another --output."
        )
    return manifest


def _list_shards(manifest: PretrainingManifest, split: str) -> list[Shard]:
    return [shard for shard in manifest.outputs if shard.file.startswith(f"{split}/")]


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


def _open_shard(path: str, number: int, shard: Shard) -> tuple[ShardMetadata, list[Block]]:
    """Map a shard and check it against its entry in the manifest.

    Raises:
        TrainingDataError: it is missing, damaged, or has another size or number of rows.
    """
    try:
        size = os.stat(path).st_size
        if size != shard.bytes:
            raise TrainingDataError(
                f"{path} has {size:,} bytes, but the manifest lists {shard.bytes:,}. {_REBUILD_HINT}."
            )
        with pa.memory_map(path) as file:  # the mapping outlives the file handle, which is limited to 1,024
            mapped = file.read_buffer()
        metadata, blocks = _read_stream(mapped, number)
    except FileNotFoundError as error:
        raise TrainingDataError(
            f"{path} is missing, but the manifest lists it. Rerun the command that built the set."
        ) from error
    except OSError as error:  # includes pyarrow's ArrowIOError
        raise TrainingDataError(
            f"{path} cannot be read: {error.strerror or error}. {_REBUILD_HINT}."
        ) from error
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise TrainingDataError(
            f"{path} is damaged or not a shard of a pretraining set: {error}. {_REBUILD_HINT}."
        ) from error
    for claim, rows in (("has", sum(block.rows for block in blocks)), ("claims", metadata.rows)):
        if rows != shard.rows:
            raise TrainingDataError(
                f"{path} {claim} {rows:,} rows, but the manifest lists {shard.rows:,}. {_REBUILD_HINT}."
            )
    return metadata, blocks


def _read_stream(mapped: pa.Buffer, shard: int) -> tuple[ShardMetadata, list[Block]]:
    """Read the metadata and the record batches of a mapped Arrow stream, without their rows.

    Raises:
        ArrowException, OSError, ValueError, LookupError, TypeError: it is damaged or of another schema.
    """
    schema = pa.ipc.read_schema(mapped)
    fields = metadata_from_schema(schema)
    metadata = ShardMetadata(
        objective=str(fields["objective"]),
        max_seq_length=int(fields["length"]),
        vocabulary_size=int(fields["vocabulary_size"]),
        vocabulary_sha256=str(fields["vocabulary_sha256"]),
        special_ids={str(name): int(number) for name, number in dict(fields["special"]).items()},
        split=str(fields["split"]),
        rows=int(fields["rows"]),
        tokens=int(fields["tokens"]),
    )
    labelled = metadata.objective in LABELLED_OBJECTIVES
    if not schema.equals(make_schema(metadata.vocabulary_size, labelled, {})):
        raise InvalidValueError(f"unexpected columns or types: {', '.join(schema.names) or 'no columns'}")
    id_format: Literal["H", "I"] = "H" if metadata.vocabulary_size <= 1 << 16 else "I"
    blocks = []
    with pa.ipc.open_stream(mapped) as stream:
        for batch in stream:
            if not batch.num_rows:
                continue
            batch.validate()
            if any(column.null_count for column in batch.columns):
                raise InvalidValueError("it has null values")
            # Every other buffer is a null bitmap.
            offsets, ids, segment_b_starts, *labels = [
                buffer for column in batch.columns for buffer in column.buffers()[1::2]
            ]
            blocks.append(
                Block(
                    shard=shard,
                    rows=batch.num_rows,
                    offsets=_view(mapped, offsets, "i", batch.num_rows + 1),
                    ids=_view(mapped, ids, id_format, len(batch.column("input_ids").values)),
                    segment_b_starts=_view(mapped, segment_b_starts, "H", batch.num_rows),
                    labels=_view(mapped, labels[0], "b", batch.num_rows) if labelled else None,
                )
            )
    return metadata, blocks


def _view(
    mapped: pa.Buffer, column: pa.Buffer | None, item_format: Literal["i", "I", "H", "b"], num_values: int
) -> memoryview:
    """Return a typed view of a column, which must lie in the mapped file."""
    num_bytes = num_values * struct.calcsize(item_format)
    if column is None or column.size < num_bytes:
        raise InvalidValueError("a column is shorter than its record batch")
    if not mapped.address <= column.address <= mapped.address + mapped.size - column.size:
        raise InvalidValueError("it is compressed and cannot be mapped")
    return memoryview(column).cast("B")[:num_bytes].cast(item_format)


def _verify_checksum(path: str, sha256: str, bar: ProgressBar) -> None:
    """Compare the SHA-256 of a file.  It is read, because a disk error in a mapped file kills the process."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as file:
            while block := file.read(_READ_SIZE):
                digest.update(block)
                bar.advance(len(block))
    except OSError as error:
        raise TrainingDataError(f"{path} cannot be read: {error.strerror}. {_REBUILD_HINT}.") from error
    if digest.hexdigest() != sha256:
        raise TrainingDataError(
            f"{path} has changed: its SHA-256 differs from the manifest. {_REBUILD_HINT}."
        )
