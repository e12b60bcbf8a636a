"""An article's tree: what is read is what was written, and what is bad is that article's fault alone.

Parts are cut out of the bytes before they are parsed, and entities are resolved in them.  Either could change
what the rest says, without an error; so trees are compared with lxml's own of the whole article.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import html.entities
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats import xml_tree
from bioshards.corpus.mathml.formula import MATHML_NAMESPACE

PROFILE = settings(derandomize=True, deadline=None, database=None)

_tree = functools.partial(xml_tree.parse_article, flatten=False)
"""Without joining inline mark-up: tests/corpus/jats/test_flattener.py is about that."""
UNREAD = ("ref-list", "table")
PARSER = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)


def article(content: str) -> bytes:
    return f"<article>{content}</article>".encode()


def written(content: str) -> str:
    """What the tree of an article with this content says, without the article's own tags."""
    text = etree.tostring(_tree(article(content)), encoding="unicode")
    return text.removeprefix("<article>").removesuffix("</article>").removesuffix("<article/>")


def refused(xml: bytes) -> BadRecordError:
    with pytest.raises(BadRecordError) as caught:
        _tree(xml)
    return caught.value


# Entities


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("&alpha;&beta;", "αβ"),
        ("5&nbsp;&micro;m", "5\u00a0µm"),
        ("&hellip;&mdash;&rsquo;", "…—’"),
        ("&Afr;&frac12;", "𝔄½"),
        ("&NotEqualTilde;", "≂̸"),
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&#945;&#x3B1;&#x1D504;", "αα𝔄"),
        ("&amp;alpha; &amp;#945; &amp;amp;", "&alpha; &#945; &amp;"),
        ("&amp;&alpha;", "&α"),
        ("a&emsp;b", "a\u2003b"),
    ],
)
def test_entities_are_the_characters_that_they_stand_for(content: str, text: str) -> None:
    for inside in (
        f"<p>{content}</p>",
        f'<p a="{content}"/>'.replace("&apos;", "'").replace("&quot;", "&#34;"),
    ):
        paragraph = _tree(article(inside))[0]
        assert (paragraph.text or paragraph.get("a")) == text


@pytest.mark.parametrize(("name", "character"), [("LT", "<"), ("GT", ">"), ("AMP", "&"), ("QUOT", '"')])
def test_a_character_of_markup_is_text_however_it_is_named(name: str, character: str) -> None:
    tree = _tree(article(f'<p a="&{name};b">&{name};b&{name};lt;</p>'))
    assert tree[0].text == f"{character}b{character}lt;"
    assert tree[0].get("a") == f"{character}b"
    assert len(tree[0]) == 0
    assert _tree(article("<p>1 &nvlt; 2</p>"))[0].text == "1 <\u20d2 2"


def test_white_space_named_in_an_attribute_stays_what_it_is() -> None:
    assert _tree(article('<p a="1&Tab;2&NewLine;3"/>'))[0].get("a") == "1\t2\n3"


ENTITIES = sorted(name[:-1] for name in html.entities.html5 if name.endswith(";"))


def test_every_entity_of_the_table_is_read() -> None:
    tree = _tree(article("".join(f"<p>&{name};</p>" for name in ENTITIES)))
    assert [p.text for p in tree] == [html.entities.html5[f"{name};"] for name in ENTITIES]


@pytest.mark.parametrize("name", ["nonesuch", "foo-bar", "x.y", "Alphaa", "agr", "_x", "a" * 5000])
def test_an_unknown_entity_rejects_its_article_and_is_named(name: str) -> None:
    for inside in (f"<p>&{name};</p>", f'<p a="&{name};"/>'):
        bad = refused(article(inside))
        assert bad.reason == "unknown-entity"
        assert f"&{name[:40]};" in bad.detail
        assert len(bad.detail) < 200


@pytest.mark.parametrize(
    "content",
    ["&", "&;", "& ", "&alpha", "&alpha ;", "&#;", "&#x;", "&#0;", "&#x1F;", "&#xD800;", "&#1114112;"],
)
def test_what_only_looks_like_an_entity_is_malformed(content: str) -> None:
    assert refused(article(f"<p>{content}</p>")).reason == "malformed-xml"


