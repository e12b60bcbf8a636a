"""The sources that can be downloaded by name, and the parser of ``--input pubmed:baseline[1-10]``.

    pubmed:                       baseline and updates; also pubmed:baseline, pubmed:updates
    europepmc:   pmc:
    pubmed:baseline[1-10]         files by number; [7]; [1400-] to the end; [1-10,20] a list
    europepmc:[1-20000]           packages with PMC ids in this range
    pmc:[11000000-11010000]       articles by PMC id
    pubmed:updates[-3:]           the last three in the order of the source (not for pmc:)
    pubmed:updates[since=2026-08-01]   modified on the server that day or later (not for pmc:)

The brackets of ``since=`` may be omitted: ``pubmed:since=2026-08-01``, ``pubmed:updates,since=2026-08-01``,
``pubmed:updates:since=2026-08-01``.  A selection has one criterion: numbers, newest files or a date.

To add a source, write its module next to ``europepmc.py`` and add an entry to :data:`SOURCES`.  Its name, the
help, the option ``--NAME-url``, ``beam run fetch`` and the pipeline that reads its content follow from it.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final, Literal

from bioshards.corpus.errors import InvalidValueError, find_nearest, suggest_nearest

if TYPE_CHECKING:
    from bioshards.corpus.download.http_client import Connection
    from bioshards.corpus.download.listing import SelectedFiles


@dataclass(frozen=True, slots=True)
class FileSelection:
    """Selected files of a source (articles for ``pmc:``): by one criterion, or all.

    Attributes:
        ranges: first and last number, both included; None for the end.
        newest: number of files from the end of the order of the source.
        since: modified on the server that day or later, by the clock of the server.
    """

    ranges: tuple[tuple[int, int | None], ...] = ()
    newest: int | None = None
    since: date | None = None

    def overlaps(self, first: int, last: int) -> bool:
        """Return True if a number from first to last is in the ranges, or if there are no ranges."""
        return not self.ranges or any(
            low <= last and (high is None or first <= high) for low, high in self.ranges
        )


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source by name.

    Attributes:
        source: key of :data:`SOURCES`.
        subset: one of the source's subsets; '' for the whole source.
        selection: selected files.
        text: value of ``--input``, for messages.
    """

    source: str
    subset: str
    selection: FileSelection
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """Entry of a source.

    Attributes:
        content: ``citations``, which ``pubmed_to_shards`` reads, or ``articles``, which ``pmc_to_shards``
            reads.
        url: base URL of the server; the option ``--NAME-url`` replaces it.
        examples: values of ``--input``, for help and messages.
        requests_per_second: of all workers together.
        max_connections: of all workers together; for PMC the default of an option.
        folders: folders of its files in the mirror; none for PMC, which has objects in a bucket instead.
        subsets: names that may follow the colon.
    """

    content: Literal["citations", "articles"]
    url: str
    examples: tuple[str, ...]
    requests_per_second: float
    max_connections: int
    folders: tuple[str, ...] = ()
    subsets: tuple[str, ...] = ()

    @property
    def usage(self) -> str:
        """Return the examples for a help text, quoted for a shell."""
        return ", ".join(map(shlex.quote, self.examples))


SOURCES: Final[Mapping[str, Source]] = {
    # According to measurements of users NCBI's server serves 4 connections well, and answers 503 to 48
    # connections or to more than about 20 requests a second.
    "pubmed": Source(
        content="citations",
        url="https://ftp.ncbi.nlm.nih.gov/pubmed/",
        examples=("pubmed:", "pubmed:baseline[1-10]", "pubmed:updates[-3:]", "pubmed:since=2026-08-01"),
        requests_per_second=8.0,
        max_connections=4,
        folders=("pubmed/baseline", "pubmed/updatefiles"),
        subsets=("baseline", "updates"),
    ),
    # S3 serves several thousand requests a second.
    "pmc": Source(
        content="articles",
        url="https://pmc-oa-opendata.s3.amazonaws.com/",
        examples=("pmc:", "pmc:[11000000-11010000]"),
        requests_per_second=1000.0,
        max_connections=64,
    ),
    # No limit is published; this is NCBI's.
    "europepmc": Source(
        content="articles",
        url="https://ftp.ebi.ac.uk/pub/databases/pmc/oa/",
        examples=("europepmc:", "europepmc:[1-20000]", "europepmc:[-3:]", "europepmc:since=2026-08-01"),
        requests_per_second=8.0,
        max_connections=4,
        folders=("europepmc",),
    ),
}
"""Sources by name; of one with folders, ``list_files`` in the module of its name reads the listing."""

SETS: Final = ("open-access", "manuscripts", "ocr")
"""Data sets of PMC: the Open Access Subset, authors' manuscripts, and articles from scanned pages."""

DEFAULT_SETS: Final = frozenset({"open-access", "manuscripts"})

