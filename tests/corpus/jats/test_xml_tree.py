"""The tree of an article: entities, namespaces, skipped elements, limits and malformed input.

Elements that are never used are cut out of the bytes before the parse, and entities are resolved in the
bytes.  Trees are compared with lxml's tree of the whole article.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import html.entities
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats import article_stream, text_blocks, xml_tree
from bioshards.corpus.jats.in_text_marks import CITATION_MARK, CITATION_REFERENCE, REMOVAL_MARK
from bioshards.corpus.jats.paragraph_roles import TextBlock
from bioshards.corpus.jats.xml_tree import flatten_inline_markup
from bioshards.corpus.mathml import MATHML_NAMESPACE
from tests.support.corpus.small_articles import DROP_CITATIONS
from tests.support.hypothesis_profiles import examples

parse_tree = functools.partial(xml_tree.parse_article, flatten=False)
"""Parses without flattening inline markup, which the last tests cover."""
SKIPPED_ELEMENTS = ("ref-list", "table")
PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


def build_article(content: str) -> bytes:
    return f"<article>{content}</article>".encode()


def serialize_tree(content: str) -> str:
    """Return the XML of the parsed tree of an article with this content, without the article's own tags."""
    text = etree.tostring(parse_tree(build_article(content)), encoding="unicode")
    return text.removeprefix("<article>").removesuffix("</article>").removesuffix("<article/>")


def catch_error(xml: bytes) -> BadRecordError:
    with pytest.raises(BadRecordError) as error_info:
        parse_tree(xml)
    return error_info.value


# Entities


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("5&nbsp;&micro;m", "5\u00a0µm"),
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&#945;&#x3B1;&#x1D504;", "αα𝔄"),
        ("&amp;alpha; &amp;#945; &amp;amp;", "&alpha; &#945; &amp;"),
        ("&amp;&alpha;", "&α"),
        # Greek letters of ISO, and characters of markup.
        ("&agr;&Agr;&sfgr;&ohgr; &aacgr;&idiagr;", "αΑςω άΐ"),
        ("&LT;b>&LT;b&LT;lt;", "<b><b<lt;"),
        ("&GT;&AMP;lt;&QUOT;", '>&lt;"'),
    ],
)
def test_entities_are_resolved(content: str, text: str) -> None:
    for inside in (
        f"<p>{content}</p>",
        f'<p a="{content}"/>'.replace("&apos;", "'").replace("&quot;", "&#34;"),
    ):
        paragraph = parse_tree(build_article(inside))[0]
        assert (paragraph.text or paragraph.get("a")) == text
        assert len(paragraph) == 0
    assert parse_tree(build_article('<p a="1&Tab;2&NewLine;3"/>'))[0].get("a") == "1\t2\n3"


def test_every_entity_of_html_5_and_nlm_is_resolved() -> None:
    names = sorted({*ENTITIES, *NLM_ENTITIES})
    tree = parse_tree(build_article("".join(f"<p>&{name};</p>" for name in names)))
    expected = {name: html.entities.html5.get(f"{name};") for name in names} | NLM_ENTITIES
    assert dict(zip(names, (p.text for p in tree), strict=True)) == expected


@pytest.mark.parametrize(
    "content",
    [
        # Entity references.
        "&",
        "&;",
        "& ",
        "&alpha",
        "&alpha ;",
        "&#;",
        "&#x;",
        "&#0;",
        "&#x1F;",
        "&#xD800;",
        "&#1114112;",
        # Tags that are not balanced, and a prefix that is not declared.
        "<table>",
        "</table>",
        "<p><table></p></table>",
        "<table><table></table>",
        "<table></table></table>",
        "<table><ref-list></table></ref-list>",
        "<ref-list><ref><ref-list>",
        '<p a="<table/>"/>',
        "<p <table/>/>",
        "<table a=1></table><p>",
        "<table",
        "<table-wrap><table></table-wrap>",
        "<mml:math/>",
        # Characters that XML forbids.
        "\0",
        "\x01",
        "\x0b",
        "\x1f",
        "\ufffe",
        "\uffff",
    ],
)
def test_invalid_content_is_malformed(content: str) -> None:
    assert catch_error(build_article(content)).reason == "malformed-xml"


