"""Fetch PMC's articles from the bucket into the mirror, by ranges of ids.

An article is stored as ``pmc/xml/PMC0123xxxx/PMC1230001.1-0a1b2c3d.xml``: range, name and first digits of
the MD5. It is written after its check, so that a file of this name is complete and current.
``pmc/selected/PMC0123xxxx.parquet`` lists the articles of a range.  An article whose metadata or XML cannot
be read stays as the list has it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from lxml import etree

from bioshards.corpus import progress_notes
from bioshards.corpus.download.http_client import Connection, DownloadError
from bioshards.corpus.download.mirror import remove_temporaries
from bioshards.corpus.download.pmc import bucket_inventory
from bioshards.corpus.download.pmc.bucket_inventory import make_version_keys
from bioshards.corpus.download.pmc.metadata_cache import (
    METADATA_SCHEMA,
    ArticleMetadata,
    RangeUpdate,
    list_articles,
    update_metadata,
)
from bioshards.corpus.download.pmc.mirror_table import read_table, write_table
from bioshards.corpus.download.pmc.s3_bucket import (
    ChecksumError,
    make_failure,
    range_label,
    read_verified,
    sort_failures,
    version_name,
)
from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.manifest import FailedArticle
from bioshards.corpus.storage.checksums import md5_of_file
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

ARTICLE_SCHEMA: Final = pa.schema(
    [
        *METADATA_SCHEMA,
        pa.field("file", pa.string(), nullable=False),
        pa.field("bytes", pa.int64(), nullable=False),
    ]
)
"""An article in the mirror: metadata, file name in the folder of the range, and size in bytes."""

NOT_LISTED: Final = "not in the bucket"
WITHDRAWN: Final = "withdrawn_"
"""Prefix of the metrics that count withdrawn articles by reason."""

_MAX_ARTICLE_BYTES: Final = 64 << 20  # bytes of an article's XML; 190 kB is usual, and each thread holds one
_ROOT_SEARCH_BYTES: Final = 1 << 16  # bytes in which the root element must begin
_FILE_NAME: Final = re.compile(r"PMC(\d{1,8})\.\d{1,4}-[0-9a-f]{8}\.xml", re.ASCII)


@dataclass(frozen=True, slots=True)
class RangeReport:
    """Result of fetching a range.

    Attributes:
        range_number: number of the range.
        selected: number of selected articles.
        mirrored: number of those that were in the mirror.
        fetched: number of those that were fetched.
        fetched_bytes: size of the fetched articles.
        removed: number of files removed from the mirror, because they are no longer selected.
        withdrawn: number of the articles among these of which no version is selected, by reason.
        failures: article versions whose metadata or XML could not be read.
        dropped: number of article versions that were not selected, by reason.
    """

    range_number: int
    selected: int
    mirrored: int
    fetched: int
    fetched_bytes: int
    removed: int
    withdrawn: dict[str, int]
    failures: tuple[FailedArticle, ...]
    dropped: dict[str, int]

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {
            "articles_selected": self.selected,
            "articles_cached": self.mirrored,
            "articles_fetched": self.fetched,
            "articles_removed": self.removed,
            "articles_bytes": self.fetched_bytes,
            "articles_failed": len(self.failures),
            **{f"dropped_{_name_reason(reason)}": count for reason, count in self.dropped.items()},
            **{f"{WITHDRAWN}{_name_reason(reason)}": count for reason, count in self.withdrawn.items()},
        }


def _name_reason(reason: str) -> str:
    return re.sub("[^A-Za-z0-9]+", "-", reason)  # of ``licence:CC BY-NC``


def list_mirrored_ranges(storage: Storage, mirror: str) -> list[int]:
    """List the ranges with a list of articles in the mirror."""
    names = storage.list_names(f"{mirror}/pmc/selected")
    return sorted(
        int(match[1]) for name in names if (match := re.fullmatch(r"PMC([0-9]{4})xxxx\.parquet", name))
    )


def list_ranges(storage: Storage, mirror: str) -> list[int]:
    """List the ranges to update: those of the inventory and those with articles in the mirror."""
    inventory_ranges = bucket_inventory.list_ranges(storage, mirror)
    return sorted({*inventory_ranges, *list_mirrored_ranges(storage, mirror)})


def read_selected(storage: Storage, mirror: str, range_number: int) -> pa.Table:
    """Read the list of articles of a range in the mirror, a table of :data:`ARTICLE_SCHEMA`."""
    return read_table(storage, selected_path(mirror, range_number), ARTICLE_SCHEMA)


def fetch_range(update: RangeUpdate) -> RangeReport:
    """Update the metadata of a range, fetch its selected articles, and remove all others from the mirror.

    Nothing is removed of an article with a failure: what the mirror has of it stays.

    Raises:
        OutageError: the bucket does not answer.
        OSError: the mirror cannot be written.
    """
    metadata = update_metadata(update)
    selected = update.article_filter.select(metadata.table)
    if metadata.older_versions:
        selected.dropped["not-newest"] = metadata.older_versions
    articles = {make_file_name(article): article for article in list_articles(selected.table)}
    folder = _get_range_folder(update.mirror, update.number)
    sizes = {info.path.rpartition("/")[2]: info.size for info in update.storage.walk(folder)}
    missing = {name: article for name, article in articles.items() if name not in sizes}
    fetched, failures = _fetch_articles(update, missing)
    failures += metadata.failures
    failed_ids = {failure.pmcid for failure in failures}
    _write_selected(update, selected.table, list(articles), sizes, fetched, failed_ids)
    surplus = [
        name
        for name in sizes
        if name not in articles and (match := _FILE_NAME.fullmatch(name)) and int(match[1]) not in failed_ids
    ]
    parallel_for_each(update.storage, update.storage.remove, [f"{folder}/{name}" for name in surplus])
    remove_temporaries(update.storage, folder)
    return RangeReport(
        range_number=update.number,
        selected=len(articles),
        mirrored=len(articles) - len(missing),
        fetched=len(fetched),
        fetched_bytes=sum(fetched.values()),
        removed=len(surplus),
        withdrawn=_count_withdrawn(update, surplus, articles, metadata.table),
        failures=sort_failures(failures),
        dropped=dict(selected.dropped),
    )


def _count_withdrawn(
    update: RangeUpdate, surplus: list[str], selected: Iterable[str], metadata: pa.Table
) -> dict[str, int]:
    """Count the articles of removed files without a selected version, by why they are not selected."""
    removed, kept = ({int(name[3:].partition(".")[0]) for name in names} for names in (surplus, selected))
    withdrawn = pa.array(sorted(removed - kept), pa.int32())
    rows = metadata.filter(pc.is_in(metadata["pmcid"], value_set=withdrawn))
    reasons = update.article_filter.find_drop_reasons(rows)
    return dict(sorted(Counter(reasons.get(pmcid, NOT_LISTED) for pmcid in withdrawn.to_pylist()).items()))


def _fetch_articles(
    update: RangeUpdate, articles: dict[str, ArticleMetadata]
) -> tuple[dict[str, int], list[FailedArticle]]:
    """Fetch articles by their file names; return the sizes of the fetched ones and the failures."""
    folder = _get_range_folder(update.mirror, update.number)

    def fetch(connection: Connection, name: str) -> int:
        body = _read_article(connection, update.pool.server.base_url, articles[name])
        with update.storage.write(f"{folder}/{name}") as file:
            file.write(body)
        return len(body)

    fetched: dict[str, int] = {}
    failures: list[FailedArticle] = []
    for name, result in update.pool.map_unordered(fetch, articles):
        progress_notes.count("requests")
        if isinstance(result, DownloadError):
            failures.append(make_failure(articles[name].pmcid, articles[name].version, result))
        else:
            fetched[name] = result
    return fetched, failures


def remove_damaged(storage: Storage, mirror: str, range_number: int) -> None:
    """Remove the articles of a range that cannot be read or have the wrong MD5: the next run fetches them."""
    folder = _get_range_folder(mirror, range_number)

    def find_damaged(row: dict[str, Any]) -> str | None:
        path = f"{folder}/{row['file']}"
        try:
            with storage.open(path) as file:
                return None if md5_of_file(file) == row["md5"] else path
        except TransientStorageError:
            raise
        except OSError:
            return path

    rows = read_selected(storage, mirror, range_number).to_pylist()
    for path in prefetch_map(storage, find_damaged, rows):
        if path:
            storage.remove(path)


def _read_article(connection: Connection, base_url: str, article: ArticleMetadata) -> bytes:
    """Read the XML of an article and check its MD5 and its root element."""
    name = version_name(article.pmcid, article.version)
    url = f"{base_url}{name}/{name}.xml"
    assert article.md5
    body = read_verified(connection, url, _MAX_ARTICLE_BYTES, article.md5)
    if _parse_root_name(body) != "article":
        raise ChecksumError(f"{url}: its MD5 is right, but its root element is not <article>: {body[:100]!r}")
    return body


def _parse_root_name(body: bytes) -> str:
    """Return the local name of the root element, or ''."""
    parser = etree.XMLPullParser(
        events=("start",), resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        parser.feed(body[:_ROOT_SEARCH_BYTES])
        for _, element in parser.read_events():
            if isinstance(element, etree._Element):
                return re.split("[}:]", str(element.tag))[-1]  # a prefix may be undeclared
    except etree.XMLSyntaxError:
        pass
    return ""


def _write_selected(
    update: RangeUpdate,
    metadata: pa.Table,
    names: list[str],
    sizes: dict[str, int],
    fetched: dict[str, int],
    failed_ids: Collection[int],
) -> None:
    """Write the list of articles of a range, if it has changed: a new file makes its shards outdated.

    Args:
        metadata: selected rows of :data:`~.metadata_cache.METADATA_SCHEMA`.
        names: file name of each row.
        sizes: sizes of the files that were in the mirror, in bytes.
        fetched: sizes of the fetched files.
        failed_ids: PMC ids with a failure: of these the list has what it had before, if the files are there.
    """
    previous = read_selected(update.storage, update.mirror, update.number)
    columns = [pa.array(names, pa.string()), pa.array(map((sizes | fetched).get, names), pa.int64())]
    listed = metadata.append_column("file", columns[0]).append_column("bytes", columns[1])
    listed = listed.filter(pc.is_valid(listed["bytes"])).combine_chunks().cast(ARTICLE_SCHEMA)
    if failed_ids:
        is_kept = pc.and_(
            pc.is_in(previous["pmcid"], value_set=pa.array(sorted(failed_ids), pa.int32())),
            pc.is_in(previous["file"], value_set=pa.array(sorted(sizes), pa.string())),
        )
        is_listed = pc.is_in(
            make_version_keys(previous), value_set=make_version_keys(listed).combine_chunks()
        )
        kept = previous.filter(pc.and_not(is_kept, is_listed))
        listed = update.article_filter.select(pa.concat_tables([listed, kept])).table
    path = selected_path(update.mirror, update.number)
    if previous != listed or not update.storage.exists(path):
        write_table(update.storage, path, listed)


def make_file_name(article: ArticleMetadata) -> str:
    """Return the file name of an article that has an XML."""
    assert article.md5
    return f"{version_name(article.pmcid, article.version)}-{article.md5[:8]}.xml"


def _get_range_folder(mirror: str, range_number: int) -> str:
    return f"{mirror}/pmc/xml/{range_label(range_number)}"


def selected_path(mirror: str, range_number: int) -> str:
    """Return the path of the list of articles of a range."""
    return f"{mirror}/pmc/selected/{range_label(range_number)}.parquet"


def sum_selected_bytes(storage: Storage, path: str) -> int:
    """Return the size of the articles in the list of a range, in bytes."""
    return sum(read_table(storage, path, ARTICLE_SCHEMA)["bytes"].to_pylist())
