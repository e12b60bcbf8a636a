"""No text of an element of the tag sets is lost: it is in the document, or in the count of its element."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from bioshards.corpus.document import ArticleColumns, Document
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
from bioshards.corpus.jats.elements import TREATMENTS
from bioshards.corpus.jats.filters import DROPPED_PART_PREFIX, PmcConfig
from tests.support.corpus import jats_articles

TAG_SETS = Path(jats_articles.__file__).with_name("jats_tag_sets.txt")
TEXT = "#text"
PART_NAMES = {"trans-abstract": "translated-abstract", "response": "sub-article"}
"""Names of parts that are not those of the elements."""


@functools.cache
def read_tag_sets() -> dict[str, frozenset[str]]:
    """Return what each element may contain."""
    text = re.sub(r"^#.*\n", "", TAG_SETS.read_text(), flags=re.MULTILINE).replace("\n    ", " ")
    content: dict[str, frozenset[str]] = {}
    for line in text.splitlines():
        names, _, items = f"{line} ".partition(": ")
        children = {item for item in items.split() if item[0] != "^"}
        children.update(*(content[item[1:]] for item in items.split() if item[0] == "^"))
        content |= dict.fromkeys(names.split(), frozenset(children))
    return content


@functools.cache
def find_paths() -> dict[str, tuple[str, ...]]:
    """Return the shortest way from the article to each element."""
    paths: dict[str, tuple[str, ...]] = {"article": ("article",)}
    names = ["article"]
    for name in names:
        for child in sorted(read_tag_sets()[name] - {TEXT}):
            if child not in paths:
                paths[child] = (*paths[name], child)
                names.append(child)
    return paths


@functools.cache
def find_text_path(name: str, depth: int = 6) -> tuple[str, ...] | None:
    """Return the shortest way from an element to one that holds text; None if there is none."""
    content = read_tag_sets()[name]
    if TEXT in content:
        return (name,)
    below = (find_text_path(child, depth - 1) for child in sorted(content)) if depth else ()
    shortest = min(filter(None, below), key=len, default=None)
    return shortest and (name, *shortest)


def make_article(parent: str, words: Iterator[str]) -> tuple[etree._Element, dict[str, tuple[str, ...]]]:
    """Return an article in which each child of an element has a word, and the way to each word."""
    article = etree.fromstring(jats_articles.article_xml(1, "Gulls nest on cliffs."))
    element, path = article, find_paths()[parent]
    for name in path[1:]:
        element = make_child(element, name)
    paths = {}
    for child in sorted(read_tag_sets()[parent]):
        if child == TEXT:
            word = next(words)
            element.text, paths[word] = f"{word} {element.text or ''}", path
        elif text_path := find_text_path(child):
            leaf = element
            for name in text_path:
                leaf = make_child(leaf, name)
            word = next(words)
            leaf.text = f"{word} {leaf.text or ''}"
            paths[word] = (*path, *text_path)
    return article, paths


def make_child(parent: etree._Element, name: str) -> etree._Element:
    """Add a child; of what an article has once, return that."""
    existing = parent.find(name) if name in ("front", "article-meta", "body", "title-group") else None
    if existing is not None:
        return existing
    prefix, _, local_name = name.rpartition(":")
    child = etree.SubElement(parent, f"{{{prefix}}}{local_name}" if prefix else name)
    child.tail = " "
    return child


def read_text(document: Document) -> str:
    """Return all text of a document: sentences, headings and columns."""
    fields = (document.title, document.journal, document.sentences, document.sections, document.columns)
    return " ".join(map(str, fields))


def test_the_table_has_the_elements_of_the_tag_sets() -> None:
    assert set(TREATMENTS) == set(read_tag_sets())


@pytest.mark.parametrize("tables", ["none", "text"])
def test_each_word_is_in_the_document_or_counted(tables: str) -> None:
    builder = ArticleDocumentBuilder(PmcConfig(columns=ArticleColumns._fields, tables=tables))
    words = (
        "".join(letters)
        for letters in itertools.product("bdfgklmn", "aeou", "bdfgklmnrt", "aeou", "bdfgklmnrt")
    )
    lost = []
    for parent in find_paths():
        article, paths = make_article(parent, words)
        _, document = builder.read_article(etree.tostring(article), "a.xml", 0)
        assert document is not None
        text = read_text(document)
        num_missing = 0
        for word, path in paths.items():
            if not re.search(rf"\b{word}\b", text):
                names = [PART_NAMES.get(name, name) for name in path]
                names += ["title"] if path[-1] == "label" else []  # which it is of an element without one
                counted = [f"{DROPPED_PART_PREFIX}{name}" for name in (*names, "other-abstract")]
                num_missing += len(word)
                if not any(document.removed_characters.get(name) for name in counted):
                    lost.append(f"{' > '.join(path)}: {word}")
        if num_missing > sum(document.removed_characters.values()):
            lost.append(f"{parent}: {num_missing} characters, {document.removed_characters}")
    assert lost == []
