"""The HTML page of statistics: content, escaping and charts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.stats.report import Column, ColumnChart
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page as frame
from tests.support.corpus.stats_directories import (
    make_stats_document,
    split_counts,
    write_counted_set,
    write_document_shards,
)

HOSTILE = (
    "<script>alert(1)</script>",
    '"onload="x',
    "&amp;",
    "\u202egnp",
    "\x1b[0m",
    "]]>",
    "</style></svg>",
    "</title><b>",
)
STYLE = re.compile(
    r"(left|width|height):[\d.]+%|left:min\([\d.]+%,100% - 4px\);width:[\d.]+%;--colour:var\(--c\d\)"
)
"""Styles of elements are numbers and no text of the input."""


def compute_stats(folder: Path) -> dict[str, Any]:
    return directory_stats.compute_stats(LocalStorage(), str(folder))


def parse_page(page: str) -> Any:
    return lxml.html.document_fromstring(page)


def list_charts(tree: Any) -> list[str]:
    """Return the names of the charts."""
    return [element.get("aria-label") for element in tree.xpath("//*[@role='img']")]


@pytest.fixture
def document_stats(tmp_path: Path) -> dict[str, Any]:
    """Statistics of 101 documents, with an outlier in length and one document without a year."""
    documents = [
        make_stats_document(number, ["a b c"] * (1 + number % 5), 2000 + number % 7) for number in range(99)
    ]
    documents += [
        make_stats_document(100, ["a b"] * 3000, None),
        make_stats_document(101, ["x"], 1990, "pmc"),
    ]
    return compute_stats(write_document_shards(tmp_path / "documents", [documents]))


@pytest.fixture
def pretraining_stats(tmp_path: Path) -> dict[str, Any]:
    """Statistics of a pretraining set."""
    splits: Any = {"train": [[(8, 4, 0), (4, 0, 0)]], "validation": [[(2, 0, 0)]]}
    return compute_stats(
        write_counted_set(
            tmp_path / "rows", splits, {"train": split_counts(1), "validation": split_counts(1)}
        )
    )


def test_page_of_documents_has_lengths_and_years(document_stats: dict[str, Any]) -> None:
    tree = parse_page(report.render_stats_page(document_stats, "abstracts"))
    assert tree.findtext(".//title") == tree.findtext(".//h1") == "Document shards: abstracts"
    headings = ["At a glance", "Records", "By source", "Language", "Lengths"]
    assert [element.text for element in tree.iter("h2")] == headings
    assert list_charts(tree) == [
        "documents of pmc by year",
        "documents of pubmed by year",
        "documents by sentences in a document",
        "documents by words in a document",
        "sentences by words in a sentence",
    ]
    captions = [element.text for element in tree.iter("figcaption")]
    assert captions[2].endswith("begins. The last bar is all from 6 to 3,000.")
    assert captions[1].endswith("The last bar is what has no year.")
    summaries = [element.text for element in tree.iter("summary")]
    drawn = "Some documents, drawn at random"
    extremes = ["The shortest sentences", "The longest sentences"]
    assert summaries == ["Every year of pmc", "Every year of pubmed", drawn, *extremes, "Settings", "Command"]
    for summary, first in zip(extremes, (["pmc:101", "1", "x"], ["pubmed:0", "5", "a b c"]), strict=True):
        (row, *_) = tree.xpath(f"//details[summary='{summary}']//tbody/tr")
        assert [cell.text_content() for cell in row] == first
    listed = tree.xpath(f"//details[summary='{drawn}']//tbody/tr")
    rows = [[cell.text_content() for cell in row] for row in listed]
    documents = document_stats["drawn"]
    assert [row[0] for row in rows if row[0]] == [document["id"] for document in documents]
    assert rows[0] == [documents[0]["id"], "1", documents[0]["sentences"][0]]
    assert [row[2] for row in rows if row[2].endswith("more)")] == [
        f"({document['num_sentences'] - 8:,} more)" for document in documents if document["num_sentences"] > 8
    ]
    (row,) = tree.xpath("//details[2]//tr[th='unknown']")
    assert row.text_content() == "unknown16,000"


def test_page_of_a_pretraining_set_has_padding_and_row_lengths(pretraining_stats: dict[str, Any]) -> None:
    tree = parse_page(report.render_stats_page(pretraining_stats, "electra-256"))
    assert "each padded to 8 tokens, is to 25.00 % padding." in tree.findtext(".//p[2]")
    assert list_charts(tree) == [
        "rows of train by tokens in a row",
        "rows of validation by tokens in a row",
        "tokens of pubmed by year",
    ]


def test_page_has_no_scripts_and_no_external_resources(
    document_stats: dict[str, Any], pretraining_stats: dict[str, Any]
) -> None:
    for stats in (document_stats, pretraining_stats):
        page = report.render_stats_page(stats, "name")
        assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
        assert "prefers-color-scheme: dark" in page
        tree = parse_page(page)
        assert not tree.xpath("//script | //link | //img | //iframe | //@src | //@href")
        assert all(STYLE.fullmatch(style) for style in tree.xpath("//@style"))
        assert not tree.xpath("//@*[starts-with(name(), 'on')]")
        assert len(page) < 60_000


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_escaped(
    document_stats: dict[str, Any], pretraining_stats: dict[str, Any], hostile: str
) -> None:
    changed_stats = json.loads(json.dumps(document_stats))
    changed_stats["funnel"] = {f"dropped: {hostile}": 1}
    changed_stats["years"] = {hostile: {hostile: {"documents": 1, "words": 1}}}
    for stats in (changed_stats, {**pretraining_stats, "dropped": {hostile: 1}}):
        page = report.render_stats_page(stats, f"folder {hostile}")
        tree = parse_page(page)
        visible = frame.spell_out_invisible(hostile, keep=" ")
        assert tree.findtext(".//title") == tree.findtext(".//h1")
        assert tree.findtext(".//h1").endswith(f"folder {visible}")
        assert visible in tree.xpath("string(//table[last()])") or visible in tree.text_content()
        assert not tree.xpath("//script | //b | //@onload")
        assert len(tree.xpath("//style")) == 1
        assert not set(page) & {"\u202e", "\x1b"}


def test_page_of_a_directory_without_documents(tmp_path: Path) -> None:
    tree = parse_page(
        report.render_stats_page(compute_stats(write_document_shards(tmp_path / "empty")), "empty")
    )
    assert list_charts(tree) == []
    assert "none" in tree.text_content()


def test_years_without_documents_leave_no_hole(document_stats: dict[str, Any]) -> None:
    document_stats["years"] = {"pubmed": {year: {"documents": 1, "words": 1} for year in ("1990", "2000")}}
    tree = parse_page(report.render_stats_page(document_stats, "abstracts"))
    (chart,) = tree.xpath("//*[@aria-label='documents of pubmed by year']")
    assert chart.xpath("i/@title") == ["1990: 1", *(f"{year}: 0" for year in range(1991, 2000)), "2000: 1"]
    assert chart.xpath("i/u/@style") == ["height:100.0%", *["height:0.0%"] * 9, "height:100.0%"]


def test_most_frequent_values_are_drawn_and_the_others_counted(document_stats: dict[str, Any]) -> None:
    top = {"Synthetic journal": 90, "<b>Notes</b>": 9}
    document_stats["values"]["journal"] = {"distinct": 5, "top": top}
    tree = parse_page(report.render_stats_page(document_stats, "abstracts"))
    rows = tree.xpath("//h2[.='Journal']/following::tbody[1]/tr")
    assert [[cell.text_content() for cell in row] for row in rows] == [
        ["Synthetic journal", "90", "89.11 %", ""],
        ["<b>Notes</b>", "9", "8.91 %", ""],
        ["3 others", "2", "1.98 %", ""],
    ]
    assert [find_bar(row) for row in rows] == [(0, 100), (0, 10), None]


def test_funnel_narrows_to_the_kept_records(document_stats: dict[str, Any]) -> None:
    funnel = {"records": 100, "rejected: no-pmid": 10, "dropped: deleted": 30, "kept": 60}
    tree = parse_page(report.render_stats_page({**document_stats, "funnel": funnel}, "abstracts"))
    rows = tree.xpath("//h2[.='Records']/following::tbody[1]/tr")
    assert [find_bar(row) for row in rows] == [(0, 100), (90, 10), (60, 30), (0, 60)]


def find_bar(row: Any) -> tuple[float, float] | None:
    """Return where the bar of a row begins and how long it is, in per cent."""
    styles = row.xpath(".//*[@class='bar']/i/@style")
    numbers = re.match(r"left:min\(([\d.]+)%,.*width:([\d.]+)%", styles[0]) if styles else None
    return (float(numbers[1]), float(numbers[2])) if numbers else None


# Column charts


def test_labels_of_columns_are_few_and_at_their_columns() -> None:
    for number in (0, 1, 6, 7, 41, 150):
        labels = ColumnChart([Column(f"{index}", "", 1) for index in range(number)], "", "", "").labels
        assert min(number, 4) <= len(labels) <= 6
        assert all(place == pytest.approx(100 * (int(label) + 0.5) / number) for place, label in labels)
