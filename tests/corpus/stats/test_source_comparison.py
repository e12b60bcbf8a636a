"""A document beside its source: which words were cut, and why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lxml.html
import pytest

from bioshards.corpus.errors import BadFileError, InputNotFoundError
from bioshards.corpus.shards.document_shards import read_documents_manifest
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.stats import report
from bioshards.corpus.stats.document_stats import draw_documents
from bioshards.corpus.stats.source_comparison import SourceComparison, compare_with_source
from tests.support.corpus.manifests import FILES
from tests.support.corpus.pubmed_xml import citation_xml
from tests.support.corpus.synthetic_documents import make_document, write_document_dir

LONG = " ".join(f"w{number}" for number in range(200))
MOVED = "the old grey gull of the coast"

ARTICLE = (
    "<article><front><article-meta><contrib-group>Ada<fn>Gone</fn></contrib-group><abstract>"
    "<p>It grew<sup><xref ref-type='bibr'>12</xref></sup>.</p></abstract></article-meta></front><body>"
    "<sec><title>Methods</title><p>H<sub>2</sub>O [<xref ref-type='bibr'>3</xref>,"
    "<xref ref-type='bibr'>4</xref>] <xref ref-type='fig'>Fig. 1</xref> fell.</p><table-wrap>"
    "<label>Table 1</label><table><tr><td>9<xref ref-type='bibr'>3</xref></td></tr></table></table-wrap>"
    "</sec></body><back><ref-list><title>References</title><ref><label>1</label>Ada</ref></ref-list>"
    "</back></article>"
)


def mark_passages(comparison: SourceComparison) -> str:
    """Return the text of a source, with each passage that is not kept in braces after its kind."""
    return "".join(
        passage.text if passage.kind == "kept" else f"{{{passage.kind}:{passage.text}}}"
        for passage in comparison.passages
    )


@pytest.mark.parametrize(
    ("raw", "sentences", "marked"),
    [
        pytest.param(
            citation_xml(1, 'It </AbstractText><AbstractText Label="AIMS">grew.'),
            ["A title.", "It", "grew."],
            "A title. It{label: AIMS:} grew.",
            id="a label of an abstract, and no metadata",
        ),
        pytest.param(
            ARTICLE,
            ["It grew.", "H2O Fig. 1 fell."],
            "{footnote:Gone} It grew{citation:12}.{heading: Methods} H2O{citation: [3,4]} Fig. 1 fell."
            "{label: Table 1}{table: 93}{references: References 1 Ada}",
            id="an article",
        ),
        pytest.param(
            citation_xml(1, "It has Ada@coast.org in it &amp; &#945; &lt;b&gt;."),
            ["A title.", "It has in it & alpha <b>."],
            "A title. It has{cleaning: Ada@coast.org} in it &{cleaning: α}{added: alpha} <b>.",
            id="cleaning, a changed word, and entities",
        ),
        pytest.param(
            citation_xml(1, f"{MOVED} x1 x2 x3 x4 x5 x6 x7 x8 x9."),
            ["A title.", f"x1 x2 x3 x4 x5 x6 x7 x8 x9 {MOVED}."],
            f"A title.{{moved: {MOVED}}} x1 x2 x3 x4 x5 x6 x7 x8 x9 {MOVED}.",
            id="what stands in another place",
        ),
        pytest.param(
            citation_xml(1, LONG),
            ["A title."],
            f"A title.{{cleaning: {LONG[:109]} … (140 words) … {LONG[-149:]}}}",
            id="a long passage",
        ),
    ],
)
def test_words_that_were_cut_have_the_reason_of_their_element(
    raw: str, sentences: list[str], marked: str
) -> None:
    comparison = compare_with_source(make_document("pubmed:1", sentences), raw.encode())
    assert mark_passages(comparison) == marked
    assert comparison.note == ""


def test_a_text_is_compared_as_it_is() -> None:
    document = make_document("text:a", ["It <b>grew</b>."])
    comparison = compare_with_source(document, b"It  <b>grew</b>.\n -- Ada")
    assert mark_passages(comparison) == "It <b>grew</b>.{cleaning: -- Ada}"
    assert comparison.count_cuts() == [("cleaning", 3)]


def test_beginning_of_a_long_source_is_compared() -> None:
    words = " ".join(f"w{number}" for number in range(40_000))
    comparison = compare_with_source(make_document("text:a", [words]), f"Note. {words}".encode())
    assert [(passage.kind, passage.words) for passage in comparison.passages] == [
        ("cleaning", 2),
        ("kept", 29_998),
    ]
    assert "the first 30,000 words" in comparison.note


def raise_error(error: Exception) -> Callable[[str, int], SourceRecord]:
    def read_record(file: str, position: int) -> SourceRecord:
        raise error

    return read_record


@pytest.mark.parametrize(
    "read_record",
    [
        raise_error(InputNotFoundError("gone")),
        raise_error(BadFileError("unreadable", "it is damaged")),
        lambda file, position: SourceRecord(position, file, b"", []),
        lambda file, position: SourceRecord(position, file, b"", [], make_document("pubmed:99", ["It."])),
    ],
)
def test_page_says_that_a_source_is_gone_or_another(
    tmp_path: Path, read_record: Callable[[str, int], SourceRecord]
) -> None:
    documents = [make_document(f"pubmed:{number}", ["It."], position=9 - number) for number in range(1, 4)]
    folder = str(write_document_dir(tmp_path / "documents", {"one": documents}))
    manifest = read_documents_manifest(FILES, folder)
    page = report.render_documents_page(FILES, folder, manifest, [], read_record)
    tree: Any = lxml.html.document_fromstring(page)
    (section,) = tree.xpath("//section[@class='comparison']")
    assert [line.text for line in section.iter("p")] == [
        "pubmed:3: its source was not at hand when this page was written."
    ]


@pytest.mark.parametrize(("first_position", "is_far"), [(0, False), (2_000, False), (9_000, True)])
def test_first_document_is_compared_if_the_drawn_ones_are_far_into_their_file(
    tmp_path: Path, first_position: int, is_far: bool
) -> None:
    documents = [
        make_document(f"pubmed:{number}", ["It."], position=first_position + 20 - number)
        for number in range(1, 21)
    ]
    folder = str(write_document_dir(tmp_path / "documents", {"one": documents}))
    manifest = read_documents_manifest(FILES, folder)
    asked: list[tuple[str, int]] = []

    def read_record(file: str, position: int) -> SourceRecord:
        asked.append((file, position))
        raise InputNotFoundError("gone")

    page = report.render_documents_page(FILES, folder, manifest, [], read_record)
    drawn = [document["id"] for document in draw_documents(FILES, folder, manifest.outputs)]
    number = 1 if is_far else max(int(one.removeprefix("pubmed:")) for one in drawn)
    assert asked == [("invented.xml", first_position + 20 - number)]
    assert f"pubmed:{number}: its source was not at hand" in page
