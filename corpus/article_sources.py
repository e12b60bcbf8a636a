"""Find full text in folders and files, and deal it out to sources: what makes one shard each.

A package (Europe PMC's, an archive) is a source; so is the list of a range of articles in a mirror.  Files of
single articles are gathered by ranges of 10,000 PMC ids, those whose path names none by the hash of their
names.  So what is in a source depends on names only, and an article that is added touches one shard.
"""

from __future__ import annotations

import collections
import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from .archives import ENDINGS as ARCHIVES
from .errors import InputNotFoundError
from .files import Found, LocalFiles
from .sources import Part, Source, files_of

LIST: Final = ".parquet"
"""How the list of a range in a mirror ends (download/pmc.py)."""
LOOSE: Final = (".xml", ".nxml", ".xml.gz", ".nxml.gz")
PER_GROUP: Final = 10_000
"""Files without a PMC id in a group, at most, in the mean: as many as a range of ids has."""

_RANGE: Final = 10_000
_PACKAGE = re.compile(r"PMC\d+_PMC\d+\.xml(\.gz)?")
_LISTED = re.compile(r"(.*/pmc/)selected/PMC\d{4,6}xxxx\.parquet", re.DOTALL)
_PUBMED = re.compile(r"pubmed\d\dn\d{4,6}\.xml(\.gz)?")
_PMCID = re.compile(r"PMC(\d{1,9})(?:\.(\d{1,4}))?(?![\d])")


def discover(files: LocalFiles, inputs: Iterable[str]) -> list[Source]:
    """All full text that the inputs (folders, globs, single files) name, once each, in order.

    A folder gives its articles (``.xml``, ``.nxml``, gzipped or not), packages and archives at any depth; a
    mirror of ``beam run fetch`` what its lists select.

    Raises:
        InputNotFoundError: an input names nothing.
    """
    found: dict[str, Found] = {}
    for given in inputs:
        here = [item for item in files_of(files, given, (*LOOSE, *ARCHIVES, LIST)) if _is_text(item.path)]
        if not here:
            kind = "has no article, package or archive" if files.is_folder(given) else "names no full text"
            raise InputNotFoundError(
                f"--input {given} {kind}. Give a folder, a file or a quoted glob of articles (.xml, .nxml, "
                ".xml.gz), archives of them (.tar.gz, .zip) or Europe PMC's packages (PMC1_PMC20000.xml.gz). "
                "PubMed's files are read by pubmed_to_shards."
            )
        found.update((item.path, item) for item in here)
    mirrors = {match[1] for path in found if (match := _LISTED.fullmatch(path))}
    loose = []
    sources = []
    for item in found.values():
        name = _name(item.path)
        if name.endswith((*ARCHIVES, LIST)) or _PACKAGE.fullmatch(name):
            sources.append(source(item))
        elif not any(item.path.startswith(f"{mirror}xml/") for mirror in mirrors):
            loose.append(item)
    return sorted([*sources, *_groups(loose)])


def source(found: Found, retrieved: str = "") -> Source:
    """A package, an archive or a list as a source."""
    name = _name(found.path)
    number = _PMCID.search(name)
    return Source(0, int(number[1]) if number else 0, name, found.path, found.size, found.stamp, retrieved)


def _is_text(path: str) -> bool:
    """Is it what it looks like?  A folder may hold other Parquet files, and PubMed's XML."""
    if path.endswith(LIST):
        return _LISTED.fullmatch(path) is not None
    return _PUBMED.fullmatch(_name(path)) is None


def _name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _printable(path: str) -> str:
    """The path with a question mark for what is no UTF-8, so that it can be written down."""
    return path.encode(errors="replace").decode()


def _groups(loose: list[Found]) -> Iterator[Source]:
    """Files of single articles, gathered."""
    groups: dict[tuple[int, str], list[tuple[tuple[int, int, str, str], Part]]] = collections.defaultdict(
        list
    )
    unnamed = []
    for item in loose:
        short = "/".join(re.split(r"[/\\]", _printable(item.path))[-2:])
        ids = _PMCID.findall(short)
        if ids:
            number, version = (int(digits or 0) for digits in ids[-1])
            name = short if _PMCID.search(_name(short)) is None else _name(short)
            group = number // _RANGE
            part = Part(name, item.path, item.size, item.stamp)
            groups[group, f"PMC{group:04d}xxxx"].append(((number, version, name, item.path), part))
        else:
            unnamed.append((short, item))
    count = 1
    while len(unnamed) > PER_GROUP * count:
        count *= 2
    for short, item in unnamed:
        digest = hashlib.md5(short.encode(), usedforsecurity=False).digest()
        group = int.from_bytes(digest[:4]) % count
        part = Part(short, item.path, item.size, item.stamp)
        groups[0, f"articles-{group:03d}-of-{count:03d}"].append(((0, 0, short, item.path), part))
    for (number, name), members in sorted(groups.items()):
        parts = tuple(part for _, part in sorted(members))
        stamps = "\n".join(f"{_printable(part.path)} {part.stamp}" for part in parts)
        stamp = hashlib.md5(stamps.encode(), usedforsecurity=False).hexdigest()
        size = sum(part.size for part in parts)
        folder = re.split(r"[/\\][^/\\]*$", _printable(parts[0].path))[0]
        yield Source(0, number * _RANGE, name, f"{folder}/{name}", size, stamp, parts=parts, files=len(parts))
