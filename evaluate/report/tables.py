"""Tables of a report as plain text, which the HTML and Markdown pages share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.known_files import FileStatus
from bioshards.evaluate.report.blurb import BLURB_TASKS, TASKS_BY_TYPE
from bioshards.evaluate.report.published import TASK_TITLES
from bioshards.evaluate.report.report_types import (
    BlurbReport,
    Comparison,
    ModelScores,
    PublishedReport,
    PublishedRow,
    Report,
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
    "\u00b6": "With settings that are not the suite's: they are listed in Runs.",
    "\u00a7": "Counted as a paper does, for comparison with it.",
}
"""Footnotes of scores with limited comparability."""
INVENTED: Final = "invented sample"
"""Second line of a row with scores on the bundled sample."""
_MAJORITY_NOTE: Final = (
    "What a model scores that knows the labels of train and reads no text: the most frequent class, no "
    "entity, the mean, the order of the files, no answer."
)
_FILE_STATUS_TEXTS: Final[Mapping[FileStatus, str]] = {
    "verified": "verified (SHA-256)",
    "counts agree": "counts agree",
    "partial": "partial",
    "differs": "not as published",
    "invented": "invented",
}
_NO_PUBLISHED_TABLE: Final[PublishedReport] = {
    "title": "",
    "source": "",
    "runs_note": "",
    "notes": [],
    "models": {},
    "blurb_scores": None,
    "rows": [],
}
"""Stands in for a paper's table in suites without one."""


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


def format_legend(report: Report) -> str:
    """Explain the numbers of all tables."""
    interval = report["interval"]
    return (
        "Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation "
        f"in brackets ({report['standard_deviation']}). Below is the {interval['level']:.0%} interval of "
        f"{interval['resamples']:,} bootstrap resamples; it covers the choice of test documents (examples, "
        "if files name no documents), not the choice of seeds. Footnotes name limits of comparability."
    )


def build_models_table(report: Report) -> ReportTable:
    """Build the table of models."""
    header = ["Model", "Type", "Parameters", "SHA-256 of weights", "Fine-tuned with", "On"]
    rows = []
    for model in report["models"]:
        versions = [f"{name} {', '.join(versions)}" for name, versions in model["library_versions"].items()]
        texts = [model["type"], f"{model['parameters']:,}", model["sha256"][:12], "; ".join(versions)]
        rows.append([Cell(model["name"], is_ours=True), *map(Cell, texts), Cell(", ".join(model["devices"]))])
    return ReportTable("Models", list(map(Cell, header)), rows, left_aligned=(1, 3, 4, 5))


def build_suite_tables(suite: SuiteReport) -> Iterator[ReportTable]:
    """Yield the tables of a suite: scores, comparisons, runs, variants."""
    published, *variants = suite["published"] or [_NO_PUBLISHED_TABLE]
    yield _build_score_table(suite, published)
    if any(task_report["comparisons"] for task_report in suite["tasks"].values()):
        yield _build_comparison_table(suite)
    yield _build_runs_table(suite)
    for table in variants:
        yield _build_variant_table(table)


def iter_scores(suite: SuiteReport) -> Iterator[tuple[str, str, ModelScores]]:
    """Yield task, label and scores of each task and model of a suite."""
    for task, task_report in suite["tasks"].items():
        for label, scores in task_report["models"].items():
            yield task, label, scores


def get_task_title(task: str) -> str:
    """Return the title of a task in reports: that of the papers, else of the benchmark, else its name."""
    if task in TASK_TITLES:
        return TASK_TITLES[task]
    return BENCHMARKS[task].title if task in BENCHMARKS else task


def collect_footnote_symbols(suite: SuiteReport, label: str, tasks: Collection[str]) -> str:
    """Return the symbols of all scores of a model on these tasks, each once."""
    return _merge_symbols(
        scores for task, model_label, scores in iter_scores(suite) if model_label == label and task in tasks
    )


