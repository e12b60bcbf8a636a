"""The metadata of PMC's articles in the mirror, brought up to date by what has changed in the inventory.

There are millions of metadata objects (pmc_record.py), so what they say is kept, one Parquet file a range of
ids, and an object is read again only when the inventory lists another ETag for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bioshards.corpus.files import LocalFiles

from .pmc_bucket import READINGS, Bad, ChecksumError, article, each, label, md5_of
from .pmc_inventory import keys, newest
from .pmc_record import ArticleMetadataError, parse
from .pool import Pool
from .web import Connection, DownloadError, NotFoundError

SCHEMA: Final = pa.schema(
    [
        pa.field("pmcid", pa.int32(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("etag", pa.string(), nullable=False),
        pa.field("listed", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("doi", pa.string()),
        pa.field("licence", pa.string()),
        pa.field("open_access", pa.bool_()),
        pa.field("manuscript", pa.bool_()),
        pa.field("ocr", pa.bool_()),
        pa.field("retracted", pa.bool_()),
        pa.field("md5", pa.string()),
        pa.field("retrieved", pa.date32(), nullable=False),
        pa.field("problem", pa.string()),
    ]
)
"""An article version.

``etag`` is that of the metadata object that was read, ``listed`` the one that the inventory had for it: they
differ where the object has changed since the inventory was taken.  ``md5`` is that of the XML, null where
there is none.  ``problem`` says why metadata could not be read; ``pmid`` to ``md5`` are null then.
"""

Versions = Literal["newest", "all"]
"""Which of an article's versions are looked at."""

_MOST: Final = 1 << 20  # bytes of a metadata object; they have one or two thousand
_SAVED_EVERY: Final = 2000  # objects: what is lost, at most, when a run is killed
_MD5: Final = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Difference:
    """What the mirror knows of a range, compared with the inventory.

    Attributes:
        current: rows of :data:`SCHEMA` that the inventory shows unchanged.
        missing: rows of the inventory whose metadata must be read.
        outdated: rows of :data:`SCHEMA`: what was known before of those among ``missing``.
        older: versions in the inventory that are not looked at, being older than the article's newest.
        removed: versions that were known and are no longer in the inventory.
    """

    current: pa.Table
    missing: pa.Table
    outdated: pa.Table
    older: int
    removed: int


@dataclass(frozen=True, slots=True)
class Update:
    """A range's metadata, brought up to date.

    Attributes:
        table: of :data:`SCHEMA`, by pmcid and version.
        fetched: metadata objects that were read.
        changed: those among them of which other metadata was known before.
        removed: versions that were known and are in the bucket no longer.
        older: versions that were not looked at, being older than the article's newest.
        bad: those that could not be read this time; the next update tries them again.
    """

    table: pa.Table
    fetched: int
    changed: int
    removed: int
    older: int
    bad: tuple[Bad, ...]


def known(files: LocalFiles, mirror: str, number: int) -> pa.Table:
    """The metadata that the mirror holds of range ``number``: a table of :data:`SCHEMA`."""
    path = _path(mirror, number)
    if files.exists(path):
        with files.open(path) as file:
            table = pq.ParquetFile(file).read()
        if table.schema.names == SCHEMA.names:
            return table.cast(SCHEMA)
    return SCHEMA.empty_table()


def difference(rows: pa.Table, known: pa.Table, versions: Versions = "newest") -> Difference:
    """What must be read so that ``known`` says what the inventory's ``rows`` of the same range list."""
    wanted = newest(rows) if versions == "newest" else rows
    before = known.take(pc.index_in(keys(wanted), value_set=keys(known).combine_chunks()))
    same = pc.or_(pc.equal(before["etag"], wanted["etag"]), pc.equal(before["listed"], wanted["etag"]))
    same = pc.fill_null(same, False)
    other = pc.and_(pc.invert(same), pc.is_valid(before["pmcid"]))
    gone = pc.invert(pc.is_in(keys(known), value_set=keys(rows).combine_chunks()))
    listed = SCHEMA.get_field_index("listed")
    return Difference(
        current=before.set_column(listed, SCHEMA.field(listed), wanted["etag"]).filter(same),
        missing=wanted.filter(pc.invert(same)),
        outdated=before.filter(other),
        older=rows.num_rows - wanted.num_rows,
        removed=pc.sum(gone).as_py() or 0,
    )


