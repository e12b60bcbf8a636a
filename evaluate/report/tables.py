"""The report (report.py) as tables of plain text, which the page and the Markdown show each in its way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

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
from .scores import scores_table

_UNPUBLISHED: Final[Mapping[str, Any]] = {"models": {}, "rows": [], "notes": [], "blurb": None}
"""In place of a paper's table, for a suite that is none's."""


def how_to_read(report: Mapping[str, Any]) -> str:
    """What the numbers of all tables are."""
    return (
        "Scores are in per cent. Of our models they are means over n seeds, with the standard deviation in "
        f"brackets ({report['deviation']}); below it is the {report['interval']['level']:.0%} interval of "
        f"{report['interval']['resamples']:,} bootstrap resamples, which covers the choice of test documents "
        "(examples, where files name none), not that of seeds. Footnotes say what does not compare."
    )


def models(report: Mapping[str, Any]) -> Table:
    """The models of a report."""
    rows = [
        [
            Cell(one["name"], ours=True),
            Cell(one["type"]),
            Cell(f"{one['parameters']:,}"),
            Cell(one["sha256"][:12]),
            Cell("; ".join(f"{name} {', '.join(of)}" for name, of in one["versions"].items())),
            Cell(", ".join(one["devices"])),
        ]
        for one in report["models"]
    ]
    head = ["Model", "Type", "Parameters", "SHA-256 of weights", "Fine-tuned with", "On"]
    return Table("Models", list(map(Cell, head)), rows, left=(1, 3, 4, 5))


def tables(suite: Mapping[str, Any]) -> Iterator[Table]:
    """The tables of a suite: scores beside published ones, comparisons, and what is behind the scores."""
    published, *variants = suite["published"] or [_UNPUBLISHED]
    yield scores_table(suite, published)
    if any(found["comparisons"] for found in suite["tasks"].values()):
        yield _comparisons(suite)
    if any(scores["changed"] for _, _, scores in each(suite)):
        yield _settings(suite)
    yield _runs(suite)
    yield _figures(suite)
    for table in variants:
        yield _variants(table)


def _comparisons(suite: Mapping[str, Any]) -> Table:
    """Each other model beside the first."""
    notes, rows = Notes(), []
    for task, found in suite["tasks"].items():
        for one in found["comparisons"]:
            both = "".join(symbols(found["models"][one[name]]) for name in ("first", "second"))
            marks = notes.marks("".join(symbol for symbol in SYMBOLS if symbol in both), [])
            names = [Cell(one[name], ours=True) for name in ("second", "first")]
            rows.append([Cell(title(task), marks), *names, *map(Cell, _difference(one))])
    count = sum("p" in one for found in suite["tasks"].values() for one in found["comparisons"])
    said = (
        "By paired bootstrap on the same test examples, of means over the seeds that both models have; p is "
        f"two-sided and of one comparison alone: of {count}, chance makes about {0.05 * count:.1f} smaller "
        "than 0.05."
    )
    head = ["Task", "Model", "Compared with", "Difference", "Interval", "p", "Seeds"]
    return Table("Models compared", list(map(Cell, head)), rows, (1, 2, 6), notes=[("", said), *notes.all()])


def _difference(one: Mapping[str, Any]) -> list[str]:
    if "why_not" in one:
        return [NOTHING, NOTHING, NOTHING, one["why_not"]]
    seeds = ", ".join(map(str, one["seeds"]))
    if one["left_out"]:
        seeds += f" (only one has {', '.join(map(str, one['left_out']))})"
    return [f"{one['difference']:+.2f}", interval(one), f"{one['p']:.3f}", seeds]


def _settings(suite: Mapping[str, Any]) -> Table:
    tasks: dict[tuple[str, str, str, str], list[str]] = {}
    for task, label, scores in each(suite):
        for name, of in scores["changed"].items():
            key = (label, name, _told(of["value"]), _told(of["default"]))
            tasks.setdefault(key, []).append(title(task))
    rows = [[Cell(key[0], ours=True), *map(Cell, key[1:]), Cell(", ".join(of))] for key, of in tasks.items()]
    head = ["Model", "Setting", "Here", "Suite's own", "Tasks"]
    return Table("Settings that are not the suite's", list(map(Cell, head)), rows, (1, 4))


def _told(value: object) -> str:
    return NOTHING if value is None else str(value)


def _runs(suite: Mapping[str, Any]) -> Table:
    rows = []
    for task, label, scores in each(suite):
        sample = ", ".join(f"{part} {number:,}" for part, number in (scores["sampled"] or {}).items())
        cells = [
            scores["metric"] + (f"; legacy: {', '.join(scores['legacy'])}" if scores["legacy"] else ""),
            sample or "all",
            "yes" if scores["verified"] else "no",
            ", ".join(map(str, scores["seeds"])),
            ", ".join(map(str, scores["best_epochs"])),
            _time(scores["seconds"]),
        ]
        rows.append([Cell(title(task)), Cell(label, ours=True), *map(Cell, cells)])
    head = [
        "Task",
        "Model",
        "Measure",
        "Examples",
        "Counts as published",
        "Seeds",
        "Best epochs",
        "Time",
    ]
    return Table("Runs", list(map(Cell, head)), rows, (1, 2, 3, 4, 5, 6), folded=True)


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def _figures(suite: Mapping[str, Any]) -> Table:
    """Every figure of every measure, on test and dev."""
    ours, notes, rows = labels(suite), Notes(), []
    for task, found in suite["tasks"].items():
        for figure in dict.fromkeys(name for scores in found["models"].values() for name in scores["test"]):
            cells: list[Cell] = []
            for label in ours:
                cells += _test_and_dev(found["models"].get(label), figure, notes)
            rows.append([Cell(title(task)), Cell(figure), *cells])
    head = [Cell(f"{label}, {part}", ours=True) for label in ours for part in ("test", "dev")]
    head = [Cell("Task"), Cell("Figure"), *head]
    return Table("All figures", head, rows, (1,), notes=notes.all(), folded=True)


def _test_and_dev(scores: Mapping[str, Any] | None, figure: str, notes: Notes) -> list[Cell]:
    if scores is None:
        return [Cell(NOTHING, ours=True)] * 2
    marks = notes.marks(symbols(scores), [])
    of = [scores[part].get(figure) for part in ("test", "dev")]
    return [Cell(mean(one, len(scores["seeds"])) if one else NOTHING, marks, ours=True) for one in of]


def _variants(published: Mapping[str, Any]) -> Table:
    notes = Notes()
    head = [Cell("Task"), Cell("Figure"), *heads(published, notes)]
    rows = [[*row_head(row, notes), *printed(row, published["models"], notes)] for row in published["rows"]]
    if published["blurb"]:
        scores = (Cell(f"{score:.2f}") for score in published["blurb"].values())
        rows.append([Cell("BLURB score"), Cell(""), *scores])
    before = [f"{published['source']}; {published['runs']}."]
    return Table(published["title"], head, rows, (1,), before, notes.all(), folded=True)
