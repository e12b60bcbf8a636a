"""Real articles against the oracle: no reference in the text, no prose lost, every article accounted for."""

from __future__ import annotations

import collections
import contextlib
import gzip
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from tests.conftest import DATA, needs_data
from tests.jats_oracle import PARSER, leaks, prose_words, reference_titles, words

pytestmark = needs_data

MAX_LOST = 0.03
"""Share of an article's prose that its text may lack: words that inline markup joins (18 th, CO 2)."""


def articles() -> Iterator[tuple[str, bytes]]:
    """Each real article with the name of its file; a file of several gives all of them."""
    for path in sorted(Path(f"{DATA}/jats").rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        try:
            root = etree.fromstring(data, PARSER)
        except etree.XMLSyntaxError:
            continue
        if etree.QName(root).localname == "article":
            yield str(path), data
        else:
            for article in root.iter("{*}article"):
                if not any(etree.QName(above).localname == "article" for above in article.iterancestors()):
                    yield str(path), etree.tostring(article, with_tail=False)


def test_the_oracle_sees_the_references_of_a_text_that_has_them() -> None:
    """A reader that takes everything leaks nearly all long titles (of every tenth article)."""
    seen = with_titles = leaking = titles = leaked = 0
    for _, xml in itertools.islice(articles(), 0, None, 10):
        seen += 1
        own = reference_titles(xml)
        if own:
            root = etree.fromstring(xml, PARSER)
            everything = root.iter("{*}article-title", "{*}source", "{*}mixed-citation")
            found = leaks(xml, ["".join(map(str, node.itertext())) for node in everything])
            with_titles += 1
            leaking += bool(found)
            titles += len(own)
            leaked += len(found)
    assert seen > 200
    assert leaking > 0.8 * with_titles > 100
    assert leaked > 0.5 * titles


def texts() -> Iterator[tuple[str, bytes, list[str]]]:
    """Each article that is read, with its text."""
    jats = pytest.importorskip("bioshards.corpus.jats")
    medline = pytest.importorskip("bioshards.corpus.medline")
    for path, xml in articles():
        with contextlib.suppress(medline.BadRecord):
            yield path, xml, jats.paragraphs(xml)


@pytest.mark.timeout(900)
def test_no_text_has_a_title_that_only_a_reference_says() -> None:
    kept = 0
    for path, xml, text in texts():
        kept += 1
        assert leaks(xml, text) == [], path
    assert kept > 2000


@pytest.mark.timeout(900)
def test_every_text_has_the_article_s_prose() -> None:
    kept = exact = 0
    for path, xml, text in texts():
        prose = prose_words(xml)
        lost = prose - collections.Counter(words("\n".join(text)))
        kept += 1
        exact += not lost
        assert lost.total() <= MAX_LOST * prose.total() + 20, (path, lost.most_common(20))
    assert kept > 2000
    assert exact > 0.9 * kept
