"""The text of a JATS article as pure functions: bytes in, a document or paragraphs out.

What is text and what is not, and what becomes of citations, formulas and inline elements, is in README.md
("Full text") and, case by case, in tests/golden/jats/.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadRecordError

from . import article_metadata, article_stream, text_blocks, xml_tree
from .document_builder import ArticleDocumentBuilder, identify_article
from .filters import PmcConfig
from .section_walker import TextBlock


def document(xml: bytes, config: PmcConfig | None = None) -> Document:
    """An article as a document, whether or not the rules would keep it.

    Args:
        xml: a file's bytes, with DOCTYPE and all; gzipped or not.
        config: those of ``beam run pmc_to_shards``'s defaults if None.

    Raises:
        BadFileError, BadRecordError: it is not the well-formed XML of one article, or has no id.
    """
    config = config or PmcConfig()
    tree = xml_tree.parse_article(_extract_article(xml), flatten=config.author_year_citations)
    metadata = article_metadata.parse_metadata(tree)
    identify_article(metadata)
    blocks = text_blocks.extract_blocks(
        tree,
        formula_placeholder=config.formula_placeholder,
        author_year_citations=config.author_year_citations,
    )
    return _document_builder(config).build_document(metadata, text_blocks.has_body(tree), blocks, "", 0)[1]


@functools.lru_cache(maxsize=4)
def _document_builder(config: PmcConfig) -> ArticleDocumentBuilder:
    return ArticleDocumentBuilder(config)


def paragraphs(xml: bytes) -> list[str]:
    """An article's text as PMC's plain text has it: title, headings, paragraphs, captions where they stand.

    One item a heading or paragraph, each in one line; all parts but reviews and translations, and abstracts
    that only tease.  ``document`` is the same text in sentences.

    Raises:
        BadFileError, BadRecordError: it is not the well-formed XML of one article.
    """
    return list(
        _interleave_headings(
            text_blocks.extract_blocks(xml_tree.parse_article(_extract_article(xml)), captions_in_place=True)
        )
    )


def _extract_article(xml: bytes) -> bytes:
    articles = list(article_stream.iter_articles(io.BytesIO(xml)))
    if len(articles) != 1:
        raise BadRecordError("not-one-article", f"there are {len(articles)} articles in it")
    return articles[0]


def _interleave_headings(blocks: list[TextBlock]) -> Iterator[str]:
    """The blocks' texts, each heading before the first block that is under it."""
    seen_paths = set()
    for block in blocks:
        if block.part in ("other-abstract", "translated-abstract", "sub-article"):
            continue
        for depth in range(1, len(block.headings) + 1):
            heading_path = block.headings[:depth]
            if heading_path not in seen_paths:
                seen_paths.add(heading_path)
                yield heading_path[-1]
        yield block.text
