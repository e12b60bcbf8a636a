"""Figures (stats.py) as tables of text, for a terminal and for the page alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from .page import percent, visible
from .pretraining import NO_LABEL

NAMES: Final = {
    "documents": "Document shards",
    "pretraining": "Pretraining set",
    "words": "Counted words",
    "vocabulary": "Vocabulary",
}
"""What a directory is called, by its kind."""
REPORT: Final = "report.html"
"""A vocabulary's own page, beside its manifest."""
BY_YEAR: Final = {"documents": ("documents", "words"), "pretraining": ("tokens",)}
"""What is known of each source and year, by the directory's kind."""
LENGTHS: Final = "Lengths"
BY_SOURCE: Final = "By source"
"""Titles of the tables that a page draws too."""
_LABELS: Final = {"0": "in order", "1": "not in order", str(NO_LABEL): "no pair"}


@dataclass(frozen=True, slots=True)
class Table:
    """A table of texts; its title stands where the head of the first column would.

    Attributes:
        head: of the columns after the first; empty where they need none.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


def tables(figures: Mapping[str, Any]) -> list[Table]:
    """The tables of a directory's figures, those without rows left out."""
    of_kind = {"documents": _documents, "pretraining": _pretraining}
    return [table for table in of_kind.get(figures["kind"], _manifest)(figures) if table.rows]


def as_text(figures: Mapping[str, Any]) -> str:
    """The tables for a terminal: columns in line, a blank line between tables."""
    blocks = [f"{NAMES[figures['kind']]}, made by {figures['pipeline']}"]
    blocks += ["\n".join(_aligned(table)) for table in tables(figures)]
    return "\n\n".join(blocks) + "\n"


def number(value: float | None) -> str:
    """A number with separators of thousands, two decimals where it is no integer."""
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"


def share(value: float | None) -> str:
    """A share in per cent."""
    return "none" if value is None else percent(value).replace("\u202f", " ")


def span(years: Collection[str]) -> str:
    """The first and the last of some years, and whether there is text without one."""
    known = sorted(int(year) for year in years if year.isdecimal())
    parts = [str(known[0]) if known[0] == known[-1] else f"{known[0]}-{known[-1]}"] if known else []
    return ", ".join(parts + (["unknown"] if len(known) < len(years) else []))


def _aligned(table: Table) -> Iterator[str]:
    lines = [[table.title, *table.head], *table.rows]
    columns = max(map(len, lines))
    cells = [[visible(cell, keep=" ") for cell in line] + [""] * (columns - len(line)) for line in lines]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        right = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *right]).rstrip()


def _documents(figures: Mapping[str, Any]) -> Iterator[Table]:
    keys = ("documents", "sentences", "words", "characters", "shards", "bytes")
    yield Table("At a glance", [], [[key, number(figures[key])] for key in keys])
    yield _lengths({key.replace("_", " "): one for key, one in figures["distributions"].items()})
    yield _by_source(figures)
    yield Table("Records", [], [[reason, number(records)] for reason, records in figures["funnel"].items()])


def _pretraining(figures: Mapping[str, Any]) -> Iterator[Table]:
    splits: Mapping[str, Mapping[str, Any]] = figures["splits"]
    vocabulary = figures["vocabulary"]
    about = [
        ["objective", figures["objective"]],
        ["length", number(figures["length"])],
        ["vocabulary", f"{number(vocabulary['size'])} ({vocabulary['sha256'][:12]})"],
    ]
    yield Table("What it is", [], [*about, *_inputs(figures)])
    yield Table("At a glance", list(splits), _glance(splits, figures["length"]))
    distributions = {"tokens per row": "row_lengths", "documents per row": "documents_per_row"}
    yield _lengths(
        {f"{name}, {split}": one[key] for name, key in distributions.items() for split, one in splits.items()}
    )
    yield Table("What became of the text, in tokens", list(splits), _text(splits))
    yield _by_source(figures)
    lost = [
        [f"{what}: {reason}", number(documents)]
        for what in ("dropped", "rejected")
        for reason, documents in figures[what].items()
    ]
    yield Table("Documents", [], [["documents", number(figures["documents"])], *lost])


