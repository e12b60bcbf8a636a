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
from bioshards.corpus.pretraining import LABELLED, facts_of, schema

AGAIN: Final = "Delete it and run the command that made the set once more, which makes it anew"


class TrainingDataError(UserError):
    """This cannot be trained on; the message says what, where, why and what to do."""


class Facts(NamedTuple):
    """What a shard's schema says of its rows; all but their number and that of their tokens of all shards."""

    objective: str
    length: int
    vocabulary_size: int
    vocabulary_sha256: str
    special: dict[str, int]
    split: str
    rows: int
    tokens: int


class File(NamedTuple):
    """A mapped shard, read as what its columns hold; each view begins where the file does."""

    path: str
    offsets: memoryview
    """int32: of ``input_ids``, where each row begins, and the last one's end."""
    ids: memoryview
    """uint16 or uint32."""
    splits: memoryview
    """uint16."""
    labels: memoryview
    """int8."""


def opened(path: str, listed: Shard) -> tuple[File, Facts, list[tuple[int, ...]]]:
    """A shard, what its schema says, and of each record batch how many rows and where its columns are."""
    try:
        size = os.stat(path).st_size
        if size != listed.bytes:
            raise TrainingDataError(
                f"{path} has {size:,} bytes, and its manifest lists {listed.bytes:,}. {AGAIN}."
            )
        with pa.memory_map(path) as file:  # the mapping outlives the file, of which a process may open 1,024
            mapped = file.read_buffer()
        facts, blocks = _read(mapped)
    except FileNotFoundError as error:
        raise TrainingDataError(
            f"{path} is not there, and its manifest lists it. Run the command that made the set once more."
        ) from error
    except OSError as error:  # which is pyarrow's ArrowIOError too
        raise TrainingDataError(f"{path} cannot be read: {error.strerror or error}. {AGAIN}.") from error
    except (pa.ArrowException, ValueError, LookupError, TypeError) as error:
        raise TrainingDataError(
            f"{path} is no shard of a pretraining set, or is damaged: {error}. {AGAIN}."
        ) from error
    for what, rows in (("has", sum(block[0] for block in blocks)), ("says that it has", facts.rows)):
        if rows != listed.rows:
            raise TrainingDataError(
                f"{path} {what} {rows:,} rows, and its manifest lists {listed.rows:,}. {AGAIN}."
            )
    whole = memoryview(mapped)[: mapped.size // 4 * 4]
    ids = whole.cast("H" if facts.vocabulary_size <= 1 << 16 else "I")
    return File(path, whole.cast("i"), ids, whole.cast("H"), whole.cast("b")), facts, blocks


def _read(mapped: pa.Buffer) -> tuple[Facts, list[tuple[int, ...]]]:
    """The facts of a mapped stream, and of each record batch: rows, offsets, ids, tokens, splits, labels.

    Raises:
        ArrowException, OSError, ValueError, LookupError, TypeError: it is none that a pretraining set has.
    """
    has = pa.ipc.read_schema(mapped)
    facts = _facts(has)
    labelled = facts.objective in LABELLED
    if not has.equals(schema(facts.vocabulary_size, labelled, {})):
        raise InvalidValueError(f"its columns are {', '.join(has.names) or 'none'}, or of other types")
    wide = 2 if facts.vocabulary_size <= 1 << 16 else 4
    names = ["input_ids", "split", *(["label"] if labelled else [])]
    only = pa.ipc.IpcReadOptions(included_fields=[has.get_field_index(name) for name in names])
    blocks: list[tuple[int, ...]] = []
    with pa.ipc.open_stream(mapped, options=only) as stream:
        for batch in stream:
            rows = batch.num_rows
            if not rows:
                continue
            if any(column.null_count for column in batch.columns):
                raise InvalidValueError("it has rows without a value")
            buffers = [buffer for column in batch.columns for buffer in column.buffers()]
            _, offsets, _, ids, _, splits, *more = buffers  # every other one would say which values are null
            tokens = 0 if ids is None else ids.size // wide
            blocks.append(
                (
                    rows,
                    _begin(mapped, offsets, 4, rows + 1),
                    _begin(mapped, ids, wide, tokens),
                    tokens,
                    _begin(mapped, splits, 2, rows),
                    _begin(mapped, more[1], 1, rows) if labelled else 0,
                )
            )
    return facts, blocks


def _facts(of: pa.Schema) -> Facts:
    said = facts_of(of)
    return Facts(
        objective=str(said["objective"]),
        length=int(said["length"]),
        vocabulary_size=int(said["vocabulary_size"]),
        vocabulary_sha256=str(said["vocabulary_sha256"]),
        special={str(name): int(number) for name, number in dict(said["special"]).items()},
        split=str(said["split"]),
        rows=int(said["rows"]),
        tokens=int(said["tokens"]),
    )


def _begin(mapped: pa.Buffer, column: pa.Buffer | None, wide: int, values: int) -> int:
    """Where a column begins in its file, in values of so many bytes."""
    if column is None or column.size < values * wide:
        raise InvalidValueError("a column has fewer values than the record batch has rows")
    begin = int(column.address - mapped.address)
    if not 0 <= begin <= mapped.size - column.size:
        raise InvalidValueError("it is compressed, and cannot be mapped")
    if begin % wide:
        raise InvalidValueError("its columns are not aligned")
    return begin // wide
