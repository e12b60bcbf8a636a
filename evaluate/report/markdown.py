"""The report (report.py) as Markdown of GitHub's kind: to be pasted into a README or an issue."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from bioshards.corpus.page import visible

from .cells import Cell, Table
from .tables import how_to_read, models, tables

_SPECIAL: Final = re.compile(r"[\\`*_|~$]|](?=[(\[:])")
"""What would be mark-up within a line."""


def markdown(report: Mapping[str, Any]) -> str:
    """The Markdown of a report (gathering.gather)."""
    parts = ["# Evaluation", how_to_read(report), _table(models(report), 2)]
    for suite in report["suites"]:
        first, *others = tables(suite)
        parts += [_table(first, 2), *(_table(table, 3) for table in others)]
    return "\n\n".join(parts) + "\n"


def _table(table: Table, level: int) -> str:
    sides = ("---" if at in {0, *table.left} else "--:" for at in range(len(table.head)))
    rows = [_row(map(_cell, table.head)), _row(sides), *(_row(map(_cell, row)) for row in table.rows)]
    parts = [*map(_text, table.before), "\n".join(rows), "\n".join(_note(*note) for note in table.notes)]
    body = "\n\n".join(filter(None, parts))
    if table.folded:
        return f"<details><summary>{html.escape(visible(table.title, ' '))}</summary>\n\n{body}\n\n</details>"
    return f"{'#' * level} {_text(table.title)}\n\n{body}"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell) -> str:
    marks = f" <sup>{cell.marks}</sup>" if cell.marks else ""
    below = f"<br>{_text(cell.below)}" if cell.below else ""
    return f"{_text(cell.text)}{marks}{below}"


def _note(mark: str, text: str) -> str:
    return f"- <sup>{mark}</sup> {_text(text)}" if mark else f"- {_text(text)}"


def _text(text: str) -> str:
    """Text that is no mark-up, in one line."""
    return html.escape(_SPECIAL.sub(r"\\\g<0>", visible(text, keep=" ")), quote=False)
