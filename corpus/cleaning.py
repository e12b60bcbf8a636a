"""Stand-in for the rules of cleaning, with two of them, until the real ones are merged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

_RULES: Final = {
    "soft-hyphens": re.compile("\xad"),
    "truncation-notes": re.compile(r"\s*\(ABSTRACT TRUNCATED[^()]*\)\s*$"),
}
NAMES: Final[tuple[str, ...]] = tuple(_RULES)
"""Every rule's name, in the order applied."""


class Cleaner:
    """Applies the rules of these names."""

    def __init__(self, names: Iterable[str] = NAMES) -> None:
        self._names = list(names)
        for name in self._names:
            if name not in NAMES:
                raise ValueError(f"no cleaning rule {name}")

    def title(self, text: str, removed: dict[str, int]) -> str:
        return self.text(text, removed)

    def abstract(
        self, sections: Sequence[tuple[str | None, str]], removed: dict[str, int]
    ) -> list[tuple[str | None, str]]:
        return [(label, self.text(text, removed)) for label, text in sections]

    def text(self, text: str, removed: dict[str, int]) -> str:
        for name in self._names:
            cleaned = _RULES[name].sub("", text)
            if cleaned != text:
                removed[name] = removed.get(name, 0) + len(text) - len(cleaned)
                text = cleaned
        return text
