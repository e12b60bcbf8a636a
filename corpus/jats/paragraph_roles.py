"""Tell what the paragraphs of an article are that have no markup for it: headings, references, notes.

This is decided when all paragraphs are known, as their neighbours count. It is the second half of reading an
article, after text_blocks.py has walked its elements.
"""

from __future__ import annotations

import itertools
from typing import Final, NamedTuple

from bioshards.corpus.jats import in_text_marks, picture_credits, publisher_notes, text_rules
from bioshards.corpus.jats.filters import (
    CITATION_MASK,
    FORMULA_MODES,
    FORMULA_WORD,
    NOTE_PARTS,
    REFERENCES_PART,
    PmcConfig,
)
from bioshards.corpus.jats.in_text_marks import FORMULA_MARK, GAP_MARK, HEADING_FRAME

Headings = tuple[str, ...]


class TextBlock(NamedTuple):
    """A paragraph in one line, with its part of the article and its headings from the outermost."""

    part: str
    headings: Headings
    text: str


_PARTS_WITH_KEYS: Final = frozenset({"caption", "footnote", "table", REFERENCES_PART})
"""Parts in which a dash at the start of a text may be what it explains: "– not seen"."""
_PARTS_WITHOUT_NOTES: Final = frozenset({"title", "table", REFERENCES_PART})
_REFERENCE_STARTS: Final = frozenset("(0123456789ABCFLMNRSWabcflmnrsw[")
"""First characters of titles of references, a fast prefilter."""
_ABSTRACT_PARTS: Final = frozenset({"abstract", "summary", "other-abstract", "translated-abstract"})


def assign_roles(blocks: list[TextBlock], config: PmcConfig) -> list[TextBlock]:
    """Return the blocks of an article by what they are, with words in place of the marks of their gaps.

    Headings go into the blocks below them. References and notes become parts of their own.

    Args:
        blocks: all paragraphs, in reading order.
        config: how citations and formulas are written, and whether notes stay.
    """
    mask = CITATION_MASK if config.citations == "mask" else ""
    formula_word = config.formula if config.formula not in ("", *FORMULA_MODES) else FORMULA_WORD
    blocks = [
        block if block.text[0].isalnum() else block._replace(text=_remove_loose_start(block))
        for block in blocks
    ]
    blocks = _mark_references(blocks)
    blocks = [
        _split_heading(block) if "." in block.text[: text_rules.MAX_RUN_IN_HEADING] else block
        for block in _join_headings(_drop_notes(blocks))
    ]
    if not config.keep_notes:
        blocks = _mark_publisher_notes(blocks)
    return [
        block
        if block.text.isascii() and "".join(block.headings).isascii()  # without marks
        else _fill_gaps(block, mask, formula_word)
        for block in blocks
    ]


def _remove_loose_start(block: TextBlock) -> str:
    """Return the text of a block without the mark at its start that is no part of it."""
    text = block.text
    if text[0] in ":.":
        return text_rules.remove_loose_start(text)
    has_keys = block.part in _PARTS_WITH_KEYS
    return text if has_keys or not text.startswith(text_rules.BULLETS) else text_rules.remove_bullet(text)


def _mark_references(blocks: list[TextBlock]) -> list[TextBlock]:
    """Make the paragraphs after one that is a title of references a part of their own, if they are such."""
    marked = list(blocks)
    for index, block in enumerate(blocks):
        text = block.text
        may_be_title = len(text) <= text_rules.MAX_REFERENCE_TITLE or text[0] in "Rr"
        if may_be_title and text[:1] in _REFERENCE_STARTS and block.part != "title":
            end = index + _count_references(blocks, index)
            marked[index:end] = [other._replace(part=REFERENCES_PART) for other in blocks[index:end]]
    return marked


def _count_references(blocks: list[TextBlock], index: int) -> int:
    """Return how many blocks from an index are a title of references and its references."""
    title = blocks[index]
    if text_rules.starts_with_references(title.text):
        return 1
    if not text_rules.is_reference_title(title.text):
        return 0
    following = itertools.takewhile(lambda block: _is_below(block, title), blocks[index + 1 :])
    num_references = text_rules.count_references([block.text for block in following])
    return 1 + num_references if num_references else 0


def _is_below(block: TextBlock, other: TextBlock) -> bool:
    return block.part == other.part and block.headings[: len(other.headings)] == other.headings


