"""Daily inventories of the bucket: the newest one and its files.

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
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.download.http_client import Connection, NotFoundError
from bioshards.corpus.download.listing import ListingError
from bioshards.corpus.download.pmc.s3_bucket import (
    BUCKET_NAME,
    INVENTORY_FOLDER,
    ChecksumError,
    list_folders,
    make_checksum_error,
)
from bioshards.corpus.storage.checksums import md5_of_bytes
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry
from bioshards.corpus.storage.source_file import OnNotice, ignore_notice
from bioshards.corpus.storage.storage_protocol import Storage

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
        "If the bucket's layout has changed, corpus/download/pmc/inventory_manifest.py must be updated."
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
            "If its format has changed, corpus/download/pmc/inventory_manifest.py must be updated."
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
