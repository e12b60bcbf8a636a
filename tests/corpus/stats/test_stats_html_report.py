"""The HTML page of statistics: content, escaping and charts."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import lxml.html
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.stats import directory_stats, html_report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page as frame
from bioshards.corpus.ui.chart import WIDTH, Bar, draw_bars, draw_rows, round_up_to_nice_number
from tests.support.corpus.stats_directories import (
    VOCABULARY_MANIFEST,
    WORDS_MANIFEST,
    make_stats_document,
    split_counts,
    write_counted_set,
    write_document_shards,
    write_manifest_file,
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


def compute_stats(folder: Path) -> dict[str, Any]:
    return directory_stats.compute_stats(LocalStorage(), str(folder))


def parse_page(page: str) -> Any:
    return lxml.html.document_fromstring(page)


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
    splits: Any = {"train": [[(8, 4, 0, ["d"]), (4, 0, 0, ["d"])]], "validation": [[(2, 0, 0, ["e"])]]}
    return compute_stats(
        write_counted_set(
            tmp_path / "rows", splits, {"train": split_counts(1), "validation": split_counts(1)}
        )
    )


def test_page_of_documents_has_lengths_and_years(document_stats: dict[str, Any]) -> None:
    tree = parse_page(html_report.render_stats_page(document_stats, "abstracts"))
    assert tree.findtext(".//title") == tree.findtext(".//h1") == "Document shards: abstracts"
    values = "By language, licence, type and journal"
    headings = ["At a glance", "Records", "By source", values, "Lengths"]
    assert [element.text for element in tree.iter("h2")] == headings
    assert [element.findtext("title") for element in tree.iter("svg")] == [
        "records",
        "documents of pmc by year",
        "documents of pubmed by year",
        "documents by language",
        "documents by sentences in a document",
        "documents by words in a document",
        "sentences by words in a sentence",
    ]
    captions = [element.text for element in tree.iter("figcaption")]
    assert captions[3].endswith("begins. The last bar is all from 6 to 3,000.")
    assert captions[2].endswith("The last bar is what has no year.")
    summaries = [element.text for element in tree.iter("summary")]
    assert summaries == ["Every year of pmc", "Every year of pubmed", "Settings", "Command"]
    (row,) = tree.xpath("//details[2]//tr[th='unknown']")
    assert row.text_content() == "unknown16,000"


def test_page_of_a_pretraining_set_has_padding_and_row_lengths(pretraining_stats: dict[str, Any]) -> None:
    tree = parse_page(html_report.render_stats_page(pretraining_stats, "electra-256"))
    assert "each padded to 8 tokens, is to 25.00 % padding." in tree.findtext(".//p[2]")
    titles = [element.findtext("title") for element in tree.iter("svg")]
    assert titles == [
        "rows of train by tokens in a row",
        "rows of validation by tokens in a row",
        "tokens of pmc by year",
        "tokens of pubmed by year",
    ]


def test_page_of_a_vocabulary_names_its_report(tmp_path: Path) -> None:
    tree = parse_page(
        html_report.render_stats_page(compute_stats(write_manifest_file(tmp_path, VOCABULARY_MANIFEST)), "v")
    )
    (row,) = tree.xpath("//tr[th='its page']")
    assert row.findtext("td") == "report.html"
    assert not list(tree.iter("svg"))


def test_page_has_no_scripts_and_no_external_resources(
    document_stats: dict[str, Any], pretraining_stats: dict[str, Any]
) -> None:
    for stats in (document_stats, pretraining_stats):
        page = html_report.render_stats_page(stats, "name")
        assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
        assert "prefers-color-scheme: dark" in page
        tree = parse_page(page)
        assert not tree.xpath("//script | //link | //img | //iframe | //@src | //@href | //@style")
        assert not tree.xpath("//@*[starts-with(name(), 'on')]")
        assert len(page) < 60_000


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_names_are_escaped(document_stats: dict[str, Any], tmp_path: Path, hostile: str) -> None:
    changed_stats = json.loads(json.dumps(document_stats))
    changed_stats["funnel"] = {f"dropped: {hostile}": 1}
    changed_stats["years"] = {hostile: {hostile: {"documents": 1, "words": 1}}}
    word_stats = compute_stats(
        write_manifest_file(
            tmp_path, {**WORDS_MANIFEST, "outputs": [{**WORDS_MANIFEST["outputs"][0], "file": hostile}]}
        )
    )
    for stats in (changed_stats, word_stats):
        page = html_report.render_stats_page(stats, f"folder {hostile}")
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
        html_report.render_stats_page(compute_stats(write_document_shards(tmp_path / "empty")), "empty")
    )
    assert [element.findtext("title") for element in tree.iter("svg")] == ["records"]
    assert "none" in tree.text_content()


def test_years_without_documents_leave_no_hole(document_stats: dict[str, Any]) -> None:
    document_stats["years"] = {"pubmed": {year: {"documents": 1, "words": 1} for year in ("1990", "2000")}}
    tree = parse_page(html_report.render_stats_page(document_stats, "abstracts"))
    chart = next(svg for svg in tree.iter("svg") if svg.findtext("title") == "documents of pubmed by year")
    starts = [float(bar.get("x")) for bar in chart.iter("rect")]
    assert starts[1] - starts[0] > 10 * float(next(chart.iter("rect")).get("width"))


def test_most_frequent_values_are_drawn_and_the_others_counted(document_stats: dict[str, Any]) -> None:
    top = {"Synthetic journal": 90, "<b>Notes</b>": 9}
    document_stats["values"]["journal"] = {"distinct": 5, "top": top}
    tree = parse_page(html_report.render_stats_page(document_stats, "abstracts"))
    (chart,) = [svg for svg in tree.iter("svg") if svg.findtext("title") == "documents by journal"]
    texts = [element.text for element in chart.iter("text")]
    assert texts[1:] == [
        "Synthetic journal",
        "90 (89.11 %)",
        "<b>Notes</b>",
        "9 (8.91 %)",
        "3 others",
        "2 (1.98 %)",
    ]


def test_funnel_narrows_to_the_kept_records() -> None:
    funnel = {"records": 100, "rejected: no-pmid": 10, "dropped: deleted": 30, "kept": 60}
    svg = ElementTree.fromstring(draw_rows("records", list(html_report.iter_funnel_bars(funnel))).__html__())
    bars = [(float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in svg.iter("rect")][1::2]
    assert bars == [(0, 360), (324, 36), (216, 108), (0, 216)]


# Bar chart


def draw_chart(values: list[int]) -> ElementTree.Element:
    bars = [Bar(str(index), f"{index}: {value}", value) for index, value in enumerate(values)]
    return ElementTree.fromstring(draw_bars("t", bars, "across", "up").__html__())


@given(st.lists(st.one_of(st.integers(0, 9), st.integers(0, 10**12)), max_size=150))
def test_bars_are_drawn_to_scale_within_the_chart(values: list[int]) -> None:
    svg = draw_chart(values)
    bars = [
        {name: float(bar.attrib[name]) for name in ("x", "y", "width", "height")} for bar in svg.iter("rect")
    ]
    shown = [value for value in values if value]
    assert len(bars) == len(shown)
    lines = [float(line.attrib["y1"]) for line in svg.iter("line")]
    left = min(float(line.attrib["x1"]) for line in svg.iter("line"))
    assert 2 <= len(lines) <= 6
    for bar, value in zip(bars, shown, strict=True):
        assert bar["x"] >= left
        assert bar["x"] + bar["width"] <= WIDTH
        assert min(lines) - 0.1 <= bar["y"]
        assert bar["y"] + bar["height"] == pytest.approx(max(lines), abs=0.11)
        highest = max(bar["height"] for bar in bars)
        assert bar["height"] == pytest.approx(max(1.0, highest * value / max(shown)), abs=0.11)
    starts = [bar["x"] for bar in bars]
    assert starts == sorted(starts)


def test_axis_labels_do_not_overlap() -> None:
    for number in (1, 20, 41, 150):
        svg = draw_chart([1] * number)
        places = [
            float(element.attrib["x"])
            for element in svg.iter("text")
            if element.attrib["text-anchor"] == "middle"
        ]
        assert places
        assert all(right - left >= 9 for left, right in itertools.pairwise(places))


def test_axis_labels_are_round_numbers() -> None:
    svg = draw_chart([3, 1234])
    labels = [element.text for element in svg.iter("text") if element.attrib["text-anchor"] == "end"]
    assert labels == ["0", "500", "1,000", "1,500", "across"]


@pytest.mark.parametrize(
    ("number", "round_number"), [(0, 1), (1, 1), (2, 2), (3, 5), (5, 5), (6, 10), (11, 20), (50_001, 100_000)]
)
def test_numbers_are_rounded_up(number: int, round_number: int) -> None:
    assert round_up_to_nice_number(number) == round_number
