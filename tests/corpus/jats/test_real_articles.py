"""Real articles against the oracle: all accounted for, no reference in the text, nothing lost or invented."""

from __future__ import annotations

import collections
import gzip
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.jats import article_metadata, text_blocks, xml_tree
from bioshards.corpus.jats.document_builder import identify_article
from bioshards.corpus.jats.in_text_citations import CITATION_MARK, REMOVAL_MARK
from bioshards.corpus.jats.section_walker import TextBlock
from tests.support.corpus import jats_oracle as oracle
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data

ARTICLES = 2259
MAX_LOST = 0.001
"""Share of all prose that the texts may lack: numbers of citations that are marked up as something else."""
MAX_LOST_OF_ONE = 0.03
"""Share of one article's prose, and 30 words more: notices that are one citation, typed formulas."""
MAX_MOVED = 0.005
"""Share of blocks with a word that is none of the article's in this place: a formula's, put otherwise."""
ODD = re.compile(rf"[\x00-\x1f\x7f{CITATION_MARK}{REMOVAL_MARK}]|  |^ | $")


class Found(NamedTuple):
    """What one pass over all articles has found."""

    reasons: collections.Counter[str]
    leaks: list[tuple[str, list[str]]]
    odd: list[tuple[str, str]]
    lost: dict[str, tuple[int, int]]
    """Words of prose by article: those that are lost, and all."""
    moved: list[tuple[str, str]]
    blocks: int
    leaky: list[bool]
    """Of articles with long titles in references: does a text that has everything leak them?"""


def articles() -> Iterator[tuple[str, bytes]]:
    """Each real article with the name of its file; a file of several gives all of them."""
    for path in sorted(Path(f"{DATA}/jats").rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        if b"</pmc-articleset>" not in data:
            yield str(path), data
            continue
        for article in etree.fromstring(data, oracle.PARSER).iterchildren("{*}article"):
            yield str(path), etree.tostring(article, with_tail=False)


@pytest.fixture(scope="module")
def found() -> Found:
    """One pass over all articles; what is slow, on some of them."""
    seen = Found(collections.Counter(), [], [], {}, [], 0, [])
    count = 0
    for number, (path, xml) in enumerate(articles()):
        name = f"{path} {number}"
        if number % 40 == 0 and oracle.find_reference_titles(xml):
            seen.leaky.append(bool(oracle.find_leaked_titles(xml, everything(xml))))
        try:
            tree = xml_tree.parse_article(jats._extract_article(xml))
            identify_article(article_metadata.parse_metadata(tree))
            blocks = text_blocks.extract_blocks(tree)
            sentences = jats.document(xml).sentences if number % 20 == 0 else []
        except (BadRecordError, BadFileError) as error:
            seen.reasons[error.reason] += 1
            continue
        seen.reasons["document"] += 1
        texts = [*(block.text for block in blocks), *headings(blocks)]
        if leaks := oracle.find_leaked_titles(xml, texts):
            seen.leaks.append((name, leaks))
        odd = [text for text in (*texts, *sentences) if ODD.search(text)]
        seen.odd.extend((name, text) for text in odd)
        if number % 4 == 0:
            prose = oracle.count_prose_words(xml)
            lost = prose - collections.Counter(oracle.normalised_words("\n".join(texts)))
            seen.lost[name] = sum(lost.values()), sum(prose.values())
        if number % 10 == 0:
            seen.moved.extend((name, text) for text in moved(xml, blocks))
            count += len(blocks)
    return seen._replace(blocks=count)


def everything(xml: bytes) -> list[str]:
    """What a reader gives that takes everything."""
    root = etree.fromstring(xml, oracle.PARSER)
    nodes = root.iter("{*}article-title", "{*}source", "{*}mixed-citation")
    return ["".join(map(str, node.itertext())) for node in nodes]


def headings(blocks: list[TextBlock]) -> Iterator[str]:
    """Each heading once."""
    for path in {block.headings[: depth + 1] for block in blocks for depth in range(len(block.headings))}:
        yield path[-1]


def moved(xml: bytes, blocks: list[TextBlock]) -> Iterator[str]:
    """Blocks whose words are not in the article, in their order and close to each other."""
    stream = oracle.normalised_words(apart(oracle.parse_article(xml)))
    places = collections.defaultdict(list)
    for place, pair in enumerate(pairwise(stream)):
        places[pair].append(place)
    for block in blocks:
        said = oracle.normalised_words(block.text)
        if len(said) > 1 and not any(
            in_order(said, stream[place : place + 5 * len(said) + 500]) for place in places[said[0], said[1]]
        ):
            yield block.text


def apart(root: Any) -> str:
    """All text of an element, with a blank around each citation and where blocks begin and end."""
    for node in root.iter("xref", *oracle.BLOCK_TAGS):
        if node.tag != "xref" or node.get("ref-type") in ("bibr", "fn", "table-fn"):
            node.text = f" {node.text or ''}"
            node.tail = f" {node.tail or ''}"
    return "".join(root.itertext())


def in_order(some: list[str], stream: list[str]) -> bool:
    """Are these words a subsequence of the others?"""
    rest = iter(stream)
    return all(word in rest for word in some)


def test_every_article_is_a_document_or_refused_with_its_reason(found: Found) -> None:
    assert found.reasons == {"document": ARTICLES, "no-id": 1}


def test_no_text_has_a_title_of_a_reference(found: Found) -> None:
    assert found.leaks == []


def test_no_text_has_a_mark_a_control_character_or_two_blanks(found: Found) -> None:
    assert found.odd == []


def test_no_prose_is_lost(found: Found) -> None:
    assert sum(lost for lost, _ in found.lost.values()) <= MAX_LOST * sum(
        all_ for _, all_ in found.lost.values()
    )
    assert [
        (name, lost, all_) for name, (lost, all_) in found.lost.items() if lost > MAX_LOST_OF_ONE * all_ + 30
    ] == []


def test_nothing_is_invented(found: Found) -> None:
    assert len(found.moved) <= MAX_MOVED * found.blocks, found.moved[:20]


def test_the_oracle_sees_the_references_of_a_text_that_has_them(found: Found) -> None:
    """A reader that takes everything leaks nearly all long titles of nearly all articles."""
    assert sum(found.leaky) > 0.8 * len(found.leaky) > 25
