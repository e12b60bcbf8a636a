"""PMC's bucket inventory: selection of the newest, verification and storage by range."""

from __future__ import annotations

import gzip
import hashlib
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bioshards.corpus.download.http_client import HttpResponse
from bioshards.corpus.download.pmc import bucket_inventory
from bioshards.corpus.download.pmc.bucket_inventory import INVENTORY_SCHEMA, Inventory, InventoryError
from bioshards.corpus.download.pmc.s3_bucket import BucketListingError, ChecksumError, list_folders
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.paths import REPOSITORY
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    HTML_RESPONSE,
    INVENTORY_PREFIX,
    FakeArticle,
    FakeBucket,
    FolderConnection,
    create_bucket,
)

FILES = LocalStorage()
LISTING = f"?list-type=2&prefix={INVENTORY_PREFIX.replace('/', '%2F')}&delimiter=%2F"
DAY = "2026-09-04"


@pytest.fixture
def bucket(tmp_path: Path) -> FakeBucket:
    articles = [
        FakeArticle(1),
        FakeArticle(11),
        FakeArticle(9_999),
        FakeArticle(10_000),
        FakeArticle(1_234_567),
    ]
    articles += [FakeArticle(7, version) for version in (1, 2, 9, 10, 11)]
    return create_bucket(tmp_path / "bucket", articles, DAY)


@dataclass
class MirroredInventory:
    """The inventory of a bucket, and that in a mirror."""

    bucket: FakeBucket
    connection: FolderConnection
    mirror: str

    def update(self, on_notice: Callable[[str], None] = lambda _: None) -> Inventory:
        return bucket_inventory.update_inventory(
            FILES, self.mirror, self.connection, BASE_URL, on_notice=on_notice
        )

    def read(self) -> Inventory | None:
        return bucket_inventory.read_inventory(FILES, self.mirror)

    def read_range(self, number: int) -> pa.Table:
        return bucket_inventory.read_range(FILES, self.mirror, number)

    def list_versions(self) -> list[tuple[int, int]]:
        """Return the ids and versions of all rows of the inventory in the mirror."""
        versions = []
        for number in bucket_inventory.list_ranges(FILES, self.mirror):
            for row in self.read_range(number).to_pylist():
                assert row["pmcid"] // 10_000 == number
                versions.append((row["pmcid"], row["version"]))
        return versions

    def publish_data_file(self, body: bytes, day: str = DAY, **fields: str) -> None:
        """Publish an inventory of one file of rows, and with other fields in its manifest."""
        key = f"{INVENTORY_PREFIX}data/x.csv.gz"
        self.bucket.write(key, body)
        files = [{"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()}]
        self.bucket.publish_inventory(
            day, edit_manifest=lambda manifest: manifest.update(files=files, **fields)
        )


@pytest.fixture
def inventory(tmp_path: Path, bucket: FakeBucket, connection: FolderConnection) -> MirroredInventory:
    return MirroredInventory(bucket, connection, str(tmp_path / "mirror"))


def test_rows_are_sorted_and_grouped_by_range(inventory: MirroredInventory) -> None:
    assert inventory.read() is None
    assert bucket_inventory.list_ranges(FILES, inventory.mirror) == []
    with FILES.write(f"{inventory.mirror}/pmc/inventory/{DAY}-0.csv.gz") as file:
        file.write(b"something else, which is verified before use")
    found = inventory.update()
    assert (found.date, found.rows, found.skipped_rows) == (f"{DAY}T01-00Z", 10, 0)
    assert found.ranges == bucket_inventory.list_ranges(FILES, inventory.mirror) == [0, 1, 123]
    versions = [(7, 1), (7, 2), (7, 9), (7, 10), (7, 11)]
    assert inventory.list_versions() == [(1, 1), *versions, (11, 1), (9_999, 1), (10_000, 1), (1_234_567, 1)]
    newest = bucket_inventory.select_newest(inventory.read_range(0)).to_pylist()
    assert [(row["pmcid"], row["version"]) for row in newest] == [(1, 1), (7, 11), (11, 1), (9_999, 1)]
    assert bucket_inventory.select_newest(INVENTORY_SCHEMA.empty_table()).num_rows == 0
    assert inventory.read_range(5) == INVENTORY_SCHEMA.empty_table()
    [row] = inventory.read_range(123).to_pylist()
    body = (inventory.bucket.root / "metadata/PMC1234567.1.json").read_bytes()
    assert row["etag"] == hashlib.md5(body).hexdigest()
    assert row["modified"].isoformat() == "2026-09-04T00:00:00+00:00"
    inventory.connection.requests.clear()
    assert inventory.update() == found == inventory.read()
    assert len(inventory.connection.requests) == 3, "a known inventory is not fetched again"
    assert not inventory.connection.requests_containing("csv.gz")


# Rows in the mirror


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"md5"', b'"sum"'),
        (b'"md5"', b'"new": 1, "md5"'),
        (b'"rows": ', b'"rows": 0.5'),
        (b'"ranges": [', b'"ranges": ["first", '),
        (b"", b""),  # no description
        (b"", None),  # half a file
    ],
)
def test_unreadable_inventory_is_fetched_again(
    inventory: MirroredInventory, old: bytes, new: bytes | None
) -> None:
    first = inventory.update()
    path = Path(f"{inventory.mirror}/pmc/inventory.parquet")
    table, description = pq.read_table(path), pq.read_metadata(path).metadata[b"inventory"]
    if new is None:
        path.write_bytes(path.read_bytes()[:-100])
    else:
        assert old in description
        changed = {b"inventory": description.replace(old, new)} if old else None
        pq.write_table(table.replace_schema_metadata(changed), path)
    assert inventory.read() is None
    assert inventory.update() == first == inventory.read()


