"""Daily inventory of PMC's bucket: the list of all article versions, as it is stored in the mirror.

Once a day the bucket lists its metadata objects, one for each version of an article, in

    inventory-reports/pmc-oa-opendata/metadata/2026-09-04T01-00Z/manifest.json
    inventory-reports/pmc-oa-opendata/metadata/2026-09-04T01-00Z/manifest.checksum   its MD5
    inventory-reports/pmc-oa-opendata/metadata/data/2f6c-d1.csv.gz                   five of them, 245 MB

and keeps thirty of these, next to the folders ``data/`` and ``hive/``.  Format of the manifest
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html):

    {"sourceBucket": "pmc-oa-opendata", "fileFormat": "CSV",
     "fileSchema": "Bucket, Key, LastModifiedDate, ETag",
     "files": [{"key": "inventory-reports/pmc-oa-opendata/metadata/data/2f6c-d1.csv.gz",
                "size": 49000000, "MD5checksum": "32 hexadecimal digits"}, ...], ...}

A row of the CSV files is a metadata object.  There is no header, and keys are URL-encoded
(https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory.html):

    "pmc-oa-opendata","metadata/PMC12345.1.json","2026-01-08T11:47:59.000Z","32 hexadecimal digits"

The metadata of an article version contains the MD5 of its other objects, so that any change of an article
changes this ETag.

The inventory is stored as a sorted Parquet file with one row group for each range of ids, so that ranges
can be read separately.  The nine million rows of 2026 are read in batches, partitioned by hundred ranges in
compressed memory, and sorted and written one partition at a time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bioshards.corpus.download.http_client import Connection, NotFoundError
from bioshards.corpus.download.listing import ListingError
from bioshards.corpus.download.pmc.s3_bucket import (
    BUCKET_NAME,
    IDS_PER_RANGE,
    INVENTORY_FOLDER,
    ChecksumError,
    list_folders,
    make_checksum_error,
)
from bioshards.corpus.storage.checksums import md5_of_bytes
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry
from bioshards.corpus.storage.source_file import OnNotice, ignore_notice
from bioshards.corpus.storage.storage_protocol import Storage

INVENTORY_SCHEMA: Final = pa.schema(
    [
        pa.field("pmcid", pa.int32(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("modified", pa.timestamp("ms", "UTC"), nullable=False),
    ]
)
"""An article version with the ETag and modification time of its metadata object."""

_KEY_PATTERN: Final = r"^metadata(?:/|%2F)PMC(?P<pmcid>[1-9][0-9]{0,7})\.(?P<version>[1-9][0-9]{0,3})\.json$"
_COLUMN_TYPES: Final = {
    "Key": pa.string(),
    "LastModifiedDate": INVENTORY_SCHEMA.field("modified").type,
    "ETag": pa.string(),
}
_BLOCK_BYTES: Final = 2 << 20  # bytes of CSV that are read at a time
_MAX_ROWS: Final = 100_000_000  # 9.3 million in 2026
_MIN_SIZE_RATIO: Final = 0.9
"""An inventory with a smaller fraction of the rows of the previous one is rejected."""
_IDS_PER_PARTITION: Final = 100 * IDS_PER_RANGE


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory in the mirror.

    Attributes:
        date: date of its manifest.
        md5: MD5 of its manifest.
        rows: number of article versions.
        skipped_rows: rows whose key is not that of an article's metadata, or is a duplicate.
        ranges: numbers of the ranges with articles, ascending.
    """

    date: str
    md5: str
    rows: int
    skipped_rows: int
    ranges: list[int]


# Reading the mirror


def read_inventory(storage: Storage, mirror: str) -> Inventory | None:
    """Read the description of the inventory in the mirror; None if there is none.

    One that is damaged, or of another version of bioshards, counts as none: it is fetched again.
    """
    if not storage.exists(_inventory_path(mirror)):
        return None
    with storage.open(_inventory_path(mirror)) as file:
        try:
            return _inventory_from_metadata(pq.read_metadata(file))
        except (pa.ArrowInvalid, LookupError, TypeError, ValueError):
            return None


