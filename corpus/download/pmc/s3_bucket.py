"""PMC's article bucket in S3: URL, listings and verified reads.

Since August 2026 PMC is distributed as public objects in Amazon S3
(https://pmc.ncbi.nlm.nih.gov/tools/pmcaws/, https://pmc-oa-opendata.s3.amazonaws.com/README.txt):

    PMC12345.1/PMC12345.1.xml     version 1 of article PMC12345
    metadata/PMC12345.1.json      metadata: licence, checksums
    inventory-reports/...         daily lists of the metadata objects (bucket_inventory.py)

Listings have the format of S3
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html):

    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <IsTruncated>true</IsTruncated><NextContinuationToken>...</NextContinuationToken>
      <CommonPrefixes><Prefix>inventory-reports/.../2026-09-04T01-00Z/</Prefix></CommonPrefixes>
    </ListBucketResult>
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode

from lxml import etree

from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    NotFoundError,
    RefusedError,
    UnreachableError,
)
from bioshards.corpus.download.listing import ListingError
from bioshards.corpus.manifest import FailedArticle
from bioshards.corpus.storage.checksums import md5_of_bytes
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry

BUCKET_NAME: Final = "pmc-oa-opendata"
INVENTORY_FOLDER: Final = f"inventory-reports/{BUCKET_NAME}/metadata/"

IDS_PER_RANGE: Final = 10_000
"""Number of ids in a range, the unit of work: range 123 is PMC1230000 to PMC1239999."""

_MAX_PAGES: Final = 20  # of a thousand entries each, thirty entries are expected
_MAX_PAGE_BYTES: Final = 4 << 20  # a thousand keys of 1,024 bytes, the limit of S3, are 1 MB


class BucketListingError(ListingError):
    """The format of a listing of the bucket is unknown."""


class ChecksumError(DownloadError):
    """An object has the wrong checksum or content, on every read."""


class ArticleMetadataError(DownloadError):
    """A metadata object arrived as the bucket has it, and cannot be read."""


_FAILURE_REASONS: Final = (
    (NotFoundError, "gone"),
    (RefusedError, "refused"),
    (UnreachableError, "unreachable"),
    (ChecksumError, "damaged"),
    (ArticleMetadataError, "bad-metadata"),
)


def make_failure(pmcid: int, version: int, error: DownloadError) -> FailedArticle:
    """Return an article version with an object that could not be read; the error names the object."""
    reason = next((code for error_type, code in _FAILURE_REASONS if isinstance(error, error_type)), "failed")
    return FailedArticle(pmcid, version, reason, str(error))


def sort_failures(failures: Iterable[FailedArticle]) -> tuple[FailedArticle, ...]:
    """Return failures by PMC id and version: they arrive in the order of completion."""
    return tuple(sorted(failures, key=lambda failure: (failure.pmcid, failure.version)))


def range_label(range_number: int) -> str:
    """Return the name of a range: ``PMC0123xxxx`` for range 123."""
    return f"PMC{range_number:04d}xxxx"


def range_ids(range_number: int) -> tuple[int, int]:
    """Return the first and the last PMC id of a range."""
    return range_number * IDS_PER_RANGE, (range_number + 1) * IDS_PER_RANGE - 1


def version_name(pmcid: int, version: int) -> str:
    """Return the name of an article version: ``PMC12345.1``."""
    return f"PMC{pmcid}.{version}"


def list_folders(connection: Connection, base_url: str, prefix: str) -> list[str]:
    """List the folders directly below ``prefix``, each with the prefix and a trailing slash.

    Raises:
        BucketListingError: the response is not a complete listing, or has too many pages.
    """
    folder_names: list[str] = []
    query = {"list-type": "2", "prefix": prefix, "delimiter": "/"}
    for _ in range(_MAX_PAGES):
        url = f"{base_url}?{urlencode(query)}"
        page = _read_listing(connection, url)
        folder_names += [
            prefix_element.text or "" for prefix_element in page.iterfind("{*}CommonPrefixes/{*}Prefix")
        ]
        if page.findtext("{*}IsTruncated") == "false":
            return folder_names
        query["continuation-token"] = page.findtext("{*}NextContinuationToken") or ""
    raise BucketListingError(
        f"{base_url}: the listing of {prefix} has more than {_MAX_PAGES} pages; about 30 entries were "
        "expected. If the bucket's layout has changed, corpus/download/pmc/s3_bucket.py must be updated."
    )


def _read_listing(connection: Connection, url: str) -> etree._Element:
    def read() -> etree._Element:
        body = connection.read(url, _MAX_PAGE_BYTES).body
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        with contextlib.suppress(etree.XMLSyntaxError):
            page = etree.fromstring(body, parser)
            if etree.QName(page).localname == "ListBucketResult" and _is_complete(page):
                return page
        raise BucketListingError(
            f"{url}: not a complete listing but {body[:200]!r}. If the format of listings has changed, "
            "corpus/download/pmc/s3_bucket.py must be updated."
        )

    return retry(read, BucketListingError, READ_RETRY_POLICY)


def _is_complete(page: etree._Element) -> bool:
    """Return True if a page has the number of entries that it names, and says where it goes on."""
    num_entries = sum(1 for _ in page.iterfind("{*}Contents")) + sum(
        1 for _ in page.iterfind("{*}CommonPrefixes")
    )
    is_last = page.findtext("{*}IsTruncated") == "false"
    has_token = page.findtext("{*}IsTruncated") == "true" and page.findtext("{*}NextContinuationToken")
    return page.findtext("{*}KeyCount") in (None, str(num_entries)) and bool(is_last or has_token)


def read_verified(connection: Connection, url: str, max_bytes: int, md5: str) -> bytes:
    """Read an object and check its MD5, as often as :data:`READ_RETRY_POLICY` says.

    Args:
        connection: connection to the bucket.
        url: URL of the object.
        max_bytes: size limit.
        md5: expected MD5, in lower case.

    Raises:
        ChecksumError: the MD5 is wrong on every read.
        DownloadError: the request failed.
    """

    def read() -> bytes:
        body = connection.read(url, max_bytes).body
        if md5_of_bytes(body) != md5:
            raise make_checksum_error(url, md5, body)
        return body

    return retry(read, ChecksumError, READ_RETRY_POLICY)


def make_checksum_error(url: str, md5: str, body: bytes) -> ChecksumError:
    """Return the error of an object that has another MD5 than it should."""
    return ChecksumError(f"{url}: its MD5 should be {md5} and is {md5_of_bytes(body)} ({len(body)} bytes)")