def test_older_inventory_or_one_without_manifest_does_not_replace_a_newer_one(
    inventory: MirroredInventory,
) -> None:
    inventory.bucket.publish_inventory("2026-09-03")
    inventory.bucket.publish_inventory("2026-09-05", complete=False)
    newest = inventory.update()
    assert newest.date == f"{DAY}T01-00Z"
    (inventory.bucket.root / f"{INVENTORY_PREFIX}{DAY}T01-00Z/manifest.json").unlink()
    assert inventory.update() == newest


def test_interrupted_update_is_resumed(inventory: MirroredInventory) -> None:
    second = f"{INVENTORY_PREFIX}data/{DAY}-1.csv.gz"
    inventory.connection.faults[second] = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        inventory.update()
    assert inventory.read() is None
    inventory.update()
    assert len(inventory.connection.requests_containing(f"{DAY}-0.csv.gz")) == 1
    assert FILES.list_names(f"{inventory.mirror}/pmc/inventory") == []


# Selection of the inventory


def test_all_pages_of_the_listing_are_read(inventory: MirroredInventory) -> None:
    for day in range(10, 30):
        inventory.bucket.write(f"{INVENTORY_PREFIX}2026-08-{day}T01-00Z/manifest.json", b"")
    inventory.connection = FolderConnection(inventory.bucket.root, page_size=3)
    assert bucket_inventory.find_newest(inventory.connection, BASE_URL).date == f"{DAY}T01-00Z"
    assert len(inventory.connection.requests_containing("?")) == 8


def test_endless_listing_is_an_error(inventory: MirroredInventory) -> None:
    for number in range(30):
        inventory.bucket.write(f"many/{number}/x", b"")
    with pytest.raises(BucketListingError, match="more than 20 pages"):
        list_folders(FolderConnection(inventory.bucket.root, page_size=1), BASE_URL, "many/")


def test_only_dated_folders_below_the_prefix_count(inventory: MirroredInventory) -> None:
    names = [
        f"{INVENTORY_PREFIX}9999-12-31T01-00Z/../../x/",
        f"{INVENTORY_PREFIX}data/",
        "other/9999-12-31T01-00Z/",
        "http://other.invalid/",
    ]
    names += [
        f"{INVENTORY_PREFIX}9999-12-31/",
        f"{INVENTORY_PREFIX}٩999-12-31T01-00Z/",
        f"{INVENTORY_PREFIX}{DAY}T01-00Z/",
    ]
    prefixes = "".join(f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" for name in names)
    end = "<CommonPrefixes/><IsTruncated>false</IsTruncated>"
    page = f"<ListBucketResult>{prefixes}{end}</ListBucketResult>"
    inventory.connection.faults[LISTING] = [HttpResponse(page.encode(), "")]
    assert bucket_inventory.find_newest(inventory.connection, BASE_URL).date == f"{DAY}T01-00Z"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<html>Please try again later</html>", "Please try again later"),
        ("", "not a complete listing"),
        *(
            (f"<ListBucketResult><CommonPrefixes/>{end}</ListBucketResult>", "not a complete listing")
            for end in (
                "",
                "<IsTruncated>true</IsTruncated>",
                "<IsTruncated>true</IsTruncated><NextContinuationToken/>",
                "<IsTruncated>false</IsTruncated><KeyCount>2</KeyCount>",
            )
        ),
    ],
)
def test_listing_page_that_is_incomplete_or_another_is_retried(
    inventory: MirroredInventory, content: str, message: str
) -> None:
    page = HttpResponse(content.encode(), "")
    inventory.connection.faults[LISTING] = [page] * 2
    assert inventory.update().rows == 10
    inventory.connection.faults[LISTING] = [page] * 3
    with pytest.raises(BucketListingError, match=message):
        inventory.update()


