"""Cells, tables and footnotes of a report, independent of the output format."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.report.published import TASK_TITLES
from bioshards.evaluate.report.report_types import (
    Comparison,
    ModelScores,
    PublishedReport,
    PublishedRow,
    ScoreInterval,
    ScoreSummary,
    SuiteReport,
)

NO_SCORE: Final = "\u2013"
"""Text of a cell without a score."""
INVENTED_SYMBOL: Final = "\u00a4"
FOOTNOTE_SYMBOLS: Final = {
    "\u2020": "On a sample of the data (how much of it: see Runs): not comparable with published scores.",
    "\u2021": "Files or split are not the published ones: not comparable with published scores.",
    INVENTED_SYMBOL: "On invented text, the sample bundled with bioshards: a score on it means nothing, "
    "and is not comparable with published scores.",
    "\u00b0": "Only the counts agree with the published ones: the SHA-256 of a file is none that is known.",
    "\u2016": "A split has no file and is made of another one: not quite comparable with published scores.",
    "\u00b6": "With settings that are not the suite's: they are listed below.",
    "\u00a7": "Counted as a paper does, for comparison with it.",
}
"""Footnotes of scores with limited comparability."""
INVENTED: Final = "invented sample"
"""Second line of a row with scores on the bundled sample."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a cell, its footnote marks, a second line, and whether it is about our models."""

    text: str
    marks: str = ""
    below: str = ""
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        left_aligned: text columns besides the first.
        intro: paragraphs above the table.
        footnotes: mark and text of each paragraph below the table; the mark may be "".
        is_collapsed: True to hide the table until it is opened.
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
    """Footnotes of a table: symbols, and texts numbered in order of use."""

    symbols: set[str] = field(default_factory=set)
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, symbols: str, texts: Sequence[str]) -> str:
        """Return the marks of a cell; new texts get the next numbers."""
        self.symbols.update(symbols)
        numbers = sorted({self.texts.setdefault(text, len(self.texts) + 1) for text in texts})
        return " ".join(filter(None, (symbols, ",".join(map(str, numbers)))))

    def entries(self) -> list[tuple[str, str]]:
        """List marks with their texts."""
        symbols = [(symbol, text) for symbol, text in FOOTNOTE_SYMBOLS.items() if symbol in self.symbols]
        return symbols + [(str(number), text) for text, number in self.texts.items()]


def list_model_labels(suite: SuiteReport) -> list[str]:
    """List the labels of our models in a suite."""
    return list(dict.fromkeys(label for _, label, _ in iter_scores(suite)))


def get_task_title(task: str) -> str:
    """Return the title of a task in reports: that of the papers, else of the benchmark, else its name."""
    if task in TASK_TITLES:
        return TASK_TITLES[task]
    return BENCHMARKS[task].title if task in BENCHMARKS else task


def get_footnote_symbols(scores: ModelScores) -> str:
    """Return the symbols of a score with limited comparability."""
    status = scores["file_status"]
    flags = (
        scores["sample_sizes"] is not None,
        status == "differs",
        status == "invented",
        status == "counts agree",
        status == "partial",
        bool(scores["changed_settings"]),
        bool(scores["legacy"]),
    )
    return "".join(symbol for symbol, is_set in zip(FOOTNOTE_SYMBOLS, flags, strict=True) if is_set)


def collect_footnote_symbols(suite: SuiteReport, label: str, tasks: Collection[str]) -> str:
    """Return the symbols of all scores of a model on these tasks, each once."""
    marks = {
        symbol
        for task, model_label, scores in iter_scores(suite)
        if model_label == label and task in tasks
        for symbol in get_footnote_symbols(scores)
    }
    return "".join(symbol for symbol in FOOTNOTE_SYMBOLS if symbol in marks)


def make_task_cell(task: str, models: Iterable[ModelScores], marks: str = "") -> Cell:
    """Return the first cell of a row with scores of our models; it says if one is on invented text."""
    is_invented = any(scores["file_status"] == "invented" for scores in models)
    return Cell(get_task_title(task), marks, INVENTED if is_invented else "")


def iter_scores(suite: SuiteReport) -> Iterator[tuple[str, str, ModelScores]]:
    """Yield task, label and scores of each task and model of a suite."""
    for task, task_report in suite["tasks"].items():
        for label, scores in task_report["models"].items():
            yield task, label, scores


def make_model_headers(published: PublishedReport, footnotes: Footnotes) -> list[Cell]:
    """Return header cells of the models of a paper's table."""
    return [Cell(model, footnotes.add("", model_notes)) for model, model_notes in published["models"].items()]


def make_row_header(row: PublishedRow, footnotes: Footnotes) -> list[Cell]:
    """Return task and score name of a paper's row."""
    return [Cell(get_task_title(row["task"]), footnotes.add("", row["notes"])), Cell(row["score_name"])]


def make_published_cells(row: PublishedRow, models: Iterable[str], footnotes: Footnotes) -> list[Cell]:
    """Return the cells of a paper's row."""
    cells = []
    for model in models:
        if score := row["scores"].get(model):
            sd = "" if score["sd"] is None else f" ({score['sd']:.2f})"
            cells.append(Cell(f"{score['mean']:.2f}{sd}", footnotes.add("", score["notes"])))
        else:
            cells.append(Cell(NO_SCORE))
    return cells


def format_mean(summary: ScoreSummary, num_seeds: int) -> str:
    """Format mean and standard deviation; the latter only for two seeds or more."""
    return f"{summary['mean']:.2f} ({summary['sd']:.2f})" if num_seeds > 1 else f"{summary['mean']:.2f}"


def format_interval(bounds: ScoreInterval | Comparison) -> str:
    """Format the bounds of an interval."""
    return f"[{bounds['low']:.2f}, {bounds['high']:.2f}]"
