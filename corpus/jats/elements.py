"""What becomes of the text of each element: the table of the tag sets, and the count of what is left.

The elements are those of JATS 1.0 to 1.3 (https://jats.nlm.nih.gov/archiving/tag-library/) and of NLM 2.3 and
3.0 (https://dtd.nlm.nih.gov/archiving/tag-library/). text_blocks.py and inline.py read what the table calls
text; the rest is counted by the name of its outermost element, so that nothing of an article is lost
uncounted. An element that the table does not have is text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from lxml import etree

from bioshards.corpus.xml.element_text import text_content

DroppedText = dict[str, int]
"""Characters of text that are in no block, by the name of their element."""

_TABLE: Final = """
part abstract, summary or other-abstract: abstract
part translated-abstract: trans-abstract
part body: body sec boxed-text notes
part caption, a float: chem-struct-wrap chem-struct-wrapper fig fig-group media supplementary-material
    table-wrap table-wrap-group
part caption: caption floats-group floats-wrap legend table-wrap-foot
part footnote: author-notes fn fn-group
part acknowledgements: ack
part appendix: app app-group
part glossary: glossary gloss-group
part boilerplate: custom-meta custom-meta-group custom-meta-wrap funding-group funding-statement
    meta-name meta-value open-access support-description support-group
part sub-article: response sub-article
title: article-title title-group
heading: title
paragraphs: address answer answer-set back block-alternatives chem-struct code def def-item def-list
    disp-quote explanation front front-stub list list-item option p preformat question question-preamble
    question-wrap question-wrap-group sig sig-block speaker speech statement subtitle term textual-form
    verse-group verse-line
words: abbrev abbrev-journal-title access-date addr-line ali:free_to_read ali:license_ref alternatives
    annotation anonymous article article-meta article-version-alternatives author-comment award-desc
    award-id award-name bold chapter-title city collab collab-alternatives comment compound-kwd
    compound-kwd-part compound-subject compound-subject-part conf-acronym conf-date conf-loc conf-name
    conf-num conf-sponsor conf-theme contract-num contract-sponsor contrib contrib-id
    contributed-resource-group count country data-title date date-in-citation day degrees edition email
    equation-count era etal event event-desc ext-link extended-by fax fig-count fixed-case font
    funding-source given-names gov grant-num grant-sponsor inline-formula inline-graphic
    inline-supplementary-material institution institution-wrap issn issn-l issue-part italic journal-id
    journal-subtitle journal-title journal-title-group kwd license-p monospace month name name-alternatives
    named-content nested-kwd note on-behalf-of overline page-count part-title patent person-group phone
    postal-code prefix price principal-award-recipient principal-investigator private-char pub-id publisher
    publisher-loc publisher-name rb ref ref-count resource-id resource-name resource-wrap restricted-by role
    roman rt ruby sans-serif sc season see see-also series series-text series-title size source state std
    std-organization strike string-conf string-date string-name styled-content sub subject suffix sup
    surname table-count target tbody td tfoot th thead time-stamp tr trans-source underline
    unstructured-kwd-group uri version word-count x xref year
metadata beside the title: aff aff-alternatives article-categories article-id article-version conference
    contrib-group counts elocation-id fpage history isbn issue issue-id issue-sponsor issue-title
    journal-meta lpage page-range product pub-date pub-date-not-available pub-history related-article
    self-uri supplement volume volume-id volume-issue-group volume-series
dropped, metadata: alt-title award-group bio copyright-holder copyright-statement copyright-year corresp
    kwd-group license permissions processing-meta resource-group sec-meta subj-group support-source
    trans-subtitle trans-title trans-title-group
dropped, identifier: institution-id object-id
dropped, reference: citation citation-alternatives element-citation mixed-citation nlm-citation ref-list
    related-object
dropped, cells unless --tables text: table
cells, dropped unless of a glossary or --tables text: array
dropped, heading of a column: def-head term-head
dropped, number unless of a figure, a table or an appendix, or a title: label
dropped, of a picture: alt-text attrib glyph-data glyph-ref graphic inline-media long-desc
dropped, formula unless written: disp-formula disp-formula-group tex-math
dropped, not shown: index-term index-term-range-end rp
empty: break col colgroup hr milestone-end milestone-start overline-end overline-start underline-end
    underline-start
