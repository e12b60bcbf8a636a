"""Metadata of PMC's articles: licence, data set and MD5 of the XML of each version, cached in the mirror.

The metadata of a version is a small JSON object (https://pmc-oa-opendata.s3.amazonaws.com/README.txt), stored
next to the article and as a copy under ``metadata/``:

    {"pmcid": "PMC12345", "version": 1, "pmid": 23456 or null, "doi": "10.1000/1" or null,
     "license_code": "CC BY" or null,
     "is_pmc_openaccess": true, "is_manuscript": false, "is_historical_ocr": false, "is_retracted": false,
     "xml_url": "s3://pmc-oa-opendata/PMC12345.1/PMC12345.1.xml?md5=32 hexadecimal digits", ...}

Other notations of the same value are read: ``"23456"`` or ``23456.0`` for a number, ``"true"`` or ``1`` for
a flag, ``12345`` for an id.  Any other value is an error: without a flag or a licence nothing is known of the
article.

There are millions of these objects.  Their content is cached in one Parquet file for each range of ids, and
an object is read again only when the inventory lists another ETag for it.  An object that cannot be read is
reported, and read again by the next update; until then its last readable content stays in the cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import progress_notes
from bioshards.corpus.download.http_client import Connection, DownloadError, NotFoundError
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.bucket_inventory import make_version_keys, read_range, select_newest
from bioshards.corpus.download.pmc.mirror_table import read_table, write_table
from bioshards.corpus.download.pmc.s3_bucket import (
    ArticleMetadataError,
    ChecksumError,
    make_failure,
    range_label,
    sort_failures,
    version_name,
)
from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.download.sources import Versions
from bioshards.corpus.licences import LICENCES, UNKNOWN_LICENCE
from bioshards.corpus.manifest import FailedArticle
from bioshards.corpus.storage.checksums import md5_of_bytes
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry
from bioshards.corpus.storage.storage_protocol import Storage

METADATA_SCHEMA: Final = pa.schema(
    [
        pa.field("pmcid", pa.int32(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("inventory_etag", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("doi", pa.string()),
        pa.field("licence", pa.string()),
        pa.field("open_access", pa.bool_()),
        pa.field("manuscript", pa.bool_()),
        pa.field("ocr", pa.bool_()),
        pa.field("retracted", pa.bool_()),
        pa.field("md5", pa.string()),
        pa.field("retrieved", pa.date32(), nullable=False),
    ]
)
"""Columns of a table of :class:`ArticleMetadata`."""

_MAX_OBJECT_BYTES: Final = 1 << 20  # bytes of a metadata object; they have one or two thousand
_SAVE_INTERVAL: Final = 2000  # objects between two saves: the loss when a run is killed
_ETAG_MD5: Final = re.compile(r"[0-9a-f]{32}")

_MD5_PATTERN: Final = re.compile(r"[0-9a-fA-F]{32}")
_LICENCE_VERSION: Final = re.compile(r"-\d(\.\d)?(-IGO)?$")
_PMCID: Final = re.compile(r"\s*(?:PMC)?([0-9]{1,8})\s*", re.ASCII | re.IGNORECASE)
_DIGITS: Final = re.compile(r"\s*[0-9]{1,10}\s*")
_FLAGS: Final = {"true": True, "1": True, "false": False, "0": False}
"""Values of a flag, as texts in lower case."""
_MAX_TEXT_LENGTH: Final = 2000  # characters of a licence code, a DOI or a URL
_PositiveInt = Annotated[int, msgspec.Meta(gt=0, lt=1 << 31)]


class ListedVersion(NamedTuple):
    """An article version of the inventory, with the ETag of its metadata object."""

    pmcid: int
    version: int
    etag: str


@dataclass(frozen=True, slots=True)
class ArticleMetadata:
    """Metadata of an article version.

    Attributes:
        etag: ETag of the metadata object that was read.
        inventory_etag: that of the inventory; another one if the object changed after the inventory.
        licence: of :data:`~bioshards.corpus.licences.LICENCES`.
        open_access, manuscript, ocr: data sets of PMC that have the article.
        md5: MD5 of the XML; None without XML.
        retrieved: date on which the object was read.
    """

    pmcid: int
    version: int
    etag: str
    inventory_etag: str
    pmid: int | None
    doi: str | None
    licence: str
    open_access: bool
    manuscript: bool
    ocr: bool
    retracted: bool
    md5: str | None
    retrieved: date


@dataclass(frozen=True, slots=True)
class RangeUpdate:
    """A range of the mirror that is to be brought up to date.

    Attributes:
        storage: where the mirror is.
        mirror: folder of the mirror.
        pool: connections to the bucket.
        number: number of the range.
        article_filter: selects the articles.
        today: date of retrieval.
    """

    storage: Storage
    mirror: str
    pool: DownloadPool
    number: int
    article_filter: ArticleFilter
    today: date


@dataclass(frozen=True, slots=True)
class MetadataDifference:
    """Difference of the cached metadata of a range from the inventory.

    Attributes:
        current: unchanged rows of :data:`METADATA_SCHEMA`.
        missing: rows of the inventory whose metadata must be read.
        outdated: cached rows of :data:`METADATA_SCHEMA` for rows of ``missing``.
        older_versions: number of versions in the inventory that are not the newest of their article.
    """

    current: pa.Table
    missing: pa.Table
    outdated: pa.Table
    older_versions: int


@dataclass(frozen=True, slots=True)
class MetadataUpdate:
    """Updated metadata of a range.

    Attributes:
        table: rows of :data:`METADATA_SCHEMA`, by pmcid and version.
        older_versions: number of skipped versions that are not the newest of their article.
        failures: versions that could not be read; the next update retries them.
    """

    table: pa.Table
    older_versions: int
    failures: tuple[FailedArticle, ...]


def read_metadata(storage: Storage, mirror: str, range_number: int) -> pa.Table:
    """Read the cached metadata of a range, a table of :data:`METADATA_SCHEMA`."""
    return read_table(storage, _metadata_path(mirror, range_number), METADATA_SCHEMA)


def list_articles(table: pa.Table) -> list[ArticleMetadata]:
    """Return the rows of a table of :data:`METADATA_SCHEMA`."""
    return [ArticleMetadata(**row) for row in table.to_pylist()]


def compare_with_inventory(
    inventory_rows: pa.Table, metadata: pa.Table, versions: Versions = "newest"
) -> MetadataDifference:
    """Compare cached metadata with the rows of the inventory of the same range."""
    selected = select_newest(inventory_rows) if versions == "newest" else inventory_rows
    previous = metadata.take(
        pc.index_in(make_version_keys(selected), value_set=make_version_keys(metadata).combine_chunks())
    )
    is_unchanged = pc.or_(
        pc.equal(previous["etag"], selected["etag"]), pc.equal(previous["inventory_etag"], selected["etag"])
    )
    is_unchanged = pc.fill_null(is_unchanged, False)
    is_changed = pc.and_(pc.invert(is_unchanged), pc.is_valid(previous["pmcid"]))
    etag_index = METADATA_SCHEMA.get_field_index("inventory_etag")
    return MetadataDifference(
        current=previous.set_column(etag_index, METADATA_SCHEMA.field(etag_index), selected["etag"]).filter(
            is_unchanged
        ),
        missing=selected.filter(pc.invert(is_unchanged)),
        outdated=previous.filter(is_changed),
        older_versions=inventory_rows.num_rows - selected.num_rows,
    )


def update_metadata(update: RangeUpdate) -> MetadataUpdate:
    """Read the metadata objects of a range that have changed since the last inventory, and update the cache.

    Raises:
        OutageError: the bucket does not answer; metadata read so far is saved.
    """
    storage, mirror, range_number = update.storage, update.mirror, update.number
    previous = read_metadata(storage, mirror, range_number)
    rows = read_range(storage, mirror, range_number)
    difference = compare_with_inventory(rows, previous, update.article_filter.versions)
    articles = {(article.pmcid, article.version): article for article in list_articles(difference.outdated)}
    failures: list[FailedArticle] = []

    def read(connection: Connection, listed: ListedVersion) -> ArticleMetadata:
        return _read_object(connection, update.pool.server.base_url, listed, update.today)

    def save() -> pa.Table:
        table = _build_table(difference.current, articles.values())
        if table != previous:
            _write_metadata(storage, mirror, range_number, table)
        return table

    missing = [
        ListedVersion(row["pmcid"], row["version"], row["etag"]) for row in difference.missing.to_pylist()
    ]
    try:
        for num_done, (listed, result) in enumerate(update.pool.map_unordered(read, missing), start=1):
            progress_notes.count("requests")
            key = listed.pmcid, listed.version
            if isinstance(result, NotFoundError):
                articles.pop(key, None)
            elif isinstance(result, DownloadError):
                failures.append(make_failure(*key, result))
            else:
                articles[key] = result
            if num_done % _SAVE_INTERVAL == 0:
                save()
    finally:
        table = save()
    return MetadataUpdate(table, difference.older_versions, sort_failures(failures))


def _read_object(
    connection: Connection, base_url: str, listed: ListedVersion, today: date
) -> ArticleMetadata:
    """Read the metadata of a version of the inventory.

    The object may have changed since the inventory: it is intact if its MD5 is the ETag of the inventory or
    of the response.  If neither is an MD5 of it, it must parse.

    Raises:
        ArticleMetadataError: it is intact, and has a value that cannot be read.
        ChecksumError: it is damaged on every read.
        DownloadError: the request failed.
    """
    url = f"{base_url}metadata/{version_name(listed.pmcid, listed.version)}.json"

    def read() -> ArticleMetadata:
        response = connection.read(url, _MAX_OBJECT_BYTES)
        md5 = md5_of_bytes(response.body)
        is_intact = md5 in (listed.etag, response.etag)
        try:
            if not is_intact and _ETAG_MD5.fullmatch(response.etag):
                raise ArticleMetadataError("its ETag is another MD5")
            return parse_metadata(response.body, listed, response.etag or md5, today)
        except ArticleMetadataError as error:
            if is_intact:
                raise ArticleMetadataError(f"{url}: {error}") from error
            raise ChecksumError(
                f"{url}: its MD5 is {md5} and its ETag {response.etag!r} ({len(response.body)} bytes)"
            ) from error

    return retry(read, ChecksumError, READ_RETRY_POLICY)


def _build_table(current: pa.Table, articles: Iterable[ArticleMetadata]) -> pa.Table:
    """Return a table of :data:`METADATA_SCHEMA` of unchanged rows and other articles."""
    articles = list(articles)
    columns = {name: [getattr(article, name) for article in articles] for name in METADATA_SCHEMA.names}
    table = pa.concat_tables([current, pa.Table.from_pydict(columns, METADATA_SCHEMA)])
    return table.sort_by([("pmcid", "ascending"), ("version", "ascending")])


def _write_metadata(storage: Storage, mirror: str, range_number: int, table: pa.Table) -> None:
    write_table(storage, _metadata_path(mirror, range_number), table)


def _metadata_path(mirror: str, range_number: int) -> str:
    return f"{mirror}/pmc/metadata/{range_label(range_number)}.parquet"


# Metadata objects


class _MetadataObject(msgspec.Struct):
    """The fields of a metadata object that are read."""

    pmcid: str | int
    version: _PositiveInt
    license_code: str | None
    is_pmc_openaccess: bool
    is_manuscript: bool
    is_historical_ocr: bool
    is_retracted: bool
    pmid: _PositiveInt | None = None
    doi: str | None = None
    xml_url: str | None = None


# msgspec describes a type at its first use, and crashes if threads do so at the same time: describe it here.
msgspec.json.Decoder(_MetadataObject)


def parse_metadata(body: bytes, listed: ListedVersion, etag: str, today: date) -> ArticleMetadata:
    """Parse a metadata object.

    Args:
        body: JSON of the object.
        listed: the expected version.
        etag: ETag of the object.
        today: date of retrieval.

    Raises:
        ArticleMetadataError: the body is not JSON, is of another article, or has a value that is none of its
            field.
    """
    try:
        fields = json.loads(body)
        if isinstance(fields, dict):
            fields = {name: _read_notation(name, value) for name, value in fields.items()}
        metadata = msgspec.convert(fields, _MetadataObject)
    except msgspec.ValidationError as error:
        raise ArticleMetadataError(str(error)) from error
    except (ValueError, RecursionError) as error:
        raise ArticleMetadataError(f"not JSON: {error}") from error
    match = _PMCID.fullmatch(str(metadata.pmcid))
    if not match or (int(match[1]), metadata.version) != (listed.pmcid, listed.version):
        raise ArticleMetadataError(f"it is of {metadata.pmcid!r:.100}, version {metadata.version}")
    return ArticleMetadata(
        pmcid=listed.pmcid,
        version=listed.version,
        etag=etag,
        inventory_etag=listed.etag,
        pmid=metadata.pmid,
        doi=_normalise_doi(metadata.doi),
        licence=normalise_licence(_check_text("license_code", metadata.license_code)),
        open_access=metadata.is_pmc_openaccess,
        manuscript=metadata.is_manuscript,
        ocr=metadata.is_historical_ocr,
        retracted=metadata.is_retracted,
        md5=_parse_xml_md5(
            _check_text("xml_url", metadata.xml_url), version_name(listed.pmcid, listed.version)
        ),
        retrieved=today,
    )


def _read_notation(name: str, value: object) -> object:
    """Return the value of a field as a JSON number, true, false or null if it is another notation of one."""
    if name in ("version", "pmid"):
        if value == "":
            return None
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            return int(value)
        if isinstance(value, float) and value.is_integer():
            return int(value)
    elif name.startswith("is_") and isinstance(value, (int, str)):
        return _FLAGS.get(str(value).strip().lower(), value)
    return value


def _check_text(name: str, text: str | None) -> str | None:
    """Return the text of a field; None if it is empty.

    Raises:
        ArticleMetadataError: it is not a line of printable characters, or is too long.
    """
    if text and (len(text) > _MAX_TEXT_LENGTH or not text.isprintable()):
        raise ArticleMetadataError(f"{name} is {text!r:.100}, not a line of text")
    return text or None


def normalise_licence(code: str | None) -> str:
    """Normalise a licence code: ``CC BY``, ``cc-by`` and ``CC BY 4.0`` become ``CC-BY``."""
    normalised = "-".join(re.split(r"[\s_-]+", (code or "").strip().upper()))
    normalised = _LICENCE_VERSION.sub("", normalised)
    return normalised if normalised in LICENCES else UNKNOWN_LICENCE


def _normalise_doi(doi: str | None) -> str | None:
    """Return the DOI, or None if it has invalid characters: the article is kept without it."""
    doi = (doi or "").strip()
    return doi if doi and len(doi) <= _MAX_TEXT_LENGTH and doi.isprintable() else None


def _parse_xml_md5(url: str | None, name: str) -> str | None:
    """Return the MD5 in the URL of the XML; the path of the URL is checked, its host ignored."""
    if url is None:
        return None
    try:
        url_parts = urlsplit(url)
    except ValueError as error:
        raise ArticleMetadataError(f"xml_url is {url!r:.200}: {error}") from error
    md5 = parse_qs(url_parts.query).get("md5", [""])
    if url_parts.path != f"/{name}/{name}.xml" or len(md5) != 1 or not _MD5_PATTERN.fullmatch(md5[0]):
        raise ArticleMetadataError(f"xml_url is {url!r:.200}, not s3://.../{name}/{name}.xml?md5=...")
    return md5[0].lower()
