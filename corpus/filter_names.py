"""Names of journals and headings that records have, and those of a filter that none of them has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bioshards.corpus.errors import MAX_SHOWN, find_nearest


class FilterNames:
    """Collects the names in the records of a source, and finds names of filters that match none.

    Args:
        wanted: names of each filter by option, in lower case; ``drop-mesh`` are compared with ``mesh``.

    Attributes:
        kinds: what is compared: ``journals``, ``mesh``.
    """

    def __init__(self, wanted: Mapping[str, Sequence[str]]) -> None:
        self._wanted = {option: names for option, names in wanted.items() if names}
        self._seen: dict[str, dict[str, str]] = {_find_kind(option): {} for option in self._wanted}
        self.kinds = frozenset(self._seen)

    def add(self, kind: str, names: Iterable[str | None]) -> None:
        """Add the names of a record."""
        self._seen[kind].update((name.casefold(), name) for name in names if name)

    def find_unmatched(self) -> dict[str, str]:
        """Return the names of filters that no record has, and of the first ones the nearest that one has."""
        unmatched: dict[str, str] = {}
        for option, names in self._wanted.items():
            seen = self._seen[_find_kind(option)]
            for name in (name for name in names if name not in seen):
                is_first = len(unmatched) < MAX_SHOWN  # a comparison with all journals takes 0.1 s
                unmatched[f"--{option} {name}"] = find_nearest(name, seen.values()) if is_first else ""
        return unmatched


def _find_kind(option: str) -> str:
    return option.removeprefix("drop-")
