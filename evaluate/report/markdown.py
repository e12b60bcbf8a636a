"""Report as GitHub Markdown."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from typing import Final

from bioshards.corpus.ui.html_page import spell_out_invisible
from bioshards.evaluate.report.report_types import Report
from bioshards.evaluate.report.suite_tables import build_models_table, build_suite_tables, format_legend
from bioshards.evaluate.report.table import Cell, ReportTable

_SPECIAL_CHARACTERS: Final = re.compile(r"[\\`*_|~$]|](?=[(\[:])")
"""Characters that are inline markup."""


def render_markdown(report: Report) -> str:
    """Render a report as Markdown."""
    parts = ["# Evaluation", format_legend(report), _render_table(build_models_table(report), 2)]
    for suite in report["suites"]:
        score_table, *other_tables = build_suite_tables(suite)
        parts += [_render_table(score_table, 2), *(_render_table(table, 3) for table in other_tables)]
    return "\n\n".join(parts) + "\n"


def _render_table(table: ReportTable, level: int) -> str:
    alignments = ("---" if index in {0, *table.left_aligned} else "--:" for index in range(len(table.header)))
    rows = [
        _render_row(map(_render_cell, table.header)),
        _render_row(alignments),
        *(_render_row(map(_render_cell, row)) for row in table.rows),
    ]
    parts = [
        *map(_escape_text, table.intro),
        "\n".join(rows),
        "\n".join(_render_footnote(*footnote) for footnote in table.footnotes),
    ]
    body = "\n\n".join(filter(None, parts))
    if table.is_collapsed:
        title = html.escape(spell_out_invisible(table.title, " "))
        return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
    return f"{'#' * level} {_escape_text(table.title)}\n\n{body}"


def _render_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _render_cell(cell: Cell) -> str:
    marks = f" <sup>{cell.marks}</sup>" if cell.marks else ""
    below = f"<br>{_escape_text(cell.below)}" if cell.below else ""
    return f"{_escape_text(cell.text)}{marks}{below}"


def _render_footnote(mark: str, text: str) -> str:
    return f"- <sup>{mark}</sup> {_escape_text(text)}" if mark else f"- {_escape_text(text)}"


def _escape_text(text: str) -> str:
    """Escape Markdown and HTML, in one line."""
    return html.escape(_SPECIAL_CHARACTERS.sub(r"\\\g<0>", spell_out_invisible(text, keep=" ")), quote=False)
