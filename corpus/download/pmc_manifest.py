"""The bucket's daily inventory: which is the newest, and the files that it is made of.

Once a day the bucket lists its metadata objects, one a version of an article, in

    inventory-reports/pmc-oa-opendata/metadata/2026-09-04T01-00Z/manifest.json
    inventory-reports/pmc-oa-opendata/metadata/2026-09-04T01-00Z/manifest.checksum   its MD5
    inventory-reports/pmc-oa-opendata/metadata/data/2f6c-d1.csv.gz                   five of them, 245 MB

and keeps thirty of these.  Beside the dates' folders lie ``data/`` and ``hive/``.  The manifest is as Amazon
describes it (https://docs.aws.amazon.com/AmazonS3/latest/userguide/storage-inventory-location.html):

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

from bioshards.corpus.files import LocalFiles

from .listing import ListingError
from .pmc_bucket import NAME, READINGS, folders, md5_of, read_checked
from .web import Connection, NotFoundError

FOLDER: Final = f"inventory-reports/{NAME}/metadata/"
NEEDED: Final = ("Key", "LastModifiedDate", "ETag")
"""The columns that an inventory must have."""

_DATED: Final = re.compile(re.escape(FOLDER) + r"(\d{4}-\d\d-\d\dT\d\d-\d\dZ)/", re.ASCII)
_DATA: Final = re.compile(re.escape(FOLDER) + r"data/([0-9A-Za-z-]{1,100}\.csv\.gz)")
_MD5: Final = re.compile(r"[0-9a-fA-F]{32}")
_TRIED: Final = 5  # the newest inventory may not be complete yet; if five are not, something else is wrong
_MANIFEST_BYTES: Final = 4 << 20
_PAGE_BYTES: Final = (
    1 << 20
)  # so that an error page in a small file's place is read, found wrong, and read again
_FILES: Final = 1000  # 5 in 2026
_FILE_BYTES: Final = 1 << 30  # 50 MB in 2026


class BadInventory(ListingError):
    """There is no inventory, or it is not what it is said to be."""


@dataclass(frozen=True, slots=True)
class DataFile:
    """A CSV file of an inventory: its name in ``data/``, size in bytes, and MD5."""

    name: str
    size: int
    md5: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """An inventory as its manifest describes it.

    Attributes:
        date: when it was taken, as its folder says: ``2026-09-04T01-00Z``.
        md5: of manifest.json.
        columns: of its CSV files, in order.
        data: its CSV files, all of them.
    """

    date: str
    md5: str
    columns: tuple[str, ...]
    data: tuple[DataFile, ...]


def find(connection: Connection, base: str) -> Manifest:
    """The newest inventory that is complete.

    Args:
        base: the bucket's address, with a slash at its end.

    Raises:
        BadInventory: there is none, or it is not what this program knows how to read.
        DownloadError: the bucket did not answer.
    """
    dates = sorted(
        {found[1] for name in folders(connection, base, FOLDER) if (found := _DATED.fullmatch(name))}
    )
    for date in reversed(dates[-_TRIED:]):
        try:
            return _parse(_manifest(connection, f"{base}{FOLDER}{date}/"), date)
        except NotFoundError:
            continue
    raise BadInventory(
        f"{base}{FOLDER} lists {len(dates)} inventories, and none of the newest {_TRIED} has a manifest. "
        "If the bucket's layout has changed, corpus/download/pmc_manifest.py is the file to mend."
    )


def _manifest(connection: Connection, folder: str) -> bytes:
    """manifest.json, with the MD5 that manifest.checksum names, if there is such a file."""
    for _ in range(READINGS):
        manifest = connection.read(f"{folder}manifest.json", _MANIFEST_BYTES).body
        try:
            checksum = (
                connection.read(f"{folder}manifest.checksum", _PAGE_BYTES).body.decode("latin-1").lower()
            )
        except NotFoundError:
            return manifest
        if md5_of(manifest) in _MD5.findall(checksum):
            return manifest
    raise BadInventory(
        f"{folder}manifest.json has the MD5 {md5_of(manifest)}, and manifest.checksum beside it says "
        f"{checksum[:100]!r}. Try again later."
    )


def _parse(body: bytes, date: str) -> Manifest:
    try:
        manifest = json.loads(body)
        columns = tuple(name.strip() for name in manifest["fileSchema"].split(","))
        data = tuple(_data_file(listed) for listed in manifest["files"])
        if manifest["sourceBucket"] != NAME or manifest["fileFormat"] != "CSV":
            raise ValueError(f"it is of {manifest['sourceBucket']!r}, as {manifest['fileFormat']!r}")
        if not set(NEEDED) <= set(columns) or len(set(columns)) < len(columns):
            raise ValueError(f"its columns are {columns}, and {NEEDED} are needed")
        if not 0 < len(data) <= _FILES:
            raise ValueError(f"it has {len(data)} files")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadInventory(
            f"The manifest of PMC's inventory of {date} cannot be read ({type(error).__name__}: {error}). "
            "If its format has changed, corpus/download/pmc_manifest.py is the file to mend."
        ) from error
    return Manifest(date, md5_of(body), columns, data)


def _data_file(listed: Any) -> DataFile:
    key, size, md5 = listed["key"], listed["size"], listed["MD5checksum"]
    name = _DATA.fullmatch(key)
    if not name:
        raise ValueError(f"it names the file {key[:200]!r}")
    if type(size) is not int or not 0 < size <= _FILE_BYTES:
        raise ValueError(f"{name[1]} has the size {size!r}")
    if not _MD5.fullmatch(md5):
        raise ValueError(f"{name[1]} has the MD5 {md5[:200]!r}")
    return DataFile(name[1], size, md5.lower())


def read(files: LocalFiles, folder: str, connection: Connection, base: str, data: DataFile) -> bytes:
    """A CSV file as it is compressed, checked; from ``folder`` if it is there, else put there.

    Raises:
        ChecksumError: it has not the MD5 that the manifest names, whenever it is read.
        DownloadError: the bucket did not give it.
    """
    path = f"{folder}/{data.name}"
    if files.exists(path):
        with files.open(path) as file:
            body = file.read()
        if md5_of(body) == data.md5:
            return body
    at_most = max(data.size, _PAGE_BYTES)
    body = read_checked(connection, f"{base}{FOLDER}data/{data.name}", at_most, data.md5)
    with files.write(path) as file:
        file.write(body)
    return body
