"""Decide across files which version of each citation lives: keys in, verdicts out.

The rule (DESIGN.md section 5; SOURCES.md section 1.5).  Of a PMID's records the one in the latest
file lives; in one file, the highest Version; of the same Version, the last position.  A
``DeleteCitation`` removes the PMID's records that came before it, in its own file or earlier ones,
and none that come after.

Only keys are looked at, 14 bytes a record, and they are looked at in buckets of PMIDs: memory
depends on the bucket's size, not on PubMed's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

KEYS: Final = pa.schema(
    [
        pa.field("pmid", pa.int32(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("deletes", pa.bool_(), nullable=False),
    ]
)
"""One row a record, in the order of the file: a DeleteCitation gives a row for each of its PMIDs."""

VERDICTS: Final = pa.schema(
    [
        pa.field("position", pa.int32(), nullable=False),
        pa.field("reason", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("duplicate_of", pa.string()),
    ]
)
"""One row for each record of one file that does not live, or lives but repeats another (duplicates.py)."""

VERDICT_REASONS: Final = pa.array(["superseded", "deleted", "duplicate"])
"""The reasons of :data:`VERDICTS`, its dictionary."""

BUCKET_KEYS: Final = 4_000_000
"""Keys decided at a time: 0.75 GB at the peak (make bench)."""


def buckets(keys: int) -> int:
    """In how many buckets ``keys`` keys are decided."""
    return max(1, -(-keys // BUCKET_KEYS))


def decide(sources: Sequence[Callable[[], pa.Table]], bucket: int, buckets: int) -> Iterator[pa.RecordBatch]:
    """The verdicts on one bucket's records: one batch of :data:`VERDICTS` per source, in order.

    Args:
        sources: how to read each source's :data:`KEYS`, in the order the sources are applied.
        bucket: PMIDs whose remainder by ``buckets`` is this are decided.
    """

    def within(read: Callable[[], pa.Table]) -> pa.Table:
        keys = read()
        if buckets == 1:
            return keys
        pmids = keys["pmid"]
        rest = pc.subtract(pmids, pc.multiply(pc.divide(pmids, buckets), buckets))
        return keys.filter(pc.equal(rest, bucket))

    if sources:
        yield from by_source(_dead(with_source(map(within, sources))), len(sources))


def with_source(tables: Iterable[pa.Table]) -> pa.Table:
    """The tables as one, with a column ``source``: which of them a row is from."""
    parts = [
        table.append_column("source", pa.repeat(pa.scalar(index, pa.int32()), table.num_rows))
        for index, table in enumerate(tables)
    ]
    return pa.concat_tables(parts).combine_chunks()


def by_source(rows: pa.Table, sources: int) -> Iterator[pa.RecordBatch]:
    """Verdicts on all sources as a batch of :data:`VERDICTS` each, by position.

    Args:
        rows: source, position, reason (an index of :data:`VERDICT_REASONS`) and duplicate_of, in any order.
    """
    rows = rows.sort_by([("source", "ascending"), ("position", "ascending")]).combine_chunks()
    counted = {found["values"]: found["counts"] for found in rows["source"].value_counts().to_pylist()}
    start = 0
    for index in range(sources):
        part = rows.slice(start, counted.get(index, 0)).combine_chunks()
        start += part.num_rows
        yield _batch(part)


def fingerprint(verdicts: pa.Table) -> str:
    """A short digest of a source's verdicts: equal digests, equal final shards."""
    reasons = pc.index_in(verdicts["reason"].cast(pa.string()), VERDICT_REASONS)
    plain = verdicts.set_column(1, "reason", reasons)
    plain = plain.set_column(2, "duplicate_of", pc.fill_null(verdicts["duplicate_of"], ""))
    digest = hashlib.sha256()
    for batch in plain.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()[:16]


def _dead(keys: pa.Table) -> pa.Table:
    """The records that do not live, as :func:`by_source` takes them."""
    when = pc.add(
        pc.shift_left(keys["source"].cast(pa.int64()), pa.scalar(32, pa.int64())),
        keys["position"].cast(pa.int64()),
    )
    keys = keys.append_column("when", when)
    deletions = keys.filter(keys["deletes"])
    records = keys.filter(pc.invert(keys["deletes"])).drop_columns(["deletes"])
    last = deletions.group_by("pmid").aggregate([("when", "max")])
    deleted_when = last["when_max"].take(pc.index_in(records["pmid"], value_set=last["pmid"]))
    deleted = pc.less(records["when"], deleted_when).fill_null(False)
    living = records.filter(pc.invert(deleted)).sort_by(
        [
            ("pmid", "ascending"),
            ("source", "ascending"),
            ("version", "ascending"),
            ("position", "ascending"),
        ]
    )
    pmids = living["pmid"].combine_chunks()
    superseded = pc.equal(pmids.slice(0, max(0, len(pmids) - 1)), pmids.slice(1))
    return pa.concat_tables(
        [
            _with_reason(living.slice(0, len(superseded)).filter(superseded), 0),
            _with_reason(records.filter(deleted), 1),
        ]
    )


def _with_reason(records: pa.Table, reason: int) -> pa.Table:
    count = records.num_rows
    rows = records.select(["source", "position"])
    rows = rows.append_column("reason", pa.repeat(pa.scalar(reason, pa.int8()), count))
    return rows.append_column("duplicate_of", pa.nulls(count, pa.string()))


def _batch(rows: pa.Table) -> pa.RecordBatch:
    def column(name: str, kind: pa.DataType) -> pa.Array:
        chunks = rows[name].chunks
        return chunks[0] if chunks else pa.array([], kind)

    reasons = pa.DictionaryArray.from_arrays(column("reason", pa.int8()), VERDICT_REASONS)
    columns = [column("position", pa.int32()), reasons, column("duplicate_of", pa.string())]
    return pa.RecordBatch.from_arrays(columns, schema=VERDICTS)
