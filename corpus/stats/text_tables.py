"""Statistics (directory_stats.py) as text tables, for a terminal and for the HTML report."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.corpus.stats.document_tally import UNKNOWN
from bioshards.corpus.ui.html_page import format_percent, spell_out_invisible

DIRECTORY_TITLES: Final = {
    "documents": "Document shards",
    "pretraining": "Pretraining set",
    "words": "Counted words",
    "vocabulary": "Vocabulary",
}
"""Title of a directory, by kind."""
VOCABULARY_REPORT_FILE: Final = "report.html"
"""HTML report of a vocabulary directory."""
YEAR_COLUMNS: Final = {"documents": ("documents", "words"), "pretraining": ("tokens",)}
"""Columns of the statistics by source and year, by the directory's kind."""
LENGTHS_TITLE: Final = "Lengths"
BY_SOURCE_TITLE: Final = "By source"
RECORDS_TITLE: Final = "Records"
STEPS_TITLE: Final = "Steps of the last run"
VALUES_COLUMNS: Final = {
    "Language": "language",
    "Licence": "licence",
    "Article type": "article_type",
    "Journal": "journal",
}
"""Column by the title of the table of its values; html_report.py adds charts to tables by their titles."""
_LABEL_NAMES: Final = {"0": "in order", "1": "not in order", str(NO_LABEL): "no pair"}


@dataclass(frozen=True, slots=True)
class StatsTable:
    """A table of text; its title is the heading of the first column.

    Attributes:
        title: the title.
        header: headings of the other columns; empty for none.
        rows: the rows.
        text_columns: numbers of the columns of text beside the first.
        is_folded: the page shows it on demand, and a terminal not.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: Sequence[int] = ()
    is_folded: bool = False


def build_tables(stats: Mapping[str, Any]) -> list[StatsTable]:
    """Return the tables of the statistics; empty ones are omitted."""
    builders = {"documents": _build_document_tables, "pretraining": _build_pretraining_tables}
    return [table for table in builders.get(stats["kind"], _build_manifest_tables)(stats) if table.rows]


def render_text(stats: Mapping[str, Any]) -> str:
    """Render the tables for a terminal, with aligned columns."""
    blocks = [f"{DIRECTORY_TITLES[stats['kind']]}, made by {stats['pipeline']}"]
    blocks += ["\n".join(_align_columns(table)) for table in build_tables(stats) if not table.is_folded]
    return "\n\n".join(blocks) + "\n"


def format_number(value: float | None) -> str:
    """Format a number with thousands separators, and two decimals unless it is an integer."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def format_share(value: float | None) -> str:
    """Format a ratio as a percentage."""
    return "none" if value is None else format_percent(value).replace("\u202f", " ")


def format_year_range(years: Collection[str]) -> str:
    """Return first and last year, and "unknown" if there is text without a year."""
    known_years = sorted(int(year) for year in years if year.isdecimal())
    parts = (
        [str(known_years[0]) if known_years[0] == known_years[-1] else f"{known_years[0]}-{known_years[-1]}"]
        if known_years
        else []
    )
    return ", ".join(parts + (["unknown"] if len(known_years) < len(years) else []))


def _align_columns(table: StatsTable) -> Iterator[str]:
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


