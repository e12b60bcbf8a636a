"""Find full text in the inputs and group it into sources; each source becomes one group of shards.

A package of Europe PMC, an archive, and a mirror's list of a range are one source each. Files of single
articles are grouped by ranges of 10,000 PMCIDs, or by a hash of their names if these have no PMCID. Grouping
depends on names only, so that a new article changes one shard.
"""

from __future__ import annotations

import collections
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final

from bioshards.corpus.archives import ARCHIVE_EXTENSIONS
from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.storage.source_file import (
    InputListing,
    OnNotice,
    SourceFile,
    SourcePart,
    describe_output,
    ignore_notice,
    list_input_files,
)
from bioshards.corpus.storage.storage_protocol import FileInfo, Storage
from bioshards.corpus.xml.input_roots import check_roots

ARTICLE_LIST_EXTENSION: Final = ".parquet"
"""File name extension of a mirror's list of a range (download/pmc/)."""
ARTICLE_EXTENSIONS: Final = (".xml", ".nxml", ".xml.gz", ".nxml.gz")
MEAN_FILES_PER_GROUP: Final = 10_000
"""Largest mean number of files in a group without PMCIDs; equal to a range of PMCIDs."""

_PMCIDS_PER_RANGE: Final = 10_000
_PACKAGE_NAME = re.compile(r"PMC\d+_PMC\d+\.xml(\.gz)?", re.IGNORECASE)
_ARTICLE_LIST_PATH = re.compile(r"(.*/pmc/)selected/PMC\d{4,6}xxxx\.parquet", re.DOTALL)
_PUBMED_FILE_NAME = re.compile(r"pubmed\d\dn\d{4,6}\.xml(\.gz)?", re.IGNORECASE)
_PMCID = re.compile(r"PMC(\d{1,9})(?:\.(\d{1,4}))?(?![\d])")


def discover(
    storage: Storage, inputs: Iterable[str], on_notice: OnNotice = ignore_notice
) -> list[SourceFile]:
    """Find all full text that the inputs match, each file once, in order.

    A directory contributes its articles (``.xml``, ``.nxml``, gzipped or not), packages and archives at any
    depth; a mirror of ``beam run fetch``, the articles in its lists.

    Args:
        storage: where the files are.
        inputs: directories, globs and files.
        on_notice: is told of files that are not read, and of links to directories that are.

    Raises:
        InputNotFoundError: an input matches no full text.
        InputUnreadableError: a directory cannot be listed.
    """
    listings = [_list_full_text(storage, input_path, on_notice) for input_path in inputs]
    info_by_path = {info.path: info for listing in listings for info in listing.files}
    mirror_prefixes = tuple(
        {match[1] for path in info_by_path if (match := _ARTICLE_LIST_PATH.fullmatch(path))}
    )
    for listing in listings:
        others = [path for path in listing.others if not path.startswith(mirror_prefixes)]
        if notice := replace(listing, others=others).describe_others("articles, packages and archives"):
            on_notice(notice)
    article_prefixes = tuple(f"{prefix}xml/" for prefix in mirror_prefixes)
    article_files = []
    sources = []
    for info in info_by_path.values():
        is_package = _PACKAGE_NAME.fullmatch(_base_name(info.path)) is not None
        if is_package or is_archive(info.path) or is_article_list(info.path):
            sources.append(source_from_file(info))
        elif not info.path.startswith(article_prefixes):
            article_files.append(info)
    return sorted([*sources, *_group_articles(article_files)])


