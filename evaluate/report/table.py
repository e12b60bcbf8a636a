"""Tables of plain text: what the page and the Markdown of a report show, each in its way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .published import TASK_TITLES

NO_SCORE: Final = "\u2013"
"""In a cell for which there is no score."""
FOOTNOTE_SYMBOLS: Final = {
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
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        left: which columns are of words, beside the first.
        before: paragraphs above it.
        notes: paragraphs below it, each with the mark that it explains, if any.
        folded: whether it is shown on demand only.
    """

    title: str
    header: Sequence[Cell]
    rows: Sequence[Sequence[Cell]]
    left_aligned: Sequence[int] = ()
    intro: Sequence[str] = ()
    footnotes: Sequence[tuple[str, str]] = ()
    is_collapsed: bool = False


@dataclass(slots=True)
class Footnotes:
    """A table's footnotes: symbols, and texts by number as they come up."""

    symbols: set[str] = field(default_factory=set)
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, symbols: str, texts: Sequence[str]) -> str:
        """The marks of a cell; its texts get the next numbers if they are new."""
        self.symbols.update(symbols)
        numbers = sorted({self.texts.setdefault(text, len(self.texts) + 1) for text in texts})
        return " ".join(filter(None, (symbols, ",".join(map(str, numbers)))))

    def entries(self) -> list[tuple[str, str]]:
        """Marks with what they say."""
        symbols = [(symbol, text) for symbol, text in FOOTNOTE_SYMBOLS.items() if symbol in self.symbols]
        return symbols + [(str(number), text) for text, number in self.texts.items()]


def list_model_labels(suite: Mapping[str, Any]) -> list[str]:
    """Our models of a suite."""
    return list(dict.fromkeys(label for _, label, _ in iter_scores(suite)))


def get_task_title(task: str) -> str:
    """What a task is called."""
    return TASK_TITLES.get(task, task)


def get_footnote_symbols(scores: Mapping[str, Any]) -> str:
    """The marks of a score that must not be read like others."""
    flags = (scores["sample_sizes"] is not None, not scores["verified"], bool(scores["legacy"]))
    return "".join(symbol for symbol, is_set in zip(FOOTNOTE_SYMBOLS, flags, strict=True) if is_set)


def iter_scores(suite: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The scores of each task and model of a suite."""
    for task, task_report in suite["tasks"].items():
        for label, scores in task_report["models"].items():
            yield task, label, scores


def make_model_headers(published: Mapping[str, Any], footnotes: Footnotes) -> list[Cell]:
    """The models of a paper's table."""
    return [Cell(model, footnotes.add("", model_notes)) for model, model_notes in published["models"].items()]


def make_row_header(row: Mapping[str, Any], footnotes: Footnotes) -> list[Cell]:
    """Task and figure of a paper's row."""
    return [Cell(get_task_title(row["task"]), footnotes.add("", row["notes"])), Cell(row["score_name"])]


def make_published_cells(row: Mapping[str, Any], models: Iterable[str], footnotes: Footnotes) -> list[Cell]:
    """The scores of a paper's row."""
    cells = []
    for model in models:
        if score := row["scores"].get(model):
            sd = "" if score["sd"] is None else f" ({score['sd']:.2f})"
            cells.append(Cell(f"{score['mean']:.2f}{sd}", footnotes.add("", score["notes"])))
        else:
            cells.append(Cell(NO_SCORE))
    return cells


def format_mean(stats: Mapping[str, float], num_seeds: int) -> str:
    """Mean and deviation; one seed has none."""
    return f"{stats['mean']:.2f} ({stats['sd']:.2f})" if num_seeds > 1 else f"{stats['mean']:.2f}"


def format_interval(bounds: Mapping[str, float]) -> str:
    """Bounds, as they are written."""
    return f"[{bounds['low']:.2f}, {bounds['high']:.2f}]"