def test_bucket_without_inventories_is_an_error(inventory: MirroredInventory, tmp_path: Path) -> None:
    inventory.connection = FolderConnection(tmp_path)
    with pytest.raises(InventoryError, match="lists 0 inventories"):
        inventory.update()


# Invalid manifests


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda manifest: manifest.update(sourceBucket="other"), "Invalid enum value 'other'.*sourceBucket"),
        (lambda manifest: manifest.update(fileFormat="ORC"), "Invalid enum value 'ORC'.*fileFormat"),
        (lambda manifest: manifest.update(fileSchema="Bucket, Key, LastModifiedDate"), "its columns"),
        (
            lambda manifest: manifest.update(fileSchema="Bucket, Key, LastModifiedDate, ETag, Key"),
            "its columns",
        ),
        (lambda manifest: manifest.update(fileSchema=["Key", "ETag"]), "fileSchema"),
        (lambda manifest: manifest.pop("files"), "missing required field `files`"),
        (lambda manifest: manifest.update(files=[]), "length >= 1 .*files"),
        (lambda manifest: manifest.update(files=manifest["files"] * 501), "length <= 1000 .*files"),
        (lambda manifest: manifest.update(files=[1]), r"got `int` .*files\[0\]"),
        (
            lambda manifest: manifest["files"][0].update(key=f"{INVENTORY_PREFIX}data/../x.csv.gz"),
            r"matching regex .*files\[0\]\.key",
        ),
        (
            lambda manifest: manifest["files"][0].update(key="http://other.invalid/x.csv.gz"),
            r"matching regex .*files\[0\]\.key",
        ),
        (
            lambda manifest: manifest["files"][0].update(key=f"{INVENTORY_PREFIX}data/x.csv.gz\n"),
            r"matching regex .*files\[0\]\.key",
        ),
        (lambda manifest: manifest["files"][0].update(size=1 << 50), r"files\[0\]\.size"),
        (lambda manifest: manifest["files"][0].update(size="7"), r"files\[0\]\.size"),
        (lambda manifest: manifest["files"][0].update(MD5checksum="abc"), r"files\[0\]\.MD5checksum"),
    ],
)
def test_invalid_manifest_is_an_error_that_names_the_module(
    inventory: MirroredInventory, edit: Callable[[dict[str, Any]], object], message: str
) -> None:
    inventory.bucket.publish_inventory(DAY, edit_manifest=edit)
    with pytest.raises(InventoryError, match=message) as raised:
        inventory.update()
    assert "bucket_inventory.py must be updated" in str(raised.value)
    assert not inventory.connection.requests_containing("csv.gz")


def test_manifest_other_than_json_is_an_error(inventory: MirroredInventory) -> None:
    folder = f"{INVENTORY_PREFIX}{DAY}T01-00Z"
    (inventory.bucket.root / folder / "manifest.checksum").unlink()
    for body in (b"", b"[" * 100_000, b"[]", b"\xff\xfe"):
        inventory.bucket.write(f"{folder}/manifest.json", body)
        with pytest.raises(InventoryError, match="cannot be read"):
            inventory.update()


def test_damaged_manifest_is_retried(inventory: MirroredInventory) -> None:
    key = f"{INVENTORY_PREFIX}{DAY}T01-00Z/manifest.json"
    inventory.connection.faults[key] = [HTML_RESPONSE]
    assert inventory.update().rows == 10
    inventory.connection.faults[key] = [HTML_RESPONSE] * 3
    with pytest.raises(InventoryError, match=r"manifest\.checksum is"):
        inventory.update()


def test_inventory_with_a_checksum_is_preferred(inventory: MirroredInventory) -> None:
    inventory.bucket.publish_inventory("2026-09-05", edit_manifest=lambda manifest: manifest["files"].pop())
    (inventory.bucket.root / f"{INVENTORY_PREFIX}2026-09-05T01-00Z/manifest.checksum").unlink()
    notices: list[str] = []
    found = inventory.update(notices.append)
    assert (found.date, found.rows, notices) == (f"{DAY}T01-00Z", 10, [])


def test_columns_are_found_by_the_schema(inventory: MirroredInventory) -> None:
    row = '"7","abc-2","2026-01-01T00:00:00.000Z","S","metadata/PMC5.1.json"\n'
    schema = "Size,ETag, LastModifiedDate, Storage, Key"
    inventory.publish_data_file(gzip.compress(row.encode()), fileSchema=schema)
    inventory.update()
    [article] = inventory.read_range(0).to_pylist()
    assert (article["pmcid"], article["etag"]) == (5, "abc-2")


# Rows