def test_no_entity_can_be_declared_or_fetched() -> None:
    bomb = '<!DOCTYPE article [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><article>&b;</article>'
    assert refused(bomb.encode()).reason == "unknown-entity"
    outside = '<!DOCTYPE article [<!ENTITY nbsp SYSTEM "file:///etc/passwd">]><article>&nbsp;</article>'
    assert _tree(outside.encode()).text == "\u00a0"


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
def test_names_are_plain_whatever_the_namespace_of_jats(uri: str) -> None:
    plain = (
        '<article article-type="x" xml:lang="en"><body><p id="a">A <italic>b</italic> c</p></body></article>'
    )
    default = plain.replace("<article", f'<article xmlns="{uri}"', 1)
    prefixed = plain.replace("</", "\0").replace("<", "<j:").replace("\0", "</j:")
    prefixed = prefixed.replace("<j:article", f'<j:article xmlns:j="{uri}"', 1)
    for xml in (plain, default, prefixed):
        tree = _tree(xml.encode())
        assert [element.tag for element in tree.iter()] == ["article", "body", "p", "italic"]
        assert tree.findtext("body/p/italic") == "b"
        assert (tree.get("article-type"), tree.get(xml_tree.XML_LANG)) == ("x", "en")


@pytest.mark.parametrize("uri", ["", JATS[0]])
def test_elements_of_others_keep_their_full_names(uri: str) -> None:
    xml = (
        f'<article xmlns="{uri}" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:mml="{MATH}" '
        'xmlns:ali="http://www.niso.org/schemas/ali/1.0/"><mml:math><mml:mi>x</mml:mi></mml:math>'
        f'<math xmlns="{MATH}"><mi>y</mi></math><math><mi>z</mi></math>'
        '<ali:license_ref>u</ali:license_ref><ext-link xlink:href="h"/></article>'
    )
    tree = _tree(xml.encode())
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


def test_another_namespace_of_the_root_is_not_taken_for_jats() -> None:
    assert _tree(b'<article xmlns="http://docbook.org/ns/docbook"/>').tag != "article"


def test_a_prefix_that_nothing_declares_is_malformed() -> None:
    assert refused(article("<mml:math/>")).reason == "malformed-xml"


# What is cut