@pytest.mark.parametrize(
    "xml",
    [
        b"",
        b" ",
        b"text",
        b"<article>",
        b"<article/><article/>",
        b"<article></Article>",
        # Above the limits of lxml.
        build_article(f"<p>{'a' * 10_000_001}</p>"),
        build_article(f'<p a="{"a" * 10_000_001}"/>'),
        build_article("<sec>" * 300 + "</sec>" * 300),
        build_article("<sec>" * 100_000 + "</sec>" * 100_000),
        build_article(f"<{'p' * 60_000}/>"),
    ],
    ids=range(11),
)
def test_input_without_one_root_element_or_above_the_limits_is_malformed(xml: bytes) -> None:
    assert catch_error(xml).reason == "malformed-xml"


ENTITIES = sorted(name[:-1] for name in html.entities.html5 if name.endswith(";"))


NLM_ENTITIES = {
    "angst": "\u212b",
    "ohm": "\u2126",
    "asymp": "≍",
    "jmath": "j",
    "race": "⧚",
    "bsolhsub": "\\⊂",
    "suphsol": "⊃/",
    "epsi": "ϵ",
    "epsiv": "ε",
    "varepsilon": "ε",
    "phi": "ϕ",
    "phiv": "φ",
    "varphi": "φ",
    "b.Gammad": "Ϝ",
    "b.gammad": "ϝ",
    "ThickSpace": "\u2009\u200a\u200a",
    "OverBar": "¯",
    "UnderBar": "\u0332",
    "OverBrace": "︷",
    "UnderBrace": "︸",
    "OverParenthesis": "︵",
    "UnderParenthesis": "︶",
    "Lang": "《",
    "Rang": "》",
    "lbbrk": "〔",
    "rbbrk": "〕",
    "loang": "〘",
    "roang": "〙",
    "lobrk": "〚",
    "robrk": "〛",
    "LeftDoubleBracket": "〚",
    "RightDoubleBracket": "〛",
    **dict.fromkeys(["lang", "langle", "LeftAngleBracket"], "\u2329"),
    **dict.fromkeys(["rang", "rangle", "RightAngleBracket"], "\u232a"),
}
"""What differs from HTML 5 in the entity files of NLM's DTDs 2.2 to JATS 1.2."""


@pytest.mark.parametrize("name", ["nonesuch", "foo-bar", "x.y", "Alphaa", "agrr", "_x", "a" * 5000])
def test_unknown_entity_raises_with_its_name(name: str) -> None:
    for inside in (f"<p>&{name};</p>", f'<p a="&{name};"/>'):
        error = catch_error(build_article(inside))
        assert error.reason == "unknown-entity"
        assert f"&{name[:40]};" in error.detail
        assert len(error.detail) < 200


def test_entity_declarations_are_ignored() -> None:
    bomb = '<!DOCTYPE article [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><article>&b;</article>'
    assert catch_error(bomb.encode()).reason == "unknown-entity"
    external = '<!DOCTYPE article [<!ENTITY nbsp SYSTEM "file:///etc/passwd">]><article>&nbsp;</article>'
    assert parse_tree(external.encode()).text == "\u00a0"


# Namespaces


JATS = [
    "https://jats.nlm.nih.gov/ns/archiving/1.4/",
    "https://jats.nlm.nih.gov/ns/archiving/1.3/",
    "http://jats.nlm.nih.gov",
    "http://jats.nlm.nih.gov/archiving/1.0/",
    "http://dtd.nlm.nih.gov/2.0/xsd/archivearticle",
    "https://dtd.nlm.nih.gov/ns/archiving/2.3/",
]
MATH = "http://www.w3.org/1998/Math/MathML"


@pytest.mark.parametrize("uri", JATS)
def test_jats_namespaces_are_removed_from_names(uri: str) -> None:
    plain = (
        '<article article-type="x" xml:lang="en"><body><p id="a">A <italic>b</italic> c</p></body></article>'
    )
    default = plain.replace("<article", f'<article xmlns="{uri}"', 1)
    prefixed = plain.replace("</", "\0").replace("<", "<j:").replace("\0", "</j:")
    prefixed = prefixed.replace("<j:article", f'<j:article xmlns:j="{uri}"', 1)
    for xml in (plain, default, prefixed):
        tree = parse_tree(xml.encode())
        assert [element.tag for element in tree.iter()] == ["article", "body", "p", "italic"]
        assert tree.findtext("body/p/italic") == "b"
        assert (tree.get("article-type"), tree.get(xml_tree.XML_LANG)) == ("x", "en")


