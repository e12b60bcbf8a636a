"""The sections of an article, and all that can be in them, as blocks of text.

Every element that is text of a kind of its own has a function here; what is not known is looked into, so that
no publisher's new element costs text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from lxml import etree

from .jats_boilerplate import is_boilerplate, opens_as_boilerplate
from .jats_inline import Pieces, append_one, joined, text_of

Headings = tuple[str, ...]


class Block(NamedTuple):
    """A paragraph's text in one line, its part of the article, and its headings from the outermost."""

    part: str
    headings: Headings
    text: str


_NOTED: Final = frozenset(  # types of footnotes that are not about a person's address
    {"con", "conflict", "coi-statement", "financial-disclosure", "supported-by", "study-group-members"}
)
_LINK: Final = re.compile(
    r"(?:^click here (?:for|to) .*|\bdownload .{1,60}, \w{1,5} file, [\d.]+ ?[kmg]?b\.?"
    r"|^\((?:[\d.,]+ ?[kmg]?b)?[, ]*(?:[a-z]{2,4}[34x]?)?\)\.?)$",
    re.IGNORECASE,
)
"""What stands under a supplement instead of a caption, or at its end: "Click here for additional data file.",
"(1.3 MB TIF)", "Download FIG S1, PDF file, 0.1 MB."."""
_FLOATS: Final = (
    *("fig", "fig-group", "table-wrap", "table-wrap-group", "supplementary-material", "media"),
    "chem-struct-wrap",
)
_NO_TEXT: Final = (
    *("title", "subtitle", "label", "ref-list", "sec-meta", "permissions", "bio", "graphic", "object-id"),
    *("alternatives", "table", "array", "tex-math", "attrib"),
    *("alt-text", "long-desc", "alt-title", "caption"),
    *("kwd-group", "subj-group", "related-article", "related-object"),
    *("mixed-citation", "element-citation", "nlm-citation"),
)
"""Elements of which nothing is text where they stand; titles and captions are read by what holds them."""
_THANKS: Final = re.compile(r"[\W\d]*acknowledge?ments?\W*", re.IGNORECASE)


