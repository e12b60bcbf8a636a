"""The article oracle of the tests: reference titles, prose words and leaked titles."""

from __future__ import annotations

import collections

import pytest

from tests.support.corpus.jats_oracle import count_prose_words, find_leaked_titles, find_reference_titles

LONG = "Quiet rivers and the slow growth of small northern fish"
OTHER = "A second long account of lakes, <italic>their</italic> reeds and H<sub>2</sub>O"
NESTED = "What the older records of harbour towns say about weather"
FREE = "How winter light changes the colour of birds that never leave"


def build_article(
    body: str, *, abstract: str = "", back: str = "", attributes: str = "", title: str = "A title"
) -> bytes:
    return (
        f"<article {attributes}><front><article-meta><title-group><article-title>{title}</article-title>"
        f"</title-group>{abstract}</article-meta></front><body>{body}</body><back>{back}</back></article>"
    ).encode()


REFERENCES = (
    "<ref-list><title>References</title>"
    f"<ref><element-citation><article-title>{LONG}</article-title><source>Journal</source></element-citation></ref>"
    f"<ref><mixed-citation>Doe J. <article-title>{OTHER}</article-title>. J Reeds.</mixed-citation></ref>"
    f"<ref-list><ref><citation><source>{NESTED}</source></citation></ref></ref-list>"
    f"<ref><mixed-citation><name><surname>Roe</surname></name> {FREE}. J Birds. 2001.</mixed-citation></ref>"
    "<ref><mixed-citation><article-title>Too short to count</article-title></mixed-citation></ref></ref-list>"
)


def test_reference_titles_are_found_in_every_element() -> None:
    assert find_reference_titles(build_article("", back=REFERENCES)) == [
        "a second long account of lakes their reeds and h2o",
        "how winter light changes the colour of birds that never leave",
        "quiet rivers and the slow growth of small northern fish",
        "what the older records of harbour towns say about weather",
    ]
    assert len(find_reference_titles(build_article(f"<sec>{REFERENCES}</sec>"))) == 4
    in_sub_article = build_article("").replace(
        b"</article>", f"<sub-article><back>{REFERENCES}</back></sub-article></article>".encode()
    )
    assert len(find_reference_titles(in_sub_article)) == 4


def test_reference_titles_with_namespaces_and_entities() -> None:
    title = f"<article-title>{LONG} &eacute;t&eacute;</article-title>"
    back = f"<ref-list><ref><citation>{title}</citation></ref></ref-list>"
    xml = build_article("", back=back, attributes='xmlns="https://jats.nlm.nih.gov/ns/archiving/1.4/"')
    declared = b'<!DOCTYPE article PUBLIC "-//NLM//DTD" "archivearticle.dtd">' + xml
    assert find_reference_titles(declared) == ["quiet rivers and the slow growth of small northern fish été"]


def test_titles_outside_reference_lists_are_ignored() -> None:
    assert (
        find_reference_titles(build_article(f"<p><article-title>{LONG}</article-title></p>", title=LONG))
        == []
    )


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<p>One two.</p><p>two</p>", "one two two"),
        ("<sec><title>Head</title><sec><title>Deeper</title><p>text</p></sec></sec>", "head deeper text"),
        ("<p>H<sub>2</sub>O and <italic>E</italic>. coli</p>", "h2o and e coli"),
        ('<p>known<xref ref-type="bibr">1</xref> <xref ref-type="fig">Fig 2</xref></p>', "known fig 2"),
        ("<p>before<disp-formula><tex-math>x</tex-math></disp-formula>after</p>", "before after"),
        ('<p>a <m:math xmlns:m="http://www.w3.org/1998/Math/MathML"><m:mi>q</m:mi></m:math> b</p>', "a b"),
        ("<p>a<list><list-item><p>b</p></list-item><list-item>c</list-item></list>d</p>", "a b c d"),
        ("<table-wrap><label>Table 1</label><caption><title>Fish</title><p>seen</p></caption>"
         "<table><tr><td><p>cell</p></td></tr></table></table-wrap>", "fish seen"),
        (f"<p>text</p>{REFERENCES}", "text"),
        ("<p>note<fn><p>aside</p></fn> here</p>", "note here"),
        ("<p>caf&#233; <!-- no --> naïve ﬁn</p>", "café naïve fin"),
    ],
)  # fmt: skip
def test_prose_words_of_the_body(body: str, expected: str) -> None:
    assert count_prose_words(build_article(body)) == collections.Counter(expected.split())


def test_prose_words_include_the_main_abstract_only() -> None:
    abstract = (
        "<abstract><sec><title>Aim</title><p>fish</p></sec></abstract>"
        '<abstract abstract-type="graphical"><p>drawing</p></abstract>'
        "<trans-abstract><p>Fisch</p></trans-abstract>"
    )
    xml = build_article("<p>body</p>", abstract=abstract, back="<ack><p>thanks</p></ack>")
    xml = xml.replace(b"</article>", b"<sub-article><body><p>review</p></body></sub-article></article>")
    assert count_prose_words(xml) == collections.Counter(["aim", "fish", "body"])


def test_title_that_occurs_only_in_a_reference_is_leaked() -> None:
    xml = build_article("<p>Some text.</p>", back=REFERENCES)
    assert find_leaked_titles(xml, ["Some text."]) == []
    assert find_leaked_titles(xml, ["Some text.", f"1. Doe: {LONG.upper()}. 2001"]) == [LONG.lower()]
    assert find_leaked_titles(xml, ["Quiet rivers and the slow growth", "of small northern fish."]) == [
        LONG.lower()
    ]
    assert find_leaked_titles(xml, [LONG + "eries"]) == []


@pytest.mark.parametrize(
    "xml",
    [
        build_article(f"<p>We liked '{LONG}' much.</p>", back=REFERENCES),
        build_article(f"<fig><caption><p>{LONG}</p></caption></fig>", back=REFERENCES),
        build_article("<p>x</p>", back=f"<ack><p>{LONG}</p></ack>{REFERENCES}"),
        build_article("<p>x</p>", back=REFERENCES, title=LONG),
        build_article(
            "<p>x</p>",
            back=REFERENCES,
            title=LONG + "</article-title><alt-title>Fish</alt-title><article-title>",
        ),
        build_article(f"<p>{LONG}<xref ref-type='fn'>1</xref></p>", back=REFERENCES),
        build_article("<p>x</p>", back=REFERENCES, abstract=f"<abstract><p>{LONG}</p></abstract>"),
    ],
)
def test_title_that_occurs_in_the_article_is_not_leaked(xml: bytes) -> None:
    assert find_leaked_titles(xml, [LONG]) == []


def test_title_split_over_two_paragraphs_is_leaked() -> None:
    xml = build_article(
        "<p>Quiet rivers and the slow growth</p><p>of small northern fish</p>", back=REFERENCES
    )
    assert find_leaked_titles(xml, [LONG]) == [LONG.lower()]
