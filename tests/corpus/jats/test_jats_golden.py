"""The text blocks of the sample's articles equal the golden files, which were written by hand.

So do those of ``golden/jats_classes``: an article for each class of what publishers write in their own way.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bioshards.corpus.jats import article_metadata, article_stream, document_builder, text_blocks, xml_tree
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.paragraph_roles import TextBlock
from tests.support import paths
from tests.support.corpus.small_articles import DROP_CITATIONS

SAMPLE = paths.PMC_SAMPLE
GOLDEN = sorted((paths.GOLDEN / "jats").glob("*.txt"))
CLASSES = sorted((paths.GOLDEN / "jats_classes").glob("*.xml"))


def format_blocks(blocks: list[TextBlock]) -> str:
    """Return blocks in the format of the golden files."""
    return "\n".join(
        f"[{block.part}] {' > '.join(block.headings)}".rstrip() + f"\n{block.text}\n" for block in blocks
    )


@pytest.fixture(scope="module")
def sample_articles() -> dict[str, bytes]:
    """XML of the sample's articles by PMCID and version."""
    articles = {}
    for path in sorted(SAMPLE.iterdir()):
        for xml in article_stream.iter_articles(io.BytesIO(path.read_bytes())):
            document_id, _ = document_builder.identify_article(
                article_metadata.parse_metadata(xml_tree.parse_article(xml))
            )
            articles[document_id.removeprefix("pmc:")] = xml
    return articles


def test_every_article_of_the_sample_has_a_golden_file(sample_articles: dict[str, bytes]) -> None:
    """But the scanned one, which is dropped by default."""
    assert [path.stem for path in GOLDEN] == sorted(sample_articles.keys() - {"PMC9990017.1"})


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_blocks_equal_the_golden_file(golden: Path, sample_articles: dict[str, bytes]) -> None:
    assert (
        format_blocks(
            text_blocks.extract_blocks(xml_tree.parse_article(sample_articles[golden.stem]), DROP_CITATIONS)
        ).strip()
        == golden.read_text().strip()
    )


@pytest.mark.parametrize("article", CLASSES, ids=lambda path: path.stem)
def test_blocks_of_a_class_equal_its_golden_file(article: Path) -> None:
    [xml] = article_stream.iter_articles(io.BytesIO(article.read_bytes()))
    blocks = text_blocks.extract_blocks(xml_tree.parse_article(xml), PmcConfig())
    assert format_blocks(blocks).strip() == article.with_suffix(".txt").read_text().strip()