@pytest.mark.parametrize("uri", ["", JATS[0]])
def test_other_namespaces_are_kept(uri: str) -> None:
    xml = (
        f'<article xmlns="{uri}" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="{MATH}" '
        'xmlns:ali="http://www.niso.org/schemas/ali/1.0/"><mml:math><mml:mi>x</mml:mi></mml:math>'
        f'<math xmlns="{MATH}"><mi>y</mi></math><math><mi>z</mi></math>'
        '<ali:license_ref>u</ali:license_ref><ext-link xlink:href="h"/></article>'
    )
    tree = parse_tree(xml.encode())
    assert [child.tag for child in tree] == [
        f"{MATHML_NAMESPACE}math",
        f"{MATHML_NAMESPACE}math",
        "math",
        "{http://www.niso.org/schemas/ali/1.0/}license_ref",
        "ext-link",
    ]
    assert [child[0].tag for child in list(tree)[:3]] == [
        f"{MATHML_NAMESPACE}mi",
        f"{MATHML_NAMESPACE}mi",
        "mi",
    ]
    assert tree[4].get(xml_tree.XLINK_HREF) == "h"


# Skipped elements


@pytest.mark.parametrize("name", SKIPPED_ELEMENTS)
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<p>a</p><X><p>b</p></X><p>c</p>", "<p>a</p><p>c</p>"),
        ("<p>a <X>b</X> c</p>", "<p>a  c</p>"),
        ("<X/>tail", "tail"),
        ("<X />tail", "tail"),
        ('<X a="1"/>tail<X\n a="/">b</X\n>tail', "tail\ntail"),
        ("<X>a<X>b</X>c<X/>d</X>e", "e"),
        ('<X a="x > y">b</X>c', "c"),
        ('<X a="/>">b</X>c', "c"),
        ('<X a="/>"/>c', "c"),
        ("<X a='\">' b=\"'>\">b</X>c", "c"),
        ("<X>&nonesuch; > \"'</X>c", "c"),
        ("<X></X><X></X>", ""),
        ("<X>a</X>&alpha;<X>b</X>", "α"),
    ],
)
def test_skipped_elements_are_removed_and_their_tails_kept(name: str, content: str, expected: str) -> None:
    assert serialize_tree(content.replace("X", name)) == expected


WRAP = "<table-wrap><label>1</label>{}<table-wrap-foot><p>n</p></table-wrap-foot></table-wrap>"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        *(
            (f"<{name}><p>a</p></{name}><{name}/>", None)
            for name in ("table-wrap", "table-wrap-foot", "ref-lists", "ref-list.x", "tables", "Table", "ref")
        ),
        ('<p a="&lt;table&gt;" table="ref-list">&lt;table&gt; &lt;/table&gt;</p>', None),
        ("<ref-list><table/><table>x</table></ref-list>a", "a"),
        ("<table><tr><ref-list>b</ref-list></tr></table>a", "a"),
        (WRAP.format("<table><tr><td>c</td></tr></table>"), WRAP.format("")),
        ("a<table><tr/> /> <!-- --></table>b<ref-list/>c", "a\nb\nc"),
        ("<p>a</p><table><tr><td></tr></td></table>", "<p>a</p>"),  # their content is not checked
        ("<table>" * 5000 + "</table>" * 5000 + "<p>a</p>", "<p>a</p>"),  # nor its depth
        ("<p>a<!-- b -->c<?d e?>f</p>", "<p>acf</p>"),
    ],
    ids=range(15),
)
def test_other_elements_are_kept(content: str, expected: str | None) -> None:
    assert serialize_tree(content) == (content if expected is None else expected)


def test_names_with_prefixes_are_skipped_and_other_roots_are_none() -> None:
    prefixed = f'<j:article xmlns:j="{JATS[0]}"><j:p>a<j:table><j:tr/></j:table>b</j:p></j:article>'
    assert etree.tostring(parse_tree(prefixed.encode()), method="text") == b"ab"
    assert parse_tree(b'<article xmlns="http://docbook.org/ns/docbook"/>').tag != "article"


NAMES = st.sampled_from(["p", "sec", "table", "table-wrap", "ref-list", "ref", "italic"])
TEXT = st.text(st.sampled_from("ab </>&\"'é\u2028\U0001d504\n"), max_size=6)
TREES: st.SearchStrategy[Any] = st.recursive(
    st.tuples(NAMES, st.dictionaries(NAMES, TEXT, max_size=2), TEXT, st.just([]), TEXT),
    lambda inner: st.tuples(
        NAMES, st.dictionaries(NAMES, TEXT, max_size=2), TEXT, st.lists(inner, max_size=4), TEXT
    ),
    max_leaves=12,
)


