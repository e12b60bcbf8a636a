"""Write a report of result files as HTML, Markdown and JSON (``evaluate report``).

HTML and Markdown show the same tables, of plain text.
"""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page
from bioshards.corpus.ui.html_page import spell_out_invisible
from bioshards.evaluate.benchmarks.verification import FileStatus
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.published import (
    BLURB_TASKS,
    TASKS_BY_TYPE,
    PublishedTable,
    Score,
    compute_blurb,
    list_tables,
)
from bioshards.evaluate.report.report_data import (
    STANDARD_DEVIATION,
    Comparison,
    Report,
    TaskScores,
    build_report,
    get_task_title,
    main_scores_by_model,
)
from bioshards.evaluate.runs import results

_NO_SCORE: Final = "\u2013"
"""Text of a cell without a score."""
_LIMITS: Final = {
    "sample of the data": "how much of it is in Runs; not comparable with published scores.",
    "not as published": "files or split are not the published ones; not comparable with published scores.",
    "invented": "text of the sample bundled with bioshards: a score on it means nothing, and is not "
    "comparable with published scores.",
    "counts agree": "only the counts agree with the published ones; the SHA-256 of a file is none that is "
    "known.",
    "partial": "a split has no file and is made of another one; not quite comparable with published scores.",
    "changed settings": "settings are not the suite's; they are listed in Runs.",
    "legacy": "counted as a paper does, for comparison with it.",
}
"""Words beside scores with limited comparability, and what they mean."""
_MAJORITY_NOTE: Final = (
    "What a model scores that knows the labels of train and reads no text: the most frequent class, no "
    "entity, the mean, the order of the files, no answer."
)
_LEGEND: Final = (
    "Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation "
    f"in brackets ({STANDARD_DEVIATION}). Below is the {bootstrap.CONFIDENCE_LEVEL:.0%} interval of "
    f"{bootstrap.RESAMPLES:,} bootstrap resamples; it covers the choice of test documents (examples, "
    "if files name no documents), not the choice of seeds. Words below a score, and footnotes, name "
    "limits of comparability."
)
_FILE_STATUS_TEXTS: Final[Mapping[FileStatus, str]] = {
    "verified": "verified (SHA-256)",
    "counts agree": "counts agree",
    "partial": "partial",
    "differs": "not as published",
    "invented": "invented",
}
_MARKDOWN_MARKUP: Final = re.compile(r"[\\`*_|~$]|](?=[(\[:])")
"""Characters that are inline markup."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Text of a cell, its footnote numbers, lines below it, and whether it is about our models."""

    text: str
    marks: str = ""
    below: Sequence[str] = ()
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class ReportTable:
    """A table.

    Attributes:
        left_aligned: text columns besides the first.
        intro: paragraphs above the table.
        footnotes: number and text of each paragraph below the table; the number may be "".
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
    """Footnotes of a table: the words of limits, and texts numbered in order of use."""

    limits: set[str] = field(default_factory=set)
    texts: dict[str, int] = field(default_factory=dict)

    def add(self, texts: Sequence[str]) -> str:
        """Return the numbers of a cell; new texts get the next ones."""
        numbers = sorted({self.texts.setdefault(text, len(self.texts) + 1) for text in texts})
        return ",".join(map(str, numbers))

    def add_limits(self, scores: Iterable[TaskScores]) -> list[str]:
        """Return the words of what limits scores, which are explained below the table."""
        limits = list_limits(scores)
        self.limits.update(limits)
        return limits

    def entries(self) -> list[tuple[str, str]]:
        """List numbers with their texts; those of words are empty."""
        words = [("", f"{word}: {text}") for word, text in _LIMITS.items() if word in self.limits]
        return words + [(str(number), text) for text, number in self.texts.items()]


# Tables


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
    published, *variants = list_tables(suite)
    yield _build_score_table(scores, published)
    if comparisons:
        yield _build_comparison_table(scores, comparisons)
    yield _build_runs_table(scores)
    for table in variants:
        yield _build_variant_table(table)


def list_limits(scores: Iterable[TaskScores]) -> list[str]:
    """Return the words of what limits the comparability of scores, each once."""
    words: set[str] = set()
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
        words.update(word for word, is_set in zip(_LIMITS, flags, strict=True) if is_set)
    return [word for word in _LIMITS if word in words]


def _build_score_table(scores: Sequence[TaskScores], published: PublishedTable) -> ReportTable:
    """Build the paper's table with our models' columns first, then rows of scores that the paper lacks."""
    footnotes, labels = Footnotes(), list(dict.fromkeys(each.model for each in scores))
    header = [
        Cell("Task"),
        Cell("Score"),
        *(Cell(label, is_ours=True) for label in labels),
        Cell("Majority class", footnotes.add([_MAJORITY_NOTE])),
        *_make_model_headers(published, footnotes),
    ]
    rows = []
    our_rows = ((each.task, each.main_score) for each in scores)
    for task, score_name in dict.fromkeys([*published.scores, *our_rows]):
        models = {each.model: each for each in scores if each.task == task}
        row_notes = published.notes_for(task=task) if (task, score_name) in published.scores else []
        task_cell = Cell(get_task_title(task), footnotes.add(row_notes))
        our_cells = [_make_our_cell(models.get(label), score_name, footnotes) for label in labels]
        majority_scores = dict.fromkeys(  # several if the models have several samples of the data
            f"{each.majority[score_name]:.2f}" for each in models.values() if score_name in each.majority
        )
        majority_cell = Cell(" / ".join(majority_scores) or _NO_SCORE)
        published_cells = _make_published_cells(published, task, score_name, footnotes)
        rows.append([task_cell, Cell(score_name), *our_cells, majority_cell, *published_cells])
    intro = _make_intro(published, "Published scores: ")
    our_tasks = {each.task for each in scores}
    missing = [get_task_title(task) for task in published.tasks if task not in our_tasks]
    if published.blurb_scores:
        rows += _make_blurb_rows(scores, labels, published, footnotes)
    elif missing:
        intro.append(f"Without results here: {', '.join(dict.fromkeys(missing))}.")
    all_footnotes = [*(("", note) for note in published.notes_for()), *footnotes.entries()]
    return ReportTable(published.title, header, rows, (1,), intro, all_footnotes)


def _make_intro(published: PublishedTable, prefix: str = "") -> list[str]:
    return [f"{prefix}{published.source}; {published.runs_note}."] if published.source else []


def _make_model_headers(published: PublishedTable, footnotes: Footnotes) -> list[Cell]:
    return [Cell(model, footnotes.add(published.notes_for(model))) for model in published.columns]


def _make_our_cell(scores: TaskScores | None, score_name: str, footnotes: Footnotes) -> Cell:
    if scores is None or score_name not in scores.test:
        return Cell(_NO_SCORE, is_ours=True)
    marks, limits = footnotes.add(scores.notes), footnotes.add_limits([scores])
    num_seeds = len(scores.seeds)
    text = _format_mean(scores.test[score_name], num_seeds)
    if score_name != scores.main_score:
        return Cell(text, marks, limits, is_ours=True)
    return Cell(f"{text} n={num_seeds}", marks, [_format_interval(scores), *limits], is_ours=True)


def _make_published_cells(
    published: PublishedTable, task: str, score_name: str, footnotes: Footnotes
) -> list[Cell]:
    scores = published.scores.get((task, score_name), {})
    cells = []
    for model in published.columns:
        if score := scores.get(model):
            sd = "" if score.sd is None else f" ({score.sd:.2f})"
            cells.append(Cell(f"{score.mean:.2f}{sd}", footnotes.add(published.notes_for(model, task))))
        else:
            cells.append(Cell(_NO_SCORE))
    return cells


def _make_blurb_rows(
    scores: Sequence[TaskScores], labels: Sequence[str], published: PublishedTable, footnotes: Footnotes
) -> Iterator[list[Cell]]:
    """Yield the means by task type, the BLURB score, and a partial average if tasks are missing."""
    # Ours and published ones apart: a model of ours may have the name of a published one.
    our_scores = main_scores_by_model(scores)
    published_scores = [
        {task: row[model].mean for (task, _), row in published.scores.items()} for model in published.columns
    ]
    ours, theirs = ([compute_blurb(row) for row in rows] for rows in (our_scores.values(), published_scores))

    def make_row(
        title: str,
        tasks: Collection[str],
        our_means: Iterable[float | None],
        printed_means: Iterable[float | None],
        marks: str = "",
        notes: Mapping[str, Sequence[str]] | None = None,
    ) -> list[Cell]:
        our_cells = []
        for label, mean in zip(labels, our_means, strict=True):
            averaged = [each for each in scores if each.model == label and each.task in tasks]
            limits = [] if mean is None else footnotes.add_limits(averaged)
            text = _NO_SCORE if mean is None else f"{mean:.2f}"
            our_cells.append(Cell(text, footnotes.add((notes or {}).get(label, ())), limits, is_ours=True))
        printed_cells = [Cell(f"{mean:.2f}") for mean in printed_means]
        return [Cell(title, marks), Cell(""), *our_cells, Cell(_NO_SCORE), *printed_cells]

    for name, tasks in TASKS_BY_TYPE.items():
        title = f"{name}, mean of {len(tasks)}" if len(tasks) > 1 else name
        our_means, printed_means = ([blurb.type_means[name] for blurb in blurbs] for blurbs in (ours, theirs))
        yield make_row(title, tasks, our_means, printed_means)
    notes = {
        label: [f"No BLURB score without {', '.join(map(get_task_title, blurb.missing_tasks))}."]
        for label, blurb in zip(labels, ours, strict=True)
        if blurb.missing_tasks
    }
    printed_scores = [published.blurb_scores[name] for name in published.columns]
    our_tasks = {each.task for each in scores}
    yield make_row("BLURB score", our_tasks, [blurb.score for blurb in ours], printed_scores, notes=notes)
    shared = [task for task in BLURB_TASKS if all(task in row for row in our_scores.values())]
    if shared and notes:
        note = (
            "Not the BLURB score: the same average of types over the tasks that all models here have, "
            f"{', '.join(map(get_task_title, shared))}."
        )
        marks = footnotes.add([note])
        our_means, printed_means = (
            [compute_blurb({task: row[task] for task in shared}).partial_mean for row in rows]
            for rows in (our_scores.values(), published_scores)
        )
        title = f"Average over {len(shared)} of {len(BLURB_TASKS)} tasks"
        yield make_row(title, shared, our_means, printed_means, marks)


def _build_comparison_table(scores: Sequence[TaskScores], comparisons: Sequence[Comparison]) -> ReportTable:
    """Build the table that compares each other model with the first."""
    footnotes, rows = Footnotes(), []
    for comparison in comparisons:
        models = {each.model: each for each in scores if each.task == comparison.task}
        both = [models[comparison.first], models[comparison.second]]
        task_cell = Cell(get_task_title(comparison.task), below=footnotes.add_limits(both))
        names = [Cell(comparison.second, is_ours=True), Cell(comparison.first, is_ours=True)]
        rows.append([task_cell, *names, *map(Cell, _format_comparison(comparison))])
    num_tests = sum(not comparison.skip_reason for comparison in comparisons)
    explanation = (
        "By paired bootstrap on the same test examples, of means over the seeds that both models have; p is "
        f"two-sided and of one comparison alone: of {num_tests}, chance makes about {0.05 * num_tests:.1f} "
        "smaller than 0.05."
    )
    header = ["Task", "Model", "Compared with", "Difference", "Interval", "p", "Seeds"]
    all_footnotes = [("", explanation), *footnotes.entries()]
    return ReportTable("Models compared", list(map(Cell, header)), rows, (1, 2, 6), footnotes=all_footnotes)


def _format_comparison(comparison: Comparison) -> list[str]:
    """Return difference, interval, p and seeds as text, or why there are none."""
    if comparison.skip_reason:
        return [_NO_SCORE, _NO_SCORE, _NO_SCORE, comparison.skip_reason]
    seeds = ", ".join(map(str, comparison.seeds))
    if comparison.unshared_seeds:
        seeds += f" (only one has {', '.join(map(str, comparison.unshared_seeds))})"
    difference, p_value = f"{comparison.difference:+.2f}", f"{comparison.p_value:.3f}"
    return [difference, _format_interval(comparison), p_value, seeds]


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
            _format_scores(each.dev, len(each.seeds)) or _NO_SCORE,
            ", ".join(sizes) or "all",
            _FILE_STATUS_TEXTS[each.file_status],
            ", ".join(changes) or "the suite's",
            ", ".join(map(str, each.seeds)),
            ", ".join(map(str, each.selected_steps)),
            f"{minutes // 60}:{minutes % 60:02}:{seconds:02}",
        ]
        rows.append(
            [Cell(each.title, below=list_limits([each])), Cell(each.model, is_ours=True), *map(Cell, cells)]
        )
    texts = ["Task", "Model", "Metric", "Test", "Dev", "Examples", "Files", "Settings", "Seeds", "Best steps"]
    header = list(map(Cell, [*texts, "Time"]))
    return ReportTable("Runs", header, rows, tuple(range(1, 10)), is_collapsed=True)


def _build_variant_table(published: PublishedTable) -> ReportTable:
    footnotes = Footnotes()
    header = [Cell("Task"), Cell("Score"), *_make_model_headers(published, footnotes)]
    rows = []
    for task, score_name in published.scores:
        marks = footnotes.add(published.notes_for(task=task))
        cells = _make_published_cells(published, task, score_name, footnotes)
        rows.append([Cell(get_task_title(task), marks), Cell(score_name), *cells])
    if published.blurb_scores:
        printed_scores = [Cell(f"{published.blurb_scores[name]:.2f}") for name in published.columns]
        rows.append([Cell("BLURB score"), Cell(""), *printed_scores])
    all_footnotes = footnotes.entries()
    return ReportTable(
        published.title, header, rows, (1,), _make_intro(published), all_footnotes, is_collapsed=True
    )


def _format_scores(scores: Mapping[str, Score], num_seeds: int) -> str:
    return ", ".join(f"{name} {_format_mean(score, num_seeds)}" for name, score in scores.items())


def _format_mean(score: Score, num_seeds: int) -> str:
    """Format mean and standard deviation; the latter only for two seeds or more."""
    return f"{score.mean:.2f} ({score.sd:.2f})" if num_seeds > 1 else f"{score.mean:.2f}"


def _format_interval(bounds: TaskScores | Comparison) -> str:
    return f"[{bounds.low:.2f}, {bounds.high:.2f}]"


# Pages


def render_page(report: Report) -> str:
    """Render a report as one self-contained HTML page without scripts, for screens and for print."""
    suites = report.scores_by_suite()
    return html_page.render_page(
        __package__,
        "evaluation_page.html",
        title=f"Evaluation of {', '.join(model.name for model in report.models)}",
        headline=list(_list_blurb_scores(suites.get("blurb", ()))),
        legend=_LEGEND,
        models_table=build_models_table(report),
        tables=[table for suite in suites for table in build_suite_tables(report, suite)],
    )


def _list_blurb_scores(scores: Sequence[TaskScores]) -> Iterator[tuple[str, str]]:
    """Yield each model's BLURB score with its name, or how many of the tasks have a score."""
    for label, means in main_scores_by_model(scores).items():
        blurb = compute_blurb(means)
        if blurb.score is not None:
            limits = list_limits(each for each in scores if each.model == label)
            yield f"{blurb.score:.2f}", f"BLURB score of {label}" + f" ({', '.join(limits)})" * bool(limits)
        else:
            num_tasks = len(BLURB_TASKS) - len(blurb.missing_tasks)
            yield f"{num_tasks} of {len(BLURB_TASKS)}", f"BLURB tasks: {label}"


