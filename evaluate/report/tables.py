"""Tables of a report as plain text, which the HTML and Markdown pages share."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bioshards.evaluate.benchmarks.verification import FileStatus
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.blurb import BLURB_TASKS, TASKS_BY_TYPE, compute_blurb
from bioshards.evaluate.report.published import PUBLISHED_TABLES, PublishedTable
from bioshards.evaluate.report.report_data import (
    STANDARD_DEVIATION,
    Comparison,
    Report,
    TaskScores,
    get_task_title,
    main_scores_by_model,
)
from bioshards.evaluate.report.seed_results import MeanScore

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


def format_legend() -> str:
    """Explain the numbers of all tables."""
    return (
        "Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation "
        f"in brackets ({STANDARD_DEVIATION}). Below is the {bootstrap.CONFIDENCE_LEVEL:.0%} interval of "
        f"{bootstrap.RESAMPLES:,} bootstrap resamples; it covers the choice of test documents (examples, "
        "if files name no documents), not the choice of seeds. Footnotes name limits of comparability."
    )


def build_models_table(report: Report) -> ReportTable:
    """Build the table of models."""
    header = ["Model", "Type", "Parameters", "SHA-256 of weights", "Fine-tuned with", "On"]
    rows = []
    for model in report.models:
        versions = [f"{name} {', '.join(versions)}" for name, versions in model.library_versions.items()]
        texts = [model.type, f"{model.parameters:,}", model.sha256[:12], "; ".join(versions)]
        rows.append([Cell(model.name, is_ours=True), *map(Cell, texts), Cell(", ".join(model.devices))])
    return ReportTable("Models", list(map(Cell, header)), rows, left_aligned=(1, 3, 4, 5))


def build_suite_tables(report: Report, suite: str) -> Iterator[ReportTable]:
    """Yield the tables of a suite: scores, comparisons, runs, variants."""
    scores = report.scores_by_suite()[suite]
    comparisons = [comparison for comparison in report.comparisons if comparison.suite == suite]
    published = [table for table in PUBLISHED_TABLES if table.suite == suite]
    yield _build_score_table(suite, scores, published[0] if published else None)
    if comparisons:
        yield _build_comparison_table(scores, comparisons)
    yield _build_runs_table(scores)
    for table in published[1:]:
        yield _build_variant_table(table)


def find_suite_title(suite: str) -> str:
    """Return the title of a suite: that of its paper's first table, else its name."""
    return next((table.title for table in PUBLISHED_TABLES if table.suite == suite), suite)


def merge_symbols(scores: Iterable[TaskScores]) -> str:
    """Return the symbols of scores with limited comparability, each once."""
    symbols: set[str] = set()
    for each in scores:
        flags = (
            each.sample_sizes is not None,
            each.file_status == "differs",
            each.file_status == "invented",
            each.file_status == "counts agree",
            each.file_status == "partial",
            bool(each.changed_settings),
            bool(each.legacy),
        )
        symbols.update(symbol for symbol, is_set in zip(FOOTNOTE_SYMBOLS, flags, strict=True) if is_set)
    return "".join(symbol for symbol in FOOTNOTE_SYMBOLS if symbol in symbols)


def _build_score_table(
    suite: str, scores: Sequence[TaskScores], published: PublishedTable | None
) -> ReportTable:
    """Build the paper's table with our models' columns first, then rows of scores that the paper lacks."""
    footnotes = Footnotes()
    labels = list(dict.fromkeys(each.model for each in scores))
    header = [
        Cell("Task"),
        Cell("Score"),
        *(Cell(label, is_ours=True) for label in labels),
        Cell("Majority class", footnotes.add("", [_MAJORITY_NOTE])),
        *_make_model_headers(published, footnotes),
    ]
    published_rows = published.scores if published else {}
    rows = []
    our_rows = ((each.task, each.main_score) for each in scores)
    for task, score_name in dict.fromkeys([*published_rows, *our_rows]):
        models = {each.model: each for each in scores if each.task == task}
        row_notes = (
            published.notes_for(task=task) if published and (task, score_name) in published_rows else []
        )
        cells = [
            _make_task_cell(get_task_title(task), models.values(), footnotes.add("", row_notes)),
            Cell(score_name),
        ]
        cells += [_make_our_cell(models.get(label), score_name, footnotes) for label in labels]
        majority_scores = dict.fromkeys(  # several if the models have several samples of the data
            f"{each.majority[score_name]:.2f}" for each in models.values() if score_name in each.majority
        )
        cells.append(Cell(" / ".join(majority_scores) or NO_SCORE))
        rows.append([*cells, *_make_published_cells(published, task, score_name, footnotes)])
    intro, notes = [], []
    if published:
        intro.append(f"Published scores: {published.source}; {published.runs_note}.")
        notes = published.notes_for()
        our_tasks = {each.task for each in scores}
        missing = [get_task_title(task) for task in published.tasks if task not in our_tasks]
        if suite == "blurb":
            rows += _make_blurb_rows(scores, labels, published, footnotes)
        elif missing:
            intro.append(f"Without results here: {', '.join(dict.fromkeys(missing))}.")
    all_footnotes = [*(("", note) for note in notes), *footnotes.entries()]
    return ReportTable(find_suite_title(suite), header, rows, (1,), intro, all_footnotes)