OTHER_KEYS = [
    "metadata/../PMC1.1.json",
    "metadata/PMC1.1.json\n",
    "x/metadata/PMC1.1.json",
    "metadata/PMC01.1.json",
    "metadata/PMC1.json",
    "metadata/PMC123456789.1.json",
    "metadata/PMC1.12345.json",
    "metadata/PMC٣.1.json",
    "https://other.invalid/metadata/PMC1.1.json",
    "",
]


def test_other_keys_are_skipped(inventory: MirroredInventory) -> None:
    inventory.bucket.publish_inventory(DAY, extra_keys=OTHER_KEYS)
    found = inventory.update()
    assert (found.rows, found.skipped_rows) == (10, len(OTHER_KEYS))


ROW = b'"b","metadata/PMC5.1.json","2026-01-02T00:00:00.000Z","x"\n'


def test_key_may_be_encoded_and_counts_once(inventory: MirroredInventory) -> None:
    encoded = ROW.replace(b"data/", b"data%2F").replace(b'"x"', b'"new"')
    inventory.publish_data_file(gzip.compress(encoded + ROW.replace(b"01-02", b"01-01")))
    assert inventory.update().skipped_rows == 1
    assert [row["etag"] for row in inventory.read_range(0).to_pylist()] == ["new"]


@pytest.mark.parametrize(
    "body",
    [
        gzip.compress(ROW.replace(b',"x"', b"")),
        gzip.compress(ROW.replace(b"2026-01-02T00:00:00.000Z", b"yesterday")),
        gzip.compress(b'"b","' + b"x" * 30_000_000 + b'","2026-01-02T00:00:00.000Z","x"\n'),
        gzip.compress(ROW.replace(b'"x"', b'"\xff"')),
        gzip.compress(b""),
        ROW,
        gzip.compress(ROW * 1000)[:-20],
    ],
    ids=["columns", "date", "long", "utf-8", "empty", "not packed", "truncated"],
)
def test_malformed_rows_are_an_error(inventory: MirroredInventory, body: bytes) -> None:
    inventory.publish_data_file(body)
    with pytest.raises(InventoryError, match="cannot be read"):
        inventory.update()
    assert inventory.read() is None


def test_inventory_without_articles_is_an_error_and_keeps_the_old_one(inventory: MirroredInventory) -> None:
    inventory.update()
    inventory.publish_data_file(gzip.compress(ROW.replace(b"metadata/PMC", b"articles/")), "2026-09-05")
    with pytest.raises(InventoryError, match="and no article"):
        inventory.update()
    assert len(inventory.list_versions()) == 10


def test_damaged_data_file_is_read_three_times(
    inventory: MirroredInventory, retry_pauses: list[float]
) -> None:
    key = f"{INVENTORY_PREFIX}data/{DAY}-0.csv.gz"
    inventory.connection.faults[key] = [HTML_RESPONSE, HTML_RESPONSE]
    inventory.update()
    assert len(inventory.connection.requests_containing(key)) == 3
    assert len(retry_pauses) == 2
    FILES.remove(f"{inventory.mirror}/pmc/inventory.parquet")
    inventory.connection.faults[key] = [HTML_RESPONSE] * 3
    with pytest.raises(ChecksumError, match=f"{DAY}-0.csv.gz: its MD5 should be"):
        inventory.update()


# Memory

UPDATE_SCRIPT = """
import resource, sys
from dataclasses import dataclass
from pathlib import Path
from bioshards.corpus.download.pmc import bucket_inventory
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.servers.fake_pmc_bucket import BASE_URL, FolderConnection
root, mirror = sys.argv[1:]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
inventory = bucket_inventory.update_inventory(
    LocalStorage(), mirror, FolderConnection(Path(root)), BASE_URL
)
assert inventory.rows == 1_000_000 and len(inventory.ranges) == 1300
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.thorough
def test_million_rows_take_bounded_memory(tmp_path: Path) -> None:
    """On a two-core machine 1.1 seconds and 275 MB in all; 9.3 million rows took 9 seconds and 605 MB."""
    bucket = FakeBucket(tmp_path / "bucket")
    rows = (
        f'"b","metadata/PMC{number * 7_919 % 13_000_000}.1.json",'
        f'"2026-01-08T11:47:59.000Z","{number * 2**70:032x}"\n'
        for number in range(1, 1_000_001)
    )
    inventory = MirroredInventory(bucket, FolderConnection(bucket.root), str(tmp_path / "mirror"))
    inventory.publish_data_file(gzip.compress("".join(rows).encode()))
    completed = subprocess.run(
        [sys.executable, "-c", UPDATE_SCRIPT, bucket.root, tmp_path / "mirror"],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
    )
    assert completed.returncode == 0, completed.stderr
    assert int(completed.stdout) < 400