def _list_full_text(storage: Storage, input_path: str, on_notice: OnNotice) -> InputListing:
    listing = list_input_files(
        storage, input_path, (*ARTICLE_EXTENSIONS, *ARCHIVE_EXTENSIONS, ARTICLE_LIST_EXTENSION), on_notice
    )
    full_text = [info for info in listing.files if _is_full_text(info.path)]
    if not full_text:
        problem = (
            "has no article, package or archive" if storage.is_folder(input_path) else "names no full text"
        )
        raise InputNotFoundError(
            f"--input {input_path} {problem}. Give a folder, a file or a quoted glob of articles (.xml, "
            ".nxml, .xml.gz), archives of them (.tar.gz, .zip) or Europe PMC's packages "
            "(PMC1_PMC20000.xml.gz). PubMed's files are read by pubmed_to_shards."
            f"{describe_output(storage, input_path)}"
        )
    articles = [info.path for info in full_text if info.path.lower().endswith(ARTICLE_EXTENSIONS)]
    check_roots(storage, input_path, articles, "pmc_to_shards")
    others = [info.path for info in listing.files if not _is_full_text(info.path)]
    return InputListing(input_path, full_text, [*listing.others, *others])


def source_from_file(info: FileInfo, retrieved_at: str = "") -> SourceFile:
    """Create the source of a package, an archive or a mirror's list."""
    name = _base_name(info.path)
    pmcid_match = _PMCID.search(name)
    return SourceFile(
        0, int(pmcid_match[1]) if pmcid_match else 0, name, info.path, info.size, info.stamp, retrieved_at
    )


def is_archive(path: str) -> bool:
    """Return True for an archive of articles, by its name."""
    return path.lower().endswith(ARCHIVE_EXTENSIONS)


def is_article_list(path: str) -> bool:
    """Return True for a mirror's list of the articles of a range, by its path."""
    return _ARTICLE_LIST_PATH.fullmatch(path) is not None


def _is_full_text(path: str) -> bool:
    """Return False for other Parquet files and for PubMed's XML."""
    if path.lower().endswith(ARTICLE_LIST_EXTENSION):
        return is_article_list(path)
    return _PUBMED_FILE_NAME.fullmatch(_base_name(path)) is None


def _base_name(path: str) -> str:
    return re.split(r"[/\\]", path)[-1]


def _to_printable(path: str) -> str:
    """Return the path with a question mark for invalid UTF-8."""
    return path.encode(errors="replace").decode()


def _group_articles(article_files: list[FileInfo]) -> Iterator[SourceFile]:
    """Group files of single articles by ranges of PMCIDs, or by hashes of their names if they have none."""
    groups: dict[tuple[int, str], list[tuple[int, int, SourcePart]]] = collections.defaultdict(list)
    parts_without_pmcid = []
    for info in article_files:
        name = "/".join(re.split(r"[/\\]", _to_printable(info.path))[-2:])
        pmcids = _PMCID.findall(name)
        if pmcids and _PMCID.search(_base_name(name)):
            name = _base_name(name)
        part = SourcePart(name, info.path, info.size, info.stamp)
        if pmcids:
            number, version = (int(digits or 0) for digits in pmcids[-1])
            range_number = number // _PMCIDS_PER_RANGE
            groups[range_number, f"PMC{range_number:04d}xxxx"].append((number, version, part))
        else:
            parts_without_pmcid.append(part)
    num_groups = 1
    while len(parts_without_pmcid) > MEAN_FILES_PER_GROUP * num_groups:
        num_groups *= 2
    for part in parts_without_pmcid:
        digest = hashlib.md5(part.name.encode(), usedforsecurity=False).digest()
        group_number = int.from_bytes(digest[:4]) % num_groups
        groups[0, f"articles-{group_number:03d}-of-{num_groups:03d}"].append((0, 0, part))
    for (number, name), members in sorted(groups.items()):
        yield _make_group(number * _PMCIDS_PER_RANGE, name, tuple(part for _, _, part in sorted(members)))


def _make_group(number: int, name: str, parts: tuple[SourcePart, ...]) -> SourceFile:
    """Create the source of several files, which changes with each of them."""
    stamp_lines = "\n".join(f"{_to_printable(part.path)} {part.stamp}" for part in parts)
    stamp = hashlib.md5(stamp_lines.encode(), usedforsecurity=False).hexdigest()
    folder = re.split(r"[/\\][^/\\]*$", _to_printable(parts[0].path))[0]
    size = sum(part.size for part in parts)
    return SourceFile(0, number, name, f"{folder}/{name}", size, stamp, parts=parts, num_files=len(parts))
