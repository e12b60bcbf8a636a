"""An article as blocks: a paragraph, list item, caption or footnote each, with its part and its headings.

The order is a reader's: title, abstracts, body, back matter, floats, sub-articles.  Of a section first come
its own paragraphs, then the captions of its figures and tables, then its subsections.  Everything is here but
what is no text (references, tables' cells, graphics) and what is said of the article (authors, licence).
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from . import jats_inline
from .jats_inline import text_of
from .jats_walk import Block as Block
from .jats_walk import Walk

PARTS: Final = (
    *("title", "abstract", "summary", "other-abstract", "translated-abstract", "body", "caption", "footnote"),
    *("acknowledgements", "appendix", "glossary", "boilerplate", "sub-article"),
)
"""The parts of an article.  ``summary`` is an abstract for other readers, ``other-abstract`` one that only
teases (graphical, table of contents, highlights); ``sub-article`` all of a review, a reply, a translation."""


def blocks(
    article: etree._Element, captions_in_place: bool = False, formula: str = "", author_year: bool = True
) -> list[Block]:
    """All blocks of an article (jats_xml.py), in order.

    Args:
        captions_in_place: as PMC's plain text has it: captions of figures and tables where these stand, not
            after their section, and "(see)" where a citation was.
        formula: what stands for a displayed formula in its paragraph.
        author_year: do citations by name and year stay?
    """
    if not author_year:
        jats_inline.mark_citations(article)
    walk = Walk(captions_in_place, formula)
    _article(walk, article)
    return walk.blocks


_SUMMARIES: Final = frozenset(
    {
        *("summary", "synopsis", "author-summary", "executive-summary", "editor-summary", "editors-summary"),
        *("plain-language-summary", "plain-language", "lay-abstract", "lay-summary", "patient-summary"),
        *("longsummary", "short"),
    }
)
_ABSTRACTS: Final = frozenset({"", "abstract", "normal", "structured", "section"})


def _article(walk: Walk, article: etree._Element) -> None:
    """Gather the blocks of an article or a sub-article."""
    meta = article.find("front/article-meta")
    if meta is None:
        meta = article.find("front-stub")
    if meta is not None:
        _front(walk, meta)
    for name in ("body", "back"):
        holder = article.find(name)
        if holder is not None:
            walk.inside(holder, "body", ())
            walk.captions()
    for notes in meta.iterfind("author-notes") if meta is not None else ():
        walk.footnotes(notes, "footnote", ())
    for group in article.iterfind("floats-group"):
        walk.inside(group, "caption", ())
    walk.captions()
    for name in ("sub-article", "response"):
        for other in article.iterfind(name):
            _sub_article(walk, other)


def _front(walk: Walk, meta: etree._Element) -> None:
    if title := title_of(meta):
        walk.add("title", (), title)
    main = False
    for abstract in meta.iterfind("abstract"):
        kind = (abstract.get("abstract-type") or "").lower()
        part = "summary" if kind in _SUMMARIES else "other-abstract"
        if kind in _ABSTRACTS:
            part, main = ("other-abstract" if main else "abstract"), True
        walk.titled(
            abstract, part, (), "Abstract" if part == "abstract" else kind.replace("-", " ").capitalize()
        )
    for abstract in meta.iterfind("trans-abstract"):
        walk.titled(abstract, "translated-abstract", (), "Abstract")


def _sub_article(walk: Walk, article: etree._Element) -> None:
    other = Walk(walk.plain, walk.formula)
    _article(other, article)
    meta = article.find("front-stub")
    title = title_of(article.find("front/article-meta") if meta is None else meta)
    above = (title,) if title else ()
    walk.blocks += [Block("sub-article", above + block.headings, block.text) for block in other.blocks]


def has_body(article: etree._Element) -> bool:
    """Whether there is an article, and not only its front matter."""
    body = article.find("body")
    return body is not None and len(body) > 0


def title_of(meta: etree._Element | None) -> str:
    """The title, with its subtitle after a colon, of an ``article-meta`` or ``front-stub``."""
    group = meta.find("title-group") if meta is not None else None
    if group is None:
        return ""
    found = [text_of(part) for part in group.iterchildren("article-title", "subtitle")]
    return ": ".join(text for text in found if text)
