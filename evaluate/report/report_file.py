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
from bioshards.evaluate.report.blurb import BLURB_TASKS, compute_blurb
from bioshards.evaluate.report.report_data import Report, TaskScores, build_report, main_scores_by_model
from bioshards.evaluate.report.tables import (
    Cell,
    ReportTable,
    build_models_table,
    build_suite_tables,
    find_suite_title,
    format_legend,
    merge_symbols,
)
from bioshards.evaluate.runs import results

_MARKDOWN_MARKUP: Final = re.compile(r"[\\`*_|~$]|](?=[(\[:])")
"""Characters that are inline markup."""


def render_page(report: Report) -> str:
    """Render a report as one self-contained HTML page without scripts, for screens and for print."""
    suites = report.scores_by_suite()
    return html_page.render_page(
        __package__,
        "evaluation_page.html",
        title=f"Evaluation of {', '.join(model.name for model in report.models)}",
        headline=list(_list_blurb_scores(suites.get("blurb", ()))),
        legend=format_legend(),
        models_table=build_models_table(report),
        tables=[table for suite in suites for table in build_suite_tables(report, suite)],
    )


def _list_blurb_scores(scores: Sequence[TaskScores]) -> Iterator[tuple[str, str]]:
    """Yield each model's BLURB score with its name, or how many of the tasks have a score."""
    for label, means in main_scores_by_model(scores).items():
        blurb = compute_blurb(means)
        if blurb.score is not None:
            symbols = merge_symbols(each for each in scores if each.model == label)
            yield f"{blurb.score:.2f}{symbols}", f"BLURB score of {label}"
        else:
            num_tasks = len(BLURB_TASKS) - len(blurb.missing_tasks)
            yield f"{num_tasks} of {len(BLURB_TASKS)}", f"BLURB tasks: {label}"


def render_markdown(report: Report) -> str:
    """Render a report as GitHub Markdown."""
    parts = ["# Evaluation", format_legend(), _render_table(build_models_table(report), 2)]
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
    below = f"<br>{_escape_text(cell.below)}" if cell.below else ""
    return f"{_escape_text(cell.text)}{marks}{below}"


def _escape_text(text: str) -> str:
    """Escape Markdown and HTML, in one line."""
    return html.escape(_MARKDOWN_MARKUP.sub(r"\\\g<0>", spell_out_invisible(text, keep=" ")), quote=False)


def _format_json(report: Report) -> str:
    return json.dumps(report.to_json(), indent=1, ensure_ascii=False) + "\n"


FORMATTERS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".html": render_page,
    ".md": render_markdown,
    ".json": _format_json,
}
"""Renderer by suffix of the report file."""


def write_report(storage: LocalStorage, sources: Sequence[str], output: str) -> str:
    """Write the report of results, and return the main scores and a summary as text.

    Args:
        sources: result files and directories of results.
        output: path with suffix ``.html``, ``.md`` or ``.json``; an existing file is replaced.

    Raises:
        InvalidValueError: the suffix is unknown.
        InputNotFoundError: a source does not exist.
        ResultError: see :func:`results.find_results` and :func:`report_data.build_report`.
    """
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in FORMATTERS:
        raise InvalidValueError(f"--output {output}: a report is .html, .md or .json")
    result_by_path = results.find_results(storage, sources)
    report = build_report(result_by_path)
    with storage.write(output) as file:
        file.write(FORMATTERS[suffix](report).encode("utf-8", "backslashreplace"))
    lines, counts = list[str](), []
    for suite, scores in report.scores_by_suite().items():
        lines += _format_scores(find_suite_title(suite), scores)
        num_tasks = len({each.task for each in scores})
        counts.append(f"{num_tasks} {'task' if num_tasks == 1 else 'tasks'} of {suite}")
    return "\n".join([*lines, f"{len(result_by_path)} results: {', '.join(counts)}", f"report: {output}"])


def _format_scores(title: str, scores: Sequence[TaskScores]) -> Iterator[str]:
    """Yield the main score of each task and model beside the majority baseline's."""
    rows = [(title, "model", "score", "", "majority class", "")]
    for each in scores:
        flags = {
            each.file_status: each.file_status != "verified",
            "changed settings": bool(each.changed_settings),
            "sample of the data": each.sample_sizes is not None,
        }
        limits = [name for name, is_set in flags.items() if is_set]
        status = f"({', '.join(limits)})" if limits else ""
        mean, majority = f"{each.score.mean:.2f}", f"{each.majority[each.main_score]:.2f}"
        rows.append((f"  {each.title}", each.model, each.main_score, mean, majority, status))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, label, name, score, majority, status in rows:
        yield (
            f"{first:<{widths[0]}}  {label:<{widths[1]}}  {name:<{widths[2]}}  {score:>{widths[3]}}  "
            f"{majority:>{widths[4]}}  {status}"
        ).rstrip()