def build_element(parts: Any) -> etree._Element:
    name, attributes, text, inner, tail = parts
    element = etree.Element(name, attributes)
    element.text, element.tail = text, tail
    for child in inner:
        element.append(build_element(child))
    return element


def remove_skipped_elements(root: etree._Element) -> etree._Element:
    """Return a copy without the skipped elements, their tails kept, made by lxml alone.

    A line break replaces an element between two words.
    """
    root = copy.deepcopy(root)
    etree.strip_tags(root, etree.Comment)
    for name in SKIPPED_ELEMENTS:
        while (element := root.find(f".//{name}")) is not None:
            before, parent = element.getprevious(), element.getparent()
            assert parent is not None
            text = (parent.text if before is None else before.tail) or ""
            is_between_words = bool(text[-1:].strip(" \t\r\n") and (element.tail or "")[:1].strip(" \t\r\n"))
            etree.strip_elements(element, "*")
            element.text, element.tag = "\n" if is_between_words else None, "gone"
            etree.strip_tags(root, "gone")
    return root


@settings(max_examples=examples(400))
@example([("p", {}, "one", [("table", {}, "", [], ""), ("table", {}, "", [], "two")], "")], False)
@given(st.lists(TREES, max_size=4), st.booleans())
def test_generated_tree_equals_lxml_without_skipped_elements(trees: list[Any], raw: bool) -> None:
    root = etree.Element("article")
    root.extend(map(build_element, trees))
    xml = etree.tostring(root, encoding="utf-8" if raw else "us-ascii").partition(b"?>\n")
    expected = remove_skipped_elements(etree.fromstring(xml[2] or xml[0], PARSER))
    assert etree.tostring(parse_tree(xml[2] or xml[0])) == etree.tostring(expected)


PIECES = st.lists(
    st.sampled_from(
        [
            b"<table>",
            b"</table>",
            b"<table/>",
            b'<table a="',
            b'">',
            b"<ref-list>",
            b"</ref-list>",
            b"<p>",
            b"</p>",
            b"<p/>",
            b"&alpha;",
            b"&x;",
            b"&",
            b"<",
            b">",
            b"/>",
            b"'",
            b"\xff",
            b"\0",
            b"\x01",
            b"text",
        ]
    ),
    max_size=12,
)


@settings(max_examples=examples(500))
@given(PIECES)
def test_generated_bytes_give_a_tree_or_a_bad_record(pieces: list[bytes]) -> None:
    xml = b"<article>" + b"".join(pieces) + b"</article>"
    try:
        tree = parse_tree(xml)
    except BadRecordError as bad:
        reason = bad.reason
    else:
        reason = ""
        assert not any(element.tag in SKIPPED_ELEMENTS for element in tree.iter())
        assert all(isinstance(element.tag, str) for element in tree.iter())
    assert reason in {"", "malformed-xml", "invalid-utf-8", "unknown-entity"}


# Bytes


