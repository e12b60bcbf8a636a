"""PMC's bucket as a run uses it: which ranges of its articles are asked for, and how they are fetched."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bioshards.corpus.download import pmc, pmc_bucket, pmc_inventory
from bioshards.corpus.download.listing import EmptySelectionError
from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.named import Named
from bioshards.corpus.download.pmc_inventory import Inventory
from bioshards.corpus.download.pmc_selection import Articles
from bioshards.corpus.files import TEMPORARY, LocalFiles
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES

from .fetching import Fetching, fetching_by, patient_with_a_person, server_at
from .options import Parser, UsageError
from .values import address, at_least, at_least_one_of

PER_SECOND = 1000.0
"""Requests to PMC's bucket at most; S3 serves several thousand a second."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """PMC's articles that are asked for: in these ranges of 10,000 ids, those that ``articles`` selects.

    Attributes:
        inventory: the one that was read when the run began; None where the bucket was not asked.
    """

    fetching: Fetching
    ranges: list[int]
    articles: Articles
    inventory: Inventory | None = None


def check(by_name: Iterable[Named]) -> None:
    """See that the names ask for what the bucket has, before anything is begun.

    Raises:
        UsageError: one selects by date.
    """
    for name in by_name:
        if name.source == "pmc" and name.selection.since:
            raise UsageError(
                f"--input {name.text}: pmc: has no need of since=, as what the mirror has is not read again"
            )


def look(mirror: Mirror, by_name: Sequence[Named], articles: Articles, options: Any, local: bool) -> Bucket:
    """Bring PMC's inventory into the mirror, unless it is a dry run, and see which ranges are asked for.

    Raises:
        EmptySelectionError, ListingError, DownloadError: with a message for the person.
    """
    url = options.pmc_url or pmc_bucket.URL
    server = server_at(url, options.contact, options.connections, PER_SECOND)
    inventory = None
    if not options.dry_run:
        _sweep(mirror.files, f"{mirror.folder}/pmc")
        print(f"reading the newest inventory of {server.base} ...", file=sys.stderr)
        with patient_with_a_person(server).connect() as connection:
            inventory = pmc_inventory.update(mirror.files, mirror.folder, connection, server.base)
    ranges = [
        number
        for number in pmc.ranges(mirror.files, mirror.folder)
        if any(name.selection.overlaps(*pmc_bucket.ids(number)) for name in by_name)
    ]
    if inventory and not ranges:
        asked = ", ".join(name.text for name in by_name)
        first, last = (pmc_bucket.label(number) for number in (inventory.ranges[0], inventory.ranges[-1]))
        raise EmptySelectionError(f"--input {asked} selects no article; there are {first} to {last}")
    return Bucket(fetching_by(mirror, server, options.workers, local), ranges, articles, inventory)


def _sweep(files: LocalFiles, folder: str) -> None:
    """Remove what a killed run was just writing; of articles, each range's own is removed with it."""
    for part in ("", "/inventory", "/metadata", "/selected", "/reports"):
        for name in files.names(f"{folder}{part}"):
            if name.startswith(TEMPORARY):
                files.remove(f"{folder}{part}/{name}")


def add_licences(group: argparse._ArgumentGroup, default: tuple[str, ...] | None) -> None:
    """The option of which licences are used; ``default`` None where a preset may say so."""
    group.add_argument(
        "--licences",
        type=at_least_one_of(tuple(LICENCES)),
        metavar="CODES",
        default=default,
        help=f"comma-separated, of {', '.join(LICENCES)}, or all (default: "
        f"{','.join(sorted(DEFAULT_LICENCES))}, which permit everybody any use, and passing on changed text)",
    )


def add_connections(group: argparse._ArgumentGroup) -> None:
    """The option of how many connections to the bucket there are."""
    group.add_argument(
        "--connections",
        type=at_least(1),
        metavar="N",
        default=64,
        help="to PMC's bucket, of all workers together (default: %(default)s)",
    )


def add_servers(parser: Parser, urls: dict[str, str]) -> None:
    """The options of where sources are fetched from, if not from where they are."""
    where = parser.add_argument_group("other servers with the same layouts")
    for name, url in urls.items():
        where.add_argument(f"--{name}-url", type=address, metavar="URL", help=f"default: {url}")