def render_markdown(report: Report) -> str:
    """Render a report as GitHub Markdown."""
    parts = ["# Evaluation", _LEGEND, _render_table(build_models_table(report), 2)]
    for suite in report.scores_by_suite():
        tables = build_suite_tables(report, suite)
        parts += [_render_table(table, 2 + (index > 0)) for index, table in enumerate(tables)]
    return "\n\n".join(parts) + "\n"


def _render_table(table: ReportTable, level: int) -> str:
    def render_row(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    alignments = ("---" if index in {0, *table.left_aligned} else "--:" for index in range(len(table.header)))
    rows = [
        render_row(map(_render_cell, table.header)),
        render_row(alignments),
        *(render_row(map(_render_cell, row)) for row in table.rows),
    ]
    footnotes = [
        f"- <sup>{mark}</sup> {_escape_text(text)}" if mark else f"- {_escape_text(text)}"
        for mark, text in table.footnotes
    ]
    body = "\n\n".join(filter(None, [*map(_escape_text, table.intro), "\n".join(rows), "\n".join(footnotes)]))
    if table.is_collapsed:
        title = html.escape(spell_out_invisible(table.title, " "))
        return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
    return f"{'#' * level} {_escape_text(table.title)}\n\n{body}"


def _render_cell(cell: Cell) -> str:
    marks = f" <sup>{cell.marks}</sup>" if cell.marks else ""
    below = "".join(f"<br>{_escape_text(line)}" for line in cell.below)
    return f"{_escape_text(cell.text)}{marks}{below}"


def _escape_text(text: str) -> str:
    """Escape Markdown and HTML, in one line."""
    return html.escape(_MARKDOWN_MARKUP.sub(r"\\\g<0>", spell_out_invisible(text, keep=" ")), quote=False)


def _format_json(report: Report) -> str:
    return json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n"


_FORMATTERS: Final[Mapping[str, Callable[[Report], str]]] = {
    "report.html": render_page,  # first: beside it, README.md is that of a report
    "README.md": render_markdown,
    "report.json": _format_json,
}
"""Renderer by file of the report."""


def write_report(storage: LocalStorage, sources: Sequence[str], output: str) -> str:
    """Write the report of results, and return the main scores and a summary as text.

    Args:
        sources: result files and directories of results.
        output: directory for README.md, report.html and report.json; an earlier report is replaced.

    Raises:
        OutputMismatchError: the directory has a README.md, and no report.
        InputNotFoundError: a source does not exist.
        ResultError: see :func:`results.find_results` and :func:`build_report`.
    """
    paths = {name: os.path.join(output, name) for name in _FORMATTERS}
    if storage.exists(paths["README.md"]) and not storage.exists(paths["report.html"]):
        raise OutputMismatchError(
            f"{paths['README.md']} would be replaced, and is not of a report; give another --output"
        )
    result_by_path = results.find_results(storage, sources)
    report = build_report(result_by_path)
    for name, path in paths.items():
        with storage.write(path) as file:
            file.write(_FORMATTERS[name](report).encode("utf-8", "backslashreplace"))
    lines, counts = list[str](), []
    for suite, scores in report.scores_by_suite().items():
        lines += _format_main_scores(list_tables(suite)[0].title, scores)
        num_tasks = len({each.task for each in scores})
        counts.append(f"{num_tasks} {'task' if num_tasks == 1 else 'tasks'} of {suite}")
    return "\n".join(
        [*lines, f"{len(result_by_path)} results: {', '.join(counts)}", f"report: {paths['report.html']}"]
    )


def _format_main_scores(title: str, scores: Sequence[TaskScores]) -> Iterator[str]:
    """Yield the main score of each task and model beside the majority baseline's."""
    rows = [(title, "model", "score", "", "majority class", "")]
    for each in scores:
        limits = list_limits([each])
        status = f"({', '.join(limits)})" if limits else ""
        mean, majority = f"{each.score.mean:.2f}", f"{each.majority[each.main_score]:.2f}"
        rows.append((f"  {each.title}", each.model, each.main_score, mean, majority, status))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, label, name, score, majority, status in rows:
        yield (
            f"{first:<{widths[0]}}  {label:<{widths[1]}}  {name:<{widths[2]}}  {score:>{widths[3]}}  "
            f"{majority:>{widths[4]}}  {status}"
        ).rstrip()