class Walk:
    """One walk over an article, gathering its blocks.

    Args:
        plain: as PMC's plain text has it: captions where they stand, "(see)" where a citation was.
        formula: what stands for a displayed formula in its paragraph; "" for nothing.
    """

    def __init__(self, plain: bool, formula: str) -> None:
        self.blocks: list[Block] = []
        self.plain, self.formula = plain, formula
        self._floats: list[tuple[etree._Element, Headings]] = []

    # Sections and what is in them

    def add(self, part: str, headings: Headings, text: str) -> None:
        if len(text) > 2 or any(map(str.isalnum, text)):  # "." is what a paragraph of one link leaves
            self.blocks.append(Block(part, headings, text))

    def inside(self, parent: Iterable[etree._Element], part: str, headings: Headings) -> None:
        """What is in a section, a box, a list item ...; what is not known is looked into."""
        for child in parent:
            _OF_TAG.get(child.tag, Walk.inside)(self, child, part, headings)

    def _nothing(self, element: etree._Element, part: str, headings: Headings) -> None:
        """No text of the article's."""

    def _displayed(self, element: etree._Element, part: str, headings: Headings) -> None:
        """A displayed formula between paragraphs."""
        self.add(part, headings, self.formula)

    def _section(self, section: etree._Element, part: str, headings: Headings) -> None:
        self.captions()  # of what stands before it
        title = _title(section)
        self._under(section, self._part(section, title, part), headings, title)

    def _part(self, section: etree._Element, title: str, part: str) -> str:
        """The part that a section of this title, in this part, is."""
        if part == "caption":
            return part
        if is_boilerplate(title, (section.get("sec-type"), section.get("notes-type"))):
            return "boilerplate"
        return "acknowledgements" if _THANKS.fullmatch(title) else part

    def titled(self, section: etree._Element, part: str, headings: Headings, default: str) -> None:
        """A section under its title, or under ``default`` if it has none."""
        self._under(section, part, headings, _title(section) or default)

    def _under(self, section: etree._Element, part: str, headings: Headings, title: str) -> None:
        self.inside(section, part, (*headings, title) if title else headings)
        self.captions()

    def _box(self, box: etree._Element, part: str, headings: Headings) -> None:
        """Boxed text: a section of the body, wherever it floats."""
        self.captions()
        part = "body" if part == "caption" else part
        caption = box.find("caption")
        title = _title(box) or ("" if caption is None else _title(caption))
        headings = (*headings, title) if title else headings
        self.inside(() if caption is None else caption, part, headings)
        self.inside(box, part, headings)
        self.captions()

    def _titled_block(self, element: etree._Element, part: str, headings: Headings) -> None:
        self.titled(element, part, headings, "")

    def _acknowledgements(self, ack: etree._Element, part: str, headings: Headings) -> None:
        titled_inside = any(_title(section) for section in ack.iterchildren("sec"))
        part = self._part(ack, _title(ack), "acknowledgements")
        self.titled(ack, part, headings, "" if titled_inside else "Acknowledgements")

    def _appendix(self, app: etree._Element, part: str, headings: Headings) -> None:
        self.titled(
            app,
            "appendix",
            headings,
            text_of(label) if (label := app.find("label")) is not None else "Appendix",
        )

    def _glossary(self, glossary: etree._Element, part: str, headings: Headings) -> None:
        self.titled(glossary, "glossary", headings, "Glossary")

    def _items(self, items: etree._Element, part: str, headings: Headings) -> None:
        title = _title(items)
        for item in items.iterchildren("list-item"):
            self.inside(item, part, (*headings, title) if title else headings)

    def _definitions(self, definitions: etree._Element, part: str, headings: Headings) -> None:
        for child in definitions:
            if child.tag == "def-item":
                term = "".join(map(text_of, child.iterchildren("term")))
                meaning = " ".join(
                    text_of(p) for of in child.iterchildren("def") for p in of.iterchildren("p")
                )
                self.add(part, headings, f"{term}: {meaning}" if term and meaning else term or meaning)
            elif child.tag == "def-list":
                self._definitions(child, part, headings)

    def _verses(self, verses: etree._Element, part: str, headings: Headings) -> None:
        self.add(part, headings, " ".join(text_of(line) for line in verses.iter("verse-line")))

    def _speech(self, speech: etree._Element, part: str, headings: Headings) -> None:
        said = " ".join(text_of(p) for p in speech.iterchildren("p"))
        self.add(part, headings, ": ".join([*map(text_of, speech.iterchildren("speaker")), said]))

    def _paragraph(self, paragraph: etree._Element, part: str, headings: Headings) -> None:
        """A paragraph: one block, or more where lists and the like stand inside it."""
        if not len(paragraph):
            self.add(part, headings, joined([paragraph.text or ""], self.plain))
            return
        pieces: Pieces = [paragraph.text or ""]
        footnotes = []
        for child in paragraph:
            special = _OF_TAG.get(child.tag)
            if special is None:
                append_one(child, pieces)
            elif child.tag == "fn":
                footnotes.append(child)
            elif special is Walk._nothing:
                pieces.append(" ")
            elif special is Walk._displayed:
                pieces.append(f" {self.formula} ")
            elif special is Walk._float:
                self._floats.append((child, headings))
            else:
                self.add(part, headings, joined(pieces, self.plain))
                pieces = []
                special(self, child, part, headings)
            if child.tail:
                pieces.append(child.tail)
        self.add(part, headings, joined(pieces, self.plain))
        for footnote in footnotes:
            self._footnote(footnote, part, headings)
        if self.plain:
            self.captions()

    # Figures, tables, footnotes

    def _float(self, element: etree._Element, part: str, headings: Headings) -> None:
        if self.plain:
            self._caption(element, headings)
        else:
            self._floats.append((element, headings))

    def captions(self) -> None:
        """The captions of the floats that have been passed."""
        if self._floats:
            floats, self._floats = self._floats, []
            for element, headings in floats:
                self._caption(element, headings)

    def _caption(self, element: etree._Element, headings: Headings) -> None:
        label = next(element.iterchildren("label"), None)
        if label is not None and (text := text_of(label)):
            headings = (*headings, text)
        begun = len(self.blocks)
        for child in element:
            if child.tag == "caption":
                self.add("caption", headings, _title(child))
                self.inside(child, "caption", headings)
            elif child.tag == "p":
                self._paragraph(child, "caption", headings)
            elif child.tag == "table-wrap-foot":
                self.inside(child, "caption", headings)
            elif _OF_TAG.get(child.tag) is Walk._float:
                self._caption(child, headings)
        if element.tag in ("supplementary-material", "media"):
            texts = [(block, _LINK.sub("", block.text).strip()) for block in self.blocks[begun:]]
            self.blocks[begun:] = [block._replace(text=text) for block, text in texts if text]

    def footnotes(self, group: etree._Element, part: str, headings: Headings) -> None:
        title = _title(group)
        if is_boilerplate(title):
            part = "boilerplate"
        title = title or ("" if part == "caption" else "Footnotes")
        for child in group:
            if child.tag == "p":
                self._paragraph(child, part, headings)
            elif child.tag == "fn" and (
                group.tag == "fn-group" or (child.get("fn-type") or "").lower() in _NOTED
            ):
                self._footnote(child, part, (*headings, title) if title else headings)

    def _footnote(self, footnote: etree._Element, part: str, headings: Headings) -> None:
        begun = len(self.blocks)
        part = part if part in ("caption", "boilerplate") else "footnote"
        self.inside(footnote, part, headings)
        of_it = self.blocks[begun:]
        kinds = (footnote.get("fn-type"),)
        if (
            part == "footnote"
            and of_it
            and (is_boilerplate("", kinds) or opens_as_boilerplate(of_it[0].text))
        ):
            self.blocks[begun:] = [block._replace(part="boilerplate") for block in of_it]


def _title(section: etree._Element) -> str:
    title = next(section.iterchildren("title"), None)
    return "" if title is None else text_of(title)


_OF_TAG: Final[dict[object, Callable[[Walk, etree._Element, str, Headings], None]]] = {
    **dict.fromkeys(_NO_TEXT, Walk._nothing),
    **dict.fromkeys(("disp-formula", "disp-formula-group"), Walk._displayed),
    **dict.fromkeys(_FLOATS, Walk._float),
    **dict.fromkeys(("p", "preformat", "code"), Walk._paragraph),
    **dict.fromkeys(("sec", "notes"), Walk._section),
    "list": Walk._items,
    "def-list": Walk._definitions,
    "fn-group": Walk.footnotes,
    "fn": Walk._footnote,
    "glossary": Walk._glossary,
    "verse-group": Walk._verses,
    "speech": Walk._speech,
    "app": Walk._appendix,
    "ack": Walk._acknowledgements,
    "boxed-text": Walk._box,
    "statement": Walk._titled_block,
}
"""What becomes of the elements that are not simply looked into."""
