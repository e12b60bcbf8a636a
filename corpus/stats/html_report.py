"""HTML report of statistics (directory_stats.py): the tables of text_tables.py, and charts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.manifest import DocumentsManifest
from bioshards.corpus.stats.document_stats import summarise_documents
from bioshards.corpus.stats.document_tally import DocumentTally
from bioshards.corpus.stats.reject_samples import read_samples
from bioshards.corpus.stats.text_tables import (
    BY_SOURCE_TITLE,
    DIRECTORY_TITLES,
    LENGTHS_TITLE,
    RECORDS_TITLE,
    VALUES_COLUMNS,
    YEAR_COLUMNS,
    StatsTable,
    build_tables,
    format_number,
    format_share,
)
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.chart import Bar, Chart, RowBar, draw_bars, draw_rows
from bioshards.corpus.ui.html_page import render_page

FILE: Final = "report.html"
"""The page in a directory of documents."""


@dataclass(frozen=True, slots=True)
class _Figure:
    """A chart with its caption, and the table of all its numbers if there is one."""

    chart: Chart
    caption: str
    table: StatsTable | None = None


@dataclass(frozen=True, slots=True)
class _Section:
    title: str
    table: StatsTable | None
    figures: list[_Figure]


def render_stats_page(stats: Mapping[str, Any], name: str) -> str:
    """Render the statistics as HTML.

    Args:
        stats: result of :func:`directory_stats.compute_stats`.
        name: name of the directory, for the title.
    """
    padding = stats.get("splits", {}).get("train", {}).get("padding")
    return render_page(
        __package__,
        "stats_page.html",
        title=f"{DIRECTORY_TITLES[stats['kind']]}: {name}",
        stats=stats,
        padding=None if padding is None else format_share(padding),
        notes=stats.get("warnings", ()),
        notice=stats.get("notice", ""),
        headline=_HEADLINES[stats["kind"]](stats),
        sections=_arrange_sections(stats),
    )


def _arrange_sections(stats: Mapping[str, Any]) -> list[_Section]:
    """Return a section for each table with its charts; row charts have all numbers and replace tables."""
    sections: list[_Section] = []
    for table in build_tables(stats):
        if table.title in _ROW_CHARTS:
            title = _ROW_CHARTS[table.title]
            if not sections or sections[-1].title != title:
                sections.append(_Section(title, None, []))
            sections[-1].figures.append(_plot_rows(table, stats))
        else:
            plot = _PLOTS.get((stats["kind"], table.title))
            sections.append(_Section(table.title, table, list(plot(stats)) if plot else []))
    return sections


def render_documents_page(
    storage: Storage, folder: str, manifest: DocumentsManifest, tally: DocumentTally
) -> str:
    """Render the page of document shards whose documents are counted; it does not name the directory.

    Args:
        tally: counts of all documents.
    """
    samples = read_samples(storage, folder)
    stats = summarise_documents(manifest, tally, manifest.counts.characters, samples)
    return render_stats_page({"pipeline": manifest.pipeline, "kind": "documents", **stats}, manifest.pipeline)


def _plot_rows(table: StatsTable, stats: Mapping[str, Any]) -> _Figure:
    if table.title == RECORDS_TITLE:
        bars = list(iter_funnel_bars(stats["funnel"]))
        return _Figure(draw_rows("records", bars), "What became of the records of the source files.")
    counts = [*stats["values"][VALUES_COLUMNS[table.title]]["top"].values(), 0]  # others have no bar
    bars = [
        RowBar(name, f"{number} ({share})", count)
        for (name, number, share), count in zip(table.rows, counts, strict=False)
    ]
    return _Figure(draw_rows(f"documents by {table.title.lower()}", bars), "")


def iter_funnel_bars(funnel: Mapping[str, int]) -> Iterator[RowBar]:
    """Yield bars of all records and of kept ones, and between them of each reason, where those left end."""
    left = funnel.get("records", 0)
    for name, count in funnel.items():
        is_part = name not in ("records", "kept")
        left -= count if is_part else 0
        yield RowBar(name, f"{count:,}", count, start=max(0, left) if is_part else 0, colour=int(is_part))


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
    measure = columns[0]
    for source, years in stats["years"].items():
        known = sorted(int(year) for year in years if year.isdecimal())
        shown = [str(year) for year in range(known[0], known[-1] + 1)] if known else []
        shown += [year for year in years if not year.isdecimal()]
        numbers = {year: years[year][measure] if year in years else 0 for year in shown}
        bars = [
            Bar(year if year.isdecimal() else "?", f"{year}: {number:,}", number)
            for year, number in numbers.items()
        ]
        caption = f"{measure.capitalize()} of {source} by year of publication."
        if bars and bars[-1].label == "?":
            caption += " The last bar is what has no year."
        rows = [
            [year, *(format_number(counts[column]) for column in columns)] for year, counts in years.items()
        ]
        chart = draw_bars(f"{measure} of {source} by year", bars, "year", f"{measure} of {source}")
        yield _Figure(chart, caption, StatsTable(f"Every year of {source}", list(columns), rows))


def _headline_of_sets(stats: Mapping[str, Any]) -> list[tuple[str, str]]:
    train = stats["splits"].get("train", {"rows": 0, "tokens": 0})
    return [(format_number(train[name]), f"{name} to train on") for name in ("rows", "tokens")]


_HEADLINES: Final[dict[str, Callable[[Mapping[str, Any]], list[tuple[str, str]]]]] = {
    "documents": lambda stats: [
        (format_number(stats[name]), name) for name in ("documents", "sentences", "words")
    ],
    "pretraining": _headline_of_sets,
    "words": lambda stats: [],
    "vocabulary": lambda stats: [],
}
"""Numbers at the top of the page, each with its name, by the directory's kind."""
_PLOTS: Final[dict[tuple[str, str], Callable[[Mapping[str, Any]], Iterator[_Figure]]]] = {
    ("documents", LENGTHS_TITLE): _plot_document_lengths,
    ("documents", BY_SOURCE_TITLE): _plot_by_year,
    ("pretraining", LENGTHS_TITLE): _plot_row_lengths,
    ("pretraining", BY_SOURCE_TITLE): _plot_by_year,
}
"""What is drawn below a table, by the directory's kind and the table's title."""
_ROW_CHARTS: Final = {
    RECORDS_TITLE: RECORDS_TITLE,
    **dict.fromkeys(VALUES_COLUMNS, "By language, licence, type and journal"),
}
"""Tables that are drawn as a row of bars, by their title: the title of the section."""
