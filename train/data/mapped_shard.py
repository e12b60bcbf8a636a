"""Memory-mapped shard of a pretraining set.

Only the headers of record batches are read, for the positions of their columns: a set of 100 million rows
opens in a second.  A damaged file must not crash the process, so the positions of columns are checked here,
and each row when it is read (gather.py).
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError, UserError
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.pretraining_schema import make_schema, metadata_from_schema
from bioshards.train.config.model_families import LABELLED_OBJECTIVES

REBUILD_HINT: Final = "Delete it and rerun the command that built the set, which rebuilds it"


class TrainingDataError(UserError):
    """A pretraining set is unfinished, damaged, or built for another model."""


class ShardMetadata(NamedTuple):
    """Metadata of a shard's schema; in a set, only ``rows`` and ``tokens`` differ between shards."""

    objective: str
    max_seq_length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special_ids: dict[str, int]
    split: str
    rows: int
    tokens: int


class MappedShard(NamedTuple):
    """Mapped shard as typed views; each view starts at the first byte of the file."""

    path: str
    offsets: memoryview
    """int32, offsets of ``input_ids``: start of each row, and end of the last one."""
    ids: memoryview
    """uint16 or uint32."""
    segment_b_starts: memoryview
    """uint16."""
    labels: memoryview
    """int8."""


class BlockColumns(NamedTuple):
    """Size of a record batch, and the positions of its columns in their views.

    Attributes:
        rows: number of rows.
        offsets, ids, segment_b_starts, labels: index of the first value; ``labels`` is 0 without that column.
        tokens: number of values of ``ids``.
    """

    rows: int
    offsets: int
    ids: int
    tokens: int
    segment_b_starts: int
    labels: int


class OpenedShard(NamedTuple):
    """A mapped shard with its metadata and record batches."""

    shard: MappedShard
    metadata: ShardMetadata
    blocks: list[BlockColumns]


def open_shard(path: str, manifest_entry: Shard) -> OpenedShard:
    """Map a shard and check it against its manifest entry.

    Raises:
        TrainingDataError: it is missing, damaged, or has another size or number of rows.
    """
    try:
        size = os.stat(path).st_size
        if size != manifest_entry.bytes:
            raise TrainingDataError(
                f"{path} has {size:,} bytes, but the manifest lists {manifest_entry.bytes:,}. {REBUILD_HINT}."
            )
        with pa.memory_map(path) as file:  # the mapping outlives the file handle, which is limited to 1,024
            buffer = file.read_buffer()
        metadata, blocks = _read_stream(buffer)
    except FileNotFoundError as error:
        raise TrainingDataError(
            f"{path} is missing, but the manifest lists it. Rerun the command that built the set."
        ) from error
    except OSError as error:  # includes pyarrow's ArrowIOError
        raise TrainingDataError(
            f"{path} cannot be read: {error.strerror or error}. {REBUILD_HINT}."
        ) from error
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise TrainingDataError(
            f"{path} is damaged or not a shard of a pretraining set: {error}. {REBUILD_HINT}."
        ) from error
    for claim, rows in (("has", sum(block.rows for block in blocks)), ("claims", metadata.rows)):
        if rows != manifest_entry.rows:
            raise TrainingDataError(
                f"{path} {claim} {rows:,} rows, but the manifest lists {manifest_entry.rows:,}. "
                f"{REBUILD_HINT}."
            )
    view = memoryview(buffer)[: buffer.size // 4 * 4]
    ids = view.cast("H" if metadata.vocabulary_size <= 1 << 16 else "I")
    shard = MappedShard(
        path, offsets=view.cast("i"), ids=ids, segment_b_starts=view.cast("H"), labels=view.cast("b")
    )
    return OpenedShard(shard, metadata, blocks)


def _read_stream(mapped: pa.Buffer) -> tuple[ShardMetadata, list[BlockColumns]]:
    """Read the metadata and the column positions of a mapped Arrow stream.

    Raises:
        ArrowException, OSError, ValueError, LookupError, TypeError: it is damaged or of another schema.
    """
    shard_schema = pa.ipc.read_schema(mapped)
    metadata = _parse_metadata(shard_schema)
    labelled = metadata.objective in LABELLED_OBJECTIVES
    if not shard_schema.equals(make_schema(metadata.vocabulary_size, labelled, {})):
        raise InvalidValueError(
            f"unexpected columns or types: {', '.join(shard_schema.names) or 'no columns'}"
        )
    item_size = 2 if metadata.vocabulary_size <= 1 << 16 else 4
    names = ["input_ids", "split", *(["label"] if labelled else [])]
    read_options = pa.ipc.IpcReadOptions(
        included_fields=[shard_schema.get_field_index(name) for name in names]
    )
    blocks: list[BlockColumns] = []
    with pa.ipc.open_stream(mapped, options=read_options) as stream:
        for batch in stream:
            rows = batch.num_rows
            if not rows:
                continue
            if any(column.null_count for column in batch.columns):
                raise InvalidValueError("it has null values")
            column_buffers = [column_buffer for column in batch.columns for column_buffer in column.buffers()]
            _, offsets, _, ids, _, segment_b_starts, *label_buffers = (
                column_buffers  # every other buffer is a null bitmap
            )
            tokens = 0 if ids is None else ids.size // item_size
            blocks.append(
                BlockColumns(
                    rows=rows,
                    offsets=_find_column_start(mapped, offsets, 4, rows + 1),
                    ids=_find_column_start(mapped, ids, item_size, tokens),
                    tokens=tokens,
                    segment_b_starts=_find_column_start(mapped, segment_b_starts, 2, rows),
                    labels=_find_column_start(mapped, label_buffers[1], 1, rows) if labelled else 0,
                )
            )
    return metadata, blocks


def _parse_metadata(shard_schema: pa.Schema) -> ShardMetadata:
    fields = metadata_from_schema(shard_schema)
    return ShardMetadata(
        objective=str(fields["objective"]),
        max_seq_length=int(fields["length"]),
        vocabulary_size=int(fields["vocabulary_size"]),
        vocabulary_sha256=str(fields["vocabulary_sha256"]),
        special_ids={str(name): int(number) for name, number in dict(fields["special"]).items()},
        split=str(fields["split"]),
        rows=int(fields["rows"]),
        tokens=int(fields["tokens"]),
    )


def _find_column_start(buffer: pa.Buffer, column: pa.Buffer | None, item_size: int, num_values: int) -> int:
    """Return the position of a column in its file, in items of ``item_size`` bytes."""
    if column is None or column.size < num_values * item_size:
        raise InvalidValueError("a column is shorter than its record batch")
    start = int(column.address - buffer.address)
    if not 0 <= start <= buffer.size - column.size:
        raise InvalidValueError("it is compressed and cannot be mapped")
    if start % item_size:
        raise InvalidValueError("its columns are not aligned")
    return start // item_size
