"""An independent reading of JATS articles, to compare the product with.

Naive on purpose: a full tree of a whole article, what is not wanted cut out of a copy.  It shares no code
with bioshards and says little, but what it says is sure: titles that stand in reference lists, words that
are prose.  Namespaces are ignored; entities of the DTD are those of HTML.
"""

from __future__ import annotations

import collections
import copy
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
TITLE_WORDS = 8
"""A reference's title of fewer words may well be said by chance."""

TITLES = {"article-title", "chapter-title", "part-title", "data-title", "trans-title"}
BOOKS = {"source", "trans-source"}
CITATIONS = {"mixed-citation", "element-citation", "nlm-citation", "citation"}
PEOPLE = {"person-group", "name", "string-name", "collab", "etal"}
BLOCKS = {
    *(
        "p",
        "title",
        "article-title",
        "alt-title",
        "subtitle",
        "label",
        "sec",
        "list",
        "list-item",
        "def-list",
        "def-item",
        "def",
        "term",
    ),
    *("disp-quote", "boxed-text", "fig", "fig-group", "table-wrap", "caption", "disp-formula", "statement"),
    *(
        "verse-group",
        "verse-line",
        "speech",
        "speaker",
        "attrib",
        "fn",
        "break",
        "preformat",
        "supplementary-material",
    ),
}
"""Elements that end a word where they begin and where they end."""
NOT_PROSE = {
    *("ref-list", "table", "math", "tex-math", "inline-formula", "disp-formula", "disp-formula-group"),
    *("label", "object-id", "graphic", "inline-graphic", "alt-text", "long-desc", "media", "fn", "fn-group"),
    *(
        "supplementary-material",
        "inline-supplementary-material",
        "table-wrap-foot",
        "preformat",
        "permissions",
    ),
    *("private-char", "related-article", "related-object", "index-term", "code", "chem-struct", "attrib"),
    *("sub-article", "response"),
}


def tree(xml: bytes) -> Any:
    """The article's tree under local names, its entities as characters."""
    root: Any = etree.fromstring(xml, PARSER)
    for node in list(root.iter(etree.Entity)):
        replace(node, html.unescape(node.text or "") + (node.tail or ""))
    for node in root.xpath("//*[namespace-uri()]"):
        node.tag = node.tag.rpartition("}")[2]
    return root


def replace(node: Any, text: str) -> None:
    """Put text in the place of a node and its tail."""
    parent, before = node.getparent(), node.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text
    node.tail = None
    parent.remove(node)


def without(element: Any, names: set[str], *, bibliography: bool = False) -> Any:
    """A copy without the elements of these names, and without xrefs to references, tails kept."""
    whole = copy.deepcopy(element)
    whole.tail = None
    for node in list(whole.iter()):
        citing = bibliography and node.tag == "xref" and node.get("ref-type") == "bibr"
        if (node.tag in names or citing) and node is not whole and node.getparent() is not None:
            replace(node, (" " if node.tag in BLOCKS else "") + (node.tail or ""))
    return whole


def text_of(element: Any) -> str:
    """The element's text, blocks in it set apart."""
    parts = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in BLOCKS:
            parts.append(" ")
        parts.append((node.text if event == "start" else node.tail if node is not element else "") or "")
    return "".join(parts)


def words(text: str) -> list[str]:
    """The words in lower case: letters and digits, as they read whatever they are made of."""
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())


def normal(text: str) -> str:
    return " ".join(words(text))


def reference_titles(xml: bytes) -> list[str]:
    """The titles of eight words or more in reference lists, as lower-case words; sorted, each once.

    Of a citation without marked titles, the sentences of its text stand for them.
    """
    found = set()
    for references in tree(xml).iter("ref-list"):
        for node in references.iter(*TITLES, *BOOKS, *CITATIONS):
            if node.tag in TITLES | BOOKS:
                found.add(normal(text_of(node)))
            elif node.tag in CITATIONS and next(node.iter(*TITLES), None) is None:
                sentences = re.split(r"[.?!]\s+|\n\s*\n", text_of(without(node, PEOPLE)))
                found.update(map(normal, sentences))
    return sorted(title for title in found if len(title.split()) >= TITLE_WORDS)


def main_parts(article: Any) -> Iterator[Any]:
    """The article's own body and its main abstracts: those without a type."""
    for abstract in article.findall("front/article-meta/abstract"):
        if abstract.get("abstract-type") in (None, "abstract"):
            yield abstract
    yield from article.findall("body")


def prose_words(xml: bytes) -> collections.Counter[str]:
    """The words of the paragraphs and titles in body and main abstract that are surely prose.

    Without reference lists, citations of them, the cells of tables, formulas, labels and footnotes.
    """
    counted: collections.Counter[str] = collections.Counter()
    for part in main_parts(tree(xml)):
        for node in outermost(without(part, NOT_PROSE, bibliography=True), {"p", "title"}):
            counted.update(words(text_of(node)))
    return counted


def outermost(element: Any, names: set[str]) -> Iterator[Any]:
    """The elements of these names that are in no other of them."""
    for node in element.iter(*names):
        if not any(above.tag in names for above in node.iterancestors()):
            yield node


def said(xml: bytes, *left_out: str) -> str:
    """All that the article itself says outside of reference lists: a line a paragraph, title or caption."""
    root = without(tree(xml), {"ref-list", *left_out})
    blocks = outermost(root, {"p", "title", "caption", "title-group", "attrib", "fn"})
    return "\n".join(normal(text_of(node)) for node in blocks)


def leaks(xml: bytes, text: Iterable[str]) -> list[str]:
    """The titles of references that a text made of the article says, and the article itself does not."""
    haystack = f" {normal(' '.join(text))} "
    found = [title for title in reference_titles(xml) if f" {title} " in haystack]
    if not found:
        return []
    lines = f"{said(xml)}\n{said(xml, 'xref')}".split("\n")  # numbers glued to words part them from titles
    own = "\n".join(f" {line} " for line in lines)
    return [title for title in found if f" {title} " not in own]
