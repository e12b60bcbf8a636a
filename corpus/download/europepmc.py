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

from .listing import PAGE_BYTES, Chosen, links, no_listing, select
from .named import Named
from .remote import Remote
from .web import Connection

URL: Final = "https://ftp.ebi.ac.uk/pub/databases/pmc/oa/"
CONNECTIONS: Final = 4
PER_SECOND: Final = 8.0
"""What is asked of the file server at most, all workers together: as of NCBI's, as no limit is published."""
STALE_DAYS: Final = 45
"""Packages that are made weekly and are all older than this have perhaps ceased to be made."""

_NAME = re.compile(r"PMC([0-9]{1,9})_PMC([0-9]{1,9})\.xml\.gz")


@dataclass(frozen=True, slots=True)
class Package:
    """A listed package, and the range of PMC ids in its name."""

    first: int
    last: int
    remote: Remote


def parse(page: str, base: str) -> list[Package]:
    """The packages of the listing of ``base`` in the order of their ids; all else is passed over.

    Raises:
        ListingError: there is no such file on the page.
    """
    packages: dict[str, Package] = {}
    for link in links(page):
        if name := _NAME.fullmatch(link.name):
            remote = Remote(
                url=f"{base}{link.name}",
                path=f"europepmc/{link.name}",
                root="articles",
                md5_beside=False,
                listed=link.words,
                changed=link.changed,
                size=link.size,
            )
            packages.setdefault(link.name, Package(int(name[1]), int(name[2]), remote))
    if not packages:
        raise no_listing(base, page, "package (PMCn_PMCn.xml.gz)", "europepmc.py")
    return sorted(packages.values(), key=lambda package: (package.first, package.last, package.remote.name))


def choose(named: Named, packages: Sequence[Package], today: date) -> Chosen:
    """The packages to fetch for ``europepmc:``; ``today`` tells how old the newest listed one is.

    Raises:
        EmptySelectionError: there is nothing of what is selected.
        ListingError: ``since=`` is asked for, and a package has no date in the listing.
    """
    chosen = select(named, [(package.first, package.last, package.remote) for package in packages])
    newest = max((package.remote.changed for package in packages if package.remote.changed), default=None)
    notices = []
    days = (today - newest.date()).days if newest else 0
    if newest and days > STALE_DAYS:
        notices.append(
            f"The newest package of Europe PMC is of {newest.date()}, {days:,} days before {today}: they may "
            "have ceased to be refreshed. pmc: has PMC's articles as they are now."
        )
    return Chosen(tuple(chosen), tuple(notices))


def listed(connection: Connection, base: str, named: Named) -> Chosen:
    """Read the listing, and choose.

    Raises:
        ListingError, EmptySelectionError, DownloadError
    """
    page = connection.read(base, PAGE_BYTES).body.decode("utf-8", "replace")
    return choose(named, parse(page, base), datetime.now(UTC).date())
