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
can be read separately.  The nine million rows of 2026 are read in batches, partitioned by hundred ranges, and
sorted and written one partition at a time.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from msgspec import Meta

from bioshards.corpus.download.http_client import Connection, NotFoundError
from bioshards.corpus.download.listing import ListingError
from bioshards.corpus.download.pmc.mirror_table import open_table
from bioshards.corpus.download.pmc.s3_bucket import (
    IDS_PER_RANGE,
    INVENTORY_FOLDER,
    ChecksumError,
    list_folders,
    make_checksum_error,
)
from bioshards.corpus.manifest import Part, convert
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
"""Columns that an inventory must have."""
_BLOCK_BYTES: Final = 2 << 20  # bytes of CSV that are read at a time
_MAX_ROWS: Final = 100_000_000  # 9.3 million in 2026
_MIN_SIZE_RATIO: Final = 0.9
"""An inventory with a smaller fraction of the rows of the previous one is rejected."""
_IDS_PER_PARTITION: Final = 100 * IDS_PER_RANGE
_DATED_FOLDER: Final = re.compile(re.escape(INVENTORY_FOLDER) + r"(\d{4}-\d\d-\d\dT\d\d-\d\dZ)/", re.ASCII)
_MD5_PATTERN: Final = re.compile(r"[0-9a-fA-F]{32}")
_MAX_INVENTORIES: Final = 5  # the newest one may be incomplete, five incomplete ones are an error
_MAX_MANIFEST_BYTES: Final = 4 << 20
_MIN_READ_BYTES: Final = 1 << 20  # an error page instead of a small file is read, rejected and retried
_UPDATE: Final = "If its format has changed, corpus/download/pmc/bucket_inventory.py must be updated."


class InventoryError(ListingError):
    """There is no inventory, or its format is unknown."""


class Inventory(Part, frozen=True):
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


class DataFile(msgspec.Struct, frozen=True):
    """A CSV file of an inventory: key in the bucket, size in bytes, MD5.  There were 5 of 50 MB in 2026."""

    key: Annotated[str, Meta(pattern=rf"^{INVENTORY_FOLDER}data/[0-9A-Za-z-]{{1,100}}\.csv\.gz\Z")]
    size: Annotated[int, Meta(gt=0, le=1 << 30)]
    md5: Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{32}\Z")] = msgspec.field(name="MD5checksum")

    @property
    def name(self) -> str:
        """Name in ``data/``."""
        return self.key.rpartition("/")[2]