def _build_document_tables(stats: Mapping[str, Any]) -> Iterator[StatsTable]:
    keys = ("documents", "sentences", "words", "characters", "shards", "bytes")
    yield StatsTable("At a glance", [], [[key, format_number(stats[key])] for key in keys])
    yield StatsTable(
        RECORDS_TITLE, [], [[reason, format_number(records)] for reason, records in stats["funnel"].items()]
    )
    yield _build_source_table(stats)
    for title, column in VALUES_COLUMNS.items():
        yield StatsTable(title, ["documents", "share"], _value_rows(stats["values"][column], stats))
    yield _build_lengths_table(
        {key.replace("_", " "): distribution for key, distribution in stats["distributions"].items()}
    )
    changes = {
        **stats["cleaning"],
        **{f"part: {part}": text for part, text in stats["dropped_parts"].items()},
    }
    changed_rows = [
        [name, format_number(text["documents"]), format_number(text["characters"])]
        for name, text in changes.items()
        if text["documents"]
    ]
    yield StatsTable("Removed by cleaning", ["documents", "characters"], changed_rows)
    bad_files = [[bad["file"], bad["detail"]] for bad in stats["bad_files"]]
    yield StatsTable("Files that could not be read", ["reason"], bad_files, text_columns=[1])
    steps = [_step_row(name, metrics) for name, metrics in stats["steps"].items()]
    header = ["items", "done before", "MB read", "MB written", "worker seconds", "slowest item, s"]
    yield StatsTable(STEPS_TITLE, header, steps)
    samples = [
        [*(str(record[key]) for key in ("reason", "file", "position", "detail", "text"))]
        for record in stats["rejected"]
    ]
    header = ["file", "record", "detail", "begins"]
    yield StatsTable("Some rejected records", header, samples, text_columns=[1, 3, 4], is_folded=True)
    yield StatsTable("Settings", [], _flatten_rows(stats["config"]), is_folded=True)
    yield StatsTable("Command", [], [*stats["run"].items()], is_folded=True)


