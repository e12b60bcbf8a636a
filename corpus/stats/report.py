"""Statistics (directory_stats.py) as tables on a terminal, and as an HTML page with charts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.errors import BadFileError, InputNotFoundError
from bioshards.corpus.manifest import DocumentsManifest
from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.stats.document_stats import (
    UNKNOWN,
    DocumentTally,
    draw_documents,
    read_samples,
    summarise_documents,
)
from bioshards.corpus.stats.source_comparison import SourceComparison, compare_with_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.html_page import Bar, format_percent, render_page, spell_out_invisible

FILE: Final = "report.html"
"""The page in a directory of documents."""
_TITLES: Final = {"documents": "Document shards", "pretraining": "Pretraining set"}
_VALUES_COLUMNS: Final = {
    "Language": "language",
    "Licence": "licence",
    "Article type": "article_type",
    "Journal": "journal",
}
"""Column by the title of the table of its values."""
_LABEL_NAMES: Final = {"0": "in order", "1": "not in order", str(NO_LABEL): "no pair"}
_MAX_POSITION: Final = 3_000
"""Records that are read again for a drawn document beside its source; the first document is taken beyond."""
_CUT_COLOURS: Final = 6
"""Colours of reasons in page.html: ``.r0`` and so on."""
_MAX_COLUMN_LABELS: Final = 6


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a chart: its text on the axis and on hover, and its height >= 0."""

    label: str
    text: str
    value: int


@dataclass(frozen=True, slots=True)
class ColumnChart:
    """Columns from left to right, on a scale from 0 to the highest.

    Attributes:
        x_label: meaning of the labels.
        y_label: meaning of the values.
    """

    columns: Sequence[Column]
    x_label: str
    y_label: str
    caption: str

    @property
    def top(self) -> int:
        """Return the end of the scale."""
        return max([1, *(column.value for column in self.columns)])

    @property
    def labels(self) -> list[tuple[float, str]]:
        """Return the labels that are shown, each with its place in per cent of the chart's width."""
        step = -(-len(self.columns) // _MAX_COLUMN_LABELS) or 1
        places = [100 * (index + 0.5) / len(self.columns) for index in range(len(self.columns))]
        return [(places[index], self.columns[index].label) for index in range(0, len(places), step)]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of text; its title is the heading of the first column.

    Attributes:
        title: the title.
        header: headings of the other columns; empty for none.
        rows: the rows.
        text_columns: numbers of the columns of text beside the first.
        is_folded: the page shows it on demand, and a terminal not.
        bars: a bar for each row on the page, or none.
        charts: charts below it on the page.
        details: tables of the charts' numbers, which the page shows on demand.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = ()
    is_folded: bool = False
    bars: Sequence[Bar] = ()
    charts: Sequence[ColumnChart] = ()
    details: Sequence[Table] = ()


def render_documents_page(
    storage: Storage,
    folder: str,
    manifest: DocumentsManifest,
    tallies: Iterable[str],
    read_record: Callable[[str, int], SourceRecord],
) -> str:
    """Render the page of document shards that are counted; it does not name the directory.

    Args:
        tallies: counts of all documents (:meth:`DocumentTally.to_json`).
        read_record: reads the record at a position of a source file.
    """
    tally = DocumentTally()
    for text in tallies:
        tally.add_json(text)
    rejected, drawn = read_samples(storage, folder), draw_documents(storage, folder, manifest.outputs)
    stats = summarise_documents(manifest, tally, manifest.counts.characters, rejected, drawn)
    compared = min(drawn, key=lambda document: (document["origin"]["position"], document["id"]), default=None)
    if compared and compared["origin"]["position"] > _MAX_POSITION:
        path = f"{folder}/{next(shard.file for shard in manifest.outputs if shard.rows)}"
        compared = next(iter(document_shards.read_rows(storage, path, [0], ["id", "origin"])))
    comparison = _compare(compared["id"], read_record, compared["origin"]) if compared else None
    return render_stats_page(stats, manifest.pipeline, comparison)


def _compare(
    document_id: str, read_record: Callable[[str, int], SourceRecord], origin: Mapping[str, Any]
) -> SourceComparison:
    """Compare a document with its source."""
    try:
        record = read_record(origin["file"], origin["position"])
    except (InputNotFoundError, BadFileError):
        record = None
    if record is None or record.document is None or record.document.id != document_id:
        return SourceComparison(document_id, note="its source was not at hand when this page was written")
    return compare_with_source(record.document, record.raw)


def render_stats_page(stats: Mapping[str, Any], name: str, comparison: SourceComparison | None = None) -> str:
    """Render the statistics as HTML.

    Args:
        stats: result of :func:`directory_stats.compute_stats`.
        name: name of the directory, for the title.
        comparison: a document beside its source.
    """
    if stats["kind"] == "documents":
        headline = [(format_number(stats[key]), key) for key in ("documents", "sentences", "words")]
    else:
        train = stats["splits"].get("train", {"rows": 0, "tokens": 0})
        headline = [(format_number(train[key]), f"{key} to train on") for key in ("rows", "tokens")]
    cuts = comparison.count_cuts() if comparison else []
    padding = stats.get("splits", {}).get("train", {}).get("padding")
    return render_page(
        __package__,
        "stats_page.html",
        title=f"{_TITLES[stats['kind']]}: {name}",
        stats=stats,
        padding=None if padding is None else format_share(padding),
        notes=stats.get("warnings", ()),
        notice=stats.get("notice", ""),
        headline=headline,
        tables=build_tables(stats),
        comparison=comparison,
        cuts=[[reason, format_number(words)] for reason, words in cuts],
        colours={reason: index % _CUT_COLOURS for index, (reason, _) in enumerate(cuts)},
    )


def render_text(stats: Mapping[str, Any]) -> str:
    """Render the tables for a terminal, with aligned columns."""
    blocks = [f"{_TITLES[stats['kind']]}, made by {stats['pipeline']}"]
    blocks += ["\n".join(_align_columns(table)) for table in build_tables(stats) if not table.is_folded]
    return "\n\n".join(blocks) + "\n"


def _align_columns(table: Table) -> Iterator[str]:
    lines = [[table.title, *table.header], *table.rows]
    columns = max(map(len, lines))
    cells = [
        [spell_out_invisible(cell, keep=" ") for cell in line] + [""] * (columns - len(line))
        for line in lines
    ]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        right = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *right]).rstrip()