@pytest.mark.parametrize("where", ["<p>{}</p>", '<p a="{}"/>', "<table>{}</table>", "<p/>{}", "<{}/>"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"])
def test_invalid_utf_8_raises_with_its_offset(where: str, bad: bytes) -> None:
    xml = build_article(where).replace(b"{}", bad)
    error = catch_error(xml)
    assert error.reason == "invalid-utf-8"
    assert f"byte {xml.index(bad)}" in error.detail


# Limits


@pytest.mark.parametrize(
    "content",
    ["<table ", "<table>", "</table>", '<table a="', "<table/>", "&amp", "&alpha;", "<ref-list><table>"],
)
def test_time_limit_on_hostile_input(content: str) -> None:
    start = time.process_time()
    with contextlib.suppress(BadRecordError):
        parse_tree(build_article(content * 100_000))
    assert time.process_time() - start < 20


# Inline markup that is flattened before the parse: the same text as of parsing every element


def build_paragraph_article(paragraph: str) -> bytes:
    return f"<article><body><p>{paragraph}</p></body></article>".encode()


def extract_texts(paragraph: str, flatten: bool) -> list[str]:
    return [block.text for block in extract_blocks(build_paragraph_article(paragraph), flatten)]


def extract_blocks(xml: bytes, flatten: bool) -> list[TextBlock]:
    return text_blocks.extract_blocks(xml_tree.parse_article(xml, flatten=flatten), DROP_CITATIONS)


@pytest.mark.parametrize("flatten", [True, False])
@pytest.mark.parametrize("start", ["&#xFDD5;", "&#64981;&#64981;", "&#xFDD5;<xref/>", "\ufdd5"])
def test_the_frame_of_headings_in_an_article_is_no_frame(start: str, flatten: bool) -> None:
    [text] = extract_texts(f"{start}Gulls nest.", flatten)
    assert text.endswith("Gulls nest.")
    assert "\ufdd5" not in text


@pytest.mark.parametrize("flatten", [True, False])
def test_a_title_in_bold_before_a_line_break_is_a_heading(flatten: bool) -> None:
    xml = build_paragraph_article(
        "<bold>Nests of terns</bold>\nAuks nest.</p><p><italic>Larus</italic>\nNests"
    )
    assert [(block.headings, block.text) for block in extract_blocks(xml, flatten)] == [
        (("Nests of terns",), "Auks nest."),
        ((), "Larus Nests"),
    ]


@pytest.mark.parametrize("flatten", [True, False])
def test_small_capitals_that_are_units_or_configurations_are_capitals(flatten: bool) -> None:
    paragraph = (
        "A p<sc>H</sc> of 2 m<sc>m</sc>, 3 &#x3bc;<sc>m,</sc> or 1 <sc>m</sc> <sc>l</sc>-auk, a<sc>m</sc>;"
        " <sc>d-</sc>/<sc>l</sc>-auks (<sc>d</sc>-). Feed <sc>d</sc>&#8208;guano, <sc>l</sc>-1,2-guano."
    )
    assert extract_texts(paragraph, flatten) == [
        "A pH of 2 mM, 3 μM, or 1 M L-auk, am; D-/L-auks (D-). Feed D\u2010guano, L-1,2-guano."
    ]
    assert extract_texts("Of H&#x2009;<sc>i</sc> and k<sc>i</sc>.", flatten) == ["Of H I and ki."]


@pytest.mark.parametrize(
    ("xml", "expected"),
    [
        ("<italic>in</italic> <bold>vivo</bold>", "in vivo"),
        ('<italic toggle="yes">E. coli</italic>', "E. coli"),
        ("CO<sub>2</sub>, 10<sup>5</sup>, p<sc>H</sc>", "CO2, 10^5, pH"),
        ('[<xref ref-type="bibr" rid="b1">1</xref>]', f"[{CITATION_REFERENCE}]"),
        ("""[<xref rid='b1' ref-type="bibr">1</xref>]""", f"[{CITATION_REFERENCE}]"),
        ('wide.<xref ref-type="bibr" rid="b"><sup>1–3</sup></xref>', f"wide.{CITATION_REFERENCE}"),
        ('wide.<xref ref-type="bibr" rid="b"><sup>1&#x2013;3</sup></xref>', f"wide.{CITATION_REFERENCE}"),
        (
            'wide.<sup><xref ref-type="bibr" rid="b">1</xref>,<xref ref-type="bibr" rid="c">2</xref></sup>',
            f"wide.{CITATION_REFERENCE}",
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


NUMBERS = st.sampled_from(["1", "12", "3–5", "[4]", "(7)", "S2", "Ode, 2011", "2011a", "", "*", "1&#x2013;3"])
KINDS = st.sampled_from(["bibr", "ref", "fig", "table", "fn", "table-fn", "sec", "other", ""])
WORDS = st.sampled_from(
    [
        "cells",
        ". ",
        ", ",
        " and ",
        "; ",
        " see ",
        "10",
        "2.",
        "−3",
        "−ΔΔCt",
        "Ca",
        "\n    ",
        "&lt;",
        "<sup>a</sup>",
        "<sup>TM</sup>",
        "\n<sup>13</sup>C",
    ]
) | st.sampled_from(" \n()[]–xé\u2009")
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


_INDENTED_SCRIPT = re.compile(r"\n(?:(?<=<su[bp]>\n)|(?:[ \t]|<[^<>]*>)*<su[bp][\s>])")


@pytest.mark.property
@given(
    st.lists(
        st.sampled_from(["<sup>", "<sub ", "<i>", "</sup>", "<", ">", "\n", " ", "\t", "x"]), max_size=14
    )
)
def test_indented_scripts_are_those_of_a_pattern(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert xml_tree._has_indented_script(text) == (_INDENTED_SCRIPT.search(text) is not None)
