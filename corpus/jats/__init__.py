"""Extract the text of JATS articles as pure functions: bytes to a document or to its paragraphs.

docs/full-text.md defines what counts as text, and how citations, formulas and inline elements are
handled; tests/golden/jats/ has the cases.  The parser is imported on first use, so that ``--help``, which
needs the options in ``filters``, does not wait for it.
"""

from __future__ import annotations

import functools
import io
from typing import TYPE_CHECKING

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.gc_pause import pause_gc

if TYPE_CHECKING:
    from bioshards.corpus.document import Document
    from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
    from bioshards.corpus.jats.filters import PmcConfig


@pause_gc()
def document(xml: bytes, config: PmcConfig | None = None) -> Document:
    """Build the document of an article. Filters are not applied.

    Args:
        xml: bytes of a file with one article; gzipped or not.
        config: text settings; None for the defaults of ``beam run pmc_to_shards``.

    Raises:
        BadFileError, BadRecordError: the file is malformed, does not contain exactly one article, or the
            article has no id.
    """
    from bioshards.corpus.jats import article_metadata, text_blocks, xml_tree
    from bioshards.corpus.jats.document_builder import identify_article, select_text

    config = config or _make_default_config()
    article = _extract_article(xml)
    tree = xml_tree.parse_article(article, flatten=config.flattens_markup, has_tables=config.has_tables)
    metadata = article_metadata.parse_metadata(tree, config.columns, article)
    identify_article(metadata)
    tree, metadata = select_text(tree, metadata, config)
    blocks = text_blocks.extract_blocks(
        tree,
        formula=config.formula,
        has_tables=config.has_tables,
        author_year_citations=config.author_year_citations,
        citations=config.citations,
    )
    return _document_builder(config).build_document(metadata, text_blocks.has_body(tree), blocks, "", 0)[1]


@functools.cache
def _make_default_config() -> PmcConfig:
    from bioshards.corpus.jats.filters import PmcConfig

    return PmcConfig()


@functools.lru_cache(maxsize=4)
def _document_builder(config: PmcConfig) -> ArticleDocumentBuilder:
    from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder

    return ArticleDocumentBuilder(config)


def paragraphs(xml: bytes) -> list[str]:
    """Return the title, headings and paragraphs of an article, each in one line.

    It is the text of :func:`document` before sentences are split.

    Args:
        xml: bytes of a file with one article; gzipped or not.

    Raises:
        BadFileError, BadRecordError: as of :func:`document`.
    """
    from bioshards.corpus.jats.filters import PmcConfig

    return document(xml, PmcConfig(splitter="none", section_labels=True)).sentences


def _extract_article(xml: bytes) -> bytes:
    from bioshards.corpus.jats import article_stream

    articles = list(article_stream.iter_articles(io.BytesIO(xml)))
    if len(articles) != 1:
        raise BadRecordError("not-one-article", f"the file has {len(articles)} articles")
    return articles[0]