def build_tables(stats: Mapping[str, Any]) -> list[Table]:
    """Return the tables of the statistics; empty ones are omitted."""
    build = _build_document_tables if stats["kind"] == "documents" else _build_pretraining_tables
    return [table for table in build(stats) if table.rows]


# Documents


def _build_document_tables(stats: Mapping[str, Any]) -> Iterator[Table]:
    keys = ("documents", "sentences", "words", "characters", "shards", "bytes")
    yield Table("At a glance", [], [[key, format_number(stats[key])] for key in keys])
    yield _build_funnel_table(stats["funnel"])
    yield _build_source_table(stats, ["documents", "words"])
    for title, column in _VALUES_COLUMNS.items():
        yield _build_values_table(title, stats["values"][column], stats["documents"])
    charts = [
        _plot_histogram(distribution, "{} in a {}".format(*name.split("_per_")), f"{name.split('_per_')[1]}s")
        for name, distribution in stats["distributions"].items()
        if distribution["count"]
    ]
    distributions = {name.replace("_", " "): each for name, each in stats["distributions"].items()}
    yield _build_lengths_table(distributions, charts)
    parts = {f"part: {part}": text for part, text in stats["dropped_parts"].items()}
    changed_rows = [
        [name, format_number(text["documents"]), format_number(text["characters"])]
        for name, text in {**stats["cleaning"], **parts}.items()
        if text["documents"]
    ]
    yield Table("Removed by cleaning", ["documents", "characters"], changed_rows)
    bad_files = [[bad["file"], bad["detail"]] for bad in stats["bad_files"]]
    yield Table("Files that could not be read", ["reason"], bad_files, text_columns=[1])
    yield _build_steps_table(stats["steps"])
    yield _build_drawn_table(stats["drawn"])
    for name, sentences in stats["extreme_sentences"].items():
        yield Table(
            f"The {name} sentences",
            ["characters", "text"],
            [[each["id"], format_number(each["characters"]), each["text"]] for each in sentences],
            text_columns=[2],
            is_folded=True,
        )
    names = ("reason", "file", "position", "detail", "text")
    samples = [[str(record[name]) for name in names] for record in stats["rejected"]]
    header = ["file", "record", "detail", "begins"]
    yield Table("Some rejected records", header, samples, text_columns=[1, 3, 4], is_folded=True)
    yield Table("Settings", [], flatten_rows(stats["config"]), is_folded=True)
    yield Table("Command", [], [*stats["run"].items()], is_folded=True)


