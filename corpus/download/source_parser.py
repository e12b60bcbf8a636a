"""Parse ``--input pubmed:baseline[1-10]``: a source by name and a selection of its files.

    pubmed:                       baseline and updates; also pubmed:baseline, pubmed:updates
    europepmc:   pmc:
    pubmed:baseline[1-10]         files by number; [7]; [1400-] to the end; [1-10,20] a list
    europepmc:[1-20000]           packages with PMC ids in this range
    pmc:[11000000-11010000]       articles by PMC id
    pubmed:updates[-3:]           the last three in the order of the source (not for pmc:)
    pubmed:updates[since=2026-08-01]   modified on the server that day or later (not for pmc:)

The brackets of ``since=`` may be omitted: ``pubmed:since=2026-08-01``, ``pubmed:updates,since=2026-08-01``,
``pubmed:updates:since=2026-08-01``.  A selection has one criterion: numbers, newest files or a date.
"""

from __future__ import annotations

import re
from datetime import date

from bioshards.corpus.download.source_registry import SOURCES
from bioshards.corpus.download.source_spec import FileSelection, SourceSpec
from bioshards.corpus.errors import InvalidValueError, find_nearest, suggest_nearest

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
