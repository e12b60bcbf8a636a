"""The words of a paragraph are the words of its XML, whatever elements and line breaks are in it.

Each kind of element that JATS or TaxPub allow inside a paragraph is generated: elements of words and of parts
of words, scripts, names, blocks, alternatives, formulas, and elements whose text is documented as removed.
The expected words are collected while the XML is generated.
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.jats import text_blocks, xml_tree
from bioshards.corpus.jats.filters import FORMULA_WORD
from tests.support.corpus.small_articles import DROP_CITATIONS
from tests.support.hypothesis_profiles import examples

NAMESPACES = (
    'xmlns:mml="http://www.w3.org/1998/Math/MathML" xmlns:tp="http://www.plazi.org/taxpub" '
    'xmlns:oasis="http://www.niso.org/standards/z39-96/ns/oasis-exchange/table" '
    'xmlns:xlink="http://www.w3.org/1999/xlink"'
)
FORMATS = (
    "bold",
    "italic",
    "roman",
    "sans-serif",
    "monospace",
    "overline",
    "underline",
    "strike",
    "sc",
    "fixed-case",
    "named-content",
    "styled-content",
    "abbrev",
    "email",
    "uri",
    "ext-link",
    "target",
    "x",
    "inline-supplementary-material",
    "funding-source",
    "award-id",
    "open-access",
    "price",
    "chem-struct",
    "institution",
    "surname",
    "tp:taxon-authority",
    "xref",
    'xref ref-type="fig"',
    'xref ref-type="sec"',
    'xref ref-type="bibr"',
    'xref ref-type="fn"',
    "ruby",
    "textual-form",
    "related-article",
)
"""Elements of one or more words."""
BLOCKS = (
    "disp-quote",
    "boxed-text",
    "statement",
    "question",
    "answer",
    "list-item",
    "def",
    "block-alternatives",
    "fig",
    "table-wrap",
    "supplementary-material",
    "chem-struct-wrap",
)
REMOVED = (
    "<inline-graphic/>",
    "<graphic/>",
    "<media/>",
    "<milestone-start/>",
    "<index-term><term>no</term></index-term>",
    "<tex-math>no</tex-math>",
    "<object-id>no</object-id>",
    "<alt-text>no</alt-text>",
    "<institution-id>no</institution-id>",
    "<mixed-citation>no</mixed-citation>",
    "<table><tr><td>no</td></tr></table>",
    "<oasis:table><oasis:row><oasis:entry>no</oasis:entry></oasis:row></oasis:table>",
    "<disp-formula><label>no</label><mml:math><mml:mi>no</mml:mi></mml:math></disp-formula>",
    '<xref ref-type="bibr">12</xref>',
    '<sup><xref ref-type="bibr">1</xref>,<xref ref-type="bibr">2</xref></sup>',
    '<xref ref-type="table-fn">a</xref>',
    '<xref ref-type="fn"><sup>a</sup></xref>',
    '<sup><xref ref-type="fn">b</xref></sup>',
)


class Piece(NamedTuple):
    """A part of a paragraph.

    Attributes:
        xml: with ¬ wherever XML may be indented.
        words: its words.
        is_apart: True if it needs no blanks around it to be apart from the words beside it.
    """

    xml: str
    words: tuple[str, ...]
    is_apart: bool = False


def name_words() -> Iterator[str]:
    return (f"word{number}q" for number in itertools.count())


def name(element: str) -> str:
    return element.split()[0]


def make_text(words: Iterator[str]) -> st.SearchStrategy[Piece]:
    return (
        st.integers(1, 2)
        .map(lambda count: [next(words) for _ in range(count)])
        .map(lambda chosen: Piece(" ".join(chosen), tuple(chosen)))
    )


@st.composite
def pieces(draw: st.DrawFn, words: Iterator[str], depth: int) -> Piece:
    """A piece of a paragraph: text, an element, or a word with an element in it."""
    kinds = ["text", "format", "part", "script", "removed", "taxon", "explained", "alternatives", "formula"]
    kind = draw(st.sampled_from(kinds + (["block", "list", "definitions"] if depth else [])))
    text = draw(make_text(words))
    match kind:
        case "format":
            element = draw(st.sampled_from(FORMATS))
            inner = draw(paragraphs(words, depth - 1)) if depth and draw(st.booleans()) else text
            return Piece(f"<{element}>¬{inner.xml}¬</{name(element)}>", inner.words)
        case "part":
            word, part, rest = next(words), next(words), next(words)
            element = draw(st.sampled_from(["italic", "bold", "sc", "named-content", "styled-content"]))
            return Piece(f"{word}<{element}>{part}</{element}>{rest}", (f"{word}{part}{rest}",))
        case "script":
            word, script = next(words), next(words)
            element = draw(st.sampled_from(["sub", "sup"]))
            return Piece(f"{word}¬<{element}>{script}</{element}>", (f"{word}{script}",))
        case "removed":
            element = draw(st.sampled_from(REMOVED))
            return Piece(f"{text.xml}¬{element}", text.words)
        case "taxon":
            parts = [f"<tp:taxon-name-part>{word}</tp:taxon-name-part>" for word in text.words]
            return Piece(f"<tp:taxon-name>¬{'¬'.join(parts)}¬</tp:taxon-name>", text.words)
        case "explained":
            word = next(words)
            return Piece(f"<abbrev>{word}<def>¬<p>{text.xml}</p>¬</def></abbrev>", (word, *text.words))
        case "alternatives":
            return Piece(
                f"<alternatives>¬<inline-graphic/>¬<textual-form>{text.xml}</textual-form>¬"
                "<textual-form>no</textual-form>¬</alternatives>",
                text.words,
            )
        case "formula":
            inner_xml = "".join(f"<mml:mtext> {word} </mml:mtext>" for word in text.words)
            return Piece(
                f"<inline-formula>¬<mml:math>{inner_xml}</mml:math>¬</inline-formula>", text.words, True
            )
        case "block":
            element = draw(st.sampled_from(BLOCKS))
            inner = draw(paragraphs(words, depth - 1))
            caption = element in ("fig", "table-wrap", "supplementary-material", "chem-struct-wrap")
            content = f"<p>{inner.xml}</p>"
            content = f"<caption>¬{content}¬</caption>" if caption else content
            return Piece(f"<{element}>¬{content}¬</{element}>", inner.words, True)
        case "list":
            inner = draw(paragraphs(words, depth - 1))
            items = f"<list-item>¬<p>{text.xml}</p>¬</list-item>¬<list-item>¬<p>{inner.xml}</p>¬</list-item>"
            return Piece(f"<list>¬{items}¬</list>", text.words + inner.words, True)
        case "definitions":
            word = next(words)
            item = f"<def-item>¬<term>{word}</term>¬<def>¬<p>{text.xml}</p>¬</def>¬</def-item>"
            return Piece(f"<def-list>¬{item}¬</def-list>", (word, *text.words), True)
    return text


@st.composite
def paragraphs(draw: st.DrawFn, words: Iterator[str], depth: int) -> Piece:
    """Several pieces with a blank between each two, unless one of them is apart."""
    xml = ""
    all_words: tuple[str, ...] = ()
    previous_is_apart = True
    for piece in draw(st.lists(pieces(words, depth), min_size=1, max_size=4)):
        is_joined = (piece.is_apart or previous_is_apart) and draw(st.booleans())
        xml += ("" if is_joined or not xml else "~") + piece.xml
        all_words += piece.words
        previous_is_apart = piece.is_apart
    return Piece(xml, all_words)


def extract_words(paragraph: str, flatten: bool) -> collections.Counter[str]:
    xml = f"<article {NAMESPACES}><body><p>{paragraph}</p></body></article>"
    blocks = text_blocks.extract_blocks(xml_tree.parse_article(xml.encode(), flatten=flatten), DROP_CITATIONS)
    text = "\n".join(block.text for block in blocks).replace(FORMULA_WORD, "")
    return collections.Counter(re.findall(r"\w+", text.lower()))  # small capitals become large


@pytest.mark.parametrize("flatten", [True, False])
@settings(max_examples=examples(400))
@given(data=st.data())
def test_words_are_those_of_the_xml_whatever_its_elements_and_indentation(
    flatten: bool, data: st.DataObject
) -> None:
    paragraph = data.draw(paragraphs(name_words(), 2))
    compact = paragraph.xml.replace("¬", "").replace("~", " ")
    indentation = data.draw(st.sampled_from(["", "      "]))
    indented = paragraph.xml.replace("¬", f"\n{indentation}").replace("~", "\n    ")
    expected = collections.Counter(paragraph.words)
    assert extract_words(compact, flatten) == expected, compact
    assert extract_words(indented, flatten) == expected, indented
