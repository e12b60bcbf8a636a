"""Does a sentence end at this mark?  The model behind __init__.py.

A logistic regression on the kinds of the words around the mark (word_classes.py): a few hundred
weights in boundary_weights.tsv, fitted by tests/bench/fit_sentences.py on articles and abstracts
whose sentences people have marked.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

from .word_classes import (
    CLASS_AFTER_STOP,
    CLASS_BEFORE_STOP,
    MAX_CACHED,
    class_of_second_word_after,
    class_of_second_word_before,
)

CERTAIN_CLASSES: Final = frozenset({"word", "closed", "ACRONYM", "other"})
CAPITALS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""A mark between a word of these kinds and one of these letters ends a sentence, without the model:
14 of 19,974 did not in the texts fitted on."""

_CLAUSE_STARTS: Final = frozenset({"none", ":", ";", "Name:", "Name;"})
"""After these a word is the first of its sentence or clause: where the numbers of lists stand."""
_MAX_WORD_LENGTH: Final = 40
"""Characters of a word after the mark that are looked at."""
_BRACKET_LOOKBACK: Final = 200
"""Characters before the mark in which an open bracket is looked for."""

BoundaryContext = tuple[str, str, str, str, str, str]
"""What the model sees of a mark: the kinds of the word before the one before it, of the one before,
of the mark, of the word after, of the next one, and where in the sentence it is."""


def extract_context(text: str, start: int, stop: int, after: int) -> BoundaryContext:
    """The kinds around the mark at ``stop``, in a sentence from ``start``, before the word at ``after``."""
    word = _find_last_word(text, start, stop)
    word_start = stop - len(word)
    next_words = text[after : after + 2 * _MAX_WORD_LENGTH].split(" ", 2)
    previous_class = class_of_second_word_before(
        _find_last_word(text, start, word_start - 1) if word_start > start else ""
    )
    is_first = previous_class in _CLAUSE_STARTS and not _is_in_brackets(text, start, word_start)
    position = "first" if is_first else "inside" if _is_in_brackets(text, start, stop) else ""
    return (
        previous_class,
        CLASS_BEFORE_STOP[word] if text[stop] == "." else "asked",
        _classify_mark(text, stop, after),
        CLASS_AFTER_STOP[next_words[0][:_MAX_WORD_LENGTH]],
        class_of_second_word_after(next_words[1] if len(next_words) > 1 else ""),
        position,
    )


def _find_last_word(text: str, start: int, end: int) -> str:
    return text[text.rfind(" ", start, end) + 1 or start : end]


def _classify_mark(text: str, stop: int, after: int) -> str:
    mark = "." if text[stop] == "." else "?"
    if after == stop + 2:
        return mark
    return mark + ("1" if text[after - 2].isdigit() else ")")


def _is_in_brackets(text: str, start: int, stop: int) -> bool:
    """Is a bracket open at ``stop``?  The last one before it, if it is near, is looked at."""
    start = max(start, stop - _BRACKET_LOOKBACK)
    return text.rfind("(", start, stop) > text.rfind(")", start, stop) or text.rfind(
        "[", start, stop
    ) > text.rfind("]", start, stop)


def extract_features(context: BoundaryContext) -> list[str]:
    """What is weighed of them: each word's kind, and the pairs that belong together."""
    previous_class, class_before, mark, class_after, class_beyond, position = context
    return [
        class_before,
        f"_ {class_after}",
        f"{class_before} _ {class_after}",
        f"{previous_class} {class_before} _",
        f"_ {class_after} {class_beyond}",
        f"{mark} {class_after}",
        f"{class_before} {position}",
        f"{position} {class_after}",
    ]


class _BoundaryModel(dict[BoundaryContext, bool]):
    """Is a mark with these kinds around it the end of a sentence?  Worked out once for each."""

    def __init__(self) -> None:
        text = (resources.files(__package__) / "boundary_weights.tsv").read_text(encoding="utf-8")
        rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
        self._weights = {feature: float(weight) for weight, feature in rows}

    def __missing__(self, context: BoundaryContext) -> bool:
        if len(self) >= MAX_CACHED:
            self.clear()
        score = self._weights["always"] + sum(
            [self._weights.get(name, 0.0) for name in extract_features(context)]
        )
        self[context] = score > 0
        return score > 0


IS_BOUNDARY: Final = _BoundaryModel()