def _merge_symbols(models: Iterable[ModelScores]) -> str:
    """Return the symbols of scores with limited comparability, each once."""
    symbols: set[str] = set()
    for scores in models:
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
        symbols.update(symbol for symbol, is_set in zip(FOOTNOTE_SYMBOLS, flags, strict=True) if is_set)
    return "".join(symbol for symbol in FOOTNOTE_SYMBOLS if symbol in symbols)


def _build_score_table(suite: SuiteReport, published: PublishedReport) -> ReportTable:
    """Build the paper's table with our models' columns first, then rows of scores that the paper lacks."""
    footnotes = Footnotes()
    our_labels = list(dict.fromkeys(label for _, label, _ in iter_scores(suite)))
    header = [
        Cell("Task"),
        Cell("Score"),
        *(Cell(label, is_ours=True) for label in our_labels),
        Cell("Majority class", footnotes.add("", [_MAJORITY_NOTE])),
        *_make_model_headers(published, footnotes),
    ]
    known_rows = {(row["task"], row["score_name"]) for row in published["rows"]}
    our_rows = dict.fromkeys((task, scores["main_score"]) for task, _, scores in iter_scores(suite))
    extra_rows: list[PublishedRow] = [
        {"task": task, "score_name": score_name, "scores": {}, "notes": []}
        for task, score_name in our_rows
        if (task, score_name) not in known_rows
    ]
    rows = []
    for row in [*published["rows"], *extra_rows]:
        models = suite["tasks"].get(row["task"], {"models": {}})["models"]
        cells = [
            _make_task_cell(row["task"], models.values(), footnotes.add("", row["notes"])),
            Cell(row["score_name"]),
        ]
        cells += [_make_our_cell(models.get(label), row["score_name"], footnotes) for label in our_labels]
        majority_scores = dict.fromkeys(  # several if the models have several samples of the data
            f"{scores['majority'][row['score_name']]:.2f}"
            for scores in models.values()
            if row["score_name"] in scores["majority"]
        )
        cells.append(Cell(" / ".join(majority_scores) or NO_SCORE))
        rows.append([*cells, *_make_published_cells(row, published["models"], footnotes)])
    if suite["blurb"]:
        rows += _make_blurb_rows(suite, suite["blurb"], published, our_labels, footnotes)
    intro = (
        [f"Published scores: {published['source']}; {published['runs_note']}."] if published["models"] else []
    )
    missing_titles = dict.fromkeys(
        get_task_title(row["task"]) for row in published["rows"] if row["task"] not in suite["tasks"]
    )
    if missing_titles and not suite["blurb"]:
        intro.append(f"Without results here: {', '.join(missing_titles)}.")
    all_footnotes = [*(("", note) for note in published["notes"]), *footnotes.entries()]
    return ReportTable(suite["title"], header, rows, (1,), intro, all_footnotes)


def _make_task_cell(task: str, models: Iterable[ModelScores], marks: str = "") -> Cell:
    """Return the first cell of a row with scores of our models; it says if one is on invented text."""
    is_invented = any(scores["file_status"] == "invented" for scores in models)
    return Cell(get_task_title(task), marks, INVENTED if is_invented else "")


def _make_model_headers(published: PublishedReport, footnotes: Footnotes) -> list[Cell]:
    return [Cell(model, footnotes.add("", model_notes)) for model, model_notes in published["models"].items()]


def _make_our_cell(scores: ModelScores | None, score_name: str, footnotes: Footnotes) -> Cell:
    if scores is None or score_name not in scores["test"]:
        return Cell(NO_SCORE, is_ours=True)
    marks = footnotes.add(_merge_symbols([scores]), scores["notes"])
    num_seeds = len(scores["seeds"])
    text = _format_mean(scores["test"][score_name], num_seeds)
    if score_name != scores["main_score"]:
        return Cell(text, marks, is_ours=True)
    return Cell(f"{text} n={num_seeds}", marks, _format_interval(scores["score"]), is_ours=True)