def update(
    files: LocalFiles,
    mirror: str,
    base: str,
    pool: Pool,
    number: int,
    rows: pa.Table,
    today: date,
    versions: Versions = "newest",
) -> Update:
    """Bring the metadata of range ``number`` up to what the inventory lists, and keep it in the mirror.

    Args:
        base: the bucket's address, with a slash at its end.
        rows: the inventory's rows of the range, all of them: what is not among them is forgotten.
        versions: look at each article's newest version only, or at all.

    Raises:
        UnreachableError: the bucket does not answer any more; what was read until then is kept.
    """
    before = known(files, mirror, number)
    found = difference(rows, before, versions)
    read = {(row["pmcid"], row["version"]): row for row in found.outdated.to_pylist()}
    fetched = changed = gone = 0
    bad: list[Bad] = []

    def work(connection: Connection, row: dict[str, Any]) -> dict[str, Any]:
        return _read(connection, base, row, today)

    try:
        for done, (row, outcome) in enumerate(each(pool, work, found.missing.to_pylist()), start=1):
            key = row["pmcid"], row["version"]
            if isinstance(outcome, NotFoundError):
                read.pop(key, None)
                gone += 1
            elif isinstance(outcome, DownloadError):
                bad.append(Bad.of(*key, outcome))
                read.setdefault(key, _row(row, "", "", today, problem=str(outcome)))
            else:
                fetched += 1
                changed += key in read and read[key]["problem"] is None
                read[key] = outcome
            if done % _SAVED_EVERY == 0:
                _save(files, mirror, number, _table(found.current, read))
    finally:
        table = _table(found.current, read)
        if table != before:
            _save(files, mirror, number, table)
    return Update(table, fetched, changed, found.removed + gone, found.older, tuple(bad))


def _read(connection: Connection, base: str, row: dict[str, Any], today: date) -> dict[str, Any]:
    """The metadata of a row of the inventory, as a row of :data:`SCHEMA`.

    The object may have changed since the inventory was taken: it is whole if it has the checksum that the
    inventory lists or the one that came with it.  An answer with neither is believed only if it makes sense.
    """
    pmcid, version, listed = row["pmcid"], row["version"], row["etag"]
    url = f"{base}metadata/{article(pmcid, version)}.json"
    for _ in range(READINGS):
        answer = connection.read(url, _MOST)
        md5 = md5_of(answer.body)
        whole = md5 in (listed, answer.etag)
        if not whole and _MD5.fullmatch(answer.etag):
            continue
        try:
            return _row(row, answer.etag or md5, listed, today, **parse(answer.body, pmcid, version))
        except ArticleMetadataError as error:
            if whole:
                return _row(row, answer.etag or md5, listed, today, problem=str(error))
    raise ChecksumError(
        f"{url}: its MD5 is {md5} and its ETag {answer.etag!r} ({len(answer.body)} bytes), {READINGS} times"
    )


def _row(row: dict[str, Any], etag: str, listed: str, today: date, **columns: Any) -> dict[str, Any]:
    start = {"pmcid": row["pmcid"], "version": row["version"], "etag": etag, "listed": listed}
    return start | {"retrieved": today, "problem": None} | columns


def _table(current: pa.Table, read: dict[tuple[int, int], dict[str, Any]]) -> pa.Table:
    table = pa.concat_tables([current, pa.Table.from_pylist(list(read.values()), SCHEMA)])
    return table.sort_by([("pmcid", "ascending"), ("version", "ascending")])


def _save(files: LocalFiles, mirror: str, number: int, table: pa.Table) -> None:
    with files.write(_path(mirror, number)) as file:
        pq.write_table(table, file, compression="zstd")


def _path(mirror: str, number: int) -> str:
    return f"{mirror}/pmc/metadata/{label(number)}.parquet"
