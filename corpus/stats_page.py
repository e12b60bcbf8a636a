"""Figures (stats.py) as one HTML page: the tables of a terminal, and what only a picture shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import page as html
from .bar_chart import Bar, chart
from .page import text
from .stats_tables import BY_SOURCE, BY_YEAR, LENGTHS, NAMES, Table, number, share, tables


def page(figures: Mapping[str, Any], name: str) -> str:
    """The page of a directory's figures.

    Args:
        name: what to call the directory, its own name for example.
    """
    title = text(f"{NAMES[figures['kind']]}: {name}")
    parts = [f"<h1>{title}</h1>", f"<p>Made by {text(figures['pipeline'])}.{_answer(figures)}</p>"]
    for table in tables(figures):
        parts += [f"<h2>{text(table.title)}</h2>", _table(table)]
        if plots := _PLOTS.get((figures["kind"], table.title)):
            parts += plots(figures)
    return html.document(title, parts)


def _answer(figures: Mapping[str, Any]) -> str:
    """The sentence that a trainer looks for."""
    train = figures.get("splits", {}).get("train")
    if train is None or train["padding"] is None:
        return ""
    return (
        f" A batch of its training rows, each padded to {figures['length']:,} tokens, is to "
        f"{text(share(train['padding']))} padding."
    )


def _table(table: Table) -> str:
    head = ["", *map(text, table.head)] if table.head else []
    return html.table(head, [list(map(text, row)) for row in table.rows])


def _document_lengths(figures: Mapping[str, Any]) -> Iterator[str]:
    for name, found in figures["distributions"].items():
        what, _, of = name.partition("_per_")
        yield _histogram(found, f"{what} in a {of}", f"{of}s")


def _row_lengths(figures: Mapping[str, Any]) -> Iterator[str]:
    for split, found in figures["splits"].items():
        yield _histogram(found["row_lengths"], "tokens in a row", f"rows of {split}")


def _histogram(found: Mapping[str, Any], across: str, up: str) -> str:
    if not found["count"]:
        return ""
    width, bins = found["histogram"]["width"], found["histogram"]["bins"]
    bars = []
    for one in bins:
        said = f"{one['from']:,}" if one["from"] == one["to"] else f"{one['from']:,} to {one['to']:,}"
        bars.append(Bar(f"{one['from']:,}", f"{said}: {one['count']:,}", one["count"]))
    last = bins[-1]
    caption = f"{up.capitalize()} by {across}; a bar is {width:,} wide and its label is where it begins."
    if last["to"] - last["from"] >= width:
        caption += f" The last bar is all from {last['from']:,} to {last['to']:,}."
    return _figure(chart(f"{up} by {across}", bars, across, up), caption)


def _by_year(figures: Mapping[str, Any]) -> Iterator[str]:
    """Of each source a chart of its text by year, and a table with every year's numbers."""
    columns = BY_YEAR[figures["kind"]]
    what = columns[-1]
    for source, years in figures["years"].items():
        bars = [
            Bar(year if year.isdecimal() else "?", f"{year}: {of[what]:,}", of[what])
            for year, of in years.items()
        ]
        caption = f"{what.capitalize()} of {source} by year of publication; years without any are left out."
        if bars and bars[-1].label == "?":
            caption += " The last bar is what has no year."
        yield _figure(chart(f"{what} of {source} by year", bars, "year", what), caption)
        rows = [[year, *(number(of[column]) for column in columns)] for year, of in years.items()]
        every = _table(Table("", columns, rows))
        yield f"<details><summary>Every year of {text(source)}</summary>{every}</details>"


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{text(caption)}</figcaption></figure>"


_PLOTS: Final[dict[tuple[str, str], Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    ("documents", LENGTHS): _document_lengths,
    ("documents", BY_SOURCE): _by_year,
    ("pretraining", LENGTHS): _row_lengths,
    ("pretraining", BY_SOURCE): _by_year,
}
"""What is drawn below a table, by the directory's kind and the table's title."""
