"""The card of a finished directory is one that Hugging Face's hub reads."""

from __future__ import annotations

from pathlib import Path

import yaml  # type: ignore[import-untyped]

from bioshards.pipelines import cli
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml


def make_card(folder: Path, *options: str) -> str:
    """Run ``pubmed_to_shards`` on four records and return the card."""
    records = [citation_xml(number) for number in (1, 2, 30)]
    (folder / "in.xml").write_bytes(pubmed_set_xml(*records, "<PubmedArticle/>"))
    arguments = ["--input", str(folder / "in.xml"), "--output", str(folder / "out"), "--max-rejected", "1"]
    assert cli.main(["run", "pubmed_to_shards", *arguments, *options]) == 0
    return (folder / "out" / "README.md").read_text()


def test_card_has_header_counts_settings_and_rights(tmp_path: Path) -> None:
    card = make_card(tmp_path, "--min-pmid", "20")
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["language"] == "en"
    assert header["license"] == "other"
    assert header["size_categories"] == ["n<1K"]
    assert header["configs"] == [{"config_name": "default", "data_files": "data-*.arrow"}]
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


def test_card_of_default_settings(tmp_path: Path) -> None:
    assert "All settings are the defaults." in make_card(tmp_path)
