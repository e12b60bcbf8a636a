"""Decide across sources which version of each citation or article lives: keys in, verdicts out.

PubMed's rule (DESIGN.md section 5; SOURCES.md section 1.5).  Of a PMID's records the one in the latest
file lives; in one file, the highest Version; of the same Version, the last position.  A
``DeleteCitation`` removes the PMID's records that came before it, in its own file or earlier ones,
and none that come after.

PMC's rule.  Of an article the highest version lives, whatever source it is in; of the same version the one in
the last source, at the last position there.

Only keys are looked at, 18 bytes a record, and they are looked at in buckets: memory depends on the bucket's
size, not on PubMed's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

VERSION_KEY_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("is_deletion", pa.bool_(), nullable=False),
    ]
)
"""One row a record, in the order of the source; the key is the number of what it is a version of: a PMID, a
PMCID's number.  A DeleteCitation gives a row for each of its PMIDs."""

DECISION_SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int32(), nullable=False),
        pa.field("reason", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("duplicate_of", pa.string()),
    ]
)
"""One row for each record of one file that does not live, or lives but repeats another (dedup.py) or is
listed (exclusion_list.py)."""

DECISION_REASONS: Final = pa.array(["superseded", "deleted", "duplicate", "excluded"])
"""The reasons of :data:`VERDICTS`, its dictionary."""

TableReader = Callable[[], pa.Table]
"""Reads what is to be known of a source."""

KEYS_PER_BUCKET: Final = 4_000_000
"""Keys decided at a time: 0.75 GB at the peak (make bench)."""


def count_buckets(num_keys: int) -> int:
    """In how many buckets ``num_keys`` keys are decided."""
    return max(1, -(-num_keys // KEYS_PER_BUCKET))


def resolve_versions(
    readers: Sequence[TableReader],
    bucket: int,
    num_buckets: int,
    highest_version_wins: bool = False,
    map_fn: Callable[[Callable[[TableReader], pa.Table], Sequence[TableReader]], Iterable[pa.Table]] = map,
) -> Iterator[pa.RecordBatch]:
    """The verdicts on one bucket's records: one batch of :data:`VERDICTS` per source, in order.

    Args:
        readers: how to read each source's :data:`KEYS`, in the order the sources are applied.
        bucket: keys whose remainder by ``num_buckets`` is this are decided.
        by_version: PMC's rule, else PubMed's.
        map_fn: gives the results of a function for each source, in order, as ``map`` does.
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
            _find_dropped(concat_with_source(map_fn(read_bucket, readers)), highest_version_wins),
            len(readers),
        )


def concat_with_source(tables: Iterable[pa.Table]) -> pa.Table:
    """The tables as one, with a column ``source``: which of them a row is from."""
    numbered_tables = [
        table.append_column("source", pa.repeat(pa.scalar(index, pa.int32()), table.num_rows))
        for index, table in enumerate(tables)
    ]
    return pa.concat_tables(numbered_tables).combine_chunks()


def split_by_source(rows: pa.Table, num_sources: int) -> Iterator[pa.RecordBatch]:
    """Verdicts on all sources as a batch of :data:`VERDICTS` each, by position.

    Args:
        rows: source, position, reason (an index of :data:`VERDICT_REASONS`) and duplicate_of, in any order.
    """
    rows = rows.sort_by([("source", "ascending"), ("position", "ascending")]).combine_chunks()
    row_counts = {entry["values"]: entry["counts"] for entry in rows["source"].value_counts().to_pylist()}
    start = 0
    for index in range(num_sources):
        source_rows = rows.slice(start, row_counts.get(index, 0)).combine_chunks()
        start += source_rows.num_rows
        yield _make_decision_batch(source_rows)


def digest_decisions(decisions: pa.Table) -> str:
    """A short digest of a source's verdicts: equal digests, equal final shards."""
    reasons = pc.index_in(decisions["reason"].cast(pa.string()), DECISION_REASONS)
    plain = decisions.set_column(1, "reason", reasons)
    plain = plain.set_column(2, "duplicate_of", pc.fill_null(decisions["duplicate_of"], ""))
    digest = hashlib.sha256()
    for batch in plain.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()[:16]


def _find_dropped(keys: pa.Table, highest_version_wins: bool) -> pa.Table:
    """The records that do not live, as :func:`by_source` takes them."""
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
        chunks = rows[name].chunks
        return chunks[0] if chunks else pa.array([], data_type)

    reasons = pa.DictionaryArray.from_arrays(get_column("reason", pa.int8()), DECISION_REASONS)
    columns = [get_column("position", pa.int32()), reasons, get_column("duplicate_of", pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=DECISION_SCHEMA)
