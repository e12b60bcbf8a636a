"""All article versions that PMC has, as the newest inventory of its bucket lists them, in the mirror.

A row of an inventory's CSV files (pmc_manifest.py) is a metadata object.  There is no header, and keys are
URL-encoded (https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html):

    "pmc-oa-opendata","metadata/PMC12345.1.json","2026-01-08T11:47:59.000Z","32 hexadecimal digits"

The metadata of an article version names the MD5 of its other objects, so whatever changes in an article
changes this ETag: the inventory is both the list of all articles and what an update is found by.

It is kept as one Parquet file, sorted, with one row group for each range of ids, so that each range can be
worked on by itself.  The nine million rows of 2026 are read in batches and wait, compressed, in heaps of a
hundred ranges; one heap at a time is unpacked, sorted and written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bioshards.corpus.files import LocalFiles

from . import pmc_manifest
from .pmc_bucket import RANGE_IDS
from .pmc_manifest import NEEDED, BadInventory, Manifest
from .web import Connection

SCHEMA: Final = pa.schema(
    [
        pa.field("pmcid", pa.int32(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("modified", pa.timestamp("ms", "UTC"), nullable=False),
    ]
)
"""An article version; ETag and time of change are its metadata object's."""

_KEY: Final = r"^metadata(?:/|%2F)PMC(?P<pmcid>[1-9][0-9]{0,7})\.(?P<version>[1-9][0-9]{0,3})\.json$"
_TYPES: Final = {"Key": pa.string(), "LastModifiedDate": SCHEMA.field("modified").type, "ETag": pa.string()}
_BLOCK: Final = 2 << 20  # bytes of CSV that are read at a time
_ROWS: Final = 100_000_000  # 9.3 million in 2026
_SHRUNK: Final = 0.9
"""An inventory with less than this share of the last one's rows is taken for an accident."""
_HEAP: Final = 100 * RANGE_IDS


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory that the mirror holds.

    Attributes:
        date, md5: of its manifest.
        rows: article versions.
        strangers: rows left out, as their key is not that of an article's metadata, or is there twice.
        ranges: the numbers of the ranges that have articles, ascending.
    """

    date: str
    md5: str
    rows: int
    strangers: int
    ranges: list[int]


# What the mirror holds


def held(files: LocalFiles, mirror: str) -> Inventory | None:
    """What is known of the inventory in the mirror, or None."""
    if not files.exists(_path(mirror)):
        return None
    with files.open(_path(mirror)) as file:
        return _described(pq.read_metadata(file))


def ranges(files: LocalFiles, mirror: str) -> list[int]:
    """The numbers of the ranges that have articles, ascending; none if there is no inventory."""
    inventory = held(files, mirror)
    return inventory.ranges if inventory else []


def rows(files: LocalFiles, mirror: str, number: int) -> pa.Table:
    """The article versions of range ``number``, by pmcid and version: a table of :data:`SCHEMA`."""
    with files.open(_path(mirror)) as file:
        parquet = pq.ParquetFile(file)
        known = _described(parquet.metadata).ranges
        if number not in known:
            return SCHEMA.empty_table()
        return parquet.read_row_group(known.index(number)).cast(SCHEMA)


def newest(table: pa.Table) -> pa.Table:
    """Each article's newest version, by number (10 after 2), of a table sorted by pmcid and version."""
    return table.filter(last_of_each(table["pmcid"]))


def keys(table: pa.Table) -> pa.ChunkedArray:
    """A number for each row that says article and version, in their order."""
    articles = pc.shift_left(table["pmcid"].cast(pa.int64()), pa.scalar(16, pa.int64()))
    return pc.add(articles, table["version"].cast(pa.int64()))


def _path(mirror: str) -> str:
    return f"{mirror}/pmc/inventory.parquet"


def _described(metadata: pq.FileMetaData) -> Inventory:
    return Inventory(**json.loads(metadata.metadata[b"inventory"]))


def last_of_each(sorted_values: pa.ChunkedArray) -> pa.Array:
    """True for the last of equal values."""
    values = sorted_values.combine_chunks()
    if not len(values):
        return pa.array([], pa.bool_())
    return pa.concat_arrays([pc.not_equal(values[:-1], values[1:]), pa.array([True])])


# Bringing the newest one


