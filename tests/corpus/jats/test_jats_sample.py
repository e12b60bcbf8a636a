"""The sample's full-text articles are invented, well-formed and small, as the sample's README states."""

from __future__ import annotations

import gzip
import re
from html.entities import html5
from pathlib import Path

import pytest
from lxml import etree

from tests.support import paths
from tests.support.paths import PMC_SAMPLE

ARTICLES = PMC_SAMPLE
GOLDEN = paths.GOLDEN / "jats"
XML_ENTITIES = {"lt", "gt", "amp", "quot", "apos"}
WITHOUT_GOLDEN = {"PMC9990017.1"}
"""The scanned article, which is dropped by default."""

FILES = sorted(path for path in ARTICLES.iterdir())


def parse_file(path: Path) -> etree._Element:
    """Return the root element of the file, with named entities resolved by HTML's table."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = re.sub(
        r"&(\w+);", lambda name: name[0] if name[1] in XML_ENTITIES else html5[f"{name[1]};"], data.decode()
    )
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(text.encode(), parser)


def list_articles(path: Path) -> list[etree._Element]:
    return list(parse_file(path).iter("article"))


def build_versioned_pmcid(article: etree._Element, path: Path) -> str:
    """Return ``PMC9990001.1``: the article's PMCID, and the version in the file name."""
    types = {
        item.get("pub-id-type"): item.text or "" for item in article.iterfind(".//article-meta/article-id")
    }
    number = (types.get("pmcid") or types["pmc"]).removeprefix("PMC")
    version = re.search(r"\.(\d+)\.", path.name)
    return f"PMC{number}.{version[1] if version else 1}"


VERSIONED_PMCIDS = [build_versioned_pmcid(article, path) for path in FILES for article in list_articles(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_ids_of_articles_are_invented(path: Path) -> None:
    for article in list_articles(path):
        for item in article.iterfind(".//article-meta/article-id"):
            value = item.text or ""
            match item.get("pub-id-type"):
                case "doi":
                    assert re.fullmatch(r"(https://doi\.org/)?10\.5555/\S+", value)
                case "pmid":
                    assert re.fullmatch(r"999900\d\d", value)
                case "pmc" | "pmcid":
                    assert re.fullmatch(r"(PMC)?99900\d\d", value)
        assert not re.search(r"\b10\.(?!5555)\d{4}/", etree.tostring(article, encoding="unicode"))


def test_golden_files_match_the_articles() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(VERSIONED_PMCIDS) - WITHOUT_GOLDEN
