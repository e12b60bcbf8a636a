"""Tables of plain text: what the page and the Markdown of a report show, each in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .published import TITLES

NOTHING: Final = "\u2013"
"""In a cell for which there is no score."""
SYMBOLS: Final = {
    "\u2020": "On a sample of the data (how much of it: see Runs): not comparable with published scores.",
    "\u2021": "Files or split are not the published ones: not comparable with published scores.",
    "\u00a7": "Counted as a paper does, for comparison with it.",
}
"""Marks of scores that must not be read like others."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, the marks of its footnotes, what stands below it, whether it is about our models."""

    text: str
    marks: str = ""
    below: str = ""
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        left: which columns are of words, beside the first.
        before: paragraphs above it.
        notes: paragraphs below it, each with the mark that it explains, if any.
        folded: whether it is shown on demand only.
    """

    title: str
    head: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    left: Sequence[int] = ()
    before: Sequence[str] = ()
    notes: Sequence[tuple[str, str]] = ()
    folded: bool = False


@dataclass(slots=True)
class Notes:
    """A table's footnotes: symbols, and texts by number as they come up."""

    symbols: set[str] = field(default_factory=set)
    texts: dict[str, int] = field(default_factory=dict)

    def marks(self, symbols: str, texts: Sequence[str]) -> str:
        """The marks of a cell; its texts get the next numbers if they are new."""
        self.symbols.update(symbols)
        numbers = sorted({self.texts.setdefault(text, len(self.texts) + 1) for text in texts})
        return " ".join(filter(None, (symbols, ",".join(map(str, numbers)))))

    def all(self) -> list[tuple[str, str]]:
        """Marks with what they say."""
        symbols = [(symbol, text) for symbol, text in SYMBOLS.items() if symbol in self.symbols]
        return symbols + [(str(number), text) for text, number in self.texts.items()]


def labels(suite: Mapping[str, Any]) -> list[str]:
    """Our models of a suite."""
    return list(dict.fromkeys(label for _, label, _ in each(suite)))


def title(task: str) -> str:
    """What a task is called."""
    return TITLES.get(task, task)


def symbols(scores: Mapping[str, Any]) -> str:
    """The marks of a score that must not be read like others."""
    found = (scores["sampled"] is not None, not scores["verified"], bool(scores["legacy"]))
    return "".join(symbol for symbol, there in zip(SYMBOLS, found, strict=True) if there)


def each(suite: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The scores of each task and model of a suite."""
    for task, found in suite["tasks"].items():
        for label, scores in found["models"].items():
            yield task, label, scores


def heads(published: Mapping[str, Any], notes: Notes) -> list[Cell]:
    """The models of a paper's table."""
    return [Cell(model, notes.marks("", of)) for model, of in published["models"].items()]


def row_head(row: Mapping[str, Any], notes: Notes) -> list[Cell]:
    """Task and figure of a paper's row."""
    return [Cell(title(row["task"]), notes.marks("", row["notes"])), Cell(row["figure"])]


def printed(row: Mapping[str, Any], models: Iterable[str], notes: Notes) -> list[Cell]:
    """The scores of a paper's row."""
    cells = []
    for model in models:
        if score := row["scores"].get(model):
            sd = "" if score["sd"] is None else f" ({score['sd']:.2f})"
            cells.append(Cell(f"{score['mean']:.2f}{sd}", notes.marks("", score["notes"])))
        else:
            cells.append(Cell(NOTHING))
    return cells


def mean(of: Mapping[str, float], seeds: int) -> str:
    """Mean and deviation; one seed has none."""
    return f"{of['mean']:.2f} ({of['sd']:.2f})" if seeds > 1 else f"{of['mean']:.2f}"


def interval(of: Mapping[str, float]) -> str:
    """Bounds, as they are written."""
    return f"[{of['low']:.2f}, {of['high']:.2f}]"