class InventoryManifest(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of manifest.json that are read.

    Attributes:
        file_schema: columns of the CSV files, in order, separated by commas.
        files: CSV files.
        date: name of its folder: ``2026-09-04T01-00Z``.
        md5: MD5 of manifest.json.
    """

    source_bucket: Literal["pmc-oa-opendata"]
    file_format: Literal["CSV"]
    file_schema: str
    files: Annotated[tuple[DataFile, ...], Meta(min_length=1, max_length=1000)]
    date: str = ""
    md5: str = ""

    @property
    def columns(self) -> list[str]:
        """Columns of the CSV files, in order."""
        return [name.strip() for name in self.file_schema.split(",")]


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
    path = _inventory_path(mirror)
    with open_table(storage, path) as parquet:
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
    """Return the description in the metadata of a Parquet file.

    Raises:
        TypeError, LookupError: the file has no description.
        ValueError: it is damaged.
    """
    return convert(json.loads(metadata.metadata[b"inventory"]), Inventory)


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
    """Replace the inventory in the mirror by the newest one, unless it is already there.

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
    partitions: defaultdict[int, list[pa.Table]] = defaultdict(list)
    num_rows = 0
    for data_file in manifest.files:
        body = _read_data_file(storage, folder, connection, base_url, data_file)
        for batch in _read_batches(body, manifest, data_file.name):
            num_rows += batch.num_rows
            if num_rows > _MAX_ROWS:
                raise InventoryError(f"PMC's inventory of {manifest.date} has more than {_MAX_ROWS:,} rows")
            _add_to_partitions(partitions, _parse_versions(batch))
    min_rows = _MIN_SIZE_RATIO * previous.rows if previous and not allow_removals else 0
    inventory = _write_inventory(storage, mirror, manifest, num_rows, _sort_partitions(partitions), min_rows)
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
                include_columns=list(_COLUMN_TYPES), column_types=_COLUMN_TYPES
            ),
        )
    except (pa.ArrowInvalid, OSError) as error:
        raise InventoryError(
            f"{name} of PMC's inventory of {manifest.date} cannot be read ({error}). {_UPDATE}"
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


def _add_to_partitions(partitions: defaultdict[int, list[pa.Table]], table: pa.Table) -> None:
    """Add article versions to the partitions of their ids."""
    numbers = pc.divide(table["pmcid"], _IDS_PER_PARTITION)
    for number in pc.unique(numbers).to_pylist():
        partitions[number].append(table.filter(pc.equal(numbers, number)))


def _sort_partitions(partitions: dict[int, list[pa.Table]]) -> Iterator[pa.Table]:
    """Yield the partitions by ascending ids, each sorted; of duplicate versions the last modified is kept."""
    for number in sorted(partitions):
        table = pa.concat_tables(partitions.pop(number))
        table = table.sort_by([(name, "ascending") for name in ("pmcid", "version", "modified")])
        yield table.filter(mask_last_of_each(make_version_keys(table)))


def _write_inventory(
    storage: Storage,
    mirror: str,
    manifest: InventoryManifest,
    num_rows: int,
    tables: Iterable[pa.Table],
    min_rows: float,
) -> Inventory:
    """Write sorted tables to the mirror, a row group for each range.

    Raises:
        InventoryError: they have no row, or fewer than ``min_rows``.
    """
    range_numbers: list[int] = []
    total_rows = 0
    with (
        storage.write(_inventory_path(mirror)) as file,
        pq.ParquetWriter(
            file,
            INVENTORY_SCHEMA,
            compression="zstd",
            use_dictionary=False,
            write_statistics=False,
            write_page_checksum=True,
        ) as parquet,
    ):
        for table in tables:
            start = 0
            for entry in pc.value_counts(pc.divide(table["pmcid"], IDS_PER_RANGE)).to_pylist():
                parquet.write_table(table.slice(start, entry["counts"]), row_group_size=entry["counts"])
                range_numbers.append(entry["values"])
                start += entry["counts"]
            total_rows += table.num_rows
        if not total_rows:
            raise InventoryError(
                f"PMC's inventory of {manifest.date} has {num_rows:,} rows and no article. {_UPDATE}"
            )
        if total_rows < min_rows:
            raise InventoryError(
                f"PMC's inventory of {manifest.date} has {total_rows:,} articles, fewer than "
                f"{_MIN_SIZE_RATIO:.0%} of the one in the mirror: the missing ones would be removed from the "
                "mirror. Wait for the next inventory; if this is right, repeat the command with "
                "--allow-removals."
            )
        inventory = Inventory(manifest.date, manifest.md5, total_rows, num_rows - total_rows, range_numbers)
        parquet.add_key_value_metadata({"inventory": json.dumps(msgspec.to_builtins(inventory))})
    return inventory


# The newest inventory


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
    folders = set(map(_DATED_FOLDER.fullmatch, list_folders(connection, base_url, INVENTORY_FOLDER)))
    dates = sorted(match[1] for match in folders if match)
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
    if not unchecked:
        raise InventoryError(
            f"{base_url}{INVENTORY_FOLDER} lists {len(dates)} inventories, and none of the newest "
            f"{_MAX_INVENTORIES} has a manifest. {_UPDATE}"
        )
    on_notice(
        f"PMC's inventory of {unchecked[0].date} has no manifest.checksum, nor has any of the last "
        f"{_MAX_INVENTORIES}: it names {len(unchecked[0].files):,} files, and nothing shows that these "
        "are all. Articles that it lacks would not be fetched"
    )
    return unchecked[0]


def _read_manifest(connection: Connection, folder: str) -> tuple[bytes, bool]:
    """Read manifest.json and check its MD5 against manifest.checksum; return False if that does not exist."""

    def read() -> tuple[bytes, bool]:
        manifest = connection.read(f"{folder}manifest.json", _MAX_MANIFEST_BYTES).body
        try:
            checksum = connection.read(f"{folder}manifest.checksum", _MIN_READ_BYTES).body
        except NotFoundError:
            return manifest, False
        if md5_of_bytes(manifest) not in _MD5_PATTERN.findall(checksum.decode("latin-1").lower()):
            raise InventoryError(
                f"{folder}manifest.json has the MD5 {md5_of_bytes(manifest)}, and manifest.checksum is "
                f"{checksum[:100]!r}. Rerun the command later."
            )
        return manifest, True

    return retry(read, InventoryError, READ_RETRY_POLICY)


def _parse_manifest(body: bytes, date: str) -> InventoryManifest:
    try:
        manifest = msgspec.json.decode(body, type=InventoryManifest)
        columns = manifest.columns
        if not set(_COLUMN_TYPES) <= set(columns) or len(set(columns)) < len(columns):
            raise ValueError(f"its columns are {columns}, and {list(_COLUMN_TYPES)} are needed")
    except (ValueError, RecursionError) as error:
        raise InventoryError(
            f"The manifest of PMC's inventory of {date} cannot be read ({error}). {_UPDATE}"
        ) from error
    return msgspec.structs.replace(manifest, date=date, md5=md5_of_bytes(body))


def _read_data_file(
    storage: Storage, folder: str, connection: Connection, base_url: str, data_file: DataFile
) -> bytes:
    """Read a compressed CSV file and check its MD5, caching it in ``folder``; a broken transfer is resumed.

    Raises:
        ChecksumError: it has another MD5 than in the manifest, on every read.
        DownloadError: the request failed.
    """
    path, md5 = f"{folder}/{data_file.name}", data_file.md5.lower()
    if storage.exists(path):
        with storage.open(path) as file:
            body = file.read()
        if md5_of_bytes(body) == md5:
            return body
    url = f"{base_url}{data_file.key}"

    def read() -> bytes:
        with storage.open_resumable(path, md5[:8]) as resumable:
            for offset, block in connection.stream(url, resumable.size):
                if offset != resumable.size:
                    resumable.restart()
                resumable.write(block)
                if resumable.size > data_file.size:
                    break
            body = b"".join(resumable.read_blocks())
            if md5_of_bytes(body) != md5:
                resumable.discard()
                raise make_checksum_error(url, md5, body)
            resumable.commit()
            return body

    return retry(read, ChecksumError, READ_RETRY_POLICY)
