"""The pages of a finished directory: the card that Hugging Face's hub reads, and the report."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import lxml.html
import pytest
import yaml  # type: ignore[import-untyped]

from bioshards.corpus.stats import directory_stats, report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml

COMPARISON = '<section class="comparison">.*?</section>\n'
"""The section of the report that needs the source."""


def make_card(folder: Path, *options: str) -> str:
    """Run ``pubmed_to_shards`` on four records and return the card."""
    records = [citation_xml(number) for number in (1, 2, 30)]
    (folder / "in.xml").write_bytes(pubmed_set_xml(*records, "<PubmedArticle/>"))
    arguments = ["--input", str(folder / "in.xml"), "--output", str(folder / "out"), "--max-rejected", "1"]
    arguments += ["--workers", "1"]
    assert cli.main(["run", "pubmed_to_shards", *arguments, *options]) == 0
    return (folder / "out" / "README.md").read_text()


def test_card_has_header_counts_settings_and_rights(tmp_path: Path) -> None:
    card = make_card(tmp_path, "--min-pmid", "20")
    header = yaml.safe_load(card.split("---\n")[1])
    assert header == {
        "license": "other",
        "language": "en",
        "size_categories": ["n<1K"],
        "task_categories": ["fill-mask"],
        "tags": ["biology", "medical"],
        "configs": [{"config_name": "default", "data_files": "data/*.parquet"}],
    }
    for line in (
        "1 documents of ",
        "| `min_pmid` | `20` |",
        "| dropped: below-min-pmid | 2 |",
        "| rejected: no-pmid | 1 |",
        "| `rejected/` | ",
        "Courtesy of the U.S. National Library of Medicine.",
    ):
        assert line in card
    assert str(tmp_path) not in card
    assert "dropped/" not in card
    assert_report_equals_stats(tmp_path / "out")
    tree: Any = lxml.html.document_fromstring((tmp_path / "out" / "report.html").read_bytes())
    (kept,) = tree.xpath("//h2[.='Records']/following::tbody[1]/tr[th='kept']")
    assert kept.findtext("td") == "1"
    (sample,) = tree.xpath("//tr[th='no-pmid']")
    assert sample.text_content().endswith("<PubmedArticle/>")
    assert tree.xpath("//tr[th='min pmid']/td/text()") == ["20"]
    assert [row.text for row in tree.xpath("//h2[.='Steps of the last run']/following::tbody[1]//th")] == [
        "stage",
        "decide",
        "finalize",
    ]


def assert_report_equals_stats(folder: Path) -> None:
    """Check that the page of what finalize counts is that of ``corpus stats``, which reads all text."""
    stats = directory_stats.compute_stats(LocalStorage(), str(folder))
    del stats["distributions"]["words_per_sentence"]
    page = report.render_stats_page(stats, "pubmed_to_shards")
    written = re.sub(COMPARISON, "", (folder / "report.html").read_text(), flags=re.DOTALL)
    assert written.splitlines() == page.splitlines()


def test_report_shows_a_document_beside_its_source(tmp_path: Path) -> None:
    notice = "<CopyrightInformation>© 2020 The Gulls.</CopyrightInformation>"
    abstract = f"It grew.</AbstractText>{notice}<AbstractText>It fell."
    (tmp_path / "a.xml").write_bytes(pubmed_set_xml(citation_xml(7, abstract)))
    options = ["--input", str(tmp_path / "a.xml"), "--output", str(tmp_path / "out"), "--workers", "1"]
    assert cli.main(["run", "pubmed_to_shards", *options]) == 0
    tree: Any = lxml.html.document_fromstring((tmp_path / "out" / "report.html").read_bytes())
    (section,) = tree.xpath("//section[@class='comparison']")
    (passages,) = section.xpath("p[@class='passages']")
    assert " ".join(passages.text_content().split()) == "A title. It grew.notice © 2020 The Gulls. It fell."
    assert [cut.text_content() for cut in section.iter("del")] == ["notice © 2020 The Gulls."]
    assert [row.text_content() for row in section.xpath(".//tbody/tr")] == ["notice5"]


def test_report_of_an_update_counts_what_was_finalized_before(tmp_path: Path) -> None:
    more = tmp_path / "more"
    more.mkdir()
    (more / "pubmed26n0002.xml").write_bytes(pubmed_set_xml(citation_xml(4)))
    make_card(tmp_path, "--input", str(more))
    (final_report,) = (tmp_path / "out" / ".bioshards" / "final_reports").glob("in-*.json")
    finalized = json.loads(final_report.read_text())["value"]
    assert json.loads(finalized["tally"])["documents"] == {"pubmed": {"2020": 3}}
    (more / "pubmed26n0003.xml").write_bytes(pubmed_set_xml(citation_xml(5)))
    assert "5 documents of " in make_card(tmp_path, "--input", str(more))
    assert_report_equals_stats(tmp_path / "out")


def test_card_of_default_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert "All settings are the defaults." in make_card(tmp_path)
    assert not list((tmp_path / "temporary").iterdir()), "nothing is left, also by Beam"