def _build_drawn_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """Build the table of documents drawn at random, a row for each sentence that is shown."""
    rows = []
    for document in documents:
        sentences = document["sentences"]
        if more := document["num_sentences"] - len(sentences):
            sentences = [*sentences, f"({more:,} more)"]
        ids = itertools.chain([document["id"]], itertools.repeat(""))
        rows += [[next(ids), str(number), sentence] for number, sentence in enumerate(sentences, 1)]
    return Table(
        "Some documents, drawn at random", ["sentence", "text"], rows, text_columns=[2], is_folded=True
    )


def _build_funnel_table(funnel: Mapping[str, int]) -> Table:
    """Build the table of what became of records; the bar of a reason begins where its records left end."""
    left = funnel.get("records", 0)
    scale = 100 / max(1, *funnel.values())
    bars = []
    for name, count in funnel.items():
        is_part = name not in ("records", "kept")
        left -= count if is_part else 0
        start = max(0, left) if is_part else 0
        bars.append(Bar(count * scale, start * scale, colour=int(is_part)))
    rows = [[reason, format_number(records)] for reason, records in funnel.items()]
    return Table("Records", [], rows, bars=bars)


def _build_values_table(title: str, values: Mapping[str, Any], documents: int) -> Table:
    """Build a row for each of the most frequent values, and one for all others; none if none is known."""
    if not values["top"].keys() - {UNKNOWN}:
        return Table(title, [], [])
    counts = dict(values["top"])
    bars = [Bar(100 * count / max(counts.values())) for count in counts.values()]
    if others := values["distinct"] - len(counts):
        counts[f"{others:,} others"] = documents - sum(counts.values())
        bars.append(Bar(0))  # they would dwarf the values that are named
    rows = [
        [name, format_number(count), format_share(count / documents if documents else None)]
        for name, count in counts.items()
    ]
    return Table(title, ["documents", "share"], rows, bars=bars)


def _build_steps_table(steps: Mapping[str, Mapping[str, int]]) -> Table:
    rows = [
        [
            name,
            *(format_number(metrics[key]) for key in ("items", "skipped")),
            *(f"{metrics[key] / 1e3:,.1f}" for key in ("milliseconds", "max_item_ms")),
        ]
        for name, metrics in steps.items()
    ]
    header = ["items", "done before", "worker seconds", "slowest item, s"]
    return Table("Steps of the last run", header, rows)


def flatten_rows(values: Mapping[str, Any], prefix: str = "") -> list[list[str]]:
    """Return (name, value) rows of nested data; nested names are prefixed, empty values omitted."""
    rows: list[list[str]] = []
    for key, value in values.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            rows += flatten_rows(value, f"{name}: ")
        elif isinstance(value, list):
            rows += [[name, ", ".join(map(str, value))]] if value else []
        elif isinstance(value, bool):
            rows += [[name, "yes" if value else "no"]]
        elif value is not None:
            rows.append([name, f"{value:,}" if isinstance(value, int) else str(value)])
    return rows


