"""HTML report of statistics (directory_stats.py): the tables of text_tables.py, and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from bioshards.corpus.ui import html_page as html
from bioshards.corpus.ui.bar_chart import Bar, render_bar_chart
from bioshards.corpus.ui.html_page import escape_html

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


def render_stats_page(stats: Mapping[str, Any], name: str) -> str:
    """Render the statistics as HTML.

    Args:
        stats: result of :func:`directory_stats.compute_stats`.
        name: name of the directory, for the title.
    """
    title = escape_html(f"{DIRECTORY_TITLES[stats['kind']]}: {name}")
    parts = [
        f"<h1>{title}</h1>",
        f"<p>Made by {escape_html(stats['pipeline'])}.{_describe_padding(stats)}</p>",
    ]
    for table in build_tables(stats):
        parts += [f"<h2>{escape_html(table.title)}</h2>", _render_table(table)]
        if plots := _PLOTS.get((stats["kind"], table.title)):
            parts += plots(stats)
    return html.render_html_page(title, parts)


def _describe_padding(stats: Mapping[str, Any]) -> str:
    """Return a sentence with the share of padding in training batches, or an empty string."""
    train = stats.get("splits", {}).get("train")
    if train is None or train["padding"] is None:
        return ""
    return (
        f" A batch of its training rows, each padded to {stats['length']:,} tokens, is to "
        f"{escape_html(format_share(train['padding']))} padding."
    )


def _render_table(table: StatsTable) -> str:
    head = ["", *map(escape_html, table.header)] if table.header else []
    return html.render_table(head, [list(map(escape_html, row)) for row in table.rows])


def _plot_document_lengths(stats: Mapping[str, Any]) -> Iterator[str]:
    for name, distribution in stats["distributions"].items():
        measure, _, unit = name.partition("_per_")
        yield _plot_histogram(distribution, f"{measure} in a {unit}", f"{unit}s")


def _plot_row_lengths(stats: Mapping[str, Any]) -> Iterator[str]:
    for split, split_stats in stats["splits"].items():
        yield _plot_histogram(split_stats["row_lengths"], "tokens in a row", f"rows of {split}")


def _plot_histogram(distribution: Mapping[str, Any], x_label: str, y_label: str) -> str:
    if not distribution["count"]:
        return ""
    width, bins = distribution["histogram"]["width"], distribution["histogram"]["bins"]
    bars = []
    for histogram_bin in bins:
        range_text = (
            f"{histogram_bin['from']:,}"
            if histogram_bin["from"] == histogram_bin["to"]
            else f"{histogram_bin['from']:,} to {histogram_bin['to']:,}"
        )
        bars.append(
            Bar(
                f"{histogram_bin['from']:,}",
                f"{range_text}: {histogram_bin['count']:,}",
                histogram_bin["count"],
            )
        )
    last = bins[-1]
    caption = (
        f"{y_label.capitalize()} by {x_label}; a bar is {width:,} wide and its label is where it begins."
    )
    if last["to"] - last["from"] >= width:
        caption += f" The last bar is all from {last['from']:,} to {last['to']:,}."
    return _render_figure(render_bar_chart(f"{y_label} by {x_label}", bars, x_label, y_label), caption)


def _plot_by_year(stats: Mapping[str, Any]) -> Iterator[str]:
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
        yield _render_figure(
            render_bar_chart(f"{measure} of {source} by year", bars, "year", measure), caption
        )
        rows = [
            [year, *(format_number(counts[column]) for column in columns)] for year, counts in years.items()
        ]
        full_table = _render_table(StatsTable("", columns, rows))
        yield f"<details><summary>Every year of {escape_html(source)}</summary>{full_table}</details>"


def _render_figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{escape_html(caption)}</figcaption></figure>"


_PLOTS: Final[dict[tuple[str, str], Callable[[Mapping[str, Any]], Iterator[str]]]] = {
    ("documents", LENGTHS_TITLE): _plot_document_lengths,
    ("documents", BY_SOURCE_TITLE): _plot_by_year,
    ("pretraining", LENGTHS_TITLE): _plot_row_lengths,
    ("pretraining", BY_SOURCE_TITLE): _plot_by_year,
}
"""What is drawn below a table, by the directory's kind and the table's title."""
