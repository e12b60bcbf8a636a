"""Where Europe PMC's packages are and how they are listed; when that changes, this is the file to mend.

https://ftp.ebi.ac.uk/pub/databases/pmc/oa/ is one flat folder of packages of up to about 10,000 articles.
It is listed as a table with rows like this one::

    <tr><td valign="top"><img src="/icons/compressed.gif" alt="[   ]"></td>
    <td><a href="PMC13900_PMC17829.xml.gz">PMC13900_PMC17829.xml.gz</a></td>
    <td align="right">2026-07-25 03:10  </td><td align="right">1.1M</td><td>&nbsp;</td></tr>

A name gives a range of PMC ids.  All ids of a package are in its range, but the ranges are not contiguous;
all packages are made anew once a week, under the same names, and nothing says which of them have changed
(https://groups.google.com/a/ebi.ac.uk/g/epmc-webservices/c/nNIVJqZMsdI).  No checksums are published.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Final

from .http_client import Connection
from .listing import MAX_PAGE_BYTES, SelectedFiles, apply_spec, make_listing_error, parse_links
from .remote_file import RemoteFile
from .source_spec import SourceSpec

URL: Final = "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/"
MAX_CONNECTIONS: Final = 4
REQUESTS_PER_SECOND: Final = 8.0
"""What is asked of the file server at most, all workers together: as of NCBI's, as no limit is published."""
STALE_AFTER_DAYS: Final = 45
"""Packages that are made weekly and are all older than this have perhaps ceased to be made."""

_PACKAGE_NAME = re.compile(r"PMC([0-9]{1,9})_PMC([0-9]{1,9})\.xml\.gz")


@dataclass(frozen=True, slots=True)
class Package:
    """A listed package, and the range of PMC ids in its name."""

    first_pmcid: int
    last_pmcid: int
    remote_file: RemoteFile


def parse_listing(page: str, base_url: str) -> list[Package]:
    """The packages of the listing of ``base_url`` in the order of their ids; all else is passed over.

    Raises:
        ListingError: there is no such file on the page.
    """
    packages: dict[str, Package] = {}
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
            )
            packages.setdefault(link.name, Package(int(match[1]), int(match[2]), remote_file))
    if not packages:
        raise make_listing_error(base_url, page, "package (PMCn_PMCn.xml.gz)", "europepmc.py")
    return sorted(
        packages.values(),
        key=lambda package: (package.first_pmcid, package.last_pmcid, package.remote_file.name),
    )


def select_files(spec: SourceSpec, packages: Sequence[Package], today: date) -> SelectedFiles:
    """The packages to fetch for ``europepmc:``; ``today`` tells how old the newest listed one is.

    Raises:
        EmptySelectionError: there is nothing of what is selected.
        ListingError: ``since=`` is asked for, and a package has no date in the listing.
    """
    selected = apply_spec(
        spec, [(package.first_pmcid, package.last_pmcid, package.remote_file) for package in packages]
    )
    newest_modified = max(
        (package.remote_file.modified_at for package in packages if package.remote_file.modified_at),
        default=None,
    )
    notices = []
    age_days = (today - newest_modified.date()).days if newest_modified else 0
    if newest_modified and age_days > STALE_AFTER_DAYS:
        notices.append(
            f"The newest package of Europe PMC is of {newest_modified.date()}, {age_days:,} days before "
            f"{today}: they may "
            "have ceased to be refreshed. pmc: has PMC's articles as they are now."
        )
    return SelectedFiles(tuple(selected), tuple(notices))


def list_files(connection: Connection, base_url: str, spec: SourceSpec) -> SelectedFiles:
    """Read the listing, and choose.

    Raises:
        ListingError, EmptySelectionError, DownloadError
    """
    page = connection.read(base_url, MAX_PAGE_BYTES).body.decode("utf-8", "replace")
    return select_files(spec, parse_listing(page, base_url), datetime.now(UTC).date())
