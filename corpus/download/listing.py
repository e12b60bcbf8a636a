"""What the listings of different servers have in common: rows of a link, a date and a size.

The rows that a page holds are found here; which of them are files of a source, and where these lie, only the
source's own module says (``pubmed.py``, ``europepmc.py``).  Nothing of a page is trusted: links are text that
is yet to be matched against a pattern, and every step takes time linear in the page's length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from bioshards.corpus.errors import RunError, UserError

from .named import Named
from .remote import Remote

PAGE_BYTES: Final = 16 << 20
"""Longest listing that is read; that of 2026 has less than half a megabyte."""
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1|\Z)", re.DOTALL | re.IGNORECASE)
_ANCHOR = re.compile(r"<a\s", re.IGNORECASE)
_HREF = re.compile(r"""[^<>]{0,99}?(?<!\S)href=(["'])([^"'<>\s]{1,99})\1""", re.IGNORECASE)
_ROW: Final = 400
"""So many characters after a link may hold its date and size."""
_WHEN = r"(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)-([A-Z][a-z]{2})-(\d{4}))[ \t]{1,9}(\d\d):(\d\d)(?::\d\d)?"
_SIZE = r"(?:\s|&nbsp;|<[^<>]{0,99}>)+(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)(?=[\s<&]|\Z)"
_WORDS = re.compile(rf"(?<!\d)({_WHEN})(?!\d)(?:{_SIZE})?", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


class ListingError(RunError):
    """What was read is not the listing that it should be, or does not say what is asked of it."""

    hint = "Nothing was begun"


class EmptySelectionError(UserError):
    """A selection that none of the listed files is in."""


class Link(NamedTuple):
    """A link as it is written on the page, and what its row says of it.

    Attributes:
        name: the address as it stands there.
        changed: date and time, None where there are none.
        size: in bytes, as exactly as the listing gives it; 0 where it does not.
        words: date and size in the listing's own words, or ''.
    """

    name: str
    changed: datetime | None
    size: int
    words: str


@dataclass(frozen=True, slots=True)
class Chosen:
    """Files to fetch, in the source's own order, and what the user should be told of the listing."""

    files: tuple[Remote, ...]
    notices: tuple[str, ...]


def links(page: str) -> Iterator[Link]:
    """The links of a listing.

    A row reaches from one link to the next.  Understood are both styles of Apache's mod_autoindex, text and
    table (https://httpd.apache.org/docs/2.4/mod/mod_autoindex.html), with ``2026-01-29 14:02`` or
    ``29-Jan-2026 14:02`` and sizes like ``60``, ``4.5K``, ``19M``.
    """
    for row in _ANCHOR.split(_HIDDEN.sub("", page))[1:]:
        if href := _HREF.match(row):
            yield Link(href[2], *_date_and_size(row[href.end() : href.end() + _ROW]))


def _date_and_size(row: str) -> tuple[datetime | None, int, str]:
    found = _WORDS.search(row)
    if not found:
        return None, 0, ""
    words, year, month, day, day_, month_, year_, hour, minute, size, unit = found.groups()
    try:
        number = int(month) if month else _MONTHS.index(month_) + 1
        changed = datetime(int(year or year_), number, int(day or day_), int(hour), int(minute))
    except ValueError:  # no such month, day or hour
        changed = None
    if not size:
        return changed, 0, words
    return changed, int(float(size) * _UNITS[unit]), f"{words} {size}{unit}"


def select(named: Named, files: Sequence[tuple[int, int, Remote]]) -> list[Remote]:
    """The selected ones of files (first and last number in them, and where they are), in the same order.

    Raises:
        EmptySelectionError: none is selected; says what there is.
        ListingError: ``since=`` is asked for, but the listing has no date for a file.
    """
    selection = named.selection
    chosen = [remote for first, last, remote in files if selection.overlaps(first, last)]
    if selection.since:
        chosen = [remote for remote in chosen if _changed(named, remote).date() >= selection.since]
    if selection.newest:
        chosen = chosen[-selection.newest :]
    if not chosen:
        raise EmptySelectionError(
            f"--input {named.text} selects no file. {_extent([remote for _, _, remote in files])}"
        )
    return chosen


def _changed(named: Named, remote: Remote) -> datetime:
    if remote.changed is None:
        raise ListingError(
            f"--input {named.text} needs dates, but the listing has no date for {remote.url}. Select by "
            "numbers, or take all; if the page does show dates, mend corpus/download/listing.py."
        )
    return remote.changed


def _extent(files: Sequence[Remote]) -> str:
    """What there is to select from, in a sentence."""
    if not files:
        return "Nothing is listed."
    dates = sorted(remote.changed for remote in files if remote.changed)
    put_there = f", put there from {dates[0]:%Y-%m-%d} to {dates[-1]:%Y-%m-%d}" if dates else ""
    return f"There are {len(files):,} files, {files[0].name} to {files[-1].name}{put_there}."


def no_listing(url: str, page: str, wanted: str, module: str) -> ListingError:
    """The error for a page on which nothing is found: where, what, and which file of ours to mend."""
    return ListingError(
        f"{url} lists no {wanted}. It may be an error page, or the format of the listing has changed: "
        f"then mend corpus/download/{module}. The page begins: {page[:200]!r}"
    )
