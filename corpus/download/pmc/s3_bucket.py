"""The bucket in which PMC's articles lie: its address, its listing, and objects read with their checksum.

Since August 2026 PMC is distributed as one object a file in Amazon's S3, readable by anybody
(https://pmc.ncbi.nlm.nih.gov/tools/pmcaws/, https://pmc-oa-opendata.s3.amazonaws.com/README.txt):

    PMC12345.1/PMC12345.1.xml     version 1 of article PMC12345
    metadata/PMC12345.1.json      what is known of it: licence, checksums
    inventory-reports/...         the daily list of the latter (inventory_manifest.py)

Folders are listed as S3 lists them
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html):

    <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
      <IsTruncated>true</IsTruncated><NextContinuationToken>...</NextContinuationToken>
      <CommonPrefixes><Prefix>inventory-reports/.../2026-09-04T01-00Z/</Prefix></CommonPrefixes>
    </ListBucketResult>
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, TypeVar
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
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.storage.checksums import md5_of_bytes
from bioshards.corpus.storage.retry import MAX_READ_ATTEMPTS, MAX_UNREACHABLE_OBJECTS

T = TypeVar("T")
R = TypeVar("R")

URL: Final = "https://pmc-oa-opendata.s3.amazonaws.com/"
BUCKET_NAME: Final = "pmc-oa-opendata"

IDS_PER_RANGE: Final = 10_000
"""Articles are worked on by ranges of this many ids: range 123 is PMC1230000 to PMC1239999."""

_MAX_PAGES: Final = 20  # of a thousand entries each: thirty are expected
_MAX_PAGE_BYTES: Final = 4 << 20  # a thousand keys of 1,024 bytes, S3's longest, are 1 MB


class BadBucket(ListingError):
    """What the bucket lists is not what this program knows how to read."""


class ChecksumError(DownloadError):
    """An object is not what its checksum or its name say, whenever it is read."""


@dataclass(frozen=True, slots=True)
class ArticleFailure:
    """An article version of which an object could not be had.

    Attributes:
        reason: ``gone``, ``refused``, ``unreachable``, ``damaged``, or else ``failed``.
        detail: a sentence that names the object.
    """

    pmcid: int
    version: int
    reason: str
    detail: str

    @classmethod
    def from_error(cls, pmcid: int, version: int, error: DownloadError) -> ArticleFailure:
        reasons = (
            (NotFoundError, "gone"),
            (RefusedError, "refused"),
            (UnreachableError, "unreachable"),
            (ChecksumError, "damaged"),
        )
        reason = next((code for error_type, code in reasons if isinstance(error, error_type)), "failed")
        return cls(pmcid, version, reason, str(error))


def range_label(range_number: int) -> str:
    """A range's name: ``PMC0123xxxx`` for range 123."""
    return f"PMC{range_number:04d}xxxx"


def range_ids(range_number: int) -> tuple[int, int]:
    """The first and the last PMC id of a range."""
    return range_number * IDS_PER_RANGE, (range_number + 1) * IDS_PER_RANGE - 1


def version_name(pmcid: int, version: int) -> str:
    """An article version's name: ``PMC12345.1``."""
    return f"PMC{pmcid}.{version}"


def list_folders(connection: Connection, base_url: str, prefix: str) -> list[str]:
    """The names of all "folders" right below ``prefix``, as the bucket gives them (prefix and name, ``/``).

    Raises:
        BadBucket: the answer is no listing, or a listing without an end.
    """
    folder_names: list[str] = []
    query = {"list-type": "2", "prefix": prefix, "delimiter": "/"}
    for _ in range(_MAX_PAGES):
        url = f"{base_url}?{urlencode(query)}"
        page = _read_listing(connection, url)
        folder_names += [
            prefix_element.text or "" for prefix_element in page.iterfind("{*}CommonPrefixes/{*}Prefix")
        ]
        token = page.findtext("{*}NextContinuationToken")
        if page.findtext("{*}IsTruncated") != "true" or not token:
            return folder_names
        query["continuation-token"] = token
    raise BadBucket(
        f"{base_url}: the listing of {prefix} has more than {_MAX_PAGES} pages, and some 30 entries were "
        "expected. "
        "If the bucket's layout has changed, corpus/download/pmc/s3_bucket.py must be updated."
    )


def _read_listing(connection: Connection, url: str) -> etree._Element:
    for _ in range(MAX_READ_ATTEMPTS):
        body = connection.read(url, _MAX_PAGE_BYTES).body
        parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
        with contextlib.suppress(etree.XMLSyntaxError):
            page = etree.fromstring(body, parser)
            if etree.QName(page).localname == "ListBucketResult":
                return page
    raise BadBucket(
        f"{url}: not a listing but {body[:200]!r}. If the format of listings has changed, "
        "corpus/download/pmc/s3_bucket.py must be updated."
    )


def read_verified(connection: Connection, url: str, max_bytes: int, md5: str) -> bytes:
    """The object at ``url``, whose MD5 must be ``md5`` (lower case); read again where it is not.

    Raises:
        ChecksumError: it is not, three times.
        DownloadError: the bucket did not give it.
    """
    for _ in range(MAX_READ_ATTEMPTS):
        body = connection.read(url, max_bytes).body
        actual_md5 = md5_of_bytes(body)
        if actual_md5 == md5:
            return body
    raise ChecksumError(
        f"{url}: its MD5 should be {md5} and is {actual_md5} ({len(body)} bytes), read {MAX_READ_ATTEMPTS} times"
    )


def map_with_errors(
    pool: DownloadPool, function: Callable[[Connection, T], R], items: Iterable[T]
) -> Iterator[tuple[T, R | DownloadError]]:
    """Each item with what ``function`` gives for it, or with the error: one bad object does not stop the
    rest.

    Raises:
        UnreachableError: it is not one object, the bucket does not answer any more.
    """

    def try_item(connection: Connection, item: T) -> tuple[T, R | DownloadError]:
        try:
            return item, function(connection, item)
        except DownloadError as error:
            return item, error

    unanswered = 0
    for item, result in pool.map(try_item, items):
        if isinstance(result, UnreachableError | RefusedError):
            unanswered += 1
            if unanswered > MAX_UNREACHABLE_OBJECTS:
                raise UnreachableError(str(result))
        yield item, result
