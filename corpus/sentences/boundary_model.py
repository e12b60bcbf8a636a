"""Classifier of boundary candidates: logistic regression on the classes of the surrounding words.

The weights in boundary_weights.tsv (a few hundred) are fitted by tests/bench/fit_sentences.py on articles and
abstracts with annotated sentences.
"""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import Final

from bioshards.corpus.sentences.word_classes import (
    CLASS_AFTER_STOP,
    CLASS_BEFORE_STOP,
    CLASS_OF_SECOND_WORD_AFTER,
    CLASS_OF_SECOND_WORD_BEFORE,
    MAX_CACHED,
)

CERTAIN_CLASSES: Final = frozenset({"word", "closed", "ACRONYM", "other"})
CAPITALS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""A mark between a word of :data:`CERTAIN_CLASSES` and one of these letters is a boundary without the model;
in the training texts this is wrong for 14 of 19,950.
"""

_CLAUSE_STARTS: Final = frozenset({"none", ":", ";", "Name:", "Name;"})
"""Classes after which a word starts its sentence or clause: the position of list numbers."""
_PANELS: Final = re.compile(r"(?:\(?[A-Za-z](?:[,–-][A-Za-z])*\)?,? (?:and |& )?){1,8}")
"""Letters of panels before the last one at the start of a legend: A, B and C. Cells were grown."""
_MAX_PANELS_LENGTH: Final = 30
_PANEL_IN_BRACKETS: Final = re.compile(r"[A-Za-z](?:[,–-][A-Za-z])*\)")
"""Panel before a closing bracket, which may have no opening one: A). Cells were grown."""
_MAX_WORD_LENGTH: Final = 40
"""Characters of a word after the mark that are used."""
_BRACKET_LOOKBACK: Final = 200
"""Characters before the mark that are searched for an open bracket."""

BoundaryContext = tuple[str, str, str, str, str, str]
"""Input of the model: the classes of the second word before, the word before, the mark, the word after,
the second word after, and the position in the sentence.
"""


def extract_context(text: str, start: int, stop: int, after: int) -> BoundaryContext:
    """Return the context of a boundary candidate.

    Args:
        text: a line.
        start: offset of the sentence's start.
        stop: offset of the mark.
        after: offset of the word after the mark.
    """
    # Text that was cut into tokens has a blank before the mark.
    sentence = text[start : stop - 1 if text[stop - 1] == " " and stop - 1 > start else stop]
    has_bracket = "(" in sentence or "[" in sentence
    words = sentence.rsplit(" ", 2)
    word = words[-1]
    next_words = text[after : after + 2 * _MAX_WORD_LENGTH].split(" ", 2)
    previous_class = CLASS_OF_SECOND_WORD_BEFORE[words[-2] if len(words) > 1 else ""]
    word_start = len(sentence) - len(word)
    is_at_start = previous_class in _CLAUSE_STARTS or (
        word_start < _MAX_PANELS_LENGTH and _PANELS.fullmatch(sentence, 0, word_start)
    )
    if is_at_start and not (has_bracket and _has_open_bracket(sentence[:word_start])):
        position = "first"
    elif has_bracket and _has_open_bracket(text[start:stop]):
        position = "alone" if word[:1] in ("(", "[") else "inside"
    elif word[-1:] == ")" and _PANEL_IN_BRACKETS.fullmatch(word):
        position = "closed" if sentence.count("(") >= sentence.count(")") else "unopened"
    else:
        position = ""
    return (
        previous_class,
        CLASS_BEFORE_STOP[word] if text[stop] == "." else "asked",
        _classify_mark(text, stop, after),
        CLASS_AFTER_STOP[next_words[0][:_MAX_WORD_LENGTH]],
        CLASS_OF_SECOND_WORD_AFTER[next_words[1] if len(next_words) > 1 else ""],
        position,
    )


def _classify_mark(text: str, stop: int, after: int) -> str:
    mark = "." if text[stop] == "." else "?"
    if after == stop + 2:
        return mark
    return mark + ("1" if text[after - 2].isdigit() else ")")


def _has_open_bracket(text: str) -> bool:
    """Return True if a bracket is open at the end of a text; only the last ones nearby are checked."""
    nearby = text[-_BRACKET_LOOKBACK:]
    return ("(" in nearby and nearby.rfind("(") > nearby.rfind(")")) or (
        "[" in nearby and nearby.rfind("[") > nearby.rfind("]")
    )


_SCORED_AS: Final = {
    "company": "firm",
    "dash": "number",
    "Dr": "Name",
    "Drs": "Word",
    "sense": "latin",
    "supplement": "other",
}
"""Classes that only :func:`_decide_by_rule` tells apart, as the annotated texts have few of them."""


def _decide_by_rule(context: BoundaryContext) -> bool | None:
    """Return True for a boundary, False for none, None if the weights decide."""
    previous_class, class_before, mark, class_after, class_beyond, position = context
    if class_after == "in citation" or (class_after == "dash" and mark[0] == "?"):
        return False
    if class_before == "sense" and class_after in ("Opener", "Opener,"):
        return True
    if class_before in ("capital", "initials") and class_after == "Opener," and not position:
        return True
    if class_before == "company" and not position:
        is_sentence = class_beyond == "small" and class_after in ("Opener", "Word", "Name")
        return True if is_sentence or class_after in ("Dr", "Drs") else None
    is_plain = class_after in ("Opener", "Opener,", "Word", "Name", "ACRONYM", "gene")
    return True if previous_class == "supplement" and class_before == "reference" and is_plain else None


def extract_features(context: BoundaryContext) -> list[str]:
    """Return the features of a context: the class of each word, and pairs of classes."""
    previous_class, class_before, mark, class_after, class_beyond, position = [
        _SCORED_AS.get(word_class, word_class) for word_class in context
    ]
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


def _read_weights() -> dict[str, float]:
    text = (resources.files(__package__) / "boundary_weights.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    return {feature: float(weight) for weight, feature in rows}


_WEIGHTS: Final = _read_weights()


class _BoundaryModel(dict[BoundaryContext, bool]):
    """Cache from context to decision: True for a boundary."""

    def __missing__(self, context: BoundaryContext) -> bool:
        if len(self) >= MAX_CACHED:
            self.clear()
        decision = _decide_by_rule(context)
        if decision is None:
            scores = [_WEIGHTS.get(name, 0.0) for name in extract_features(context)]
            decision = _WEIGHTS["always"] + sum(scores) > 0
        self[context] = decision
        return decision


IS_BOUNDARY: Final = _BoundaryModel()


# Candidates that two words decide

_POSITIONS: Final = ("first", "alone", "inside", "closed", "unopened", "")
_ROUNDING: Final = 1e-6
"""More than the error of a sum of weights."""


class _NeighbourModel(dict[tuple[str, str], bool | None]):
    """Cache from the classes of the words before and after a full stop to the decision of the model.

    It is None if the rest of the context matters; three in four candidates need no more than these words.
    """

    def __missing__(self, classes: tuple[str, str]) -> bool | None:
        class_before, class_after = classes
        decisions = {
            _decide_by_rule((previous, class_before, ".", class_after, beyond, position))
            for previous in ("supplement", "")  # what a rule names, and what none names
            for beyond in ("small", "")
            for position in ("first", "")
        }
        if None in decisions:
            decisions |= _bound_decisions(*(_SCORED_AS.get(name, name) for name in classes))
            decisions.remove(None)
        self[classes] = decisions.pop() if len(decisions) == 1 else None
        return self[classes]


def _bound_decisions(before: str, after: str) -> set[bool | None]:
    """Return the decisions that the weights allow between words of these classes."""

    def weigh(*names: str) -> float:
        return sum(_WEIGHTS.get(name, 0.0) for name in names)

    score = weigh("always", before, f"_ {after}", f"{before} _ {after}", f". {after}")
    added = (
        _list_weights(end=f" {before} _"),
        _list_weights(start=f"_ {after} "),
        [weigh(f"{before} {position}", f"{position} {after}") for position in _POSITIONS],
    )
    lowest, highest = (score + sum(map(extreme, added)) for extreme in (min, max))
    return {lowest > _ROUNDING, highest > -_ROUNDING}


@functools.cache
def _list_weights(start: str = "", end: str = "") -> list[float]:
    """Return the weights of all features that start and end so, and 0 for a context that has none of them."""
    return [
        0.0,
        *(weight for name, weight in _WEIGHTS.items() if name.startswith(start) and name.endswith(end)),
    ]


DECISION_BY_NEIGHBOURS: Final = _NeighbourModel()


def is_boundary(text: str, start: int, stop: int, after: int, class_before: str) -> bool:
    """Return True if a boundary candidate is a boundary.

    Args:
        text: a line.
        start: offset of the sentence's start.
        stop: offset of the mark.
        after: offset of the word after the mark.
        class_before: class of the word before the mark.
    """
    if after == stop + 2 and text[stop] == "." and text[stop - 1] != " ":
        word_end = text.find(" ", after, after + _MAX_WORD_LENGTH)
        word = text[after : word_end if word_end > 0 else after + _MAX_WORD_LENGTH]
        decision = DECISION_BY_NEIGHBOURS[class_before, CLASS_AFTER_STOP[word]]
        if decision is not None:
            return decision
    return IS_BOUNDARY[extract_context(text, start, stop, after)]
