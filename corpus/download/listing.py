"""Parse directory listings of HTTP servers: rows of a link, a date and a size.

The module of a source (``pubmed.py``, ``europepmc.py``) selects the rows that are its files, by a pattern
of the file name.  Pages are untrusted: links are only compared with patterns, and parsing takes linear
time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple, TypeVar

from bioshards.corpus.download.http_client import Connection
from bioshards.corpus.download.sources import SourceSpec
from bioshards.corpus.errors import RunError, UserError
from bioshards.corpus.storage.retry import READ_RETRY_POLICY, retry


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file that can be fetched.

    Attributes:
        url: built from the URL of the source and a file name that matches a pattern.
        path: path in the mirror: ``pubmed/baseline/pubmed26n0001.xml.gz``.
        root_name: local name of the root element of its XML document.
        has_md5_file: True if its MD5 is published at ``url + ".md5"``.
        listing_text: date and size as the listing writes them, or '' if it has no date that can be read.
            Another text means another file.
        modified_at: time of modification in the listing, to the minute, in the time zone of the server.
        size: in bytes, rounded as in the listing; 0 if it is not listed.
        is_md5_listed: True if the listing has the file of its MD5, so that it must be there.
        first, last: numbers in its name: of PubMed's files, or the first and last PMC id of a package.
        year: last two digits of the year in its name; 0 without one.
    """

    url: str
    path: str
    root_name: str
    has_md5_file: bool
    listing_text: str = ""
    modified_at: datetime | None = None
    size: int = 0
    is_md5_listed: bool = False
    first: int = 0
    last: int = 0
    year: int = 0

    @property
    def name(self) -> str:
        """File name."""
        return self.path.rpartition("/")[2]


T = TypeVar("T")

MAX_PAGE_BYTES: Final = 16 << 20
"""Size limit of a listing; those of 2026 are below half a megabyte."""
_HIDDEN_MARKUP = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1|\Z)", re.DOTALL | re.IGNORECASE)
_ANCHOR = re.compile(r"<a\s", re.IGNORECASE)
_HREF = re.compile(r"""[^<>]{0,99}?(?<!\S)href=(["'])([^"'<>\s]{1,99})\1""", re.IGNORECASE)
_MAX_ROW_CHARACTERS: Final = 400
"""Number of characters after a link in which its date and size are searched."""
_DATE_TIME = r"(?:(\d{4})-(\d\d)-(\d\d)|(\d\d)-([A-Z][a-z]{2})-(\d{4}))[ \t]{1,9}(\d\d):(\d\d)(?::\d\d)?"
_SIZE = r"(?:\s|&nbsp;|<[^<>]{0,99}>)+(\d{1,15}(?:\.\d{1,3})?)([KMGT]?)(?=[\s<&]|\Z)"
_DATE_AND_SIZE = re.compile(rf"(?<!\d)({_DATE_TIME})(?!\d)(?:{_SIZE})?", re.ASCII)
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SIZE_UNITS: Final = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}


MAX_REMOVED_FRACTION: Final = 0.01
MAX_REMOVED: Final = 5
"""Without ``--allow-removals`` a run removes or shrinks at most so many of the mirror's files or articles, or
this fraction of them."""


class ListingError(RunError):
    """A page is not the expected listing, or lacks the requested dates."""

    hint = "Nothing was begun"


class EmptySelectionError(UserError):
    """No listed file is selected."""


class Link(NamedTuple):
    """A row of a listing.

    Attributes:
        name: target of the link, as written on the page.
        modified_at: date and time; None if not listed.
        size: in bytes, rounded as in the listing; 0 if not listed.
        listing_text: date and size as written on the page, or ''.
    """

    name: str
    modified_at: datetime | None
    size: int
    listing_text: str


@dataclass(frozen=True, slots=True)
class SelectedFiles:
    """The selected files of a listing.

    Attributes:
        files: files to fetch, in the order of the source.
        notices: messages on the listing for the user.
        unlisted: paths of files in the mirror that belong to the selection and that the listing lacks.  They
            stay in use.
    """

    files: tuple[RemoteFile, ...]
    notices: tuple[str, ...]
    unlisted: tuple[str, ...] = ()


