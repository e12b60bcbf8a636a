"""A source by name and a selection of its files, as in ``--input pubmed:baseline[1-10]``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date


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
        source: key of ``source_registry.SOURCES``.
        subset: one of the source's subsets; '' for the whole source.
        selection: selected files.
        text: value of ``--input``, for messages.
    """

    source: str
    subset: str
    selection: FileSelection
    text: str
