"""Write a report of result files as HTML, Markdown or JSON (``evaluate report``)."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page
from bioshards.corpus.ui.html_page import spell_out_invisible
from bioshards.evaluate.report.blurb import BLURB_TASKS
from bioshards.evaluate.report.report_data import (
    MetricLookup,
    SettingsLookup,
    build_report,
    find_metric,
    find_suite_settings,
)
from bioshards.evaluate.report.report_types import Report, SuiteReport
from bioshards.evaluate.report.tables import (
    Cell,
    ReportTable,
    build_models_table,
    build_suite_tables,
    collect_footnote_symbols,
    format_legend,
    get_task_title,
    iter_scores,
)
from bioshards.evaluate.runs import results

_MARKDOWN_MARKUP: Final = re.compile(r"[\\`*_|~$]|](?=[(\[:])")
"""Characters that are inline markup."""


def render_page(report: Report) -> str:
    """Render a report as one self-contained HTML page without scripts, for screens and for print."""
    return html_page.render_page(
        __package__,
        "evaluation_page.html",
        title=f"Evaluation of {', '.join(model['name'] for model in report['models'])}",
        headline=[figure for suite in report["suites"] for figure in _list_blurb_scores(suite)],
        legend=format_legend(report),
        models_table=build_models_table(report),
        tables=[table for suite in report["suites"] for table in build_suite_tables(suite)],
    )


def _list_blurb_scores(suite: SuiteReport) -> Iterator[tuple[str, str]]:
    """Yield each model's BLURB score with its name, or how many of the tasks have a score."""
    for label, model in (suite["blurb"]["models"] if suite["blurb"] else {}).items():
        if model["score"] is not None:
            symbols = collect_footnote_symbols(suite, label, suite["tasks"])
            yield f"{model['score']:.2f}{symbols}", f"BLURB score of {label}"
        else:
            num_tasks = len(BLURB_TASKS) - len(model["missing_tasks"])
            yield f"{num_tasks} of {len(BLURB_TASKS)}", f"BLURB tasks: {label}"


def render_markdown(report: Report) -> str:
    """Render a report as GitHub Markdown."""
    parts = ["# Evaluation", format_legend(report), _render_table(build_models_table(report), 2)]
    for suite in report["suites"]:
        parts += [
            _render_table(table, 2 + (index > 0)) for index, table in enumerate(build_suite_tables(suite))
        ]
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
    below = f"<br>{_escape_text(cell.below)}" if cell.below else ""
    return f"{_escape_text(cell.text)}{marks}{below}"


def _escape_text(text: str) -> str:
    """Escape Markdown and HTML, in one line."""
    return html.escape(_MARKDOWN_MARKUP.sub(r"\\\g<0>", spell_out_invisible(text, keep=" ")), quote=False)


def _format_json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


FORMATTERS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".html": render_page,
    ".md": render_markdown,
    ".json": _format_json,
}
"""Renderer by suffix of the report file."""


def write_report(
    storage: LocalStorage,
    sources: Sequence[str],
    output: str,
    find_metric: MetricLookup = find_metric,
    find_defaults: SettingsLookup = find_suite_settings,
) -> str:
    """Write the report of results, and return the main scores and a summary as text.

    Args:
        sources: result files and directories of results.
        output: path with suffix ``.html``, ``.md`` or ``.json``; an existing file is replaced.
        find_metric: see :func:`report_data.build_report`.
        find_defaults: see :func:`report_data.build_report`.

    Raises:
        InvalidValueError: the suffix is unknown.
        InputNotFoundError: a source does not exist.
        ResultError: see :func:`results.find_results` and :func:`report_data.build_report`.
    """
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in FORMATTERS:
        raise InvalidValueError(f"--output {output}: a report is .html, .md or .json")
    result_by_path = results.find_results(storage, sources)
    report = build_report(result_by_path, find_metric, find_defaults)
    with storage.write(output) as file:
        file.write(FORMATTERS[suffix](report).encode("utf-8", "backslashreplace"))
    lines = [line for suite in report["suites"] for line in _format_scores(suite)]
    counts = [
        f"{len(suite['tasks'])} {'task' if len(suite['tasks']) == 1 else 'tasks'} of {suite['suite']}"
        for suite in report["suites"]
    ]
    return "\n".join([*lines, f"{len(result_by_path)} results: {', '.join(counts)}", f"report: {output}"])


def _format_scores(suite: SuiteReport) -> Iterator[str]:
    """Yield the main score of each task and model beside the majority baseline's."""
    rows = [(suite["title"], "model", "score", "", "majority class", "")]
    for task, label, scores in iter_scores(suite):
        name = scores["main_score"]
        flags = {
            scores["file_status"]: scores["file_status"] != "verified",
            "changed settings": bool(scores["changed_settings"]),
            "sample of the data": scores["sample_sizes"] is not None,
        }
        limits = [name for name, is_set in flags.items() if is_set]
        status = f"({', '.join(limits)})" if limits else ""
        numbers = (f"{scores['score']['mean']:.2f}", f"{scores['majority'][name]:.2f}")
        rows.append((f"  {get_task_title(task)}", label, name, numbers[0], numbers[1], status))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for title, label, name, score, majority, status in rows:
        yield (
            f"{title:<{widths[0]}}  {label:<{widths[1]}}  {name:<{widths[2]}}  {score:>{widths[3]}}  "
            f"{majority:>{widths[4]}}  {status}"
        ).rstrip()
