"""Flattening inline markup before the parse gives the same text as parsing every element."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.jats import article_stream, text_blocks, xml_tree
from bioshards.corpus.jats.in_text_marks import CITATION_MARK, REMOVAL_MARK
from bioshards.corpus.jats.text_blocks import TextBlock
from bioshards.corpus.jats.xml_tree import flatten_inline_markup
from tests.support.corpus.small_articles import DROP_CITATIONS


def build_article(paragraph: str) -> bytes:
    return f"<article><body><p>{paragraph}</p></body></article>".encode()


def extract_texts(paragraph: str, flatten: bool) -> list[str]:
    return [block.text for block in extract_blocks(build_article(paragraph), flatten)]


def extract_blocks(xml: bytes, flatten: bool) -> list[TextBlock]:
    return text_blocks.extract_blocks(xml_tree.parse_article(xml, flatten=flatten), DROP_CITATIONS)


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<italic>in</italic> <bold>vivo</bold>", "in vivo"),
        ('<italic toggle="yes">E. coli</italic>', "E. coli"),
        ("CO<sub>2</sub>, 10<sup>5</sup>, p<sc>H</sc>", "CO2, 10^5, pH"),
        ('[<xref ref-type="bibr" rid="b1">1</xref>]', f"[{CITATION_MARK}]"),
        ("""[<xref rid='b1' ref-type="bibr">1</xref>]""", f"[{CITATION_MARK}]"),
        ('wide.<xref ref-type="bibr" rid="b"><sup>1–3</sup></xref>', f"wide.{CITATION_MARK}"),
        ('wide.<xref ref-type="bibr" rid="b"><sup>1&#x2013;3</sup></xref>', f"wide.{CITATION_MARK}"),
        (
            'wide.<sup><xref ref-type="bibr" rid="b">1</xref>,<xref ref-type="bibr" rid="c">2</xref></sup>',
            f"wide.{CITATION_MARK}",
        ),
        ('(<xref ref-type="bibr" rid="b">Ode, 2011</xref>)', "(Ode, 2011)"),
        ('<xref ref-type="fig" rid="f1">Figure 1</xref>A', "Figure 1A"),
    ],
)
def test_simple_markup_is_flattened(xml: str, expected: str) -> None:
    assert flatten_inline_markup(xml) == expected


@pytest.mark.parametrize(
    "xml",
    [
        '<xref ref-type="bibr" rid="b">Ode [12]</xref>',  # ends in a number, which is removed
        '<xref ref-type="fn" rid="f">a</xref>',  # a footnote mark or a word, depending on the text before it
        '<xref rid="b">1</xref>',  # no ref-type: may point to a figure
        '<xref ref-type="bibr" rid="b"/>',
        '<xref ref-type="bibr" rid="b">1 <named-content>x</named-content></xref>',
        "<named-content>IL</named-content>10<sup>2</sup>",  # no number, but known only with its element
        "CO\n    <sub>2</sub>",  # the line break only indents
        "<ext-link>here</ext-link>",
    ],
)
def test_other_markup_is_unchanged(xml: str) -> None:
    assert flatten_inline_markup(xml) == xml


def test_noncharacters_in_the_text_are_replaced() -> None:
    assert extract_texts(f"a{CITATION_MARK}b{REMOVAL_MARK}c", flatten=True) == ["a\ufffdb\ufffdc"]


def test_partly_flattened_tags_give_the_same_text() -> None:
    markup = '<italic>a</italic> <italic id="x">b</italic> <sub arrange="stack">2</sub>'
    assert extract_texts(markup, flatten=True) == extract_texts(markup, flatten=False) == ["a b 2"]


NUMBERS = st.sampled_from(["1", "12", "3–5", "[4]", "(7)", "S2", "Ode, 2011", "2011a", "", "*", "1&#x2013;3"])
KINDS = st.sampled_from(["bibr", "ref", "fig", "table", "fn", "table-fn", "sec", "other", ""])
WORDS = st.sampled_from(
    [
        "cells",
        " ",
        ". ",
        ", ",
        "(",
        ")",
        "[",
        "]",
        "–",
        " and ",
        "; ",
        " see ",
        "10",
        "2.",
        "x",
        "−3",
        "−ΔΔCt",
        "Ca",
        "\n",
        "\n    ",
        "&lt;",
        "é",
        "\u2009",
        "<sup>a</sup>",
        "<sup>TM</sup>",
        "\n<sup>13</sup>C",
    ]
)
INLINE = st.recursive(
    st.one_of(
        WORDS,
        st.builds('<xref ref-type="{}" rid="x">{}</xref>'.format, KINDS, NUMBERS),
        st.builds('<xref ref-type="{}" rid="x"><sup>{}</sup></xref>'.format, KINDS, NUMBERS),
    ),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag.split()[0]}>",
        st.sampled_from(
            ["italic", 'italic toggle="yes"', "bold", "sub", "sup", "sc", "named-content", "ext-link"]
        ),
        st.lists(inner, max_size=4),
    ),
    max_leaves=20,
)


@given(st.lists(INLINE, max_size=12).map("".join))
def test_generated_paragraph_gives_the_same_text(paragraph: str) -> None:
    assert extract_texts(paragraph, flatten=True) == extract_texts(paragraph, flatten=False)


@pytest.mark.thorough
@pytest.mark.skipif(not os.environ.get("BIOSHARDS_DATA"), reason="BIOSHARDS_DATA is not set")
def test_every_third_real_article_gives_the_same_blocks() -> None:
    paths = sorted(Path(os.environ["BIOSHARDS_DATA"], "jats").rglob("*.*ml"))[::3]
    assert len(paths) > 700
    for path in paths:
        with path.open("rb") as file:
            for xml in article_stream.iter_articles(file):
                assert extract_blocks(xml, flatten=True) == extract_blocks(xml, flatten=False), path.name