def _join_headings(blocks: list[TextBlock]) -> list[TextBlock]:
    """Make a paragraph that is only a heading the heading of those after it in its section."""
    if not any(map(_is_heading, blocks)):
        return blocks
    joined = []
    pending: list[TextBlock] = []
    is_after_heading = False
    for block, following in itertools.zip_longest(blocks, blocks[1:]):
        if _is_heading(block) and following is not None and _is_beside(block, following):
            is_below = is_after_heading and not text_rules.is_title_of_table(pending[-1].text)
            pending = [*pending, block] if is_below else [block]
            is_after_heading = True
            continue
        is_after_heading = False
        if pending and not _is_beside(block, pending[0]):
            pending = []
        if not pending and block.text[0] != HEADING_FRAME:
            joined.append(block)
            continue
        headings = [heading.text.strip(f"{HEADING_FRAME}:.") for heading in pending]
        text = block.text.removeprefix(HEADING_FRAME)  # a heading of nothing
        joined.append(TextBlock(block.part, (*block.headings, *headings), text))
        if pending and text_rules.ends_abstract(headings[-1], text):
            pending = []
    return joined


def _is_heading(block: TextBlock) -> bool:
    text = block.text
    return text[0] == HEADING_FRAME or (
        len(text) <= text_rules.MAX_PARAGRAPH_HEADING and text_rules.is_heading(text)
    )


def _is_beside(block: TextBlock, other: TextBlock) -> bool:
    return block.part == other.part and block.headings == other.headings


def _split_heading(block: TextBlock) -> TextBlock:
    """Make the first sentence of a paragraph a heading if it is one ("Funding.")."""
    heading, text = text_rules.split_run_in_heading(block.text)
    if not heading or block.part == "table":
        return block
    headings = block.headings if block.headings[-1:] == (heading,) else (*block.headings, heading)
    return block._replace(headings=headings, text=text)


def _fill_gaps(block: TextBlock, mask: str, formula_word: str) -> TextBlock:
    """Write the mask, which may be empty, for citations that were nouns, and the word for formulas."""
    for mark, fill, word in (
        (GAP_MARK, in_text_marks.fill_gaps, mask),
        (FORMULA_MARK, in_text_marks.write_formula_words, formula_word),
    ):
        if mark in block.text or mark in "".join(block.headings):
            headings = tuple(fill(heading, word) for heading in block.headings)
            block = block._replace(headings=headings, text=fill(block.text, word))
    return block


def _drop_notes(blocks: list[TextBlock]) -> list[TextBlock]:
    """Drop paragraphs that are only a label ("Figure 3.") or a link.

    They stay if there is no other text.
    """
    kept_parts = ("title", REFERENCES_PART)
    others = [block for block in blocks if block.part in kept_parts or not text_rules.is_note(block.text)]
    return others if any(block.part not in kept_parts for block in others) else blocks


def _mark_publisher_notes(blocks: list[TextBlock]) -> list[TextBlock]:
    """Make publisher's notes blocks of their own, whose parts are their kinds; unless all text is notes."""
    marked: list[TextBlock] = []
    for block in blocks:
        part, headings, text = block
        if part in _PARTS_WITHOUT_NOTES:
            marked.append(block)
            continue
        heading = headings[-1] if headings else ""
        previous = marked[-1] if marked else block
        if previous.part == "citation-note" and publisher_notes.is_citation_title(previous.text):
            heading = previous.text
        if kind := publisher_notes.classify_paragraph(text, heading):
            marked.append(TextBlock(kind, headings, text))
            continue
        notes: list[tuple[str, str]] = []
        if part == "caption" and (credited := picture_credits.split_credits(text)):
            text = credited.text
            notes = [("licence-note", sentence) for sentence in credited.credits]
        # Cleaning removes the notes at the end of an abstract.
        if text and part not in _ABSTRACT_PARTS and (ended := publisher_notes.split_notes(text)):
            text, notes = ended.text, [*notes, *ended.notes]
        if not notes:
            marked.append(block)
            continue
        if text:
            marked.append(TextBlock(part, headings, text))
        marked += [TextBlock(kind, headings, note) for kind, note in notes]
    has_text = any(block.part not in ("title", REFERENCES_PART, *NOTE_PARTS) for block in marked)
    return marked if has_text else blocks
