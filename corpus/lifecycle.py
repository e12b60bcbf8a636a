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

KEYS: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("deletes", pa.bool_(), nullable=False),
    ]
)
"""One row a record, in the order of the source; the key is the number of what it is a version of: a PMID, a
PMCID's number.  A DeleteCitation gives a row for each of its PMIDs."""

VERDICTS: Final = pa.schema(
    [
        pa.field("position", pa.int32(), nullable=False),
        pa.field("reason", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("duplicate_of", pa.string()),
    ]
)
"""One row for each record of one file that does not live, or lives but repeats another (duplicates.py) or is
listed (excluded.py)."""

VERDICT_REASONS: Final = pa.array(["superseded", "deleted", "duplicate", "excluded"])
"""The reasons of :data:`VERDICTS`, its dictionary."""

Read = Callable[[], pa.Table]
"""Reads what is to be known of a source."""

BUCKET_KEYS: Final = 4_000_000
"""Keys decided at a time: 0.75 GB at the peak (make bench)."""


def buckets(keys: int) -> int:
    """In how many buckets ``keys`` keys are decided."""
    return max(1, -(-keys // BUCKET_KEYS))


def decide(
    sources: Sequence[Read],
    bucket: int,
    buckets: int,
    by_version: bool = False,
    many: Callable[[Callable[[Read], pa.Table], Sequence[Read]], Iterable[pa.Table]] = map,
) -> Iterator[pa.RecordBatch]:
    """The verdicts on one bucket's records: one batch of :data:`VERDICTS` per source, in order.

    Args:
        sources: how to read each source's :data:`KEYS`, in the order the sources are applied.
        bucket: keys whose remainder by ``buckets`` is this are decided.
        by_version: PMC's rule, else PubMed's.
        many: gives the results of a function for each source, in order, as ``map`` does.
    """

    def within(read: Read) -> pa.Table:
        keys = read()
        if buckets == 1:
            return keys
        numbers = keys["key"]
        rest = pc.subtract(numbers, pc.multiply(pc.divide(numbers, buckets), buckets))
        return keys.filter(pc.equal(rest, bucket))

    if sources:
        yield from by_source(_dead(with_source(many(within, sources)), by_version), len(sources))


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


def _dead(keys: pa.Table, by_version: bool) -> pa.Table:
    """The records that do not live, as :func:`by_source` takes them."""
    when = pc.add(
        pc.shift_left(keys["source"].cast(pa.int64()), pa.scalar(32, pa.int64())),
        keys["position"].cast(pa.int64()),
    )
    keys = keys.append_column("when", when)
    deletions = keys.filter(keys["deletes"])
    records = keys.filter(pc.invert(keys["deletes"])).drop_columns(["deletes"])
    last = deletions.group_by("key").aggregate([("when", "max")])
    deleted_when = last["when_max"].take(pc.index_in(records["key"], value_set=last["key"]))
    deleted = pc.less(records["when"], deleted_when).fill_null(False)
    newest = ("version", "source", "position") if by_version else ("source", "version", "position")
    order = [(column, "ascending") for column in ("key", *newest)]
    living = records.filter(pc.invert(deleted)).sort_by(order)
    numbers = living["key"].combine_chunks()
    superseded = pc.equal(numbers.slice(0, max(0, len(numbers) - 1)), numbers.slice(1))
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