@pytest.mark.parametrize("name", UNREAD)
@pytest.mark.parametrize(
    ("content", "left"),
    [
        ("<p>a</p><X><p>b</p></X><p>c</p>", "<p>a</p><p>c</p>"),
        ("<p>a <X>b</X> c</p>", "<p>a  c</p>"),
        ("<X/>tail", "tail"),
        ("<X />tail", "tail"),
        ('<X a="1"/>tail<X\n a="/">b</X\n>tail', "tailtail"),
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
def test_what_is_never_read_goes_and_what_follows_it_stays(name: str, content: str, left: str) -> None:
    assert written(content.replace("X", name)) == left


@pytest.mark.parametrize(
    "name",
    ["table-wrap", "table-wrap-foot", "ref-lists", "ref-list.x", "tables", "Table", "ref"],
)
def test_names_that_only_begin_alike_stay(name: str) -> None:
    content = f"<{name}><p>a</p></{name}><{name}/>"
    assert written(content) == content


def test_one_within_another_goes_with_it_whichever_it_is() -> None:
    assert written("<ref-list><table/><table>x</table></ref-list>a") == "a"
    assert written("<table><tr><ref-list>b</ref-list></tr></table>a") == "a"
    wrap = "<table-wrap><label>1</label>{}<table-wrap-foot><p>n</p></table-wrap-foot></table-wrap>"
    assert written(wrap.format("<table><tr><td>c</td></tr></table>")) == wrap.format("")


def test_it_goes_too_where_it_cannot_be_cut_out_of_the_bytes() -> None:
    prefixed = f'<j:article xmlns:j="{JATS[0]}"><j:p>a<j:table><j:tr/></j:table>b</j:p></j:article>'
    assert etree.tostring(_tree(prefixed.encode()), method="text") == b"ab"
    assert written("a<table><tr/> /> <!-- --></table>b<ref-list/>c") == "abc"


def test_names_in_text_and_attributes_are_no_elements() -> None:
    content = '<p a="&lt;table&gt;" table="ref-list">&lt;table&gt; &lt;/table&gt;</p>'
    assert written(content) == content


@pytest.mark.parametrize(
    "content",
    [
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
    ],
)
def test_what_does_not_balance_is_malformed(content: str) -> None:
    assert refused(article(content)).reason == "malformed-xml"


def test_what_is_cut_is_not_looked_into() -> None:
    """The price of not reading it, as the module says."""
    assert written("<p>a</p><table><tr><td></tr></td></table>") == "<p>a</p>"


NAMES = st.sampled_from(["p", "sec", "table", "table-wrap", "ref-list", "ref", "italic"])
TEXT = st.text(st.sampled_from("ab </>&\"'é\u2028\U0001d504\n"), max_size=6)
TREES: st.SearchStrategy[Any] = st.recursive(
    st.tuples(NAMES, st.dictionaries(NAMES, TEXT, max_size=2), TEXT, st.just([]), TEXT),
    lambda inner: st.tuples(
        NAMES, st.dictionaries(NAMES, TEXT, max_size=2), TEXT, st.lists(inner, max_size=4), TEXT
    ),
    max_leaves=12,
)


def built(parts: Any) -> etree._Element:
    name, attributes, text, inner, tail = parts
    element = etree.Element(name, attributes)
    element.text, element.tail = text, tail
    for child in inner:
        element.append(built(child))
    return element


def without(root: etree._Element) -> etree._Element:
    """A copy without the elements that are never read, their tails kept: by lxml alone."""
    root = copy.deepcopy(root)
    etree.strip_tags(root, etree.Comment)
    for element in list(root.iter(*UNREAD)):
        for inside in list(element):
            element.remove(inside)
        element.text, element.tag = None, "gone"
    etree.strip_tags(root, "gone")
    return root


@settings(PROFILE, max_examples=400)
@given(st.lists(TREES, max_size=4), st.booleans())
def test_the_tree_is_that_of_the_whole_less_what_is_not_read(trees: list[Any], raw: bool) -> None:
    root = etree.Element("article")
    root.extend(map(built, trees))
    xml = etree.tostring(root, encoding="utf-8" if raw else "us-ascii").partition(b"?>\n")
    expected = without(etree.fromstring(xml[2] or xml[0], PARSER))
    assert etree.tostring(_tree(xml[2] or xml[0])) == etree.tostring(expected)


PIECES = st.lists(
    st.sampled_from(
        [
            *(
                b"<table>",
                b"</table>",
                b"<table/>",
                b'<table a="',
                b'">',
                b"<ref-list>",
                b"</ref-list>",
                b"<p>",
            ),
            *(
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
            ),
        ]
    ),
    max_size=12,
)


@settings(PROFILE, max_examples=500)
@given(PIECES)
def test_whatever_comes_there_is_a_tree_or_a_bad_record(pieces: list[bytes]) -> None:
    xml = b"<article>" + b"".join(pieces) + b"</article>"
    try:
        tree = _tree(xml)
    except BadRecordError as bad:
        reason = bad.reason
    else:
        reason = ""
        assert not any(element.tag in UNREAD for element in tree.iter())
        assert all(isinstance(element.tag, str) for element in tree.iter())
    assert reason in {"", "malformed-xml", "invalid-utf-8", "unknown-entity"}


# Bytes


@pytest.mark.parametrize("where", ["<p>{}</p>", '<p a="{}"/>', "<table>{}</table>", "<p/>{}", "<{}/>"])
@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80"])
def test_what_is_not_utf_8_is_said_to_be_so_wherever_it_is(where: str, bad: bytes) -> None:
    xml = article(where).replace(b"{}", bad)
    found = refused(xml)
    assert found.reason == "invalid-utf-8"
    assert f"byte {xml.index(bad)}" in found.detail


@pytest.mark.parametrize("character", ["\0", "\x01", "\x0b", "\x1f", "\ufffe", "\uffff"])
def test_characters_that_xml_has_not_are_malformed(character: str) -> None:
    assert refused(article(f"<p>{character}</p>")).reason == "malformed-xml"


def test_comments_and_instructions_are_not_in_the_tree() -> None:
    assert written("<p>a<!-- b -->c<?d e?>f</p>") == "<p>acf</p>"


@pytest.mark.parametrize(
    "xml", [b"", b" ", b"text", b"<article>", b"<article/><article/>", b"<article></Article>"]
)
def test_what_is_no_document_is_malformed(xml: bytes) -> None:
    assert refused(xml).reason == "malformed-xml"


# Bombs


@pytest.mark.parametrize(
    "content",
    [
        f"<p>{'a' * 10_000_001}</p>",
        f'<p a="{"a" * 10_000_001}"/>',
        "<sec>" * 300 + "</sec>" * 300,
        "<sec>" * 100_000 + "</sec>" * 100_000,
        f"<{'p' * 60_000}/>",
    ],
    ids=["text", "attribute", "depth", "great-depth", "name"],
)
def test_what_is_too_large_for_a_tree_is_a_bad_record(content: str) -> None:
    assert refused(article(content)).reason == "malformed-xml"


def test_depth_in_what_is_not_read_does_not_matter() -> None:
    assert written("<table>" * 5000 + "</table>" * 5000 + "<p>a</p>") == "<p>a</p>"


@pytest.mark.parametrize(
    "content",
    ["<table ", "<table>", "</table>", '<table a="', "<table/>", "&amp", "&alpha;", "<ref-list><table>"],
)
def test_time_grows_with_the_bytes_only(content: str) -> None:
    started = time.process_time()
    with contextlib.suppress(BadRecordError):
        _tree(article(content * 100_000))
    assert time.process_time() - started < 20
