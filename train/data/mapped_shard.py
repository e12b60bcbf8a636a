"""One shard of a pretraining set, mapped into memory and checked; nothing of it is copied.

Of each record batch it is only noted where its columns begin, and only its header is read for that: a set of
100 million rows is opened in a second.  No byte of a damaged file may end the process, so where columns begin
and end is checked here, and what they say of a row where it is read (gather.py).
"""

from __future__ import annotations

import os
from typing import Final, NamedTuple

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError, UserError
from bioshards.corpus.manifest import Shard
from bioshards.corpus.shards.pretraining_schema import LABELLED_OBJECTIVES, make_schema, metadata_from_schema

REBUILD_HINT: Final = "Delete it and run the command that made the set once more, which makes it anew"


class TrainingDataError(UserError):
    """This cannot be trained on; the message says what, where, why and what to do."""


class ShardMetadata(NamedTuple):
    """What a shard's schema says of its rows; all but their number and that of their tokens of all shards."""

    objective: str
    max_seq_length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special_ids: dict[str, int]
    split: str
    rows: int
    tokens: int


class MappedShard(NamedTuple):
    """A mapped shard, read as what its columns hold; each view begins where the file does."""

    path: str
    offsets: memoryview
    """int32: of ``input_ids``, where each row begins, and the last one's end."""
    ids: memoryview
    """uint16 or uint32."""
    segment_b_starts: memoryview
    """uint16."""
    labels: memoryview
    """int8."""


def open_shard(path: str, manifest_entry: Shard) -> tuple[MappedShard, ShardMetadata, list[tuple[int, ...]]]:
    """A shard, what its schema says, and of each record batch how many rows and where its columns are."""
    try:
        size = os.stat(path).st_size
        if size != manifest_entry.bytes:
            raise TrainingDataError(
                f"{path} has {size:,} bytes, and its manifest lists {manifest_entry.bytes:,}. {REBUILD_HINT}."
            )
        with pa.memory_map(path) as file:  # the mapping outlives the file, of which a process may open 1,024
            buffer = file.read_buffer()
        metadata, blocks = _read_stream(buffer)
    except FileNotFoundError as error:
        raise TrainingDataError(
            f"{path} is not there, and its manifest lists it. Run the command that made the set once more."
        ) from error
    except OSError as error:  # which is pyarrow's ArrowIOError too
        raise TrainingDataError(
            f"{path} cannot be read: {error.strerror or error}. {REBUILD_HINT}."
        ) from error
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise TrainingDataError(
            f"{path} is no shard of a pretraining set, or is damaged: {error}. {REBUILD_HINT}."
        ) from error
    for claim, rows in (("has", sum(block[0] for block in blocks)), ("says that it has", metadata.rows)):
        if rows != manifest_entry.rows:
            raise TrainingDataError(
                f"{path} {claim} {rows:,} rows, and its manifest lists {manifest_entry.rows:,}. "
                f"{REBUILD_HINT}."
            )
    view = memoryview(buffer)[: buffer.size // 4 * 4]
    ids = view.cast("H" if metadata.vocabulary_size <= 1 << 16 else "I")
    return MappedShard(path, view.cast("i"), ids, view.cast("H"), view.cast("b")), metadata, blocks


def _read_stream(mapped: pa.Buffer) -> tuple[ShardMetadata, list[tuple[int, ...]]]:
    """The facts of a mapped stream, and of each record batch: rows, offsets, ids, tokens, splits, labels.

    Raises:
        ArrowException, OSError, ValueError, LookupError, TypeError: it is none that a pretraining set has.
    """
    shard_schema = pa.ipc.read_schema(mapped)
    metadata = _parse_metadata(shard_schema)
    labelled = metadata.objective in LABELLED_OBJECTIVES
    if not shard_schema.equals(make_schema(metadata.vocabulary_size, labelled, {})):
        raise InvalidValueError(
            f"its columns are {', '.join(shard_schema.names) or 'none'}, or of other types"
        )
    item_size = 2 if metadata.vocabulary_size <= 1 << 16 else 4
    names = ["input_ids", "split", *(["label"] if labelled else [])]
    read_options = pa.ipc.IpcReadOptions(
        included_fields=[shard_schema.get_field_index(name) for name in names]
    )
    blocks: list[tuple[int, ...]] = []
    with pa.ipc.open_stream(mapped, options=read_options) as stream:
        for batch in stream:
            rows = batch.num_rows
            if not rows:
                continue
            if any(column.null_count for column in batch.columns):
                raise InvalidValueError("it has rows without a value")
            column_buffers = [column_buffer for column in batch.columns for column_buffer in column.buffers()]
            _, offsets, _, ids, _, segment_b_starts, *label_buffers = (
                column_buffers  # every other one would say which values are null
            )
            tokens = 0 if ids is None else ids.size // item_size
            blocks.append(
                (
                    rows,
                    _find_column_start(mapped, offsets, 4, rows + 1),
                    _find_column_start(mapped, ids, item_size, tokens),
                    tokens,
                    _find_column_start(mapped, segment_b_starts, 2, rows),
                    _find_column_start(mapped, label_buffers[1], 1, rows) if labelled else 0,
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
    """Where a column begins in its file, in values of so many bytes."""
    if column is None or column.size < num_values * item_size:
        raise InvalidValueError("a column has fewer values than the record batch has rows")
    start = int(column.address - buffer.address)
    if not 0 <= start <= buffer.size - column.size:
        raise InvalidValueError("it is compressed, and cannot be mapped")
    if start % item_size:
        raise InvalidValueError("its columns are not aligned")
    return start // item_size
