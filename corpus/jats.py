"""The text of a JATS article as pure functions: bytes in, a document or paragraphs out.

What is text and what is not, and what becomes of citations, formulas and inline elements, is in README.md
("Full text") and, case by case, in tests/golden/jats/.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Iterator

from . import article_file, jats_blocks, jats_front, jats_xml
from .article_rules import ArticleRules
from .article_shaping import ArticleShaper, identity
from .document import Document
from .errors import BadRecordError
from .jats_blocks import Block


def document(xml: bytes, rules: ArticleRules | None = None) -> Document:
    """An article as a document, whether or not the rules would keep it.

    Args:
        xml: a file's bytes, with DOCTYPE and all; gzipped or not.
        rules: those of ``beam run pmc_to_shards``'s defaults if None.

    Raises:
        BadFileError, BadRecordError: it is not the well-formed XML of one article, or has no id.
    """
    rules = rules or ArticleRules()
    tree = jats_xml.tree(_article(xml), flat=rules.author_year)
    front = jats_front.front(tree)
    identity(front)
    found = jats_blocks.blocks(tree, formula=rules.formula, author_year=rules.author_year)
    return _shaper(rules).document(front, jats_blocks.has_body(tree), found, "", 0)[1]


@functools.lru_cache(maxsize=4)
def _shaper(rules: ArticleRules) -> ArticleShaper:
    return ArticleShaper(rules)


def paragraphs(xml: bytes) -> list[str]:
    """An article's text as PMC's plain text has it: title, headings, paragraphs, captions where they stand.

    One item a heading or paragraph, each in one line; all parts but reviews and translations, and abstracts
    that only tease.  ``document`` is the same text in sentences.

    Raises:
        BadFileError, BadRecordError: it is not the well-formed XML of one article.
    """
    return list(_with_headings(jats_blocks.blocks(jats_xml.tree(_article(xml)), captions_in_place=True)))


def _article(xml: bytes) -> bytes:
    found = list(article_file.articles(io.BytesIO(xml)))
    if len(found) != 1:
        raise BadRecordError("not-one-article", f"there are {len(found)} articles in it")
    return found[0]


def _with_headings(blocks: list[Block]) -> Iterator[str]:
    """The blocks' texts, each heading before the first block that is under it."""
    told = set()
    for block in blocks:
        if block.part in ("other-abstract", "translated-abstract", "sub-article"):
            continue
        for depth in range(1, len(block.headings) + 1):
            path = block.headings[:depth]
            if path not in told:
                told.add(path)
                yield path[-1]
        yield block.text
