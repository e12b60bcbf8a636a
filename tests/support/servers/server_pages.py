"""Content of the fake server: folders in the servers' layouts, and listing pages in their formats.

The pages have the format of the real ones, line by line:
https://ftp.ncbi.nlm.nih.gov/pubmed/baseline/, https://ftp.ebi.ac.uk/pub/databases/pmc/oa/ (both Apache's
mod_autoindex, one as text, one as a table) and Amazon's ListObjectsV2
(https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html).
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from io import BufferedReader
from pathlib import Path
from urllib.parse import quote

S3_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"

Digest = Callable[[BufferedReader], str]


def publish_file(path: Path, data: bytes, md5: bool = False) -> None:
    """Write a file atomically; XML is compressed if the name ends in ``.gz``.

    ``md5`` writes ``path.md5`` too, in the format of ``openssl md5``, as NLM does.
    """
    if path.suffix == ".gz" and not data.startswith(b"\x1f\x8b"):
        data = gzip.compress(data, 6, mtime=0)
    _write_atomically(path, data)
    if md5:
        line = f"MD5({path.name})= {hashlib.md5(data).hexdigest()}\n"
        _write_atomically(path.with_name(path.name + ".md5"), line.encode())


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name("." + path.name)
    temporary.write_bytes(data)
    temporary.replace(path)


def create_pubmed_server(root: Path, baseline: Mapping[str, bytes], updates: Mapping[str, bytes]) -> None:
    """Create ``ROOT/pubmed`` from names such as ``pubmed26n0001.xml.gz`` and the XML or gzip of each."""
    for folder, contents in (("baseline", baseline), ("updatefiles", updates)):
        (root / "pubmed" / folder).mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            publish_file(root / "pubmed" / folder / name, data, md5=True)
    if baseline:
        first, last = (name.removesuffix(".gz") for name in (min(baseline), max(baseline)))
        following = f"{last[:9]}{int(last[9:13]) + 1:04d}.xml"
        publish_file(
            root / "pubmed" / "baseline" / "README.txt",
            f"The complete baseline consists of files {first} through {last}.\n"
            f"The first Update file to be loaded is {following}.\n".encode(),
        )


def create_europepmc_server(root: Path, packages: Mapping[str, Sequence[str]]) -> None:
    """Create ``ROOT/europepmc`` from names such as ``PMC13900_PMC17829.xml.gz`` and the articles of each."""
    (root / "europepmc").mkdir(parents=True, exist_ok=True)
    for name, articles in packages.items():
        publish_file(root / "europepmc" / name, f"<articles>{''.join(articles)}</articles>".encode())


def ncbi_listing(folder: Path, url_path: str) -> bytes:
    """Format a folder as NCBI's file server does; ``url_path`` is its path there, ``/pubmed/baseline/``."""
    title = escape(f"Index of {url_path.rstrip('/') or '/'}")
    entries = list(_entries(folder))
    width = max([23, *(len(name) for name, _, _ in entries)]) + 1
    rows = "".join(
        f'<a href="{quote(name)}">{escape(name)}</a>{" " * (width - len(name))}{date}  {size}\n'
        for name, date, size in entries
    )
    parent = f'<a href="{_parent_path(url_path)}">Parent Directory</a>{" " * (width + 2)}  - \n'
    return (
        f"<html>\n<head><title>{title}</title></head>\n<body>\n<h1>{title}</h1>\n"
        f"<hr><pre>{parent}{rows}</pre><hr>\n</body></html>\n"
    ).encode()


def apache_listing(folder: Path, url_path: str) -> bytes:
    """Format a folder as Europe PMC's file server does."""
    title = escape(f"Index of {url_path.rstrip('/') or '/'}")
    header_cells = "".join(
        f'<th><a href="?C={letter};O=A">{name}</a></th>'
        for letter, name in zip("NMSD", ("Name", "Last modified", "Size", "Description"), strict=True)
    )

    def row(icon: str, href: str, text: str, date: str, size: str) -> str:
        return (
            f'<tr><td valign="top"><img src="/icons/{icon}.gif" alt="[   ]"></td>'
            f'<td><a href="{href}">{escape(text)}</a></td><td align="right">{date}  </td>'
            f'<td align="right">{size}</td><td>&nbsp;</td></tr>\n'
        )

    rows = row("back", _parent_path(url_path), "Parent Directory", "&nbsp;", "  - ") + "".join(
        row("compressed", quote(name), name, date, size) for name, date, size in _entries(folder)
    )
    return (
        '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 3.2 Final//EN">\n'
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n <body>\n<h1>{title}</h1>\n  <table>\n"
        f'   <tr><th valign="top"><img src="/icons/blank.gif" alt="[ICO]"></th>{header_cells}</tr>\n'
        f'   <tr><th colspan="5"><hr></th></tr>\n{rows}'
        '   <tr><th colspan="5"><hr></th></tr>\n</table>\n</body></html>\n'
    ).encode()


