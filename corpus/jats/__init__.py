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
    """Build the document of an article, which filters do not drop.

    Args:
        xml: bytes of a file with one article; gzipped or not.
        config: text settings; None for the defaults of ``beam run pmc_to_shards``.

    Raises:
        BadFileError, BadRecordError: the file is malformed, does not contain exactly one article, or the
            article has no id.
    """
    _, document = _make_builder(config).read_article(_extract_article(xml), "", 0)
    assert document is not None, "documents of dropped articles are kept"
    return document


@functools.lru_cache(maxsize=4)
def _make_builder(config: PmcConfig | None) -> ArticleDocumentBuilder:
    from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
    from bioshards.corpus.jats.filters import PmcConfig

    return ArticleDocumentBuilder(config or PmcConfig())


@pause_gc()
def paragraphs(xml: bytes) -> list[str]:
    """Return the title, headings and paragraphs of an article, each in one line, in reading order.

    It is the text that documents have by default, without citations by number, before it is cleaned. Each
    heading is there once, before the first paragraph below it.

    Args:
        xml: bytes of a file with one article; gzipped or not.

    Raises:
        BadFileError, BadRecordError: the file is malformed or does not contain exactly one article.
    """
    from bioshards.corpus.jats import text_blocks, xml_tree
    from bioshards.corpus.jats.filters import DEFAULT_ARTICLE_PARTS, PmcConfig

    tree = xml_tree.parse_article(_extract_article(xml))
    lines: list[str] = []
    known_paths: set[tuple[str, ...]] = set()
    for part, headings, text in text_blocks.extract_blocks(tree, PmcConfig(citations="drop")):
        if part in ("title", *DEFAULT_ARTICLE_PARTS):
            paths = [headings[:depth] for depth in range(1, len(headings) + 1)]
            lines += [path[-1] for path in paths if path not in known_paths]
            lines.append(text)
            known_paths.update(paths)
    return lines


def _extract_article(xml: bytes) -> bytes:
    from bioshards.corpus.jats import article_stream

    articles = list(article_stream.iter_articles(io.BytesIO(xml)))
    if len(articles) != 1:
        raise BadRecordError("not-one-article", f"the file has {len(articles)} articles")
    return articles[0]
