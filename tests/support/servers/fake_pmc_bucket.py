"""PMC's bucket as a folder: synthetic articles in the real layout, and a connection that serves it.

Keys are files below a root: ``PMC1.1/PMC1.1.xml``, ``metadata/PMC1.1.json``, ``inventory-reports/...``.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, urlsplit

from bioshards.corpus.download.http_client import (
    Connection,
    DownloadError,
    HttpResponse,
    NotFoundError,
    RefusedError,
    Server,
)
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.download.rate_limit import RateLimiter
from tests.support.servers.server_pages import s3_listing

T = TypeVar("T")
R = TypeVar("R")

BUCKET = "pmc-oa-opendata"
INVENTORY_PREFIX = f"inventory-reports/{BUCKET}/metadata/"
BASE_URL = "http://bucket.invalid/"
DOCTYPE = (
    '<!DOCTYPE article PUBLIC "-//NLM//DTD JATS (Z39.96) Journal Archiving and Interchange DTD with MathML3 '
    'v1.4 20241031//EN" "JATS-archivearticle1-4-mathml3.dtd">'
)


@dataclass(frozen=True)
class FakeArticle:
    """An article version; ``licence`` is PMC's code (``CC BY``) or None."""

    pmcid: int
    version: int = 1
    licence: str | None = "CC BY"
    open_access: bool = True
    manuscript: bool = False
    ocr: bool = False
    retracted: bool = False
    pmid: int | None = None
    doi: str | None = None
    text: str = "Nothing was measured. Nothing was found."
    has_xml: bool = True

    @property
    def name(self) -> str:
        return f"PMC{self.pmcid}.{self.version}"

    @property
    def xml(self) -> bytes:
        """A small JATS article."""
        body = f'<body><preformat preformat-type="pmc-ocr-text">{self.text}</preformat></body>'
        if not self.ocr:
            body = f"<body><sec><title>Methods</title><p>{self.text}</p></sec></body>"
        return (
            f'<?xml version="1.0"?>\n{DOCTYPE}\n'
            '<article article-type="research-article"><front><article-meta>'
            f'<article-id pub-id-type="pmcid">PMC{self.pmcid}</article-id>'
            f'<article-id pub-id-type="pmcid-ver">{self.name}</article-id>'
            f"<title-group><article-title>Of nothing, part {self.pmcid}</article-title></title-group>"
            f"</article-meta></front>{body}</article>\n"
        ).encode()

    @property
    def metadata(self) -> dict[str, Any]:
        md5 = hashlib.md5(self.xml).hexdigest()
        return {
            "pmcid": f"PMC{self.pmcid}",
            "version": self.version,
            "pmid": self.pmid,
            "doi": self.doi,
            "mid": None,
            "title": f"Of nothing, part {self.pmcid}",
            "is_pmc_openaccess": self.open_access,
            "is_manuscript": self.manuscript,
            "is_historical_ocr": self.ocr,
            "is_retracted": self.retracted,
            "license_code": self.licence,
            "xml_url": f"s3://{BUCKET}/{self.name}/{self.name}.xml?md5={md5}" if self.has_xml else None,
            "media_urls": [],
        }


ARTICLES = [
    FakeArticle(1200001, pmid=41, doi="10.5555/41"),
    FakeArticle(1200002, licence="CC0"),
    FakeArticle(1200003, licence="CC BY-NC"),
    FakeArticle(1200004, licence=None),
    FakeArticle(1200005, licence="TDM", open_access=False, manuscript=True),
    FakeArticle(1200006, ocr=True),
    FakeArticle(1200007, retracted=True),
    FakeArticle(12900001, version=2),
    FakeArticle(12900001, version=10, text="The tenth version is the newest."),
]
"""Articles of every licence, set and state, two versions of one."""


def create_bucket(root: Path, articles: Iterable[FakeArticle], inventory_date: str) -> FakeBucket:
    """Create a bucket of articles under ``root``, with an inventory of a day (``2026-09-04``)."""
    bucket = FakeBucket(root)
    for article in articles:
        bucket.put_article(article)
    bucket.publish_inventory(inventory_date)
    return bucket