# Pretraining sets


def _build_pretraining_tables(stats: Mapping[str, Any]) -> Iterator[Table]:
    splits: Mapping[str, Mapping[str, Any]] = stats["splits"]
    vocabulary = stats["vocabulary"]
    set_rows = [
        ["objective", stats["objective"]],
        ["length", format_number(stats["length"])],
        ["vocabulary", f"{format_number(vocabulary['size'])} ({vocabulary['sha256'][:12]})"],
    ]
    set_rows += [
        [f"documents of {each['pipeline']}", format_number(each["documents"])] for each in stats["inputs"]
    ]
    yield Table("What it is", [], set_rows)
    yield Table("At a glance", list(splits), _list_overview_rows([*splits.values()], stats["length"]))
    row_lengths = {split: each["row_lengths"] for split, each in splits.items() if "row_lengths" in each}
    distributions = {f"tokens per row, {split}": each for split, each in row_lengths.items()}
    charts = [
        _plot_histogram(each, "tokens in a row", f"rows of {split}")
        for split, each in row_lengths.items()
        if each["count"]
    ]
    yield _build_lengths_table(distributions, charts)
    yield Table("What became of the text, in tokens", list(splits), _list_token_rows([*splits.values()]))
    yield _build_source_table(stats, ["tokens"])
    dropped_rows = [
        [f"{outcome}: {reason}", format_number(documents)]
        for outcome in ("dropped", "rejected")
        for reason, documents in stats[outcome].items()
    ]
    yield Table("Documents", [], [["documents", format_number(stats["documents"])], *dropped_rows])
    yield _build_drawn_rows_table(stats.get("drawn", ()))


def _build_drawn_rows_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Build the table of rows drawn at random, a row for each of their segments."""
    lines = []
    for row in rows:
        label = f"label {row['label']}" if row["label"] is not None else ""
        first_cells = itertools.chain([" ".join(filter(None, (row["name"], label)))], itertools.repeat(""))
        lines += [
            [next(first_cells), name, format_number(len(pieces)), " ".join(pieces)]
            for name, pieces in zip("AB", row["segments"], strict=False)
        ]
    header = ["segment", "tokens", "pieces; a trainer masks some of them, others in each epoch"]
    return Table("Some rows, drawn at random", header, lines, text_columns=[1, 3], is_folded=True)


def _list_overview_rows(splits: Sequence[Mapping[str, Any]], length: int) -> list[list[str]]:
    """Return the rows of the main numbers, with a column for each split."""
    shares = {
        "fill": "fill",
        f"padding, if rows are padded to {length:,}": "padding",
        f"rows of {length:,} tokens": "full_rows",
        "rows of one segment": "single_segment",
    }
    shares = {name: key for name, key in shares.items() if all(key in split for split in splits)}
    labels = sorted({label for split in splits for label in split.get("labels", ())}, key=int)
    no_rows = {"share": 0.0}
    return [
        *([key, *(format_number(split[key]) for split in splits)] for key in ("documents", "rows", "tokens")),
        *([name, *(format_share(split[key]) for split in splits)] for name, key in shares.items()),
        *(
            [
                f"label {label}, {_LABEL_NAMES.get(label, 'unknown')}",
                *(format_share(split["labels"].get(label, no_rows)["share"]) for split in splits),
            ]
            for label in labels
        ),
        ["rows per document", *(format_number(split["rows_per_document"]) for split in splits)],
        *([key, *(format_number(split[key]) for split in splits)] for key in ("shards", "bytes")),
    ]


def _list_token_rows(splits: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows of the accounts of tokens, with a column for each split."""
    reasons = sorted({reason for split in splits for reason in split["lost_tokens"]})
    rows = {
        "of the documents, in all passes": [split["input_tokens"] for split in splits],
        **{
            f"lost: {reason}": [split["lost_tokens"].get(reason, 0) for split in splits] for reason in reasons
        },
        "in rows: special tokens": [split["special_tokens"] for split in splits],
        "in rows: borrowed of other documents": [split["other_document_tokens"] for split in splits],
        "in rows, all": [split["tokens"] for split in splits],
        "not accounted for": [split["unaccounted_tokens"] for split in splits],
    }
    return [[name, *map(format_number, numbers)] for name, numbers in rows.items()]


