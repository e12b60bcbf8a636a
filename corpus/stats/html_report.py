"""HTML report of statistics (directory_stats.py): the tables of text_tables.py, and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.ui.chart import Bar, Chart, draw_bars
from bioshards.corpus.ui.html_page import render_page

from .text_tables import (
    BY_SOURCE_TITLE,
    DIRECTORY_TITLES,
    LENGTHS_TITLE,
    YEAR_COLUMNS,
    StatsTable,
    build_tables,
    format_number,
    format_share,
)


@dataclass(frozen=True, slots=True)
class _Figure:
    """A chart with its caption, and the table of all its numbers if there is one."""

    chart: Chart
    caption: str
    table: StatsTable | None = None


def render_stats_page(stats: Mapping[str, Any], name: str) -> str:
    """Render the statistics as HTML.

    Args:
        stats: result of :func:`directory_stats.compute_stats`.
        name: name of the directory, for the title.
    """
    padding = stats.get("splits", {}).get("train", {}).get("padding")
    plots = {title: plot for (kind, title), plot in _PLOTS.items() if kind == stats["kind"]}
    return render_page(
        __package__,
        "stats_page.html",
        title=f"{DIRECTORY_TITLES[stats['kind']]}: {name}",
        stats=stats,
        padding=None if padding is None else format_share(padding),
        sections=[
            {"table": table, "figures": list(plots[table.title](stats)) if table.title in plots else []}
            for table in build_tables(stats)
        ],
    )


def _plot_document_lengths(stats: Mapping[str, Any]) -> Iterator[_Figure]:
    for name, distribution in stats["distributions"].items():
        measure, _, unit = name.partition("_per_")
        yield from _plot_histogram(distribution, f"{measure} in a {unit}", f"{unit}s")


def _plot_row_lengths(stats: Mapping[str, Any]) -> Iterator[_Figure]:
    for split, split_stats in stats["splits"].items():
        yield from _plot_histogram(split_stats["row_lengths"], "tokens in a row", f"rows of {split}")


def _plot_histogram(distribution: Mapping[str, Any], x_label: str, y_label: str) -> Iterator[_Figure]:
    if not distribution["count"]:
        return
    width, bins = distribution["histogram"]["width"], distribution["histogram"]["bins"]
    bars = []
    for start, end, count in ((each["from"], each["to"], each["count"]) for each in bins):
        range_text = f"{start:,}" if start == end else f"{start:,} to {end:,}"
        bars.append(Bar(f"{start:,}", f"{range_text}: {count:,}", count))
    caption = (
        f"{y_label.capitalize()} by {x_label}; a bar is {width:,} wide and its label is where it begins."
    )
    if bins[-1]["to"] - bins[-1]["from"] >= width:
        caption += f" The last bar is all from {bins[-1]['from']:,} to {bins[-1]['to']:,}."
    yield _Figure(draw_bars(f"{y_label} by {x_label}", bars, x_label, y_label), caption)


def _plot_by_year(stats: Mapping[str, Any]) -> Iterator[_Figure]:
    """Plot the text of each source by year, with a table of all years."""
    columns = YEAR_COLUMNS[stats["kind"]]
    measure = columns[-1]
    for source, years in stats["years"].items():
        bars = [
            Bar(year if year.isdecimal() else "?", f"{year}: {counts[measure]:,}", counts[measure])
            for year, counts in years.items()
        ]
        caption = (
            f"{measure.capitalize()} of {source} by year of publication; years without any are left out."
        )
        if bars and bars[-1].label == "?":
            caption += " The last bar is what has no year."
        rows = [
            [year, *(format_number(counts[column]) for column in columns)] for year, counts in years.items()
        ]
        chart = draw_bars(f"{measure} of {source} by year", bars, "year", f"{measure} of {source}")
        yield _Figure(chart, caption, StatsTable(f"Every year of {source}", list(columns), rows))


_PLOTS: Final[dict[tuple[str, str], Callable[[Mapping[str, Any]], Iterator[_Figure]]]] = {
    ("documents", LENGTHS_TITLE): _plot_document_lengths,
    ("documents", BY_SOURCE_TITLE): _plot_by_year,
    ("pretraining", LENGTHS_TITLE): _plot_row_lengths,
    ("pretraining", BY_SOURCE_TITLE): _plot_by_year,
}
"""What is drawn below a table, by the directory's kind and the table's title."""