def list_ranges(storage: Storage, mirror: str) -> list[int]:
    """Return the numbers of the ranges with articles, ascending; empty without an inventory."""
    inventory = read_inventory(storage, mirror)
    return inventory.ranges if inventory else []


def read_range(storage: Storage, mirror: str, range_number: int) -> pa.Table:
    """Read the article versions of a range by pmcid and version, a table of :data:`INVENTORY_SCHEMA`."""
    with storage.open(_inventory_path(mirror)) as file:
        parquet = pq.ParquetFile(file)
        range_numbers = _inventory_from_metadata(parquet.metadata).ranges
        if range_number not in range_numbers:
            return INVENTORY_SCHEMA.empty_table()
        return parquet.read_row_group(range_numbers.index(range_number)).cast(INVENTORY_SCHEMA)


def select_newest(table: pa.Table) -> pa.Table:
    """Select the highest version of each article from a table sorted by pmcid and version."""
    return table.filter(mask_last_of_each(table["pmcid"]))


def make_version_keys(table: pa.Table) -> pa.ChunkedArray:
    """Compute an integer for each row that orders by pmcid and version."""
    articles = pc.shift_left(table["pmcid"].cast(pa.int64()), pa.scalar(16, pa.int64()))
    return pc.add(articles, table["version"].cast(pa.int64()))


def _inventory_path(mirror: str) -> str:
    return f"{mirror}/pmc/inventory.parquet"


def _inventory_from_metadata(metadata: pq.FileMetaData) -> Inventory:
    return Inventory(**json.loads(metadata.metadata[b"inventory"]))


def mask_last_of_each(sorted_values: pa.ChunkedArray) -> pa.Array:
    """Return a mask that is True for the last of equal values."""
    values = sorted_values.combine_chunks()
    if not len(values):
        return pa.array([], pa.bool_())
    return pa.concat_arrays([pc.not_equal(values[:-1], values[1:]), pa.array([True])])


# Updating the mirror


def update_inventory(
    storage: Storage,
    mirror: str,
    connection: Connection,
    base_url: str,
    allow_removals: bool = False,
    on_notice: OnNotice = ignore_notice,
) -> Inventory:
    """Fetch the newest inventory, unless it is in the mirror.

    Args:
        mirror: folder of the mirror.
        connection: connection to the bucket.
        base_url: URL of the bucket, with a trailing slash.
        allow_removals: accept an inventory that has far fewer rows than the one in the mirror.
        on_notice: is told of an inventory whose manifest cannot be checked.

    Raises:
        InventoryError: there is no inventory, its format is unknown, or it has far fewer rows.
        BucketListingError: the listing of the bucket cannot be read.
        ChecksumError: a file of the inventory has the wrong MD5.
        DownloadError: the request failed.
    """
    manifest = find_newest(connection, base_url, on_notice)
    previous = read_inventory(storage, mirror)
    if previous and (previous.md5 == manifest.md5 or previous.date > manifest.date):
        return previous
    folder = f"{mirror}/pmc/inventory"  # the files of an interrupted run
    partitions = _Partitions()
    num_rows = 0
    for data_file in manifest.files:
        for batch in _read_batches(
            read_data_file(storage, folder, connection, base_url, data_file),
            manifest,
            data_file.name,
        ):
            num_rows += batch.num_rows
            if num_rows > _MAX_ROWS:
                raise InventoryError(f"PMC's inventory of {manifest.date} has more than {_MAX_ROWS:,} rows")
            partitions.add(_parse_versions(batch))
    previous_rows = previous.rows if previous and not allow_removals else 0
    inventory = _write_inventory(storage, mirror, manifest, num_rows, partitions, previous_rows)
    for name in storage.list_names(folder):
        storage.remove(f"{folder}/{name}")
    return inventory


