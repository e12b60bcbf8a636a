"""Extract the text of an article as blocks: paragraphs, list items, captions and footnotes.

Reading order: title, abstracts, body, back matter, floats, sub-articles. In a section, its paragraphs come
first, then the captions of its figures and tables, then its subsections. References, graphics, authors and
licences are excluded, and table cells unless they are asked for; elements.py counts them. Each element type
with text of its own has a handler. Unknown elements are walked, so that publishers' own lose no text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from lxml import etree

from bioshards.corpus.jats import (
    captions,
    displayed_formulas,
    elements,
    inline,
    publisher_notes,
    tables,
    text_rules,
)
from bioshards.corpus.jats.article_metadata import find_main_abstract, is_translated
from bioshards.corpus.jats.elements import TAXPUB, DroppedText
from bioshards.corpus.jats.filters import (
    REFERENCES_PART,
    PmcConfig,
)
from bioshards.corpus.jats.in_text_marks import HEADING_FRAME
from bioshards.corpus.jats.inline import (
    CITED_WORKS,
    DISPLAYED_FORMULAS,
    WORD_GAP,
    WRITTEN_DISPLAYED_FORMULA,
    TextPieces,
    append_inline,
    extract_text,
    join_pieces,
)
from bioshards.corpus.jats.paragraph_roles import Headings, TextBlock, assign_roles
from bioshards.corpus.jats.xml_tree import XML_LANG
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.text.cleaning import remove_escaped_markup
from bioshards.corpus.xml.element_text import text_content, unescape_once


def extract_blocks(
    article: etree._Element, config: PmcConfig, dropped: DroppedText | None = None
) -> list[TextBlock]:
    """Extract all blocks of an article, in reading order.

    Args:
        article: result of :func:`xml_tree.parse_article`, in which citations and formulas are marked.
        config: how citations, formulas and tables are written.
        dropped: counts the text of elements that is in no block.
    """
    dropped = {} if dropped is None else dropped
    inline.mark_citations(
        article, author_year=config.author_year_citations, numeric=config.citations == "keep"
    )
    inline.write_formulas(article, config.formula)
    walker = _ArticleWalker(config.has_tables, dropped)
    walker.walk_article(article)
    elements.count_unread(article, dropped)
    return assign_roles(walker.blocks, config)


def _is_reference_note(block: TextBlock) -> bool:
    """Return True if a footnote is a reference, but not how to cite the article, a note of its publisher."""
    return (
        text_rules.is_whole_reference(block.text)
        and publisher_notes.classify_paragraph(block.text, "".join(block.headings[-1:])) is None
    )


_PARTS_WITHOUT_HEADINGS: Final = frozenset({"caption", "footnote", "table", "glossary"})
"""Parts in which marked text at the start of a paragraph is a title or label that stays in the text."""
_SUMMARY_TYPE_LIST: Final = """
    summary synopsis author-summary executive-summary editor-summary editors-summary plain-language-summary
    plain-language lay-abstract lay-summary patient-summary longsummary short
