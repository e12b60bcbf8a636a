"""The sample's full-text articles are as its README says: invented, well-formed, small."""

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
PARTS = {
    "title",
    "abstract",
    "summary",
    "other-abstract",
    "translated-abstract",
    "body",
    "caption",
    "footnote",
    "acknowledgements",
    "appendix",
    "glossary",
    "boilerplate",
    "sub-article",
}
WITHOUT_GOLDEN = {"PMC9990017.1"}
"""The scanned article: text that a machine has read is not part of a corpus by default."""

FILES = sorted(path for path in ARTICLES.iterdir())


def parsed(path: Path) -> etree._Element:
    """The file's root, named entities resolved as HTML's of the same names, which these are."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    text = re.sub(
        r"&(\w+);", lambda name: name[0] if name[1] in XML_ENTITIES else html5[f"{name[1]};"], data.decode()
    )
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    return etree.fromstring(text.encode(), parser)


def articles(path: Path) -> list[etree._Element]:
    return list(parsed(path).iter("article"))


def key(article: etree._Element, path: Path) -> str:
    """``PMC9990001.1``: the article's id, and the version that its file's name has."""
    types = {
        item.get("pub-id-type"): item.text or "" for item in article.iterfind(".//article-meta/article-id")
    }
    number = (types.get("pmcid") or types["pmc"]).removeprefix("PMC")
    version = re.search(r"\.(\d+)\.", path.name)
    return f"PMC{number}.{version[1] if version else 1}"


KEYS = [key(article, path) for path in FILES for article in articles(path)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_an_article_is_invented_down_to_its_ids(path: Path) -> None:
    for article in articles(path):
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_citation_points_to_a_reference_that_is_there(path: Path) -> None:
    for article in articles(path):
        ids = [value for element in article.iter() if (value := element.get("id"))]
        assert len(ids) == len(set(ids))
        for link in article.iterfind(".//xref"):
            assert link.get("rid") in ids, etree.tostring(link)


def test_the_sample_stays_small_and_each_article_is_in_it_once() -> None:
    assert sum(path.stat().st_size for path in FILES) < 250_000
    assert len(KEYS) == len(set(KEYS)) == 20


def test_each_article_has_a_golden_text_and_each_golden_text_an_article() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(KEYS) - WITHOUT_GOLDEN


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.txt")), ids=lambda path: path.stem)
def test_a_golden_text_is_blocks_of_a_part_with_headings_and_a_line_of_text(path: Path) -> None:
    for block in path.read_text().removesuffix("\n").split("\n\n"):
        head, text = block.split("\n")
        form = re.fullmatch(r"\[([a-z-]+)\](?: \S+(?: \S+)*)?", head)
        assert form, head
        assert form[1] in PARTS, head
        assert text
        assert text == " ".join(text.split())


def test_every_file_is_in_the_readme() -> None:
    readme = (ARTICLES.parent / "README.md").read_text()
    assert all(f"`{path.name}`" in readme for path in FILES)