class FakeBucket:
    """A bucket whose changes appear in the next published inventory."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, key: str, data: bytes) -> None:
        path = self.root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def put_article(self, article: FakeArticle, **metadata: object) -> None:
        """Add or replace an article; ``metadata`` overrides values of its JSON."""
        body = json.dumps(article.metadata | metadata).encode()
        if article.has_xml:
            self.write(f"{article.name}/{article.name}.xml", article.xml)
        self.write(f"{article.name}/{article.name}.json", body)
        self.write(f"metadata/{article.name}.json", body)

    def remove(self, pmcid: int, version: int = 1) -> None:
        shutil.rmtree(self.root / f"PMC{pmcid}.{version}")
        (self.root / f"metadata/PMC{pmcid}.{version}.json").unlink()

    def publish_inventory(
        self,
        day: str,
        *,
        etags: Mapping[str, str] | None = None,
        extra_keys: Sequence[str] = (),
        edit_manifest: Callable[[dict[str, Any]], object] | None = None,
        complete: bool = True,
    ) -> None:
        """List the metadata objects and ``extra_keys`` in two CSV files, with a manifest.

        ``etags`` replace the objects' MD5s; ``edit_manifest`` changes the manifest before it is written.
        """
        rows = [
            [BUCKET, quote(key), f"{day}T00:00:00.000Z", (etags or {}).get(key, etag)]
            for key, etag in sorted([*self._list_metadata(), *((key, "0" * 32) for key in extra_keys)])
        ]
        csv_files = [
            self._write_csv(day, file_number, rows[file_number::2])
            for file_number in range(min(2, len(rows)))
        ]
        self.publish_manifest(day, csv_files, edit_manifest, complete)

    def publish_manifest(
        self,
        day: str,
        csv_files: Sequence[Mapping[str, Any]],
        edit_manifest: Callable[[dict[str, Any]], object] | None = None,
        complete: bool = True,
    ) -> None:
        """Write the manifest of an inventory; arguments as of :meth:`publish_inventory`."""
        manifest = {
            "sourceBucket": BUCKET,
            "destinationBucket": f"arn:aws:s3:::{BUCKET}",
            "version": "2016-11-30",
            "creationTimestamp": "1788483600000",
            "fileFormat": "CSV",
            "fileSchema": "Bucket, Key, LastModifiedDate, ETag",
            "files": csv_files,
        }
        if edit_manifest:
            edit_manifest(manifest)
        folder = f"{INVENTORY_PREFIX}{day}T01-00Z"
        self.write(f"{INVENTORY_PREFIX}hive/dt={day}-01-00/symlink.txt", b"s3://elsewhere\n")
        if complete:
            body = json.dumps(manifest).encode()
            self.write(f"{folder}/manifest.json", body)
            self.write(f"{folder}/manifest.checksum", hashlib.md5(body).hexdigest().encode())
        else:
            self.write(f"{folder}/waiting", b"")

    def _list_metadata(self) -> Iterator[tuple[str, str]]:
        for path in (self.root / "metadata").glob("*.json"):
            yield f"metadata/{path.name}", hashlib.md5(path.read_bytes()).hexdigest()

    def _write_csv(self, day: str, file_number: int, rows: list[list[str]]) -> dict[str, Any]:
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
        body = gzip.compress(text.getvalue().encode(), mtime=0)
        key = f"{INVENTORY_PREFIX}data/{day}-{file_number}.csv.gz"
        self.write(key, body)
        return {"key": key, "size": len(body), "MD5checksum": hashlib.md5(body).hexdigest()}


class FolderConnection(Connection):
    """A connection that serves a bucket's folder.

    Attributes:
        requests: requested keys, in order.
        faults: by key, for the next requests: an error to raise, a response, or a function of the response.
    """

    def __init__(self, root: Path, page_size: int = 1000) -> None:
        self.root = root
        self.page_size = page_size
        self.requests: list[str] = []
        self.faults: dict[str, list[Any]] = defaultdict(list)

    def read(self, url: str, max_bytes: int) -> HttpResponse:
        assert url.startswith(BASE_URL), f"asked elsewhere: {url}"
        key = url.removeprefix(BASE_URL)
        self.requests.append(key)
        fault = self.faults[key].pop(0) if self.faults[key] else None
        if isinstance(fault, BaseException):
            raise fault
        if isinstance(fault, HttpResponse):
            return fault
        response = self._make_listing(key) if key.startswith("?") else self._read_object(url, key)
        if len(response.body) > max_bytes:
            raise RefusedError(f"{url}: larger than {max_bytes} bytes")
        return fault(response) if fault else response

    def stream(self, url: str, start: int) -> Iterator[tuple[int, bytes]]:
        yield start, self.read(url, 1 << 30).body[start:]

    def _read_object(self, url: str, key: str) -> HttpResponse:
        path = self.root / key
        if not path.is_file():
            raise NotFoundError(f"{url}: there is no such object (404)")
        body = path.read_bytes()
        return HttpResponse(body, hashlib.md5(body).hexdigest())

    def _make_listing(self, key: str) -> HttpResponse:
        query = dict(parse_qsl(urlsplit(key).query))
        page = s3_listing(self.root, query, self.page_size, lambda file: hashlib.md5(file.read()).hexdigest())
        return HttpResponse(page, "")

    def requests_containing(self, text: str) -> list[str]:
        """Requested keys that contain ``text``."""
        return [key for key in self.requests if text in key]


class SequentialPool(DownloadPool):
    """A pool of one connection, in this thread."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(Server(BASE_URL, "bioshards/test", RateLimiter("bucket", 1, 1000)), 1)
        self.connection = connection

    def map_unordered(
        self, function: Callable[[Connection, T], R], items: Iterable[T]
    ) -> Iterator[tuple[T, R | DownloadError]]:
        for item in items:
            yield item, self._download(function, self.connection, item)


TODAY = date(2026, 9, 5)
HTML_RESPONSE = HttpResponse(b"<html><body>Please try again later</body></html>", "")