"""


def _parse_table(table: str) -> dict[str, str]:
    """Return what becomes of each element, by its name."""
    treatments: dict[str, str] = {}
    for row in table.strip().replace("\n    ", " ").splitlines():
        treatment, _, names = row.partition(": ")
        treatments |= dict.fromkeys(names.split(), treatment)
    return treatments


TREATMENTS: Final = _parse_table(_TABLE)
"""What becomes of the text of each element."""
UNKNOWN_ELEMENT: Final = "unknown element"
"""Name under which text of elements is counted that the table does not have."""
_TABLE_AS_WORDS: Final = "search-text"
"""An element of no tag set: Hogrefe's words of the cells of a table that is a picture."""
DROPPED_ELEMENTS: Final = (
    *(name for name, treatment in TREATMENTS.items() if treatment.startswith("dropped")),
    _TABLE_AS_WORDS,
)
"""Elements that are never text."""
_COUNTED_ELEMENTS: Final = ("alternatives", *DROPPED_ELEMENTS)
"""Elements of which text, or a part of it, is never read."""
_COUNTED_NAMES: Final = frozenset(_COUNTED_ELEMENTS)
_TEXT_OF_METADATA_NAMES: Final = """
    abstract author-notes custom-meta-group custom-meta-wrap funding-group supplementary-material
    support-group title-group trans-abstract
"""
_TEXT_OF_METADATA: Final = frozenset(_TEXT_OF_METADATA_NAMES.split())
"""Elements of ``article-meta`` that have text of the article; the others are about it."""
FLOAT_ELEMENTS: Final = tuple(
    name for name, treatment in TREATMENTS.items() if treatment == "part caption, a float"
)
"""Elements with a caption, whose label is a heading."""
TAXPUB: Final = "{http://www.plazi.org/taxpub}"
"""Namespace of TaxPub, the elements of taxonomic treatments."""
_TITLE_LABEL_PARENTS: Final = f"""
    abstract ack boxed-text fn list list-item notes sec statement trans-abstract {TAXPUB}nomenclature
"""
_ELEMENTS_WITH_TITLE_LABELS: Final = frozenset(_TITLE_LABEL_PARENTS.split())
_LABEL_WORD = re.compile(r"(?![ivxlc]+\b)[^\W\d_]{4}", re.IGNORECASE)


def count_dropped(element: etree._Element, dropped: DroppedText) -> None:
    """Count all text of an element by its name."""
    if len(element) or element.text:
        add_dropped(str(element.tag), _count_text(element), dropped)


def _count_text(element: etree._Element) -> int:
    """Return the number of characters of an element's text in one line."""
    return len(" ".join(text_content(element).split()))


def add_dropped(name: str, num_characters: int, dropped: DroppedText) -> None:
    """Add characters to the count of an element, or of all that the table does not have."""
    if num_characters:
        name = name if name in TREATMENTS else UNKNOWN_ELEMENT
        dropped[name] = dropped.get(name, 0) + num_characters


def count_unread(article: etree._Element, dropped: DroppedText) -> None:
    """Count the text of an article, or of a sub-article, that is never read.

    Args:
        article: the element, in which formulas that are text have other names than the table's.
        dropped: is added to.
    """
    for child in article:
        if child.tag in ("front", "front-stub"):
            _count_front_matter(child, dropped)
        elif child.tag in ("sub-article", "response"):
            count_unread(child, dropped)
        else:
            _count_outermost(_iter_counted(child), dropped)


def _count_front_matter(front: etree._Element, dropped: DroppedText) -> None:
    """Count what is neither title nor prose in a ``front``, ``article-meta`` or ``front-stub``."""
    for child in front:
        if child.tag == "article-meta":
            _count_front_matter(child, dropped)
        elif child.tag in _TEXT_OF_METADATA or (front.tag == "front" and child.tag != "journal-meta"):
            _count_outermost(_iter_counted(child), dropped)
        else:
            count_dropped(child, dropped)


def _iter_counted(root: etree._Element) -> Iterable[etree._Element]:
    """Return all of :data:`_COUNTED_ELEMENTS` in an element, in order."""
    if root.tag == "body":
        return root.iter(*_COUNTED_ELEMENTS)
    # Others have few elements; iter() takes as long as forty of them to read so many names.
    return (element for element in root.iter() if element.tag in _COUNTED_NAMES)


def _count_outermost(elements: Iterable[etree._Element], dropped: DroppedText) -> None:
    """Count the outermost of elements that are never text, and alternatives that are not read.

    Args:
        elements: all of :data:`_COUNTED_ELEMENTS` below a root, in order.
        dropped: is added to.
    """
    outer = None
    for element in elements:
        if outer is not None and outer in element.iterancestors(str(outer.tag)):
            continue
        if element.tag == "alternatives":
            _count_alternatives(element, dropped)
        elif element.tag != "label" or not _is_heading(element):
            outer = element if len(element) else None
            count_dropped(element, dropped)


def _is_heading(label: etree._Element) -> bool:
    """Return True if a label is read as a heading: of a float, or of an appendix without a title."""
    parent = label.getparent()
    if parent is None or parent.tag == "app":
        return parent is not None and parent.find("title") is None
    return parent.tag in FLOAT_ELEMENTS


def take_title_label(element: etree._Element) -> etree._Element | None:
    """Return the label that is the title of an element without one: words, as "FUNDING", and no number.

    It becomes a ``title``, so that it is not counted as a number.
    """
    if element.tag not in _ELEMENTS_WITH_TITLE_LABELS:
        return None
    label = next(element.iterchildren("label"), None)
    if label is None or not _LABEL_WORD.search(text_content(label)):
        return None
    label.tag = "title"
    return label


def _count_alternatives(alternatives: etree._Element, dropped: DroppedText) -> None:
    """Count the alternatives after the first that has text."""
    others = [
        length
        for child in alternatives
        if child.tag not in DROPPED_ELEMENTS and (length := _count_text(child))
    ][1:]
    add_dropped("alternatives", sum(others), dropped)
