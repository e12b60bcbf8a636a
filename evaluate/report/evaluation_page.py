"""Report as one self-contained HTML page without scripts, for light and dark screens and for print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bioshards.corpus.ui.html_page import NUM_COLOURS, Bar
from bioshards.corpus.ui.html_page import render_page as render_template
from bioshards.evaluate.report.blurb import BLURB_TASKS
from bioshards.evaluate.report.report_types import PublishedReport, Report, SuiteReport, TaskReport
from bioshards.evaluate.report.suite_tables import build_models_table, build_suite_tables, format_legend
from bioshards.evaluate.report.table import (
    INVENTED_SYMBOL,
    collect_footnote_symbols,
    get_footnote_symbols,
    list_model_labels,
    make_task_cell,
)


@dataclass(frozen=True, slots=True)
class Score:
    """Score in per cent with the label beside its bar; ``low`` and ``high`` if it has an interval."""

    value: float
    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ScoreChart:
    """Bars of models below each task's title, from 0 to 100 per cent.

    Attributes:
        legend: name of each model, and how its bars look.
        tasks: title of each task, and the label, the text shown on hover and the bar of each score.
    """

    legend: list[tuple[str, Bar]]
    tasks: list[tuple[str, list[tuple[str, str, Bar]]]]

    def add_model(self, name: str, scores: Sequence[Score | None], is_hollow: bool = False) -> None:
        """Add a model with its score of each task; None without one."""
        colour = len(self.legend) % NUM_COLOURS
        self.legend.append((name, Bar(100, colour=colour, is_hollow=is_hollow)))
        for (task, bars), score in zip(self.tasks, scores, strict=True):
            if score:
                interval = None
                if score.low is not None and score.high is not None:
                    interval = max(0.0, score.low), max(0.0, score.high)
                bar = Bar(max(0.0, score.value), 0, colour, is_hollow, interval)
                bars.append((score.label, f"{name}, {task}: {score.label}", bar))


def render_page(report: Report) -> str:
    """Render a report as HTML."""
    return render_template(
        __package__,
        "evaluation_page.html",
        title=f"Evaluation of {', '.join(model['name'] for model in report['models'])}",
        headline=[figure for suite in report["suites"] for figure in _list_blurb_scores(suite)],
        legend=format_legend(report),
        models_table=build_models_table(report),
        suites=[(_draw_suite(suite), list(build_suite_tables(suite))) for suite in report["suites"]],
    )


def _list_blurb_scores(suite: SuiteReport) -> list[tuple[str, str]]:
    """Return each model's BLURB score with its name, or how many of the tasks have a score."""
    models = suite["blurb"]["models"] if suite["blurb"] else {}
    return [
        (
            f"{model['score']:.2f}{collect_footnote_symbols(suite, label, list(suite['tasks']))}",
            f"BLURB score of {label}",
        )
        if model["score"] is not None
        else (
            f"{len(BLURB_TASKS) - len(model['missing_tasks'])} of {len(BLURB_TASKS)}",
            f"BLURB tasks: {label}",
        )
        for label, model in models.items()
    ]


def _draw_suite(suite: SuiteReport) -> ScoreChart:
    """Draw our scores and the charted published ones, for the tasks that we have."""
    tasks = suite["tasks"]
    chart = ScoreChart([], [(_get_chart_title(task, report), []) for task, report in tasks.items()])
    for label in list_model_labels(suite):
        chart.add_model(label, [_get_our_score(report, label) for report in tasks.values()])
    for table in suite["published"][:1]:
        for model in table["charted_models"]:
            scores = [_get_published_score(tasks[task], task, table, model) for task in tasks]
            chart.add_model(model, scores, is_hollow=True)
    return chart


def _get_chart_title(task: str, task_report: TaskReport) -> str:
    """Return a task's title, with the mark of the invented sample."""
    cell = make_task_cell(task, task_report["models"].values())
    return f"{cell.text} {INVENTED_SYMBOL}" if cell.below else cell.text


def _get_our_score(task: TaskReport, label: str) -> Score | None:
    if label not in task["models"]:
        return None
    scores = task["models"][label]
    score = scores["score"]
    return Score(
        score["mean"], f"{score['mean']:.2f}{get_footnote_symbols(scores)}", score["low"], score["high"]
    )


def _get_published_score(
    task_report: TaskReport, task: str, table: PublishedReport, model: str
) -> Score | None:
    """Return a model's published score of our main score's name, or None."""
    main_scores = {scores["main_score"] for scores in task_report["models"].values()}
    for row in table["rows"]:
        if row["task"] == task and row["score_name"] in main_scores and model in row["scores"]:
            score = row["scores"][model]["mean"]
            return Score(score, f"{score:.2f}")
    return None
