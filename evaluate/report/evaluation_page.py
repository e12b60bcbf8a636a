"""Report as one self-contained HTML page without scripts, for light and dark screens and for print."""

from __future__ import annotations

from bioshards.corpus.ui import html_page as html
from bioshards.corpus.ui.html_page import escape_html

from .report_types import PublishedReport, Report, SuiteReport, TaskReport
from .score_chart import ModelBars, ScoreBar, draw_chart
from .suite_tables import build_models_table, build_suite_tables, format_legend
from .table import (
    INVENTED_SYMBOL,
    Cell,
    ReportTable,
    get_footnote_symbols,
    list_model_labels,
    make_task_cell,
)


def render_page(report: Report) -> str:
    """Render a report as HTML."""
    page_title = f"Evaluation of {', '.join(model['name'] for model in report['models'])}"
    parts = [
        f"<h1>{escape_html(page_title)}</h1>",
        f"<p>{escape_html(format_legend(report))}</p>",
        _render_table(build_models_table(report)),
    ]
    for suite in report["suites"]:
        score_table, *other_tables = build_suite_tables(suite)
        parts += [_render_table(score_table), _render_chart(suite), *map(_render_table, other_tables)]
    return html.render_html_page(escape_html(page_title), parts)


def _render_table(table: ReportTable) -> str:
    rows = [list(map(_render_cell, row)) for row in table.rows]
    body = "".join(
        [
            *(f"<p>{escape_html(paragraph)}</p>" for paragraph in table.intro),
            html.render_table(list(map(_render_cell, table.header)), rows, table.left_aligned),
            *(
                f'<p class="note">{_render_marks(mark)} {escape_html(paragraph)}</p>'
                for mark, paragraph in table.footnotes
            ),
        ]
    )
    if table.is_collapsed:
        return f"<details><summary>{escape_html(table.title)}</summary>{body}</details>"
    return f"<h2>{escape_html(table.title)}</h2>{body}"


def _render_cell(cell: Cell) -> str:
    content = escape_html(cell.text)
    if cell.is_ours:
        content = f'<span class="ours">{content}</span>'
    below = f'<br><span class="note">{escape_html(cell.below)}</span>' if cell.below else ""
    return f"{content}{_render_marks(cell.marks)}{below}"


def _render_marks(marks: str) -> str:
    return f"<sup>{escape_html(marks)}</sup>" if marks else ""


def _render_chart(suite: SuiteReport) -> str:
    """Draw our scores and the charted published ones, for the tasks that we have."""
    tasks = list(suite["tasks"])
    chart_models = [
        ModelBars(label, [_make_our_bar(suite["tasks"][task], label) for task in tasks])
        for label in list_model_labels(suite)
    ]
    if suite["published"]:
        table = suite["published"][0]
        for model in table["charted_models"]:
            bars = [_make_published_bar(suite["tasks"][task], task, table, model) for task in tasks]
            chart_models.append(ModelBars(model, bars, is_published=True))
    caption = (
        "The score of each task; lines are the bootstrap intervals of ours, and hollow bars are published. "
        "Marks are those of the table above; its footnotes hold here too."
    )
    titles = [_get_chart_title(task, suite["tasks"][task]) for task in tasks]
    svg = draw_chart(f"Scores of {suite['title']}", titles, chart_models)
    return f"<figure>{svg}<figcaption>{escape_html(caption)}</figcaption></figure>"


def _get_chart_title(task: str, task_report: TaskReport) -> str:
    """Return a task's title, with the mark of the invented sample."""
    cell = make_task_cell(task, task_report["models"].values())
    return f"{cell.text} {INVENTED_SYMBOL}" if cell.below else cell.text


def _make_our_bar(task: TaskReport, label: str) -> ScoreBar | None:
    scores = task["models"].get(label)
    if scores is None:
        return None
    score = scores["score"]
    return ScoreBar(
        score["mean"], f"{score['mean']:.2f}{get_footnote_symbols(scores)}", score["low"], score["high"]
    )


def _make_published_bar(
    task_report: TaskReport, task: str, table: PublishedReport, model: str
) -> ScoreBar | None:
    """Return a model's published score of our main score's name, or None."""
    main_scores = {scores["main_score"] for scores in task_report["models"].values()}
    for row in table["rows"]:
        if row["task"] == task and row["score_name"] in main_scores and model in row["scores"]:
            score = row["scores"][model]["mean"]
            return ScoreBar(score, f"{score:.2f}")
    return None