def _glance(splits: Mapping[str, Mapping[str, Any]], length: int) -> list[list[str]]:
    every = list(splits.values())
    rows = [[key, *(number(one[key]) for one in every)] for key in ("documents", "rows", "tokens")]
    shares = {
        "fill": "fill",
        f"padding, if rows are padded to {length:,}": "padding",
        f"rows of {length:,} tokens": "full_rows",
        "rows of one segment": "single_segment",
    }
    rows += [[name, *(share(one[key]) for one in every)] for name, key in shares.items()]
    for label in sorted({label for one in every for label in one["labels"]}, key=int):
        found = [one["labels"].get(label, {"share": 0.0})["share"] for one in every]
        rows.append([f"label {label}, {_LABELS.get(label, 'unknown')}", *map(share, found)])
    rows.append(["rows per document", *(number(one["rows_per_document"]) for one in every)])
    return rows + [[key, *(number(one[key]) for one in every)] for key in ("shards", "bytes")]


def _text(splits: Mapping[str, Mapping[str, Any]]) -> list[list[str]]:
    every = list(splits.values())
    rows = {
        "of the documents, in all passes": [one["input_tokens"] for one in every],
        **{
            f"lost: {reason}": [one["lost_tokens"].get(reason, 0) for one in every]
            for reason in sorted({reason for one in every for reason in one["lost_tokens"]})
        },
        "in rows: special tokens": [one["special_tokens"] for one in every],
        "in rows: borrowed of other documents": [one["other_document_tokens"] for one in every],
        "in rows, all": [one["tokens"] for one in every],
        "not accounted for": [one["unaccounted"] for one in every],
    }
    return [[name, *map(number, numbers)] for name, numbers in rows.items()]


def _by_source(figures: Mapping[str, Any]) -> Table:
    columns = BY_YEAR[figures["kind"]]
    rows = []
    for source, years in figures["years"].items():
        sums = [sum(of[column] for of in years.values()) for column in columns]
        rows.append([source, span(years), *map(number, sums)])
    return Table(BY_SOURCE, ["years", *columns], rows)


def _lengths(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Mean, percentiles and the greatest of some distributions."""
    columns = ("mean", "p5", "median", "p95", "max")
    rows = [[name, *(number(one[column]) for column in columns)] for name, one in found.items()]
    return Table(LENGTHS, ["mean", "5 %", "median", "95 %", "max"], rows)


def _manifest(figures: Mapping[str, Any]) -> Iterator[Table]:
    own_page = [["its page", REPORT]] if figures["kind"] == "vocabulary" else []
    yield Table("What it is", [], [*own_page, *_flat(figures["config"]), *_inputs(figures)])
    yield Table("Counts", [], _flat(figures["counts"]))
    files = [[output["file"], number(output["bytes"])] for output in figures["outputs"]]
    yield Table("Files", ["bytes"], files)


def _inputs(figures: Mapping[str, Any]) -> list[list[str]]:
    """The inputs, with their documents where the manifest says how many."""
    return [
        [f"documents of {one['pipeline']}", number(one["documents"])]
        if "documents" in one
        else ["input", str(one["pipeline"])]
        for one in figures["inputs"]
    ]


def _flat(values: Mapping[str, Any], within: str = "") -> list[list[str]]:
    """Names and values, nested ones with the names of what they are in; what is not set is left out."""
    rows: list[list[str]] = []
    for key, value in values.items():
        name = f"{within}{key.replace('_', ' ')}"
        if isinstance(value, Mapping):
            rows += _flat(value, f"{name}: ")
        elif isinstance(value, list):
            rows += [[name, ", ".join(map(str, value))]] if value else []
        elif isinstance(value, bool):
            rows += [[name, "yes" if value else "no"]]
        elif value is not None:
            rows.append([name, f"{value:,}" if isinstance(value, int) else str(value)])
    return rows
