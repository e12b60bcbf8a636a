"""Packages of Europe PMC: URL, listing and selection.  Update this file when their server changes.

https://ftp.ebi.ac.uk/pub/databases/pmc/oa/ is a flat folder of packages of up to about 10,000 articles.
Its listing is a table with rows like this::

    <tr><td valign="top"><img src="/icons/compressed.gif" alt="[   ]"></td>
    <td><a href="PMC13900_PMC17829.xml.gz">PMC13900_PMC17829.xml.gz</a></td>
    <td align="right">2026-07-25 03:10  </td><td align="right">1.1M</td><td>&nbsp;</td></tr>

The file name gives a range of PMC ids that includes all ids of the package.  The ranges have gaps.  All
packages are rebuilt once a week under the same names, and no list of changes is published
(https://groups.google.com/a/ebi.ac.uk/g/epmc-webservices/c/nNIVJqZMsdI).  No checksums are published.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Final

from bioshards.corpus.download.http_client import Connection
from bioshards.corpus.download.listing import (
    RemoteFile,
    SelectedFiles,
    apply_spec,
    make_listing_error,
    parse_links,
    read_listing,
)
from bioshards.corpus.download.sources import SourceSpec

STALE_AFTER_DAYS: Final = 45
"""If the newest of the weekly packages is older than this, a notice is shown."""

_PACKAGE_NAME = re.compile(r"PMC([0-9]{1,9})_PMC([0-9]{1,9})\.xml\.gz")


def parse_listing(page: str, base_url: str) -> list[RemoteFile]:
    """Parse the listing of ``base_url``: packages in the order of their ids, other links ignored.

    Raises:
        ListingError: the page lists no package.
    """
    packages: dict[str, RemoteFile] = {}
    for link in parse_links(page):
        if match := _PACKAGE_NAME.fullmatch(link.name):
            remote_file = RemoteFile(
                url=f"{base_url}{link.name}",
                path=f"europepmc/{link.name}",
                root_name="articles",
                has_md5_file=False,
                listing_text=link.listing_text,
                modified_at=link.modified_at,
                size=link.size,
                first=int(match[1]),
                last=int(match[2]),
            )
            packages.setdefault(link.name, remote_file)
    if not packages:
        raise make_listing_error(base_url, page, "package (PMCn_PMCn.xml.gz)", "europepmc.py")
    return sorted(packages.values(), key=lambda package: (package.first, package.last, package.name))


def select_files(
    spec: SourceSpec, packages: Sequence[RemoteFile], today: date, mirrored_paths: Collection[str] = ()
) -> SelectedFiles:
    """Select the packages to fetch for ``europepmc:``.

    Args:
        spec: parsed ``--input``.
        packages: all listed packages.
        today: date from which the age of the newest package is computed.
        mirrored_paths: paths of the files in the mirror.

    Raises:
        EmptySelectionError: no package is selected.
        ListingError: ``since=`` is given, and a package has no date in the listing.
    """
    selected = apply_spec(spec, packages)
    newest_modified = max((package.modified_at for package in packages if package.modified_at), default=None)
    notices = []
    age_days = (today - newest_modified.date()).days if newest_modified else 0
    if newest_modified and age_days > STALE_AFTER_DAYS:
        notices.append(
            f"The newest package of Europe PMC is of {newest_modified.date()}, {age_days:,} days before "
            f"{today}: the packages may no longer be updated. Use pmc: for the current articles of PMC."
        )
    return SelectedFiles(
        tuple(selected), tuple(notices), tuple(_find_unlisted(spec, packages, mirrored_paths))
    )


def _find_unlisted(
    spec: SourceSpec, packages: Sequence[RemoteFile], mirrored_paths: Collection[str]
) -> Iterator[str]:
    """Yield the selected packages of the mirror that the listing lacks.

    A package whose range has ids of a listed one is left out: the articles of the last package move to one of
    another name as it grows.
    """
    if spec.selection.newest or spec.selection.since:
        return
    for path in sorted(mirrored_paths):
        if match := _PACKAGE_NAME.fullmatch(path.rpartition("/")[2]):
            first, last = int(match[1]), int(match[2])
            is_listed = any(first <= package.last and package.first <= last for package in packages)
            if spec.selection.overlaps(first, last) and not is_listed:
                yield path


def list_files(
    connection: Connection,
    base_url: str,
    spec: SourceSpec,
    mirrored_paths: Collection[str],
    allow_removals: bool,
) -> SelectedFiles:
    """Read the listing and select files.

    Raises:
        ListingError: the page is incomplete, lists no package, or lacks a date.
        EmptySelectionError: no package is selected.
        DownloadError: the listing cannot be read.
    """
    packages = read_listing(connection, base_url, lambda page: parse_listing(page, base_url))
    return select_files(spec, packages, datetime.now(UTC).date(), mirrored_paths)
