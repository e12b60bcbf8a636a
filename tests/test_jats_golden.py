"""Articles of our own writing, one a family of constructs, against the text that a reader wrote down."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from bioshards.corpus import article_file, article_shaping, jats_blocks, jats_front, jats_xml
from bioshards.corpus.jats_blocks import TextBlock

SAMPLE = Path(article_file.__file__).parent / "sample" / "pmc"
GOLDEN = sorted((Path(__file__).parent / "golden" / "jats").glob("*.txt"))


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
        for xml in article_file.iter_articles(io.BytesIO(path.read_bytes())):
            identity, _ = article_shaping.identify_article(
                jats_front.parse_metadata(jats_xml.parse_article(xml))
            )
            found[identity.removeprefix("pmc:")] = xml
    return found


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_an_article_is_read_as_a_reader_reads_it(golden: Path, sample: dict[str, bytes]) -> None:
    assert (
        written(jats_blocks.extract_blocks(jats_xml.parse_article(sample[golden.stem]))).strip()
        == golden.read_text().strip()
    )


def test_there_is_a_golden_file_for_nearly_every_article(sample: dict[str, bytes]) -> None:
    assert len(GOLDEN) >= 12
    assert len(sample) - len(GOLDEN) <= 2