def read_listing(connection: Connection, url: str, parse: Callable[[str], T]) -> T:
    """Read a listing, as often as :data:`READ_RETRY_POLICY` says.

    Args:
        connection: connection to the server.
        url: URL of the listing.
        parse: parses the page; raises ListingError if it is no listing.

    Raises:
        ListingError: the page is incomplete or no listing, on every read.
        DownloadError: the request failed.
    """

    def read() -> T:
        page = connection.read(url, MAX_PAGE_BYTES).body.decode("utf-8", "replace")
        if not is_complete(page):
            raise ListingError(
                f"{url} ends in the middle of its listing, after {len(page):,} characters: "
                f"{page[-100:]!r}. Repeat the command later; if listings have another end now, update "
                f"corpus/download/listing.py. The page begins: {page[:200]!r}"
            )
        return parse(page)

    return retry(read, ListingError, READ_RETRY_POLICY)


def is_complete(page: str) -> bool:
    """Return True if the page has the end of its listing: a cut page may end with a row like any other.

    The end is ``</html>``, or that of the table or preformatted text around the rows.  A page that has begun
    none of them cannot be judged.
    """
    lowered = page.lower()

    def is_closed(element: str) -> bool:
        return lowered.rfind(f"</{element}") > lowered.rfind(f"<{element}")

    containers = [element for element in ("pre", "table") if f"<{element}" in lowered]
    if is_closed("html"):
        return True
    return all(map(is_closed, containers)) if containers else "<html" not in lowered


def parse_links(page: str) -> Iterator[Link]:
    """Yield the rows of a listing.

    A row ends at the next link.  Both styles of Apache's mod_autoindex are parsed, text and table
    (https://httpd.apache.org/docs/2.4/mod/mod_autoindex.html), with ``2026-01-29 14:02`` or
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


def apply_spec(spec: SourceSpec, files: Sequence[RemoteFile]) -> list[RemoteFile]:
    """Select listed files, keeping their order.

    Raises:
        EmptySelectionError: no file is selected; the message names the listed range.
        ListingError: ``since=`` is given, and the listing has no date for a file.
    """
    selection = spec.selection
    selected = [file for file in files if selection.overlaps(file.first, file.last)]
    if selection.since:
        undated = next((file for file in selected if file.modified_at is None), None)
        if undated:
            raise ListingError(
                f"--input {spec.text} needs dates, but the listing has no date for {undated.url}. Select by "
                "numbers, or take all; if the page shows dates, update corpus/download/listing.py."
            )
        since = selection.since
        selected = [file for file in selected if file.modified_at and file.modified_at.date() >= since]
    if selection.newest:
        selected = selected[-selection.newest :]
    if not selected:
        raise EmptySelectionError(f"--input {spec.text} selects no file. {_describe_extent(files)}")
    return selected


def _describe_extent(files: Sequence[RemoteFile]) -> str:
    """Describe the range of the listed files in a sentence."""
    if not files:
        return "No file is listed."
    dates = sorted(remote_file.modified_at for remote_file in files if remote_file.modified_at)
    date_range = f", modified from {dates[0]:%Y-%m-%d} to {dates[-1]:%Y-%m-%d}" if dates else ""
    return f"There are {len(files):,} files, {files[0].name} to {files[-1].name}{date_range}."


def make_listing_error(url: str, page: str, expected: str, module: str) -> ListingError:
    """Return the error for a page without files; it names the URL and the module to update."""
    return ListingError(
        f"{url} lists no {expected}. It may be an error page, or the format of the listing has changed: "
        f"then update corpus/download/{module}. The page begins: {page[:200]!r}"
    )


def is_large_removal(removed: int, total: int) -> bool:
    """Return True if so many of the mirror's files or articles are removed only with ``--allow-removals``."""
    return removed > max(MAX_REMOVED, MAX_REMOVED_FRACTION * total)