Versions = Literal["newest", "all"]
"""Versions of an article to select."""

ListFiles = Callable[["Connection", str, SourceSpec, Collection[str], bool], "SelectedFiles"]
"""Reads the listing of a server and selects files.

Its arguments are a connection, the base URL, what to select, the paths of the source's files in the mirror,
and whether files of another year replace those of the mirror in any case.
"""


def load_list_files(source_name: str) -> ListFiles:
    """Import and return ``list_files`` of a source, late, because it waits for HTTP's libraries."""
    list_files: ListFiles = importlib.import_module(f".{source_name}", __package__).list_files
    return list_files


def list_source_names(content: Literal["citations", "articles"]) -> list[str]:
    """Return the names of the sources with this content."""
    return [name for name, source in SOURCES.items() if source.content == content]


# Parsing


_BARE_SINCE = re.compile(r"(?:([^\[\],:=]+)[,:])?(since=.*)")
_IN_BRACKETS = re.compile(r"([^\[\],:=]*)(?:\[([^\[\]]*)\])?")
_NEWEST = re.compile(r"-([0-9]{1,9}):")
_SINCE = re.compile(r"since=(.*)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RANGE = re.compile(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?")


class SourceSpecError(InvalidValueError):
    """An ``--input`` that begins with the name of a source, or a misspelt one, is invalid."""


class _Problem(Exception):
    """What is wrong with a specification."""


def parse_source_spec(text: str) -> SourceSpec | None:
    """Parse an ``--input``; return None if it is a path.

    Only the keys of ``SOURCES`` are names of sources.  A path may contain a colon; one that
    looks like a misspelt name is an error, unless it begins with ``./``.

    Raises:
        SourceSpecError: the name or the selection is invalid; the message gives examples.
    """
    source, colon, rest = text.partition(":")
    if not colon:
        return None
    nearest = source if source in SOURCES else _find_misspelt(source, rest)
    if not nearest:
        return None
    try:
        if nearest != source:
            raise _Problem(f"no source is called {source} (did you mean {nearest}:{rest}?)")
        subset, selection = _parse_rest(source, rest)
    except _Problem as problem:
        raise SourceSpecError(
            f"--input {text}: {problem}. What would work: {', '.join(SOURCES[nearest].examples)}. "
            f"(If a file or a folder has this name, write ./{text})"
        ) from None
    return SourceSpec(source, subset, selection, text)


def _find_misspelt(prefix: str, rest: str) -> str:
    """Return the source whose misspelt name this is; '' for a path."""
    if not re.fullmatch(r"[\w-]{1,20}", prefix) or re.search(r"[/\\.*?]", rest):
        return ""
    return find_nearest(prefix, SOURCES, 0.8)


def _parse_rest(source: str, rest: str) -> tuple[str, FileSelection]:
    """Parse what follows the colon: the subset and the selection."""
    match = _BARE_SINCE.fullmatch(rest) or _IN_BRACKETS.fullmatch(rest)
    if not match:
        raise _Problem(f"{rest!r} after {source}: cannot be read")
    subset, selector = match[1] or "", match[2]
    subsets = SOURCES[source].subsets
    if subset and not subsets:
        raise _Problem(f"{source}: has no parts such as {subset!r}, only a selection in brackets may follow")
    if subset and subset not in subsets:
        hint = suggest_nearest(subset.strip(), subsets) or " (numbers and the like stand in brackets)"
        raise _Problem(f"{source}: has no part {subset!r}{hint}")
    return subset, FileSelection() if selector is None else _parse_selection(source, selector.strip())


def _parse_selection(source: str, selector: str) -> FileSelection:
    if not selector:
        raise _Problem("the brackets are empty")
    if since := _SINCE.fullmatch(selector):
        if not SOURCES[source].folders:
            raise _Problem(f"{source}: has no need of since=, as what the mirror has is not read again")
        return FileSelection(since=_parse_date(since[1]))
    if newest := _NEWEST.fullmatch(selector):
        if not SOURCES[source].folders:
            raise _Problem(f"{source}: has articles, no files, so that there are no newest ones to count")
        if not int(newest[1]):
            raise _Problem(f"[-{newest[1]}:] selects nothing")
        return FileSelection(newest=int(newest[1]))
    return FileSelection(tuple(_parse_range(item.strip()) for item in selector.split(",")))


def _parse_date(value: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass  # a 13th month or a 31st of June
    raise _Problem(f"{value!r} is not a date (year-month-day)")


def _parse_range(item: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(item)
    if not match:
        raise _Problem(f"{item!r} is not a number or a range of numbers; a list has nothing else")
    low = int(match[1])
    high = int(match[3]) if match[3] else None if match[2] else low
    if not low:
        raise _Problem(f"{item!r} begins at 0, numbers begin at 1")
    if high is not None and high < low:
        raise _Problem(f"the range {item} runs backwards")
    return low, high
