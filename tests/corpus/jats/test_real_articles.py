"""Real articles compared with the oracle: outcomes, leaked references, lost and added text."""

from __future__ import annotations

import collections
import gzip
import io
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from lxml import etree

from bioshards.corpus import jats
from bioshards.corpus.document import ArticleColumns
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.jats import article_metadata, article_stream, text_blocks, xml_tree
from bioshards.corpus.jats.document_builder import identify_article
from bioshards.corpus.jats.filters import FORMULA_WORD
from bioshards.corpus.jats.in_text_marks import CITATION_MARK, REMOVAL_MARK
from bioshards.corpus.jats.paragraph_roles import TextBlock
from bioshards.corpus.shards.document_schema import COLUMN_TYPES
from tests.support.corpus import jats_oracle as oracle
from tests.support.corpus.small_articles import DROP_CITATIONS
from tests.support.real_data import DATA, needs_data

pytestmark = [needs_data, pytest.mark.timeout(1200)]  # one pass over all: minutes, more beside other work

NUM_DOCUMENTS = 2259
MAX_LOST_FRACTION = 0.001
"""Fraction of all prose that may be missing: citation numbers that are marked up as something else."""
MAX_LOST_FRACTION_OF_ONE = 0.03
"""Fraction of one article's prose, plus 30 words: notices that consist of a citation, formulas as text."""
MAX_DISPLACED_FRACTION = 0.005
"""Fraction of paragraphs and headings with words that are not at this place, as in converted formulas."""
FORBIDDEN_CHARACTERS = re.compile(rf"[\x00-\x1f\x7f{CITATION_MARK}{REMOVAL_MARK}]|  |^ | $")


class Results(NamedTuple):
    """The results of one pass over all articles."""

    reasons: collections.Counter[str]
    leaks: list[tuple[str, list[str]]]
    invalid_texts: list[tuple[str, str]]
    lost: dict[str, tuple[int, int]]
    """Number of lost words and of all words of prose, by article."""
    displaced: list[tuple[str, str]]
    num_texts: int
    wrong_columns: list[tuple[str, str]]
    """Names of the columns that differ from the oracle's, by article."""
    leaks_of_full_text: list[bool]
    """For articles with long titles in references: does unfiltered text leak them?"""


def iter_articles() -> Iterator[tuple[str, bytes]]:
    """Yield each real article with the path of its file, and all articles of a file with several."""
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
def results() -> Results:
    """Results of one pass over all articles; slow checks run on a part of them."""
    results = Results(collections.Counter(), [], [], {}, [], 0, [], [])
    num_texts = 0
    for number, (path, xml) in enumerate(iter_articles()):
        name = f"{path} {number}"
        if number % 40 == 0 and oracle.find_reference_titles(xml):
            results.leaks_of_full_text.append(bool(oracle.find_leaked_titles(xml, extract_all_text(xml))))
        try:
            article = next(article_stream.iter_articles(io.BytesIO(xml)))
            tree = xml_tree.parse_article(article)
            metadata = article_metadata.parse_metadata(tree, COLUMN_TYPES, article)
            identify_article(metadata)
            blocks = text_blocks.extract_blocks(tree, DROP_CITATIONS)
            sentences = jats.document(xml).sentences if number % 20 == 0 else []
        except (BadRecordError, BadFileError) as error:
            results.reasons[error.reason] += 1
            continue
        results.reasons["document"] += 1
        if number % 3 == 0:
            results.wrong_columns.extend((name, each) for each in find_wrong_columns(xml, metadata.columns))
        texts = [*(block.text for block in blocks), *iter_headings(blocks)]
        if leaks := oracle.find_leaked_titles(xml, texts):
            results.leaks.append((name, leaks))
        invalid_texts = [text for text in (*texts, *sentences) if FORBIDDEN_CHARACTERS.search(text)]
        results.invalid_texts.extend((name, text) for text in invalid_texts)
        if number % 4 == 0:
            prose = oracle.count_prose_words(xml)
            lost = prose - collections.Counter(oracle.normalised_words("\n".join(texts)))
            results.lost[name] = sum(lost.values()), sum(prose.values())
        if number % 10 == 0:
            results.displaced.extend((name, text) for text in find_displaced_texts(xml, texts))
            num_texts += len(texts)
    return results._replace(num_texts=num_texts)


def find_wrong_columns(xml: bytes, columns: ArticleColumns) -> Iterator[str]:
    """Yield the names of the columns that differ from the oracle's."""
    expected = oracle.read_columns(xml)
    for name, value in columns._asdict().items():
        if (value or None) != (expected.get(name) or None):
            yield name


def extract_all_text(xml: bytes) -> list[str]:
    """Return the text of all titles and references, as an extractor without filtering would."""
    root = etree.fromstring(xml, oracle.PARSER)
    nodes = root.iter("{*}article-title", "{*}source", "{*}mixed-citation")
    return ["".join(map(str, node.itertext())) for node in nodes]


def iter_headings(blocks: list[TextBlock]) -> Iterator[str]:
    """Yield each heading once."""
    for path in {block.headings[: depth + 1] for block in blocks for depth in range(len(block.headings))}:
        yield path[-1]


def find_displaced_texts(xml: bytes, texts: list[str]) -> Iterator[str]:
    """Yield texts whose words do not occur in the article in this order and close together."""
    stream = oracle.normalised_words(oracle.join_text(oracle.parse_article(xml)))
    places = collections.defaultdict(list)
    for place, pair in enumerate(pairwise(stream)):
        places[pair].append(place)
    for text in texts:
        words = oracle.normalised_words(text.replace(FORMULA_WORD, ""))
        if len(words) > 1 and not any(
            is_subsequence(words, stream[place : place + 5 * len(words) + 500])
            for place in places[words[0], words[1]]
        ):
            yield text


def is_subsequence(words: list[str], stream: list[str]) -> bool:
    """Return True if these words are a subsequence of the others."""
    remaining = iter(stream)
    return all(word in remaining for word in words)


def test_every_article_is_a_document_or_rejected(results: Results) -> None:
    assert results.reasons == {"document": NUM_DOCUMENTS, "no-id": 1}


def test_no_text_contains_the_title_of_a_reference(results: Results) -> None:
    assert results.leaks == []


def test_no_text_contains_marks_control_characters_or_double_blanks(results: Results) -> None:
    assert results.invalid_texts == []


def test_no_prose_is_lost(results: Results) -> None:
    assert sum(total for _, total in results.lost.values()) > 300_000, "the oracle finds prose"
    assert sum(lost for lost, _ in results.lost.values()) <= MAX_LOST_FRACTION * sum(
        total for _, total in results.lost.values()
    )
    assert [
        (name, lost, total)
        for name, (lost, total) in results.lost.items()
        if lost > MAX_LOST_FRACTION_OF_ONE * total + 30
    ] == []


def test_no_text_is_added(results: Results) -> None:
    assert len(results.displaced) <= MAX_DISPLACED_FRACTION * results.num_texts, results.displaced[:20]


def test_columns_equal_the_oracle(results: Results) -> None:
    assert results.wrong_columns == []


def test_oracle_detects_leaked_references(results: Results) -> None:
    """An extractor without filtering leaks nearly all long titles of references."""
    assert sum(results.leaks_of_full_text) > 0.8 * len(results.leaks_of_full_text) > 25