def _value_rows(values: Mapping[str, Any], stats: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each of the most frequent values, and one for all others; none if none is known."""
    if not values["top"].keys() - {UNKNOWN}:
        return []
    documents = stats["documents"]
    rows = [
        [name, format_number(count), format_share(count / documents)] for name, count in values["top"].items()
    ]
    if others := values["distinct"] - len(rows):
        count = documents - sum(values["top"].values())
        rows.append([f"{others:,} others", format_number(count), format_share(count / documents)])
    return rows


def _step_row(name: str, metrics: Mapping[str, int]) -> list[str]:
    numbers = [
        *(format_number(metrics[key]) for key in ("items", "skipped")),
        *(f"{metrics[key] / 1e6:,.1f}" for key in ("bytes_in", "bytes_out")),
        *(f"{metrics[key] / 1e3:,.1f}" for key in ("milliseconds", "max_item_ms")),
    ]
    return [name, *numbers]


def _build_pretraining_tables(stats: Mapping[str, Any]) -> Iterator[StatsTable]:
    splits: Mapping[str, Mapping[str, Any]] = stats["splits"]
    vocabulary = stats["vocabulary"]
    set_rows = [
        ["objective", stats["objective"]],
        ["length", format_number(stats["length"])],
        ["vocabulary", f"{format_number(vocabulary['size'])} ({vocabulary['sha256'][:12]})"],
    ]
    yield StatsTable("What it is", [], [*set_rows, *_input_rows(stats)])
    yield StatsTable("At a glance", list(splits), _overview_rows(splits, stats["length"]))
    distributions = {"tokens per row": "row_lengths", "documents per row": "documents_per_row"}
    yield _build_lengths_table(
        {
            f"{name}, {split}": split_stats[key]
            for name, key in distributions.items()
            for split, split_stats in splits.items()
        }
    )
    yield StatsTable("What became of the text, in tokens", list(splits), _token_rows(splits))
    yield _build_source_table(stats)
    dropped_rows = [
        [f"{outcome}: {reason}", format_number(documents)]
        for outcome in ("dropped", "rejected")
        for reason, documents in stats[outcome].items()
    ]
    yield StatsTable("Documents", [], [["documents", format_number(stats["documents"])], *dropped_rows])


def _overview_rows(splits: Mapping[str, Mapping[str, Any]], length: int) -> list[list[str]]:
    all_stats = list(splits.values())
    rows = [
        [key, *(format_number(split_stats[key]) for split_stats in all_stats)]
        for key in ("documents", "rows", "tokens")
    ]
    shares = {
        "fill": "fill",
        f"padding, if rows are padded to {length:,}": "padding",
        f"rows of {length:,} tokens": "full_rows",
        "rows of one segment": "single_segment",
    }
    rows += [
        [name, *(format_share(split_stats[key]) for split_stats in all_stats)] for name, key in shares.items()
    ]
    for label in sorted({label for split_stats in all_stats for label in split_stats["labels"]}, key=int):
        label_shares = [
            split_stats["labels"].get(label, {"share": 0.0})["share"] for split_stats in all_stats
        ]
        rows.append(
            [f"label {label}, {_LABEL_NAMES.get(label, 'unknown')}", *map(format_share, label_shares)]
        )
    rows.append(
        ["rows per document", *(format_number(split_stats["rows_per_document"]) for split_stats in all_stats)]
    )
    return rows + [
        [key, *(format_number(split_stats[key]) for split_stats in all_stats)] for key in ("shards", "bytes")
    ]


def _token_rows(splits: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    all_stats = list(splits.values())
    rows = {
        "of the documents, in all passes": [split_stats["input_tokens"] for split_stats in all_stats],
        **{
            f"lost: {reason}": [split_stats["lost_tokens"].get(reason, 0) for split_stats in all_stats]
            for reason in sorted(
                {reason for split_stats in all_stats for reason in split_stats["lost_tokens"]}
            )
        },
        "in rows: special tokens": [split_stats["special_tokens"] for split_stats in all_stats],
        "in rows: borrowed of other documents": [
            split_stats["other_document_tokens"] for split_stats in all_stats
        ],
        "in rows, all": [split_stats["tokens"] for split_stats in all_stats],
        "not accounted for": [split_stats["unaccounted_tokens"] for split_stats in all_stats],
    }
    return [[name, *map(format_number, numbers)] for name, numbers in rows.items()]


def _build_source_table(stats: Mapping[str, Any]) -> StatsTable:
    columns = YEAR_COLUMNS[stats["kind"]]
    rows = []
    for source, years in stats["years"].items():
        totals = [sum(year_counts[column] for year_counts in years.values()) for column in columns]
        rows.append([source, format_year_range(years), *map(format_number, totals)])
    return StatsTable(BY_SOURCE_TITLE, ["years", *columns], rows)


def _build_lengths_table(distributions: Mapping[str, Mapping[str, Any]]) -> StatsTable:
    """Build the table of mean, percentiles and maximum of distributions."""
    columns = ("mean", "p5", "median", "p95", "max")
    rows = [
        [name, *(format_number(distribution[column]) for column in columns)]
        for name, distribution in distributions.items()
    ]
    return StatsTable(LENGTHS_TITLE, ["mean", "5 %", "median", "95 %", "max"], rows)


def _build_manifest_tables(stats: Mapping[str, Any]) -> Iterator[StatsTable]:
    own_page = [["its page", VOCABULARY_REPORT_FILE]] if stats["kind"] == "vocabulary" else []
    yield StatsTable("What it is", [], [*own_page, *_flatten_rows(stats["config"]), *_input_rows(stats)])
    yield StatsTable("Counts", [], _flatten_rows(stats["counts"]))
    files = [[output["file"], format_number(output["bytes"])] for output in stats["outputs"]]
    yield StatsTable("Files", ["bytes"], files)


def _input_rows(stats: Mapping[str, Any]) -> list[list[str]]:
    """Return a row for each input, with its number of documents if the manifest has it."""
    return [
        [f"documents of {input_entry['pipeline']}", format_number(input_entry["documents"])]
        if "documents" in input_entry
        else ["input", str(input_entry["pipeline"])]
        for input_entry in stats["inputs"]
    ]


def _flatten_rows(values: Mapping[str, Any], prefix: str = "") -> list[list[str]]:
    """Return (name, value) rows of nested data; nested names are prefixed, empty values omitted."""
    rows: list[list[str]] = []
    for key, value in values.items():
        name = f"{prefix}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            rows += _flatten_rows(value, f"{name}: ")
        elif isinstance(value, list):
            rows += [[name, ", ".join(map(str, value))]] if value else []
        elif isinstance(value, bool):
            rows += [[name, "yes" if value else "no"]]
        elif value is not None:
            rows.append([name, f"{value:,}" if isinstance(value, int) else str(value)])
    return rows
