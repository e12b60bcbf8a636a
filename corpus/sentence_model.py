"""Does a sentence end at this mark?  The model behind sentences.py.

A logistic regression on the kinds of the words around the mark (sentence_words.py): a few hundred
weights in sentence_weights.tsv, fitted by tests/bench/fit_sentences.py on articles and abstracts
whose sentences people have marked.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

from .sentence_words import AFTER, BEFORE, REMEMBERED, kind_before_that, kind_beyond

SETTLED: Final = frozenset({"word", "closed", "ACRONYM", "other"})
CAPITALS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""A mark between a word of these kinds and one of these letters ends a sentence, without the model:
14 of 19,974 did not in the texts fitted on."""

_CLAUSE: Final = frozenset({"none", ":", ";", "Name:", "Name;"})
"""After these a word is the first of its sentence or clause: where the numbers of lists stand."""
_NEAR: Final = 40
"""Characters of a word after the mark that are looked at."""
_INSIDE: Final = 200
"""Characters before the mark in which an open bracket is looked for."""

Kinds = tuple[str, str, str, str, str, str]
"""What the model sees of a mark: the kinds of the word before the one before it, of the one before,
of the mark, of the word after, of the next one, and where in the sentence it is."""


def kinds(text: str, start: int, stop: int, after: int) -> Kinds:
    """The kinds around the mark at ``stop``, in a sentence from ``start``, before the word at ``after``."""
    word = _last_word(text, start, stop)
    first = stop - len(word)
    following = text[after : after + 2 * _NEAR].split(" ", 2)
    previous = kind_before_that(_last_word(text, start, first - 1) if first > start else "")
    opens = previous in _CLAUSE and not _inside(text, start, first)
    where = "first" if opens else "inside" if _inside(text, start, stop) else ""
    return (
        previous,
        BEFORE[word] if text[stop] == "." else "asked",
        _mark(text, stop, after),
        AFTER[following[0][:_NEAR]],
        kind_beyond(following[1] if len(following) > 1 else ""),
        where,
    )


def _last_word(text: str, start: int, end: int) -> str:
    return text[text.rfind(" ", start, end) + 1 or start : end]


def _mark(text: str, stop: int, after: int) -> str:
    mark = "." if text[stop] == "." else "?"
    if after == stop + 2:
        return mark
    return mark + ("1" if text[after - 2].isdigit() else ")")


def _inside(text: str, start: int, stop: int) -> bool:
    """Is a bracket open at ``stop``?  The last one before it, if it is near, is looked at."""
    start = max(start, stop - _INSIDE)
    return text.rfind("(", start, stop) > text.rfind(")", start, stop) or text.rfind(
        "[", start, stop
    ) > text.rfind("]", start, stop)


def features(kinds: Kinds) -> list[str]:
    """What is weighed of them: each word's kind, and the pairs that belong together."""
    previous, before, mark, after, beyond, where = kinds
    return [
        before,
        f"_ {after}",
        f"{before} _ {after}",
        f"{previous} {before} _",
        f"_ {after} {beyond}",
        f"{mark} {after}",
        f"{before} {where}",
        f"{where} {after}",
    ]


class _Ends(dict[Kinds, bool]):
    """Is a mark with these kinds around it the end of a sentence?  Worked out once for each."""

    def __init__(self) -> None:
        text = (resources.files(__package__) / "sentence_weights.tsv").read_text(encoding="utf-8")
        rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
        self._weights = {feature: float(weight) for weight, feature in rows}

    def __missing__(self, kinds: Kinds) -> bool:
        if len(self) >= REMEMBERED:
            self.clear()
        total = self._weights["always"] + sum([self._weights.get(name, 0.0) for name in features(kinds)])
        self[kinds] = total > 0
        return total > 0


ENDS: Final = _Ends()