def update(files: LocalFiles, mirror: str, connection: Connection, base: str) -> Inventory:
    """Bring the newest inventory into the mirror; nothing but its manifest is read if it is there.

    Args:
        base: the bucket's address, with a slash at its end.

    Raises:
        BadInventory: there is none, or it is not what it is said to be.
        BadBucket, ChecksumError: the bucket's listing cannot be read, or one of the inventory's files.
        DownloadError: the bucket did not answer.
    """
    manifest = pmc_manifest.find(connection, base)
    before = held(files, mirror)
    if before and (before.md5 == manifest.md5 or before.date > manifest.date):
        return before
    folder = f"{mirror}/pmc/inventory"  # where its files wait, should this run be stopped
    heaps = _Heaps()
    read = 0
    for data in manifest.data:
        for batch in _batches(pmc_manifest.read(files, folder, connection, base, data), manifest, data.name):
            read += batch.num_rows
            if read > _ROWS:
                raise BadInventory(f"PMC's inventory of {manifest.date} has more than {_ROWS:,} rows")
            heaps.add(_articles(batch))
    inventory = _write(files, mirror, manifest, read, heaps, before.rows if before else 0)
    for name in files.names(folder):
        files.remove(f"{folder}/{name}")
    return inventory


def _batches(body: bytes, manifest: Manifest, name: str) -> Iterator[pa.RecordBatch]:
    """The columns that are needed of a CSV file, some 70,000 rows at a time."""
    try:
        yield from pyarrow.csv.open_csv(
            pa.CompressedInputStream(pa.BufferReader(body), "gzip"),
            read_options=pyarrow.csv.ReadOptions(column_names=manifest.columns, block_size=_BLOCK),
            convert_options=pyarrow.csv.ConvertOptions(include_columns=NEEDED, column_types=_TYPES),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInventory(
            f"{name} of PMC's inventory of {manifest.date} cannot be read ({error}). "
            "If its format has changed, corpus/download/pmc_inventory.py is the file to mend."
        ) from error


def _articles(batch: pa.RecordBatch) -> pa.Table:
    """The article versions among a CSV file's rows."""
    found = pc.extract_regex(batch["Key"], _KEY)
    ours = found.is_valid()
    found = found.filter(ours)
    columns = [
        found.field("pmcid").cast(pa.int32()),
        found.field("version").cast(pa.int16()),
        batch["ETag"].filter(ours),
        batch["LastModifiedDate"].filter(ours),
    ]
    return pa.table(columns, SCHEMA)


class _Heaps:
    """Article versions, each with those of ids near to its own, compressed until all are known."""

    def __init__(self) -> None:
        self._heaps: dict[int, tuple[pa.BufferOutputStream, pa.RecordBatchStreamWriter]] = {}

    def add(self, table: pa.Table) -> None:
        numbers = pc.divide(table["pmcid"], _HEAP)
        for number in pc.unique(numbers).to_pylist():
            self._heap(number).write_table(table.filter(pc.equal(numbers, number)))

    def _heap(self, number: int) -> pa.RecordBatchStreamWriter:
        if number not in self._heaps:
            stream = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._heaps[number] = stream, pa.ipc.new_stream(stream, SCHEMA, options=options)
        return self._heaps[number][1]

    def tables(self) -> Iterator[pa.Table]:
        """Each heap, sorted, by ascending ids; of versions listed twice, the one changed last."""
        for number in sorted(self._heaps):
            stream, writer = self._heaps.pop(number)
            writer.close()
            table = pa.ipc.open_stream(stream.getvalue()).read_all()
            table = table.sort_by([(name, "ascending") for name in ("pmcid", "version", "modified")])
            yield table.filter(last_of_each(keys(table)))


def _write(
    files: LocalFiles, mirror: str, manifest: Manifest, read: int, heaps: _Heaps, before: int
) -> Inventory:
    ranges: list[int] = []
    rows = 0
    with (
        files.write(_path(mirror)) as file,
        pq.ParquetWriter(
            file, SCHEMA, compression="zstd", use_dictionary=False, write_statistics=False
        ) as parquet,
    ):
        for table in heaps.tables():
            start = 0
            for found in pc.value_counts(pc.divide(table["pmcid"], RANGE_IDS)).to_pylist():
                parquet.write_table(table.slice(start, found["counts"]), row_group_size=found["counts"])
                ranges.append(found["values"])
                start += found["counts"]
            rows += table.num_rows
        if not rows:
            raise BadInventory(
                f"PMC's inventory of {manifest.date} has {read:,} rows and not one article among them. If "
                "the bucket's names have changed, corpus/download/pmc_inventory.py is the file to mend."
            )
        if rows < _SHRUNK * before:
            raise BadInventory(
                f"PMC's inventory of {manifest.date} has {rows:,} articles, and the one in the mirror has "
                f"{before:,}: what it lacks would be taken out of the mirror. Wait for the next one; if "
                f"this is right, delete {_path(mirror)} and run again."
            )
        inventory = Inventory(manifest.date, manifest.md5, rows, read - rows, ranges)
        parquet.add_key_value_metadata({"inventory": json.dumps(asdict(inventory))})
    return inventory