def _entries(folder: Path) -> Iterator[tuple[str, str, str]]:
    """List name, date and size of the entries of a folder in Apache's format."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if not entry.name.startswith("."):
                info = entry.stat()
                date = datetime.fromtimestamp(info.st_mtime, UTC).strftime("%Y-%m-%d %H:%M")
                if entry.is_dir():
                    yield entry.name + "/", date, "  - "
                else:
                    yield entry.name, date, _format_size(info.st_size)


def _format_size(size: int) -> str:
    """Format a size in Apache's four characters: `` 60 ``, ``4.5K``, `` 19M``."""
    if size < 973:
        return f"{size:3d} "
    power = next(power for power in (1, 2, 3, 4) if size < 973 * 1024**power)
    value, unit = size / 1024**power, " KMGT"[power]
    return f"{value:.1f}{unit}" if value < 9.95 else f"{value:3.0f}{unit}"


def _parent_path(url_path: str) -> str:
    return quote(url_path.rstrip("/").rpartition("/")[0] + "/")


def s3_listing(bucket: Path, query: Mapping[str, str], page_size: int, md5: Digest) -> bytes:
    """Format a page of a bucket's listing.

    Args:
        bucket: the folder of the objects; a key is a path in it.
        query: prefix, delimiter ('/') and continuation-token of the request.
        page_size: upper limit of the entries on a page.
        md5: computes an object's MD5, which is its ETag.
    """
    prefix = query.get("prefix", "")
    assert query["list-type"] == "2", "the fake server lists by list-type=2"
    assert query["delimiter"] == "/", "the fake server lists with the delimiter /"
    token = query.get("continuation-token", "")
    after = base64.b64decode(token).decode()
    entries = [name for name in _list_keys(bucket, prefix) if name > after]
    page, is_truncated = entries[:page_size], len(entries) > page_size
    token = base64.b64encode(page[-1].encode()).decode() if is_truncated else ""
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="{S3_NAMESPACE}">'
        f"<Name>pmc-oa-opendata</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(page)}</KeyCount>"
        f"<MaxKeys>{page_size}</MaxKeys><Delimiter>/</Delimiter>"
        f"<IsTruncated>{'true' if is_truncated else 'false'}</IsTruncated>"
        + (f"<NextContinuationToken>{token}</NextContinuationToken>" if token else "")
        + "".join(_contents_xml(key, bucket / key, md5) for key in page if not key.endswith("/"))
        + "".join(
            f"<CommonPrefixes><Prefix>{escape(common)}</Prefix></CommonPrefixes>"
            for common in page
            if common.endswith("/")
        )
        + "</ListBucketResult>"
    ).encode()


def _contents_xml(key: str, path: Path, md5: Digest) -> str:
    with path.open("rb") as file:
        info, etag = os.fstat(file.fileno()), md5(file)
    changed = datetime.fromtimestamp(int(info.st_mtime), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
        f"<ETag>&quot;{etag}&quot;</ETag><Size>{info.st_size}</Size>"
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )


def _list_keys(bucket: Path, prefix: str) -> list[str]:
    """List keys and common prefixes that begin with ``prefix``, in S3's order."""
    keys = set()
    for folder, folders, names in os.walk(bucket):
        key_prefix = os.path.relpath(folder, bucket) + "/" if Path(folder) != bucket else ""
        for key in (key_prefix + name for name in names if not name.startswith(".")):
            if key.startswith(prefix):
                end = key.find("/", len(prefix))
                keys.add(key if end < 0 else key[: end + 1])
        folders[:] = [name for name in folders if prefix.startswith(f"{key_prefix}{name}/"[: len(prefix)])]
    return sorted(keys, key=str.encode)
