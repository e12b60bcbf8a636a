"""The report (report.py) as one HTML page: no script, nothing from elsewhere, for light, dark and paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bioshards.corpus import page as html
from bioshards.corpus.page import text

from .cells import Cell, Table, labels, symbols, title
from .chart import Bar, Model, chart
from .tables import how_to_read, models, tables


def page(report: Mapping[str, Any]) -> str:
    """The page of a report (gathering.gather)."""
    name = f"Evaluation of {', '.join(one['name'] for one in report['models'])}"
    parts = [f"<h1>{text(name)}</h1>", f"<p>{text(how_to_read(report))}</p>", _table(models(report))]
    for suite in report["suites"]:
        first, *others = tables(suite)
        parts += [_table(first), _chart(suite), *map(_table, others)]
    return html.document(text(name), parts)


def _table(table: Table) -> str:
    rows = [list(map(_cell, row)) for row in table.rows]
    body = "".join(
        [
            *(f"<p>{text(said)}</p>" for said in table.before),
            html.table(list(map(_cell, table.head)), rows, table.left),
            *(f'<p class="note">{_marks(mark)} {text(said)}</p>' for mark, said in table.notes),
        ]
    )
    if table.folded:
        return f"<details><summary>{text(table.title)}</summary>{body}</details>"
    return f"<h2>{text(table.title)}</h2>{body}"


def _cell(cell: Cell) -> str:
    shown = text(cell.text)
    if cell.ours:
        shown = f'<span class="ours">{shown}</span>'
    below = f'<br><span class="note">{text(cell.below)}</span>' if cell.below else ""
    return f"{shown}{_marks(cell.marks)}{below}"


def _marks(marks: str) -> str:
    return f"<sup>{text(marks)}</sup>" if marks else ""


def _chart(suite: Mapping[str, Any]) -> str:
    """Our scores and the best known published ones, of tasks that we have."""
    tasks = list(suite["tasks"])
    shown = [Model(label, [_ours(suite["tasks"][task], label) for task in tasks]) for label in labels(suite)]
    if suite["published"]:
        table = suite["published"][0]
        for model in table["charted"]:
            bars = [_theirs(suite["tasks"][task], task, table, model) for task in tasks]
            shown.append(Model(model, bars, published=True))
    caption = (
        "The score of each task; lines are the bootstrap intervals of ours, and hollow bars are published. "
        "Marks are those of the table above; its footnotes hold here too."
    )
    svg = chart(f"Scores of {suite['title']}", list(map(title, tasks)), shown)
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"


def _ours(task: Mapping[str, Any], label: str) -> Bar | None:
    scores = task["models"].get(label)
    if scores is None:
        return None
    of = scores["score"]
    return Bar(of["mean"], f"{of['mean']:.2f}{symbols(scores)}", of["low"], of["high"])


def _theirs(found: Mapping[str, Any], task: str, table: Mapping[str, Any], model: str) -> Bar | None:
    """A model's published score, by the figure that is ours."""
    main = {scores["main"] for scores in found["models"].values()}
    for row in table["rows"]:
        if row["task"] == task and row["figure"] in main and model in row["scores"]:
            score = row["scores"][model]["mean"]
            return Bar(score, f"{score:.2f}")
    return None
