"""Articles of our own writing, one a family of constructs, against the text that a reader wrote down."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bioshards.corpus.jats import article_metadata, article_stream, document_builder, text_blocks, xml_tree
from bioshards.corpus.jats.section_walker import TextBlock
from tests.support import paths

SAMPLE = paths.PMC_SAMPLE
GOLDEN = sorted((paths.GOLDEN / "jats").glob("*.txt"))


def written(blocks: list[TextBlock]) -> str:
    """Blocks as the golden files have them."""
    return "\n".join(
        f"[{block.part}] {' > '.join(block.headings)}".rstrip() + f"\n{block.text}\n" for block in blocks
    )


@pytest.fixture(scope="module")
def sample() -> dict[str, bytes]:
    """The sample's articles by PMCID and version."""
    found = {}
    for path in sorted(SAMPLE.iterdir()):
        for xml in article_stream.iter_articles(io.BytesIO(path.read_bytes())):
            identity, _ = document_builder.identify_article(
                article_metadata.parse_metadata(xml_tree.parse_article(xml))
            )
            found[identity.removeprefix("pmc:")] = xml
    return found


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_an_article_is_read_as_a_reader_reads_it(golden: Path, sample: dict[str, bytes]) -> None:
    assert (
        written(text_blocks.extract_blocks(xml_tree.parse_article(sample[golden.stem]))).strip()
        == golden.read_text().strip()
    )


def test_there_is_a_golden_file_for_nearly_every_article(sample: dict[str, bytes]) -> None:
    assert len(GOLDEN) >= 12
    assert len(sample) - len(GOLDEN) <= 2