"""
_SUMMARY_TYPES: Final = frozenset(_SUMMARY_TYPE_LIST.split())
_NOTE_TYPES: Final = frozenset(  # types of footnotes that are not about a person's address
    {"con", "conflict", "coi-statement", "financial-disclosure", "supported-by", "study-group-members"}
)
_SKIPPED_ELEMENTS: Final = ("title", "caption", *elements.DROPPED_ELEMENTS)
"""Elements without text in place; the handlers of their parents read titles and captions."""
_INLINE_ELEMENTS: Final = (
    "alternatives",
    "related-article",
    "index-term",
    "inline-media",
    *CITED_WORKS.split(),
)
"""Elements with a handler between paragraphs that are part of the text in them."""
_METADATA_SECTIONS: Final = {
    "article-type-status": "notes",
    "author-bio": "bio",
    "contrib-info": "contrib-group",
    "history": "history",
    "kwd-group": "kwd-group",
    "synthesis-author-response": "sub-article",
}
"""What sections are by their types, or those of their notes: elements of metadata of which PMC's XML of 2026
makes sections, the state of Karger's articles, and eNeuro's reviews.
"""
_REPEATING_SECTIONS: Final = ("associated-data", "Abstract")
"""PMC adds a section of this type, of data and supplements; a body may begin with one of this title."""
_ROW_ELEMENTS: Final = ("tbody", "tr")
_PARAGRAPH_END: Final = "\0"
"""Character that no XML has, where a paragraph of HTML that came as text ends."""
_ACKNOWLEDGEMENTS_TITLE: Final = re.compile(r"[\W\d]*acknowledge?ments?\W*", re.IGNORECASE)


class _ArticleWalker:
    """A walk over one article that collects its blocks.

    Args:
        has_tables: True to add the rows of tables, after their captions.
        dropped: counts the text of elements that is in no block.
    """

    def __init__(self, has_tables: bool, dropped: DroppedText) -> None:
        self.blocks: list[TextBlock] = []
        self._has_tables = has_tables
        self._dropped = dropped
        self._pending_floats: list[tuple[etree._Element, Headings]] = []
        self._repeating_sections = set(_REPEATING_SECTIONS)
        self._formula_place = -1
        """Number of blocks before the last displayed formula that ended its paragraph, or was between two."""

    def walk_article(self, article: etree._Element) -> None:
        """Collect the blocks of an article or a sub-article."""
        metadata = article.find("front/article-meta")
        if metadata is None:
            metadata = article.find("front-stub")
        if metadata is not None:
            self._walk_front_matter(metadata, to_marc_code(article.get(XML_LANG) or "en"))
        notes = self._take_front_notes(article, metadata)
        self.blocks += [block for block in notes if block.part == "body"]
        for name in ("body", "back"):
            container = article.find(name)
            if container is not None:
                self._walk_titled(container, "body", (), "")
        self.blocks += [block for block in notes if block.part != "body"]
        if metadata is not None:
            self._walk_statements(metadata)
        for group in article.iterchildren("floats-group", "floats-wrap"):
            self._walk_children(group, "caption", ())
        self._add_pending_captions()
        for name in ("sub-article", "response"):
            for sub_article in article.iterfind(name):
                self._walk_sub_article(sub_article)

    def _walk_front_matter(self, metadata: etree._Element, language: str) -> None:
        if title := extract_title(metadata):
            self._add_block("title", (), title)
        abstracts = list(metadata.iterchildren("abstract", "trans-abstract"))
        main_abstract = find_main_abstract(abstracts, language)
        for abstract in abstracts:
            abstract_type = (abstract.get("abstract-type") or "").lower()
            part = "summary" if abstract_type in _SUMMARY_TYPES else "other-abstract"
            title = abstract_type.replace("-", " ").capitalize()
            if abstract is main_abstract:
                part, title = "abstract", "Abstract"
            elif is_translated(abstract, language):
                part, title = "translated-abstract", title or "Abstract"
            self._walk_titled(abstract, part, (), title)

    def _take_front_notes(self, article: etree._Element, metadata: etree._Element | None) -> list[TextBlock]:
        """Return the blocks of notes, glossaries and others that are beside the metadata.

        Those of the body are read before it, as key messages; the others after the back matter.
        """
        front = article.find("front")
        if front is None:
            return []
        first_block = len(self.blocks)
        for element in front:
            if element is not metadata and element.tag != "journal-meta":
                self._walk_children((element,), "body", ())
        self._add_pending_captions()
        notes = self.blocks[first_block:]
        del self.blocks[first_block:]
        return notes

    def _walk_statements(self, metadata: etree._Element) -> None:
        """Walk what the metadata has of prose: notes about authors, on funding and data, supplements.

        A statement that is in a section too is counted, not repeated.
        """
        for notes in metadata.iterchildren("author-notes"):
            self._walk_footnotes(notes, "footnote", ())
        for group in metadata.iterchildren("title-group"):
            self._walk_children(group.iterchildren("fn-group"), "footnote", ())
        statements = [
            (element, "Support" if element.tag == "support-description" else "Funding")
            for group in metadata.iterchildren("funding-group", "support-group")
            for element in group.iter("funding-statement", "open-access", "support-description")
        ]
        for group in metadata.iterchildren("custom-meta-group", "custom-meta-wrap"):
            for item in group.iterchildren("custom-meta"):
                title, value = _join_texts(item.iterchildren("meta-name")), item.find("meta-value")
                if value is not None and text_rules.is_boilerplate(title):
                    statements.append((value, title))
                else:
                    elements.count_dropped(item, self._dropped)
        if statements:
            texts = {block.text for block in self.blocks}
            for element, title in statements:
                if extract_text(element) in texts:
                    elements.count_dropped(element, self._dropped)
                else:
                    first_block = len(self.blocks)
                    self._walk_unknown(element, "boilerplate", (title,))
                    for index in range(first_block, len(self.blocks)):
                        self.blocks[index] = _remove_repeated_title(self.blocks[index], title)
        self._walk_children(metadata.iterchildren("supplementary-material"), "caption", ())

    def _walk_sub_article(self, article: etree._Element) -> None:
        walker = _ArticleWalker(self._has_tables, self._dropped)
        walker.walk_article(article)
        metadata = article.find("front-stub")
        title = extract_title(article.find("front/article-meta") if metadata is None else metadata)
        parent_headings = (title,) if title else ()
        self.blocks += [
            block._replace(
                part=REFERENCES_PART if block.part == REFERENCES_PART else "sub-article",
                headings=parent_headings + block.headings,
            )
            for block in walker.blocks
        ]

    # Sections and what is in them

    def _add_block(self, part: str, headings: Headings, text: str) -> None:
        """Add a block, unless the text is only punctuation, which a paragraph with one link leaves.

        What was escaped twice is resolved; tables in it are treated as others.
        """
        if "&" in text:
            text = unescape_once(text)
        escaped_tables: list[etree._Element] | None = None
        if "<" in text and "</" in text:  # a search for one character is ten times as fast
            text, escaped_tables = tables.cut_escaped_tables(text_rules.remove_html_references(text))
            text = remove_escaped_markup(text.replace("</p>", f"</p>{_PARAGRAPH_END}"))
            *paragraphs, text = map(str.strip, text.split(_PARAGRAPH_END))
            for paragraph in paragraphs:
                self._add_block(part, headings, paragraph)
        if len(text) > 2 or any(map(str.isalnum, text)):
            block = TextBlock(part, headings, text)
            if self._formula_place == len(self.blocks) and self._goes_on(block):
                before = self.blocks[-1]
                joined = displayed_formulas.join_at_formula(before.text, text)
                self.blocks[-1] = before._replace(text=joined)
            else:
                self.blocks.append(block)
        if escaped_tables and self._has_tables:
            for table in escaped_tables:
                self.blocks += [TextBlock("table", headings, row) for row in tables.format_rows(table)]

    def _goes_on(self, block: TextBlock) -> bool:
        """Return True if a block goes on with the sentence of the one before the last formula."""
        return block.text[0].islower() and self._is_unfinished(block.part, block.headings)

    def _walk_children(self, parent: Iterable[etree._Element], part: str, headings: Headings) -> None:
        """Walk the content of a section, box or list item; unknown elements are walked recursively."""
        get_handler, default = _HANDLERS.get, _ArticleWalker._walk_unknown
        for child in parent:
            get_handler(child.tag, default)(self, child, part, headings)

    def _skip(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Skip an element without text."""

    def _drop(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Count an element that is text within a sentence only."""
        elements.count_dropped(element, self._dropped)

    def _walk_unknown(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Walk an element without a handler: a paragraph if it has text of its own, else under its title."""
        if _has_own_text(element):
            self._add_paragraph(element, part, headings)
        else:
            self._walk_statement(element, part, headings)

    def _add_displayed_formula(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Add a displayed formula between paragraphs."""
        if element.tag == WRITTEN_DISPLAYED_FORMULA:
            self._add_block(part, headings, displayed_formulas.get_written(element))
        else:
            self._formula_place = len(self.blocks)

    def _walk_section(self, section: etree._Element, part: str, headings: Headings) -> None:
        self._add_pending_captions()  # of the text before the section
        title = _element_title(section)
        section_type = section.get("sec-type")
        metadata_name = _METADATA_SECTIONS.get(section_type or section.get("notes-type") or "")
        if text_rules.is_title_of_biographies(title):
            metadata_name = "bio"
        elif metadata_name == "history" and not _is_in_notes(section):  # of a patient
            metadata_name = None
        if metadata_name:
            elements.add_dropped(metadata_name, len(text_content(section)), self._dropped)
            return
        first_block = len(self.blocks)
        part = self._classify_section(section, title, part)
        self._walk_under_title(section, part, headings, title)
        if part == "boilerplate" and text_rules.is_supplement_title(title):
            self._clean_captions(first_block, (*headings, title), is_supplement=True)
        for kind in (section_type, title):
            if kind in self._repeating_sections:
                self._repeating_sections.remove(kind)
                self._drop_repetitions(first_block)

    def _drop_repetitions(self, first_block: int) -> None:
        """Drop the blocks from an index that repeat others of the article.

        Each kind of section is looked at once: for any number of them it would take quadratic time.
        """
        texts = {block.text for block in self.blocks[:first_block]}
        added = self.blocks[first_block:]
        self.blocks[first_block:] = [block for block in added if block.text not in texts]
        elements.add_dropped(
            "sec", sum(len(block.text) for block in added if block.text in texts), self._dropped
        )

    def _classify_section(self, section: etree._Element, title: str, part: str) -> str:
        """Return the part to which a section with this title belongs."""
        if part == "caption":
            return part
        if text_rules.is_boilerplate(title, (section.get("sec-type"), section.get("notes-type"))):
            return "boilerplate"
        return "acknowledgements" if _ACKNOWLEDGEMENTS_TITLE.fullmatch(title) else part

    def _walk_titled(
        self, section: etree._Element, part: str, headings: Headings, default_title: str
    ) -> None:
        """Walk a section under its title, or under ``default_title`` if it has none."""
        self._walk_under_title(section, part, headings, _element_title(section) or default_title)

    def _walk_under_title(self, section: etree._Element, part: str, headings: Headings, title: str) -> None:
        first_block = len(self.blocks)
        self._walk_children(section, part, (*headings, title) if title else headings)
        self._add_pending_captions()
        self._drop_references(first_block, title)

    def _count_title_of_nothing(self, first_block: int, title: str) -> None:
        """Count a title if there are no blocks that it is a heading of."""
        if title and len(self.blocks) == first_block:
            elements.add_dropped("title", len(title), self._dropped)

    def _drop_references(self, first_block: int, title: str) -> None:
        """Drop the blocks of a section or list if they are references."""
        self._count_title_of_nothing(first_block, title)
        if title and text_rules.is_reference_title(title):
            texts = [block.text for block in self.blocks[first_block:]]
            if texts and text_rules.are_references(texts):
                references = self.blocks[first_block:]
                self.blocks[first_block:] = [block._replace(part=REFERENCES_PART) for block in references]

    def _walk_box(self, box: etree._Element, part: str, headings: Headings) -> None:
        """Walk boxed text as a section of the body, even if it floats."""
        self._add_pending_captions()
        part = "body" if part == "caption" else part
        caption = box.find("caption")
        title = _element_title(box) or ("" if caption is None else _element_title(caption))
        headings = (*headings, title) if title else headings
        self._walk_children(() if caption is None else caption, part, headings)
        self._walk_children(box, part, headings)
        self._add_pending_captions()

    def _walk_statement(self, element: etree._Element, part: str, headings: Headings) -> None:
        self._walk_titled(element, part, headings, "")

    def _walk_acknowledgements(self, ack: etree._Element, part: str, headings: Headings) -> None:
        has_titled_sections = any(_element_title(section) for section in ack.iterchildren("sec"))
        part = self._classify_section(ack, _element_title(ack), "acknowledgements")
        self._walk_titled(ack, part, headings, "" if has_titled_sections else "Acknowledgements")

    def _walk_appendix(self, app: etree._Element, part: str, headings: Headings) -> None:
        label = app.find("label")
        title = "Appendix" if label is None else extract_text(label)
        section = app.find("sec")
        if section is not None and _element_title(section).startswith("Appendix"):
            title = ""
        self._walk_titled(app, "appendix", headings, title)

    def _walk_glossary(self, glossary: etree._Element, part: str, headings: Headings) -> None:
        self._walk_titled(glossary, "glossary", headings, "Glossary")

    def _walk_list(self, items: etree._Element, part: str, headings: Headings) -> None:
        title = _element_title(items)
        first_block = len(self.blocks)
        headings = (*headings, title) if title else headings
        for item in items:
            if item.tag != "list-item":
                self._walk_children((item,), part, headings)
                continue
            first_item_block = len(self.blocks)
            item_title = _element_title(item)
            self._walk_children(item, part, (*headings, item_title) if item_title else headings)
            self._count_title_of_nothing(first_item_block, item_title)
        self._drop_references(first_block, title)

    def _walk_definitions(self, definitions: etree._Element, part: str, headings: Headings) -> None:
        title = _element_title(definitions)
        first_block = len(self.blocks)
        headings = (*headings, title) if title else headings
        for child in definitions:
            if child.tag == "def-item":
                term = "".join(map(extract_text, child.iterchildren("term"))).removesuffix(":")
                meaning = _join_texts(child.iterchildren("def"))
                self._add_block(part, headings, f"{term}: {meaning}" if term and meaning else term or meaning)
                self._walk_children(child.iterchildren("x"), part, headings)
            else:
                self._walk_children((child,), part, headings)
        self._count_title_of_nothing(first_block, title)

    def _add_array(self, array: etree._Element, part: str, headings: Headings) -> None:
        """Add the rows of a table without a frame: of a glossary's terms, or if tables are text."""
        if part == "glossary":
            for row in array.iter("tr"):
                self._add_block(part, headings, ": ".join(filter(None, map(extract_text, row))))
        elif self._has_tables:
            self.blocks += [TextBlock("table", headings, row) for row in tables.format_rows(array)]
        else:
            elements.count_dropped(array, self._dropped)
            return
        self._walk_children((child for child in array if child.tag not in _ROW_ELEMENTS), part, headings)

    def _add_nomenclature(self, nomenclature: etree._Element, part: str, headings: Headings) -> None:
        """Add the name of a taxon with its authority and status as a paragraph, then what else is there."""
        pieces: TextPieces = [nomenclature.text or ""]
        others = []
        rank = elements.take_title_label(nomenclature)  # Genus
        for child in nomenclature:
            if child is rank:
                pieces.append(extract_text(child))
            elif child.tag in _HANDLERS and child.tag not in _INLINE_ELEMENTS:
                others.append(child)
            else:
                append_inline(child, pieces)
            pieces += (WORD_GAP, child.tail or "")
        self._add_block(part, headings, join_pieces(pieces))
        self._walk_children(others, part, headings)

    def _add_verses(self, verses: etree._Element, part: str, headings: Headings) -> None:
        titles = [
            _join_texts(group.iterchildren("title", "subtitle")) for group in verses.iter("verse-group")
        ]
        headings = (*headings, *filter(None, titles))
        self._add_block(part, headings, _join_texts(verses.iter("verse-line")))

    def _add_speech(self, speech: etree._Element, part: str, headings: Headings) -> None:
        speakers = [extract_text(speaker).rstrip(" :") for speaker in speech.iterchildren("speaker")]
        self._add_block(part, headings, ": ".join([*speakers, _join_texts(speech.iterchildren("p"))]))

    def _add_paragraph(self, paragraph: etree._Element, part: str, headings: Headings) -> None:
        """Add a paragraph: one block, or several if it contains lists and the like."""
        if not len(paragraph):
            text, headings = self._split_framed_heading(paragraph, part, headings)
            self._add_block(part, headings, join_pieces([text]))
            return
        text, headings = self._split_framed_heading(paragraph, part, headings)
        pieces: TextPieces = [text]
        footnotes = []
        for child in paragraph:
            tag = child.tag
            handler = _HANDLERS.get(tag)
            if handler is None:
                append_inline(child, pieces)
                if len(child):
                    self._pending_floats += [(nested, headings) for nested in _iter_supplements(child)]
            elif tag in _INLINE_ELEMENTS:
                append_inline(child, pieces)
            elif tag == "fn":
                footnotes.append(child)
            elif handler is _ArticleWalker._skip:
                pieces.append(WORD_GAP)
            elif handler is _ArticleWalker._add_displayed_formula:
                before = "".join(pieces).rstrip()
                place = displayed_formulas.place_formula(child, before)
                if not before and not place.word and self._is_unfinished(part, headings):
                    self._add_opening_formula(place.following)
                    pieces = [child.tail or ""]
                    continue
                pieces += (WORD_GAP, place.word, WORD_GAP)
                if place.ends_block:
                    self._add_block(part, headings, join_pieces(pieces))
                    pieces = []
                if place.takes_tail:
                    continue
            elif handler in (_ArticleWalker._add_float, _ArticleWalker._add_graphic):
                pieces.append(WORD_GAP)
                handler(self, child, part, headings)
            else:
                self._add_block(part, headings, join_pieces(pieces))
                pieces = []
                handler(self, child, part, headings)
            if tail := child.tail:
                pieces.append(tail)
        self._add_block(part, headings, join_pieces(pieces))
        if displayed_formulas.ends_in_formula(paragraph):
            self._formula_place = len(self.blocks)
        for footnote in footnotes:
            self._add_footnote(footnote, part, headings)

    def _is_unfinished(self, part: str, headings: Headings) -> bool:
        """Return True if the last block is a paragraph beside one, and its sentence has no end."""
        return (
            bool(self.blocks)
            and self.blocks[-1][:2] == (part, headings)
            and not displayed_formulas.ends_sentence(self.blocks[-1].text)
        )

    def _add_opening_formula(self, following: str) -> None:
        """Add a displayed formula that opens a paragraph to the unfinished sentence before it."""
        last = self.blocks[-1]
        if following.islower():
            self._formula_place = len(self.blocks)
        elif mark := displayed_formulas.mark_formula(last.text, following):
            self.blocks[-1] = last._replace(text=f"{last.text} {mark}")

    def _split_framed_heading(
        self, paragraph: etree._Element, part: str, headings: Headings
    ) -> tuple[str, Headings]:
        """Return the text before the first child, and the headings with the one that the text begins with.

        A heading that is the whole paragraph is added as a block that begins with its frame.
        """
        text = paragraph.text or ""
        if not text.startswith(HEADING_FRAME) or part in _PARTS_WITHOUT_HEADINGS:
            return text, headings
        _, heading, *after = text.split(HEADING_FRAME, 2)
        heading = join_pieces([heading])
        if not heading or not after:  # the article has the character itself, as a reference
            return text, headings
        [rest] = after
        if text_rules.is_reference_title(heading) or text_rules.is_note(heading):
            return text, headings
        if rest.strip() or len(paragraph):
            return rest, (*headings, heading.rstrip(".:"))
        self._add_block(part, headings, HEADING_FRAME + heading)
        return "", headings

    def _walk_first_alternative(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Walk the first alternative that has text."""
        first_block = len(self.blocks)
        for child in element:
            self._walk_children((child,), part, headings)
            if len(self.blocks) > first_block:
                return

    # Figures, tables, footnotes

    def _add_float(self, element: etree._Element, part: str, headings: Headings) -> None:
        self._pending_floats.append((element, headings))

    def _add_graphic(self, element: etree._Element, part: str, headings: Headings) -> None:
        """Add a picture that has a caption itself."""
        if element.find("caption") is not None:
            self._pending_floats.append((element, headings))

    def _add_pending_captions(self) -> None:
        """Add the captions of the floats since the last call."""
        if self._pending_floats:
            floats, self._pending_floats = self._pending_floats, []
            for element, headings in floats:
                self._add_captions(element, headings)

    def _add_captions(self, element: etree._Element, headings: Headings) -> None:
        label = next(element.iterchildren("label"), None)
        if label is not None and (text := extract_text(label)):
            headings = (*headings, text)
        first_block = len(self.blocks)
        for child in element:
            tag = child.tag
            if tag == "caption":
                self._add_block("caption", headings, _element_title(child))
                self._walk_children(child, "caption", headings)
            elif tag == "p":
                self._add_paragraph(child, "caption", headings)
            elif tag == "attrib" and captions.is_figure_note(extract_text(child)):
                child.tag = "p"  # which is not counted as dropped
                self._add_paragraph(child, "caption", headings)
            elif self._has_tables and (table := next(child.iter("table"), None)) is not None:
                self.blocks += [TextBlock("table", headings, row) for row in tables.format_rows(table)]
            elif tag == "table-wrap-foot":
                self._walk_titled(child, "caption", headings, "")
            elif _HANDLERS.get(tag) is _ArticleWalker._add_float:
                self._add_captions(child, headings)
            elif tag not in ("label", "graphic"):
                self._walk_children((child,), "caption", headings)
        if label is not None and len(self.blocks) == first_block:  # a label of nothing
            elements.count_dropped(label, self._dropped)
        self._clean_captions(first_block, headings, element.tag in ("supplementary-material", "media"))

    def _clean_captions(self, first_block: int, headings: Headings, is_supplement: bool) -> None:
        """Remove notes from the captions that were added last, and make labels in their text headings."""
        added = self.blocks[first_block:]
        self.blocks[first_block:] = []
        label_headings = headings
        for block in added:
            if block.part == "table":
                path = label_headings if block.headings == headings else block.headings
                self._add_block(block.part, path, block.text)
                continue
            text = block.text
            if text[0] == "—" and block is added[0]:  # between the label and the caption
                text = text_rules.remove_bullet(text)
            text = captions.remove_file_notes(text, is_supplement)
            text = captions.remove_colour_notes(text)
            for part_text in captions.split_at_labels(text) if is_supplement else (text,):
                label, rest = captions.split_caption_label(part_text)
                if label:
                    label_headings = headings if headings[-1:] == (label,) else (*headings, label)
                path = label_headings if block.headings == headings else block.headings
                for panel_text in captions.split_at_first_panel(rest if label and rest else part_text):
                    self._add_block(block.part, path if rest else block.headings, panel_text)

    def _walk_footnotes(self, group: etree._Element, part: str, headings: Headings) -> None:
        """Walk a group of footnotes. Notes about a person's address are counted."""
        title = _element_title(group)
        if text_rules.is_boilerplate(title):
            part = "boilerplate"
        headings = (*headings, title) if title else headings
        note_headings = (
            headings
            if title or part == "caption" or headings[-1:] == (publisher_notes.FOOTNOTES_HEADING,)
            else (*headings, publisher_notes.FOOTNOTES_HEADING)
        )
        first_block = len(self.blocks)
        for child in group:
            if child.tag != "fn":
                self._walk_children((child,), part, headings)
            elif group.tag == "fn-group" or (child.get("fn-type") or "").lower() in _NOTE_TYPES:
                self._add_footnote(child, part, note_headings)
            else:
                elements.count_dropped(child, self._dropped)
        self._count_title_of_nothing(first_block, title)

    def _add_footnote(self, footnote: etree._Element, part: str, headings: Headings) -> None:
        """Add a footnote; the sign of a note of a table, which its cells have, stays: "* P < 0.05"."""
        if footnote.get("fn-type") == "corresp":
            elements.count_dropped(footnote, self._dropped)
            return
        first_block = len(self.blocks)
        title = _element_title(footnote)
        part = "boilerplate" if text_rules.is_boilerplate(title) else part
        part = part if part in ("caption", "boilerplate") else "footnote"
        self._walk_children(footnote, part, (*headings, title) if title else headings)
        self._count_title_of_nothing(first_block, title)
        sign = extract_text(footnote[0]) if len(footnote) and footnote[0].tag == "label" else ""
        if part == "caption" and sign and not any(map(str.isalnum, sign)) and len(self.blocks) > first_block:
            note = self.blocks[first_block]
            if not note.text.startswith(sign):
                gap = "" if note.text[0] in ",:;" else " "
                self.blocks[first_block] = note._replace(text=f"{sign}{gap}{note.text}")
        self.blocks[first_block:] = [
            block._replace(part=REFERENCES_PART) if _is_reference_note(block) else block
            for block in self.blocks[first_block:]
        ]
        footnote_blocks = self.blocks[first_block:]
        footnote_types = (footnote.get("fn-type"),)
        if (
            part == "footnote"
            and footnote_blocks
            and (
                text_rules.is_boilerplate("", footnote_types)
                or text_rules.starts_with_boilerplate_title(footnote_blocks[0].text)
            )
        ):
            self.blocks[first_block:] = [
                block._replace(part="boilerplate") if block.part != REFERENCES_PART else block
                for block in footnote_blocks
            ]


def _remove_repeated_title(block: TextBlock, title: str) -> TextBlock:
    """Return a block without its heading, if its text begins with it: "Funding None."."""
    text = block.text.removeprefix(f"{title} ")
    return block._replace(text=text) if text[:1].isupper() else block


def _is_in_notes(section: etree._Element) -> bool:
    parent = section.getparent()
    return parent is not None and parent.tag == "notes"


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


def _has_own_text(element: etree._Element) -> bool:
    """Return True if an element has text that is in none of its children."""
    texts = (element.text, *(child.tail for child in element))
    return any(text and not text.isspace() for text in texts)


def _iter_supplements(inline_element: etree._Element) -> Iterator[etree._Element]:
    """Yield the supplements inside an inline element (``<bold>``), whose captions are no part of its text."""
    last = None
    for element in inline_element.iter("supplementary-material", "media"):
        if last is None or last not in element.iterancestors():
            last = element
            yield element


def _join_texts(elements: Iterable[etree._Element]) -> str:
    """Return the texts of elements in one line, without those that are empty."""
    return " ".join(filter(None, map(extract_text, elements)))


def _element_title(section: etree._Element) -> str:
    """Return the title of a section, box or caption, or its label if that is the title."""
    if not len(section):
        return ""
    first = section[0]
    if first.tag == "title":  # nearly always, and faster than a loop
        return unescape_once(extract_text(first))
    title = next(section.iterchildren("title"), None)
    if title is None:
        title = elements.take_title_label(section)
    return "" if title is None else unescape_once(extract_text(title)).rstrip(":")


_HANDLERS: Final[dict[object, Callable[[_ArticleWalker, etree._Element, str, Headings], None]]] = {
    name: handler
    for handler, names in (
        (_ArticleWalker._skip, " ".join(_SKIPPED_ELEMENTS)),
        (_ArticleWalker._add_displayed_formula, " ".join((*DISPLAYED_FORMULAS, WRITTEN_DISPLAYED_FORMULA))),
        (_ArticleWalker._add_float, " ".join(elements.FLOAT_ELEMENTS)),
        (_ArticleWalker._drop, "related-article"),
        (_ArticleWalker._add_graphic, "graphic"),
        (_ArticleWalker._add_paragraph, "p preformat code"),
        (_ArticleWalker._walk_section, "sec notes"),
        (_ArticleWalker._walk_list, "list"),
        (_ArticleWalker._walk_definitions, "def-list"),
        (_ArticleWalker._walk_footnotes, "fn-group"),
        (_ArticleWalker._add_footnote, "fn"),
        (_ArticleWalker._walk_glossary, "glossary"),
        (_ArticleWalker._add_array, "array"),
        (_ArticleWalker._add_nomenclature, f"{TAXPUB}nomenclature {TAXPUB}nomenclature-citation"),
        (_ArticleWalker._add_verses, "verse-group"),
        (_ArticleWalker._add_speech, "speech"),
        (_ArticleWalker._walk_appendix, "app"),
        (_ArticleWalker._walk_acknowledgements, "ack"),
        (_ArticleWalker._walk_box, "boxed-text"),
        (_ArticleWalker._walk_first_alternative, "alternatives block-alternatives"),
        (
            _ArticleWalker._walk_unknown,
            f"disp-quote question-wrap question answer {TAXPUB}nomenclature-citation-list",
        ),
        (_ArticleWalker._walk_statement, "statement"),
    )
    for name in names.split()
}
"""Handlers by element name; other elements are walked."""
