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

from .remote_file import RemoteFile
from .source_spec import SourceSpec

MAX_PAGE_BYTES: Final = 16 << 20
"""Longest listing that is read; that of 2026 has less than half a megabyte."""
_HIDDEN_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1|\Z)", re.DOTALL | re.IGNORECASE)
_ANCHOR = re.compile(r"<a\s", re.IGNORECASE)
_HREF = re.compile(r"""[^<>]{0,99}?(?<!\S)href=(["'])([^"'<>\s]{1,99})\1""", re.IGNORECASE)
_MAX_ROW_CHARACTERS: Final = 400
"""So many characters after a link may hold its date and size."""
_DATE_TIME = r"(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)-([A-Z][a-z]{2})-(\d{4}))[ \t]{1,9}(\d\d):(\d\d)(?::\d\d)?"
_SIZE = r"(?:\s|&nbsp;|<[^<>]{0,99}>)+(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)(?=[\s<&]|\Z)"
_DATE_AND_SIZE = re.compile(rf"(?<!\d)({_DATE_TIME})(?!\d)(?:{_SIZE})?", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SIZE_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


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
    modified_at: datetime | None
    size: int
    listing_text: str


@dataclass(frozen=True, slots=True)
class SelectedFiles:
    """Files to fetch, in the source's own order, and what the user should be told of the listing."""

    files: tuple[RemoteFile, ...]
    notices: tuple[str, ...]


def parse_links(page: str) -> Iterator[Link]:
    """The links of a listing.

    A row reaches from one link to the next.  Understood are both styles of Apache's mod_autoindex, text and
    table (https://httpd.apache.org/docs/2.4/mod/mod_autoindex.html), with ``2026-01-29 14:02`` or
    ``29-Jan-2026 14:02`` and sizes like ``60``, ``4.5K``, ``19M``.
    """
    for row in _ANCHOR.split(_HIDDEN_MARKUP.sub("", page))[1:]:
        if href := _HREF.match(row):
            yield Link(href[2], *_parse_date_and_size(row[href.end() : href.end() + _MAX_ROW_CHARACTERS]))


def _parse_date_and_size(row: str) -> tuple[datetime | None, int, str]:
    match = _DATE_AND_SIZE.search(row)
    if not match:
        return None, 0, ""
    date_text, year, month, day, other_day, other_month, other_year, hour, minute, size, unit = match.groups()
    try:
        month_number = int(month) if month else _MONTHS.index(other_month) + 1
        modified_at = datetime(
            int(year or other_year), month_number, int(day or other_day), int(hour), int(minute)
        )
    except ValueError:  # no such month, day or hour
        modified_at = None
    if not size:
        return modified_at, 0, date_text
    return modified_at, int(float(size) * _SIZE_UNITS[unit]), f"{date_text} {size}{unit}"


def apply_spec(spec: SourceSpec, files: Sequence[tuple[int, int, RemoteFile]]) -> list[RemoteFile]:
    """The selected ones of files (first and last number in them, and where they are), in the same order.

    Raises:
        EmptySelectionError: none is selected; says what there is.
        ListingError: ``since=`` is asked for, but the listing has no date for a file.
    """
    selection = spec.selection
    selected = [remote_file for first, last, remote_file in files if selection.overlaps(first, last)]
    if selection.since:
        selected = [
            remote_file
            for remote_file in selected
            if _require_modified_at(spec, remote_file).date() >= selection.since
        ]
    if selection.newest:
        selected = selected[-selection.newest :]
    if not selected:
        raise EmptySelectionError(
            f"--input {spec.text} selects no file. "
            f"{_describe_extent([remote_file for _, _, remote_file in files])}"
        )
    return selected


def _require_modified_at(spec: SourceSpec, remote_file: RemoteFile) -> datetime:
    if remote_file.modified_at is None:
        raise ListingError(
            f"--input {spec.text} needs dates, but the listing has no date for {remote_file.url}. Select by "
            "numbers, or take all; if the page does show dates, mend corpus/download/listing.py."
        )
    return remote_file.modified_at


def _describe_extent(files: Sequence[RemoteFile]) -> str:
    """What there is to select from, in a sentence."""
    if not files:
        return "Nothing is listed."
    dates = sorted(remote_file.modified_at for remote_file in files if remote_file.modified_at)
    date_range = f", put there from {dates[0]:%Y-%m-%d} to {dates[-1]:%Y-%m-%d}" if dates else ""
    return f"There are {len(files):,} files, {files[0].name} to {files[-1].name}{date_range}."


def make_listing_error(url: str, page: str, expected: str, module: str) -> ListingError:
    """The error for a page on which nothing is found: where, what, and which file of ours to mend."""
    return ListingError(
        f"{url} lists no {expected}. It may be an error page, or the format of the listing has changed: "
        f"then mend corpus/download/{module}. The page begins: {page[:200]!r}"
    )