# Both


def _build_source_table(stats: Mapping[str, Any], measures: list[str]) -> Table:
    """Build the table of measures by source, with a chart of the first by year and a table of all years."""
    rows, charts, details = [], [], []
    for source, years in stats["years"].items():
        totals = [sum(counts[measure] for counts in years.values()) for measure in measures]
        rows.append([source, _format_year_range(years), *map(format_number, totals)])
        charts += [_plot_by_year(source, years, measures[0])] if years else []
        year_rows = [
            [year, *(format_number(counts[measure]) for measure in measures)]
            for year, counts in years.items()
        ]
        details.append(Table(f"Every year of {source}", measures, year_rows, is_folded=True))
    return Table("By source", ["years", *measures], rows, charts=charts, details=details)


def _plot_by_year(source: str, years: Mapping[str, Mapping[str, int]], measure: str) -> ColumnChart:
    """Plot a source by year, without a hole where a year has no text."""
    known = sorted(int(year) for year in years if year.isdecimal())
    shown = [str(year) for year in range(known[0], known[-1] + 1)] if known else []
    shown += [year for year in years if not year.isdecimal()]
    numbers = {year: years[year][measure] if year in years else 0 for year in shown}
    columns = [
        Column(year if year.isdecimal() else "?", f"{year}: {number:,}", number)
        for year, number in numbers.items()
    ]
    caption = f"{measure.capitalize()} of {source} by year of publication."
    if columns and columns[-1].label == "?":
        caption += " The last bar is what has no year."
    return ColumnChart(columns, "year", f"{measure} of {source}", caption)


def _build_lengths_table(
    distributions: Mapping[str, Mapping[str, Any]], charts: Sequence[ColumnChart]
) -> Table:
    """Build the table of mean, percentiles and maximum of distributions."""
    columns = ("mean", "p5", "median", "p95", "max")
    rows = [
        [name, *(format_number(distribution[column]) for column in columns)]
        for name, distribution in distributions.items()
    ]
    return Table("Lengths", ["mean", "5 %", "median", "95 %", "max"], rows, charts=charts)


def _plot_histogram(distribution: Mapping[str, Any], x_label: str, y_label: str) -> ColumnChart:
    width, bins = distribution["histogram"]["width"], distribution["histogram"]["bins"]
    columns = []
    for start, end, count in ((each["from"], each["to"], each["count"]) for each in bins):
        range_text = f"{start:,}" if start == end else f"{start:,} to {end:,}"
        columns.append(Column(f"{start:,}", f"{range_text}: {count:,}", count))
    caption = (
        f"{y_label.capitalize()} by {x_label}; a bar is {width:,} wide and its label is where it begins."
    )
    if bins[-1]["to"] - bins[-1]["from"] >= width:
        caption += f" The last bar is all from {bins[-1]['from']:,} to {bins[-1]['to']:,}."
    return ColumnChart(columns, x_label, y_label, caption)


def _format_year_range(years: Collection[str]) -> str:
    """Return first and last year, and "unknown" if there is text without a year."""
    known = sorted(int(year) for year in years if year.isdecimal())
    parts = ["unknown"] if len(known) < len(years) else []
    if known:
        parts.insert(0, str(known[0]) if known[0] == known[-1] else f"{known[0]}-{known[-1]}")
    return ", ".join(parts)


def format_number(value: float | None) -> str:
    """Format a number with thousands separators, and two decimals unless it is an integer."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def format_share(value: float | None) -> str:
    """Format a ratio as a percentage."""
    return "none" if value is None else format_percent(value).replace("\u202f", " ")