def _make_published_cells(row: PublishedRow, models: Iterable[str], footnotes: Footnotes) -> list[Cell]:
    cells = []
    for model in models:
        if score := row["scores"].get(model):
            sd = "" if score["sd"] is None else f" ({score['sd']:.2f})"
            cells.append(Cell(f"{score['mean']:.2f}{sd}", footnotes.add("", score["notes"])))
        else:
            cells.append(Cell(NO_SCORE))
    return cells


def _make_blurb_rows(
    suite: SuiteReport,
    blurb: BlurbReport,
    published: PublishedReport,
    our_labels: Sequence[str],
    footnotes: Footnotes,
) -> Iterator[list[Cell]]:
    """Yield the means by task type, the BLURB score, and a partial average if tasks are missing."""

    def make_our_cell(
        label: str, score: float | None, tasks: Collection[str], notes: Sequence[str] = ()
    ) -> Cell:
        symbols = "" if score is None else collect_footnote_symbols(suite, label, tasks)
        text = NO_SCORE if score is None else f"{score:.2f}"
        return Cell(text, footnotes.add(symbols, notes), is_ours=True)

    def make_row(
        title: str, our_cells: list[Cell], published_scores: Iterable[float | None], marks: str = ""
    ) -> list[Cell]:
        is_invented = any(INVENTED_SYMBOL in cell.marks for cell in our_cells)
        title_cell = Cell(title, marks, INVENTED if is_invented else "")
        published_cells = [Cell(f"{score:.2f}") for score in published_scores]
        return [title_cell, Cell(""), *our_cells, Cell(NO_SCORE), *published_cells]

    for type_name, tasks in TASKS_BY_TYPE.items():
        title = f"{type_name}, mean of {len(tasks)}" if len(tasks) > 1 else type_name
        means = {label: blurb["models"][label]["type_means"][type_name] for label in our_labels}
        our_cells = [make_our_cell(label, mean, tasks) for label, mean in means.items()]
        published_means = [
            blurb["published"][model]["type_means"][type_name] for model in published["models"]
        ]
        yield make_row(title, our_cells, published_means)
    our_cells = []
    for label in our_labels:
        model = blurb["models"][label]
        missing = ", ".join(map(get_task_title, model["missing_tasks"]))
        notes = [f"No BLURB score without {missing}."] if missing else []
        our_cells.append(make_our_cell(label, model["score"], suite["tasks"], notes))
    yield make_row("BLURB score", our_cells, (published["blurb_scores"] or {}).values())
    shared = blurb["shared_tasks"]
    if shared["tasks"] and any(model["missing_tasks"] for model in blurb["models"].values()):
        marks = footnotes.add(
            "",
            [
                "Not the BLURB score: the same average of types over the tasks that all models here have, "
                f"{', '.join(map(get_task_title, shared['tasks']))}."
            ],
        )
        our_cells = [make_our_cell(label, shared["models"][label], shared["tasks"]) for label in our_labels]
        title = f"Average over {len(shared['tasks'])} of {len(BLURB_TASKS)} tasks"
        yield make_row(title, our_cells, (shared["published"][name] for name in published["models"]), marks)


def _build_comparison_table(suite: SuiteReport) -> ReportTable:
    """Build the table that compares each other model with the first."""
    footnotes, rows, num_tests = Footnotes(), [], 0
    for task, task_report in suite["tasks"].items():
        for comparison in task_report["comparisons"]:
            num_tests += "p_value" in comparison
            models = task_report["models"]
            both = [models[comparison["first"]], models[comparison["second"]]]
            task_cell = _make_task_cell(task, models.values(), footnotes.add(_merge_symbols(both), []))
            names = [Cell(comparison["second"], is_ours=True), Cell(comparison["first"], is_ours=True)]
            rows.append([task_cell, *names, *map(Cell, _format_comparison(comparison))])
    explanation = (
        "By paired bootstrap on the same test examples, of means over the seeds that both models have; p is "
        f"two-sided and of one comparison alone: of {num_tests}, chance makes about {0.05 * num_tests:.1f} "
        "smaller than 0.05."
    )
    header = ["Task", "Model", "Compared with", "Difference", "Interval", "p", "Seeds"]
    return ReportTable(
        "Models compared",
        list(map(Cell, header)),
        rows,
        (1, 2, 6),
        footnotes=[("", explanation), *footnotes.entries()],
    )


