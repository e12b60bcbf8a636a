"""An article as blocks: a paragraph, list item, caption or footnote each, with its part and its headings.

The order is a reader's: title, abstracts, body, back matter, floats, sub-articles.  Of a section first come
its own paragraphs, then the captions of its figures and tables, then its subsections.  Everything is here but
what is no text (references, tables' cells, graphics) and what is said of the article (authors, licence).
"""

from __future__ import annotations

from typing import Final

from lxml import etree

from . import inline
from .inline import extract_text
from .section_walker import SectionWalker, TextBlock

ARTICLE_PARTS: Final = (
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
)
"""The parts of an article.  ``summary`` is an abstract for other readers, ``other-abstract`` one that only
teases (graphical, table of contents, highlights); ``sub-article`` all of a review, a reply, a translation."""


def extract_blocks(
    article: etree._Element,
    captions_in_place: bool = False,
    formula_placeholder: str = "",
    author_year_citations: bool = True,
) -> list[TextBlock]:
    """All blocks of an article (xml_tree.py), in order.

    Args:
        captions_in_place: as PMC's plain text has it: captions of figures and tables where these stand, not
            after their section, and "(see)" where a citation was.
        formula: what stands for a displayed formula in its paragraph.
        author_year: do citations by name and year stay?
    """
    if not author_year_citations:
        inline.mark_citations(article)
    walker = SectionWalker(captions_in_place, formula_placeholder)
    _walk_article(walker, article)
    return walker.blocks


_SUMMARY_TYPES: Final = frozenset(
    {
        "summary",
        "synopsis",
        "author-summary",
        "executive-summary",
        "editor-summary",
        "editors-summary",
        "plain-language-summary",
        "plain-language",
        "lay-abstract",
        "lay-summary",
        "patient-summary",
        "longsummary",
        "short",
    }
)
_ABSTRACT_TYPES: Final = frozenset({"", "abstract", "normal", "structured", "section"})


def _walk_article(walker: SectionWalker, article: etree._Element) -> None:
    """Gather the blocks of an article or a sub-article."""
    metadata = article.find("front/article-meta")
    if metadata is None:
        metadata = article.find("front-stub")
    if metadata is not None:
        _walk_front_matter(walker, metadata)
    for name in ("body", "back"):
        container = article.find(name)
        if container is not None:
            walker.walk_children(container, "body", ())
            walker.add_pending_captions()
    for notes in metadata.iterfind("author-notes") if metadata is not None else ():
        walker.walk_footnotes(notes, "footnote", ())
    for group in article.iterfind("floats-group"):
        walker.walk_children(group, "caption", ())
    walker.add_pending_captions()
    for name in ("sub-article", "response"):
        for sub_article in article.iterfind(name):
            _walk_sub_article(walker, sub_article)


def _walk_front_matter(walker: SectionWalker, metadata: etree._Element) -> None:
    if title := extract_title(metadata):
        walker.add_block("title", (), title)
    has_main_abstract = False
    for abstract in metadata.iterfind("abstract"):
        abstract_type = (abstract.get("abstract-type") or "").lower()
        part = "summary" if abstract_type in _SUMMARY_TYPES else "other-abstract"
        if abstract_type in _ABSTRACT_TYPES:
            part, has_main_abstract = ("other-abstract" if has_main_abstract else "abstract"), True
        walker.walk_titled(
            abstract,
            part,
            (),
            "Abstract" if part == "abstract" else abstract_type.replace("-", " ").capitalize(),
        )
    for abstract in metadata.iterfind("trans-abstract"):
        walker.walk_titled(abstract, "translated-abstract", (), "Abstract")


def _walk_sub_article(walker: SectionWalker, article: etree._Element) -> None:
    sub_walker = SectionWalker(walker.captions_in_place, walker.formula_placeholder)
    _walk_article(sub_walker, article)
    metadata = article.find("front-stub")
    title = extract_title(article.find("front/article-meta") if metadata is None else metadata)
    parent_headings = (title,) if title else ()
    walker.blocks += [
        TextBlock("sub-article", parent_headings + block.headings, block.text) for block in sub_walker.blocks
    ]


def has_body(article: etree._Element) -> bool:
    """Whether there is an article, and not only its front matter."""
    body = article.find("body")
    return body is not None and len(body) > 0


def extract_title(metadata: etree._Element | None) -> str:
    """The title, with its subtitle after a colon, of an ``article-meta`` or ``front-stub``."""
    group = metadata.find("title-group") if metadata is not None else None
    if group is None:
        return ""
    titles = [extract_text(part) for part in group.iterchildren("article-title", "subtitle")]
    return ": ".join(text for text in titles if text)