def _make_task_cell(title: str, scores: Iterable[TaskScores], marks: str = "") -> Cell:
    """Return the first cell of a row with scores of our models; it says if one is on invented text."""
    is_invented = any(each.file_status == "invented" for each in scores)
    return Cell(title, marks, INVENTED if is_invented else "")


def _make_model_headers(published: PublishedTable | None, footnotes: Footnotes) -> list[Cell]:
    if published is None:
        return []
    return [Cell(model, footnotes.add("", published.notes_for(model))) for model in published.columns]


def _make_our_cell(scores: TaskScores | None, score_name: str, footnotes: Footnotes) -> Cell:
    if scores is None or score_name not in scores.test:
        return Cell(NO_SCORE, is_ours=True)
    marks = footnotes.add(merge_symbols([scores]), scores.notes)
    num_seeds = len(scores.seeds)
    text = _format_mean(scores.test[score_name], num_seeds)
    if score_name != scores.main_score:
        return Cell(text, marks, is_ours=True)
    return Cell(f"{text} n={num_seeds}", marks, _format_interval(scores), is_ours=True)


def _make_published_cells(
    published: PublishedTable | None, task: str, score_name: str, footnotes: Footnotes
) -> list[Cell]:
    if published is None:
        return []
    scores = published.scores.get((task, score_name), {})
    cells = []
    for model in published.columns:
        if score := scores.get(model):
            sd = "" if score.sd is None else f" ({score.sd:.2f})"
            marks = footnotes.add("", published.notes_for(model, task))
            cells.append(Cell(f"{score.mean:.2f}{sd}", marks))
        else:
            cells.append(Cell(NO_SCORE))
    return cells


def _make_blurb_rows(
    scores: Sequence[TaskScores], labels: Sequence[str], published: PublishedTable, footnotes: Footnotes
) -> Iterator[list[Cell]]:
    """Yield the means by task type, the BLURB score, and a partial average if tasks are missing."""
    # Ours and published ones apart: a model of ours may have the name of a published one.
    our_scores = main_scores_by_model(scores)
    published_scores = {
        model: {task: row[model].mean for (task, _), row in published.scores.items()}
        for model in published.columns
    }
    ours = {label: compute_blurb(our_scores[label]) for label in labels}

    def make_our_cell(
        label: str, score: float | None, tasks: Collection[str], notes: Sequence[str] = ()
    ) -> Cell:
        if score is None:
            return Cell(NO_SCORE, footnotes.add("", notes), is_ours=True)
        symbols = merge_symbols(each for each in scores if each.model == label and each.task in tasks)
        return Cell(f"{score:.2f}", footnotes.add(symbols, notes), is_ours=True)

    def make_row(
        title: str, our_cells: list[Cell], printed_scores: Iterable[float | None], marks: str = ""
    ) -> list[Cell]:
        is_invented = any(INVENTED_SYMBOL in cell.marks for cell in our_cells)
        title_cell = Cell(title, marks, INVENTED if is_invented else "")
        published_cells = [Cell(f"{score:.2f}") for score in printed_scores]
        return [title_cell, Cell(""), *our_cells, Cell(NO_SCORE), *published_cells]

    for type_name, tasks in TASKS_BY_TYPE.items():
        title = f"{type_name}, mean of {len(tasks)}" if len(tasks) > 1 else type_name
        our_cells = [make_our_cell(label, ours[label].type_means[type_name], tasks) for label in labels]
        printed = (compute_blurb(row).type_means[type_name] for row in published_scores.values())
        yield make_row(title, our_cells, printed)
    our_cells = []
    for label, blurb in ours.items():
        missing = ", ".join(map(get_task_title, blurb.missing_tasks))
        notes = [f"No BLURB score without {missing}."] if missing else []
        our_cells.append(make_our_cell(label, blurb.score, our_scores[label], notes))
    yield make_row("BLURB score", our_cells, (published.blurb_scores[name] for name in published.columns))
    shared = [task for task in BLURB_TASKS if all(task in row for row in our_scores.values())]
    if shared and any(blurb.missing_tasks for blurb in ours.values()):
        note = (
            "Not the BLURB score: the same average of types over the tasks that all models here have, "
            f"{', '.join(map(get_task_title, shared))}."
        )
        marks = footnotes.add("", [note])
        our_cells = [
            make_our_cell(label, _average_tasks(our_scores[label], shared), shared) for label in labels
        ]
        printed = (_average_tasks(row, shared) for row in published_scores.values())
        title = f"Average over {len(shared)} of {len(BLURB_TASKS)} tasks"
        yield make_row(title, our_cells, printed, marks)


