"""Our scores beside a paper's, in the paper's layout, and for BLURB its means and score at the bottom."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .blurb import TYPES
from .cells import (
    NOTHING,
    SYMBOLS,
    Cell,
    Notes,
    Table,
    each,
    heads,
    interval,
    labels,
    mean,
    printed,
    row_head,
    symbols,
    title,
)


def scores_table(suite: Mapping[str, Any], published: Mapping[str, Any]) -> Table:
    """Our scores beside a paper's: its rows in its order, and below those that only we have."""
    ours, notes = labels(suite), Notes()
    head = [
        Cell("Task"),
        Cell("Figure"),
        *(Cell(label, ours=True) for label in ours),
        *heads(published, notes),
    ]
    rows = []
    for row in [*published["rows"], *_further(suite, published)]:
        models = suite["tasks"].get(row["task"], {"models": {}})["models"]
        cells = row_head(row, notes)
        cells += [_our(models.get(label), row["figure"], notes) for label in ours]
        rows.append([*cells, *printed(row, published["models"], notes)])
    if suite["blurb"]:
        rows += _blurb(suite, published, notes)
    before = [f"Published scores: {published['source']}; {published['runs']}."] if published["models"] else []
    without = dict.fromkeys(
        title(row["task"]) for row in published["rows"] if row["task"] not in suite["tasks"]
    )
    if without and not suite["blurb"]:
        before.append(f"Without results here: {', '.join(without)}.")
    all_notes = [*(("", note) for note in published["notes"]), *notes.all()]
    return Table(suite["title"], head, rows, (1,), before, all_notes)


def _further(suite: Mapping[str, Any], published: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows for scores that the paper does not have."""
    known = {(row["task"], row["figure"]) for row in published["rows"]}
    ours = dict.fromkeys((task, scores["main"]) for task, _, scores in each(suite))
    for task, figure in ours:
        if (task, figure) not in known:
            yield {"task": task, "figure": figure, "scores": {}, "notes": []}


def _our(scores: Mapping[str, Any] | None, figure: str, notes: Notes) -> Cell:
    if scores is None or figure not in scores["test"]:
        return Cell(NOTHING, ours=True)
    marks = notes.marks(symbols(scores), scores["notes"])
    of, seeds = scores["test"][figure], len(scores["seeds"])
    if figure != scores["main"]:
        return Cell(mean(of, seeds), marks, ours=True)
    return Cell(f"{mean(of, seeds)} n={seeds}", marks, interval(scores["score"]), ours=True)


def _blurb(suite: Mapping[str, Any], published: Mapping[str, Any], notes: Notes) -> Iterator[list[Cell]]:
    """Means by type of task, the BLURB score, and what can be compared where it is missing."""
    found = suite["blurb"]
    ours, theirs = labels(suite), published["models"]

    def marks(label: str, tasks: Sequence[str], texts: Sequence[str] = ()) -> str:
        of = [scores for task, name, scores in each(suite) if name == label and task in tasks]
        return notes.marks("".join(one for one in SYMBOLS if any(one in symbols(s) for s in of)), texts)

    for name, tasks in TYPES.items():
        row = [Cell(f"{name}, mean of {len(tasks)}" if len(tasks) > 1 else name), Cell("")]
        for label in ours:
            mean = found["models"][label]["types"][name]
            row.append(_whole(mean, marks(label, tasks) if mean is not None else ""))
        yield row + [Cell(f"{found['published'][model]['types'][name]:.2f}") for model in theirs]
    row = [Cell("BLURB score"), Cell("")]
    for label in ours:
        of = found["models"][label]
        missing = [f"No BLURB score without {', '.join(map(title, of['missing']))}."] if of["missing"] else []
        row.append(_whole(of["score"], marks(label, list(suite["tasks"]) if not missing else [], missing)))
    yield row + [Cell(f"{published['blurb'][model]:.2f}") for model in theirs]
    sets = found["in_common"]["tasks"]
    if sets and any(one["missing"] for one in found["models"].values()):
        said = [
            "Not the BLURB score: the same average of types over the sets alone that all models here have, "
            f"{', '.join(map(title, sets))}."
        ]
        means = found["in_common"]["models"]
        row = [Cell(f"Average over {len(sets)} of 13 sets", notes.marks("", said)), Cell("")]
        row += [_whole(means[label], marks(label, sets)) for label in ours]
        yield row + [Cell(f"{means[model]:.2f}") for model in theirs]


def _whole(mean: float | None, marks: str) -> Cell:
    return Cell(NOTHING if mean is None else f"{mean:.2f}", marks, ours=True)