def _read_batches(body: bytes, manifest: InventoryManifest, name: str) -> Iterator[pa.RecordBatch]:
    """Yield the required columns of a CSV file in batches of about 70,000 rows."""
    try:
        yield from pyarrow.csv.open_csv(
            pa.CompressedInputStream(pa.BufferReader(body), "gzip"),
            read_options=pyarrow.csv.ReadOptions(column_names=manifest.columns, block_size=_BLOCK_BYTES),
            convert_options=pyarrow.csv.ConvertOptions(
                include_columns=REQUIRED_COLUMNS, column_types=_COLUMN_TYPES
            ),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InventoryError(
            f"{name} of PMC's inventory of {manifest.date} cannot be read ({error}). "
            "If its format has changed, corpus/download/pmc/bucket_inventory.py must be updated."
        ) from error


def _parse_versions(batch: pa.RecordBatch) -> pa.Table:
    """Parse the article versions in the rows of a CSV file."""
    groups = pc.extract_regex(batch["Key"], _KEY_PATTERN)
    is_article = groups.is_valid()
    groups = groups.filter(is_article)
    columns = [
        groups.field("pmcid").cast(pa.int32()),
        groups.field("version").cast(pa.int16()),
        batch["ETag"].filter(is_article),
        batch["LastModifiedDate"].filter(is_article),
    ]
    return pa.table(columns, INVENTORY_SCHEMA)


class _Partitions:
    """Article versions partitioned by id, in compressed memory."""

    def __init__(self) -> None:
        self._partitions: dict[int, tuple[pa.BufferOutputStream, pa.RecordBatchStreamWriter]] = {}

    def add(self, table: pa.Table) -> None:
        """Add article versions."""
        numbers = pc.divide(table["pmcid"], _IDS_PER_PARTITION)
        for number in pc.unique(numbers).to_pylist():
            self._get_writer(number).write_table(table.filter(pc.equal(numbers, number)))

    def _get_writer(self, number: int) -> pa.RecordBatchStreamWriter:
        if number not in self._partitions:
            stream = pa.BufferOutputStream()
            options = pa.ipc.IpcWriteOptions(compression="zstd")
            self._partitions[number] = stream, pa.ipc.new_stream(stream, INVENTORY_SCHEMA, options=options)
        return self._partitions[number][1]

    def tables(self) -> Iterator[pa.Table]:
        """Yield the sorted partitions by ascending ids; of duplicate versions the last modified."""
        for number in sorted(self._partitions):
            stream, writer = self._partitions.pop(number)
            writer.close()
            table = pa.ipc.open_stream(stream.getvalue()).read_all()
            table = table.sort_by([(name, "ascending") for name in ("pmcid", "version", "modified")])
            yield table.filter(mask_last_of_each(make_version_keys(table)))


def _write_inventory(
    storage: Storage,
    mirror: str,
    manifest: InventoryManifest,
    num_rows: int,
    partitions: _Partitions,
    previous_rows: int,
) -> Inventory:
    range_numbers: list[int] = []
    total_rows = 0
    with (
        storage.write(_inventory_path(mirror)) as file,
        pq.ParquetWriter(
            file, INVENTORY_SCHEMA, compression="zstd", use_dictionary=False, write_statistics=False
        ) as parquet,
    ):
        for table in partitions.tables():
            start = 0
            for entry in pc.value_counts(pc.divide(table["pmcid"], IDS_PER_RANGE)).to_pylist():
                parquet.write_table(table.slice(start, entry["counts"]), row_group_size=entry["counts"])
                range_numbers.append(entry["values"])
                start += entry["counts"]
            total_rows += table.num_rows
        if not total_rows:
            raise InventoryError(
                f"PMC's inventory of {manifest.date} has {num_rows:,} rows and no article. If "
                "the bucket's names have changed, corpus/download/pmc/bucket_inventory.py is the file to "
                "mend."
            )
        if total_rows < _MIN_SIZE_RATIO * previous_rows:
            raise InventoryError(
                f"PMC's inventory of {manifest.date} has {total_rows:,} articles, and the one in the mirror "
                "has "
                f"{previous_rows:,}: the missing ones would be removed from the mirror. Wait for the next "
                "inventory; if this is right, repeat the command with --allow-removals."
            )
        inventory = Inventory(manifest.date, manifest.md5, total_rows, num_rows - total_rows, range_numbers)
        parquet.add_key_value_metadata({"inventory": json.dumps(asdict(inventory))})
    return inventory


REQUIRED_COLUMNS: Final = ("Key", "LastModifiedDate", "ETag")
"""Columns that an inventory must have."""

_DATED_FOLDER: Final = re.compile(re.escape(INVENTORY_FOLDER) + r"(\d{4}-\d\d-\d\dT\d\d-\d\dZ)/", re.ASCII)
_DATA_FILE: Final = re.compile(re.escape(INVENTORY_FOLDER) + r"data/([0-9A-Za-z-]{1,100}\.csv\.gz)")
_MD5_PATTERN: Final = re.compile(r"[0-9a-fA-F]{32}")
_MAX_INVENTORIES: Final = 5  # the newest one may be incomplete, five incomplete ones are an error
_MAX_MANIFEST_BYTES: Final = 4 << 20
_MIN_READ_BYTES: Final = 1 << 20  # an error page instead of a small file is read, rejected and retried
_MAX_FILES: Final = 1000  # 5 in 2026
_MAX_FILE_BYTES: Final = 1 << 30  # 50 MB in 2026


class InventoryError(ListingError):
    """There is no inventory, or its format is unknown."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A CSV file of an inventory: name in ``data/``, size in bytes, MD5."""

    name: str
    size: int
    md5: str


@dataclass(frozen=True, slots=True)
class InventoryManifest:
    """Manifest of an inventory.

    Attributes:
        date: name of its folder: ``2026-09-04T01-00Z``.
        md5: MD5 of manifest.json.
        columns: columns of the CSV files, in order.
        files: CSV files.
    """

    date: str
    md5: str
    columns: tuple[str, ...]
    files: tuple[DataFile, ...]


def find_newest(
    connection: Connection, base_url: str, on_notice: OnNotice = ignore_notice
) -> InventoryManifest:
    """Find the newest complete inventory: one whose manifest has the MD5 in manifest.checksum.

    Args:
        connection: connection to the bucket.
        base_url: URL of the bucket, with a trailing slash.
        on_notice: is told if no inventory has a checksum, so that the newest manifest is taken unchecked.

    Raises:
        InventoryError: there is no inventory, or its format is unknown.
        DownloadError: the request failed.
    """
    dates = sorted(
        {
            match[1]
            for name in list_folders(connection, base_url, INVENTORY_FOLDER)
            if (match := _DATED_FOLDER.fullmatch(name))
        }
    )
    unchecked: list[InventoryManifest] = []
    for date in reversed(dates[-_MAX_INVENTORIES:]):
        try:
            body, is_checked = _read_manifest(connection, f"{base_url}{INVENTORY_FOLDER}{date}/")
        except NotFoundError:
            continue
        manifest = _parse_manifest(body, date)
        if is_checked:
            return manifest
        unchecked.append(manifest)
    if unchecked:
        on_notice(
            f"PMC's inventory of {unchecked[0].date} has no manifest.checksum, nor has any of the last "
            f"{_MAX_INVENTORIES}: it names {len(unchecked[0].files):,} files, and nothing shows that these "
            "are all. Articles that it lacks would not be fetched"
        )
        return unchecked[0]
    raise InventoryError(
        f"{base_url}{INVENTORY_FOLDER} lists {len(dates)} inventories, and none of the newest "
        f"{_MAX_INVENTORIES} has a manifest. "
        "If the bucket's layout has changed, corpus/download/pmc/bucket_inventory.py must be updated."
    )


def _read_manifest(connection: Connection, folder: str) -> tuple[bytes, bool]:
    """Read manifest.json and check its MD5 against manifest.checksum; return False if that does not exist."""

    def read() -> tuple[bytes, bool]:
        manifest = connection.read(f"{folder}manifest.json", _MAX_MANIFEST_BYTES).body
        try:
            checksum = (
                connection.read(f"{folder}manifest.checksum", _MIN_READ_BYTES).body.decode("latin-1").lower()
            )
        except NotFoundError:
            return manifest, False
        if md5_of_bytes(manifest) not in _MD5_PATTERN.findall(checksum):
            raise InventoryError(
                f"{folder}manifest.json has the MD5 {md5_of_bytes(manifest)}, and manifest.checksum is "
                f"{checksum[:100]!r}. Rerun the command later."
            )
        return manifest, True

    return retry(read, InventoryError, READ_RETRY_POLICY)


def _parse_manifest(body: bytes, date: str) -> InventoryManifest:
    try:
        manifest = json.loads(body)
        columns = tuple(name.strip() for name in manifest["fileSchema"].split(","))
        data = tuple(_parse_file_entry(entry) for entry in manifest["files"])
        if manifest["sourceBucket"] != BUCKET_NAME or manifest["fileFormat"] != "CSV":
            raise ValueError(f"it is of {manifest['sourceBucket']!r}, as {manifest['fileFormat']!r}")
        if not set(REQUIRED_COLUMNS) <= set(columns) or len(set(columns)) < len(columns):
            raise ValueError(f"its columns are {columns}, and {REQUIRED_COLUMNS} are needed")
        if not 0 < len(data) <= _MAX_FILES:
            raise ValueError(f"it has {len(data)} files")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise InventoryError(
            f"The manifest of PMC's inventory of {date} cannot be read ({type(error).__name__}: {error}). "
            "If its format has changed, corpus/download/pmc/bucket_inventory.py must be updated."
        ) from error
    return InventoryManifest(date, md5_of_bytes(body), columns, data)


def _parse_file_entry(entry: Any) -> DataFile:
    key, size, md5 = entry["key"], entry["size"], entry["MD5checksum"]
    name = _DATA_FILE.fullmatch(key)
    if not name:
        raise ValueError(f"it names the file {key[:200]!r}")
    if type(size) is not int or not 0 < size <= _MAX_FILE_BYTES:
        raise ValueError(f"{name[1]} has the size {size!r}")
    if not _MD5_PATTERN.fullmatch(md5):
        raise ValueError(f"{name[1]} has the MD5 {md5[:200]!r}")
    return DataFile(name[1], size, md5.lower())


def read_data_file(
    storage: Storage, folder: str, connection: Connection, base_url: str, data_file: DataFile
) -> bytes:
    """Read a compressed CSV file and check its MD5, caching it in ``folder``; a broken transfer is resumed.

    Raises:
        ChecksumError: it has another MD5 than in the manifest, on every read.
        DownloadError: the request failed.
    """
    path = f"{folder}/{data_file.name}"
    if storage.exists(path):
        with storage.open(path) as file:
            body = file.read()
        if md5_of_bytes(body) == data_file.md5:
            return body
    url = f"{base_url}{INVENTORY_FOLDER}data/{data_file.name}"

    def read() -> bytes:
        with storage.open_resumable(path, data_file.md5[:8]) as resumable:
            for offset, block in connection.stream(url, resumable.size):
                if offset != resumable.size:
                    resumable.restart()
                resumable.write(block)
                if resumable.size > data_file.size:
                    break
            body = b"".join(resumable.read_blocks())
            if md5_of_bytes(body) != data_file.md5:
                resumable.discard()
                raise make_checksum_error(url, data_file.md5, body)
            resumable.commit()
            return body

    return retry(read, ChecksumError, READ_RETRY_POLICY)