def _average_tasks(scores: Mapping[str, float], tasks: Sequence[str]) -> float | None:
    """Return the average over these tasks, as of the BLURB score."""
    return compute_blurb({task: scores[task] for task in tasks}).partial_mean


def _build_comparison_table(scores: Sequence[TaskScores], comparisons: Sequence[Comparison]) -> ReportTable:
    """Build the table that compares each other model with the first."""
    footnotes, rows = Footnotes(), []
    for comparison in comparisons:
        models = {each.model: each for each in scores if each.task == comparison.task}
        both = [models[comparison.first], models[comparison.second]]
        title = get_task_title(comparison.task)
        task_cell = _make_task_cell(title, models.values(), footnotes.add(merge_symbols(both), []))
        names = [Cell(comparison.second, is_ours=True), Cell(comparison.first, is_ours=True)]
        rows.append([task_cell, *names, *map(Cell, _format_comparison(comparison))])
    num_tests = sum(not comparison.skip_reason for comparison in comparisons)
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
    if comparison.skip_reason:
        return [NO_SCORE, NO_SCORE, NO_SCORE, comparison.skip_reason]
    seeds = ", ".join(map(str, comparison.seeds))
    if comparison.unshared_seeds:
        seeds += f" (only one has {', '.join(map(str, comparison.unshared_seeds))})"
    return [
        f"{comparison.difference:+.2f}",
        _format_interval(comparison),
        f"{comparison.p_value:.3f}",
        seeds,
    ]


def _build_runs_table(scores: Sequence[TaskScores]) -> ReportTable:
    """Build the appendix: all scores of each task and model, and how they came about."""
    rows = []
    for each in scores:
        sizes = [f"{split} {size:,}" for split, size in (each.sample_sizes or {}).items()]
        changes = [
            f"{name} {change['value']} (suite: {change['default']})"
            for name, change in each.changed_settings.items()
        ]
        minutes, seconds = divmod(round(each.seconds), 60)
        cells = [
            each.metric + (f"; legacy: {', '.join(each.legacy)}" if each.legacy else ""),
            _format_scores(each.test, len(each.seeds)),
            _format_scores(each.dev, len(each.seeds)) or NO_SCORE,
            ", ".join(sizes) or "all",
            _FILE_STATUS_TEXTS[each.file_status],
            ", ".join(changes) or "the suite's",
            ", ".join(map(str, each.seeds)),
            ", ".join(map(str, each.selected_steps)),
            f"{minutes // 60}:{minutes % 60:02}:{seconds:02}",
        ]
        task_cell = _make_task_cell(each.title, [each], merge_symbols([each]))
        rows.append([task_cell, Cell(each.model, is_ours=True), *map(Cell, cells)])
    texts = ["Task", "Model", "Metric", "Test", "Dev", "Examples", "Files", "Settings", "Seeds", "Best steps"]
    header = list(map(Cell, [*texts, "Time"]))
    return ReportTable("Runs", header, rows, tuple(range(1, 10)), is_collapsed=True)


def _build_variant_table(published: PublishedTable) -> ReportTable:
    footnotes = Footnotes()
    header = [Cell("Task"), Cell("Score"), *_make_model_headers(published, footnotes)]
    rows = [
        [
            Cell(get_task_title(task), footnotes.add("", published.notes_for(task=task))),
            Cell(score_name),
            *_make_published_cells(published, task, score_name, footnotes),
        ]
        for task, score_name in published.scores
    ]
    if published.blurb_scores:
        scores = (Cell(f"{published.blurb_scores[name]:.2f}") for name in published.columns)
        rows.append([Cell("BLURB score"), Cell(""), *scores])
    intro = [f"{published.source}; {published.runs_note}."]
    return ReportTable(published.title, header, rows, (1,), intro, footnotes.entries(), is_collapsed=True)


def _format_scores(scores: Mapping[str, MeanScore], num_seeds: int) -> str:
    return ", ".join(f"{name} {_format_mean(score, num_seeds)}" for name, score in scores.items())


def _format_mean(score: MeanScore, num_seeds: int) -> str:
    """Format mean and standard deviation; the latter only for two seeds or more."""
    return f"{score.mean:.2f} ({score.sd:.2f})" if num_seeds > 1 else f"{score.mean:.2f}"


def _format_interval(bounds: TaskScores | Comparison) -> str:
    return f"[{bounds.low:.2f}, {bounds.high:.2f}]"
