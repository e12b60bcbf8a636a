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
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final, Literal, Protocol

from bioshards.corpus.errors import InvalidValueError, find_nearest, suggest_nearest


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


if TYPE_CHECKING:
    from bioshards.corpus.download.http_client import Connection
    from bioshards.corpus.download.listing import SelectedFiles


class FileListing(Protocol):
    """A module of this folder for a server with a listing of files.

    Attributes:
        MIRROR_FOLDERS: folders of its files in the mirror.
        MAX_CONNECTIONS: connections of all workers together.
        REQUESTS_PER_SECOND: requests of all workers together.
    """

    MIRROR_FOLDERS: tuple[str, ...]
    MAX_CONNECTIONS: int
    REQUESTS_PER_SECOND: float

    def list_files(
        self,
        connection: Connection,
        base_url: str,
        spec: SourceSpec,
        mirrored_paths: Collection[str],
        allow_removals: bool,
    ) -> SelectedFiles:
        """Read the listing and select files.

        Args:
            connection: connection to the server.
            base_url: URL of the server.
            spec: what to select.
            mirrored_paths: paths of the source's files in the mirror.
            allow_removals: let files of another year replace those of the mirror in any case.
        """


@dataclass(frozen=True, slots=True)
class Source:
    """Entry of a source.

    Attributes:
        content: ``citations``, which ``pubmed_to_shards`` reads, or ``articles``, which ``pmc_to_shards``
            reads.
        url: base URL of the server; the option ``--NAME-url`` replaces it.
        examples: values of ``--input``, for help and messages.
        listing_module: module of this folder that lists the files; None for PMC, which has objects in a
            bucket instead.
        subsets: names that may follow the colon.
    """

    content: Literal["citations", "articles"]
    url: str
    examples: tuple[str, ...]
    listing_module: str | None
    subsets: tuple[str, ...] = ()

    def load_listing(self) -> FileListing:
        """Import and return the module that lists the files, late, because it waits for HTTP's libraries."""
        assert self.listing_module
        listing: FileListing = importlib.import_module(f".{self.listing_module}", __package__)
        return listing

    @property
    def usage(self) -> str:
        """Return the examples for a help text, quoted for a shell."""
        return ", ".join(map(shlex.quote, self.examples))


SOURCES: Final[Mapping[str, Source]] = {
    "pubmed": Source(
        content="citations",
        url="https://ftp.ncbi.nlm.nih.gov/pubmed/",
        examples=("pubmed:", "pubmed:baseline[1-10]", "pubmed:updates[-3:]", "pubmed:since=2026-08-01"),
        listing_module="pubmed",
        subsets=("baseline", "updates"),
    ),
    "pmc": Source(
        content="articles",
        url="https://pmc-oa-opendata.s3.amazonaws.com/",
        examples=("pmc:", "pmc:[11000000-11010000]"),
        listing_module=None,
    ),
    "europepmc": Source(
        content="articles",
        url="https://ftp.ebi.ac.uk/pub/databases/pmc/oa/",
        examples=("europepmc:", "europepmc:[1-20000]", "europepmc:[-3:]", "europepmc:since=2026-08-01"),
        listing_module="europepmc",
    ),
}
"""Sources by name."""


def list_source_names(content: Literal["citations", "articles"]) -> list[str]:
    """Return the names of the sources with this content."""
    return [name for name, source in SOURCES.items() if source.content == content]


_BARE_SINCE = re.compile(r"(?:([^\[\],:=]+)[,:])?(since=.*)")
_IN_BRACKETS = re.compile(r"([^\[\],:=]*)(?:\[([^\[\]]*)\])?")
_NEWEST = re.compile(r"-([0-9]{1,9}):")
_SINCE = re.compile(r"since=(.*)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_RANGE = re.compile(r"([0-9]{1,9})(?:(-)([0-9]{1,9})?)?")


class SourceSpecError(InvalidValueError):
    """An ``--input`` that begins with the name of a source, or a misspelt one, is invalid."""


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
    if source not in SOURCES:
        _reject_misspelt(text, source, rest)
        return None
    match = _BARE_SINCE.fullmatch(rest) or _IN_BRACKETS.fullmatch(rest)
    if not match:
        raise _make_error(text, source, f"{rest!r} after {source}: cannot be read")
    subset, selector = match[1] or "", match[2]
    if subset and subset not in SOURCES[source].subsets:
        raise _make_error(text, source, _describe_unknown_subset(source, subset))
    return SourceSpec(
        source,
        subset,
        _parse_selection(text, source, selector) if selector is not None else FileSelection(),
        text,
    )


def _parse_selection(text: str, source: str, selector: str) -> FileSelection:
    if not selector.strip():
        raise _make_error(text, source, "the brackets are empty")
    if since := _SINCE.fullmatch(selector.strip()):
        if SOURCES[source].listing_module is None:
            raise _make_error(
                text, source, f"{source}: has no need of since=, as what the mirror has is not read again"
            )
        return FileSelection(since=_parse_date(text, source, since[1]))
    if newest := _NEWEST.fullmatch(selector.strip()):
        if SOURCES[source].listing_module is None:
            raise _make_error(
                text, source, f"{source}: has articles, no files, so that there are no newest ones to count"
            )
        if not int(newest[1]):
            raise _make_error(text, source, f"[-{newest[1]}:] selects nothing")
        return FileSelection(newest=int(newest[1]))
    return FileSelection(tuple(_parse_range(text, source, item.strip()) for item in selector.split(",")))


def _parse_date(text: str, source: str, value: str) -> date:
    try:
        if _DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass  # a 13th month or a 31st of June
    raise _make_error(text, source, f"{value!r} is not a date (year-month-day)")


def _parse_range(text: str, source: str, item: str) -> tuple[int, int | None]:
    match = _RANGE.fullmatch(item)
    if not match:
        raise _make_error(
            text, source, f"{item!r} is not a number or a range of numbers; a list has nothing else"
        )
    low = int(match[1])
    high = int(match[3]) if match[3] else None if match[2] else low
    if not low:
        raise _make_error(text, source, f"{item!r} begins at 0, numbers begin at 1")
    if high is not None and high < low:
        raise _make_error(text, source, f"the range {item} runs backwards")
    return low, high


def _describe_unknown_subset(source: str, subset: str) -> str:
    if not SOURCES[source].subsets:
        return f"{source}: has no parts such as {subset!r}, only a selection in brackets may follow"
    hint = suggest_nearest(subset.strip(), SOURCES[source].subsets)
    return f"{source}: has no part {subset!r}{hint or ' (numbers and the like stand in brackets)'}"


def _reject_misspelt(text: str, prefix: str, rest: str) -> None:
    """Raise an error for a misspelt name of a source, unless the rest looks like a path."""
    nearest = find_nearest(prefix, SOURCES, 0.8) if re.fullmatch(r"[\w-]{1,20}", prefix) else ""
    if nearest and not re.search(r"[/\\.*?]", rest):
        raise _make_error(text, nearest, f"no source is called {prefix} (did you mean {nearest}:{rest}?)")


def _make_error(text: str, source: str, problem: str) -> SourceSpecError:
    return SourceSpecError(
        f"--input {text}: {problem}. What would work: {', '.join(SOURCES[source].examples)}. "
        f"(If a file or a folder has this name, write ./{text})"
    )


SETS: Final = ("open-access", "manuscripts", "ocr")
"""Data sets of PMC: the Open Access Subset, authors' manuscripts, and articles from scanned pages."""

DEFAULT_SETS: Final = frozenset({"open-access", "manuscripts"})

Versions = Literal["newest", "all"]
"""Versions of an article to select."""
