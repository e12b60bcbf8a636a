"""PMC's articles, range by range, from the bucket into the mirror.

An article lies in the mirror as ``pmc/xml/PMC0123xxxx/PMC1230001.1-0a1b2c3d.xml``: its range, its name, and
the beginning of its MD5.  It was written there when it had been checked, so the name alone says that it is
whole and current.  ``pmc/selected/PMC0123xxxx.parquet`` lists a range's articles: what is to be read next.
"""

from __future__ import annotations

import re
from dataclasses import astuple, dataclass, replace
from datetime import date
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from lxml import etree

from bioshards.corpus.ahead import ahead, for_each
from bioshards.corpus.files import TEMPORARY, LocalFiles

from . import pmc_inventory, pmc_metadata
from .pmc_bucket import URL as URL
from .pmc_bucket import Bad, ChecksumError, article, each, label, read_checked
from .pmc_selection import Articles, Chosen
from .pool import Pool
from .web import Connection, DownloadError

SCHEMA: Final = pa.schema(
    [
        *(field for field in pmc_metadata.SCHEMA if field.name != "problem"),
        pa.field("file", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
"""An article in the mirror: its metadata, its file's name in the range's folder, and that file's size."""

_MOST: Final = 64 << 20  # bytes of an article's XML; 190 kB is usual, and each thread holds one
_NAME: Final = re.compile(r"PMC\d{1,8}\.\d{1,4}-[0-9a-f]{8}\.xml", re.ASCII)
_BEGINNING: Final = 1 << 16  # bytes in which the root element must begin


@dataclass(frozen=True, slots=True)
class RangeReport:
    """What became of a range.

    Attributes:
        number: the range.
        selected: articles asked for.
        held: those among them that the mirror had already.
        fetched, bytes: those that were fetched, and their size.
        removed: files that were taken out of the mirror, as they are no longer asked for.
        bad: article versions of which the metadata or the XML could not be had.
        dropped: article versions that were not asked for, by reason.
    """

    number: int
    selected: int
    held: int
    fetched: int
    bytes: int
    removed: int
    bad: tuple[Bad, ...]
    dropped: dict[str, int]


def ranges(files: LocalFiles, mirror: str) -> list[int]:
    """The ranges to be worked on: all of the inventory, and those that the mirror has articles of still."""
    names = files.names(f"{mirror}/pmc/selected")
    found = {int(match[1]) for name in names if (match := re.fullmatch(r"PMC([0-9]{4})xxxx\.parquet", name))}
    return sorted(found.union(pmc_inventory.ranges(files, mirror)))


def selected(files: LocalFiles, mirror: str, number: int) -> pa.Table:
    """The articles of range ``number`` that are in the mirror: a table of :data:`SCHEMA`."""
    path = selected_path(mirror, number)
    if not files.exists(path):
        return SCHEMA.empty_table()
    with files.open(path) as file:
        return pq.ParquetFile(file).read().cast(SCHEMA)


def bring(
    files: LocalFiles, mirror: str, base: str, pool: Pool, number: int, articles: Articles, today: date
) -> RangeReport:
    """Bring the articles of range ``number`` that are asked for into the mirror, as its inventory lists them.

    Raises:
        UnreachableError: the bucket does not answer any more.
        OSError: the mirror cannot be written.
    """
    rows = pmc_inventory.rows(files, mirror, number)
    update = pmc_metadata.update(files, mirror, base, pool, number, rows, today, articles.versions)
    chosen = articles.select(update.table)
    if update.older:
        chosen.dropped["not-newest"] = update.older
    report = fetch_range(files, mirror, base, pool, number, chosen)
    return replace(report, bad=update.bad + report.bad)


def fetch_range(
    files: LocalFiles, mirror: str, base: str, pool: Pool, number: int, chosen: Chosen
) -> RangeReport:
    """Make range ``number`` of the mirror what was chosen: fetch what is missing, remove what is too much.

    Args:
        base: the bucket's address, with a slash at its end.
        chosen: rows of :data:`.pmc_metadata.SCHEMA` with an ``md5``, all of this range.
    """
    folder = _folder(mirror, number)
    sizes = {found.path.rpartition("/")[2]: found.size for found in files.walk(folder)}
    rows = {_file(row): row for row in chosen.table.to_pylist()}
    missing = {name: row for name, row in rows.items() if name not in sizes}

    def work(connection: Connection, name: str) -> int:
        body = _article(connection, base, missing[name])
        with files.write(f"{folder}/{name}") as file:
            file.write(body)
        return len(body)

    fetched: dict[str, int] = {}
    bad: list[Bad] = []
    for name, outcome in each(pool, work, missing):
        if isinstance(outcome, DownloadError):
            bad.append(Bad.of(missing[name]["pmcid"], missing[name]["version"], outcome))
        else:
            fetched[name] = outcome
    there = sizes | fetched
    _select(
        files,
        mirror,
        number,
        [rows[name] | {"file": name, "bytes": there[name]} for name in rows if name in there],
    )
    surplus = [name for name in sizes if name not in rows and _NAME.fullmatch(name)]
    begun = [name for name in files.names(folder) if name.startswith(TEMPORARY)]  # by a run that was killed
    for_each(files, files.remove, [f"{folder}/{name}" for name in surplus + begun])
    return RangeReport(
        number=number,
        selected=len(rows),
        held=len(rows) - len(missing),
        fetched=len(fetched),
        bytes=sum(fetched.values()),
        removed=len(surplus),
        bad=tuple(bad),
        dropped=dict(chosen.dropped),
    )


def _article(connection: Connection, base: str, row: dict[str, Any]) -> bytes:
    """The article's XML, checked."""
    name = article(row["pmcid"], row["version"])
    url = f"{base}{name}/{name}.xml"
    body = read_checked(connection, url, _MOST, row["md5"])
    if _root(body) != "article":
        raise ChecksumError(f"{url}: its MD5 is right, but it is not the XML of an article: {body[:100]!r}")
    return body


def _root(body: bytes) -> str:
    """The local name of the root element, '' where there is none; what follows it is not looked at."""
    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        parser.feed(body[:_BEGINNING])
        for _, element in parser.read_events():
            if isinstance(element, etree._Element):
                return etree.QName(element).localname
    except etree.XMLSyntaxError:
        pass
    return ""


def _select(files: LocalFiles, mirror: str, number: int, rows: list[dict[str, Any]]) -> None:
    """Write the list of a range's articles, if it has changed: what was made of it is then out of date."""
    table = pa.Table.from_pylist(rows, SCHEMA)
    path = selected_path(mirror, number)
    if not files.exists(path) or selected(files, mirror, number) != table:
        with files.write(path) as file:
            pq.write_table(table, file, compression="zstd")


def _file(row: dict[str, Any]) -> str:
    return f"{article(row['pmcid'], row['version'])}-{row['md5'][:8]}.xml"


def _folder(mirror: str, number: int) -> str:
    return f"{mirror}/pmc/xml/{label(number)}"


def selected_path(mirror: str, number: int) -> str:
    """Where the list of a range's articles is."""
    return f"{mirror}/pmc/selected/{label(number)}.parquet"


# Looking ahead


def listed_bytes(files: LocalFiles, path: str) -> int:
    """The size of all articles that a range's list names."""
    with files.open(path) as file:
        return sum(pq.ParquetFile(file).read(["bytes"])["bytes"].to_pylist())


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known, without asking the bucket, of what :func:`bring` would do.

    Attributes:
        articles: in the inventory.
        unknown: those whose metadata would have to be read first.
        selected: of the others, those asked for; their size is not known before they are fetched.
        held: those among them that the mirror has already.
        surplus: what else the mirror has, which would be taken out of it.
    """

    articles: int = 0
    unknown: int = 0
    selected: int = 0
    held: int = 0
    surplus: int = 0


def plan(files: LocalFiles, mirror: str, numbers: list[int], articles: Articles) -> Plan:
    """What bringing these ranges would mean, from the inventory and the metadata in the mirror."""

    def of_range(number: int) -> Plan:
        rows = pmc_inventory.rows(files, mirror, number)
        known = pmc_metadata.known(files, mirror, number)
        found = pmc_metadata.difference(rows, known, articles.versions)
        names = set(map(_file, articles.select(found.current).table.to_pylist()))
        there = set(filter(_NAME.fullmatch, files.names(_folder(mirror, number))))
        return Plan(
            rows.num_rows - found.older,
            found.missing.num_rows,
            len(names),
            len(names & there),
            len(there - names),
        )

    totals = zip(*(astuple(plan) for plan in ahead(files, of_range, numbers)), strict=True)
    return Plan(*map(sum, totals))