def _format_comparison(comparison: Comparison) -> list[str]:
    """Return difference, interval, p and seeds as text, or why there are none."""
    if "skip_reason" in comparison:
        return [NO_SCORE, NO_SCORE, NO_SCORE, comparison["skip_reason"]]
    seeds = ", ".join(map(str, comparison["seeds"]))
    if comparison["unshared_seeds"]:
        seeds += f" (only one has {', '.join(map(str, comparison['unshared_seeds']))})"
    return [
        f"{comparison['difference']:+.2f}",
        _format_interval(comparison),
        f"{comparison['p_value']:.3f}",
        seeds,
    ]


def _build_runs_table(suite: SuiteReport) -> ReportTable:
    """Build the appendix: all scores of each task and model, and how they came about."""
    rows = []
    for task, label, scores in iter_scores(suite):
        num_seeds = len(scores["seeds"])
        test_scores, dev_scores = (
            ", ".join(f"{name} {_format_mean(score, num_seeds)}" for name, score in by_name.items())
            for by_name in (scores["test"], scores["dev"])
        )
        sample_text = ", ".join(
            f"{split} {num_examples:,}" for split, num_examples in (scores["sample_sizes"] or {}).items()
        )
        changes = ", ".join(
            f"{name} {change['value']} (suite: {change['default']})"
            for name, change in scores["changed_settings"].items()
        )
        minutes, seconds = divmod(round(scores["seconds"]), 60)
        cells = [
            scores["metric"] + (f"; legacy: {', '.join(scores['legacy'])}" if scores["legacy"] else ""),
            test_scores,
            dev_scores or NO_SCORE,
            sample_text or "all",
            _FILE_STATUS_TEXTS[scores["file_status"]],
            changes or "the suite's",
            ", ".join(map(str, scores["seeds"])),
            ", ".join(map(str, scores["selected_steps"])),
            f"{minutes // 60}:{minutes % 60:02}:{seconds:02}",
        ]
        task_cell = _make_task_cell(task, [scores], _merge_symbols([scores]))
        rows.append([task_cell, Cell(label, is_ours=True), *map(Cell, cells)])
    header = [
        "Task",
        "Model",
        "Metric",
        "Test",
        "Dev",
        "Examples",
        "Files",
        "Settings",
        "Seeds",
        "Best steps",
    ]
    return ReportTable(
        "Runs", list(map(Cell, [*header, "Time"])), rows, tuple(range(1, 10)), is_collapsed=True
    )


def _build_variant_table(published: PublishedReport) -> ReportTable:
    footnotes = Footnotes()
    header = [Cell("Task"), Cell("Score"), *_make_model_headers(published, footnotes)]
    rows = [
        [
            Cell(get_task_title(row["task"]), footnotes.add("", row["notes"])),
            Cell(row["score_name"]),
            *_make_published_cells(row, published["models"], footnotes),
        ]
        for row in published["rows"]
    ]
    if published["blurb_scores"]:
        scores = (Cell(f"{score:.2f}") for score in published["blurb_scores"].values())
        rows.append([Cell("BLURB score"), Cell(""), *scores])
    intro = [f"{published['source']}; {published['runs_note']}."]
    return ReportTable(published["title"], header, rows, (1,), intro, footnotes.entries(), is_collapsed=True)


def _format_mean(summary: ScoreSummary, num_seeds: int) -> str:
    """Format mean and standard deviation; the latter only for two seeds or more."""
    return f"{summary['mean']:.2f} ({summary['sd']:.2f})" if num_seeds > 1 else f"{summary['mean']:.2f}"


def _format_interval(bounds: ScoreInterval | Comparison) -> str:
    return f"[{bounds['low']:.2f}, {bounds['high']:.2f}]"
