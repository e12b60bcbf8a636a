"""Extract the text of an article as blocks: paragraphs, list items, captions and footnotes.

Reading order: title, abstracts, body, back matter, floats, sub-articles. In a section, its paragraphs come
first, then the captions of its figures and tables, then its subsections. References, graphics, authors and
licences are excluded, and table cells unless they are asked for.
"""

from __future__ import annotations

import itertools
from typing import Final

from lxml import etree

from bioshards.corpus.jats import caption_notes, formulas, in_text_citations, inline, reference_lists
from bioshards.corpus.jats.boilerplate import (
    MAX_PARAGRAPH_HEADING,
    MAX_RUN_IN_HEADING,
    is_editorial_note,
    is_heading,
    split_run_in_heading,
)
from bioshards.corpus.jats.caption_notes import MAX_LINK_NOTE
from bioshards.corpus.jats.in_text_citations import GAP_MARK
from bioshards.corpus.jats.inline import extract_text
from bioshards.corpus.jats.section_walker import SectionWalker, TextBlock


def extract_blocks(
    article: etree._Element,
    captions_in_place: bool = False,
    formula: str = "",
    has_tables: bool = False,
    author_year_citations: bool = True,
    citations: str = "drop",
) -> list[TextBlock]:
    """Extract all blocks of an article, in reading order.

    Args:
        article: result of :func:`xml_tree.parse_article`.
        captions_in_place: as in PMC's plain text: captions at their figures and tables instead of after the
            section, with their labels, run-in headings, paragraphs that are links, and "(see)" where a
            citation was.
        formula: how formulas are written (formulas.py); "" for inline ones as text and no others.
        has_tables: add the rows of tables as blocks of the part ``table``.
        author_year_citations: keep citations by name and year.
        citations: one of ``in_text_citations.CITATION_MODES``, for numeric citations.
    """
    inline.mark_citations(article, author_year=author_year_citations, numeric=citations == "keep")
    formulas.write_formulas(article, formula)
    walker = SectionWalker(captions_in_place, has_tables)
    _walk_article(walker, article)
    mask = in_text_citations.CITATION_MASK if citations == "mask" else ""
    blocks = walker.blocks
    if not captions_in_place:
        blocks = [
            _split_heading(block) if ". " in block.text[:MAX_RUN_IN_HEADING] else block
            for block in _join_headings(_drop_notes(blocks))
        ]
    return [_fill_gaps(block, mask) if _has_gap(block) else block for block in blocks]


def _join_headings(blocks: list[TextBlock]) -> list[TextBlock]:
    """Make a paragraph that is only a heading the heading of those after it in its section."""
    if not any(len(block.text) <= MAX_PARAGRAPH_HEADING and is_heading(block.text) for block in blocks):
        return blocks
    joined = []
    heading: TextBlock | None = None
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        if is_heading(block.text) and following is not None and _is_beside(block, following):
            heading = block
        elif heading is None or not _is_beside(block, heading):
            heading = None
            joined.append(block)
        else:
            joined.append(block._replace(headings=(*block.headings, heading.text.rstrip(":."))))
    return joined


def _is_beside(block: TextBlock, other: TextBlock) -> bool:
    return block.part == other.part and block.headings == other.headings


def _split_heading(block: TextBlock) -> TextBlock:
    """Make the first sentence of a paragraph a heading if it is one ("Funding.")."""
    heading, text = ("", "") if block.part == "table" else split_run_in_heading(block.text)
    if not heading:
        return block
    headings = block.headings if block.headings[-1:] == (heading,) else (*block.headings, heading)
    return block._replace(headings=headings, text=text)


def _has_gap(block: TextBlock) -> bool:
    return GAP_MARK in block.text or GAP_MARK in "".join(block.headings)


def _fill_gaps(block: TextBlock, mask: str) -> TextBlock:
    headings = tuple(in_text_citations.fill_gaps(heading, mask) for heading in block.headings)
    return block._replace(headings=headings, text=in_text_citations.fill_gaps(block.text, mask))


def _drop_notes(blocks: list[TextBlock]) -> list[TextBlock]:
    """Drop paragraphs that are only a label ("Figure 3."), a link, the article's citation, editor or date.

    They stay if there is no other text.
    """
    others = [
        block
        for block in blocks
        if block.part == "title"
        or not (
            (len(block.text) <= MAX_LINK_NOTE and _is_short_note(block.text))
            or reference_lists.is_own_citation(block.text)
        )
    ]
    return others if any(block.part != "title" for block in others) else blocks


def _is_short_note(text: str) -> bool:
    return caption_notes.is_label(text) or caption_notes.is_link_note(text) or is_editorial_note(text)


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
    """Collect the blocks of an article or a sub-article."""
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
    sub_walker = SectionWalker(walker.captions_in_place, walker.has_tables)
    _walk_article(sub_walker, article)
    metadata = article.find("front-stub")
    title = extract_title(article.find("front/article-meta") if metadata is None else metadata)
    parent_headings = (title,) if title else ()
    walker.blocks += [
        TextBlock("sub-article", parent_headings + block.headings, block.text) for block in sub_walker.blocks
    ]


def has_body(article: etree._Element) -> bool:
    """Return True if the article has a body."""
    body = article.find("body")
    return body is not None and len(body) > 0


def extract_title(metadata: etree._Element | None) -> str:
    """Return the title of an ``article-meta`` or ``front-stub``, with its subtitle after a colon."""
    group = metadata.find("title-group") if metadata is not None else None
    if group is None:
        return ""
    titles = [extract_text(part) for part in group.iterchildren("article-title", "subtitle")]
    return ": ".join(text for text in titles if text)
