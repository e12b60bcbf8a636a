"""Select the version of each citation or article to keep, across all sources.

PubMed: of the records of a PMID, the one in the last file is kept; within a file, the highest Version, then
the last position.  A ``DeleteCitation`` removes the records of the PMID before it, in its own and in
earlier files.

PMC: of the records of an article, the highest version is kept; of the same version, the one in the last
source, at the last position.

Only keys are read, 18 bytes a record, one bucket at a time, so that memory is bounded by the size of a
bucket.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

VERSION_KEY_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("is_deletion", pa.bool_(), nullable=False),
    ]
)
"""A record, in the order of the source; ``key`` is the PMID, or the number of the PMCID.  A DeleteCitation
has a row for each of its PMIDs."""

DECISION_SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int32(), nullable=False),
        pa.field("reason", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("duplicate_of", pa.string()),
        pa.field("similarity", pa.float32()),
    ]
)
"""A dropped record of a source: superseded, deleted, duplicate (dedup.py), near-duplicate with the estimated
similarity (near_duplicates.py) or excluded (id_lists.py)."""

DECISION_REASONS: Final = pa.array(["superseded", "deleted", "duplicate", "excluded", "near-duplicate"])
"""Dictionary of the reasons of :data:`DECISION_SCHEMA`.  Its order is part of the files in work folders."""

TableReader = Callable[[], pa.Table]
"""Reads the keys or digests of a source."""

KEYS_PER_BUCKET: Final = 4_000_000
"""Keys in a bucket: 0.75 GB at the peak (make bench)."""


def count_buckets(num_keys: int) -> int:
    """Return the number of buckets for this number of keys."""
    return max(1, -(-num_keys // KEYS_PER_BUCKET))


def resolve_versions(
    storage: Storage,
    readers: Sequence[TableReader],
    bucket: int,
    num_buckets: int,
    highest_version_wins: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the decisions on the records of a bucket: a batch of :data:`DECISION_SCHEMA` per source, in
    order.

    Args:
        readers: read :data:`VERSION_KEY_SCHEMA` of each source, in the order of application.
        bucket: remainder of the keys by ``num_buckets``.
        highest_version_wins: rule of PMC, else that of PubMed.
    """

    def read_bucket(reader: TableReader) -> pa.Table:
        keys = reader()
        if num_buckets == 1:
            return keys
        key_column = keys["key"]
        remainders = pc.subtract(key_column, pc.multiply(pc.divide(key_column, num_buckets), num_buckets))
        return keys.filter(pc.equal(remainders, bucket))

    if readers:
        yield from split_by_source(
            _find_dropped(
                concat_with_source(prefetch_map(storage, read_bucket, readers)), highest_version_wins
            ),
            len(readers),
        )


def concat_with_source(tables: Iterable[pa.Table]) -> pa.Table:
    """Concatenate tables and add a column ``source``, the index of the table of each row."""
    numbered_tables = [
        table.append_column("source", pa.repeat(pa.scalar(index, pa.int32()), table.num_rows))
        for index, table in enumerate(tables)
    ]
    return pa.concat_tables(numbered_tables).combine_chunks()


def split_by_source(rows: pa.Table, num_sources: int) -> Iterator[pa.RecordBatch]:
    """Split decisions into a batch of :data:`DECISION_SCHEMA` for each source, sorted by position.

    Args:
        rows: source, position, reason (index of :data:`DECISION_REASONS`), duplicate_of and, of near
            duplicates, similarity, in any order.
        num_sources: number of sources.
    """
    rows = rows.sort_by([("source", "ascending"), ("position", "ascending")]).combine_chunks()
    row_counts = {entry["values"]: entry["counts"] for entry in rows["source"].value_counts().to_pylist()}
    start = 0
    for index in range(num_sources):
        source_rows = rows.slice(start, row_counts.get(index, 0)).combine_chunks()
        start += source_rows.num_rows
        yield _make_decision_batch(source_rows)


def digest_decisions(decisions: pa.Table) -> str:
    """Return a short digest of the decisions on a source: equal digests give equal final shards."""
    reasons = pc.index_in(decisions["reason"].cast(pa.string()), DECISION_REASONS)
    plain = decisions.set_column(1, "reason", reasons)
    plain = plain.set_column(2, "duplicate_of", pc.fill_null(decisions["duplicate_of"], ""))
    if plain["similarity"].null_count == len(plain):
        plain = plain.drop_columns("similarity")  # the digest of runs without near duplicates
    digest = hashlib.sha256()
    for batch in plain.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()[:16]


def write_decisions(storage: Storage, path: str, batches: Iterable[pa.RecordBatch]) -> str:
    """Write the decisions on each source, in order; return the path."""
    with storage.write(path) as out, pa.ipc.new_file(out, DECISION_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def _find_dropped(keys: pa.Table, highest_version_wins: bool) -> pa.Table:
    """Find the superseded and deleted records, as rows for :func:`split_by_source`."""
    apply_order = pc.add(
        pc.shift_left(keys["source"].cast(pa.int64()), pa.scalar(32, pa.int64())),
        keys["position"].cast(pa.int64()),
    )
    keys = keys.append_column("when", apply_order)
    deletions = keys.filter(keys["is_deletion"])
    records = keys.filter(pc.invert(keys["is_deletion"])).drop_columns(["is_deletion"])
    last_deletions = deletions.group_by("key").aggregate([("when", "max")])
    deletion_order = last_deletions["when_max"].take(
        pc.index_in(records["key"], value_set=last_deletions["key"])
    )
    is_deleted = pc.less(records["when"], deletion_order).fill_null(False)
    version_columns = (
        ("version", "source", "position") if highest_version_wins else ("source", "version", "position")
    )
    sort_keys = [(column, "ascending") for column in ("key", *version_columns)]
    survivors = records.filter(pc.invert(is_deleted)).sort_by(sort_keys)
    key_column = survivors["key"].combine_chunks()
    is_superseded = pc.equal(key_column.slice(0, max(0, len(key_column) - 1)), key_column.slice(1))
    return pa.concat_tables(
        [
            _add_reason(survivors.slice(0, len(is_superseded)).filter(is_superseded), 0),
            _add_reason(records.filter(is_deleted), 1),
        ]
    )


def _add_reason(records: pa.Table, reason: int) -> pa.Table:
    count = records.num_rows
    rows = records.select(["source", "position"])
    rows = rows.append_column("reason", pa.repeat(pa.scalar(reason, pa.int8()), count))
    return rows.append_column("duplicate_of", pa.nulls(count, pa.string()))


def _make_decision_batch(rows: pa.Table) -> pa.RecordBatch:
    def get_column(name: str, data_type: pa.DataType) -> pa.Array:
        if name not in rows.column_names:
            return pa.nulls(rows.num_rows, data_type)
        chunks = rows[name].chunks
        return chunks[0] if chunks else pa.array([], data_type)

    reasons = pa.DictionaryArray.from_arrays(get_column("reason", pa.int8()), DECISION_REASONS)
    columns = [get_column("position", pa.int32()), reasons]
    columns += [get_column("duplicate_of", pa.string()), get_column("similarity", pa.float32())]
    return pa.RecordBatch.from_arrays(columns, schema=DECISION_SCHEMA)
